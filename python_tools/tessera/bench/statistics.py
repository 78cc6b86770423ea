# SPDX-License-Identifier: Apache-2.0
"""Statistics of measured times: percentiles, and whether two series differ, with a confidence."""
from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Sequence

import numpy as np

PERCENTILES = (50, 90, 95, 99)
RESAMPLES = 2000
CONFIDENCE = 0.95
LEAST_CHANGE = 0.01  # smaller changes are not reported as a difference, however certain
TYPICAL = 0.25  # quantile of rounds: other work on the machine makes rounds slower, never faster
FEWEST_ROUNDS = 4  # needed for an interval or a verdict


def summary(times: Sequence[float]) -> dict[str, float]:
    """Returns percentiles, minimum and mean in milliseconds. times: seconds of each run."""
    if not times:
        return {}
    values = np.asarray(times) * 1e3
    info = {f"p{each}_ms": float(np.percentile(values, each)) for each in PERCENTILES}
    return {"runs": len(times), "min_ms": float(values.min()), "mean_ms": float(values.mean()), **info}


def of_rounds(rounds: Sequence[Sequence[float]]) -> np.ndarray:
    """Returns the median of each round."""
    return np.array([np.median(times) for times in rounds if len(times)])


def typical(values: np.ndarray) -> float:
    """Returns the typical value of a series of rounds."""
    return float(np.quantile(values, TYPICAL))


def _resampled(values: np.ndarray, random: np.random.Generator) -> np.ndarray:
    """Returns the typical values of series resampled from this one in blocks of neighbouring rounds. A machine that is
    slow in one round is slow in the next, so rounds drawn one by one would look more certain than they are."""
    count = len(values)
    block = max(1, round(count**0.5))
    starts = random.integers(0, count, (RESAMPLES, -(-count // block)))
    picked = (starts[:, :, None] + np.arange(block)).reshape(RESAMPLES, -1)[:, :count] % count
    return np.quantile(values[picked], TYPICAL, axis=1)


@dataclass(frozen=True)
class Difference:
    """The change from an old series to a new one. ratio: new time over old; with CONFIDENCE it lies within [low,
    high]."""

    ratio: float
    low: float
    high: float
    verdict: str

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)

    def text(self) -> str:
        change = f"{100 * (self.ratio - 1):+.1f} % [{100 * (self.low - 1):+.1f}, {100 * (self.high - 1):+.1f}]"
        return f"{change}: {self.verdict}"


def interval(rounds: Sequence[Sequence[float]]) -> tuple[float, float]:
    """Returns the interval that contains the typical time of a round with CONFIDENCE, by bootstrap."""
    return _between(_resampled(of_rounds(rounds), np.random.default_rng(1)))


def difference(old: np.ndarray, new: np.ndarray) -> Difference:
    """Compares two series of one value per round. They differ only if the whole interval lies beyond LEAST_CHANGE."""
    ratio = typical(new) / typical(old)
    if min(len(old), len(new)) < FEWEST_ROUNDS:
        return Difference(ratio, 0.0, float("inf"), f"not decided: fewer than {FEWEST_ROUNDS} rounds")
    random = np.random.default_rng(1)
    low, high = _between(_resampled(new, random) / _resampled(old, random))
    verdict = "slower" if low > 1 + LEAST_CHANGE else "faster" if high < 1 / (1 + LEAST_CHANGE) else "no difference"
    return Difference(ratio, low, high, verdict)


def _between(values: np.ndarray) -> tuple[float, float]:
    tail = (1 - CONFIDENCE) / 2
    low, high = np.quantile(values, (tail, 1 - tail))
    return float(low), float(high)
