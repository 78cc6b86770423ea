# SPDX-License-Identifier: Apache-2.0
"""Methods that derive the range of int8 from a distribution.

A method returns a pair (low, high) with low <= 0 <= high; values beyond are clipped. Symmetric ranges are (-T, T) and
have 255 levels, scale T / 127; asymmetric ones have 256 levels, scale (high - low) / 255, and a zero point. All methods
are deterministic functions of the distribution.
"""
from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Callable

import numpy as np

from tessera import _calibration

from .distribution import Distribution

METHODS = ("max", "percentile9999", "kl", "mse", "aciq")
DEFAULT_PERCENTILE = 99.99
THRESHOLD_OF_ZEROS = 1e-8
"""For tensors that are zero everywhere, because a scale must be positive."""
SMALLEST_THRESHOLD = 1e-34
"""A scale must be a normal number. quant/Transforms/Precision/Decisions.cpp leaves tensors below 1e-25 in float."""


@dataclass(frozen=True)
class Range:
    """low <= 0 <= high."""

    low: float
    high: float

    @property
    def threshold(self) -> float:
        """The threshold of symmetric quantisation."""
        return _positive(max(-self.low, self.high))


def _positive(extent: float) -> float:
    return max(extent, SMALLEST_THRESHOLD) if extent > 0 else THRESHOLD_OF_ZEROS


def symmetric_quant(threshold: float) -> tuple[float, int]:
    """Returns (scale, zero point)."""
    return float(np.float32(threshold / 127)), 0


def asymmetric_quant(low: float, high: float) -> tuple[float, int]:
    """Returns (scale, zero point) of int8 [-128, 127] with an exact zero."""
    low, high = min(low, 0.0), max(high, 0.0)
    scale = float(np.float32(_positive(high - low) / 255))
    return scale, int(min(127, max(-128, np.rint(-128 - low / scale))))


def asymmetric_pays(symmetric: Range, asymmetric: Range) -> bool:
    """Returns true if the asymmetric step is less than 3/4 of the symmetric one, as after ReLU, sigmoid or SiLU."""
    return (asymmetric.high - asymmetric.low) / 255 < 0.75 * symmetric.threshold / 127


def find_range(method: str, values: Distribution, symmetric: bool, percentile: float = DEFAULT_PERCENTILE) -> Range:
    """Finds the range by one of METHODS or 'percentile'. An empty or all-zero distribution gives (0, 0)."""
    if values.total == 0 or max(-values.minimum, values.maximum) < SMALLEST_THRESHOLD:
        return max_range(values, symmetric)  # histograms count subnormal numbers as zeros
    find = _FINDERS.get(method)
    if find is not None:
        found = find(values, symmetric)
    else:
        found = percentile_range(values, symmetric, DEFAULT_PERCENTILE if method == "percentile9999" else percentile)
    full = max_range(values, symmetric)
    return Range(min(0.0, max(found.low, full.low)), max(0.0, min(found.high, full.high)))


def max_range(values: Distribution, symmetric: bool) -> Range:
    """Returns the range of all values."""
    if symmetric:
        most = values.magnitudes.maximum
        return Range(-most, most)
    return Range(min(values.minimum, 0.0), max(values.maximum, 0.0))


def percentile_range(values: Distribution, symmetric: bool, percentile: float) -> Range:
    """Returns the range with `percentile` % of the values: of the magnitudes if symmetric, else with half of the rest
    cut from each tail."""
    fraction = percentile / 100
    if symmetric:
        most = values.magnitudes.quantile(fraction)
        return Range(-most, most)
    if values.minimum >= 0:
        return Range(0.0, values.quantile(fraction))
    if values.maximum <= 0:
        return Range(values.quantile(1 - fraction), 0.0)
    rest = (1 - fraction) / 2
    return Range(values.quantile(rest), values.quantile(1 - rest))


# Mean squared error.

