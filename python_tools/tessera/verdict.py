# SPDX-License-Identifier: Apache-2.0
"""Judges a check's comparison: which tensors outside the tolerance are not a fault. The definition is documented in
docs/numerics.md."""
from __future__ import annotations

from collections import ChainMap
from dataclasses import dataclass
from typing import Callable, Collection, Iterator, Mapping, Sequence

import numpy as np

from . import tolerances
from .onnx_facts import Freedom
from .compare import Comparison, Row, Tolerance, compare_tensor, describe

Tensors = Mapping[str, np.ndarray]
Moved = Mapping[str, "tuple[np.ndarray, np.ndarray]"]
"""Tensors by name, before and after the inputs were rounded differently."""

PERTURBATION = 2.0**-23
"""Relative distance by which operands are moved: a unit in the last place."""
PERTURBATIONS = 3
TIMES_NOISE = 4.0
"""An element's error up to this multiple of the largest effect of the perturbations is rounding ..."""
UNCOVERED = 0.5
"""... and errors beyond that are chance, up to this share of the largest effects, as norms."""
SAME = 1e-4
"""A number beside a mask that flips equals that of another run if it differs by at most this share."""
FEW = 0.01
"""Share of a tensor's elements that may be off by one quantisation step; two elements are always allowed."""


class Perturbed(Mapping[str, np.ndarray]):
    """Tensors with every float moved up or down by PERTURBATION of itself; computed on access, with the same result
    each time."""

    def __init__(self, tensors: Tensors, seed: int = 0) -> None:
        self._tensors = tensors
        self._seeds = {name: (seed, place) for place, name in enumerate(tensors)}

    def __getitem__(self, name: str) -> np.ndarray:
        array = self._tensors[name]
        if array.dtype.kind != "f":
            return array
        unit = np.float32(max(PERTURBATION, float(np.finfo(array.dtype).eps)))
        signs = np.random.default_rng(self._seeds[name]).integers(0, 2, array.shape, np.int8) * np.int8(2) - np.int8(1)
        with np.errstate(over="ignore", invalid="ignore"):
            return np.where(np.isfinite(array), array * (1 + unit * signs), array).astype(array.dtype)

    def __iter__(self) -> Iterator[str]:
        return iter(self._tensors)

    def __len__(self) -> int:
        return len(self._tensors)


def floats_between(tensors: Tensors, evaluated: Tensors) -> dict[str, np.ndarray]:
    """Returns the float tensors of the evaluator that the engine does not show."""
    return {name: evaluated[name] for name in evaluated if name not in tensors and evaluated[name].dtype.kind == "f"}


@dataclass(frozen=True)
class Judge:
    """Data for the second look at a comparison.

    evaluate: computes the named tensors (or all) from the given tensors as operands of their ops. outputs: the
    network's. quantises: the network rounds to integers. freedom: what the network leaves open. rerun: returns outputs
    of one engine, and the same with inputs moved by a unit in the last place; called only if an output is outside.
    """

    evaluate: Callable[[Tensors, Collection[str]], Tensors]
    outputs: Collection[str]
    quantises: bool
    freedom: Freedom = Freedom()
    rerun: Callable[[], Sequence[Moved]] = tuple

    def excuse(self, comparison: Comparison, engines: Sequence[Tensors]) -> str:
        """Sets `excuse` of the rows outside the tolerance if no op is at fault; returns the fault, "" if there is none.
        engines: tensors of each engine that was compared with the evaluator or with another engine.

        Nothing is excused unless every single op of every engine is correct: within the tolerance, or off by no more
        than rounding explains. Then differences are inherited rounding. Inner tensors are excused, and outputs that
        rounding moves as far: within the tolerance of INT8 for a network that rounds to integers, and outputs that
        `rerun` moves as far.
        """
        for row in comparison.failed:
            if row.shape_differs:
                return describe(row)
        reordered = False
        for tensors in engines:
            alone = self.evaluate(tensors, ())
            suspects = []
            # The worst first, then tensors of the engine that were not compared.
            names = dict.fromkeys([row.name for row in comparison.rows] + list(alone))
            for name in names:
                if name not in tensors or name not in alone or name in comparison.excepted:
                    continue
                got, right, other = self._in_order(name, tensors[name], alone[name])
                reordered |= other
                coarse = name in self.freedom.coarse
                limit = tolerances.DEFAULT["DYNAMIC_INT8"] if coarse else comparison.tolerance
                if not _is_right(name, got, right, limit):
                    suspects.append(name)
            if wrong := self._wrong_by_itself(suspects, tensors, alone, comparison.tolerance):
                return wrong
        unseen = [row for row in comparison.failed if all(row.name not in tensors for tensors in engines)]
        if unseen:
            return f"'{unseen[0].name}' cannot be evaluated separately"
        self._excuse_inherited(comparison, "an order that the model leaves open" if reordered else "")
        return f"output '{comparison.failed[0].name}' is outside" if comparison.failed else ""

    def _in_order(self, name: str, got: np.ndarray, right: np.ndarray) -> tuple[np.ndarray, np.ndarray, bool]:
        """Returns both tensors in a comparable order, and whether it was changed."""
        axis = self.freedom.unordered.get(name)
        if axis is None or np.array_equal(got, right, equal_nan=got.dtype.kind == "f"):
            return got, right, False
        return np.sort(got, axis), np.sort(right, axis), True

    def _wrong_by_itself(self, names: Sequence[str], tensors: Tensors, alone: Tensors, tolerance: Tolerance) -> str:
        """Describes the first of the tensors whose error rounding does not explain; "" if there is none.

        Operands are moved first, then the floats between as well, which the engine does not show: operands may be
        integers.
        """
        between = floats_between(tensors, alone)
        noise: list[Tensors] = []
        for operands in (tensors, ChainMap(tensors, between)):  # type: ignore[arg-type]
            if names:
                noise += [self.evaluate(Perturbed(operands, seed), names) for seed in range(PERTURBATIONS)]
            names = [name for name in names if not self._is_noise(name, tensors, alone, noise)]
        if not names:
            return ""
        got, right, _ = self._in_order(names[0], tensors[names[0]], alone[names[0]])
        row = compare_tensor(names[0], got, right, tolerance)
        return f"'{names[0]}' is wrong, computed from its actual operands: {describe(row)}"

    def _is_noise(self, name: str, tensors: Tensors, alone: Tensors, noise: Sequence[Tensors]) -> bool:
        got, right, _ = self._in_order(name, tensors[name], alone[name])
        return got.shape == right.shape and _below_noise(got, right, [each[name] for each in noise if name in each])

    def _excuse_inherited(self, comparison: Comparison, reason: str) -> None:
        loose = tolerances.DEFAULT["INT8"]
        reruns: Sequence[Moved] | None = None
        for row in comparison.failed:
            is_output = row.name in self.outputs
            if not is_output or reason or (self.quantises and not row.non_finite_differs and _within(row, loose)):
                row.excuse = reason or "inherited rounding"
                continue
            reruns = self.rerun() if reruns is None else reruns
            if any(_moves_as_far(row, each[row.name]) for each in reruns if row.name in each):
                row.excuse = "ill-conditioned: rounding of the inputs moves it as far"


