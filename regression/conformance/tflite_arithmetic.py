# SPDX-License-Identifier: Apache-2.0
"""The integer arithmetic of TensorFlow Lite's reference kernels in numpy, on arrays of int64."""
from __future__ import annotations

import math
from typing import Callable, NamedTuple, Sequence

import numpy as np

LIMITS = {"int8": (-128, 127), "uint8": (0, 255), "int16": (-32768, 32767)}


class Form(NamedTuple):
    """Integers of `dtype` q that stand for scale (q - zero)."""

    dtype: str
    scale: float  # a float32
    zero: int = 0

    @property
    def limits(self) -> tuple[int, int]:
        return LIMITS[self.dtype]


class Factor(NamedTuple):
    """mantissa / 2^shift."""

    mantissa: int
    shift: int


def away(x: np.ndarray | float) -> np.ndarray:
    """Rounds to integers, halves away from zero."""
    x = np.asarray(x)
    whole = np.floor(np.abs(x))
    return (np.sign(x) * (whole + (np.abs(x) - whole >= 0.5))).astype(np.int64)


def factor_of(value: float) -> Factor:
    fraction, exponent = math.frexp(float(value))
    mantissa = int(away(math.ldexp(fraction, 31)))
    if mantissa == 1 << 31:
        mantissa, exponent = mantissa >> 1, exponent + 1
    return Factor(mantissa, 31 - exponent) if exponent >= -31 else Factor(0, 31)


def shifted(x: np.ndarray, shift: np.ndarray | int) -> np.ndarray:
    """Returns x / 2^shift, halves away from zero."""
    mask = (np.int64(1) << shift) - 1
    return (x >> shift) + ((x & mask) > (mask >> 1) + (x < 0))


def product(a: np.ndarray, b: np.ndarray | int) -> np.ndarray:
    """Returns a b / 2^31, halves upwards."""
    return np.clip((a * b + (1 << 30)) >> 31, -(1 << 31), (1 << 31) - 1)


def scaled(x: np.ndarray, factor: Factor) -> np.ndarray:
    """Multiplies integers of 32 bits, with two roundings."""
    left, right = max(31 - factor.shift, 0), max(factor.shift - 31, 0)
    return shifted(product(x << left, factor.mantissa), right)


def scaled_wide(x: np.ndarray, factor: Factor) -> np.ndarray:
    """Multiplies integers of 64 bits, with one rounding and 15 bits of the mantissa."""
    mantissa = (factor.mantissa + (1 << 15)) >> 16 if factor.mantissa < 0x7FFF0000 else 0x7FFF
    shift = factor.shift - 16
    return (x * mantissa + (1 << (shift - 1))) >> shift


def per_channel(
    x: np.ndarray, factors: Sequence[float], scale: Callable[[np.ndarray, Factor], np.ndarray]
) -> np.ndarray:
    """Scales along the last dim."""
    return np.stack([scale(x[..., c], factor_of(factor)) for c, factor in enumerate(factors)], -1)


def bounds(y: Form, activation: str) -> tuple[int, int]:
    low, high = y.limits
    least = {"RELU": 0, "RELU6": 0, "RELU_N1_TO_1": -1}.get(activation)
    most = {"RELU6": 6, "RELU_N1_TO_1": 1}.get(activation)
    at = lambda bound: y.zero + int(away(np.float32(bound) / np.float32(y.scale)))  # noqa: E731
    return (low if least is None else max(low, at(least))), (high if most is None else min(high, at(most)))


def finish(x: np.ndarray, y: Form, activation: str = "NONE") -> np.ndarray:
    return np.clip(x + y.zero, *bounds(y, activation))


