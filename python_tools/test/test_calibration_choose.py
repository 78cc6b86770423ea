# SPDX-License-Identifier: Apache-2.0
"""Which of several ranges is taken: all are measured on few samples, the best two on all."""
from __future__ import annotations

import math
from collections import Counter
from typing import Iterator

import numpy as np
import pytest

from tessera.calibration.choose import FINALISTS, SCREENED, Choice, measure
from tessera.calibration.dataset import Dataset, Sample
from tessera.calibration.thresholds import Range
from tessera.calibration.worker import Result


def option(name: str, threshold: float) -> Choice:
    return Choice(name, Range(-threshold, threshold), Range(-threshold, threshold), True)


class Measuring:
    """An engine whose errors are known: by the threshold's distance from what is best in a sample."""

    def __init__(self, best: dict[int, float]) -> None:
        self.best, self.asked = best, Counter()

    def run(self, chunks, candidates) -> Iterator[Result]:
        for chunk in reversed(list(chunks)):  # in whatever order they are done
            result = Result()
            for sample in chunk:
                thresholds = [way.scale * 127 for _, ways in candidates for way in ways]
                self.asked.update(thresholds)
                result.errors[sample.number] = [np.array([[abs(t - self.best[sample.number]), 1, 0, 1]]) for t in thresholds]
            yield result


def dataset(count: int) -> Dataset:
    return Dataset(lambda: iter([Sample(i, str(i)) for i in range(count)]), count, count, "", "")


def test_the_least_error_over_all_samples_wins() -> None:
    options = {"a": [option(str(t), t) for t in (1.0, 2.0, 3.0, 4.0)], "b": [option("only", 5.0)]}
    # The two samples of the screening, 0 and 4, are for 3 and less so for 2; the others turn that around.
    engine = Measuring({i: 2.8 if i in (0, 4) else 1.9 for i in range(8)})
    chosen = measure(engine, dataset(8), range(8), 8, options, lambda done, count: None)
    assert (SCREENED, FINALISTS) == (2, 2)
    assert chosen["a"].method == "2.0" and chosen["b"] == options["b"][0]
    assert chosen["a"].error == pytest.approx((2 * math.sqrt(0.8) + 6 * math.sqrt(0.1)) / 8, rel=1e-3)
    assert sorted(round(n) for n in engine.asked.values()) == [2, 2, 8, 8]


@pytest.mark.parametrize("count", [1, 2])
def test_few_samples(count: int) -> None:
    engine = Measuring({i: 1.0 for i in range(5)})
    seen = []
    options = {"a": [option("far", 3.0), option("near", 1.1)]}
    chosen = measure(engine, dataset(5), range(5), count, options, lambda done, of: seen.append((done, of)))
    assert chosen["a"].method == "near" and chosen["a"].error == pytest.approx(math.sqrt(0.1), rel=1e-3)
    assert seen[-1] == (count, count)


def test_nothing_to_choose() -> None:
    engine = Measuring({})
    options = {"a": [option("only", 1.0)]}
    assert measure(engine, dataset(3), range(3), 3, options, lambda done, count: None) == {"a": options["a"][0]}
    assert not engine.asked


def test_the_widest_of_the_good_ones_wins() -> None:
    """Unless it is clearly worse."""
    options = {"a": [option(str(t), t) for t in (1.0, 2.0, 4.0)]}
    for best, wanted in ((1.47, "2.0"), (1.3, "1.0")):  # errors 0.69 and 0.73, 0.55 and 0.84
        chosen = measure(Measuring({i: best for i in range(8)}), dataset(8), range(8), 8, options, lambda done, count: None)
        assert chosen["a"].method == wanted
