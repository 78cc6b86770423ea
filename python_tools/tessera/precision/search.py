# SPDX-License-Identifier: Apache-2.0
"""The search for ops that need more than 8 bits. It does not know the model; a bench measures for it.

1. Halving finds the origin of the output error: one stretch of the program is in int8, everything else on the
   ladder's last rung. The stretches with the largest errors are halved until the error is accounted for. Measured in
   this way, errors of stretches add up.
2. Stretches are ordered by the error they cause per cost of removing it. Increasing prefixes of that list are scored
   on the first rung on which the whole list meets the target. A score over few samples fluctuates, so bisection alone
   would often end far above the shortest prefix that meets the target.
3. Each chosen stretch is tried on lower rungs, the most expensive first, and kept there if the target is still met.
"""
from __future__ import annotations

import heapq
from dataclasses import dataclass, field
from typing import Callable, Mapping, Protocol, Sequence

from .cost import Op
from .target import Verdict

Types = Mapping[str, str]

FIRST_STRETCHES = 8
MOST_STRETCHES = 64
"""Largest number of output errors that are measured after those of the first stretches."""
SMALL_SHARE = 0.02
"""Stretches with less than this share of the error are not halved."""
FOR_PRODUCTS = ("INT16",)
"""Types only for convolutions and matmuls; the quantiser decides the following ops."""
MOST_TRIALS = 16
"""Largest number of scores that are measured while stretches are moved to lower rungs."""


@dataclass(frozen=True)
class Measure:
    """A measurement. error: mean squared error of the outputs relative to f32's. cost: estimated time of the whole
    model."""

    error: float
    cost: float


class Impossible(Exception):
    """The compiler rejects the types, for this chip or for one of these ops."""


class Evaluator(Protocol):
    """Compiles and runs the model with `types` of ops by name; the quantiser decides the other ops."""

    def measure(self, types: Types) -> Measure:
        ...

    def verdict(self, types: Types) -> Verdict:
        ...

    def cost(self, types: Types) -> float:
        ...


@dataclass(frozen=True)
class Segment:
    """Ops that change together. error: of the outputs with only this stretch in int8. cost: of running it on the last
    rung instead."""

    units: tuple[tuple[Op, ...], ...]
    error: float = 0.0
    cost: float = 0.0

    def types(self, rung: str) -> dict[str, str]:
        return {op.name: rung for unit in self.units for op in unit if op.products or rung not in FOR_PRODUCTS}

    def halves(self) -> "tuple[Segment, Segment]":
        middle = len(self.units) // 2
        return Segment(self.units[:middle]), Segment(self.units[middle:])

    @property
    def worth(self) -> float:
        return self.error / max(self.cost, 1e-9)


@dataclass
class Found:
    """The result. chosen: (stretch, its rung). If `verdict` is not met, it is the best one found."""

    types: dict[str, str]
    verdict: Verdict
    base_verdict: Verdict
    chosen: list[tuple[Segment, str]] = field(default_factory=list)


def units_of(ops: Sequence[Op]) -> list[tuple[Op, ...]]:
    """Groups integer ops in program order: each convolution or matmul with the ops that follow it. Ops that only move
    values follow anyway."""
    units: list[list[Op]] = []
    for op in ops:
        if op.type.startswith("INT") and not op.moves:
            if op.products or not units:
                units.append([])
            units[-1].append(op)
    return [tuple(unit) for unit in units]


