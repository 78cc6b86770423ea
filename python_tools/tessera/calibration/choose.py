# SPDX-License-Identifier: Apache-2.0
"""Turns histograms into the table's ranges, with one method for all tensors or `auto`, which measures the best per
tensor."""
from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Callable, Collection, Iterator, Mapping, Sequence

import numpy as np

from tessera import _calibration

from ..output_error import relative
from .dataset import Dataset, spread
from .distribution import Distribution
from .engine import Engine, Task
from .thresholds import METHODS, Range, asymmetric_pays, asymmetric_quant, find_range, squared_error, symmetric_quant
from .worker import Candidate

# In order of preference if two methods give the same range.
AUTO_METHODS = ("mse", "kl", "percentile9999", "aciq", "max")
assert set(AUTO_METHODS) == set(METHODS)
SAME_SCALE = 0.04
"""Candidates whose scales differ by less than this share count as equal."""
SCREENED, FINALISTS = 2, 2
"""Number of samples on which all options are measured; number of options that are measured on further samples too."""
MATTERS = 0.95
"""Share of all squared errors: only the sources that contribute this share are measured with other ranges."""
MEASURED_AT_OUTPUTS, WEIGHS = 0.005, 0.1
"""Accuracy thresholds (gates.py) show which errors are small. Errors larger than the first number, and errors with more
than the second number's share of all squares, are measured at the outputs."""
EXACT_ENOUGH = 0.03
"""Below this output error no risk is taken: no factors that are too large for other inputs, and no clipping whose harm
the samples do not show."""
CLEARLY = 1.1
"""A narrower range clips values that the samples hardly show; its error has to be lower than a wider range's by this
factor."""


_Errors = dict[str, list[dict[int, np.ndarray]]]
"""Squared errors (output_error.py) by source, option and sample."""


@dataclass(frozen=True)
class Choice:
    """The range of one source. error: relative error of the outputs with this range, None if it was not measured."""

    method: str
    symmetric_range: Range
    asymmetric_range: Range
    symmetric: bool
    error: float | None = None

    @property
    def range(self) -> Range:
        return self.symmetric_range if self.symmetric else self.asymmetric_range

    def candidate(self) -> Candidate:
        if self.symmetric:
            return Candidate(*symmetric_quant(self.symmetric_range.threshold), lowest=-127)
        return Candidate(*asymmetric_quant(self.asymmetric_range.low, self.asymmetric_range.high), lowest=-128)


def choice_by(method: str, values: Distribution, scheme: str, percentile: float) -> Choice:
    """Finds the range by one method. scheme: symmetric, asymmetric, or best, which takes the asymmetric range if it
    pays."""
    both = [find_range(method, values, symmetric, percentile) for symmetric in (True, False)]
    symmetric = scheme == "symmetric" or (scheme == "best" and not asymmetric_pays(*both))
    return Choice(method, both[0], both[1], symmetric)


def candidates_for(histogram: "_calibration.Histogram", method: str, scheme: str, percentile: float) -> list[Choice]:
    """Returns the method's range; for auto, the ranges of all methods without near duplicates."""
    # The distribution is built per source: all of them together would take more memory than the histograms.
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


def cautious(histogram: "_calibration.Histogram", scheme: str, percentile: float) -> Choice:
    """Chooses without a measurement: the widest range whose rounding and clipping error is hardly more than the
    least."""
    values = Distribution.from_histogram(histogram)
    least = choice_by("mse", values, scheme, percentile)
    allowed = CLEARLY**2 * _local_error(values, least)
    for method in ("max", "percentile9999"):
        choice = choice_by(method, values, scheme, percentile)
        if choice.symmetric == least.symmetric and _local_error(values, choice) <= allowed:
            return choice
    return least


def _local_error(values: Distribution, choice: Choice) -> float:
    return squared_error(values, choice.range, choice.symmetric)


