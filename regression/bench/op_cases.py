# SPDX-License-Identifier: Apache-2.0
"""The models of op_sweep.py: one operator each, with sizes found in networks."""
from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Iterator, Mapping

import numpy as np
import onnx
from onnx import helper, numpy_helper, shape_inference
from onnx.mapping import NP_TYPE_TO_TENSOR_TYPE

OPSET = 17  # the newest that Debian's onnx knows


@dataclass(frozen=True)
class Input:
    """An input of random values in [low, high); `text` is its shape, such as "1x64x56x56"."""

    text: str
    dtype: Any = np.float32
    low: float = -2.0
    high: float = 2.0

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(map(int, self.text.split("x"))) if self.text else ()

    def sample(self, generator: np.random.Generator) -> np.ndarray:
        if self.dtype == np.bool_:
            return generator.random(self.shape) < 0.5
        drawn = generator.uniform(self.low, self.high, self.shape)
        return np.asarray(drawn if np.issubdtype(self.dtype, np.floating) else np.floor(drawn)).astype(self.dtype)


@dataclass(frozen=True)
class Case:
    """One operator. constants: its inputs that are part of the model, which follow `inputs`; None leaves one out."""

    family: str
    operator: str
    inputs: tuple[Input, ...]
    constants: tuple[np.ndarray | None, ...] = ()
    attributes: Mapping[str, Any] = field(default_factory=dict)
    outputs: int = 1

    @property
    def name(self) -> str:
        words = [self.operator]
        words += [
            f"{each.text}{'' if each.dtype is np.float32 else ':' + np.dtype(each.dtype).name}" for each in self.inputs
        ]
        words += ["c" + "x".join(map(str, each.shape)) for each in self.constants if each is not None and each.size > 8]
        words += ["=".join((key, "_".join(map(str, np.ravel(value))))) for key, value in self.attributes.items()]
        words += [
            "_".join(map(str, np.ravel(each))) for each in self.constants if each is not None and 0 < each.size <= 8
        ]
        return " ".join(words)

    def model(self) -> onnx.ModelProto:
        inputs = [f"x{i}" for i in range(len(self.inputs))]
        constants = {f"c{i}": each for i, each in enumerate(self.constants) if each is not None}
        given = [f"c{i}" if each is not None else "" for i, each in enumerate(self.constants)]
        outputs = [f"y{i}" for i in range(self.outputs)]
        node = helper.make_node(self.operator, [*inputs, *given], outputs, name="op", **self.attributes)
        graph = helper.make_graph(
            [node],
            "op",
            [
                helper.make_tensor_value_info(name, NP_TYPE_TO_TENSOR_TYPE[np.dtype(each.dtype)], each.shape)
                for name, each in zip(inputs, self.inputs)
            ],
            [helper.make_empty_tensor_value_info(name) for name in outputs],
            [numpy_helper.from_array(each, name) for name, each in constants.items()],
        )
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=8)
        return shape_inference.infer_shapes(model, strict_mode=True, data_prop=True)

    def sample(self, seed: int) -> dict[str, np.ndarray]:
        generator = np.random.default_rng(seed)
        return {f"x{i}": each.sample(generator) for i, each in enumerate(self.inputs)}


def _weights(text: str) -> np.ndarray:
    shape = Input(text).shape
    return (np.random.default_rng(1).standard_normal(shape) / np.sqrt(np.prod(shape[1:]))).astype(np.float32)


def _i64(*values: int) -> np.ndarray:
    return np.array(values, np.int64)


def unary() -> Iterator[Case]:
    slow = "Exp Log Tanh Sigmoid Erf Sqrt Softplus Elu HardSwish Sin Cos Pow Reciprocal".split()
    fast = "Relu LeakyRelu Abs Neg Floor Ceil Round Clip HardSigmoid Sign".split()
    for operator in (*slow, *fast):
        low = 0.01 if operator in ("Log", "Sqrt", "Pow", "Reciprocal") else -2.0
        constants = {"Pow": (np.float32(2.5),), "Clip": (np.float32(0), np.float32(1))}.get(operator, ())
        for text in ("64", "1x197x768", "1x64x112x112"):
            yield Case("unary", operator, (Input(text, low=low),), tuple(map(np.asarray, constants)))


