# SPDX-License-Identifier: Apache-2.0
"""What a check's comparison means: which tensors outside the tolerance are no fault, and when a quantised model is
none to use.

Both definitions stand in docs/numerics.md.
"""
from __future__ import annotations

from typing import Callable, Collection, Iterator, Mapping, Sequence

import numpy as np

from . import tolerances
from .compare import Comparison, Row, Tolerance, compare_tensor, describe
from .top_model import Floats

Tensors = Mapping[str, np.ndarray]

PERTURBATION = 2.0**-23
"""By how much operands are moved, relative to each: a unit in the last place."""
PERTURBATIONS = 3
TIMES_NOISE = 4.0
"""An element's error up to so many times the largest that the perturbations make of it is rounding ..."""
UNCOVERED = 0.5
"""... and what goes beyond that is chance, up to this share of those largest, as norms."""
FEW = 0.01
"""The share of a tensor that may be off by one step of its quantisation; two elements in any case."""


def unusable(samples: Sequence[tuple[Tensors, Tensors]]) -> str:
    """Returns why a quantised model is broken rather than coarse; "" if it is not.

    samples: for each sample the outputs of the reference and those of the model. Only outputs count: which other
    tensors are visible depends on the chip. Labels and indices have no cosine, so only float outputs count.
    """
    least = tolerances.LEAST_OUTPUT_COSINE
    cosines = output_cosines(samples)
    name = min(cosines, key=lambda each: cosines[each], default="")
    if not name or cosines[name] >= least:
        return ""
    over = f" over {len(samples)} samples" if len(samples) > 1 else ""
    return f"output '{name}' has cos {cosines[name]:.4f} with the reference{over}, below {least:g}"


def output_cosines(samples: Sequence[tuple[Tensors, Tensors]]) -> dict[str, float]:
    """Returns the cosine of each float output with the reference's, all samples together. Values that are not finite
    in either are left out."""
    sums: dict[str, np.ndarray] = {}
    for wanted, got in samples:
        for name, golden in wanted.items():
            if name in got and golden.dtype.kind == got[name].dtype.kind == "f" and golden.shape == got[name].shape:
                a, b = golden.astype(np.float64), got[name].astype(np.float64)
                finite = np.isfinite(a) & np.isfinite(b)
                a, b = a[finite], b[finite]
                sums[name] = sums.get(name, np.zeros(3)) + (a @ b, a @ a, b @ b)
    return {
        name: float(both / np.sqrt(ours * theirs)) if ours > 0 and theirs > 0 else float(ours == theirs)
        for name, (both, ours, theirs) in sums.items()
    }


class Perturbed(Mapping[str, np.ndarray]):
    """Tensors with every element moved up or down by PERTURBATION of itself; made when asked for, the same each
    time."""

    def __init__(self, tensors: Tensors, seed: int = 0) -> None:
        self._tensors = tensors
        self._seeds = {name: (seed, place) for place, name in enumerate(tensors)}

    def __getitem__(self, name: str) -> np.ndarray:
        array = self._tensors[name]
        signs = np.random.default_rng(self._seeds[name]).integers(0, 2, array.shape, np.int8) * np.int8(2) - np.int8(1)
        with np.errstate(over="ignore", invalid="ignore"):
            return np.where(np.isfinite(array), array * (1 + np.float32(PERTURBATION) * signs), array).astype(
                array.dtype
            )

    def __iter__(self) -> Iterator[str]:
        return iter(self._tensors)

    def __len__(self) -> int:
        return len(self._tensors)