def quotient(x: np.ndarray, count: np.ndarray | int) -> np.ndarray:
    """Returns x / count, halves away from zero."""
    return np.sign(x) * ((np.abs(x) + count // 2) // count)


def single(*values: float) -> list[np.float32]:
    return [np.float32(value) for value in values]


# Elementwise operators


def combine(a: np.ndarray, b: np.ndarray, fa: Form, fb: Form, y: Form, sign: int, activation: str) -> np.ndarray:
    """Returns a + sign b, scaled to a common scale."""
    unit = 1 << (15 if y.dtype == "int16" else 20)
    common = 2 * max(fa.scale, fb.scale)
    left = scaled((a - fa.zero) * unit, factor_of(fa.scale / common))
    right = scaled((b - fb.zero) * unit, factor_of(fb.scale / common))
    return finish(scaled(left + sign * right, factor_of(common / (unit * y.scale))), y, activation)


def multiply(a: np.ndarray, b: np.ndarray, fa: Form, fb: Form, y: Form, activation: str) -> np.ndarray:
    sa, sb, sy = single(fa.scale, fb.scale, y.scale)
    return finish(scaled((a - fa.zero) * (b - fb.zero), factor_of(sa * sb / sy)), y, activation)


def relu(x: np.ndarray, fx: Form, y: Form, activation: str) -> np.ndarray:
    sx, sy = single(fx.scale, y.scale)
    return finish(scaled(x - fx.zero, factor_of(sx / sy)), y, activation)


def leaky(x: np.ndarray, fx: Form, y: Form, alpha: float) -> np.ndarray:
    sx, sy, slope = single(fx.scale, y.scale, alpha)
    x = x - fx.zero
    return finish(np.where(x < 0, scaled(x, factor_of(sx * slope / sy)), scaled(x, factor_of(sx / sy))), y)


def prelu(x: np.ndarray, alpha: np.ndarray, fx: Form, fa: Form, y: Form) -> np.ndarray:
    sx, sa, sy = single(fx.scale, fa.scale, y.scale)
    x = x - fx.zero
    return finish(
        np.where(x < 0, scaled(x * (alpha - fa.zero), factor_of(sx * sa / sy)), scaled(x, factor_of(sx / sy))), y
    )


def requantise(x: np.ndarray, fx: Form, y: Form) -> np.ndarray:
    return finish(scaled(x - fx.zero, factor_of(fx.scale / y.scale)), y)


def quantise(x: np.ndarray, y: Form) -> np.ndarray:
    return np.clip(away(np.float32(x) / np.float32(y.scale)) + y.zero, *y.limits)


def dequantise(x: np.ndarray, fx: Form) -> np.ndarray:
    return (np.float64(fx.scale) * (x - fx.zero)).astype(np.float32)


# Contractions: sums of int64, which do not overflow


def windows(
    x: np.ndarray, kernel: Sequence[int], strides: Sequence[int], dilations: Sequence[int], same: bool, fill: int
):
    """Yields (i, j, x of tap (i, j) of every window) for x [N, H, W, C], and returns nothing outside it but `fill`."""
    reach = [(k - 1) * d + 1 for k, d in zip(kernel, dilations)]
    sizes = [-(-n // s) if same else (n - r) // s + 1 for n, s, r in zip(x.shape[1:3], strides, reach)]
    total = [max((o - 1) * s + r - n, 0) if same else 0 for o, s, r, n in zip(sizes, strides, reach, x.shape[1:3])]
    padded = np.pad(x, [(0, 0), *((t // 2, t - t // 2) for t in total), (0, 0)], constant_values=fill)
    for i in range(kernel[0]):
        for j in range(kernel[1]):
            top, left = i * dilations[0], j * dilations[1]
            yield i, j, padded[:, top : top + (sizes[0] - 1) * strides[0] + 1 : strides[0], left:, :][
                :, :, : (sizes[1] - 1) * strides[1] + 1 : strides[1]
            ]


def contraction_factors(fx: Form, scales: Sequence[float], y: Form, in_single: bool) -> list[float]:
    if in_single:
        return [float(np.float32(fx.scale) * np.float32(scales[0])) / y.scale]
    return [fx.scale * scale / y.scale for scale in scales]


def average(x: np.ndarray, kernel: Sequence[int], strides: Sequence[int], same: bool, y: Form, act: str) -> np.ndarray:
    taps = [tap for *_, tap in windows(x, kernel, strides, (1, 1), same, 0)]
    counts = sum(tap for *_, tap in windows(np.ones_like(x), kernel, strides, (1, 1), same, 0))
    return np.clip(quotient(sum(taps), counts), *bounds(y, act))


def largest(x: np.ndarray, kernel: Sequence[int], strides: Sequence[int], same: bool, y: Form, act: str) -> np.ndarray:
    taps = [tap for *_, tap in windows(x, kernel, strides, (1, 1), same, -(1 << 20))]
    return np.clip(np.max(taps, 0), *bounds(y, act))


def mean(x: np.ndarray, axes: tuple[int, ...], keep: bool, fx: Form, y: Form) -> np.ndarray:
    count = int(np.prod([x.shape[axis] for axis in axes]))
    factor = factor_of(fx.scale / y.scale)
    bits = min(count.bit_length() - 1, 32, 62 - factor.shift)
    divided = Factor((factor.mantissa << bits) // count, factor.shift + bits)
    return finish(scaled((x - fx.zero).sum(axes, keepdims=keep), divided), y)


def resize(x: np.ndarray, size: Sequence[int], align: bool, half: bool) -> np.ndarray:
    """Interpolates integers between pixels whose positions have 10 fractional bits."""
    y = x
    for axis, out in ((1, size[0]), (2, size[1])):
        n = x.shape[axis]
        scale = (1024 * (n - 1) + (out - 1) // 2) // (out - 1) if align and out > 1 else (1024 * n + out // 2) // out
        at = np.arange(out) * scale + (scale // 2 - 512 if half else 0)
        lower = np.maximum(np.trunc(at / 1024).astype(np.int64), 0)
        upper = np.minimum(np.trunc((at + 1023) / 1024).astype(np.int64), n - 1)
        weight = (at - 1024 * lower).reshape([-1 if d == axis else 1 for d in range(4)])
        y = np.take(y, np.minimum(lower, n - 1), axis) * (1024 - weight) + np.take(y, upper, axis) * weight
    return np.sign(y) * ((np.abs(y) + (1 << 19)) >> 20)


# Tables


def real_table(x: np.ndarray, fx: Form, y: Form, function) -> np.ndarray:
    value = function(np.float32(fx.scale) * (x - fx.zero).astype(np.float32))
    return np.clip(away(np.float32(value) * (np.float32(1) / np.float32(y.scale))) + y.zero, *y.limits)


def logistic(x: np.ndarray) -> np.ndarray:
    return np.float32(1) / (np.float32(1) + np.exp(-x))


def hard_swish(x: np.ndarray, fx: Form, y: Form) -> np.ndarray:
    def narrow(value: np.float32) -> tuple[int, int]:
        factor = factor_of(value)
        limit = (1 << 31) - 1 - (1 << 15)
        return (32767 if factor.mantissa >= limit else (factor.mantissa + (1 << 15)) >> 16), 31 - factor.shift

    def times(a: np.ndarray, b: int) -> np.ndarray:
        return (a * b + (1 << 14)) >> 15

    def saturated(a: np.ndarray) -> np.ndarray:
        return np.clip(a, -32768, 32767)

    sx, sy = single(fx.scale, y.scale)
    fine = (np.float32(1) / np.float32(128)) * sx
    (result, result_exponent), (gain, exponent) = narrow(fine / sy), narrow(fine / (np.float32(3) / np.float32(32768)))
    x = (x - fx.zero) * 128
    gate = saturated(x << (exponent - 1)) if exponent > 0 else x
    gate = saturated(times(gate, gain))
    gate = saturated(gate << 1) if exponent > 0 else shifted(gate, -exponent)
    gate = (gate + (1 << 15)) >> 1
    both = gate * saturated(times(x, result))
    return finish(shifted(np.sign(both) * (np.abs(both) >> 15), -result_exponent), y)


def exponential(a: np.ndarray) -> np.ndarray:
    """Returns e^a with 31 fractional bits, for a <= 0 with 26."""
    quarter = 1 << 24
    rest = (a & (quarter - 1)) - quarter
    x = np.clip(rest << 5, -(1 << 31), (1 << 31) - 1) + (1 << 28)
    x2 = product(x, x)
    x3, x4 = product(x2, x), product(x2, x2)
    tail = shifted(product(shifted(x4, 2) + x3, 715827883) + x2, 1)
    y = 1895147668 + product(x + tail, 1895147668)
    for i, power in enumerate((1672461947, 1302514674, 790015084, 290630308, 39332535, 720401, 242)):
        y = np.where((rest - a) >> (24 + i) & 1, product(y, power), y)
    return np.where(a == 0, (1 << 31) - 1, y)


def softmax(x: np.ndarray, fx: Form, beta: float, y: Form) -> np.ndarray:
    """Along the last dim, in fixed-point arithmetic."""
    factor = factor_of(min(float(np.float32(beta)) * fx.scale * (1 << 26), (1 << 31) - 1.0))
    left = 31 - factor.shift
    least = -math.floor(31 * (1 << 26) / (1 << left))
    difference = x - x.max(-1, keepdims=True)
    powers = np.where(difference < least, 0, exponential(product(difference << left, factor.mantissa)))
    sums = shifted(powers, 12).sum(-1, keepdims=True)
    zeros = 32 - np.vectorize(lambda value: int(value).bit_length(), otypes=[np.int64])(sums)
    half = ((sums << zeros) - (1 << 31) + (1 << 31)) >> 1
    limit = (1 << 31) - 1
    guess = product(half, -1010580540) + 1515870810
    for _ in range(3):
        guess = guess + np.clip(product(guess, (1 << 29) - product(half, guess)) << 2, -limit - 1, limit)
    inverse = np.clip(guess << 1, -limit - 1, limit)
    bits = 8 if y.dtype != "int16" else 16
    low, high = y.limits
    return np.clip(shifted(product(powers, inverse), 12 + 31 - bits - zeros) + low, low, high)


def sigmoid_steps() -> np.ndarray:
    """Returns the logistic function at multiples of 1/24 in units of 2^-16, raised by half the largest error of the
    interpolation between them."""
    y = 1 / (1 + np.exp(-np.arange(256) / 24))
    steps = away(65536 * (y + y * (1 - y) * (2 * y - 1) / 24**2 / 16))
    steps[255] = 65535
    return steps


SIGMOID = sigmoid_steps()


def wide_argument(x: np.ndarray, scale: float, most: int) -> np.ndarray:
    exponent = np.float32(np.log(np.float32(scale))) * (np.float32(1) / np.float32(np.log(np.float32(2))))
    shift = 12 + int(away(exponent))
    if abs(exponent - away(exponent)) < 1e-3 and 0 <= shift <= most:
        return x * 3 << shift
    multiplier, shift = scale * 4096.0 * 3.0, 0
    while multiplier <= 32767.0 / 2 and shift <= 30:
        multiplier, shift = multiplier * 2, shift + 1
    return (x * int(multiplier) + (1 << (shift - 1) if shift else 0)) >> shift


def interpolated(x: np.ndarray, bits: int, most: int) -> np.ndarray:
    at, rest = np.minimum(x >> bits, 254), x & ((1 << bits) - 1)
    return np.where(x >> bits >= 255, most, (SIGMOID[at] << bits) + rest * (SIGMOID[at + 1] - SIGMOID[at]))


def wide_logistic(x: np.ndarray, fx: Form) -> np.ndarray:
    x = wide_argument(x, fx.scale, 0)
    y = interpolated(np.abs(x), 9, 0x7FFF << 10)
    return np.where(x >= 0, y + (1 << 9), (1 << 25) - y + (1 << 9) - 1) >> 10


def wide_tanh(x: np.ndarray, fx: Form) -> np.ndarray:
    x = wide_argument(x, fx.scale, 1)
    y = interpolated(np.abs(x), 8, 0xFFFF << 8)
    return np.where(x >= 0, y - (1 << 23) + (1 << 7), -y + (1 << 23) + (1 << 7) - 1) >> 8