class Search:
    """One search. ladder: types above INT8, the cheapest first. said: called with the current activity, done, and the
    expected total."""

    def __init__(self, evaluator: Evaluator, ladder: Sequence[str], said: Callable[[str, int, int], None]) -> None:
        self._evaluator, self._ladder, self._said = evaluator, list(ladder), said
        self._seen: list[tuple[Verdict, float, list[tuple[Segment, str]]]] = []

    def run(self, units: Sequence[tuple[Op, ...]]) -> Found:
        verdict = self._verdict([])
        if verdict.met or not units:
            return Found({}, verdict, verdict)
        segments = sorted(self._localise(units), key=lambda s: -s.worth)
        rung = next((rung for rung in self._ladder if self._meets([(s, rung) for s in segments])), None)
        if rung is not None:
            self._step_down(self._shortest(segments, rung))
        # All scored candidates count: a cheaper one may have met the target on the way.
        met = [seen for seen in self._seen if seen[0].met]
        best = min(met, key=lambda seen: seen[1]) if met else min(self._seen, key=lambda seen: (seen[0].loss, seen[1]))
        return Found(_merge(best[2]), best[0], verdict, best[2])

    def _localise(self, units: Sequence[tuple[Op, ...]]) -> list[Segment]:
        """Splits the program into stretches, which are short where much of the error originates."""
        whole = Segment(tuple(units)).types(self._ladder[-1])
        best = self._evaluator.measure(whole)
        count = min(FIRST_STRETCHES, len(units))
        bounds = [len(units) * i // count for i in range(count + 1)]
        done, limit = 0, count + min(2 * (len(units) - count), MOST_STRETCHES)
        heap: list[tuple[float, int, Segment]] = []

        def add(segment: Segment) -> None:
            nonlocal done
            own = segment.types("INT8")
            measure = self._evaluator.measure({name: rung for name, rung in whole.items() if name not in own})
            done += 1
            self._said("sensitivity", done, limit)
            segment = Segment(segment.units, max(measure.error - best.error, 0.0), best.cost - measure.cost)
            heapq.heappush(heap, (-segment.error if len(segment.units) > 1 else float("inf"), done, segment))

        for begin, end in zip(bounds, bounds[1:]):
            add(Segment(tuple(units[begin:end])))
        total = sum(segment.error for _, _, segment in heap)
        while heap and done + 2 <= limit and -heap[0][0] > SMALL_SHARE * total:
            for half in heapq.heappop(heap)[2].halves():
                add(half)
        return [segment for _, _, segment in heap]

    def _shortest(self, segments: Sequence[Segment], rung: str) -> list[tuple[Segment, str]]:
        """Returns the shortest prefix found that meets the target; the whole list does."""
        low, high = 0, len(segments)
        for length in _growing(high):
            self._said("score", length, high)
            if self._meets([(s, rung) for s in segments[:length]]):
                high = length
                break
            low = length
        while high - low > 1:
            middle = (low + high) // 2
            if self._meets([(s, rung) for s in segments[:middle]]):
                high = middle
            else:
                low = middle
        return [(s, rung) for s in segments[:high]]

    def _step_down(self, chosen: list[tuple[Segment, str]]) -> None:
        """Tries lower rungs, INT8 first, for one stretch after the other; halves stretches of several units that cannot
        step down."""
        queue = sorted(chosen, key=lambda entry: -entry[0].cost)
        trials = 0
        while queue and trials < MOST_TRIALS:
            segment, rung = entry = queue.pop(0)
            others = [e for e in chosen if e is not entry]
            for lower in [None, *self._ladder[: self._ladder.index(rung)]]:
                trials += 1
                self._said("step down", trials, MOST_TRIALS)
                candidate = others + ([(segment, lower)] if lower else [])
                if candidate and self._meets(candidate):
                    chosen = candidate
                    break
            else:
                if len(segment.units) > 1:
                    halves = [(half, rung) for half in segment.halves()]
                    chosen = others + halves
                    queue += halves

    def _meets(self, chosen: list[tuple[Segment, str]]) -> bool:
        try:
            return self._verdict(chosen).met
        except Impossible:
            return False

    def _verdict(self, chosen: list[tuple[Segment, str]]) -> Verdict:
        types = _merge(chosen)
        verdict = self._evaluator.verdict(types)
        self._seen.append((verdict, self._evaluator.cost(types), list(chosen)))
        return verdict


def _growing(end: int) -> list[int]:
    """Returns 1, 2, 3, 4, 6, 9, 13, 19, ... below `end`."""
    lengths, length = [], 1
    while length < end:
        lengths.append(length)
        length = max(length + 1, length * 3 // 2)
    return lengths


def _merge(chosen: Sequence[tuple[Segment, str]]) -> dict[str, str]:
    return {name: type_ for segment, rung in chosen for name, type_ in segment.types(rung).items()}
