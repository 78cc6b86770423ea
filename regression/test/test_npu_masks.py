# SPDX-License-Identifier: Apache-2.0
"""Tests masks, positions and indices as exporters write them: the NPU computes them with the bits of x86, or the tools
report why it does not."""
from __future__ import annotations

from pathlib import Path
from typing import Any, Callable

import numpy as np
import pytest
from conftest import calibrate, check, run_tool, samples
from onnx import TensorProto, helper, numpy_helper
from small_models import save, tensor
from test_npu import CHIPS, deploy
from test_npu_host import outputs

LENGTH, SIZE = 16, 32
LEAST = np.float32(np.finfo(np.float32).min)


class Graph:
    """A graph whose nodes are named after their results; arrays among the operands become initializers."""

    def __init__(self) -> None:
        self.nodes: list[Any] = []
        self.inputs: list[Any] = []
        self.constants: list[Any] = []
        self.random = np.random.default_rng(0)

    def input(self, name: str, *shape: int, kind: int = TensorProto.FLOAT) -> str:
        self.inputs.append(tensor(name, shape, kind))
        return name

    def constant(self, value: Any) -> str:
        name = f"constant_{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.asarray(value), name))
        return name

    def ints(self, *values: int) -> str:
        return self.constant(np.array(values, np.int64))

    def number(self, value: int) -> str:
        return self.constant(np.int64(value))

    def weights(self, *shape: int) -> str:
        values = self.random.standard_normal(shape) / np.sqrt(np.prod(shape) / shape[-1])
        return self.constant(values.astype(np.float32))

    def __call__(self, kind: str, *operands: str, **attributes: Any) -> str:
        name = f"{kind}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, operands, [name], name=name, **attributes))
        return name

    def attend(self, x: str, mask: str | None = None) -> str:
        """Builds self-attention with four heads."""

        def heads(perm: tuple[int, ...]) -> str:
            split = self("Reshape", self("MatMul", x, self.weights(SIZE, SIZE)), self.ints(1, LENGTH, 4, SIZE // 4))
            return self("Transpose", split, perm=perm)

        scores = self("MatMul", heads((0, 2, 1, 3)), heads((0, 2, 3, 1)))
        scores = self("Add", scores, mask) if mask else scores
        result = self("MatMul", self("Softmax", scores, axis=-1), heads((0, 2, 1, 3)))
        return self("Reshape", self("Transpose", result, perm=(0, 2, 1, 3)), self.ints(1, LENGTH, SIZE))

    def save(self, path: Path, result: str) -> Path:
        self.nodes.append(helper.make_node("Identity", [result], ["y"], name="y"))
        return save(path, self.nodes, self.inputs, [tensor("y", [])], self.constants, opset=17)


def positions(g: Graph, x: str) -> str:
    length = g("Gather", g("Shape", x), g.number(1), axis=0)
    return g("Range", g.number(0), length, g.number(1))


def causal(g: Graph) -> str:
    """Builds a causal mask from sizes alone."""
    x = g.input("x", 1, LENGTH, SIZE)
    at = positions(g, x)
    sees = g("LessOrEqual", g("Unsqueeze", at, g.ints(0)), g("Unsqueeze", at, g.ints(1)))
    mask = g("Where", sees, g.constant(np.float32(0)), g.constant(LEAST))
    return g.attend(x, g("Expand", g("Unsqueeze", mask, g.ints(0, 1)), g.ints(1, 1, LENGTH, LENGTH)))


def additive(g: Graph) -> str:
    """Builds the mask (1 - mask) * least, like BERT."""
    x, mask = g.input("x", 1, LENGTH, SIZE), g.input("mask", 1, LENGTH, kind=TensorProto.INT64)
    given = g("Cast", g("Unsqueeze", mask, g.ints(1, 2)), to=TensorProto.FLOAT)
    return g.attend(x, g("Mul", g("Sub", g.constant(np.float32(1)), given), g.constant(LEAST)))


def compared(g: Graph) -> str:
    x, mask = g.input("x", 1, LENGTH, SIZE), g.input("mask", 1, LENGTH, kind=TensorProto.INT64)
    isPad = g("Equal", g("Unsqueeze", mask, g.ints(1, 2)), g.number(0))
    return g.attend(x, g("Where", isPad, g.constant(LEAST), g.constant(np.float32(0))))


def gathered(g: Graph) -> str:
    """Builds the conjunction of a causal mask and of an input mask that is gathered by (batch, position)."""
    x, mask = g.input("x", 1, LENGTH, SIZE), g.input("mask", 1, LENGTH, kind=TensorProto.INT64)
    at = positions(g, x)
    key, query = g("Unsqueeze", at, g.ints(0, 1, 2)), g("Unsqueeze", at, g.ints(0, 1, 3))
    batch = g("Unsqueeze", g("Range", g.number(0), g.number(1), g.number(1)), g.ints(1, 2, 3))
    shape = g("Shape", g("Add", batch, key))
    tuples = [g("Unsqueeze", g("Expand", each, shape), g.ints(-1)) for each in (batch, key)]
    given = g("GatherND", g("Cast", mask, to=TensorProto.BOOL), g("Concat", *tuples, axis=-1))
    sees = g("And", g("LessOrEqual", key, query), given)
    return g.attend(x, g("Where", sees, g.constant(np.float32(0)), g.constant(LEAST)))


def boxes(g: Graph) -> str:
    """Builds a convolution, two columns of whose result are replaced."""
    result = g("Conv", g.input("x", 1, 16, 8, 8), g.weights(16, 16, 3, 3), pads=[1, 1, 1, 1])
    rows = g("Transpose", g("Reshape", result, g.ints(1, 16, 64)), perm=[0, 2, 1])
    some = g("Sigmoid", g("Slice", rows, g.ints(1), g.ints(3), g.ints(2)))
    tuples = np.stack(np.meshgrid([0], np.arange(64), [1, 2], indexing="ij"), -1)
    return g("MatMul", g("ScatterND", rows, g.constant(tuples), some), g.weights(16, 16))


def rows(g: Graph) -> str:
    result = g("Conv", g.input("x", 1, 16, 8, 8), g.weights(16, 16, 3, 3), pads=[1, 1, 1, 1])
    flat = g("Reshape", result, g.ints(1, 16, 64))
    index = g.constant(np.broadcast_to(np.array([3, 5, 7])[:, None], (1, 3, 64)))
    return g("Relu", g("ScatterElements", flat, index, g("Slice", flat, g.ints(0), g.ints(3), g.ints(1)), axis=1))


def counted(g: Graph) -> str:
    """Builds position ids that skip padding, like RoBERTa."""
    ids = g.input("ids", 1, LENGTH, kind=TensorProto.INT64)
    some = g("Cast", g("Not", g("Equal", ids, g.number(1))), to=TensorProto.INT64)
    at = g("Add", g("Mul", g("CumSum", some, g.number(1)), some), g.number(1))
    tables = g.weights(50, SIZE), g.weights(LENGTH + 2, SIZE)
    return g.attend(g("Add", g("Gather", tables[0], ids), g("Gather", tables[1], at)))


def summed(g: Graph) -> str:
    result = g("Conv", g.input("x", 1, 16, 8, 8), g.weights(16, 16, 3, 3), pads=[1, 1, 1, 1])
    return g("Conv", g("CumSum", result, g.number(3)), g.weights(16, 16, 1, 1))


def sampled(g: Graph) -> str:
    """Builds samples of a picture at computed places, some of which are outside."""
    result = g("Conv", g.input("x", 1, 16, 8, 8), g.weights(16, 16, 3, 3), pads=[1, 1, 1, 1])
    return g("Conv", g("GridSample", result, g.input("grid", 1, 12, 9, 2)), g.weights(16, 16, 1, 1))


def cached(g: Graph) -> str:
    """Writes a row into a cache, at the position that an input gives."""
    result = g("MatMul", g.input("x", 1, 1, SIZE), g.weights(SIZE, SIZE))
    at = g("Concat", g.ints(0), g.input("mask", 1, kind=TensorProto.INT64), axis=0)
    cache = g("ScatterND", g.input("cache", 1, LENGTH, SIZE), g("Reshape", at, g.ints(1, 1, 2)), result)
    return g("MatMul", cache, g.weights(SIZE, SIZE))


NETWORKS = [causal, additive, compared, gathered, boxes, rows, counted, summed, sampled, cached]


@pytest.mark.parametrize("network", NETWORKS, ids=lambda each: each.__name__)
def test_all_runs_on_the_npu(network: Callable[[Graph], str], tmp_path: Path) -> None:
    g = Graph()
    model, top = g.save(tmp_path / "m.onnx", network(g)), tmp_path / "m_top.mlir"
    check(run_tool("model_transform", "--model_name", "m", "--model_def", model, "--mlir", top, "--not_inference"))
    table, specs = calibrate(top, tmp_path)
    deploy(top, table, "x86", tmp_path / "x86.bmodel")
    for chip in CHIPS:
        info = deploy(top, table, chip, tmp_path / "m.bmodel")
        rejected = [op for op in info["partition"]["host_ops"] if op["refused"]] if "partition" in info else []
        if chip != "npu-edge":  # which multiplies no floats
            assert not rejected, rejected
        for seed in range(2):
            given = samples(specs, seed)
            if "mask" in given and seed == 1:  # whatever its numbers are
                numbers = np.array([np.iinfo(np.int64).min, 1 << 32, -(1 << 40) - 3])
                given["mask"].reshape(-1)[:3] = numbers[: given["mask"].size]
            want, got = outputs(tmp_path / "x86.bmodel", given), outputs(tmp_path / "m.bmodel", given)
            assert want["y"].tobytes() == got["y"].tobytes(), f"{chip} differs from x86"