def binary() -> Iterator[Case]:
    pairs = [("128", "128"), ("1x64x56x56", "1x64x56x56"), ("1x197x768", "768"), ("1x64x56x56", "1x64x1x1"),
             ("1x12x128x128", "1x1x1x128"), ("64x1", "1x512")]  # fmt: skip
    for operator in ("Add", "Mul", "Div", "Max"):
        for left, right in pairs:
            yield Case("binary", operator, (Input(left), Input(right, low=0.5)))
    for operator in ("Less", "Equal"):
        yield Case("binary", operator, (Input("1x64x56x56"), Input("1x64x56x56")))
    yield Case("binary", "Where", (Input("1x12x128x128", np.bool_), Input("1x12x128x128"), Input("1")))
    yield Case("binary", "Where", (Input("1x1x128x128", np.bool_), Input("1x12x128x128"), Input("1x12x128x128")))
    for dtype in (np.int32, np.int64):
        wide = Input("1x8400", dtype, -1000, 1000)
        for operator in ("Add", "Mul", "Div", "Mod", "Equal", "Min"):
            yield Case("integers", operator, (wide, Input("1x8400", dtype, 1, 40)))
    for operator in ("And", "Or", "Xor"):
        yield Case("integers", operator, (Input("256x256", np.bool_), Input("256x256", np.bool_)))
    yield Case("integers", "Mod", (Input("256x1024", np.int32, -1000, 1000), Input("1", np.int32, 7, 8)))
    yield Case("binary", "Mod", (Input("256x256"), Input("256x256", low=0.5)), attributes={"fmod": 1})


def reductions() -> Iterator[Case]:
    shapes = {"1x64x56x56": ((2, 3), (1,), (3,)), "1x197x768": ((2,), (1,)), "1x16x16x28x28": ((2, 3, 4),),
              "8x512": ((1,), (0,)), "1000x37": ((0,), (1,)), "1x12x128x128": ((3,), (1, 3))}  # fmt: skip
    for operator in ("ReduceMean", "ReduceMax", "ReduceSum", "ReduceL2", "ReduceProd"):
        for text, all_axes in shapes.items():
            if operator in ("ReduceL2", "ReduceProd") and len(text) > 10:
                continue
            for axes in all_axes:
                if operator == "ReduceSum":
                    yield Case("reduction", operator, (Input(text),), (_i64(*axes),))
                else:
                    yield Case("reduction", operator, (Input(text),), attributes={"axes": axes})
    for operator in ("ArgMax", "ArgMin"):
        for text, axis in (("1x1000", 1), ("1x80x8400", 1), ("1x8400x80", 2), ("1x21x128x128", 1), ("64x4096", 1)):
            yield Case("reduction", operator, (Input(text),), attributes={"axis": axis})
    for text, axis in (("1x1000", 1), ("64x4096", 1), ("1x197x768", 1), ("1x64x56x56", 3)):
        yield Case("reduction", "CumSum", (Input(text),), (np.array(axis, np.int64),))
    yield Case("reduction", "ReduceMax", (Input("64x4096", np.int64, -99, 99),), attributes={"axes": [1]})
    yield Case("reduction", "ReduceSum", (Input("64x4096", np.int32, -99, 99),), (_i64(1),))


def rows() -> Iterator[Case]:
    for operator in ("Softmax", "LogSoftmax"):
        for text, axis in (("1x1000", 1), ("12x128x128", 2), ("12x197x197", 2), ("1x21x64x64", 1), ("4096x16", 1)):
            yield Case("rows", operator, (Input(text),), attributes={"axis": axis})
    for text in ("1x16", "1x128x768", "1x197x768", "1x3136x96"):
        width = int(text.rsplit("x", 1)[1])
        ones = np.ones(width, np.float32)
        yield Case("rows", "LayerNormalization", (Input(text),), (ones, ones * 0.1), {"axis": -1})
    for text in ("1x64x56x56", "1x32x8x8"):
        ones = np.ones(Input(text).shape[1], np.float32)
        yield Case("rows", "InstanceNormalization", (Input(text),), (ones, ones))
        yield Case("rows", "BatchNormalization", (Input(text),), (ones, ones, ones, ones))
        yield Case("rows", "GlobalAveragePool", (Input(text),))
    yield Case("rows", "GlobalAveragePool", (Input("1x64x8x28x28"),))
    yield Case("rows", "LpNormalization", (Input("64x512"),), attributes={"axis": 1, "p": 2})
    for text, k in (("1x8400", 100), ("1x1000", 5), ("80x8400", 10), ("1x100000", 300), ("64x64", 8)):
        yield Case("rows", "TopK", (Input(text),), (_i64(k),), {"axis": -1}, 2)


