# SPDX-License-Identifier: Apache-2.0
"""Random small TensorFlow Lite networks, quantised (INT8, UINT8, INT16) and of floats with float or INT8 weights.

The Top reference and compiled code give the integers that a numpy model of LiteRT's arithmetic computes, bit by bit,
and floats within a tolerance. Where the package ai-edge-litert is installed, its reference kernels must give these
integers, too.

    build/bin/tessera-python regression/conformance/random_tflite.py --seeds 0:500 [--isa x86-v2|npu-base] [--keep
    FOLDER]
"""
from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, Callable, Iterator, NamedTuple, Sequence

import numpy as np
import seed_runner
import tflite_arithmetic as ta
from engines import Compiler, StageError, deploy, run_bmodel, run_reference, supported_isas
from tflite_arithmetic import Form

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "test"))

from tflite_files import Model, quantisation  # noqa: E402

VARIANTS = (*supported_isas(), "x86")
NPUS = ("npu-edge", "npu-base", "npu-pro")
KINDS = ("int8", "int8", "int8", "uint8", "int16", "float32", "hybrid")
ACTIVATIONS = ("NONE", "NONE", "RELU", "RELU6", "RELU_N1_TO_1")
MAX_ELEMENTS = 20_000


class Tensor(NamedTuple):
    """A value of the network. array: int64 if `form` says what its integers stand for, else float64."""

    index: int
    array: np.ndarray
    form: Form | None

    @property
    def shape(self) -> tuple[int, ...]:
        return self.array.shape

    @property
    def real(self) -> np.ndarray:
        return self.array if self.form is None else self.form.scale * (self.array - self.form.zero)


