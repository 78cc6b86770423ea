# SPDX-License-Identifier: Apache-2.0
"""Repairs the output error of int8 above the allowed error, by gain per cost: 16 bits for a tensor, f32 if 16 bits are
not enough, or a residual weight expansion, i.e. a second integer contraction for the rounding error of an op's weights.

The effect of 8 bits per tensor on the outputs was measured before, the effect of each op's rounded weights is measured
here, and squared errors add up. Remedies with the best gain per cost are taken until the expected error is small
enough; then the quantised model is run to check. Weights learned from samples also compensate for rounded inputs,
which expanded weights do not; the quantised model therefore decides whether 16 bits alone are better or suffice.
"""
from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Collection, Mapping, Sequence

import numpy as np

from ..output_error import relative
from .dataset import Dataset, readable, spread
from .observed import Observed
from .contractions import Contraction
from .speed import Forms, Speed
from .table import Entry, Table
from .trial import Tried, Trial, Way
from .worker import Candidate, Segment, opened

EXTRA = 0.05
"""Share of the multiplications and of the weights (which grow with them) that repairs may add. Larger costs are
accepted only if the user sets an error, or if the samples do not contain what the model looks for."""
CARRIES = 0.5
"""A remedy that removes this share of the squared error is worth any cost."""
ROUNDS = 3
ELEMENT = 32
"""Storing an element in 16 bits costs about as much as this many multiplications (StorageTypes.cpp of quant)."""
FLOAT = 3
"""A multiplication in f32 costs this many int8 multiplications beyond the one it replaces; an element or weight costs
this many more bytes."""
STUBBORN = 0.1
"""A tensor that leaves more than this share of the allowed squared error with 16 bits alone needs f32: its values span
more than integers can hold, e.g. powers that a logarithm reads."""
NO_GAIN = 0.95
"""Share of f32's time at which the repaired products save less than the casts between them cost."""
UNSEEN = 1 / 15
"""Share of the allowed error that the samples may show if they do not contain what the model looks for: inputs that do
contain it cost several times as much (quant/RATIONALE.md)."""
LOOKED_AT = 2
"""Number of samples on which the rounded weights of each op and the 16 bits of each tensor are measured."""


@dataclass(frozen=True)
class Repaired:
    """Result of repair(). table: with int16, float32 and expanded weights where they pay. before, after: output
    errors. floor: the error before with all tensors in 16 bits. tensors: those that got 16 bits. floats: those that
    stay f32. split: results of ops with expanded weights. time_before, time: of the multiplications on `chip`,
    relative to f32. added: what each kind of repair adds to it."""

    table: Table
    before: float
    after: float
    floor: float
    tensors: tuple[str, ...] = ()
    split: tuple[str, ...] = ()
    floats: tuple[str, ...] = ()
    time_before: float = 0.0
    time: float = 0.0
    added: Mapping[str, float] = field(default_factory=dict)
    chip: str = ""


def allowed(table: Table, max_error: float, at_any_price: bool) -> float:
    """Returns the output error above which the model of `table` is repaired."""
    return max_error * UNSEEN if table.same_answers and not at_any_price else max_error