def moves() -> Iterator[Case]:
    for text, perm in (("1x197x12x64", (0, 2, 1, 3)), ("1x12x197x64", (0, 1, 3, 2)), ("1x64x56x56", (0, 2, 3, 1)),
                       ("1x56x56x64", (0, 3, 1, 2)), ("512x512", (1, 0)), ("1x3x224x224", (0, 2, 3, 1)),
                       ("8x8", (1, 0)), ("1x8x7x8x7x96", (0, 1, 3, 2, 4, 5)), ("1x84x8400", (0, 2, 1))):  # fmt: skip
        yield Case("moves", "Transpose", (Input(text),), attributes={"perm": perm})
        if len(text) < 12:
            yield Case("moves", "Transpose", (Input(text, np.int8, -99, 99),), attributes={"perm": perm})
    for text, axis in (("1x64x56x56", 1), ("1x197x768", 2), ("1x16", 1), ("1x8400x4", 2)):
        yield Case("moves", "Concat", (Input(text), Input(text)), attributes={"axis": axis})
        yield Case("moves", "Split", (Input(text),), attributes={"axis": axis}, outputs=2)
    for text, ends in (("1x64x56x56", ((0, 0, 0, 1), (1, 64, 56, 56), (0, 1, 2, 3), (1, 1, 1, 2))),
                       ("1x197x768", ((0, 1, 0), (1, 197, 768), (0, 1, 2), (1, 1, 1))),
                       ("1x3x640x640", ((0, 0, 0, 0), (1, 3, 640, 640), (0, 1, 2, 3), (1, 1, 2, 2)))):  # fmt: skip
        yield Case("moves", "Slice", (Input(text),), tuple(_i64(*each) for each in ends))
    for text, pads in (("1x64x56x56", (0, 0, 1, 1, 0, 0, 1, 1)), ("1x197x768", (0, 0, 0, 0, 3, 0))):
        for mode in ("constant", "reflect", "edge"):
            yield Case("moves", "Pad", (Input(text),), (_i64(*pads),), {"mode": mode})
    yield Case("moves", "Tile", (Input("1x64x28x28"),), (_i64(1, 1, 2, 2),))
    yield Case("moves", "Expand", (Input("1x64x1x1"),), (_i64(1, 64, 56, 56),))
    yield Case("moves", "DepthToSpace", (Input("1x64x56x56"),), attributes={"blocksize": 2})
    yield Case("moves", "SpaceToDepth", (Input("1x16x112x112"),), attributes={"blocksize": 2})
    yield Case("moves", "Reshape", (Input("1x197x768"),), (_i64(197, 12, 64),))
    yield Case("moves", "Trilu", (Input("1x12x128x128"),))
    yield Case("moves", "OneHot", (Input("256", np.int64, 0, 100),), (_i64(100), np.array([0, 1], np.float32)))
    for source, target in ((np.float32, np.int32), (np.float32, np.uint8), (np.int64, np.float32), (np.int64, np.int32),
                           (np.float32, np.float16), (np.float16, np.float32), (np.bool_, np.float32),
                           (np.uint8, np.float32), (np.float32, np.bool_), (np.int32, np.int64)):  # fmt: skip
        for text in ("128", "1x3x224x224"):
            to = NP_TYPE_TO_TENSOR_TYPE[np.dtype(target)]
            yield Case("casts", "Cast", (Input(text, source, 0, 99),), attributes={"to": to})


def gathers() -> Iterator[Case]:
    for text, count, axis in (
        ("30522x768", "1x128", 0),
        ("1x197x768", "1", 1),
        ("1x84x8400", "300", 2),
        ("64x16", "8", 1),
    ):
        size = Input(text).shape[axis]
        yield Case("gathers", "Gather", (Input(text), Input(count, np.int64, 0, size)), attributes={"axis": axis})
    for text, indices, axis in (("1x8400x4", "1x300x4", 1), ("12x128x128", "12x128x128", 2), ("64x64", "8x64", 0)):
        size = Input(text).shape[axis]
        yield Case(
            "gathers", "GatherElements", (Input(text), Input(indices, np.int64, 0, size)), attributes={"axis": axis}
        )
    yield Case("gathers", "GatherND", (Input("64x64x32"), Input("500x2", np.int64, 0, 64)))
    yield Case(
        "gathers",
        "ScatterElements",
        (Input("64x512"), Input("64x32", np.int64, 0, 512), Input("64x32")),
        attributes={"axis": 1},
    )
    yield Case("gathers", "ScatterND", (Input("1000x64"), Input("50x1", np.int64, 0, 1000), Input("50x64")))
    for mode, scale in (("nearest", 2.0), ("linear", 2.0), ("cubic", 2.0), ("linear", 0.5)):
        scales = np.array([1, 1, scale, scale], np.float32)
        yield Case("gathers", "Resize", (Input("1x64x40x40"),), (None, scales), {"mode": mode})
    yield Case("gathers", "GridSample", (Input("1x32x64x64"), Input("1x64x64x2", low=-1, high=1)))


