# SPDX-License-Identifier: Apache-2.0
"""What quantised outputs are held against: a few calibration samples with the f32 model's outputs, in
NAME_cali_checks.npz beside NAME_cali.json; and what is told of the error that is left.

A deployed model runs on them as it is, so the check costs no evaluation of a reference.
"""
from __future__ import annotations

import math
from pathlib import Path
from typing import Callable, Collection, Mapping, NamedTuple, Sequence

import numpy as np

from ..errors import TesseraError
from ..files import load_npz, save_npz
from ..inputs import InputSpec, check_inputs
from . import table as tables
from .dataset import Dataset, readable, spread
from .output_error import relative, squares
from .worker import Worker, digest

SAMPLES = 4
MOST_BYTES = 32 << 20
"""Of all samples together; large ones are fewer."""
MAX_ERROR = 0.03
"""Output error that is left without a word."""

Arrays = Mapping[str, np.ndarray]


class Check(NamedTuple):
    """Inputs and outputs of a sample, by name; sigmoids: outputs that a sigmoid made."""

    inputs: Arrays
    outputs: Arrays
    sigmoids: frozenset[str] = frozenset()


def checks_path(table: str | Path) -> Path:
    return Path(table).with_name(f"{Path(table).stem}_checks.npz")


def save(path: str | Path, dataset: Dataset, used: Collection[int], specs: Sequence[InputSpec], worker: Worker) -> None:
    """Writes some of the samples numbered in `used` beside the table `path`; worker: has the f32 model."""
    numbers = sorted(used)
    wanted = [numbers[i] for i in spread(len(numbers), SAMPLES)]
    kept: dict[str, list[np.ndarray]] = {}
    size = 0
    for _, arrays in readable(dataset, wanted, specs):
        worker.run(arrays)
        marks = {name: np.empty(0, np.float32) for name in worker.sigmoids}
        named = {
            f"{kind}:{name}": array
            for kind, each in (("input", arrays), ("output", worker.outputs()), ("sigmoid", marks))
            for name, array in each.items()
        }
        size += sum(array.nbytes for array in named.values())
        if size > MOST_BYTES:
            break
        for name, array in named.items():
            kept.setdefault(name, []).append(array)
    if kept:
        save_npz(checks_path(path), {name: np.stack(arrays) for name, arrays in kept.items()})


def load(path: str | Path, specs: Sequence[InputSpec]) -> list[Check]:
    """What stands beside the table `path`, where it fits `specs` and is of the samples the table was made from."""
    beside, digests = checks_path(path), set(tables.load(path).sample_digests)
    if not beside.is_file():
        return []
    try:
        arrays = load_npz(beside)
        inputs, outputs, marks = (
            {name.removeprefix(kind): array for name, array in arrays.items() if name.startswith(kind)}
            for kind in ("input:", "output:", "sigmoid:")
        )
        found: list[Check] = []
        for i in range(min(map(len, arrays.values()))):
            given = check_inputs({name: array[i] for name, array in inputs.items()}, specs, str(beside))
            if digest(given, specs)[: tables.DIGEST_LENGTH] in digests:
                found.append(Check(given, {name: array[i] for name, array in outputs.items()}, frozenset(marks)))
        return found
    except (TesseraError, ValueError, TypeError):  # of another table, other shapes, or no such file
        return []


def output_error(run: Callable[[Arrays], Arrays], checks: Sequence[Check], probabilities: Collection[str]) -> float:
    """Relative error (output_error.py) of what `run` makes of the checks' inputs."""
    found = []
    for check in checks:
        got = run(check.inputs)
        shown = {name: array for name, array in check.outputs.items() if name in got and got[name].shape == array.shape}
        found.append(squares(shown, got, probabilities, check.sigmoids))
    return math.sqrt(relative(found)) if found and found[0].size else math.nan


def error_warning(error: float, limit: float, what: str, table: str) -> str:
    """Of a model `what` whose outputs are `error` off; "" where that is no more than `limit`."""
    if error <= limit:
        return ""
    return (
        f"{what} changes the outputs by {error:.1%} (relative, root mean square; --max_error allows {limit:.1%}): what "
        "that costs, 'tessera accuracy' tells; run_calibration with a --max_error of your own makes less at any price, "
        "and ops that need more than 8 bits for a target are found by model_deploy "
        f"--calibration_table {table} --target 'agree>=99' (or 'sqnr>=30', 'drop<=0.5') --data SAMPLES"
    )


def answers_warning(names: Sequence[str], alike: Mapping[str, int] | None = None, samples: int = 0) -> str:
    """Of outputs that say the same on most samples; "" for none. alike: by names on how many of the `samples`, where
    that is known."""
    if not names:
        return ""
    counts = {name: f" ({number} of {samples})" for name, number in (alike or {}).items()}
    told = [repr(name) + counts.get(name, "") for name in names]
    return (
        f"output {', '.join(told)} says the same on most calibration samples: what int8 costs "
        "where it says something else cannot be told, and may be much; calibrate with samples that hold what the model "
        "looks for, give such to model_deploy --target 'agree>=99' --data SAMPLES, or give run_calibration a smaller "
        "--max_error, 0.01 say, which takes more time"
    )
