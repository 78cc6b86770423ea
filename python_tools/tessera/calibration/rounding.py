# SPDX-License-Identifier: Apache-2.0
"""Rounds weights to int8 by what they are multiplied with: scale search, rounding with error feedback, bias correction.

All functions work on a matrix [groups, OC / groups, K] and the second moments H [groups, K, K] of its inputs: a weight
error e causes the squared output error e H e'.
"""
from __future__ import annotations

from dataclasses import dataclass
from typing import Callable, Collection

import numpy as np

from tessera import _calibration

from .contractions import Lack, Contraction, Statistics

METHODS = ("gptq", "clip_weights", "bias_correction")
"""gptq: each column's rounding error is compensated by the columns not yet rounded (Frantar et al. 2022). clip_weights:
per channel the scale with the least output error. bias_correction: the mean error of each output channel is corrected
in its bias."""
ALONE = {"W8": ("gptq",), "W4": ("gptq", "in_order", "keep_wide")}
"""Methods for weight-only precisions. in_order: rounds for the results of earlier ops with rounded weights
(sequence.py). keep_wide: the ops that are most sensitive for their size keep 8 bits."""
LARGEST_K = 2400
"""Longer sums keep the default rounding: inverting their moments would take longer than everything else."""
LEAST_ROWS = 2
"""With fewer rows than this per each of K, the moments describe only the samples, and only the bias is corrected by
them. A classifier on a pooled picture has one row per sample."""
LIMIT = 127
DAMPING = 0.01
TOWARDS = 0.5
"""Share of the inputs' error that the weights compensate. Compensating all of it would overfit the samples."""
SHARES = (1.0, 0.95, 0.9, 0.8, 0.7)
GROUP_SHARES = tuple(0.4 + 0.05 * i for i in range(15))
CLEARLY = 0.97
SUMS = 5.0
ON_GRID = 1e-3
AT_ONCE = 8
"""Channels of a group that are checked at once for being on the grid; usually the first ones already are not."""


@dataclass(frozen=True)
class Rounded:
    """Rounded weights of a contraction. integers: in the layout of the op's weight. scales, bias: one per output
    channel. bias is added to the op's (None: nothing); input_bias: the part of it that applies with exact weights too.
    bits: of weight-only precisions, whose scales are [output channels, groups]; 0 if the inputs are integers too. wide:
    as in Product. loss: mean squared error of the outputs, if known.
    """

    integers: np.ndarray
    scales: np.ndarray
    bias: np.ndarray | None = None
    input_bias: np.ndarray | None = None
    bits: int = 0
    wide: bool = False
    loss: float = 0.0