_MSE_COARSE = 2.0 ** np.linspace(-6, 0, 25)
_MSE_FINE = 2.0 ** np.linspace(-0.25, 0.25, 9)


def mse_range(values: Distribution, symmetric: bool) -> Range:
    """Returns the range with the least mean squared rounding and clipping error, searched over shrunk ranges.

    The error is summed exactly over the bins' centres; the spread inside a bin is left out, since no range changes it.
    See e.g. Sakr et al., "Optimal Clipping and Magnitude-aware Differentiation" (ICML 2022), for the optimum's
    fixed-point form; a search needs no assumption about the shape of the rounding error. The two sides of an asymmetric
    range are shrunk in turn.
    """
    full = max_range(values, symmetric)
    if symmetric:

        def error(t: np.ndarray) -> np.ndarray:
            return _squared_error(values.magnitudes, np.zeros_like(t), t, 127)

        most = _search(error, full.high)
        return Range(-most, most)
    low, high = full.low, full.high
    for _ in range(2 if low < 0 < high else 1):
        if high > 0:
            high = _search(lambda t: _squared_error(values, np.full_like(t, low), t, 255), full.high)
        if low < 0:
            low = -_search(lambda t: _squared_error(values, -t, np.full_like(t, high), 255), -full.low)
    return Range(low, high)


def _search(error: Callable[[np.ndarray], np.ndarray], most: float) -> float:
    """Finds the minimum over (0, most]: on a coarse geometric grid, then on a fine one around the best."""
    coarse = most * _MSE_COARSE
    best = coarse[int(np.argmin(error(coarse)))]
    fine = np.minimum(best * _MSE_FINE, most)
    return float(fine[int(np.argmin(error(fine)))])


def _squared_error(values: Distribution, low: np.ndarray, high: np.ndarray, steps: int) -> np.ndarray:
    """Returns, for each range, the summed squared error of rounding to the multiples of (high - low) / steps within
    [low, high]."""
    return np.array(_calibration.squared_errors(values.centres, values.counts, low.tolist(), high.tolist(), steps))


def squared_error(values: Distribution, found: Range, symmetric: bool) -> float:
    """Returns the summed squared error of rounding and clipping all values to the range."""
    if symmetric:
        return float(_squared_error(values.magnitudes, np.zeros(1), np.array([found.threshold]), 127)[0])
    return float(_squared_error(values, np.array([found.low]), np.array([found.high]), 255)[0])


# Kullback-Leibler divergence.

_KL_BINS = 2048
_KL_STRIDE = 32


def kl_range(values: Distribution, symmetric: bool) -> Range:
    """Returns the range whose quantised histogram loses the least information.

    Migacz, "8-bit Inference with TensorRT" (GTC 2017): 2048 linear bins; for each candidate, the reference is the
    histogram with the clipped values added to its last bin, and the other distribution is the reference merged to the
    number of levels and spread again over its non-empty bins. The least KL(reference || other) wins. Exact zeros are
    left out because they are exact under every range. An asymmetric range on both sides of zero shrinks in proportion.
    """
    full = max_range(values, symmetric)
    if symmetric or not full.low < 0 < full.high:
        most = max(-full.low, full.high)
        levels = 128 if symmetric else 256
        share = _kl_share(values.magnitudes, most, levels)
        return Range(full.low * share, full.high * share)
    # The longer side, with its share of the levels, determines the common factor.
    positive = full.high >= -full.low
    most = full.high if positive else -full.low
    levels = int(256 * most / (full.high - full.low))
    share = _kl_share(_one_side(values, positive), most, levels)
    return Range(full.low * share, full.high * share)


def _one_side(values: Distribution, positive: bool) -> Distribution:
    keep = values.centres > 0 if positive else values.centres < 0
    part = Distribution(
        values.low[keep],
        values.high[keep],
        values.counts[keep],
        0.0 if positive else values.minimum,
        values.maximum if positive else 0.0,
    )
    return part.magnitudes