class Net:
    """A network under construction, evaluated on its input at once, so that scales fit the values."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.kind = KINDS[seed % len(KINDS)]
        self.dtype = self.kind if self.kind in ta.LIMITS else ""  # "" for floats
        self.model = Model()
        self.values: list[Tensor] = []
        self.used: set[int] = set()
        self.operators: list[str] = []
        shape = (int(self.rng.choice([1, 1, 2])), *(int(n) for n in self.rng.integers(1, 12, 2)))
        real = self.rng.uniform(-1, 1, (*shape, int(self.rng.integers(1, 20))))
        form = self.form_of(real)
        array = self.quantised(real, form) if form else real.astype(np.float32).astype(np.float64)
        self.input = self.add_tensor(array, form)
        self.values.append(self.input)

    def form_of(self, real: np.ndarray, dtype: str | None = None) -> Form | None:
        """Returns a form for these numbers, which may saturate, or None for floats."""
        dtype = self.dtype if dtype is None else dtype
        if not dtype:
            return None
        low, high = min(float(real.min(initial=0)), 0.0), max(float(real.max(initial=0)), 0.0)
        stretch = float(self.rng.choice([0.6, 0.9, 1.0, 1.0, 1.4]))
        if dtype == "int16":
            return Form(dtype, float(np.float32(max(-low, high, 1e-3) * stretch / 32767)))
        least, most = ta.LIMITS[dtype]
        scale = float(np.float32(max(high - low, 1e-3) * stretch / 255))
        return Form(dtype, scale, int(np.clip(round(least - low / scale), least, most)))

    @staticmethod
    def quantised(real: np.ndarray, form: Form) -> np.ndarray:
        return np.clip(np.rint(real / form.scale).astype(np.int64) + form.zero, *form.limits)

    def add_tensor(self, array: np.ndarray, form: Form | None) -> Tensor:
        more = {"quantization": quantisation([form.scale], [form.zero])} if form else {}
        return Tensor(self.model.tensor(array.shape, form.dtype if form else "float32", **more), array, form)

    def constant(
        self, array: np.ndarray, scales: Sequence[float] = (), zeros: Sequence[int] = (), axis: int = 0
    ) -> int:
        more = {"quantization": quantisation(scales, zeros, axis)} if len(scales) else {}
        return self.model.constant(array, **more)

    def ints(self, *values: int) -> int:
        return self.constant(np.array(values, np.int32))

    def emit(
        self, code: str, inputs: Sequence[int], array: np.ndarray, form: Form | None, options: str = "", **values: Any
    ) -> None:
        """Adds an operator whose result is `array`."""
        out = self.add_tensor(np.asarray(array, np.int64 if form else np.float64), form)
        self.model.operator(code, list(inputs), [out.index], options, **values)
        self.used.update(inputs)
        self.values.append(out)
        self.operators.append(code)

    def pick(self, accepts: Callable[[Tensor], bool] = lambda x: True) -> Tensor | None:
        fits = [x for x in self.values[-4:] if (x.form.dtype if x.form else "") == self.dtype and accepts(x)]
        return fits[int(self.rng.integers(len(fits)))] if fits else None

    def image(self) -> Tensor | None:
        return self.pick(lambda x: len(x.shape) == 4)

    def draw(self, *choices: Any) -> Any:
        return choices[int(self.rng.integers(len(choices)))]


# Operators. Each one returns False if it does not fit the network so far.


class Weights(NamedTuple):
    """Weights as integers with scales, or as floats; `values` are integers minus zero point, or floats."""

    index: int
    values: np.ndarray
    scales: list[float]


def weights(net: Net, shape: tuple[int, ...], axis: int) -> Weights:
    fan = max(int(np.prod(shape)) // shape[axis], 1)
    real = net.rng.standard_normal(shape) * fan**-0.5
    if net.kind == "float32":
        return Weights(net.constant(real.astype(np.float32)), real.astype(np.float32).astype(np.float64), [])
    if net.kind == "uint8":
        zero, scale = int(net.rng.integers(100, 156)), float(np.float32(np.abs(real).max() / 110))
        values = np.clip(np.rint(real / scale), -100, 99).astype(np.int64)
        return Weights(net.constant((values + zero).astype(np.uint8), [scale], [zero]), values, [scale])
    count = shape[axis] if net.rng.random() < 0.7 and shape[axis] > 1 else 1
    largest = np.abs(real).max(tuple(d for d in range(len(shape)) if d != axis)) if count > 1 else [np.abs(real).max()]
    scales = [float(np.float32(max(float(each), 1e-3) / 127)) for each in largest]
    steps = np.array(scales).reshape([-1 if d == axis and count > 1 else 1 for d in range(len(shape))])
    values = np.clip(np.rint(real / steps), -127, 127).astype(np.int64)
    return Weights(net.constant(values.astype(np.int8), scales, [0] * count, axis), values, scales)


def contract(
    net: Net,
    code: str,
    x: Tensor,
    w: Weights,
    sums: np.ndarray,
    options: str,
    inputs: Callable[[int], list[int]],
    **values: Any,
) -> bool:
    """Adds a bias to the sums of x - zero with weights, whose last dim holds channels, and emits the operator."""
    channels, activation = sums.shape[-1], net.draw(*ACTIVATIONS)
    scales = np.array(w.scales or [1.0])
    if x.form is None:
        bias = net.rng.uniform(-0.3, 0.3, channels).astype(np.float32)
        real = np.clip(sums * scales + bias, *real_bounds(activation))
        net.emit(code, inputs(net.constant(bias)), real, None, options, fused_activation_function=activation, **values)
        return True
    unit = x.form.scale * scales
    bias = np.clip(np.rint(net.rng.uniform(-0.3, 0.3, channels) / unit), -(1 << 28), 1 << 28).astype(np.int64)
    narrow = x.form.dtype == "int16" and code != "DEPTHWISE_CONV_2D" and np.abs(sums).max() < 1 << 29 and net.draw(0, 1)
    wide = x.form.dtype == "int16" and not narrow
    index = net.constant(
        bias.astype(np.int64 if wide else np.int32), [float(np.float32(u)) for u in unit], [0] * len(unit)
    )
    y = net.form_of((sums + bias) * unit)
    assert y is not None
    in_doubles = code == "FULLY_CONNECTED"
    factors = ta.contraction_factors(x.form, w.scales, y, x.form.dtype == "uint8" and not in_doubles)
    factors = factors * channels if len(factors) == 1 else factors
    if max(factors) > 1000:
        return False
    if narrow:
        values["quantized_bias_type"] = "INT32"
    if in_doubles:
        scaled = ta.away((sums + bias) * np.array(factors))
    else:
        scaled = ta.per_channel(sums + bias, factors, ta.scaled_wide if wide else ta.scaled)
    array = ta.finish(scaled, y, activation)
    net.emit(code, inputs(index), array, y, options, fused_activation_function=activation, **values)
    return True


def real_bounds(activation: str) -> tuple[float, float]:
    return {"RELU": (0.0, np.inf), "RELU6": (0.0, 6.0), "RELU_N1_TO_1": (-1.0, 1.0)}.get(activation, (-np.inf, np.inf))


def centred(x: Tensor) -> np.ndarray:
    return x.array - x.form.zero if x.form else x.array


def window(net: Net, x: Tensor, dilates: bool) -> tuple[list[int], list[int], list[int], bool] | None:
    kernel = [int(net.draw(1, 2, 3, 3, 5)) for _ in range(2)]
    strides = [int(net.draw(1, 1, 2, 3)) for _ in range(2)]
    dilations = [int(net.draw(1, 1, 2)) if dilates and strides == [1, 1] else 1 for _ in range(2)]
    same = bool(net.draw(0, 1))
    fits = all(same or (k - 1) * d < n for k, d, n in zip(kernel, dilations, x.shape[1:3]))
    return (kernel, strides, dilations, same) if fits else None


def padding(same: bool, strides: Sequence[int]) -> dict[str, Any]:
    return {"padding": "SAME" if same else "VALID", "stride_h": strides[0], "stride_w": strides[1]}


def conv(net: Net) -> bool:
    x = net.image()
    form = window(net, x, True) if x else None
    if not x or not form:
        return False
    kernel, strides, dilations, same = form
    channels = x.shape[3]
    groups = int(net.draw(1, 1, 1, *(g for g in range(1, channels + 1) if channels % g == 0)))
    groups = groups if net.kind != "hybrid" else 1
    depth, results = channels // groups, groups * int(net.rng.integers(1, max(2, 24 // groups)))
    w = weights(net, (results, *kernel, depth), 0)
    sums: Any = 0
    for i, j, tap in ta.windows(centred(x), kernel, strides, dilations, same, 0):
        parts = [
            tap[..., g * depth : (g + 1) * depth] @ w.values[g * (results // groups) :, i, j][: results // groups].T
            for g in range(groups)
        ]
        sums = sums + np.concatenate(parts, -1)
    more = {**padding(same, strides), "dilation_h_factor": dilations[0], "dilation_w_factor": dilations[1]}
    return contract(net, "CONV_2D", x, w, sums, "Conv2DOptions", lambda b: [x.index, w.index, b], **more)


def depthwise(net: Net) -> bool:
    x = net.image()
    form = window(net, x, True) if x else None
    if not x or not form:
        return False
    kernel, strides, dilations, same = form
    multiplier = int(net.draw(1, 1, 2, 3))
    w = weights(net, (1, *kernel, x.shape[3] * multiplier), 3)
    sums: Any = 0
    for i, j, tap in ta.windows(centred(x), kernel, strides, dilations, same, 0):
        sums = sums + np.repeat(tap, multiplier, -1) * w.values[0, i, j]
    more = {**padding(same, strides), "dilation_h_factor": dilations[0], "dilation_w_factor": dilations[1]}
    return contract(
        net,
        "DEPTHWISE_CONV_2D",
        x,
        w,
        sums,
        "DepthwiseConv2DOptions",
        lambda b: [x.index, w.index, b],
        depth_multiplier=multiplier,
        **more,
    )


def transpose_conv(net: Net) -> bool:
    x = net.image()
    if not x or net.kind == "hybrid":
        return False
    kernel, strides = [int(net.draw(1, 2, 3, 4)) for _ in range(2)], [int(net.draw(1, 2, 3)) for _ in range(2)]
    same, results = bool(net.draw(0, 1)), int(net.rng.integers(1, 12))
    sizes = [n * s if same else (n - 1) * s + k for n, s, k in zip(x.shape[1:3], strides, kernel)]
    total = [max((n - 1) * s + k - o, 0) for n, s, k, o in zip(x.shape[1:3], strides, kernel, sizes)]
    if x.shape[0] * results * sizes[0] * sizes[1] > MAX_ELEMENTS or any(
        same and k < s for k, s in zip(kernel, strides)
    ):
        return False
    w = weights(net, (results, *kernel, x.shape[3]), 0)
    whole = np.zeros((x.shape[0], *(s + t for s, t in zip(sizes, total)), results), w.values.dtype)
    for i in range(kernel[0]):
        for j in range(kernel[1]):
            rows = slice(i, i + (x.shape[1] - 1) * strides[0] + 1, strides[0])
            columns = slice(j, j + (x.shape[2] - 1) * strides[1] + 1, strides[1])
            whole[:, rows, columns] += centred(x) @ w.values[:, i, j].T
    top, left = total[0] // 2, total[1] // 2
    sums = whole[:, top : top + sizes[0], left : left + sizes[1]]
    shape = net.ints(x.shape[0], *sizes, results)
    return contract(
        net,
        "TRANSPOSE_CONV",
        x,
        w,
        sums,
        "TransposeConvOptions",
        lambda b: [shape, w.index, x.index, b],
        **padding(same, strides),
    )


def fully_connected(net: Net) -> bool:
    x = net.pick(lambda t: len(t.shape) >= 2 and t.shape[-1] > 0)
    if not x:
        return False
    keep = bool(net.draw(0, 1))
    w = weights(net, (int(net.rng.integers(1, 30)), x.shape[-1]), 0)
    rows = centred(x) if keep else centred(x).reshape(-1, x.shape[-1])
    return contract(
        net,
        "FULLY_CONNECTED",
        x,
        w,
        rows @ w.values.T,
        "FullyConnectedOptions",
        lambda b: [x.index, w.index, b],
        keep_num_dims=keep,
    )


def batch_matmul(net: Net) -> bool:
    a = net.pick(lambda t: len(t.shape) >= 3)
    if not a or net.dtype == "int16" or net.dtype == "uint8":
        return False
    right = np.swapaxes(centred(a), -1, -2)
    sums = centred(a) @ right
    if sums.size > MAX_ELEMENTS or a.shape[-1] > 60:
        return False
    if a.form is None:
        net.emit("BATCH_MATMUL", [a.index, a.index], sums, None, "BatchMatMulOptions", adj_x=False, adj_y=True)
        return True
    y = net.form_of(sums * a.form.scale**2)
    assert y is not None
    factor = ta.factor_of(np.float64(np.float32(a.form.scale) * np.float32(a.form.scale)) / y.scale)
    array = ta.finish(ta.scaled(sums, factor), y)
    net.emit("BATCH_MATMUL", [a.index, a.index], array, y, "BatchMatMulOptions", adj_x=False, adj_y=True)
    return True


def second(net: Net, a: Tensor) -> Tensor | None:
    """Returns another operand of the shape of `a`, or a constant that broadcasts to it."""
    b = net.pick(lambda t: t.shape == a.shape)
    if b and net.rng.random() < 0.5:
        return b
    shape = a.shape[int(net.rng.integers(len(a.shape))) :] if a.shape else ()
    real = net.rng.uniform(-1, 1, shape)
    form = net.form_of(real)
    if form is None:
        array = real.astype(np.float32)
        return Tensor(net.constant(array), array.astype(np.float64), None)
    array = net.quantised(real, form)
    return Tensor(net.constant(array.astype(form.dtype), [form.scale], [form.zero]), array, form)


def binary(net: Net) -> bool:
    a = net.pick()
    b = second(net, a) if a else None
    if not a or not b:
        return False
    code, activation = net.draw("ADD", "SUB", "MUL"), net.draw(*ACTIVATIONS)
    real = {"ADD": np.add, "SUB": np.subtract, "MUL": np.multiply}[code](a.real, b.real)
    y = net.form_of(real)
    array, options = np.clip(real, *real_bounds(activation)), {"fused_activation_function": activation}
    if a.form and b.form and y:
        if code == "MUL":
            array = ta.multiply(a.array, b.array, a.form, b.form, y, activation)
        else:
            array = ta.combine(a.array, b.array, a.form, b.form, y, 1 if code == "ADD" else -1, activation)
    if code != "MUL":
        options["pot_scale_int16"] = False
    net.emit(code, [a.index, b.index], array, y, f"{code.title()}Options", **options)
    return True


def relu(net: Net) -> bool:
    x, activation = net.pick(), net.draw("RELU", "RELU6", "RELU_N1_TO_1")
    if not x or (net.dtype == "int16" and activation == "RELU_N1_TO_1"):
        return False
    real = np.clip(x.real, *real_bounds(activation))
    y = net.form_of(real)
    net.emit(activation, [x.index], ta.relu(x.array, x.form, y, activation) if x.form and y else real, y)
    return True


def leaky_relu(net: Net) -> bool:
    x, alpha = net.pick(), float(np.float32(net.draw(0.1, 0.01, 0.25, 1.5)))
    if not x:
        return False
    real = np.where(x.real < 0, alpha * x.real, x.real)
    y = net.form_of(real)
    array = ta.leaky(x.array, x.form, y, alpha) if x.form and y else real
    net.emit("LEAKY_RELU", [x.index], array, y, "LeakyReluOptions", alpha=alpha)
    return True


def prelu(net: Net) -> bool:
    x = net.image()
    if not x or net.dtype == "int16":
        return False
    real = net.rng.uniform(-0.5, 0.9, (1, 1, x.shape[3]))
    form = net.form_of(real)
    alpha = net.quantised(real, form) if form else real.astype(np.float32).astype(np.float64)
    index = net.constant(alpha.astype(form.dtype if form else np.float32), *([form.scale], [form.zero]) if form else ())
    slope = form.scale * (alpha - form.zero) if form else alpha
    result = np.where(x.real < 0, slope * x.real, x.real)
    y = net.form_of(result)
    array = ta.prelu(x.array, alpha, x.form, form, y) if x.form and form and y else result
    net.emit("PRELU", [x.index, index], array, y)
    return True


def table(net: Net) -> bool:
    x, code = net.pick(), net.draw("LOGISTIC", "TANH", "HARD_SWISH")
    if not x:
        return False
    functions: dict[str, Callable[[np.ndarray], np.ndarray]] = {
        "LOGISTIC": lambda v: 1 / (1 + np.exp(-v)),
        "TANH": np.tanh,
        "HARD_SWISH": lambda v: v * np.clip(v / 6 + 0.5, 0, 1),
    }
    real = functions[code](x.real)
    if not x.form:
        net.emit(code, [x.index], real, None)
        return True
    wide = net.dtype == "int16"
    y = net.form_of(real)
    assert y is not None
    if code == "LOGISTIC":
        y = Form("int16", 2.0**-15) if wide else Form(net.dtype, 1 / 256, ta.LIMITS[net.dtype][0])
    if code == "TANH":
        y = Form("int16", 2.0**-15) if wide else Form(net.dtype, 1 / 128, ta.LIMITS[net.dtype][0] + 128)
    if code == "HARD_SWISH":
        if wide or x.form.scale / 128 / y.scale >= 0.5 or x.form.scale > 1:
            return False
        array = ta.hard_swish(x.array, x.form, y)
    elif wide:
        array = ta.wide_logistic(x.array, x.form) if code == "LOGISTIC" else ta.wide_tanh(x.array, x.form)
    elif code == "LOGISTIC":
        array = ta.real_table(x.array, x.form, y, ta.logistic)
    else:
        array = ta.real_table(x.array, x.form, y, functions[code])
    net.emit(code, [x.index], array, y)
    return True


def softmax(net: Net) -> bool:
    x, beta = net.pick(lambda t: len(t.shape) >= 1), float(np.float32(net.draw(1.0, 1.0, 0.5, 3.0)))
    if not x or net.dtype == "int16":
        return False
    e = np.exp(beta * (x.real - x.real.max(-1, keepdims=True)))
    real = e / e.sum(-1, keepdims=True)
    y = Form(net.dtype, 1 / 256, ta.LIMITS[net.dtype][0]) if x.form else None
    array = ta.softmax(x.array, x.form, beta, y) if x.form and y else real
    net.emit("SOFTMAX", [x.index], array, y, "SoftmaxOptions", beta=beta)
    return True


def pool(net: Net) -> bool:
    x, code, activation = net.image(), net.draw("AVERAGE_POOL_2D", "MAX_POOL_2D"), net.draw(*ACTIVATIONS)
    form = window(net, x, False) if x else None
    if not x or not form:
        return False
    kernel, strides, _, same = form
    if x.form:
        compute = ta.average if code.startswith("AVERAGE") else ta.largest
        array = compute(x.array, kernel, strides, same, x.form, activation)
    else:
        fill = 0 if code.startswith("AVERAGE") else -1e30
        taps = [tap for *_, tap in ta.windows(x.array, kernel, strides, (1, 1), same, fill)]
        counts = sum(tap for *_, tap in ta.windows(np.ones_like(x.array), kernel, strides, (1, 1), same, 0))
        array = sum(taps) / counts if code.startswith("AVERAGE") else np.max(taps, 0)
        array = np.clip(array, *real_bounds(activation))
    more = {"filter_height": kernel[0], "filter_width": kernel[1], "fused_activation_function": activation}
    net.emit(code, [x.index], array, x.form, "Pool2DOptions", **padding(same, strides), **more)
    return True


def reduce(net: Net) -> bool:
    x, code, keep = net.pick(lambda t: len(t.shape) >= 2), "MEAN", bool(net.draw(0, 1))
    if not x:
        return False
    rank = len(x.shape)
    axes = (1, 2) if rank == 4 and net.draw(0, 1) else (int(net.rng.integers(1, rank)),)
    real = x.real.mean(axes, keepdims=keep)
    y = net.form_of(real)
    array = real
    if x.form and y:
        array = ta.mean(x.array, axes, keep, x.form, y)
    net.emit(code, [x.index, net.ints(*axes)], array, y, "ReducerOptions", keep_dims=keep)
    return True


def extremum(net: Net) -> bool:
    x = net.pick()
    if not x or not x.shape:
        return False
    other = net.pick(lambda t: t.shape == x.shape and t.form == x.form)
    if not other:
        return False
    code = net.draw("MAXIMUM", "MINIMUM")
    array = (np.maximum if code == "MAXIMUM" else np.minimum)(x.array, other.array)
    net.emit(code, [x.index, other.index], array, x.form)
    return True


def concatenation(net: Net) -> bool:
    x = net.pick(lambda t: len(t.shape) >= 1)
    if not x:
        return False
    axis = int(net.rng.integers(len(x.shape)))
    parts = [x] + [x if net.draw(0, 1) else net.pick(lambda t: t.shape == x.shape and t.form == x.form) or x]
    net.emit(
        "CONCATENATION",
        [part.index for part in parts],
        np.concatenate([part.array for part in parts], axis),
        x.form,
        "ConcatenationOptions",
        axis=axis - len(x.shape) if net.draw(0, 1) else axis,
    )
    return True


def move(net: Net) -> bool:
    x, code = net.pick(lambda t: len(t.shape) >= 2), net.draw("RESHAPE", "TRANSPOSE", "PAD", "SLICE", "REDUCE_MAX")
    if not x:
        return False
    rank, shape = len(x.shape), x.shape
    if code == "RESHAPE":
        dims = (shape[0], int(np.prod(shape[1:])))
        net.emit(code, [x.index, net.ints(*dims)], x.array.reshape(dims), x.form, "ReshapeOptions", new_shape=dims)
    elif code == "TRANSPOSE":
        perm = [int(d) for d in net.rng.permutation(rank)]
        net.emit(code, [x.index, net.ints(*perm)], x.array.transpose(perm), x.form, "TransposeOptions")
    elif code == "PAD":
        pads = net.rng.integers(0, 3, (rank, 2)).astype(np.int32)
        padded = np.pad(x.array, pads, constant_values=x.form.zero if x.form else 0)
        net.emit(code, [x.index, net.constant(pads)], padded, x.form, "PadOptions")
    elif code == "SLICE":
        sizes = [int(net.rng.integers(1, n + 1)) for n in shape]
        starts = [int(net.rng.integers(0, n - s + 1)) for n, s in zip(shape, sizes)]
        array = x.array[tuple(slice(a, a + s) for a, s in zip(starts, sizes))]
        net.emit(code, [x.index, net.ints(*starts), net.ints(*sizes)], array, x.form, "SliceOptions")
    else:
        array = x.array.max(-1, keepdims=True)
        net.emit(code, [x.index, net.ints(rank - 1)], array, x.form, "ReducerOptions", keep_dims=True)
    return True


def resize(net: Net) -> bool:
    x = net.image()
    if not x or net.dtype == "uint8" or not x.form:
        return False
    size = [int(n) for n in net.rng.integers(1, 14, 2)]
    align, half = net.draw((False, False), (True, False), (False, True))
    array = ta.resize(x.array, size, align, half)
    more = {"align_corners": align, "half_pixel_centers": half}
    net.emit("RESIZE_BILINEAR", [x.index, net.ints(*size)], array, x.form, "ResizeBilinearOptions", **more)
    return True


def requantise(net: Net) -> bool:
    """Adds a QUANTIZE from integers to integers, or a DEQUANTIZE followed by a QUANTIZE."""
    x = net.pick()
    if not x or not x.form:
        return False
    y = net.form_of(x.real)
    assert y is not None
    if net.draw(0, 1) or net.dtype == "uint8":
        real = ta.dequantise(x.array, x.form)
        net.emit("DEQUANTIZE", [x.index], real, None, "DequantizeOptions")
        net.emit("QUANTIZE", [net.values[-1].index], ta.quantise(real, y), y, "QuantizeOptions")
    else:
        net.emit("QUANTIZE", [x.index], ta.requantise(x.array, x.form, y), y, "QuantizeOptions")
    return True


OPS = [conv] * 4 + [depthwise] * 3 + [binary] * 4 + [fully_connected, pool, reduce, move, table] * 2
OPS += [transpose_conv, batch_matmul, relu, leaky_relu, prelu, softmax, extremum, concatenation, resize, requantise]


def make_network(seed: int) -> tuple[Net, list[Tensor]]:
    """Returns the network of a seed and its outputs."""
    net = Net(seed)
    steps = int(net.rng.integers(1, 7))
    for _ in range(200):
        if len(net.operators) >= steps or net.values[-1].array.size > MAX_ELEMENTS:
            break
        op = OPS[int(net.rng.integers(len(OPS)))]
        op(net)
    last = [x for x in net.values[1:] if x.index not in net.used or net.rng.random() < 0.2]
    return net, last


def run_litert(path: Path, net: Net) -> list[np.ndarray] | None:
    """Returns the outputs of LiteRT's reference kernels, or None if it is not installed."""
    try:
        from ai_edge_litert import interpreter
    except ImportError:
        return None
    kernels = interpreter.OpResolverType.BUILTIN_REF
    model = interpreter.Interpreter(
        str(path), experimental_op_resolver_type=kernels, experimental_preserve_all_tensors=True
    )
    model.allocate_tensors()
    model.set_tensor(model.get_input_details()[0]["index"], given(net))
    model.invoke()
    return [model.get_tensor(entry["index"]) for entry in model.get_output_details()]


