# SPDX-License-Identifier: Apache-2.0
"""Small ONNX files, good and bad, made on the spot for the tests of bad input."""
from __future__ import annotations

from pathlib import Path
from typing import Sequence

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper


def tensor(name: str, shape: Sequence, kind: int = TensorProto.FLOAT):
    return helper.make_tensor_value_info(name, kind, list(shape))


def save(path: Path, nodes: list, inputs: list, outputs: list, initializers: Sequence = (), opset: int = 13) -> Path:
    """Writes a model without checking it, as a broken exporter would."""
    graph = helper.make_graph(nodes, "g", inputs, outputs, list(initializers))
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])
    model.ir_version = 7
    path.write_bytes(model.SerializeToString())
    return path


def conv_relu(path: Path, batch: object = 1) -> Path:
    """Writes a valid model: x [batch,3,8,8] -> conv -> relu -> y, 4 channels."""
    weight = numpy_helper.from_array(np.linspace(-1, 1, 4 * 3 * 9, dtype=np.float32).reshape(4, 3, 3, 3), "w")
    return save(
        path,
        [
            helper.make_node("Conv", ["x", "w"], ["c"], name="conv", pads=[1, 1, 1, 1]),
            helper.make_node("Relu", ["c"], ["y"], name="relu"),
        ],
        [tensor("x", [batch, 3, 8, 8])],
        [tensor("y", [batch, 4, 8, 8])],
        [weight],
    )


def cyclic(path: Path) -> Path:
    return save(
        path,
        [
            helper.make_node("Add", ["x", "b"], ["a"], name="first"),
            helper.make_node("Relu", ["a"], ["b"], name="second"),
        ],
        [tensor("x", [1, 4])],
        [tensor("b", [1, 4])],
    )


def dangling(path: Path) -> Path:
    return save(
        path,
        [helper.make_node("Add", ["x", "nowhere"], ["y"], name="adder")],
        [tensor("x", [1, 4])],
        [tensor("y", [1, 4])],
    )


def unknown_ops(path: Path) -> Path:
    return save(
        path,
        [
            helper.make_node("FancyNorm", ["x"], ["a"], name="norm_7", domain="com.example"),
            helper.make_node("Wobble", ["a"], ["y"], name="wobble_3"),
        ],
        [tensor("x", [1, 4])],
        [tensor("y", [1, 4])],
    )


def type_mismatch(path: Path) -> Path:
    return save(
        path,
        [helper.make_node("Add", ["x", "i"], ["y"], name="mixed")],
        [tensor("x", [1, 4]), tensor("i", [1, 4], TensorProto.INT64)],
        [tensor("y", [1, 4])],
    )


def shape_mismatch(path: Path) -> Path:
    return save(
        path,
        [helper.make_node("MatMul", ["x", "z"], ["y"], name="product")],
        [tensor("x", [2, 3]), tensor("z", [4, 5])],
        [tensor("y", [2, 5])],
    )


def huge(path: Path) -> Path:
    return save(
        path,
        [helper.make_node("Relu", ["x"], ["y"], name="relu")],
        [tensor("x", [1 << 40, 1 << 40])],
        [tensor("y", [1 << 40, 1 << 40])],
    )


def wrong_conv_channels(path: Path) -> Path:
    weight = numpy_helper.from_array(np.zeros((4, 5, 3, 3), np.float32), "w")
    return save(
        path,
        [helper.make_node("Conv", ["x", "w"], ["y"], name="conv5")],
        [tensor("x", [1, 3, 8, 8])],
        [tensor("y", [1, 4, 6, 6])],
        [weight],
    )


def external_data(path: Path, location: str) -> Path:
    """Writes a model with an external weight in the file `location`."""
    weight = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[4], data_location=TensorProto.EXTERNAL)
    weight.external_data.add(key="location", value=location)
    weight.external_data.add(key="length", value="16")
    return save(
        path,
        [helper.make_node("Add", ["x", "w"], ["y"], name="add")],
        [tensor("x", [1, 4])],
        [tensor("y", [1, 4])],
        [weight],
    )


