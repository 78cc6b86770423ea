# SPDX-License-Identifier: Apache-2.0
"""Weights to int8 with regard to what they are multiplied with: scale search, rounding with error feedback, bias correction.

All work on a matrix [groups, OC / groups, K] and the second moments H [groups, K, K] of its inputs: the squared error that a
weight error e causes in the output is e H e'.
"""
from __future__ import annotations

from dataclasses import dataclass
from typing import Collection

import numpy as np

from .products import Product, Statistics

METHODS = ("gptq", "clip_weights", "bias_correction")
AUTO = METHODS
"""gptq: each column's rounding error is made up for by the columns not rounded yet (Frantar et al. 2022).
clip_weights: per channel the scale with the least output error. bias_correction: the mean error of each output channel goes
into its bias."""
LARGEST_K = 2400
"""Longer sums keep the default rounding: the inverse of their moments would take longer than all the rest."""
LEAST_ROWS = 2
"""With fewer rows than this for each of K moments hold for the samples alone: only the bias is corrected by them. A classifier
on a pooled picture has one row a sample."""
_LIMIT = 127
_DAMPING = 0.01
_SHARES = (0.95, 0.9, 0.8, 0.7)
_CLEARLY = 0.97
_SUMS = 5.0
_BLOCK = 64
_ON_GRID = 1e-3


@dataclass(frozen=True)
class Rounded:
    """integers: as the op's weight lies; scales, bias: one per output channel; bias is added to the op's, None: nothing is."""

    integers: np.ndarray
    scales: np.ndarray
    bias: np.ndarray | None


def is_exact(product: Product) -> bool:
    """Whether int8 holds the weights as they are, as those of a model that was quantised before: nothing is to be chosen."""
    weights = product.matrix
    steps = weights / _largest_scales(weights)[..., None]
    return bool(np.abs(steps - np.rint(steps)).max() < _ON_GRID)


def round_weights(product: Product, statistics: Statistics, methods: Collection[str]) -> Rounded:
    """By `methods`. Without gptq the sums of kernels are kept, as the compiler does by itself."""
    weights = product.matrix
    count = max(statistics.count, 1)
    if count < LEAST_ROWS * weights.shape[2]:
        methods = set(methods) & {"bias_correction"}
    exact, rounded = statistics.exact / count, statistics.rounded / count
    moments = statistics.moments / count
    if "bias_correction" in methods:  # the mean's share is the bias's
        moments = moments - rounded[:, :, None] * rounded[:, None, :]
    if "gptq" in methods:
        rounding = _FeedBack(moments)
    else:  # sums of kernels are kept, otherwise the nearest
        rounding = _FeedBack(np.eye(weights.shape[2])[None] + _of_kernel_sums(product), clip_first=True)
    scales = _largest_scales(weights)
    integers = rounding(weights, scales)
    if "clip_weights" in methods:
        scales, integers = _search_scales(weights, scales, integers, moments, rounding)
    bias = None
    if "bias_correction" in methods:
        got = np.einsum("gok,gk->go", integers * scales[..., None], rounded)
        bias = (np.einsum("gok,gk->go", weights, exact) - got).ravel().astype(np.float32)
    return Rounded(product.like_weight(integers.astype(np.int8)), scales.ravel().astype(np.float32), bias)


def _of_kernel_sums(product: Product) -> np.ndarray:
    """Moments that make an error of a kernel's sum dearer than errors of its elements: [1, K, K].

    Such an error shifts a whole region of the output, and the next ops add that up, while what changes along a region
    evens out.
    """
    k, taps = product.matrix.shape[2], product.weight[0, 0].size if product.kind == "conv" else 1
    return _SUMS * np.kron(np.eye(k // taps), np.ones((taps, taps)) if taps > 1 else np.zeros((1, 1)))[None]


def _largest_scales(weights: np.ndarray) -> np.ndarray:
    """Single precision, as the model has them. A channel of zeros is exact in any scale."""
    largest = np.abs(weights).max(axis=2)
    return np.where(largest > 0, np.maximum(largest / _LIMIT, np.finfo(np.float32).tiny), 1.0).astype(np.float32).astype(np.float64)


def _search_scales(weights: np.ndarray, scales: np.ndarray, integers: np.ndarray, moments: np.ndarray,
                   rounding: "_FeedBack") -> tuple[np.ndarray, np.ndarray]:
    """Per channel the scale, and its integers, with the least error; `integers` are those of `scales`."""
    def loss_of(values: np.ndarray, steps: np.ndarray) -> np.ndarray:
        error = values * steps[..., None] - weights
        return np.einsum("gok,gok->go", np.matmul(error, moments), error)
    best, least = scales, loss_of(integers, scales)
    for share in _SHARES:
        tried = (scales * share).astype(np.float32).astype(np.float64)
        values = rounding(weights, tried)
        loss = loss_of(values, tried)
        better = loss < _CLEARLY * least  # the samples are not all there is
        best, least = np.where(better, tried, best), np.where(better, loss, least)
        integers = np.where(better[..., None], values, integers)
    return best, integers


class _FeedBack:
    """Rounds column by column, those with the most input first; each one's error is spread over those that follow.

    clip_first: what a scale clips is not spread: the moments do not know what inputs are like.
    """

    def __init__(self, moments: np.ndarray, clip_first: bool = False) -> None:
        self._clip_first = clip_first
        diagonal = np.einsum("gkk->gk", moments)
        self._order = np.argsort(-diagonal, axis=1, kind="stable")
        damping = _DAMPING * diagonal.mean(axis=1) + 1e-12
        damped = np.take_along_axis(np.take_along_axis(moments, self._order[:, :, None], 1), self._order[:, None, :], 2)
        damped = damped + damping[:, None, None] * np.eye(moments.shape[1])
        self._factor = np.linalg.cholesky(np.linalg.inv(damped)).transpose(0, 2, 1)

    def __call__(self, weights: np.ndarray, scales: np.ndarray) -> np.ndarray:
        factor, k = self._factor, weights.shape[2]
        if self._clip_first:
            weights = np.clip(weights, -_LIMIT * scales[..., None], _LIMIT * scales[..., None])
        rest = np.take_along_axis(weights, self._order[:, None, :], 2).copy()
        integers = np.empty_like(rest)
        for begin in range(0, k, _BLOCK):
            end = min(begin + _BLOCK, k)
            errors = np.empty((*rest.shape[:2], end - begin))
            for j in range(begin, end):
                column = rest[:, :, j]
                integers[:, :, j] = np.clip(np.rint(column / scales), -_LIMIT, _LIMIT)
                errors[:, :, j - begin] = (column - integers[:, :, j] * scales) / factor[:, j, j][:, None]
                rest[:, :, j + 1:end] -= errors[:, :, j - begin, None] * factor[:, None, j, j + 1:end]
            rest[:, :, end:] -= np.matmul(errors, factor[:, begin:end, end:])
        result = np.empty_like(integers)
        np.put_along_axis(result, np.broadcast_to(self._order[:, None, :], result.shape), integers, 2)
        return result