def is_exact(contraction: Contraction) -> bool:
    """Returns true if int8 holds the weights exactly, as in a model that was quantised before."""
    matrix, at_once = contraction.as_it_lies, -(-AT_ONCE // contraction.sharing) * contraction.sharing
    blocks = (matrix[:, i : i + at_once].astype(np.float64) for i in range(0, matrix.shape[1], at_once))
    return all(_on_grid(block, contraction.sharing) for block in blocks)


def _on_grid(weights: np.ndarray, sharing: int) -> bool:
    steps = weights / _largest_scales(weights, sharing)[..., None]
    return bool(np.abs(steps - np.rint(steps)).max() < ON_GRID)


def may_round(contraction: Contraction, rows: int, four_bits: bool = False) -> bool:
    """Returns true if this number of rows suffices to choose the roundings of the weights."""
    return (
        contraction.depth <= LARGEST_K
        and rows >= LEAST_ROWS * contraction.depth
        and (four_bits or not is_exact(contraction))
    )


def round_weights(contraction: Contraction, statistics: Statistics, methods: Collection[str]) -> Rounded:
    """Rounds by `methods`; without second moments only the bias is corrected, and weights are rounded as the compiler
    does by default."""
    weights = contraction.matrix
    methods = set(methods) & (set(METHODS) if statistics.second else {"bias_correction"})
    scales = _largest_scales(weights, contraction.sharing)
    if methods & {"gptq", "clip_weights"}:
        scales, integers = _by_moments(contraction, weights, scales, statistics, methods)
    else:
        integers = _by_themselves(contraction, weights, scales)
    bias = input_bias = None
    if "bias_correction" in methods:
        lost = np.einsum("gok,gk->go", weights, statistics.exact - statistics.rounded)
        left: np.ndarray = weights - integers * scales[..., None].astype(np.float64)
        input_bias = _by_channels(contraction, lost)
        bias = _by_channels(contraction, lost + np.einsum("gok,gk->go", left, statistics.rounded))
    return Rounded(contraction.like_weight(integers), scales.ravel()[:: contraction.sharing], bias, input_bias)


def _by_channels(contraction: Contraction, rows: np.ndarray) -> np.ndarray:
    """Returns means of [groups, rows], one float32 per output channel."""
    return rows.reshape(-1, contraction.sharing).mean(axis=1).astype(np.float32)


def round_alone(
    contraction: Contraction, statistics: Statistics, four_bits: bool, lack: Lack | None = None, halves: bool = False
) -> Rounded:
    """Rounds the weights alone, with float inputs: to 8 bits with a scale per channel or, with `four_bits`, as the
    compiler wants W4.
    lack: the error of the inputs, to be compensated. halves: f16 represents the scales, as kernels that quantise blocks
    of their inputs need it.
    """
    weights, taps = contraction.matrix.astype(np.float32), contraction.depth // contraction.reduced
    bits, group = (contraction.bits, contraction.group) if four_bits else (8, contraction.reduced)
    moments, run = statistics.moments, group * taps
    if lack:
        weights += np.float32(TOWARDS) * _solve(moments, np.matmul(weights, lack.moments))
    scales = _group_scales(weights, np.einsum("gkk->gk", moments), bits, run)
    scales = _as_halves(scales) if halves else scales
    integers, losses = round_groups(
        weights, moments, scales[None], -(1 << (bits - 1)), (1 << (bits - 1)) - 1, clip_first=False, run=run
    )
    return Rounded(
        contraction.like_weight(integers[0]),
        scales.reshape(-1, scales.shape[-1]),
        bits=bits,
        wide=contraction.wide,
        loss=float(losses.mean()),
    )


def _as_halves(scales: np.ndarray) -> np.ndarray:
    """Rounds scales to f16, except those beyond the numbers that it represents in full precision (WeightOnly.cpp)."""
    kinds = np.finfo(np.float16)
    fits = (np.abs(scales) >= kinds.tiny) & (np.abs(scales) <= kinds.max)
    return np.where(fits, np.where(fits, scales, 1).astype(np.float16), scales).astype(np.float32)


def _solve(moments: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Solves X H = right for X [groups, rows, K], with H [groups, K, K] damped."""
    solution = _calibration.solve_groups(moments, _damping(moments), np.ascontiguousarray(right, np.float32))
    return np.frombuffer(solution, np.float32).reshape(right.shape)


def _damping(moments: np.ndarray) -> np.ndarray:
    return (DAMPING * np.einsum("gkk->gk", moments).mean(axis=1) + np.float32(1e-12)).astype(np.float32)


def _group_scales(weights: np.ndarray, power: np.ndarray, bits: int, run: int) -> np.ndarray:
    """Returns [groups, rows, K / run]: the scale of each run of weights with the least squared error; an input's
    `power` [groups, K] weighs the error of its weight. A negative scale maps the largest weight to the lowest integer,
    which has the larger magnitude."""
    groups, rows, k = weights.shape
    fill = -k % run
    w = np.pad(weights, [(0, 0), (0, 0), (0, fill)]).reshape(groups, rows, -1, run)
    cost = np.pad(power, [(0, 0), (0, fill)]).reshape(groups, 1, -1, run)
    high = (1 << (bits - 1)) - 1
    peak = np.take_along_axis(w, np.abs(w).argmax(-1)[..., None], -1)[..., 0]
    peak = np.where(np.abs(peak) > np.finfo(np.float32).tiny * 256, peak, 1.0)
    best, least = np.abs(peak) / high, np.full(peak.shape, np.inf)
    for share in GROUP_SHARES:
        for scale in (np.abs(peak) * np.float32(share / high), -peak * np.float32(share / (high + 1))):
            error = np.clip(np.rint(w / scale[..., None]), -high - 1, high) * scale[..., None] - w
            loss = np.einsum("gorl,gorl->gor", error * cost, error)
            best, least = np.where(loss < least, scale, best), np.minimum(loss, least)
    return best.astype(np.float32)


def _by_moments(
    contraction: Contraction, weights: np.ndarray, scales: np.ndarray, statistics: Statistics, methods: Collection[str]
) -> tuple[np.ndarray, np.ndarray]:
    """Returns the scales and integers with the least output error."""
    moments = statistics.moments
    # The bias takes the mean's share, except for a transposed convolution, whose taps share one bias.
    if "bias_correction" in methods and contraction.sharing == 1:
        mean = statistics.rounded.astype(np.float32)
        moments -= mean[:, :, None] * mean[:, None, :]
        variances = np.einsum("gkk->gk", moments)
        np.maximum(variances, 0, out=variances)  # for inputs that hardly change, only rounding errors remain
    ways = np.stack([scales * np.float32(share) for share in (SHARES if "clip_weights" in methods else SHARES[:1])])
    if "gptq" in methods and len(ways) > 1:  # gptq is too expensive for every scale
        ways = np.stack([scales, _promising(weights, ways[1:], np.einsum("gkk->gk", moments), contraction.sharing)])
    if "gptq" in methods:
        integers, losses = round_groups(weights, moments, ways[..., None], -LIMIT, LIMIT, clip_first=False)
    else:
        integers = np.stack([_by_themselves(contraction, weights, way) for way in ways])
        errors = (integers * ways[..., None] - weights).astype(np.float32)
        losses = np.einsum("wgok,wgok->wgo", np.matmul(errors, moments), errors)
    return _best(ways, integers, _together(losses, contraction.sharing, np.sum))


def _promising(weights: np.ndarray, ways: np.ndarray, power: np.ndarray, sharing: int) -> np.ndarray:
    """Returns per channel the scale of `ways` with the least error of rounding to nearest; an input's `power` [groups,
    K] weighs the error of its weight. The best scale for rounding to nearest is also best with error feedback."""
    w, cost = weights.astype(np.float32), power.astype(np.float32)[:, None]
    best, least = ways[0], np.full(ways[0].shape, np.inf, np.float32)
    for scale in ways:
        steps = np.rint(w * (1 / scale)[..., None])
        np.clip(steps, -LIMIT, LIMIT, out=steps)
        steps *= scale[..., None]
        steps -= w
        loss = np.einsum("gok,gok,gok->go", steps, steps, np.broadcast_to(cost, w.shape))
        loss = _together(loss, sharing, np.sum)
        best, least = np.where(loss < least, scale, best), np.minimum(loss, least)
    return best


def _by_themselves(contraction: Contraction, weights: np.ndarray, scales: np.ndarray) -> np.ndarray:
    """Rounds to nearest while preserving the sums of kernels: an error of the sum shifts a whole region of the output
    and accumulates over the next ops, whereas errors that vary within a region average out."""
    taps = contraction.weight[0, 0].size if contraction.kind == "conv" else 1
    if taps == 1 or is_exact(contraction):
        return np.clip(np.rint(weights / scales[..., None]), -LIMIT, LIMIT).astype(np.int8)
    kernels = weights.reshape(1, -1, taps)
    moments = (np.eye(taps) + SUMS * np.ones((taps, taps))).astype(np.float32)[None]
    ways = np.broadcast_to(scales[..., None], (*weights.shape[:2], weights.shape[2] // taps)).reshape(1, 1, -1, 1)
    return round_groups(kernels, moments, ways, -LIMIT, LIMIT, clip_first=True)[0].reshape(weights.shape)


def _largest_scales(weights: np.ndarray, sharing: int) -> np.ndarray:
    """Returns float32 [groups, rows], equal in runs of `sharing` rows. A channel of zeros is exact in any scale."""
    largest = _together(np.abs(weights).max(axis=2), sharing, np.max)
    return np.where(largest > 0, np.maximum(largest / LIMIT, np.finfo(np.float32).tiny), 1.0).astype(np.float32)


def _together(values: np.ndarray, sharing: int, of: Callable[..., np.ndarray]) -> np.ndarray:
    """Returns [..., rows] in which each run of `sharing` rows, which share one scale, holds the run's value of the
    reduction `of`."""
    if sharing == 1:
        return values
    runs = of(values.reshape(*values.shape[:-1], -1, sharing), axis=-1)
    return np.repeat(runs, sharing, axis=-1)


def round_groups(
    weights: np.ndarray,
    moments: np.ndarray,
    ways: np.ndarray,
    lowest: int,
    highest: int,
    clip_first: bool,
    run: int = 0,
) -> tuple[np.ndarray, np.ndarray]:
    """Rounds weights [groups, rows, K] with each of the scales `ways` [ways, groups, rows, steps], of which each covers
    `run` weights (0: all). Returns integers [ways, groups, rows, K] and their errors [ways, groups, rows]."""
    integers, losses = _calibration.round_groups(
        np.ascontiguousarray(weights, np.float32),
        moments,
        _damping(moments),
        np.ascontiguousarray(ways),
        run or weights.shape[2],
        lowest,
        highest,
        clip_first,
    )
    shape = (len(ways), *weights.shape)
    return np.frombuffer(integers, np.int8).reshape(shape), np.frombuffer(losses, np.float64).reshape(shape[:-1])


def _best(ways: np.ndarray, integers: np.ndarray, losses: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Returns per channel the scale with the least error, and its integers. The first scale wins unless another is
    clearly better, because the samples are not the whole distribution."""
    chosen, least = np.zeros(losses.shape[1:], int), losses[0]
    for way in range(1, len(ways)):
        better = losses[way] < CLEARLY * least
        chosen, least = np.where(better, way, chosen), np.where(better, losses[way], least)
    groups, rows = np.indices(chosen.shape)
    return ways[chosen, groups, rows], integers[chosen, groups, rows]