def excuse(
    comparison: Comparison,
    engines: Sequence[Tensors],
    evaluate: Callable[[Tensors], Tensors],
    outputs: Collection[str],
    quantises: bool,
) -> str:
    """Sets `excuse` of the rows outside the tolerance where no op is at fault; returns what is, "" where nothing is.

    engines: tensors of each engine that was compared with the evaluator, or with one another. evaluate: what each op
    makes of such tensors as its operands. Nothing is excused unless every op of every engine is right by itself:
    within the tolerance, or off by no more than rounding explains (_by_itself). Then what is outside is inherited
    rounding. It excuses inner tensors, and the outputs only of a model that rounds to integers (`quantises`), within
    the tolerance of INT8.
    """
    if comparison.broken:
        return describe(comparison.broken[0])
    for tensors in engines:
        operands = Floats(tensors)
        alone, noise = evaluate(operands), [evaluate(Perturbed(operands, seed)) for seed in range(PERTURBATIONS)]
        for row in comparison.rows:
            if (
                row.name in tensors
                and row.name in alone
                and (wrong := _by_itself(row.name, tensors[row.name], alone, noise, comparison.tolerance))
            ):
                return f"'{row.name}' is wrong by itself, with the operands that it had: {wrong}"
    unseen = [row for row in comparison.failed if all(row.name not in tensors for tensors in engines)]
    if unseen:
        return f"'{unseen[0].name}' cannot be evaluated by itself"
    loose = tolerances.DEFAULT["INT8"]
    for row in comparison.failed:
        if row.name not in outputs or (quantises and _within(row, loose)):
            row.excuse = "inherited rounding"
    return f"output '{comparison.failed[0].name}' is outside" if comparison.failed else ""


def _within(row: Row, tolerance: Tolerance) -> bool:
    return row.cosine >= (tolerance.cosine or -1) and row.euclid >= (tolerance.euclid or -1)


def _by_itself(name: str, got: np.ndarray, alone: Tensors, noise: Sequence[Tensors], tolerance: Tolerance) -> str:
    """What is wrong with a tensor where its op had the operands that the evaluator was given; "" where nothing is."""
    right = alone[name]
    row = compare_tensor(name, got, right, tolerance)
    if (
        row.passed
        or got.shape == right.shape
        and (one_step(got, right) or _below_noise(got, right, [each[name] for each in noise]))
    ):
        return ""
    return describe(row)


def one_step(got: np.ndarray, right: np.ndarray) -> bool:
    """True where a few elements differ, by one step of a quantisation: of integers 1, of floats the one difference
    that there is, if both sides are multiples of it."""
    if got.dtype.kind not in "iuf" or right.dtype.kind not in "iuf":
        return False
    differs = got != right
    count = int(np.count_nonzero(differs))
    if count == 0 or count > max(2, FEW * right.size):
        return count == 0
    errors = np.abs(got[differs].astype(np.float64) - right[differs])
    step = float(errors.max())
    if right.dtype.kind != "f":
        return step <= 1
    if not np.isfinite(step) or step <= 0 or float(errors.min()) < step * (1 - 1e-3):
        return False
    multiples = right.astype(np.float64) / step
    away = np.abs(multiples - np.rint(multiples))
    return bool(np.all(away <= 1e-3 + 1e-5 * np.abs(multiples)))


def _below_noise(got: np.ndarray, right: np.ndarray, perturbed: Sequence[np.ndarray]) -> bool:
    """True where the error is what operands rounded a little differently make, element by element."""
    if got.dtype.kind not in "iuf" or any(each.shape != right.shape for each in perturbed):
        return False
    finite = np.isfinite(right) & np.isfinite(got) & np.logical_and.reduce([np.isfinite(each) for each in perturbed])
    if not np.array_equal(got[~finite], right[~finite], equal_nan=got.dtype.kind == "f"):
        return False
    exact = right[finite].astype(np.float64)
    noise = np.maximum.reduce([np.abs(each[finite] - exact) for each in perturbed])
    times = TIMES_NOISE if got.dtype.kind == "f" else 1
    beyond = np.maximum(np.abs(got[finite] - exact) - times * noise, 0)
    return bool(np.linalg.norm(beyond) <= UNCOVERED * np.linalg.norm(noise))
