# SPDX-License-Identifier: Apache-2.0
"""Check quantised operators and products with integer results against numpy: qlinear.py make|check
FOLDER."""
import pathlib
import sys

import numpy as np
from onnx import TensorProto, helper

import models
from tessera import safetensors_io

RNG = np.random.default_rng(11)
MICROSOFT = "com.microsoft"
TYPES = {
    np.dtype(np.int8): TensorProto.INT8,
    np.dtype(np.uint8): TensorProto.UINT8,
    np.dtype(np.int32): TensorProto.INT32,
    np.dtype(np.float32): TensorProto.FLOAT,
}


class Model:
    """Nodes on graph inputs and constants, and the expected value of each output."""

    def __init__(self):
        self.nodes, self.constants, self.inputs, self.expected = [], [], {}, {}

    def constant(self, value):
        name = f"c{len(self.constants)}"
        self.constants.append(models.constant(name, np.asarray(value)))
        return name

    def quantised(self, shape, dtype, scale, zero, constant=False):
        """Return the names of a quantised operand and its real values."""
        limits = np.iinfo(dtype)
        values = RNG.integers(limits.min, limits.max + 1, shape).astype(dtype)
        scale, zero = np.asarray(scale, np.float32), np.asarray(zero, dtype)
        name = self.constant(values) if constant else f"x{len(self.inputs)}"
        if not constant:
            self.inputs[name] = values
        align = [-1 if scale.ndim and i == 0 else 1 for i in range(len(shape))]
        real = (values - zero.astype(np.int64).reshape(align)) * scale.astype(np.float64).reshape(align)
        return [name, self.constant(scale), self.constant(zero)], real

    def node(self, op, inputs, result, domain="", **attributes):
        output = f"{op}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, inputs, [output], output, domain=domain, **attributes))
        self.expected[output] = result

    def result(self, real, dtype, scale, zero):
        """Add scale and zero point of a result, and return their names and the expected integers."""
        limits = np.iinfo(dtype)
        integers = np.clip(np.rint(real / np.float32(scale)) + zero, limits.min, limits.max).astype(dtype)
        return [self.constant(np.float32(scale)), self.constant(np.asarray(zero, dtype))], integers


def convolve(x, w, pad):
    """Compute a convolution with stride 1 and one group."""
    x = np.pad(x, [(0, 0), (0, 0), (pad, pad), (pad, pad)])
    windows = np.lib.stride_tricks.sliding_window_view(x, w.shape[2:], (2, 3))
    return np.einsum("nchwij,ocij->nohw", windows, w)


def add_products(m):
    for dtype, weight_zero in ((np.uint8, 0), (np.int8, 3)):
        x, rx = m.quantised((1, 3, 5, 5), dtype, 0.02, 7)
        w, rw = m.quantised((4, 3, 3, 3), np.int8, [0.01, 0.02, 0.03, 0.04], [weight_zero] * 4, constant=True)
        bias = RNG.integers(-3000, 3000, 4).astype(np.int32)
        real = convolve(rx, rw, 1) + (bias * 0.02 * np.array([0.01, 0.02, 0.03, 0.04])).reshape(1, 4, 1, 1)
        y, integers = m.result(real, dtype, 0.11, 9)
        m.node("QLinearConv", [*x, *w, *y, m.constant(bias)], integers, pads=[1, 1, 1, 1])
    a, ra = m.quantised((2, 4, 7), np.uint8, 0.03, 130)
    b, rb = m.quantised((7, 5), np.int8, 0.02, -4, constant=True)
    y, integers = m.result(ra @ rb, np.uint8, 0.09, 120)
    m.node("QLinearMatMul", [*a, *b, *y], integers)
    a, ra = m.quantised((4, 7), np.int8, 0.03, 3)
    b, rb = m.quantised((5, 7), np.int8, [0.01, 0.02, 0.03, 0.04, 0.05], [0] * 5, constant=True)
    bias = RNG.integers(-500, 500, 5).astype(np.int32)
    real = 0.5 * (ra @ rb.T + bias * 0.03 * np.array([0.01, 0.02, 0.03, 0.04, 0.05]))
    y, integers = m.result(real, np.int8, 0.07, -2)
    m.node("QGemm", [*a, *b, m.constant(bias), *y], integers, MICROSOFT, transB=1, alpha=0.5)
    m.node("QGemm", [*a, *b, m.constant(bias)], real, MICROSOFT, transB=1, alpha=0.5)


def add_elementwise(m):
    a, ra = m.quantised((2, 3, 4), np.uint8, 0.03, 100)
    b, rb = m.quantised((3, 1), np.uint8, 0.05, 20)
    for op, real in (("QLinearAdd", ra + rb), ("QLinearMul", ra * rb)):
        y, integers = m.result(real, np.uint8, 0.06, 110)
        m.node(op, [*a, *b, *y], integers, MICROSOFT)
    x, rx = m.quantised((3, 7), np.int8, 0.04, -10)
    y, integers = m.result(1 / (1 + np.exp(-rx)), np.int8, 1 / 256, -128)
    m.node("QLinearSigmoid", [*x, *y], integers, MICROSOFT)
    y, integers = m.result(np.where(rx < 0, rx * 0.3, rx), np.int8, 0.05, 0)
    m.node("QLinearLeakyRelu", [x[0], x[1], x[2], y[0]], integers, MICROSOFT, alpha=0.3)
    power = np.exp(rx - rx.max(1, keepdims=True))
    y, integers = m.result(power / power.sum(1, keepdims=True), np.int8, 1 / 256, -128)
    m.node("QLinearSoftmax", [*x, *y], integers, MICROSOFT, axis=-1, opset=13)
    y, integers = m.result(np.where(ra > 0, ra, rb), np.uint8, 0.05, 90)
    m.inputs["cond"] = ra > 0
    m.node("QLinearWhere", ["cond", *a, *b, *y], integers, MICROSOFT)
    y, integers = m.result(np.concatenate([ra, np.broadcast_to(rb, (2, 3, 1))], 2), np.uint8, 0.04, 80)
    m.nodes.append(helper.make_node("Expand", [b[0], m.constant(np.array([2, 3, 1]))], ["wide"]))
    m.node("QLinearConcat", [*y, *a, "wide", *b[1:]], integers, MICROSOFT, axis=2)


