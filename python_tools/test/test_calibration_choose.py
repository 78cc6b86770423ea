# SPDX-License-Identifier: Apache-2.0
"""Tests the choice among several ranges. If the choice matters, all are measured on few samples, and the best two on
all samples."""
from __future__ import annotations

import math
from collections import Counter
from typing import Iterator

import numpy as np
import pytest

from tessera import _calibration
from tessera.calibration import choose
from tessera.calibration.choose import FINALISTS, SCREENED, Choice, cautious
from tessera.calibration.dataset import Dataset, Sample
from tessera.calibration.thresholds import Range
from tessera.calibration.worker import Job, Result, add_peaks, look, peaks_of


def option(name: str, threshold: float) -> Choice:
    return Choice(name, Range(-threshold, threshold), Range(-threshold, threshold), True)


class Measuring:
    """An engine with known errors: the distance of the threshold from the best one in a sample, times the sample's
    weight."""

    def __init__(self, best: dict[int, float], workers: int = 1, weights: dict[int, float] = {}) -> None:
        self.best, self.weights, self.asked, self.workers, self.tasks = best, weights, Counter(), workers, []

    gated: frozenset[str] = frozenset()

    def to_the_outputs(self, sources) -> None:
        self.outputs = list(sources)

    def run(self, tasks) -> Iterator[Result]:
        tasks = list(tasks)
        self.tasks.append(len(tasks))
        for chunk, part in reversed(tasks):  # results may arrive in any order
            result = Result()
            for sample in chunk:
                result.errors[sample.number] = {}
                weight = self.weights.get(sample.number, 1.0)
                for source, ways in part:
                    thresholds = [way.scale * 127 for way in ways]
                    self.asked.update(thresholds)
                    result.errors[sample.number][source] = [
                        np.array([[weight * abs(t - self.best[sample.number]), 1]]) for t in thresholds
                    ]
            yield result


def measure(engine, samples, numbers, count, options, progress, peaks={}, widest=None):
    """Calls choose.measure(). The default range of a tensor, which applies if nothing is measured, is its first
    option."""
    defaults = {source: choices[0] for source, choices in options.items()}

    def find(some):
        return {source: options[source] for source in some}

    return choose.measure(engine, samples, numbers, count, defaults, find, peaks, progress, widest)


def dataset(count: int) -> Dataset:
    return Dataset(lambda: iter([Sample(i, str(i)) for i in range(count)]), count, count, "", "")


def test_the_least_error_over_all_samples_wins() -> None:
    options = {"a": [option(str(t), t) for t in (1.0, 2.0, 3.0, 4.0)], "b": [option("only", 5.0)]}
    # The two samples of the screening, 0 and 4, prefer 3 to 2; the others prefer 2.
    engine = Measuring({i: 2.8 if i in (0, 4) else 1.9 for i in range(8)})
    chosen = measure(engine, dataset(8), range(8), 8, options, lambda done, count: None)
    assert (SCREENED, FINALISTS) == (2, 2)
    assert chosen["a"].method == "2.0" and chosen["b"].method == "only"
    assert chosen["b"].error == pytest.approx(math.sqrt(2.2), rel=1e-3)  # the error of the two samples
    assert chosen["a"].error == pytest.approx((2 * math.sqrt(0.8) + 6 * math.sqrt(0.1)) / 8, rel=1e-3)
    assert sorted(round(n) for n in engine.asked.values()) == [
        2,
        2,
        8,
        8,
        8,
    ]  # the widest range is measured together with the best two


def test_uneven_samples_are_split_among_the_workers() -> None:
    """Pairs of samples on two workers, with the last sample in halves, give the same ranges and errors as one
    worker."""
    options = {name: [option(str(t), t) for t in (1.0, 2.0, 3.0)] for name in "abc"}
    found = []
    for workers in (1, 2):
        engine = Measuring({i: 1.0 + 0.4 * i for i in range(5)}, workers)
        found.append(measure(engine, dataset(5), range(5), 5, options, lambda done, count: None))
        assert engine.tasks == [2, 2, 2, workers]
    assert found[0] == found[1] and found[0]["c"].method == "2.0"


@pytest.mark.parametrize("count", [1, 2])
def test_few_samples(count: int) -> None:
    engine = Measuring({i: 1.0 for i in range(5)})
    seen = []
    options = {"a": [option("far", 3.0), option("near", 1.1)]}
    chosen = measure(engine, dataset(5), range(5), count, options, lambda done, of: seen.append((done, of)))
    assert chosen["a"].method == "near" and chosen["a"].error == pytest.approx(math.sqrt(0.1), rel=1e-3)
    assert seen == [(1, 3), (2, 3), (3, 3)]


def test_nothing_to_choose() -> None:
    """The error of 8 bits is reported even if a tensor has only one range."""
    engine = Measuring({i: 0.9 for i in range(3)})
    chosen = measure(engine, dataset(3), range(3), 3, {"a": [option("only", 1.0)]}, lambda done, count: None)
    assert chosen["a"].method == "only" and chosen["a"].error == pytest.approx(math.sqrt(0.1), rel=1e-3)


