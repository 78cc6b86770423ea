# SPDX-License-Identifier: Apache-2.0
"""A histogram of each tensor and the range that each method would choose, for display in reports."""
from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, Mapping

import numpy as np

from ..errors import TesseraError
from ..files import load_json
from .distribution import Distribution
from .thresholds import METHODS, find_range

if TYPE_CHECKING:
    from tessera import _calibration

    from .choose import Choice
    from .observed import Observed

FORMAT, VERSION = "tessera-histograms", 1
BINS = 64


def as_json(
    observed: "Observed", histograms: Mapping[str, "_calibration.Histogram"], choices: Mapping[str, "Choice"]
) -> str:
    """Returns an entry for each source with a range, under the name of its first tensor."""
    names: dict[str, list[str]] = {}
    for tensor in observed.info["tensors"]:
        names.setdefault(tensor["source"], []).append(tensor["name"])
    entries = [
        {"name": names.get(source, [source])[0], "tensors": names.get(source, []), **_entry(histograms[source], choice)}
        for source, choice in choices.items()
    ]
    return json.dumps({"format": FORMAT, "version": VERSION, "tensors": entries}) + "\n"


def _entry(histogram: "_calibration.Histogram", choice: "Choice") -> dict[str, Any]:
    values = Distribution.from_histogram(histogram)
    low, high = float(values.minimum), float(values.maximum)
    if not low < high:
        low, high = min(low, 0.0), max(high, 0.0, low + 1e-30)
    counts = values.on_grid(np.linspace(low, high, BINS + 1)) if values.total else np.zeros(BINS)
    ranges = {}
    for method in METHODS:
        found = find_range(method, values, choice.symmetric)
        ranges[method] = {"low": found.low, "high": found.high, "clipped": values.outside(found.low, found.high)}
    chosen = choice.range
    return {
        "min": low,
        "max": high,
        "counts": [round(float(count), 1) for count in counts],
        "values": values.total,
        "symmetric": choice.symmetric,
        "chosen": choice.method,
        "chosen_range": [chosen.low, chosen.high],
        "ranges": ranges,
    }


def load(path: str | Path) -> list[dict[str, Any]]:
    """Reads the entries of a file. Raises TesseraError for any other file."""
    info = load_json(path, "--histograms file", "make it with run_calibration --histograms FILE")
    if not isinstance(info, dict) or (info.get("format"), info.get("version")) != (FORMAT, VERSION):
        raise TesseraError(f"{path} was not written by run_calibration --histograms")
    entries: list[dict[str, Any]] = info["tensors"]
    return entries
