# SPDX-License-Identifier: Apache-2.0
"""Compares thresholds with a brute-force search on the values themselves, for distributions with known answers."""
from __future__ import annotations

import math

import numpy as np
import pytest

from tessera.calibration.distribution import Distribution
from tessera.calibration.thresholds import (
    METHODS,
    asymmetric_pays,
    asymmetric_quant,
    find_range,
    gauss_factor,
    laplace_factor,
    max_range,
    symmetric_quant,
)

GENERATOR = np.random.default_rng(1)
SHAPES = {
    "normal": GENERATOR.normal(0.0, 1.5, 200_000),
    "laplace": GENERATOR.laplace(0.2, 0.7, 200_000),
    "relu": np.maximum(GENERATOR.normal(0.3, 1.0, 200_000), 0),
    "uniform": GENERATOR.uniform(-1, 3, 200_000),
    "negative": -np.abs(GENERATOR.normal(0, 2, 50_000)),
    "outlier": np.append(GENERATOR.normal(0, 1, 100_000), [500.0, -300.0]),
    "tiny": GENERATOR.normal(0, 1e-12, 10_000),
    "far": GENERATOR.normal(1e6, 10, 10_000),
}
VALUES = {name: values.astype(np.float32) for name, values in SHAPES.items()}


@pytest.fixture(params=sorted(VALUES))
def values(request: pytest.FixtureRequest) -> np.ndarray:
    return VALUES[request.param]


def squared_error(values: np.ndarray, low: float, high: float, symmetric: bool) -> float:
    scale, zero = symmetric_quant(high) if symmetric else asymmetric_quant(low, high)
    x = values.astype(np.float64)
    q = np.clip(np.rint(x / scale) + zero, -127 if symmetric else -128, 127)
    return float(np.mean(np.square((q - zero) * scale - x)))


def test_max_is_exact(values: np.ndarray) -> None:
    found = max_range(Distribution.from_values(values), symmetric=False)
    assert (found.low, found.high) == (min(values.min(), 0), max(values.max(), 0))
    assert max_range(Distribution.from_values(values), symmetric=True).high == np.abs(values).max()


@pytest.mark.parametrize("percentile", [99.0, 99.99])
def test_percentile(values: np.ndarray, percentile: float) -> None:
    found = find_range("percentile", Distribution.from_values(values), True, percentile).high
    kept = np.mean(np.abs(values.astype(np.float64)) <= found)
    exact = np.quantile(np.abs(values), percentile / 100)
    # A bin is 1/512 of its value wide; a point mass cannot be split.
    assert abs(found - exact) <= exact / 256 or abs(kept - percentile / 100) < 2 / len(values), (found, exact)
    both = find_range("percentile", Distribution.from_values(values), False, percentile)
    inside = np.mean((values >= both.low * 1.004) & (values <= both.high * 1.004))
    assert inside >= percentile / 100 - 2 / len(values)


def test_mse_is_as_good_as_brute_force(values: np.ndarray) -> None:
    found = find_range("mse", Distribution.from_values(values), True)
    most = float(np.abs(values).max())
    best = min(squared_error(values, -t, t, True) for t in most * 2.0 ** np.linspace(-7, 0, 200))
    assert squared_error(values, found.low, found.high, True) <= 1.03 * best


@pytest.mark.parametrize("name", ["normal", "relu", "uniform", "laplace", "negative"])
def test_mse_asymmetric(name: str) -> None:
    values = VALUES[name][:20_000]
    found = find_range("mse", Distribution.from_values(values), False)
    low, high = min(0.0, float(values.min())), max(0.0, float(values.max()))
    grid = np.linspace(0.2, 1, 25)
    best = min(
        squared_error(values, low * a, high * b, False) for a in (grid if low else [1]) for b in (grid if high else [1])
    )
    assert squared_error(values, found.low, found.high, False) <= 1.1 * best


def naive_kl(values: np.ndarray, levels: int = 128, bins: int = 2048, stride: int = 32) -> float:
    """Computes Migacz' procedure with loops over the values."""
    magnitudes = np.abs(values[values != 0].astype(np.float64))
    histogram, edges = np.histogram(magnitudes, bins, (0.0, magnitudes.max()))
    best, threshold = math.inf, 0.0
    for end in range(levels, bins + 1, stride):
        p = histogram[:end].astype(np.float64)
        p[-1] += histogram[end:].sum()
        q = np.zeros(end)
        for level in range(levels):
            begin, stop = level * end // levels, (level + 1) * end // levels
            filled = [i for i in range(begin, stop) if histogram[i]]
            for i in filled:
                q[i] = histogram[begin:stop].sum() / len(filled)
        p, q = p / p.sum(), q / q.sum()
        divergence = sum(a * math.log(a / max(b, 1e-12)) for a, b in zip(p, q) if a > 0)
        if divergence < best:
            best, threshold = divergence, float(edges[end])
    return threshold


