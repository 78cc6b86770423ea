# SPDX-License-Identifier: Apache-2.0
"""Small networks whose integers depend on products of two activations, or that are already quantised."""
from __future__ import annotations

from pathlib import Path
from typing import Sequence

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper


class Graph:
    """An ONNX graph of one input, to which nodes are added. A node's name is its operator and a number."""

    def __init__(self, seed: int = 0) -> None:
        self.rng = np.random.default_rng(seed)
        self.nodes: list[onnx.NodeProto] = []
        self.initializers: list[onnx.TensorProto] = []
        self.inputs: list[onnx.ValueInfoProto] = []

    def input(self, *shape: int) -> str:
        self.inputs.append(helper.make_tensor_value_info("x", TensorProto.FLOAT, shape))
        return "x"

    def constant(self, value: object, dtype: type = np.float32) -> str:
        name = f"c{len(self.initializers)}"
        self.initializers.append(numpy_helper.from_array(np.array(value, dtype), name))
        return name

    def weights(self, *shape: int) -> str:
        scale = (np.prod(shape[1:]) if len(shape) > 2 else shape[0]) ** -0.5
        return self.constant(self.rng.standard_normal(shape) * scale)

    def node(self, op: str, inputs: Sequence[str], **attributes: object) -> str:
        name = f"{op}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, list(inputs), [name], name=name, **attributes))
        return name

    def reshape(self, x: str, *shape: int) -> str:
        return self.node("Reshape", [x, self.constant(shape, np.int64)])

    def save(self, path: Path, outputs: Sequence[str], opset: int = 17) -> Path:
        """Writes the model without output shapes, which the importer infers."""
        results = [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in outputs]
        graph = helper.make_graph(self.nodes, path.stem, self.inputs, results, self.initializers)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])
        model.ir_version = 8
        path.write_bytes(model.SerializeToString())
        return path


def mask_decoder(path: Path) -> Path:
    """Builds queries that attend to pixels, then masks as products of queries and pixels (MaskFormer)."""
    g = Graph()
    features = g.node(
        "Relu",
        [g.node("Conv", [g.input(1, 3, 20, 22), g.weights(16, 3, 3, 3), g.weights(16)], strides=[2, 2], pads=[1] * 4)],
    )
    pixels = g.node("Conv", [features, g.weights(16, 16, 3, 3), g.weights(16)], pads=[1] * 4)
    memory = g.node("Transpose", [g.reshape(features, 1, 16, 110)], perm=[0, 2, 1])
    queries = g.node("Add", [g.weights(7, 16), g.node("ReduceMean", [memory], axes=[1], keepdims=1)])
    keys = g.node("Transpose", [g.node("MatMul", [memory, g.weights(16, 16)])], perm=[0, 2, 1])
    attention = g.node("Softmax", [g.node("Mul", [g.node("MatMul", [queries, keys]), g.constant(0.25)])], axis=-1)
    hidden = g.node("Add", [queries, g.node("MatMul", [attention, g.node("MatMul", [memory, g.weights(16, 16)])])])
    hidden = g.node("LayerNormalization", [hidden, g.constant(np.ones(16))], axis=-1)
    embedding = g.node("MatMul", [hidden, g.weights(16, 16)])
    masks = g.node("Einsum", [embedding, pixels], equation="bqc,bchw->bqhw")
    classes = g.node("Softmax", [g.node("MatMul", [hidden, g.weights(16, 5)])], axis=-1)
    regions = g.node("Einsum", [classes, g.node("Sigmoid", [masks])], equation="bqk,bqhw->bkhw")
    return g.save(path, [g.node("Conv", [regions, g.weights(6, 5, 1, 1)]), masks])