def test_the_widest_of_the_good_ones_wins() -> None:
    """The widest range with a small error is chosen, unless it is clearly worse than the best."""
    options = {"a": [option(str(t), t) for t in (1.0, 2.0, 4.0)]}
    for best, wanted in ((1.47, "2.0"), (1.3, "1.0")):  # the errors are 0.69 and 0.73, 0.55 and 0.84
        chosen = measure(
            Measuring({i: best for i in range(8)}), dataset(8), range(8), 8, options, lambda done, count: None
        )
        assert chosen["a"].method == wanted


@pytest.mark.parametrize("peak", [None, 1])
def test_what_clipping_does_is_seen_where_values_are_largest(peak) -> None:
    """Sample 1 is not one of the four measured samples, but only it needs the wide range."""
    engine = Measuring({i: 3.0 if i == 1 else 1.0 for i in range(8)}, weights={1: 100.0})
    options = {"a": [option(str(t), t) for t in (1.0, 1.2, 3.0)]}
    peaks = {} if peak is None else {"a": peak}
    chosen = measure(engine, dataset(8), range(8), 4, options, lambda done, count: None, peaks)
    assert chosen["a"].method == ("1.0" if peak is None else "3.0")


def test_largest_values_are_of_the_same_sample_in_any_order() -> None:
    def histogram_of(*values: float) -> dict:
        histogram = _calibration.Histogram()
        histogram.observe(np.array(values, np.float32), 0)
        return {"a": histogram}

    of_samples = {0: [1.0, -3.0], 1: [2.0], 2: [3.0, math.nan], 3: [math.nan]}
    for order in ([0, 1, 2, 3], [3, 2, 1, 0]):
        peaks: dict = {}
        for number in order:
            add_peaks(peaks, peaks_of(histogram_of(*of_samples[number]), number))
        assert peaks == {"a": (3.0, 0)}


def test_ranges_that_hardly_matter_are_not_compared() -> None:
    """One of 20 tensors causes nearly all of the error, so only the alternative range of this tensor is measured."""
    engine = Measuring({i: 1.0 for i in range(4)})
    options = {str(i): [option("near", 1.0 + i / 1e5), option("far", 2.0 + i / 1e5)] for i in range(19)}
    options["bad"] = [option("worst", 9.0), option("better", 3.0)]
    chosen = measure(engine, dataset(4), range(4), 4, options, lambda done, count: None)
    assert chosen["bad"].method == "better" and all(chosen[str(i)].method == "near" for i in range(19))
    assert not any(2.0 <= threshold < 2.1 for threshold in engine.asked)


@pytest.mark.parametrize(
    "weight, chosen_threshold",
    [(1e-4, 4.0), pytest.param(1.0, 1.0, id="steps-too-coarse"), pytest.param(5e-4, 1.0, id="only-with-the-widest")],
)
def test_samples_that_show_nothing_clip_nothing_where_steps_are_fine(weight: float, chosen_threshold: float) -> None:
    engine = Measuring({i: 1.0 for i in range(4)}, weights={i: weight for i in range(4)})
    options = {"a": [option("near", 1.1), option("nearer", 1.0)]}
    widest = {"a": option("max", 4.0)}
    chosen = measure(engine, dataset(4), range(4), 4, options, lambda done, count: None, {}, widest)
    assert chosen["a"].symmetric_range.threshold == chosen_threshold
    assert chosen["a"].error == pytest.approx(math.sqrt(weight * (chosen_threshold - 1)), abs=1e-4)


def test_without_a_measurement_ranges_are_wide_where_that_costs_little() -> None:
    generator = np.random.default_rng(0)

    def threshold_of(values: np.ndarray) -> float:
        histogram = _calibration.Histogram()
        histogram.observe(values.astype(np.float32), 0)
        return cautious(histogram, "symmetric", 99.99).symmetric_range.threshold

    assert threshold_of(generator.uniform(-1, 1, 100000)) == pytest.approx(1.0, rel=1e-3)
    assert threshold_of(np.append(generator.normal(size=1000000), 20.0)) < 10


def test_gates_tell_of_small_errors_only() -> None:
    engine = Measuring({i: 1.0 for i in range(5)})
    engine.gated = frozenset("ab")
    options = {"a": [option("far", 1.1)], "b": [option("right", 1.0)], "c": [option("far", 3.0)]}
    measure(engine, dataset(5), range(5), 2, options, lambda done, count: None)
    assert engine.outputs == ["a"]


def test_looking_at_samples_tells_where_values_are_largest() -> None:
    class Observing:
        def observe(self, arrays, number, histograms) -> None:
            histograms.setdefault("a", _calibration.Histogram()).observe(arrays["a"], number)

        def answers(self) -> dict:
            return {}

    seen, job = Result(), Job("", "", (), ())
    for number, most in enumerate([1.0, 5.0, 2.0]):
        look(Observing(), job, number, {"a": np.array([-most, 0.5], np.float32)}, seen)
    assert seen.peaks == {"a": (5.0, 1)}
    assert sorted(seen.digests) == sorted(seen.answers) == [0, 1, 2]