def windows() -> Iterator[Case]:
    for operator in ("MaxPool", "AveragePool"):
        for text, kernel, stride in (("1x64x112x112", 3, 2), ("1x256x14x14", 3, 1), ("1x16x8x8", 2, 2)):
            pads = [1] * 4 if kernel == 3 else [0] * 4
            attributes = {"kernel_shape": [kernel] * 2, "strides": [stride] * 2, "pads": pads}
            yield Case("windows", operator, (Input(text),), attributes=attributes)
    for text, weights, pads, group in (
        ("1x64x56x56", "64x64x3x3", 1, 1), ("1x256x14x14", "256x256x3x3", 1, 1), ("1x256x14x14", "1024x256x1x1", 0, 1),
        ("1x96x56x56", "96x1x3x3", 1, 96), ("1x3x224x224", "32x3x3x3", 1, 1), ("1x8x8x8", "8x8x3x3", 1, 1),
        ("1x256x14x14", "256x1x5x5", 2, 256), ("1x64x28x28", "64x32x3x3", 1, 2),
    ):  # fmt: skip
        attributes = {"pads": [pads] * 4, "group": group}
        yield Case("windows", "Conv", (Input(text),), (_weights(weights),), attributes)
    yield Case("windows", "Conv", (Input("1x80x400"),), (_weights("256x80x3"),), {"pads": [1, 1]})
    yield Case("windows", "Conv", (Input("1x16x8x28x28"),), (_weights("32x16x3x3x3"),), {"pads": [1] * 6})
    yield Case("windows", "ConvTranspose", (Input("1x64x28x28"),), (_weights("64x32x2x2"),), {"strides": [2, 2]})
    yield Case(
        "windows",
        "ConvTranspose",
        (Input("1x64x28x28"),),
        (_weights("64x32x4x4"),),
        {"strides": [2, 2], "pads": [1] * 4},
    )


def products() -> Iterator[Case]:
    for left, right in (("1x64", "64x10"), ("1x768", "768x3072"), ("128x768", "768x3072"), ("197x768", "768x768"),
                        ("4x9", "9x4"), ("1x2048", "2048x1000"), ("1024x32", "32x64")):  # fmt: skip
        yield Case("products", "MatMul", (Input(left),), (_weights(right),))
        yield Case("products", "MatMul", (Input(left), Input(right)))
    for left, right in (("12x128x64", "12x64x128"), ("12x128x128", "12x128x64"), ("1x12x1x64", "1x12x64x512"),
                        ("8x49x32", "8x32x49"), ("512x512", "512x512"), ("512x512", "512x1")):  # fmt: skip
        yield Case("products", "MatMul", (Input(left), Input(right)))
    yield Case("products", "Gemm", (Input("8x512"),), (_weights("1000x512"), _weights("1000")), {"transB": 1})
    yield Case("products", "Gemm", (Input("64x256"), Input("64x256")), attributes={"transB": 1})
    for left, right in (("128x768", "768x768"), ("1x768", "768x3072")):
        zero = np.zeros((), np.uint8)
        weights = np.random.default_rng(1).integers(-127, 128, Input(right).shape).astype(np.int8)
        yield Case("products", "MatMulInteger", (Input(left, np.uint8, 0, 255),), (weights, zero))


def bytes_() -> Iterator[Case]:
    scale = np.float32(0.03)
    for text in ("64", "1x64x56x56", "1x197x768"):
        yield Case("int8", "QuantizeLinear", (Input(text),), (np.asarray(scale), np.zeros((), np.int8)))
        yield Case(
            "int8", "DequantizeLinear", (Input(text, np.int8, -128, 128),), (np.asarray(scale), np.zeros((), np.int8))
        )
    yield Case("int8", "DynamicQuantizeLinear", (Input("128x768"),), outputs=3)


def all_cases() -> list[Case]:
    makers = (unary, binary, reductions, rows, moves, gathers, windows, products, bytes_)
    return [case for maker in makers for case in maker()]