def decoder_block(path: Path) -> Path:
    """Writes a decoder block: causal attention with four heads, a mask and a relative-position term, and the layers
    around it."""
    g = Graph()
    tokens, width, heads = 13, 24, 4
    x = g.node("LayerNormalization", [g.input(2, tokens, width), g.constant(np.ones(width))], axis=-1)

    def head(order: Sequence[int]) -> str:
        return g.node(
            "Transpose",
            [g.reshape(g.node("MatMul", [x, g.weights(width, width)]), 2, tokens, heads, width // heads)],
            perm=order,
        )

    queries = head([0, 2, 1, 3])
    scores = g.node("MatMul", [queries, head([0, 2, 3, 1])])
    scores = g.node(
        "Add",
        [scores, g.node("Einsum", [queries, g.weights(tokens, tokens, width // heads)], equation="bhtd,tsd->bhts")],
    )
    hidden = g.constant(np.triu(np.full((tokens, tokens), -1e4), 1))
    attention = g.node(
        "Softmax", [g.node("Add", [g.node("Div", [scores, g.constant((width // heads) ** 0.5)]), hidden])], axis=-1
    )
    mixed = g.node("Transpose", [g.node("MatMul", [attention, head([0, 2, 1, 3])])], perm=[0, 2, 1, 3])
    y = g.node("Add", [x, g.node("MatMul", [g.reshape(mixed, 2, tokens, width), g.weights(width, width)])])
    return g.save(
        path, [g.node("MatMul", [g.node("Tanh", [g.node("MatMul", [y, g.weights(width, 40)])]), g.weights(40, 11)])]
    )


def contractions(path: Path) -> Path:
    """Builds products of tensors of rank 2 to 4: transposed, broadcast, summed over two dims, and of a tensor with
    itself."""
    g = Graph()
    x = g.node("Relu", [g.node("MatMul", [g.input(2, 5, 7, 9), g.weights(9, 9)])])
    gram = g.node("MatMul", [g.node("Transpose", [x], perm=[0, 1, 3, 2]), x])
    both = g.node("Einsum", [x, g.node("Sigmoid", [x])], equation="bijk,bljk->bil")
    broadcast = g.node("MatMul", [x, g.node("ReduceMean", [gram], axes=[0], keepdims=1)])
    return g.save(
        path,
        [
            g.node("MatMul", [gram, g.weights(9, 8)]),
            g.node("MatMul", [both, g.weights(5, 4)]),
            g.node("MatMul", [broadcast, g.weights(9, 3)]),
        ],
    )


def quantised_words(path: Path, channels: int = 8) -> Path:
    """Writes a model with QDQ pairs of unsigned 16 bits, like models that were quantised for phones."""
    g = Graph()

    def pair(x: str, reach: float, zero: int) -> str:
        parameters = [g.constant(reach / 40000), g.constant(zero, np.uint16)]
        return g.node("DequantizeLinear", [g.node("QuantizeLinear", [x, *parameters]), *parameters])

    def weights(*shape: int) -> str:
        integers = g.rng.integers(-127, 128, shape)
        scales = np.full(shape[0], 0.02 * float(np.prod(shape[1:])) ** -0.5)
        return g.node(
            "DequantizeLinear",
            [g.constant(integers, np.int8), g.constant(scales), g.constant(np.zeros(shape[0]), np.int8)],
            axis=0,
        )

    x = pair(g.input(1, channels, 9, 11), 9, 30011)
    y = pair(g.node("Relu", [g.node("Conv", [x, weights(16, channels, 3, 3), g.weights(16)], pads=[1] * 4)]), 7, 0)
    z = pair(g.node("Conv", [y, weights(16, 1, 3, 3)], pads=[1] * 4, strides=[2, 2], group=16), 6, 32768)
    z = pair(g.node("Add", [pair(g.node("Conv", [z, weights(12, 16, 1, 1)]), 8, 33000), g.weights(12, 1, 1)]), 8, 31000)
    rows = pair(g.node("Transpose", [g.reshape(z, 1, 12, 30)], perm=[0, 2, 1]), 8, 31000)
    scores = pair(g.node("MatMul", [rows, g.node("Transpose", [rows], perm=[0, 2, 1])]), 30, 32000)
    mixed = pair(g.node("MatMul", [pair(g.node("Softmax", [scores], axis=-1), 0.6, 0), rows]), 8, 32768)
    mean = g.reshape(pair(g.node("GlobalAveragePool", [z]), 3, 32768), 1, 12)
    return g.save(
        path, [mixed, pair(g.node("Gemm", [mean, weights(5, 12), g.weights(5)], transB=1), 4, 32768)], opset=21
    )


def recurrent(path: Path) -> Path:
    """Builds a convolution followed by an LSTM."""
    g = Graph()
    y = g.node("Conv", [g.input(1, 6, 9), g.weights(12, 6, 3)], pads=[1, 1])
    y = g.node("Relu", [g.node("MatMul", [g.node("Transpose", [y], perm=[2, 0, 1]), g.weights(12, 12)])])
    y = g.reshape(g.node("LSTM", [y, g.weights(1, 32, 12), g.weights(1, 32, 8)], hidden_size=8), 9, 8)
    return g.save(path, [g.node("MatMul", [y, g.weights(8, 5)])])
