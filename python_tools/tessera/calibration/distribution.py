# SPDX-License-Identifier: Apache-2.0
"""The distribution of one tensor's values, converted from the streaming histogram to numpy arrays."""
from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from tessera import _calibration

_SHIFT = _calibration.SHIFT


@dataclass(frozen=True)
class Distribution:
    """Bins in ascending order of value; bin i holds counts[i] values in [low[i], high[i]].

    minimum, maximum: exact extremes of the finite values. A bin is at most 1/512 of its value wide;
    the bin of zero holds exact zeros and magnitudes below 2^-140, and counts as zero.
    """

    low: np.ndarray
    high: np.ndarray
    counts: np.ndarray
    minimum: float
    maximum: float

    @staticmethod
    def from_histogram(histogram: "_calibration.Histogram") -> "Distribution":
        indices, counts = (np.frombuffer(data, dtype) for data, dtype in zip(histogram.bins(), (np.uint32, np.uint64)))
        summary = histogram.summary()
        return Distribution.from_bins(indices, counts, summary["min"], summary["max"])

    @staticmethod
    def from_bins(indices: np.ndarray, counts: np.ndarray, minimum: float, maximum: float) -> "Distribution":
        """Returns the distribution of bins given by their leading bits (Histogram.h)."""
        magnitude = indices & np.uint32((1 << (31 - _SHIFT)) - 1)
        sign = np.where(indices >> np.uint32(31 - _SHIFT), -1.0, 1.0)
        near = (magnitude << np.uint32(_SHIFT)).view(np.float32).astype(np.float64)
        far = ((magnitude + np.uint32(1)) << np.uint32(_SHIFT)).view(np.float32).astype(np.float64)
        near, far = np.where(magnitude == 0, 0.0, near), np.where(magnitude == 0, 0.0, far)
        # Clips bins to the extremes, which are exact; the last bin would otherwise reach infinity.
        low = np.clip(np.where(sign > 0, near, -far), minimum, maximum)
        high = np.clip(np.where(sign > 0, far, -near), minimum, maximum)
        order = np.argsort(low + high, kind="stable")
        return Distribution(low[order], high[order], counts[order].astype(np.float64), minimum, maximum)

    @staticmethod
    def from_values(values: np.ndarray) -> "Distribution":
        histogram = _calibration.Histogram()
        histogram.observe(np.ascontiguousarray(values, np.float32))
        return Distribution.from_histogram(histogram)

    @property
    def total(self) -> float:
        return float(self.counts.sum())

    @cached_property
    def centres(self) -> np.ndarray:
        return (self.low + self.high) / 2

    @cached_property
    def magnitudes(self) -> "Distribution":
        """The distribution of the absolute values."""
        mirrored = self.high < 0
        low = np.where(mirrored, -self.high, np.maximum(self.low, 0))
        high = np.where(mirrored, -self.low, self.high)
        order = np.argsort(low + high, kind="stable")
        most = max(abs(self.minimum), abs(self.maximum))
        least = self.minimum if self.minimum > 0 else -self.maximum if self.maximum < 0 else 0.0
        return Distribution(low[order], high[order], self.counts[order], least, most)

    def quantile(self, fraction: float) -> float:
        """Returns the smallest x with at least `fraction` of the values at or below it. Values inside a bin are taken
        as uniform."""
        cumulative = np.cumsum(self.counts)
        wanted = fraction * cumulative[-1]
        i = min(int(np.searchsorted(cumulative, wanted, side="left")), len(self.counts) - 1)
        inside = (wanted - (cumulative[i] - self.counts[i])) / self.counts[i]
        return float(self.low[i] + (self.high[i] - self.low[i]) * min(max(inside, 0.0), 1.0))

    def outside(self, low: float, high: float) -> float:
        """Returns the share of values outside the range, by bin centres."""
        beyond = (self.centres < low) | (self.centres > high)
        return float(self.counts[beyond].sum() / self.total) if self.total else 0.0

    def on_grid(self, edges: np.ndarray) -> np.ndarray:
        """Returns the counts in the intervals between ascending edges. Values are uniform inside a bin; a bin of zero
        width is a point and belongs to the interval that begins at or before it."""
        points = self.high <= self.low
        grid = np.histogram(self.low[points], edges, weights=self.counts[points])[0]
        wide = ~points
        if wide.any():
            corners = np.column_stack([self.low[wide], self.high[wide]]).ravel()
            cumulative = np.cumsum(self.counts[wide])
            levels = np.column_stack([cumulative - self.counts[wide], cumulative]).ravel()
            grid = grid + np.diff(np.interp(edges, corners, levels))
        return grid