def given(net: Net) -> np.ndarray:
    return net.input.array.astype(net.dtype or np.float32)


def compare(stage: str, net: Net, outputs: Sequence[Tensor], got: Sequence[np.ndarray]) -> None:
    for want, array in zip(outputs, got, strict=True):
        if array.shape != want.shape:
            raise StageError(stage, f"t{want.index} is {array.shape}, expected {want.shape}; {net.operators}")
        if want.form:
            wrong = np.argwhere(array.astype(np.int64) != want.array)
        else:
            limit = 1e-4 * max(float(np.abs(want.array).max(initial=0)), 1e-3)
            wrong = np.argwhere(~(np.abs(array - want.array) <= limit))
        if len(wrong):
            at = tuple(map(int, wrong[0]))
            raise StageError(
                stage,
                f"t{want.index} {want.shape} of {net.kind}: {len(wrong)} elements differ, first at {at}: {array[at]}, "
                f"expected {want.array[at]}; {net.operators}",
            )


def check(compiler: Compiler, seed: int, isa: str, folder: Path) -> None:
    net, outputs = make_network(seed)
    if not outputs:
        return
    path, mlir = folder / "model.tflite", folder / "model_top.mlir"
    net.model.write(path, [net.input.index], [x.index for x in outputs])
    names = [f"t{x.index}" for x in outputs]
    if net.kind != "hybrid":  # LiteRT rounds activations before it multiplies them by quantised weights
        theirs = run_litert(path, net)
        if theirs is not None:
            compare("litert", net, outputs, theirs)
    compiler("import", "import", "--onnx", path, "--output", mlir)
    inputs = {f"t{net.input.index}": given(net)}
    reference = run_reference(compiler, mlir, inputs)
    compare("reference", net, outputs, [reference[name] for name in names])
    got = run_bmodel(deploy(compiler, mlir, isa), inputs)
    compare(isa, net, outputs, [got[name] for name in names])


def run_seed(seed: int, isa: str, keep: Path | None = None) -> str:
    return seed_runner.run_in_folder(check, "tflite", seed, isa, keep)


def run_seeds(seeds: Sequence[int], jobs: int, isa: str | None = None, keep: Path | None = None) -> Iterator[str]:
    """Returns run_seed's results for many seeds. Without `isa` the variants alternate."""
    return seed_runner.map_seeds(run_seed, VARIANTS, seeds, jobs, isa, keep)


if __name__ == "__main__":
    sys.exit(seed_runner.report_faults(run_seed, VARIANTS, seed_runner.parse_arguments(__doc__, (*VARIANTS, *NPUS))))
