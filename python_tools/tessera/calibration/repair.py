# SPDX-License-Identifier: Apache-2.0
"""16 bits for the tensors that carry the error, where int8 leaves more than is allowed.

What 8 bits of each tensor do to the outputs was measured, and their squares add up; what is left with all tensors in
16 bits is the weights' part, which 16 bits do not mend. So those that gain most for what they cost are taken until the
error expected is small enough, and the quantised model says whether it is.
"""
from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Collection, Mapping, Sequence

import numpy as np

from .dataset import Dataset
from .observed import Observed
from .products import Product
from .table import Table
from .trial import Tried, Trial, Way

EXTRA = 0.05
"""Share of the multiplications that may read 16 bits for it, and of the weights, which grow with them: more is bought
only where the samples do not show what the model looks for."""
CARRIES = 0.5
"""A tensor that takes away so much is worth whatever it costs."""
ROUNDS = 3
FLOOR = 1.15
"""The error of the weights alone cannot be undercut; so near to it is enough."""
ELEMENT = 32
"""Storing an element in 16 bits costs about as much as so many multiplications (quant/Transforms/Forms.cpp)."""


@dataclass(frozen=True)
class Repaired:
    """table: with int16 where it is worth it. before, after: output errors; floor: of the weights alone. tensors:
    that got 16 bits."""

    table: Table
    before: float
    after: float
    floor: float
    tensors: tuple[str, ...] = ()


def repair(
    trial: Trial,
    observed: Observed,
    dataset: Dataset,
    numbers: Collection[int],
    products: Sequence[Product],
    way: Way,
    max_error: float,
    known: Tried | None = None,
) -> Repaired:
    """The table of `way`, changed where its model's output error is above `max_error`. known: what the model does,
    where that was tried."""

    def tried(table: Table, precision: str = trial.precision) -> Tried:
        return replace(trial, precision=precision).run(observed.job(), dataset, numbers, [replace(way, table=table)])[0]

    now = known or tried(way.table)
    if now.error <= max_error:
        return Repaired(way.table, now.error, now.error, 0.0)
    before, floor = now.error, tried(way.table, "INT16").error
    goal = max(max_error, FLOOR * floor)
    table, costs = way.table, _costs(observed, products)
    share = math.inf if table.same_answers else EXTRA
    budget = Cost(math.inf, *(share * max(total, 1.0) for total in _totals(costs)))
    for _ in range(ROUNDS):
        if now.error <= goal:
            break
        chosen, budget = _worth(table, now, costs, floor, goal, budget)
        if not chosen:
            break
        wider = _with_int16(table, chosen)
        then = tried(wider)
        if then.error > now.error:
            break
        table, now = wider, then
    changed = tuple(new.name for old, new in zip(way.table.tensors, table.tensors) if old.dtype != new.dtype)
    return Repaired(table, before, now.error, floor, changed)


def _with_int16(table: Table, names: Collection[str]) -> Table:
    return replace(table, tensors=tuple(replace(e, dtype="int16") if e.name in names else e for e in table.tensors))


@dataclass
class Cost:
    """Of 16 bits for one tensor: multiplications and weights of what reads it, and elements."""

    elements: float
    products: float = 0.0
    weights: float = 0.0

    def __add__(self, other: "Cost") -> "Cost":
        return Cost(self.elements + other.elements, self.products + other.products, self.weights + other.weights)

    def __sub__(self, other: "Cost") -> "Cost":
        return Cost(self.elements - other.elements, self.products - other.products, self.weights - other.weights)

    def within(self, budget: "Cost") -> bool:
        return self.products <= budget.products and self.weights <= budget.weights

    @property
    def all(self) -> float:
        return self.products + ELEMENT * self.elements


def _costs(observed: Observed, products: Sequence[Product]) -> dict[str, Cost]:
    """By tensors."""
    shapes = observed.shape_of
    costs = {name: Cost(float(np.prod(shape))) for name, shape in shapes.items()}
    for product in products:
        if product.input in costs and product.name in shapes:
            costs[product.input].products += float(np.prod(shapes[product.name])) * product.depth
            costs[product.input].weights += product.weight.size
    return costs


def _totals(costs: Mapping[str, Cost]) -> tuple[float, float]:
    """Multiplications and weights."""
    return sum(cost.products for cost in costs.values()), sum(cost.weights for cost in costs.values())


def _groups(now: Tried, costs: Mapping[str, Cost]) -> list[tuple[list[str], Cost]]:
    """Tensors that become integers together, as concat and what moves values have them: their forms are equal. What
    happens to have the same makes a group look dearer than it is."""
    names: dict[tuple[float, int], list[str]] = {}
    for name, form in now.narrow.items():
        if name in costs:
            names.setdefault(form, []).append(name)
    return [(some, sum((costs[name] for name in some), Cost(0.0))) for some in names.values()]


def _worth(
    table: Table, now: Tried, costs: Mapping[str, Cost], floor: float, goal: float, budget: Cost
) -> tuple[set[str], Cost]:
    """Of the tensors in 8 bits those to widen, for at most `budget` but for what CARRIES; and what is left of it."""
    errors = {entry.name: entry.error or 0.0 for entry in table.tensors}
    groups = [(max(errors.get(n, 0.0) for n in some) ** 2, some, cost) for some, cost in _groups(now, costs)]
    total = sum(square for square, _, _ in groups)
    # Errors of several tensors add up to what is measured only roughly: their shares count.
    left, wanted = now.error**2 - floor**2, goal**2 - floor**2
    chosen: set[str] = set()
    for square, some, cost in sorted((g for g in groups if g[0]), key=lambda group: -group[0] / group[2].all):
        if left <= wanted:
            break
        overdrawn = not Cost(0.0).within(budget)  # of what is left once one was bought something always carries half
        if not cost.within(budget) and (overdrawn or square / total < CARRIES):
            continue
        chosen.update(name for name in some if name in errors)
        left -= square / total * (now.error**2 - floor**2)
        budget = budget - cost
    return chosen, budget


def told(found: Repaired) -> str:
    """Of what was done, for the user; "" where nothing was."""
    if not found.tensors or math.isclose(found.before, found.after):
        return ""
    return f"{len(found.tensors)} tensors in 16 bits: output error {found.before:.4f} without, {found.after:.4f} with"
