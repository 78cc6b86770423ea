# SPDX-License-Identifier: Apache-2.0
"""Small networks with one unusual property each. docs/advice/ shows them, and tests use them to get each advice code.

    tessera-python advice_networks.py NAME ..     writes NAME.onnx
"""
from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from onnx import NodeProto, TensorProto, helper, numpy_helper
from small_models import save, tensor

node = helper.make_node


def weight(name: str, *shape: int) -> TensorProto:
    """Returns random weights. They keep the magnitude of a layer's results equal to the magnitude of its inputs."""
    values = np.random.default_rng(len(name)).standard_normal(shape) / np.sqrt(np.prod(shape[1:]))
    return numpy_helper.from_array(values.astype(np.float32), name)


def convolutions(count: int, channels: int, first: int) -> tuple[list[NodeProto], list[TensorProto], str]:
    """Returns `count` 3x3 convolutions, each followed by Relu, starting from 'x' with `first` channels: the nodes, the
    weights, and the name of the last result."""
    nodes, weights, last = [], [], "x"
    for i in range(count):
        conv = node("Conv", [last, f"w{i}"], [f"c{i}"], f"conv{i}", pads=[1] * 4)
        nodes += [conv, node("Relu", [f"c{i}"], [f"r{i}"], f"relu{i}")]
        weights.append(weight(f"w{i}", channels, channels if i else first, 3, 3))
        last = f"r{i}"
    return nodes, weights, last


def transposed(path: Path) -> None:
    """Writes the last layer of a segmentation network: a transposed convolution from 28 x 28 to the 224 x 224 of the
    picture."""
    up = node("ConvTranspose", ["x", "w"], ["y"], "up", strides=[8, 8], pads=[4] * 4)
    save(path, [up], [tensor("x", [1, 64, 28, 28])], [tensor("y", [1, 21, 224, 224])], [weight("w", 64, 21, 16, 16)])


def upsampled(path: Path) -> None:
    """Writes a network that computes the same shapes as `transposed` with a convolution and linear interpolation."""
    scales = numpy_helper.from_array(np.array([1, 1, 8, 8], np.float32), "s")
    nodes = [node("Conv", ["x", "w"], ["c"], "head"), node("Resize", ["c", "", "s"], ["y"], "up", mode="linear")]
    weights = [weight("w", 21, 64, 1, 1), scales]
    save(path, nodes, [tensor("x", [1, 64, 28, 28])], [tensor("y", [1, 21, 224, 224])], weights)


def recurrent(path: Path) -> None:
    nodes = [
        node("MatMul", ["x", "a"], ["m"], "before"),
        node("LSTM", ["m", "w", "r"], ["h"], "lstm", hidden_size=64),
        node("Squeeze", ["h", "axes"], ["q"], "squeeze"),
        node("MatMul", ["q", "b"], ["y"], "after"),
    ]
    weights = [weight("a", 256, 512), weight("w", 1, 256, 512), weight("r", 1, 256, 64), weight("b", 64, 256)]
    weights.append(numpy_helper.from_array(np.array([1], np.int64), "axes"))
    save(path, nodes, [tensor("x", [50, 1, 256])], [tensor("y", [50, 1, 256])], weights)


def camera(path: Path) -> None:
    nodes = [
        node("Conv", ["x", "w"], ["c"], "conv", strides=[4, 4], pads=[1] * 4),
        node("Relu", ["c"], ["r"], "relu"),
        node("GlobalAveragePool", ["r"], ["y"], "pool"),
    ]
    save(path, nodes, [tensor("x", [1, 3, 256, 256])], [tensor("y", [1, 16, 1, 1])], [weight("w", 16, 3, 5, 5)])


def tiny(path: Path) -> None:
    nodes, weights, last = convolutions(6, 32, 32)
    save(path, nodes, [tensor("x", ["n", 32, 8, 8])], [tensor(last, ["n", 32, 8, 8])], weights)


def perceptron(path: Path) -> None:
    nodes = [
        node("Gemm", ["x", "a"], ["h"], "first"),
        node("Relu", ["h"], ["r"], "relu"),
        node("Gemm", ["r", "b"], ["y"], "second"),
    ]
    weights = [weight("a", 512, 1024), weight("b", 1024, 512)]
    save(path, nodes, [tensor("x", ["n", 512])], [tensor("y", ["n", 512])], weights)


def narrow(path: Path) -> None:
    nodes, weights, last = convolutions(3, 8, 4)
    save(path, nodes, [tensor("x", [1, 4, 64, 64])], [tensor(last, [1, 8, 64, 64])], weights)


def skipping(path: Path) -> None:
    """Writes four convolutions; the result of the first is read again after the fourth."""
    nodes, weights, last = convolutions(4, 32, 3)
    nodes += [node("Add", ["r0", last], ["s"], "skip"), node("GlobalAveragePool", ["s"], ["y"], "pool")]
    save(path, nodes, [tensor("x", [1, 3, "h", "w"])], [tensor("y", [1, 32, 1, 1])], weights)


if __name__ == "__main__":
    for wanted in sys.argv[1:]:
        globals()[wanted](Path(f"{wanted}.onnx"))