def repair(
    trial: Trial,
    observed: Observed,
    dataset: Dataset,
    numbers: Collection[int],
    contractions: Sequence[Contraction],
    way: Way,
    max_error: float,
    at_any_price: bool = False,
    known: Tried | None = None,
    segments: Sequence[Segment] = (),
    speed: Speed | None = None,
) -> Repaired:
    """Returns the table of `way`, repaired if its model's output error exceeds what is allowed(), at a cost
    of EXTRA at most unless `at_any_price`.

    known: the result of running this model, if available. stretches: where errors are measured (gates.py). speed:
    returns tensors to f32 if their repaired readers are no faster than in f32.
    """
    trials = TableTrials(trial, observed, dataset, numbers, contractions, way, segments)
    max_error = allowed(way.table, max_error, at_any_price)
    now = known or trials.tried(way.table)
    if now.error <= max_error:
        return Repaired(way.table, now.error, now.error, 0.0)
    first, all_wide = now, trials.tried(way.table, "INT16")
    # Fixes the wide ops. Otherwise the compiler widens others, within its own budget, after every remedy.
    table, before, floor = way.table.decided(now.wide), now.error, all_wide.error
    stubborn, of_weights, costs = dict[str, float](), floor, Costs(observed, contractions)
    if floor > max_error:
        squares = trials.wide_squares(all_wide)
        stubborn = {name: square for name, square in squares.items() if square > STUBBORN * max_error**2}
        of_weights = math.sqrt(max(floor**2 - sum(stubborn.values()), 0.0))
    share = math.inf if at_any_price or table.same_answers else EXTRA
    budget = costs.budget(share, sum(dict(now.attention.values()).values()))
    splits = True  # an expansion that was no better stays no better with more 16-bit tensors
    for _ in range(ROUNDS):
        wide = _for_tensors(table, now, costs, now.error**2 - of_weights**2, stubborn)
        found = _better(trials, table, _worth(wide, now.error**2, max_error**2, budget), None)
        if splits and (not found or found[1].error > max_error):
            split = _second_contractions(table, trials.weight_squares, costs, of_weights**2)
            both = _better(trials, table, _worth(wide + split, now.error**2, max_error**2, budget), found)
            splits, found = both is not found, both
        if not found or found[1].error > now.error:
            break
        table, now, budget = found[0].apply(table), found[1], found[0].left
        if speed and (faster := speed.prefer_float(table, now)) is not table:
            table, now = faster, trials.tried(faster)
        if now.error <= max_error:
            break
        if any(e.dtype == "float32" or e.weight_terms == 2 for e in table.tensors):
            left = sum(square for name, square in stubborn.items() if name in now.narrow or name in now.wide)
            of_weights = math.sqrt(max(trials.tried(table, "INT16").error ** 2 - left, 0.0))
    if speed and speed.share_of_float(table, now) > NO_GAIN:
        widened = {entry.name for entry in table.tensors if entry.dtype == "int16"}
        table = table.in_float(widened | now.narrow.keys() | now.wide.keys())
        now = trials.tried(table)
    result = Repaired(table, before, now.error, floor, *_changes(way.table, table))
    return _timed(result, way.table, first, now, speed) if speed else result


def _changes(before: Table, after: Table) -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
    """Returns the tensors that got 16 bits, those with expanded weights, and those that stay f32."""
    pairs = list(zip(before.tensors, after.tensors))
    tensors = tuple(new.name for old, new in pairs if old.dtype != new.dtype == "int16")
    floats = tuple(new.name for old, new in pairs if old.dtype != new.dtype == "float32")
    return tensors, tuple(new.name for old, new in pairs if old.weight_terms != new.weight_terms), floats


def _timed(result: Repaired, table: Table, before: Tried, after: Tried, speed: Speed) -> Repaired:
    """Returns `result` with its times. table: the table before the repair. before, after: results of both models."""
    times = speed.share_of_float(table, before), speed.share_of_float(result.table, after)
    added = speed.added(Forms.of(table, before), Forms.of(result.table, after))
    return replace(result, time_before=times[0], time=times[1], added=added, chip=speed.chip)


@dataclass(frozen=True)
class TableTrials:
    """Runs the way's model with other tables; the fields are those of repair()."""

    trial: Trial
    observed: Observed
    dataset: Dataset
    numbers: Collection[int]
    products: Sequence[Contraction]
    way: Way
    segments: Sequence[Segment]

    def tried(self, table: Table, precision: str = "") -> Tried:
        trial = replace(self.trial, precision=precision or self.trial.precision)
        return trial.run(self.observed.job(), self.dataset, self.numbers, [replace(self.way, table=table)])[0]

    def wide_squares(self, all_wide: Tried) -> dict[str, float]:
        """Returns, by tensor, the square of the outputs' relative error with this tensor in 16 bits and all others in
        float. all_wide: the model with all tensors in 16 bits."""
        job, source_of = self.observed.job(), self.observed.source_of
        forms = {
            source_of[n]: Candidate(s, 0, -most, most) for n, (s, most) in all_wide.wide.items() if source_of.get(n)
        }
        worker, found = opened(job), dict[str, list[np.ndarray]]()
        question = [(source, [form]) for source, form in forms.items()]
        for number, arrays in readable(self.dataset, self._looked_at, job.specs):
            for source, (squares,) in worker.measure(arrays, question, self.segments, number).items():
                found.setdefault(source, []).append(squares)
        return {name: relative(found[source_of[name]]) for name in all_wide.wide if source_of.get(name) in found}

    @property
    def _looked_at(self) -> set[int]:
        ordered = sorted(self.numbers)
        return {ordered[i] for i in spread(len(ordered), LOOKED_AT)}

    @cached_property
    def weight_squares(self) -> dict[str, float]:
        """Squares of the outputs' relative errors with the weights of one contraction rounded and everything else in
        float, by the contraction's name."""
        job, source_of = self.observed.job(), self.observed.source_of
        worker, (rounded,) = opened(job), self.trial.open(job, [self.way])
        assert rounded.worker
        named = {p.name: source_of[p.name] for p in self.products if source_of.get(p.name) and source_of.get(p.input)}
        inputs = {named[p.name]: source_of[p.input] for p in self.products if p.name in named}
        found = dict[str, list[np.ndarray]]()
        for number, arrays in readable(self.dataset, self._looked_at, job.specs):
            for source, squares in worker.measure_steps(rounded.worker, arrays, inputs, self.segments, number).items():
                found.setdefault(source, []).append(squares)
        return {name: relative(found[source]) for name, source in named.items() if source in found}