def deep_chain(path: Path, count: int, width: int = 64) -> Path:
    """Writes a chain of `count` matmuls, each with its own weight: deploying it takes time and produces a large weight
    file."""
    generator = np.random.default_rng(0)
    nodes, weights = [], []
    for i in range(count):
        weights.append(numpy_helper.from_array(generator.normal(size=(width, width)).astype(np.float32), f"w{i}"))
        nodes.append(helper.make_node("MatMul", [f"t{i}", f"w{i}"], [f"t{i + 1}"], name=f"m{i}"))
    return save(path, nodes, [tensor("t0", [1, width])], [tensor(f"t{count}", [1, width])], weights)


def product_of_activations(path: Path) -> Path:
    """Builds the scores of an attention from two linear layers; the last product has no weights."""
    weights = [
        numpy_helper.from_array(np.random.default_rng(seed).normal(0, 0.2, (8, 8)).astype(np.float32), f"w{seed}")
        for seed in (0, 1)
    ]
    nodes = [
        helper.make_node("MatMul", ["x", "w0"], ["query"]),
        helper.make_node("MatMul", ["x", "w1"], ["key"]),
        helper.make_node("Transpose", ["key"], ["keys"], perm=[0, 2, 1]),
        helper.make_node("MatMul", ["query", "keys"], ["y"], "scores"),
    ]
    return save(path, nodes, [tensor("x", [1, 5, 8])], [tensor("y", [1, 5, 5])], weights)


def open_picture(path: Path) -> Path:
    """Writes a model with a picture of open size and a mask. Its 33x33 kernel does not fit a picture of 1x1."""
    weight = numpy_helper.from_array(np.ones((2, 3, 33, 33), np.float32), "w")
    return save(
        path,
        [
            helper.make_node("Conv", ["image", "w"], ["c"], name="conv"),
            helper.make_node("Neg", ["mask"], ["m"], name="neg"),
        ],
        [tensor("image", [None, 3, None, None]), tensor("mask", ["batch_size", "sequence_length"])],
        [tensor("c", [None] * 4), tensor("m", [None, None])],
        [weight],
    )


def by_rate(path: Path) -> Path:
    """Writes a model with an If on the input `rate`: the branch for 16000 accepts the 512 samples, the other does
    not."""

    def branch(name: str, shape: str):
        return helper.make_graph(
            [helper.make_node("Reshape", ["x", shape], ["r_" + name], name=name)],
            name,
            [],
            [tensor("r_" + name, [None, 64])],
        )

    constants = {"k16": np.int64(16000), "good": np.int64([8, 64]), "bad": np.int64([7, 64])}
    return save(
        path,
        [
            helper.make_node("Equal", ["rate", "k16"], ["is16"], name="compare"),
            helper.make_node(
                "If",
                ["is16"],
                ["f"],
                name="by_rate",
                then_branch=branch("as_frames", "good"),
                else_branch=branch("as_others", "bad"),
            ),
            helper.make_node("Neg", ["f"], ["y"], name="neg"),
        ],
        [tensor("x", [1, 512]), tensor("rate", [], TensorProto.INT64)],
        [tensor("y", [None, 64])],
        [numpy_helper.from_array(np.asarray(value), name) for name, value in constants.items()],
    )


def opset6(path: Path) -> Path:
    """Builds an Add along axis 1 in the form of opsets before 7."""
    bias = numpy_helper.from_array(np.float32([1, -2, 3]), "b")
    return save(
        path,
        [
            helper.make_node("Add", ["x", "b"], ["a"], name="add", broadcast=1, axis=1),
            helper.make_node("Relu", ["a"], ["y"], name="relu"),
        ],
        [tensor("x", [1, 3, 4, 5]), tensor("b", [3])],
        [tensor("y", [1, 3, 4, 5])],
        [bias],
        opset=6,
    )


def doubling(path: Path) -> Path:
    """Writes a model that doubles a constant of 1 KiB 34 times by concatenation."""
    nodes = [
        helper.make_node("Concat", [f"k{i}", f"k{i}"], [f"k{i + 1}"], name=f"double{i}", axis=0) for i in range(34)
    ]
    return save(
        path,
        [*nodes, helper.make_node("Add", ["x", "k34"], ["y"], name="add")],
        [tensor("x", [1])],
        [tensor("y", [None])],
        [numpy_helper.from_array(np.zeros(256, np.float32), "k0")],
    )
