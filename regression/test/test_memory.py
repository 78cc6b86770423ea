# SPDX-License-Identifier: Apache-2.0
"""Values that share bytes: views, concatenations and results in place, outputs that are other tensors too.

Each graph is small, but has every tensor of the interesting kinds as an output or behind one, so a value that was overwritten
too early changes an answer; `tessera run` compares them all with onnxruntime or the Top reference."""
from __future__ import annotations

from pathlib import Path
from typing import Callable

import numpy as np
import pytest
from conftest import check, run_tool
from onnx import helper, numpy_helper
from small_models import save, tensor

node = helper.make_node


def ints(name: str, *values: int):
    return numpy_helper.from_array(np.array(values, np.int64), name)


def weights(name: str, *shape: int):
    values = np.random.default_rng(0).normal(size=shape).astype(np.float32) * 0.1
    return numpy_helper.from_array(values, name)


def aliased_outputs(path: Path) -> Path:
    """An output that is an input, one value as two outputs, a value and its reshape."""
    nodes = [node("Transpose", ["x"], ["t"], perm=[1, 0]), node("Transpose", ["t"], ["y0"], perm=[1, 0]),
             node("Relu", ["x"], ["y1"]), node("Identity", ["y1"], ["y2"]), node("Exp", ["y1"], ["y3"]),
             node("Flatten", ["y3"], ["y4"])]
    return save(path, nodes, [tensor("x", [16, 32])], [tensor(f"y{i}", [16, 32]) for i in range(5)])


def concatenations(path: Path) -> Path:
    """Parts that are outputs, inputs or come twice; concatenations in concatenations; a slice across parts."""
    nodes = [node("Exp", ["x"], ["a"]), node("Neg", ["a"], ["b"]), node("Concat", ["a", "b", "x", "b"], ["c"], axis=0),
             node("Concat", ["a", "a"], ["d"], axis=0), node("Slice", ["c", "s", "e", "z"], ["f"]),
             node("Relu", ["f"], ["g"]), node("Concat", ["c", "d"], ["k"], axis=0), node("Sigmoid", ["k"], ["m"])]
    outputs = [("b", 16), ("c", 64), ("d", 32), ("f", 32), ("g", 32), ("m", 96)]
    return save(path, nodes, [tensor("x", [16, 32])], [tensor(n, [rows, 32]) for n, rows in outputs],
                [ints("s", 8), ints("e", 40), ints("z", 0)])


def dense_block(path: Path) -> Path:
    """Channel concatenations of convolutions, residuals that could be overwritten and ones that could not."""
    nodes = [node("Conv", ["x", "w0"], ["a"], pads=[1] * 4), node("Sigmoid", ["a"], ["sa"]), node("Mul", ["a", "sa"], ["a1"]),
             node("Conv", ["a1", "w1"], ["b"], pads=[1] * 4), node("Relu", ["b"], ["b1"]),
             node("Concat", ["a1", "b1"], ["c"], axis=1), node("Conv", ["c", "w2"], ["d"], pads=[1] * 4),
             node("Add", ["d", "c"], ["d1"]), node("Concat", ["c", "d1", "b1"], ["e"], axis=1),
             node("Conv", ["e", "w3"], ["f"]), node("Add", ["f", "f"], ["f1"]), node("Add", ["f1", "a1"], ["g"]),
             node("Concat", ["g", "o"], ["q"], axis=1), node("MaxPool", ["q"], ["p"], kernel_shape=[2, 2], strides=[2, 2]),
             node("Split", ["p"], ["p0", "p1"], axis=1), node("Mul", ["p0", "p1"], ["y"])]
    return save(path, nodes, [tensor("x", [1, 3, 20, 20]), tensor("o", [1, 32, 20, 20])],
                [tensor("y", [1, 32, 10, 10]), tensor("c", [1, 64, 20, 20])],
                [weights("w0", 32, 3, 3, 3), weights("w1", 32, 32, 3, 3), weights("w2", 64, 64, 3, 3), weights("w3", 32, 160, 1, 1)])


def odd_channels(path: Path) -> Path:
    """Channels that fill no block, two images, a squeeze-and-excite factor, a padded slice with negative steps."""
    nodes = [node("Conv", ["x", "w0"], ["a"], pads=[1] * 4), node("Tanh", ["a"], ["a1"]),
             node("Conv", ["x", "w1"], ["b"], pads=[1] * 4), node("Concat", ["a1", "b"], ["c"], axis=1),
             node("Conv", ["c", "w2"], ["d"]), node("Add", ["d", "b"], ["e"]), node("GlobalAveragePool", ["e"], ["p"]),
             node("Sigmoid", ["p"], ["s"]), node("Mul", ["e", "s"], ["y"]), node("Pad", ["y", "pads"], ["y2"]),
             node("Slice", ["y2", "starts", "ends", "axes", "steps"], ["y3"])]
    return save(path, nodes, [tensor("x", [2, 5, 9, 9])], [tensor("y3", [2, 7, 5, 5])],
                [weights("w0", 20, 5, 3, 3), weights("w1", 7, 5, 3, 3), weights("w2", 7, 27, 1, 1),
                 ints("pads", 0, 0, 1, 1, 0, 0, 1, 1), ints("starts", 10, 9), ints("ends", -100, -100), ints("axes", 2, 3),
                 ints("steps", -2, -2)])


def attention_like(path: Path) -> Path:
    """Maps behind reshapes and transpositions of products."""
    nodes = [node("MatMul", ["x", "w"], ["a"]), node("Reshape", ["a", "heads"], ["r"]), node("Add", ["r", "bias"], ["a2"]),
             node("Relu", ["a2"], ["r2"]), node("Add", ["r2", "z"], ["s"]), node("Transpose", ["s"], ["t"], perm=[0, 2, 1, 3]),
             node("MatMul", ["t", "k"], ["u"]), node("Mul", ["u", "u"], ["v"]), node("Softmax", ["v"], ["q"], axis=-1),
             node("Transpose", ["q"], ["q2"], perm=[0, 2, 1, 3]), node("Reshape", ["q2", "flat"], ["y"])]
    return save(path, nodes, [tensor("x", [1, 10, 24]), tensor("z", [1, 10, 4, 8]), tensor("k", [1, 4, 8, 8])],
                [tensor("y", [1, 10, 32])],
                [weights("w", 24, 32), weights("bias", 4, 8), ints("heads", 1, 10, 4, 8), ints("flat", 1, 10, 32)])


GRAPHS = (aliased_outputs, concatenations, dense_block, odd_channels, attention_like)


@pytest.mark.parametrize("make", GRAPHS, ids=[make.__name__ for make in GRAPHS])
def test_shared_bytes(tmp_path: Path, make: Callable[[Path], Path]) -> None:
    check(run_tool("tessera", "run", make(tmp_path / "m.onnx"), "--threads", 2, cwd=tmp_path))