def add_means(m):
    x, rx = m.quantised((1, 5, 6, 6), np.uint8, 0.02, 40)
    y, integers = m.result(rx.mean((2, 3), keepdims=True), np.uint8, 0.01, 30)
    m.node("QLinearGlobalAveragePool", [*x, *y], integers, MICROSOFT)
    m.node("QLinearReduceMean", [*x, *y], integers, MICROSOFT, axes=[-1, 2])
    windows = rx.reshape(1, 5, 3, 2, 3, 2).mean((3, 5))
    y, integers = m.result(windows, np.uint8, 0.015, 30)
    m.node("QLinearAveragePool", [*x, *y], integers, MICROSOFT, kernel_shape=[2, 2], strides=[2, 2])


def add_integer_results(m):
    """Add products whose sums exceed 2^24 and are not exact in single precision."""
    a, b = RNG.integers(200, 256, (3, 1100)).astype(np.uint8), RNG.integers(200, 256, (1100, 4)).astype(np.uint8)
    m.inputs["a"] = a
    wide = a.astype(np.int32) @ b.astype(np.int32)
    assert wide.min() > 1 << 24
    m.node("MatMulInteger", ["a", m.constant(b)], wide)
    m.node(
        "MatMulInteger",
        ["a", m.constant(b), m.constant(np.uint8(7)), m.constant(np.array([1, 2, 3, 200], np.uint8))],
        (a.astype(np.int32) - 7) @ (b.astype(np.int32) - [1, 2, 3, 200]).astype(np.int32),
    )
    x, w = RNG.integers(0, 256, (1, 2, 5, 5)).astype(np.uint8), RNG.integers(-128, 128, (3, 2, 3, 3)).astype(np.int8)
    m.inputs |= {"x": x, "zero": np.array(17, np.uint8)}
    m.node(
        "ConvInteger",
        ["x", m.constant(w), "zero"],
        convolve(x.astype(np.int32) - 17, w.astype(np.int32), 1).astype(np.int32),
        pads=[1, 1, 1, 1],
    )
    bias, scale = RNG.standard_normal(4).astype(np.float32), np.array([0.01, 0.02, 0.03, 0.04], np.float32)
    m.node(
        "MatMulIntegerToFloat",
        ["a", m.constant(b), m.constant(np.float32(0.5)), m.constant(scale), "", "", m.constant(bias)],
        (wide * (0.5 * scale.astype(np.float64)) + bias),
        MICROSOFT,
    )
    real = RNG.standard_normal((3, 9)).astype(np.float32)
    weights, zero = RNG.integers(0, 256, (9, 4)).astype(np.uint8), np.array([120, 130, 128, 0], np.uint8)
    m.inputs["real"] = real
    low, high = min(real.min(), 0), max(real.max(), 0)
    step = np.float32((high - low) / np.float32(255))
    point = np.clip(np.rint(-low / step), 0, 255)
    integers = np.clip(np.rint(real / step) + point, 0, 255)
    sums = (integers - point) @ (weights - zero.astype(np.float64))
    m.node(
        "DynamicQuantizeMatMul",
        ["real", m.constant(weights), m.constant(scale), m.constant(zero), m.constant(bias)],
        sums * (float(step) * scale) + bias,
        MICROSOFT,
    )


def build():
    m = Model()
    for add in (add_products, add_elementwise, add_means, add_integer_results):
        add(m)
    return m


def main():
    mode, folder = sys.argv[1], pathlib.Path(sys.argv[2])
    m = build()
    if mode == "make":
        value = helper.make_tensor_value_info
        inputs = [value(k, TYPES.get(v.dtype, TensorProto.BOOL), v.shape) for k, v in m.inputs.items()]
        dtype = lambda v: TensorProto.FLOAT if v.dtype.kind == "f" else TYPES[v.dtype]
        outputs = [value(k, dtype(v), v.shape) for k, v in m.expected.items()]
        graph = helper.make_graph(m.nodes, "g", inputs, outputs, m.constants)
        opsets = [helper.make_opsetid("", 13), helper.make_opsetid(MICROSOFT, 1)]
        (folder / "m.onnx").write_bytes(
            helper.make_model(graph, opset_imports=opsets, ir_version=7).SerializeToString()
        )
        safetensors_io.save(folder / "in.safetensors", m.inputs)
        return
    got = safetensors_io.load(folder / sys.argv[3])
    for name, want in m.expected.items():
        exact = want.dtype.kind != "f"
        same = np.array_equal(got[name], want) if exact else np.allclose(got[name], want, 1e-5, 1e-5)
        assert same and got[name].shape == want.shape, (name, got[name], want)
        assert not exact or len(np.unique(want)) > 3, name
    print(len(m.expected), "outputs agree")


main()
