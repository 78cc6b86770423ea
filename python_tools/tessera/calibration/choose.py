# SPDX-License-Identifier: Apache-2.0
"""From histograms to the table's ranges: one method for all tensors, or `auto`, per tensor the best by measurement."""
from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Callable, Iterator, Sequence

import numpy as np

from .dataset import Dataset, Sample, spread
from .distribution import Distribution
from .engine import Engine
from .thresholds import METHODS, Range, asymmetric_pays, asymmetric_quant, find_range, symmetric_quant
from .worker import Candidate

# In order of preference where two give the same range.
AUTO_METHODS = ("mse", "kl", "percentile9999", "aciq", "max")
assert set(AUTO_METHODS) == set(METHODS)
SAME_SCALE = 0.04
"""Candidates whose scales differ by less than this share are one."""


@dataclass(frozen=True)
class Choice:
    """The range of one source. error: relative error of the outputs with it, where it was measured, else None."""

    method: str
    symmetric_range: Range
    asymmetric_range: Range
    symmetric: bool
    error: float | None = None

    def candidate(self) -> Candidate:
        if self.symmetric:
            return Candidate(*symmetric_quant(self.symmetric_range.threshold), lowest=-127)
        return Candidate(*asymmetric_quant(self.asymmetric_range.low, self.asymmetric_range.high), lowest=-128)


def choice_by(method: str, values: Distribution, scheme: str, percentile: float) -> Choice:
    """scheme: symmetric, asymmetric, or best, which takes the asymmetric range where it pays."""
    both = [find_range(method, values, symmetric, percentile) for symmetric in (True, False)]
    symmetric = scheme == "symmetric" or (scheme == "best" and not asymmetric_pays(*both))
    return Choice(method, both[0], both[1], symmetric)


def candidates_for(values: Distribution, scheme: str, percentile: float) -> list[Choice]:
    """The different choices the methods come to; one where they hardly differ."""
    kept: list[Choice] = []
    for method in AUTO_METHODS:
        choice = choice_by(method, values, scheme, percentile)
        if not any(_alike(choice, other) for other in kept):
            kept.append(choice)
    return kept


def _alike(a: Choice, b: Choice) -> bool:
    x, y = a.candidate(), b.candidate()
    return a.symmetric == b.symmetric and abs(math.log(x.scale / y.scale)) < SAME_SCALE and abs(x.zero_point - y.zero_point) <= 2


def measure(engine: Engine, dataset: Dataset, numbers: Sequence[int], count: int,
            options: dict[str, list[Choice]], progress: Callable[[int, int], None]) -> dict[str, Choice]:
    """Of each source's options the one with the least output error, measured on `count` of the samples `numbers`.

    The error of an option is the mean over these samples, added in their order, so that it does not depend on who
    measured which.
    """
    open_sources = [source for source, choices in options.items() if len(choices) > 1]
    candidates = [(source, [choice.candidate() for choice in options[source]]) for source in open_sources]
    chosen = {source: choices[0] for source, choices in options.items()}
    if not open_sources:
        return chosen
    ordered = sorted(numbers)
    wanted = {ordered[i] for i in spread(len(ordered), count)}
    errors: dict[int, list[float]] = {}
    for result in engine.run(_one_by_one(dataset, wanted), candidates):
        errors.update(result.errors)
        progress(len(errors), len(wanted))
    means = np.mean([errors[number] for number in sorted(errors)], axis=0)
    begin = 0
    for source in open_sources:
        choices = options[source]
        part = means[begin:begin + len(choices)]
        best = int(np.argmin(part))
        found = choices[best]
        chosen[source] = Choice(found.method, found.symmetric_range, found.asymmetric_range, found.symmetric,
                                math.sqrt(float(part[best])))
        begin += len(choices)
    return chosen


def _one_by_one(dataset: Dataset, wanted: set[int]) -> Iterator[list[Sample]]:
    return ([sample] for sample in dataset.samples() if sample.number in wanted)
