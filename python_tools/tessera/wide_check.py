# SPDX-License-Identifier: Apache-2.0
"""Compares an engine with the Top reference on inputs of any magnitude, op by op and element by element.

On such inputs the network as a whole says little: rounding grows, and one large element hides the others. Therefore
every op is evaluated on the engine's operands, and the allowed error follows from what the op computes.
"""
from __future__ import annotations

from dataclasses import dataclass
from typing import Callable, Collection, Mapping, Sequence

import numpy as np

from . import op_classes
from .top_model import Cone
from .verdict import PERTURBATIONS, Perturbed, Tensors, floats_between, one_step

BUDGET = 15_000_000
"""Elements and multiplications that the reference may spend: takes less than a second."""
SMALLEST = 2.0**-126
"""Results below this may be flushed to zero."""
_ULP = 2.0**-23
_NOISE = 8.0
"""An error up to this multiple of the effect of moving operands by a unit in the last place is rounding."""
_CHANCE = 0.01
"""Share of a tensor's elements that may be further off, because the perturbations are random."""

Evaluate = Callable[[Tensors, Collection[str]], "tuple[Tensors, Mapping[str, Cone]]"]


@dataclass(frozen=True)
class Fault:
    """A tensor that is wrong although its op had the engine's operands."""

    name: str
    ops: tuple[str, ...]
    wrong: int
    size: int
    place: tuple[int, ...]
    got: float
    right: float

    def __str__(self) -> str:
        place = f" at {list(self.place)}" if self.place else ""
        ops = ", ".join(self.ops) or "a tensor"
        return (
            f"'{self.name}' ({ops}): {self.wrong} of {self.size} elements are wrong, {self.got:.9g}{place}, correct: "
            f"{self.right:.9g}"
        )


@dataclass(frozen=True)
class Outcome:
    checked: int
    faults: list[Fault]


def find_faults(tensors: Tensors, evaluate: Evaluate, formulas: bool, excepts: Collection[str] = ()) -> Outcome:
    """Evaluates each op on the engine's `tensors` and compares the result with the engine's.

    formulas: the engine may compute an op of the model by the formula in the model's file.
    """
    right, cones = evaluate(tensors, ())
    names = [name for name in cones if name in tensors and name in right and name not in excepts]
    suspects = {}
    for name in names:
        wrong = _wrong(tensors[name], right[name], cones[name].ops, formulas)
        if wrong is not None and wrong.any():
            suspects[name] = wrong
    doubtful = [name for name in suspects if _may_be_noise(cones[name].ops, formulas)]
    if doubtful:
        read = {
            name: tensors[name] for name in tensors if name in doubtful or any(name in cones[d].reads for d in doubtful)
        }
        between = floats_between(tensors, right)  # operands may be integers
        noise = [
            evaluate(Perturbed(operands, seed), doubtful)[0]
            for operands in ([read, {**between, **read}] if between else [read])
            for seed in range(PERTURBATIONS)
        ]
        for name in doubtful:
            moved = _moved(right[name], [each[name] for each in noise])
            if moved is not None and _is_noise(tensors[name], right[name], suspects[name], moved, cones[name].ops):
                del suspects[name]
    faults = [_fault(name, cones[name].ops, wrong, tensors[name], right[name]) for name, wrong in suspects.items()]
    return Outcome(len(names), faults)


def _computing(ops: Sequence[str]) -> list[str]:
    return [op for op in ops if op not in op_classes.MOVES]


def _may_be_noise(ops: Sequence[str], formulas: bool) -> bool:
    """Returns true unless the tensor is the result of a single elementwise op, which has no sum to rearrange and no
    intermediate result to round."""
    single = _computing(ops)
    return len(single) > 1 or not op_classes.are_elementwise(single) or (formulas and single[0] in op_classes.RECOVERED)


def _wrong(got: np.ndarray, right: np.ndarray, ops: Sequence[str], formulas: bool) -> np.ndarray | None:
    """Returns which elements differ by more than the ops allow; None if the two cannot be compared."""
    if got.shape != right.shape or got.dtype.kind not in "iufb":
        return None
    if right.dtype.kind != "f":
        return _wrong_integers(got, right, ops)
    computing = _computing(ops)
    relative, absolute = _allowed(computing, right, formulas)
    # Beyond the largest number, the last step may differ.
    limit = float(np.finfo(right.dtype).max)
    a, b = (np.clip(array.astype(np.float64), -limit, limit) for array in (got, right))
    with np.errstate(invalid="ignore"):
        close = (np.abs(a - b) <= relative * np.abs(b) + absolute) | (np.isnan(a) & np.isnan(b))
    if not op_classes.are_elementwise(computing) or (formulas and set(computing) & op_classes.RECOVERED):
        close |= ~np.isfinite(got) | ~np.isfinite(right)  # another order of a sum
    return ~close


def _wrong_integers(got: np.ndarray, right: np.ndarray, ops: Sequence[str]) -> np.ndarray | None:
    if "quantize" in ops and one_step(got, right):
        return None
    different = got != right
    if "cast" in ops and right.dtype.kind in "iu":
        info = np.iinfo(right.dtype)  # numbers beyond the type do not have a defined result
        ends = [info.min, info.max, 0]
        different &= ~(np.isin(got, ends) | np.isin(right, ends))
    return different


def _allowed(ops: Sequence[str], right: np.ndarray, formulas: bool) -> tuple[float, float]:
    """Returns the relative and the absolute error that the ops may have."""
    if not ops:
        return 0, 0
    if len(ops) == 1 and ops[0] in op_classes.ROUNDED:
        return 4 * _ULP, SMALLEST
    finite = np.abs(right[np.isfinite(right)])
    largest = float(finite.max(initial=0.0))
    if op_classes.are_elementwise(ops):
        floor = 2 * _ULP * max(1.0, largest) if formulas and set(ops) & op_classes.RECOVERED else 2 * _ULP
        return 1e-5, floor
    return 1e-5, 2e-5 * largest + 2 * _ULP


def _moved(right: np.ndarray, perturbed: Sequence[np.ndarray]) -> np.ndarray | None:
    """Returns the largest movement of each element; NaN if the element is or became NaN."""
    if any(each.shape != right.shape for each in perturbed):
        return None
    with np.errstate(invalid="ignore", over="ignore"):
        return np.maximum.reduce([np.abs(each.astype(np.float64) - right) for each in perturbed])


def _is_noise(got: np.ndarray, right: np.ndarray, wrong: np.ndarray, moved: np.ndarray, ops: Sequence[str]) -> bool:
    with np.errstate(invalid="ignore", over="ignore"):
        error = np.abs(got.astype(np.float64) - right)
        beyond = wrong & ~(error <= _NOISE * moved) & ~np.isnan(moved)
    # An element midway between two steps may stay on one side in all runs.
    chance = max(_CHANCE, float(np.mean(moved > 0)) / 2) if op_classes.ROUNDING.intersection(ops) else _CHANCE
    return int(beyond.sum()) <= max(2, chance * right.size)


def _fault(name: str, ops: Sequence[str], wrong: np.ndarray, got: np.ndarray, right: np.ndarray) -> Fault:
    place = tuple(int(i) for i in np.argwhere(wrong)[0])
    return Fault(name, tuple(ops), int(wrong.sum()), right.size, place, float(got[place]), float(right[place]))
