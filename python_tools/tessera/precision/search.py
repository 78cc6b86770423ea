# SPDX-License-Identifier: Apache-2.0
"""The search: which ops need more than 8 bits. It knows no model: a bench measures what it asks for.

1. Halving finds where the output error comes from: one stretch of the program is in int8, everything else on the
   ladder's last rung; the stretches that hurt most are halved until the error is accounted for. Measured so, errors
   of stretches add up.
2. Stretches are ordered by the error they cause for what it costs to be rid of it. Longer and longer beginnings of
   that list are scored, on the first rung on which the whole list meets the target: a score of few samples goes up
   and down, so that bisection alone would often end far above the shortest beginning that does.
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
"""Output errors measured at most, beyond the first ones."""
SMALL_SHARE = 0.02
"""Stretches of less than this share of the error are not halved."""
FOR_PRODUCTS = ("INT16",)
"""Types of convolutions and matmuls alone; what follows them is decided by the quantiser."""
MOST_TRIALS = 16
"""Scores taken at most to step down again."""


@dataclass(frozen=True)
class Measure:
    """error: mean squared error of the outputs relative to f32's. cost: estimated time of the whole model."""

    error: float
    cost: float


class Impossible(Exception):
    """The compiler refuses the types: not on this chip, or not for one of these ops."""


class Bench(Protocol):
    """Compiles and runs the model with `types` of ops by name; others are what the quantiser makes of them."""

    def measure(self, types: Types) -> Measure:
        ...

    def verdict(self, types: Types) -> Verdict:
        ...

    def cost(self, types: Types) -> float:
        ...


@dataclass(frozen=True)
class Stretch:
    """Ops that change together. error: of the outputs with it alone in int8; cost: of having it on the last rung
    instead."""

    units: tuple[tuple[Op, ...], ...]
    error: float = 0.0
    cost: float = 0.0

    def types(self, rung: str) -> dict[str, str]:
        return {op.name: rung for unit in self.units for op in unit if op.products or rung not in FOR_PRODUCTS}

    def halves(self) -> "tuple[Stretch, Stretch]":
        middle = len(self.units) // 2
        return Stretch(self.units[:middle]), Stretch(self.units[middle:])

    @property
    def worth(self) -> float:
        return self.error / max(self.cost, 1e-9)


@dataclass
class Found:
    """The outcome. chosen: (stretch, its rung). Where `verdict` is not met it is the best there was."""

    types: dict[str, str]
    verdict: Verdict
    base_verdict: Verdict
    chosen: list[tuple[Stretch, str]] = field(default_factory=list)


def units_of(ops: Sequence[Op]) -> list[tuple[Op, ...]]:
    """Integer ops in program order: each convolution or matmul with what follows it; what only moves values follows
    anyway."""
    units: list[list[Op]] = []
    for op in ops:
        if op.type.startswith("INT") and not op.moves:
            if op.products or not units:
                units.append([])
            units[-1].append(op)
    return [tuple(unit) for unit in units]