def measure(
    engine: Engine,
    dataset: Dataset,
    numbers: Sequence[int],
    count: int,
    defaults: Mapping[str, Choice],
    find: Callable[[Sequence[str]], Mapping[str, Sequence[Choice]]],
    peaks: Mapping[str, int],
    progress: Callable[[int, int], None],
    widest: Mapping[str, Choice] | None = None,
) -> dict[str, Choice]:
    """Chooses ranges by their output errors.

    The defaults of all sources are measured on SCREENED of the samples `numbers`. For the sources that contribute
    MATTERS of the squared error, the options from `find` are measured: all on SCREENED samples, then the best FINALISTS
    and the widest on `count` samples. One of these is the sample of `peaks`, in which the source's values are largest:
    the effect of clipping shows there or nowhere. The option with the least error is chosen.

    An option's error adds up its samples in their order, so it does not depend on which worker measured which.

    widest: the ranges of all values seen, given if the samples do not contain what the model looks for. They are chosen
    if 8 bits with them change the outputs by less than EXACT_ENOUGH: rounding is then harmless, while the effect of
    clipping cannot be seen.
    """
    ordered = sorted(numbers)
    wanted = [ordered[i] for i in spread(len(ordered), count)]
    screened = {wanted[i] for i in spread(len(wanted), SCREENED)}
    others = [number for number in wanted if number not in screened]
    first = _errors(engine, dataset, screened, {source: [choice] for source, choice in defaults.items()})
    if at_outputs := _measured_at_outputs({source: _error(first[source][0]) for source in defaults}, engine.gated):
        engine.to_the_outputs(at_outputs)
        first.update(_errors(engine, dataset, screened, {source: [defaults[source]] for source in at_outputs}))
    progress(1, 3)
    chosen = {source: replace(choice, error=_error(first[source][0])) for source, choice in defaults.items()}
    if widest and _together(chosen.values()) <= EXACT_ENOUGH:
        wider = {s: [choice] for s, choice in widest.items() if _others([choice], defaults[s])}
        again = {**first, **_errors(engine, dataset, screened, wider)}
        unclipped = {source: replace(choice, error=_error(again[source][0])) for source, choice in widest.items()}
        if _together(unclipped.values()) <= EXACT_ENOUGH:
            progress(3, 3)
            return unclipped
    options = {source: list(found) for source, found in find(_that_matter(chosen)).items() if len(found) > 1}
    untried = {source: _others(choices, defaults[source]) for source, choices in options.items()}
    second = _errors(engine, dataset, screened, untried)
    progress(2, 3)
    for source, choices in options.items():
        measured = iter(second[source])
        alike = defaults[source].candidate()
        second[source] = [first[source][0] if c.candidate() == alike else next(measured) for c in choices]
    finalists = {s: _finalists(choices, [_error(e) for e in second[s]]) for s, choices in options.items()}
    left = {source: [options[source][i] for i in finalists[source]] for source in options}
    more = _errors(engine, dataset, set(others[1:]), left)
    last = _by_last_sample(left, peaks, others[:1], screened | set(others[1:]))
    _add(more, _errors_by_sample(engine, dataset, last))
    progress(3, 3)
    for source, choices in left.items():
        found = [_error({**second[source][i], **more[source][place]}) for place, i in enumerate(finalists[source])]
        best = widest_of_the_best(choices, found)
        chosen[source] = replace(choices[best], error=found[best])
    return chosen


def _together(choices: Collection[Choice]) -> float:
    """Returns the error of the outputs with all choices; their squares add up."""
    return math.hypot(*(choice.error or 0.0 for choice in choices))


def _by_last_sample(
    left: Mapping[str, Sequence[Choice]], peaks: Mapping[str, int], others: Sequence[int], measured: set[int]
) -> dict[int, dict[str, Sequence[Choice]]]:
    """Returns, per sample, the options `left` to measure on it: each source on the sample of its peak, or on one of
    `others` if the source was already `measured` on that sample."""
    found: dict[int, dict[str, Sequence[Choice]]] = {}
    for source, choices in left.items():
        peak = peaks.get(source)
        for number in [peak] if peak is not None and peak not in measured else others:
            found.setdefault(number, {})[source] = choices
    return found


def _add(errors: _Errors, more: _Errors) -> None:
    """Adds errors on other samples."""
    for source, of_options in more.items():
        for known, found in zip(errors[source], of_options):
            known.update(found)