def _kl_share(magnitudes: Distribution, most: float, levels: int) -> float:
    """Returns the part of (0, most] to keep."""
    histogram = magnitudes.on_grid(np.linspace(0.0, most, _KL_BINS + 1))
    zeros = magnitudes.counts[magnitudes.high == 0].sum()
    histogram[0] = max(0.0, histogram[0] - zeros)
    if histogram.sum() == 0:
        return 1.0
    ends = np.arange(max(levels, _KL_STRIDE), _KL_BINS + 1, _KL_STRIDE)
    divergences = _calibration.divergences(histogram, ends.tolist(), levels)
    best = int(ends[int(np.argmin(divergences))])
    return best / _KL_BINS


# Analytical clipping.


def aciq_range(values: Distribution, symmetric: bool) -> Range:
    """Returns the optimum for a Gaussian or Laplace distribution of the same spread, whichever fits the values better.

    Banner et al., "Post training 4-bit quantization of convolutional networks" (NeurIPS 2019): minimises rounding error
    step^2 / 12 plus the clipped tail's expected squared error. Laplace with mean deviation b: alpha / b = x with x e^x
    = 3 * 4^bits (bits 8: 9.897, 9: 11.163); Gauss: alpha = 3.924 sigma for 8 bits. The fit is judged by E|x - m| /
    sigma, 1/sqrt(2) for Laplace and sqrt(2/pi) for Gauss. A tensor on one side of zero is a folded distribution, for
    which an asymmetric range has one more bit.
    """
    full = max_range(values, symmetric)
    one_sided = not full.low < 0 < full.high or values.minimum >= 0 or values.maximum <= 0
    if symmetric or one_sided:
        # Exact zeros, such as those from ReLU, are rounded exactly under every range and are left out.
        x, weights, mean = *_without_zeros(values.magnitudes), 0.0
        bits = 8 if symmetric else 9
    else:
        x, weights = values.centres, values.counts
        mean, bits = float(np.average(x, weights=weights)), 8
    deviation = float(np.average(np.abs(x - mean), weights=weights))
    sigma = math.sqrt(float(np.average(np.square(x - mean), weights=weights)))
    if sigma == 0:
        return full
    ratio = deviation / sigma
    is_laplace = abs(ratio - math.sqrt(0.5)) < abs(ratio - math.sqrt(2 / math.pi))
    alpha = laplace_factor(bits) * deviation if is_laplace else gauss_factor(bits) * sigma
    return Range(mean - alpha if full.low < 0 else 0.0, mean + alpha if full.high > 0 else 0.0)


def _without_zeros(values: Distribution) -> tuple[np.ndarray, np.ndarray]:
    keep = values.centres > 0
    return values.centres[keep], values.counts[keep]


def laplace_factor(bits: int) -> float:
    """Returns alpha / b: the root of x e^x = 3 * 4^bits, by Newton's method on x + log x."""
    target = math.log(3) + bits * math.log(4)
    x = target
    for _ in range(50):
        x -= (x + math.log(x) - target) / (1 + 1 / x)
    return x


def gauss_factor(bits: int) -> float:
    """Returns alpha / sigma: the zero of the derivative of a^2 / (3 * 4^bits) + 2 [(1 + a^2) Q(a) - a phi(a)], by
    bisection."""

    def derivative(a: float) -> float:
        tail = 0.5 * math.erfc(a / math.sqrt(2))
        density = math.exp(-a * a / 2) / math.sqrt(2 * math.pi)
        return 2 * a / (3 * 4**bits) + 4 * (a * tail - density)

    low, high = 0.1, 20.0
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if derivative(middle) < 0 else (low, middle)
    return low


_FINDERS: dict[str, Callable[[Distribution, bool], Range]] = {
    "max": max_range,
    "kl": kl_range,
    "mse": mse_range,
    "aciq": aciq_range,
}