class Search:
    """One search. ladder: types above INT8, cheapest first. said: called with what is being done, and (done, of
    about)."""

    def __init__(self, bench: Bench, ladder: Sequence[str], said: Callable[[str, int, int], None]) -> None:
        self._bench, self._ladder, self._said = bench, list(ladder), said
        self._seen: list[tuple[Verdict, float, list[tuple[Stretch, str]]]] = []

    def run(self, units: Sequence[tuple[Op, ...]]) -> Found:
        verdict = self._verdict([])
        if verdict.met or not units:
            return Found({}, verdict, verdict)
        stretches = sorted(self._localise(units), key=lambda s: -s.worth)
        rung = next((rung for rung in self._ladder if self._meets([(s, rung) for s in stretches])), None)
        if rung is not None:
            self._step_down(self._shortest(stretches, rung))
        # All that were scored count: a cheaper one may have met the target by the way.
        met = [seen for seen in self._seen if seen[0].met]
        best = min(met, key=lambda seen: seen[1]) if met else min(self._seen, key=lambda seen: (seen[0].loss, seen[1]))
        return Found(_merge(best[2]), best[0], verdict, best[2])

    def _localise(self, units: Sequence[tuple[Op, ...]]) -> list[Stretch]:
        """The program in stretches, short where much of the error comes from."""
        whole = Stretch(tuple(units)).types(self._ladder[-1])
        best = self._bench.measure(whole)
        count = min(FIRST_STRETCHES, len(units))
        bounds = [len(units) * i // count for i in range(count + 1)]
        done, limit = 0, count + min(2 * (len(units) - count), MOST_STRETCHES)
        heap: list[tuple[float, int, Stretch]] = []

        def add(stretch: Stretch) -> None:
            nonlocal done
            own = stretch.types("INT8")
            measure = self._bench.measure({name: rung for name, rung in whole.items() if name not in own})
            done += 1
            self._said("sensitivity", done, limit)
            stretch = Stretch(stretch.units, max(measure.error - best.error, 0.0), best.cost - measure.cost)
            heapq.heappush(heap, (-stretch.error if len(stretch.units) > 1 else float("inf"), done, stretch))

        for begin, end in zip(bounds, bounds[1:]):
            add(Stretch(tuple(units[begin:end])))
        total = sum(stretch.error for _, _, stretch in heap)
        while heap and done + 2 <= limit and -heap[0][0] > SMALL_SHARE * total:
            for half in heapq.heappop(heap)[2].halves():
                add(half)
        return [stretch for _, _, stretch in heap]

    def _shortest(self, stretches: Sequence[Stretch], rung: str) -> list[tuple[Stretch, str]]:
        """The shortest beginning found that meets the target; the whole does."""
        low, high = 0, len(stretches)
        for length in _growing(high):
            self._said("score", length, high)
            if self._meets([(s, rung) for s in stretches[:length]]):
                high = length
                break
            low = length
        while high - low > 1:
            middle = (low + high) // 2
            if self._meets([(s, rung) for s in stretches[:middle]]):
                high = middle
            else:
                low = middle
        return [(s, rung) for s in stretches[:high]]

    def _step_down(self, chosen: list[tuple[Stretch, str]]) -> None:
        """Tries lower rungs, INT8 first, for one stretch after the other; halves those that hold several units."""
        queue = sorted(chosen, key=lambda entry: -entry[0].cost)
        trials = 0
        while queue and trials < MOST_TRIALS:
            stretch, rung = entry = queue.pop(0)
            others = [e for e in chosen if e is not entry]
            for lower in [None, *self._ladder[: self._ladder.index(rung)]]:
                trials += 1
                self._said("step down", trials, MOST_TRIALS)
                candidate = others + ([(stretch, lower)] if lower else [])
                if candidate and self._meets(candidate):
                    chosen = candidate
                    break
            else:
                if len(stretch.units) > 1:
                    halves = [(half, rung) for half in stretch.halves()]
                    chosen = others + halves
                    queue += halves

    def _meets(self, chosen: list[tuple[Stretch, str]]) -> bool:
        try:
            return self._verdict(chosen).met
        except Impossible:
            return False

    def _verdict(self, chosen: list[tuple[Stretch, str]]) -> Verdict:
        types = _merge(chosen)
        verdict = self._bench.verdict(types)
        self._seen.append((verdict, self._bench.cost(types), list(chosen)))
        return verdict


def _growing(end: int) -> list[int]:
    """1, 2, 3, 4, 6, 9, 13, 19, ... below `end`."""
    lengths, length = [], 1
    while length < end:
        lengths.append(length)
        length = max(length + 1, length * 3 // 2)
    return lengths


def _merge(chosen: Sequence[tuple[Stretch, str]]) -> dict[str, str]:
    return {name: type_ for stretch, rung in chosen for name, type_ in stretch.types(rung).items()}