@dataclass(frozen=True)
class Cost:
    """Additional cost of a remedy: multiplications, weights, and elements in 16 bits."""

    elements: float
    products: float = 0.0
    weights: float = 0.0

    def __add__(self, other: "Cost") -> "Cost":
        return Cost(self.elements + other.elements, self.products + other.products, self.weights + other.weights)

    def __sub__(self, other: "Cost") -> "Cost":
        return Cost(self.elements - other.elements, self.products - other.products, self.weights - other.weights)

    def __mul__(self, times: float) -> "Cost":
        return Cost(self.elements * times, self.products * times, self.weights * times)

    def within(self, budget: "Cost") -> bool:
        """Returns true if the multiplications and weights are within those of `budget`; zero always is."""
        return self.products <= max(budget.products, 0.0) and self.weights <= max(budget.weights, 0.0)

    @property
    def all(self) -> float:
        return self.products + ELEMENT * self.elements


class Costs:
    """Costs by tensor. wide: of 16 bits; f32 costs FLOAT times as much. split: of a second contraction for the op that
    computes the tensor; its result has to be stored in 16 bits and read again, which counts as multiplications."""

    def __init__(self, observed: Observed, contractions: Sequence[Contraction]) -> None:
        sizes = {name: float(np.prod(shape)) for name, shape in observed.shape_of.items()}
        self.wide = {name: Cost(size) for name, size in sizes.items()}
        self.split: dict[str, Cost] = {}
        self._all = Cost(0.0)
        for contraction in contractions:
            if contraction.name not in sizes:
                continue
            size = sizes[contraction.name]
            alone = Cost(0.0, size * contraction.depth, contraction.weight.size)
            self._all += alone
            self.split[contraction.name] = alone + Cost(0.0, 2 * ELEMENT * size)
            if contraction.input in sizes:
                self.wide[contraction.input] += alone

    def budget(self, share: float, of_attention: float) -> Cost:
        """Returns a share of all multiplications, including those `of_attention`, and weights, counting at least one of
        each so that free remedies fit."""
        contractions = self._all.products + of_attention
        return Cost(math.inf, share * max(contractions, 1.0), share * max(self._all.weights, 1.0))


@dataclass(frozen=True)
class Remedy:
    """A repair. dtype: int16 or float32 for the tensors `names`; if empty, a second contraction for the op that
    computes the tensor in `names`. square: the part of the outputs' squared relative error that it removes."""

    names: tuple[str, ...]
    square: float
    cost: Cost
    dtype: str = ""

    def apply(self, table: Table) -> Table:
        def better(entry: Entry) -> Entry:
            if entry.name not in self.names:
                return entry
            return replace(entry, dtype=self.dtype) if self.dtype else replace(entry, weight_terms=2)

        return replace(table, tensors=tuple(map(better, table.tensors)))


