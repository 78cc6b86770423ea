# SPDX-License-Identifier: Apache-2.0
"""Tests weights that are learned from samples: an op's inputs in im2col order; rounding, scale search and bias
correction for known moments."""
from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tessera import _calibration
from tessera.calibration import sequence
from tessera.calibration.contractions import ROWS, Lack, Contraction, Statistics
from tessera.calibration.rounding import METHODS, _as_halves, is_exact, may_round, round_alone, round_weights
from tessera.calibration.worker import Candidate

WAY = Candidate(1 / 64, 0, -127)


def convolve(x: np.ndarray, w: np.ndarray, groups: int, strides: tuple, pads: tuple, dilations: tuple) -> np.ndarray:
    """Computes a convolution by definition, as [positions, OC]."""
    rank = x.ndim - 2
    padded = np.pad(x, [(0, 0), (0, 0), *zip(pads[:rank], pads[rank:])])
    sizes = [(s - d * (k - 1) - 1) // t + 1 for s, d, k, t in zip(padded.shape[2:], dilations, w.shape[2:], strides)]
    per_group, rows = w.shape[0] // groups, []
    for n in range(x.shape[0]):
        for place in np.ndindex(*sizes):
            window = tuple(
                slice(p * t, p * t + d * (k - 1) + 1, d) for p, t, d, k in zip(place, strides, dilations, w.shape[2:])
            )
            found = padded[(n, slice(None), *window)]
            rows.append(
                [np.sum(w[oc] * found[oc // per_group * w.shape[1] :][: w.shape[1]]) for oc in range(w.shape[0])]
            )
    return np.array(rows)


@pytest.mark.parametrize(
    "shape, weight, groups, strides, pads, dilations",
    [
        ((1, 3, 6, 5), (4, 3, 3, 3), 1, (1, 1), (1, 1, 1, 1), (1, 1)),
        ((2, 4, 7, 6), (4, 1, 3, 3), 4, (2, 2), (0, 1, 2, 1), (1, 1)),
        ((1, 4, 9, 9), (6, 2, 3, 2), 2, (2, 1), (2, 2, 2, 2), (2, 3)),
        ((1, 5, 11), (2, 5, 4), 1, (3,), (1, 2), (1,)),
        ((1, 2, 4, 5, 3), (3, 2, 2, 2, 2), 1, (1, 2, 1), (0, 1, 0, 1, 0, 1), (1, 1, 2)),
    ],
)
def test_moments_are_those_of_the_convolution(shape, weight, groups, strides, pads, dilations) -> None:
    """For inputs that int8 represents exactly, the collected moments give the mean of the op's results and of their
    squares."""
    generator = np.random.default_rng(0)
    x, w = generator.integers(-100, 100, size=shape) / 64, generator.normal(size=weight)
    contraction = Contraction("y", "x", "conv", w, groups, strides, pads, dilations)
    collected, result = Statistics(contraction), convolve(x, w, groups, strides, pads, dilations)
    collected.add(x, 5, WAY)
    assert collected.count == len(result) == contraction.rows(shape)
    for mean in (collected.exact, collected.rounded):
        assert np.allclose(np.einsum("gok,gk->go", contraction.matrix, mean).ravel(), result.mean(0))
    squares = np.einsum("gok,gkl,gol->go", contraction.matrix, collected.moments.astype(np.float64), contraction.matrix)
    assert np.allclose(squares.ravel(), np.square(result).mean(0), rtol=1e-4)
    assert np.array_equal(contraction.like_weight(contraction.matrix), w)


@pytest.mark.parametrize("trans_b", [False, True])
def test_matmul_moments(trans_b: bool) -> None:
    generator = np.random.default_rng(0)
    x, w = generator.integers(-100, 100, size=(2, 3, 5)) / 64, generator.normal(size=(7, 5) if trans_b else (5, 7))
    contraction = Contraction("y", "x", "matmul", w, trans_b=trans_b)
    collected = Statistics(contraction)
    collected.add(x, 0, WAY)
    assert np.allclose(collected.exact @ contraction.matrix[0].T, (x.reshape(-1, 5) @ (w.T if trans_b else w)).mean(0))
    assert np.array_equal(contraction.like_weight(contraction.matrix), w)
    assert contraction.rows((2, 3, 5)) == 6 and contraction.rows((4000, 5)) == ROWS["matmul"]


def transposed(x: np.ndarray, w: np.ndarray) -> np.ndarray:
    """Computes a transposed convolution whose windows do not overlap, by definition: [N, OC, H, KH, W, KW]."""
    return np.einsum("nchw,cokl->nohkwl", x, w)


def test_transposed_convolution_moments() -> None:
    generator = np.random.default_rng(0)
    x, w = generator.integers(-100, 100, size=(2, 3, 4, 5)) / 64, generator.normal(size=(3, 4, 2, 3))
    contraction = Contraction("y", "x", "conv_transpose", w)
    collected, result = Statistics(contraction), transposed(x, w)
    collected.add(x, 0, WAY)
    assert collected.count == contraction.rows(x.shape) == 40 and contraction.depth == 3 and contraction.sharing == 6
    means = result.mean((0, 2, 4))
    assert np.allclose(np.einsum("gok,gk->go", contraction.matrix, collected.exact).reshape(means.shape), means)
    assert np.array_equal(contraction.like_weight(contraction.matrix), w)


def test_transposed_convolution_that_was_quantised_before_is_exact() -> None:
    """Each channel has one scale; its largest weight belongs to one tap only."""
    integers = np.random.default_rng(0).integers(-60, 61, size=(4, 5, 2, 3))
    integers[0, :, 1, 0] = 127
    steps = np.arange(1, 6, dtype=np.float32).reshape(1, 5, 1, 1) / 512
    contraction = Contraction("y", "x", "conv_transpose", (integers * steps).astype(np.float32))
    assert is_exact(contraction) and not is_exact(replace(contraction, weight=contraction.weight + steps / 3))


def loss_of_transposed(x: np.ndarray, w: np.ndarray, methods: tuple[str, ...]) -> float:
    """Returns the mean squared error of the outputs that int8 weights cause, for samples x [samples, 1, C, H, W]."""
    contraction, quantised = Contraction("y", "x", "conv_transpose", w), x.astype(np.float32)
    _calibration.fake_quantise(quantised.reshape(-1), WAY.scale, WAY.zero_point, WAY.lowest, 127)
    rounded = round_weights(contraction, statistics(contraction, x), methods)
    assert rounded.integers.shape == w.shape and rounded.scales.shape == (w.shape[1],)
    real = rounded.integers * rounded.scales[:, None, None].astype(np.float64)
    got = transposed(quantised[:, 0], real) + (0 if rounded.bias is None else rounded.bias[:, None, None, None, None])
    return float(np.mean(np.square(got - transposed(x[:, 0], w))))


def test_taps_of_a_transposed_convolution_share_a_scale_and_a_bias() -> None:
    """Inputs have a mean, which causes a different error in each tap: the bias can only correct a part of it, the
    roundings the rest."""
    generator = np.random.default_rng(1)
    x = np.minimum(np.abs(generator.normal(size=(4, 1, 24, 9, 9)) * 0.2 + 0.8), 1.9)
    w = generator.normal(size=(24, 5, 2, 2)).astype(np.float32)
    w[:, :, 0, 0] *= 8
    nearest = loss_of_transposed(x, w, ())
    assert loss_of_transposed(x, w, ("bias_correction",)) < nearest
    assert loss_of_transposed(x, w, ("gptq",)) < 0.5 * nearest
    assert loss_of_transposed(x, w, METHODS) < 0.5 * nearest


@pytest.mark.parametrize("seed", range(1, 5))
def test_taps_of_a_transposed_convolution_choose_a_smaller_scale_together(seed: int) -> None:
    """One tap has a large weight that hardly matters. With a scale of its own this tap would be clipped, and the others
    would not."""
    generator = np.random.default_rng(seed)
    x = np.clip(np.abs(generator.normal(size=(4, 1, 24, 9, 9)) * 0.4 + 0.5), 0, 1.9)
    x[:, :, 0] *= 0.02
    w = (generator.normal(size=(24, 5, 2, 2)) * 0.1).astype(np.float32)
    w[0, :, 0, 0] = 1
    unclipped = loss_of_transposed(x, w, ("gptq",))
    assert loss_of_transposed(x, w, ("gptq", "clip_weights")) < 1.01 * unclipped
    assert loss_of_transposed(x, w, METHODS) < 1.01 * unclipped


@pytest.mark.parametrize("value", [3e38, 1e20])
def test_squares_that_are_no_numbers_are_no_statistics(value: float) -> None:
    contraction = Contraction("y", "x", "matmul", np.ones((4, 3)))
    collected = Statistics(contraction)
    collected.add(np.full((40, 4), value, np.float32), 0, Candidate(value / 127, 0, -127))
    assert not collected.is_finite
    means = Statistics(contraction, second=False)
    means.add(np.full((40, 4), value, np.float32), 0, Candidate(value / 127, 0, -127))
    assert means.is_finite


def statistics(contraction: Contraction, x: np.ndarray) -> Statistics:
    collected = Statistics(contraction, may_round(contraction, x.shape[0] * contraction.rows(x.shape[1:])))
    for i, sample in enumerate(x):
        collected.add(sample, i, WAY)
    return collected


@pytest.fixture
def layer() -> tuple[Contraction, np.ndarray]:
    """Returns a matmul, and inputs like those after a Relu: correlated and with a nonzero mean."""
    generator = np.random.default_rng(3)
    mixing = generator.normal(size=(6, 48))
    x = np.maximum(generator.normal(size=(8, 200, 6)) @ mixing * 0.2 + 0.1 * generator.normal(size=(8, 200, 48)), 0)
    return Contraction(
        "y", "x", "matmul", generator.normal(size=(32, 48)).astype(np.float32), trans_b=True
    ), np.minimum(x, 1.9)


def output_error(contraction: Contraction, x: np.ndarray, methods: tuple[str, ...]) -> tuple[float, float]:
    """Returns two errors of the outputs over all samples: the mean square due to the weights, and the largest mean due
    to weights and input."""
    rounded = round_weights(contraction, statistics(contraction, x), methods)
    flat = x.reshape(-1, x.shape[-1])
    quantised, weight = flat.astype(np.float32), contraction.weight.T.astype(np.float64)
    _calibration.fake_quantise(quantised, WAY.scale, WAY.zero_point, WAY.lowest, 127)
    got = quantised @ (rounded.integers * rounded.scales[:, None].astype(np.float64)).T
    error = got - quantised @ weight
    mean = (got - flat @ weight).mean(0) + (0 if rounded.bias is None else rounded.bias)
    return float(np.mean((error - error.mean(0) * (rounded.bias is not None)) ** 2)), float(np.abs(mean).max())


def test_each_method_lowers_the_error(layer: tuple[Contraction, np.ndarray]) -> None:
    nearest, mean = output_error(*layer, ())
    assert output_error(*layer, ("gptq",))[0] < 0.5 * nearest
    assert output_error(*layer, ("clip_weights",))[0] <= 1.5 * nearest
    corrected = output_error(*layer, ("bias_correction",))
    assert corrected[1] < 0.05 * mean and corrected[0] < nearest
    everything = output_error(*layer, METHODS)
    assert everything[0] < 0.5 * nearest and everything[1] < 0.2 * mean


def test_outliers_are_clipped_where_that_pays() -> None:
    generator = np.random.default_rng(5)
    w = generator.normal(size=(4, 64)).astype(np.float32) * 0.1
    w[:, 0] = 8.0  # its input is nearly always zero
    x = generator.normal(size=(4, 200, 64)) * 0.3
    x[..., 0] = 0
    contraction = Contraction("y", "x", "matmul", w, trans_b=True)
    assert output_error(contraction, x, ("clip_weights",))[0] < 0.7 * output_error(contraction, x, ())[0]


def test_rows_that_are_no_numbers_are_told_apart() -> None:
    contraction = Contraction("y", "x", "matmul", np.ones((2, 3), np.float32), trans_b=True)
    assert not Statistics(contraction).is_finite and statistics(contraction, np.ones((1, 4, 3))).is_finite
    assert not statistics(contraction, np.full((1, 4, 3), np.nan)).is_finite


def test_few_rows_choose_no_roundings(layer: tuple[Contraction, np.ndarray]) -> None:
    contraction, x = layer
    few = statistics(contraction, x[:2, :40])
    assert few.count == 80 < 2 * 48 and not few.second
    assert np.array_equal(
        round_weights(contraction, few, METHODS).integers, round_weights(contraction, few, ()).integers
    )
    many = statistics(contraction, x)
    assert not np.array_equal(
        round_weights(contraction, many, METHODS).integers, round_weights(contraction, many, ()).integers
    )


def test_odd_weights_stay_in_range() -> None:
    """Covers inputs that are always zero, channels that are always zero, and few samples."""
    w = np.zeros((3, 2, 3, 3), np.float32)
    w[1], w[2, 0, 0, 0] = 1e-30, 5.0
    contraction = Contraction("y", "x", "conv", w, 1, (1, 1), (1, 1, 1, 1), (1, 1))
    rounded = round_weights(contraction, statistics(contraction, np.zeros((1, 1, 2, 4, 4))), METHODS)
    assert np.isfinite(rounded.scales).all() and (rounded.scales > 0).all() and np.isfinite(rounded.bias).all()
    assert np.abs(rounded.integers.astype(int)).max() <= 127 and rounded.integers.shape == w.shape


@pytest.mark.parametrize("scale", [0.011, 0.013, 0.017, 0.019, 0.023])
def test_inputs_that_never_change(scale: float) -> None:
    """Their variance is a difference of two nearly equal numbers, so it may be slightly negative."""
    contraction = Contraction(
        "y", "x", "matmul", np.random.default_rng(0).standard_normal((4, 3)).astype(np.float32), trans_b=True
    )
    constant = Statistics(contraction)
    for sample in range(4):
        constant.add(np.full((500, 3), 100 * scale), sample, replace(WAY, scale=scale))
    rounded = round_weights(contraction, constant, METHODS)
    assert np.isfinite(rounded.scales).all() and np.abs(rounded.integers.astype(int)).max() <= 127


def alone_error(contraction: Contraction, x: np.ndarray, rounded) -> float:
    """Returns the mean squared error of the outputs for float inputs."""
    scales = np.repeat(rounded.scales, 32 if rounded.scales.shape[1] == 2 else 48, axis=1)[:, :48].astype(np.float64)
    flat = x.reshape(-1, 48)
    return float(np.mean(np.square(flat @ (rounded.integers * scales - contraction.weight).T)))


def test_weights_alone_in_groups(layer: tuple[Contraction, np.ndarray]) -> None:
    contraction, x = layer
    collected = Statistics(contraction)
    for i, sample in enumerate(x):
        collected.add(sample * 1.0, i, None)
    four, eight = (round_alone(contraction, collected, bits) for bits in (True, False))
    halves = round_alone(contraction, collected, True, halves=True)
    assert four.bits == 4 and four.scales.shape == (32, 2) and four.integers.min() == -8 and four.integers.max() == 7
    assert eight.bits == 8 and eight.scales.shape == (32, 1)
    blocks = np.pad(contraction.weight, [(0, 0), (0, 16)]).reshape(32, 2, 32)
    scales = np.abs(blocks).max(-1) / 7
    nearest = np.clip(np.rint(blocks / scales[..., None]), -8, 7).reshape(32, 64)[:, :48].astype(np.int8)
    plain = type(four)(nearest, scales, bits=4)
    assert alone_error(contraction, x, four) < 0.5 * alone_error(contraction, x, plain)
    assert alone_error(contraction, x, eight) < 0.02 * alone_error(contraction, x, four)
    assert np.array_equal(halves.scales, halves.scales.astype(np.float16)) and not np.array_equal(
        four.scales, four.scales.astype(np.float16)
    )
    assert alone_error(contraction, x, halves) < 0.5 * alone_error(contraction, x, plain)


def test_scales_beyond_f16_stay() -> None:
    scales = np.array([1e-30, -1e-6, 2.0**-14, 0.1, -3.3, 65504, 7e4, -1e30], np.float32)
    rounded = _as_halves(scales)
    assert rounded.dtype == np.float32 and np.array_equal(rounded[[0, 1, 2, 5, 6, 7]], scales[[0, 1, 2, 5, 6, 7]])
    assert np.array_equal(rounded[3:5], scales[3:5].astype(np.float16))


def test_groups_of_a_convolution_are_whole_kernels() -> None:
    generator = np.random.default_rng(7)
    contraction = Contraction(
        "y",
        "x",
        "conv",
        generator.normal(size=(6, 40, 3, 3)).astype(np.float32),
        1,
        (1, 1),
        (1, 1, 1, 1),
        (1, 1),
        bits=4,
        group=16,
    )
    collected = Statistics(contraction)
    for i in range(4):
        collected.add(generator.normal(size=(1, 40, 16, 16)), i, None)
    rounded = round_alone(contraction, collected, True)
    assert rounded.scales.shape == (6, 3) and rounded.integers.shape == contraction.weight.shape
    scales = np.repeat(rounded.scales, 16, axis=1)[:, :40, None, None]
    error = rounded.integers * scales - contraction.weight
    assert np.abs(error).mean() < 0.1 and np.abs(error).max() < 1


def test_weights_make_up_for_what_inputs_lack(layer: tuple[Contraction, np.ndarray]) -> None:
    """If earlier ops have made the inputs inexact, the weights bring the outputs closer to those of the exact
    inputs."""
    contraction, x = layer
    generator = np.random.default_rng(8)
    spoilt = x @ (np.eye(48) + 0.05 * generator.normal(size=(48, 48)))
    collected, lack = Statistics(contraction), Lack(contraction)
    for i, (got, wanted) in enumerate(zip(spoilt, x)):
        collected.add(got, i, None)
        lack.add(got, wanted, i)
    assert lack.is_finite

    def error(rounded) -> float:
        weights = contraction.restored(rounded.integers, rounded.scales)
        return float(np.mean(np.square(spoilt.reshape(-1, 48) @ weights.T - x.reshape(-1, 48) @ contraction.weight.T)))

    assert error(round_alone(contraction, collected, False, lack)) < 0.5 * error(
        round_alone(contraction, collected, False)
    )


@pytest.mark.parametrize(
    "kind, shape, groups, bits, group",
    [("matmul", (7, 48), 1, 4, 32), ("conv", (6, 40, 3, 3), 1, 4, 16), ("conv", (6, 4, 3), 2, 8, 4)],
)
def test_restored_weights_are_near(kind: str, shape: tuple, groups: int, bits: int, group: int) -> None:
    generator, rank = np.random.default_rng(9), len(shape) - 2
    contraction = Contraction(
        "y",
        "x",
        kind,
        generator.normal(size=shape).astype(np.float32),
        groups,
        (1,) * rank,
        (0,) * 2 * rank,
        (1,) * rank,
        trans_b=True,
        bits=bits,
        group=group,
    )
    collected = Statistics(contraction)
    for i in range(4):
        collected.add(
            generator.normal(size=(64, shape[1]) if kind == "matmul" else (1, shape[1] * groups, *(16,) * rank)),
            i,
            None,
        )
    rounded = round_alone(contraction, collected, True)
    error = contraction.restored(rounded.integers, rounded.scales) - contraction.weight
    assert np.abs(error).mean() < (0.1 if bits == 4 else 0.01)


def test_stages_keep_the_order_and_few_models_are_compiled() -> None:
    def op(i: int, source: int, k: int = 8) -> Contraction:
        return Contraction(f"y{i}", f"x{source}", "matmul", np.ones((4, k), np.float32), trans_b=True)

    few = sequence.stages_of([op(0, 0), op(1, 0), op(2, 1), op(3, 2)])
    assert [[p.name for p in stage] for stage in few] == [["y0", "y1"], ["y2"], ["y3"]]
    many = sequence.stages_of([op(i, i) for i in range(100)])
    assert len(many) == sequence.STAGES and [p.name for stage in many for p in stage] == [f"y{i}" for i in range(100)]
    large = sequence.stages_of([op(i, i, 2400) for i in range(60)])
    assert max(sum(p.depth**2 * 4 for p in stage) for stage in large) <= sequence.BUDGET
