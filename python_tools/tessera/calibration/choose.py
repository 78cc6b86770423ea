# SPDX-License-Identifier: Apache-2.0
"""From histograms to the table's ranges: one method for all tensors, or `auto`, per tensor the best by measurement."""
from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Callable, Iterator, Mapping, Sequence

import numpy as np

from tessera import _calibration

from .dataset import Dataset, Sample, spread
from .distribution import Distribution
from .engine import Engine
from .output_error import relative
from .thresholds import METHODS, Range, asymmetric_pays, asymmetric_quant, find_range, symmetric_quant
from .worker import Candidate

# In order of preference where two give the same range.
AUTO_METHODS = ("mse", "kl", "percentile9999", "aciq", "max")
assert set(AUTO_METHODS) == set(METHODS)
SAME_SCALE = 0.04
"""Candidates whose scales differ by less than this share are one."""
SCREENED, FINALISTS = 2, 2
"""Samples on which all options are measured; options that are measured on the others too."""
CLEARLY = 1.1
"""A narrower range, which clips what the samples hardly show, has to be better than a wider one by this factor."""


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


def candidates_for(histogram: "_calibration.Histogram", method: str, scheme: str, percentile: float) -> list[Choice]:
    """What the method comes to; for auto the different choices of all methods, one where they hardly differ."""
    # Here and not before: all of them together would take more memory than the histograms.
    values = Distribution.from_histogram(histogram)
    kept: list[Choice] = []
    for method in AUTO_METHODS if method == "auto" else (method,):
        choice = choice_by(method, values, scheme, percentile)
        if not any(_alike(choice, other) for other in kept):
            kept.append(choice)
    return kept


def _alike(a: Choice, b: Choice) -> bool:
    x, y = a.candidate(), b.candidate()
    return (
        a.symmetric == b.symmetric
        and abs(math.log(x.scale / y.scale)) < SAME_SCALE
        and abs(x.zero_point - y.zero_point) <= 2
    )


def measure(
    engine: Engine,
    dataset: Dataset,
    numbers: Sequence[int],
    count: int,
    options: dict[str, list[Choice]],
    progress: Callable[[int, int], None],
) -> dict[str, Choice]:
    """Of each source's options the one with the least output error, measured on `count` of the samples `numbers`: all
    options on SCREENED of them, the FINALISTS best ones on all; sources without a choice on SCREENED.

    The error of an option is that of these samples together, added in their order, so that it does not depend on who
    measured which.
    """
    ordered = sorted(numbers)
    wanted = [ordered[i] for i in spread(len(ordered), count)]
    screened = {wanted[i] for i in spread(len(wanted), SCREENED)}
    first = _errors(engine, dataset, screened, options, lambda done: progress(done, len(wanted)))
    chosen = {source: replace(choices[0], error=_error(first[source][0])) for source, choices in options.items()}
    left = {source: choices for source, choices in options.items() if len(choices) > 1}
    finalists = {source: _finalists(choices, [_error(e) for e in first[source]]) for source, choices in left.items()}
    left = {source: [left[source][i] for i in finalists[source]] for source in left}
    more = _errors(
        engine, dataset, set(wanted) - screened, left, lambda done: progress(len(screened) + done, len(wanted))
    )
    for source, choices in left.items():
        errors = [_error({**first[source][i], **more[source][place]}) for place, i in enumerate(finalists[source])]
        best = widest_of_the_best(choices, errors)
        chosen[source] = replace(choices[best], error=errors[best])
    return chosen


def _finalists(choices: Sequence[Choice], errors: Sequence[float]) -> list[int]:
    """The widest of the good options and the best others."""
    widest = widest_of_the_best(choices, errors)
    others = [int(i) for i in np.argsort(errors, kind="stable") if i != widest]
    return sorted([widest, *others[: FINALISTS - 1]])


def widest_of_the_best(choices: Sequence[Choice], errors: Sequence[float]) -> int:
    """Which of the options hardly worse than the best has the widest range: other inputs than the samples may need
    it."""
    good = [i for i, error in enumerate(errors) if error <= CLEARLY * min(errors)]
    return max(good, key=lambda i: choices[i].candidate().scale)


def _error(samples: Mapping[int, np.ndarray]) -> float:
    """Of one option, relative, of its squares by the samples' numbers."""
    return math.sqrt(relative(samples[number] for number in sorted(samples)))


def _errors(
    engine: Engine,
    dataset: Dataset,
    wanted: set[int],
    options: dict[str, list[Choice]],
    progress: Callable[[int], None],
) -> dict[str, list[dict[int, np.ndarray]]]:
    """Of every option in every sample `wanted`. Where the workers would not all have the same number of samples, each
    sample's options are split among several of them."""
    found: dict[str, list[dict[int, np.ndarray]]] = {
        source: [{} for _ in choices] for source, choices in options.items()
    }
    if not options or not wanted:
        return found
    candidates = [(source, [choice.candidate() for choice in choices]) for source, choices in options.items()]
    split = min(engine.workers // math.gcd(engine.workers, len(wanted)), len(candidates))
    # Every so many: later tensors have less to run again.
    parts = [candidates[i::split] for i in range(split)]
    for done, result in enumerate(engine.run(_one_by_one(dataset, wanted), parts), 1):
        for number, of_sources in result.errors.items():
            for source, errors in of_sources.items():
                for of_option, error in zip(found[source], errors):
                    of_option[number] = error
        progress(done // split)
    return found


def _one_by_one(dataset: Dataset, wanted: set[int]) -> Iterator[list[Sample]]:
    return ([sample] for sample in dataset.samples() if sample.number in wanted)