def _for_tensors(
    table: Table, now: Tried, costs: Costs, all_squares: float, stubborn: Mapping[str, float]
) -> list[Remedy]:
    """Returns remedies for tensors: 16 bits for 8-bit tensors, f32 for the `stubborn` ones, whose remaining squares
    with 16 bits are given.

    Tensors that share a quantisation, e.g. through concat and data movement, form one remedy; they are recognised by
    equal scale and zero point. Accidental equality only makes the remedy look more expensive. The operands of one
    attention form one remedy, too: they have no 16-bit form, so the attention is computed in f32. all_squares: the
    effect of all of them together; their errors add up to it only roughly, so their shares are used.
    """
    errors = {entry.name: (entry.error or 0.0) ** 2 for entry in table.tensors}
    wide = {name: form for name, form in now.wide.items() if name in stubborn}
    groups: dict[tuple[bool, float, int], list[str]] = {}
    for forms in (now.narrow, wide):
        for name, form in forms.items():
            if name in costs.wide:
                groups.setdefault((forms is wide, *form), []).append(name)
    squares = [
        max((stubborn if is_wide else errors).get(name, 0.0) for name in some) for (is_wide, *_), some in groups.items()
    ]
    share = max(all_squares, 0.0) / (sum(squares) or 1.0)
    found, of_attention = list[Remedy](), dict[str, Remedy]()
    for some, square in zip(groups.values(), squares):
        cost, readers = sum((costs.wide[name] for name in some), Cost(0.0)), now.attention.keys() & set(some)
        if not readers:
            needs_float = any(name in stubborn for name in some)
            dtype = "float32" if needs_float else "int16"
            found.append(Remedy(tuple(some), square * share, cost * FLOAT if needs_float else cost, dtype))
            continue
        reader, count = now.attention[min(readers)]
        before = of_attention.get(reader, Remedy((), 0.0, Cost(0.0, FLOAT * count)))
        of_attention[reader] = Remedy(
            before.names + tuple(some), before.square + square * share, before.cost + cost * FLOAT, "float32"
        )
    return [*found, *of_attention.values()]


def _second_contractions(table: Table, squares: Mapping[str, float], costs: Costs, all_squares: float) -> list[Remedy]:
    """Returns remedies for the ops without expanded weights. squares: the effect of their weights, by result;
    all_squares: together."""
    left = [e.name for e in table.tensors if e.weight_terms != 2 and squares.get(e.name) and e.name in costs.split]
    share = all_squares / (sum(squares[name] for name in left) or 1.0)
    return [Remedy((name,), squares[name] * share, costs.split[name]) for name in left]


@dataclass(frozen=True)
class Chosen:
    """Selected remedies. left: the remaining budget."""

    remedies: tuple[Remedy, ...]
    left: Cost

    def apply(self, table: Table) -> Table:
        for remedy in self.remedies:
            table = remedy.apply(table)
        return table


def _better(trials: TableTrials, table: Table, chosen: Chosen, than: "Step | None") -> "Step | None":
    """Applies `chosen` to the table; returns the step if its error is lower than that of `than`, else `than`."""
    if not chosen.remedies or (than and chosen == than[0]):
        return than
    found = trials.tried(chosen.apply(table))
    return than if than and than[1].error <= found.error else (chosen, found)


Step = tuple[Chosen, Tried]


def _worth(remedies: Sequence[Remedy], left: float, wanted: float, budget: Cost) -> Chosen:
    """Picks remedies that bring the squared error `left` down to at most `wanted`. They cost at most `budget`, except
    those that remove a share of CARRIES."""
    chosen, all_squares = list[Remedy](), left
    for remedy in sorted((r for r in remedies if r.square > 0), key=lambda r: -r.square / max(r.cost.all, 1.0)):
        if left <= wanted:
            break
        overdrawn = not Cost(0.0).within(budget)  # else some remaining remedy always removes half of the rest
        if not remedy.cost.within(budget) and (overdrawn or remedy.square / all_squares < CARRIES):
            continue
        chosen.append(remedy)
        left -= remedy.square
        budget = budget - remedy.cost
    return Chosen(tuple(chosen), budget)


def describe_repair(found: Repaired, error_name: str) -> str:
    """Describes the repairs to the user; "" if there are none."""
    if not (found.tensors or found.floats or found.split) or math.isclose(found.before, found.after):
        return ""
    done = [f"{len(found.tensors)} tensors in 16 bits"] if found.tensors else []
    done += [f"{len(found.floats)} tensors in f32"] if found.floats else []
    done += [f"{len(found.split)} ops with residual weights"] if found.split else []
    text = f"{', '.join(done)}: {error_name} {found.before:.2%} without, {found.after:.2%} with"
    if found.chip:
        text += f"; multiplications take {found.time_before:.0%} of f32's time without, {found.time:.0%} with"
    if found.added:
        text += f" ({', '.join(f'{kind} {share:+.0%}' for kind, share in found.added.items())})"
    return text