@pytest.mark.parametrize("name", ["normal", "relu", "outlier"])
def test_kl_equals_the_naive_procedure(name: str) -> None:
    values = VALUES[name][-50_000:]
    found = find_range("kl", Distribution.from_values(values), True).high
    # Values are spread inside the histogram's bins: neighbouring candidates may swap.
    assert found == pytest.approx(naive_kl(values), rel=0.1)


def test_aciq_factors() -> None:
    """The factors are the published constants of Banner et al."""
    assert laplace_factor(8) == pytest.approx(9.89675982, rel=1e-6)
    assert laplace_factor(4) == pytest.approx(5.02864014, rel=1e-6)
    assert gauss_factor(8) == pytest.approx(3.92403714, rel=1e-3)
    assert gauss_factor(4) == pytest.approx(2.55913646, rel=1e-3)


def test_aciq_recognises_the_distribution() -> None:
    gauss = find_range("aciq", Distribution.from_values(VALUES["normal"]), True).high
    assert gauss == pytest.approx(3.924 * 1.5, rel=0.02)
    laplace = Distribution.from_values(GENERATOR.laplace(0, 0.7, 400_000).astype(np.float32))
    assert find_range("aciq", laplace, True).high == pytest.approx(
        min(9.897 * 0.7, laplace.magnitudes.maximum), rel=0.03
    )


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("symmetric", [True, False])
def test_ranges_are_sound(values: np.ndarray, method: str, symmetric: bool) -> None:
    distribution = Distribution.from_values(values)
    found = find_range(method, distribution, symmetric)
    full = max_range(distribution, symmetric)
    assert full.low <= found.low <= 0 <= found.high <= full.high
    assert found.threshold > 0
    scale, zero = symmetric_quant(found.threshold) if symmetric else asymmetric_quant(found.low, found.high)
    assert scale > 0 and -128 <= zero <= 127


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("constant", [0.0, 3.0, -2.5])
def test_constant_tensors(method: str, constant: float) -> None:
    distribution = Distribution.from_values(np.full(100, constant, np.float32))
    found = find_range(method, distribution, True)
    assert found.high == pytest.approx(abs(constant), rel=0.01)
    assert find_range(method, Distribution.from_values(np.zeros(0, np.float32)), True).threshold > 0


def test_where_asymmetric_pays() -> None:
    for name, expected in (("relu", True), ("normal", False), ("negative", True), ("uniform", True)):
        distribution = Distribution.from_values(VALUES[name])
        assert asymmetric_pays(max_range(distribution, True), max_range(distribution, False)) is expected, name


def test_distribution_is_that_of_the_values(values: np.ndarray) -> None:
    distribution = Distribution.from_values(values)
    assert distribution.total == len(values)
    assert (distribution.minimum, distribution.maximum) == (values.min(), values.max())
    assert np.all(distribution.low <= distribution.high)
    mean = np.average(distribution.centres, weights=distribution.counts)
    assert mean == pytest.approx(values.astype(np.float64).mean(), abs=np.abs(values).mean() / 400)
    edges = np.linspace(0, np.abs(values).max(), 33)
    exact = np.histogram(np.abs(values.astype(np.float64)), edges)[0]
    got = distribution.magnitudes.on_grid(edges)
    assert got.sum() == pytest.approx(len(values))
    assert np.abs(got - exact).sum() <= 0.1 * len(values)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("magnitude", [1e-12, 1e-30, 1e-40, 1e-45])
def test_small_tensors_have_ranges_of_their_own(method: str, magnitude: float) -> None:
    """Subnormal numbers also have a range of their own, whose scale is a normal number."""
    values = (np.abs(GENERATOR.normal(0, 1, 2_000)) * magnitude).astype(np.float32)
    distribution = Distribution.from_values(values)
    most = float(values.max())
    for symmetric in (True, False):
        found = find_range(method, distribution, symmetric)
        assert 0 < found.high <= most
        scale = symmetric_quant(found.threshold)[0] if symmetric else asymmetric_quant(found.low, found.high)[0]
        assert scale >= np.finfo(np.float32).tiny
        assert scale <= most / 100 or most < 1e-34
