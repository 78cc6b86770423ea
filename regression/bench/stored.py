# SPDX-License-Identifier: Apache-2.0
"""Stored ratios to the best peer: their geometric means, and changes since they were stored."""
from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Mapping, Sequence

from tessera.errors import TesseraError

STORED = Path(__file__).with_name("ratios.json")
WORSE = 1.08
"""A ratio that grew by this factor is worse; medians of two runs of one build differ by less."""
Ratios = Mapping[str, Mapping[str, Mapping[str, float]]]  # precision -> threads -> model -> ratio


def geometric_mean(ratios: Sequence[float]) -> float:
    return math.exp(sum(map(math.log, ratios)) / len(ratios)) if ratios else float("nan")


def load(path: Path = STORED) -> Ratios:
    try:
        return json.loads(path.read_text())["ratios"]
    except (OSError, ValueError, KeyError) as error:
        raise TesseraError(f"{path}: no table of ratios: {error}") from error


def store(ratios: Ratios, machine: str, peers: str, path: Path = STORED) -> None:
    """Stores the ratios; those of models that were not measured this time stay."""
    kept: dict = json.loads(path.read_text())["ratios"] if path.is_file() else {}
    for precision, of_threads in ratios.items():
        for threads, of_models in of_threads.items():
            kept.setdefault(precision, {}).setdefault(threads, {}).update(
                {model: round(ratio, 3) for model, ratio in of_models.items()}
            )
    path.write_text(json.dumps({"machine": machine, "peers": peers, "ratios": kept}, indent=1, sort_keys=True) + "\n")


def worse(now: Ratios, before: Ratios, factor: float = WORSE) -> list[str]:
    """Returns a line for each model that has become slower relative to its best peer."""
    found = []
    for precision, of_threads in now.items():
        for threads, of_models in of_threads.items():
            for model, ratio in of_models.items():
                was = before.get(precision, {}).get(threads, {}).get(model)
                if was is not None and not ratio <= was * factor:
                    found.append(
                        f"{model}, {precision}, {threads} threads: {ratio:.2f} of the best peer, was {was:.2f}"
                    )
    return found
