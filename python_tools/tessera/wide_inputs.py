# SPDX-License-Identifier: Apache-2.0
"""Test inputs beyond uniform numbers of [-1, 1): large, tiny and special values, and integers over their whole
range."""
from __future__ import annotations

from typing import Mapping, Sequence

import numpy as np

from . import op_classes
from .inputs import InputSpec, random_inputs

SEED = 1
_FAR = (1e4, 1e8, 1e12, 1e20, 1e30, 3e38, 1e-4, 1e-8, 1e-20, 1e-30, 1e-37)
_HALVES = (0.5, 1.5, 2.5, 1.0, 2.0, 88.0, 104.0)


def wide_inputs(specs: Sequence[InputSpec], seed: int = SEED) -> dict[str, np.ndarray]:
    """Returns seeded arrays for all inputs; an input whose allowed values are unknown gets the default values."""
    generator = np.random.default_rng(seed)
    usual = random_inputs(specs, seed)
    return {spec.name: _widened(generator, spec, usual[spec.name]) for spec in specs}


def are_wide(specs: Sequence[InputSpec], arrays: Mapping[str, np.ndarray]) -> bool:
    """Returns true if an input has values other than the default ones."""
    usual = random_inputs(specs, SEED)
    return any(not np.array_equal(arrays[spec.name], usual[spec.name], equal_nan=False) for spec in specs)


def _widened(generator: np.random.Generator, spec: InputSpec, usual: np.ndarray) -> np.ndarray:
    kind, uses = usual.dtype.kind, spec.uses
    if uses is None or uses.is_fixed or usual.size == 0 or kind not in "iuf":
        return usual
    if spec.preprocess is not None:
        return usual
    if kind == "f":
        return _floats(generator, usual, uses.reaches)
    if uses.index_below is not None:
        return generator.integers(0, uses.index_below, usual.shape).astype(usual.dtype)
    return (
        _integers(generator, usual, uses.reaches, uses.divides) if op_classes.are_elementwise(uses.reaches) else usual
    )


def _floats(generator: np.random.Generator, usual: np.ndarray, reaches: frozenset[str]) -> np.ndarray:
    """Keeps a third of the elements and gives the others any magnitude, or 0. In networks without sums, elements may be
    as large and as small as the type allows; in a sum, one infinite element would hide all others."""
    isolated = op_classes.are_elementwise(reaches)
    shape, limit = usual.shape, float(np.finfo(usual.dtype).max)
    signs = generator.choice([-1.0, 1.0], shape)
    values = signs * 10 ** generator.uniform(-4, 3, shape)
    if isolated:
        values = np.where(generator.random(shape) < 0.5, values, signs * generator.choice(_FAR + _HALVES, shape))
    values = np.where(generator.random(shape) < 0.1, signs * 0.0, values)
    if isolated and op_classes.define_special_values(reaches):
        special = generator.choice([np.inf, -np.inf, np.nan], shape)
        values = np.where(generator.random(shape) < 0.1, special, values)
    values = np.where(np.isfinite(values), np.clip(values, -limit, limit), values)
    return np.where(generator.random(shape) < 1 / 3, usual, values).astype(usual.dtype)


def _integers(generator: np.random.Generator, usual: np.ndarray, reaches: frozenset[str], divides: bool) -> np.ndarray:
    """Returns small numbers, numbers over the whole range, and both ends of it; over the square root of the range if
    products might overflow. Divisors are not zero. The lowest number is left out, because its quotient by -1 does not
    exist."""
    info, shape = np.iinfo(usual.dtype), usual.shape
    low, high = int(info.min) + (info.min < 0), int(info.max)
    if not op_classes.keep_integers(reaches):
        low, high = (int(np.sign(end) * np.sqrt(abs(float(end)))) for end in (low, high))
    small = generator.integers(max(low, -9), min(high, 9), shape, endpoint=True)
    anywhere = generator.integers(low, high, shape, dtype=usual.dtype, endpoint=True)
    values = np.where(generator.random(shape) < 0.5, small.astype(usual.dtype), anywhere)
    ends = generator.choice(np.array([low, high], usual.dtype), shape)
    values = np.where(generator.random(shape) < 0.1, ends, values)
    return np.where(values == 0, np.ones_like(values), values) if divides else values