def _others(choices: Sequence[Choice], measured: Choice) -> list[Choice]:
    return [choice for choice in choices if choice.candidate() != measured.candidate()]


def _that_matter(chosen: Mapping[str, Choice]) -> list[str]:
    """Returns the sources with the largest errors, whose squares add up to MATTERS of the total."""
    squares = {source: (choice.error or 0.0) ** 2 for source, choice in chosen.items()}
    left = sum(squares.values()) * (1 - MATTERS)
    found = []
    for source in sorted(squares, key=lambda source: squares[source]):
        left -= squares[source]
        if left < 0:
            found.append(source)
    return [source for source in chosen if source in set(found)]


def _measured_at_outputs(errors: Mapping[str, float], gated: Collection[str]) -> list[str]:
    """Returns the sources of `gated` whose errors are large enough to be measured at the outputs."""
    least = min(MEASURED_AT_OUTPUTS, math.sqrt(WEIGHS * sum(error**2 for error in errors.values())))
    return [source for source, error in errors.items() if source in gated and error > least]


def _finalists(choices: Sequence[Choice], errors: Sequence[float]) -> list[int]:
    """Returns the indices of the widest good option, the best other options and the widest of all."""
    widest = widest_of_the_best(choices, errors)
    others = [int(i) for i in np.argsort(errors, kind="stable") if i != widest]
    all_in = max(range(len(choices)), key=lambda i: choices[i].candidate().scale)
    return sorted({widest, *others[: FINALISTS - 1], all_in})


def widest_of_the_best(choices: Sequence[Choice], errors: Sequence[float]) -> int:
    """Returns the index of the widest range among the options hardly worse than the best: inputs other than the samples
    may need it."""
    good = [i for i, error in enumerate(errors) if error <= CLEARLY * min(errors)]
    return max(good, key=lambda i: choices[i].candidate().scale)


def _error(samples: Mapping[int, np.ndarray]) -> float:
    """Returns the relative error of one option from its squares by sample number."""
    return math.sqrt(relative(samples[number] for number in sorted(samples)))


def _errors(engine: Engine, dataset: Dataset, wanted: set[int], options: Mapping[str, Sequence[Choice]]) -> _Errors:
    """Measures every option on every `wanted` sample. If the samples do not divide evenly among the workers, each
    sample's options are split among several."""
    if not options or not wanted:
        return _unmeasured(options)
    split = engine.workers // math.gcd(engine.workers, len(wanted))
    return _ask(engine, dataset, {number: options for number in wanted}, split)


def _errors_by_sample(
    engine: Engine, dataset: Dataset, options: Mapping[int, Mapping[str, Sequence[Choice]]]
) -> _Errors:
    """Measures the options listed for each sample. A sample is split only if there are more workers than samples,
    because each worker has to measure the accuracy thresholds again."""
    return _ask(engine, dataset, options, -(-engine.workers // max(len(options), 1)))


def _ask(
    engine: Engine, dataset: Dataset, options: Mapping[int, Mapping[str, Sequence[Choice]]], split: int
) -> _Errors:
    """Measures the options listed for each sample, in `split` parts each."""
    found = _unmeasured({source: choices for some in options.values() for source, choices in some.items()})
    for result in engine.run(_tasks(dataset, options, split)):
        for number, of_sources in result.errors.items():
            for source, errors in of_sources.items():
                for of_option, error in zip(found[source], errors):
                    of_option[number] = error
    return found


def _unmeasured(options: Mapping[str, Sequence[Choice]]) -> _Errors:
    return {source: [{} for _ in choices] for source, choices in options.items()}


def _tasks(dataset: Dataset, options: Mapping[int, Mapping[str, Sequence[Choice]]], split: int) -> Iterator[Task]:
    for sample in dataset.samples():
        some = [
            (s, [choice.candidate() for choice in choices]) for s, choices in options.get(sample.number, {}).items()
        ]
        # Strided, because options of later tensors have less of the network to run again.
        for i in range(min(split, len(some))):
            yield [sample], some[i::split]
