# SPDX-License-Identifier: Apache-2.0
"""Check samples: a few calibration samples with the f32 model's outputs, in NAME_cali_checks.npz beside NAME_cali.json,
and the warnings about a quantised model's error on them.

The deployed model itself runs on them, so the check does not need to evaluate a reference.
"""
from __future__ import annotations

from pathlib import Path
from typing import Callable, Collection, Mapping, NamedTuple, Sequence

import numpy as np

from ..errors import TesseraError
from ..files import load_npz, save_npz
from ..inputs import InputSpec, check_inputs
from ..output_error import Meter, Origins, OutputError
from . import table as tables
from .dataset import Dataset, readable
from .worker import Worker, digest

MAX_ERROR = 0.03
"""Output error up to which no warning is given."""

Arrays = Mapping[str, np.ndarray]


class Check(NamedTuple):
    """Inputs and outputs of a sample, by name."""

    inputs: Arrays
    outputs: Arrays


def checks_path(table: str | Path) -> Path:
    return Path(table).with_name(f"{Path(table).stem}_checks.npz")


def save(
    path: str | Path, dataset: Dataset, numbers: Collection[int], specs: Sequence[InputSpec], worker: Worker
) -> None:
    """Writes the samples `numbers`, on which errors are measured, beside the table `path`. worker: holds the f32
    model."""
    kept: dict[str, np.ndarray] = {}
    for number, (_, arrays) in enumerate(readable(dataset, numbers, specs)):
        worker.run(arrays)
        for kind, named in (("input", arrays), ("output", worker.outputs())):
            kept.update({f"{number}:{kind}:{name}": array for name, array in named.items()})
    if kept:
        save_npz(checks_path(path), kept)


def load(path: str | Path, specs: Sequence[InputSpec]) -> list[Check]:
    """Returns the check samples beside the table `path` that fit `specs` and that the table was made from."""
    beside, digests = checks_path(path), set(tables.load(path).sample_digests)
    if not beside.is_file():
        return []
    try:
        stored: dict[int, dict[str, dict[str, np.ndarray]]] = {}
        for key, array in load_npz(beside).items():
            number, kind, name = key.split(":", 2)
            stored.setdefault(int(number), {"input": {}, "output": {}})[kind][name] = array
        found: list[Check] = []
        for _, check in sorted(stored.items()):
            given = check_inputs(check["input"], specs, str(beside))
            if digest(given, specs)[: tables.DIGEST_LENGTH] in digests:
                found.append(Check(given, check["output"]))
        return found
    except (TesseraError, ValueError, KeyError):  # from another table, with other shapes, or unreadable
        return []


def output_error(run: Callable[[Arrays], Arrays], checks: Sequence[Check], origins: Origins) -> OutputError:
    """Returns the error of the outputs that `run` computes from the checks' inputs."""
    meter = Meter(origins)
    for check in checks:
        meter.add(check.outputs, run(check.inputs))
    return meter.result()


def error_warning(error: float, limit: float, what: str, measured: str, table: str) -> str:
    """Returns the warning about a model `what` whose outputs differ by `error`; "" if that is at most `limit`.
    measured: the error for people, with its name and the number of samples."""
    if error <= limit:
        return ""
    return (
        f"{what} changes the outputs: {measured}; --max_error allows {limit:.1%}. "
        "Measure the effect with 'tessera accuracy'. Lower the error with run_calibration --max_error, at any cost in "
        "speed, or let Tessera find the ops that need more than 8 bits: model_deploy "
        f"--calibration_table {table} --target 'agree>=99' (or 'sqnr>=30', 'drop<=0.5') --data SAMPLES"
    )


def answers_warning(names: Sequence[str], alike: Mapping[str, int] | None = None, samples: int = 0) -> str:
    """Returns the warning about outputs with the same answer on most samples; "" if there are none. alike: by name, the
    number of `samples` that agree, if known."""
    if not names:
        return ""
    counts = {name: f" ({number} of {samples})" for name, number in (alike or {}).items()}
    info = [repr(name) + counts.get(name, "") for name in names]
    return (
        f"output {', '.join(info)} gives the same answer on most calibration samples, so the cost "
        "of int8 on other answers is unknown and may be high: calibrate with samples that contain what the model "
        "looks for, pass such samples to model_deploy --target 'agree>=99' --data SAMPLES, or give run_calibration a "
        "smaller --max_error such as 0.01, which takes more time"
    )