def _moves_as_far(row: Row, moved: tuple[np.ndarray, np.ndarray]) -> bool:
    """Returns true if rounding alone moves the tensor by at least a quarter of the error of `row`. moved: the
    reference's tensor, and the same after the inputs were rounded differently."""
    before, after = moved
    other = compare_tensor(row.name, after, before, Tolerance(None, None))
    if row.non_finite_differs:
        return TIMES_NOISE * other.non_finite_differs >= row.non_finite_differs
    return TIMES_NOISE * other.rel_l2 >= row.rel_l2


def _within(row: Row, tolerance: Tolerance) -> bool:
    return row.cosine >= (tolerance.cosine or -1) and row.euclid >= (tolerance.euclid or -1)


def _is_right(name: str, got: np.ndarray, right: np.ndarray, tolerance: Tolerance) -> bool:
    """Returns true if the tensor is within the tolerance, or a few of its elements are one step off."""
    return compare_tensor(name, got, right, tolerance).passed or (got.shape == right.shape and one_step(got, right))


def one_step(got: np.ndarray, right: np.ndarray) -> bool:
    """Returns true if a few elements differ by one quantisation step: by 1 for integers; for floats by one constant
    difference of which both sides are multiples."""
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
    """Returns true if the error is explained, element by element, by slightly different rounding of the operands."""
    if got.dtype.kind not in "iuf" or any(each.shape != right.shape for each in perturbed):
        return False
    finite = np.isfinite(right) & np.isfinite(got) & np.logical_and.reduce([np.isfinite(each) for each in perturbed])
    if not _flips_as_rounding_does(got[~finite], right[~finite], [each[~finite] for each in perturbed]):
        return False
    exact = right[finite].astype(np.float64)
    noise = np.maximum.reduce([np.abs(each[finite] - exact) for each in perturbed])
    times = TIMES_NOISE if got.dtype.kind == "f" else 1
    beyond = np.maximum(np.abs(got[finite] - exact) - times * noise, 0)
    return bool(np.linalg.norm(beyond) <= UNCOVERED * np.linalg.norm(noise))


def _flips_as_rounding_does(got: np.ndarray, right: np.ndarray, perturbed: Sequence[np.ndarray]) -> bool:
    """Returns true if elements are infinity, NaN or a number as in one of the other runs: where rounding decides which,
    either is right. As many may be as in none of them as chance makes of those that flip."""
    matching = np.logical_or.reduce([_alike(got, each) for each in (right, *perturbed)])
    flips = np.logical_or.reduce([np.isfinite(each) != np.isfinite(right) for each in perturbed])
    return np.count_nonzero(~matching) <= UNCOVERED**2 * np.count_nonzero(flips)


def _alike(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Compares element by element, up to rounding; NaN equals NaN."""
    with np.errstate(invalid="ignore"):
        close = np.isfinite(a) & np.isfinite(b) & (np.abs(a - b) <= SAME * np.abs(b))
    return close | (a == b) | ((a != a) & (b != b))
