# SPDX-License-Identifier: Apache-2.0
"""What can be said of measured times: percentiles, and whether two series differ, with how sure that is."""
from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Sequence

import numpy as np

PERCENTILES = (50, 90, 95, 99)
RESAMPLES = 2000
CONFIDENCE = 0.95
LEAST_CHANGE = 0.01  # what is less is not called a difference, however sure it is
TYPICAL = 0.25  # quantile of rounds: other work on the machine makes rounds slower, never faster
FEWEST_ROUNDS = 4  # of which anything is said


def summary(times: Sequence[float]) -> dict[str, float]:
    """Of one run's times in seconds: milliseconds."""
    if not times:
        return {}
    values = np.asarray(times) * 1e3
    told = {f"p{each}_ms": float(np.percentile(values, each)) for each in PERCENTILES}
    return {"runs": len(times), "min_ms": float(values.min()), "mean_ms": float(values.mean()), **told}


def of_rounds(rounds: Sequence[Sequence[float]]) -> np.ndarray:
    """A value a round: its median."""
    return np.array([np.median(times) for times in rounds if len(times)])


def typical(values: np.ndarray) -> float:
    """Of a series of rounds."""
    return float(np.quantile(values, TYPICAL))


def _resampled(values: np.ndarray, random: np.random.Generator) -> np.ndarray:
    """Typical values of series drawn from this one, in blocks of neighbours: a machine that is slow in one round is
    slow in the next, and rounds drawn one by one would look surer than they are."""
    count = len(values)
    block = max(1, round(count**0.5))
    starts = random.integers(0, count, (RESAMPLES, -(-count // block)))
    picked = (starts[:, :, None] + np.arange(block)).reshape(RESAMPLES, -1)[:, :count] % count
    return np.quantile(values[picked], TYPICAL, axis=1)


@dataclass(frozen=True)
class Difference:
    """Of a new series from an old one. ratio: of times, new over old, within [low, high] with CONFIDENCE."""

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
    """In which the typical time of a round lies with CONFIDENCE, by bootstrap."""
    return _between(_resampled(of_rounds(rounds), np.random.default_rng(1)))


def difference(old: np.ndarray, new: np.ndarray) -> Difference:
    """Of a value a round. A change counts as one where the whole interval is beyond LEAST_CHANGE."""
    ratio = typical(new) / typical(old)
    if min(len(old), len(new)) < FEWEST_ROUNDS:
        return Difference(ratio, 0.0, float("inf"), f"not decided: of fewer than {FEWEST_ROUNDS} rounds")
    random = np.random.default_rng(1)
    low, high = _between(_resampled(new, random) / _resampled(old, random))
    verdict = "slower" if low > 1 + LEAST_CHANGE else "faster" if high < 1 / (1 + LEAST_CHANGE) else "no difference"
    return Difference(ratio, low, high, verdict)


def _between(values: np.ndarray) -> tuple[float, float]:
    tail = (1 - CONFIDENCE) / 2
    low, high = np.quantile(values, (tail, 1 - tail))
    return float(low), float(high)
