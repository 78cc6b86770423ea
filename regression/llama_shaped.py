#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes an ONNX file in the shape of a Llama: RMS norms, rotary embeddings, grouped queries, SwiGLU; random weights.

    build/bin/tessera-python regression/llama_shaped.py llama.onnx    # 1.1 billion parameters, 4.4 GB
    build/bin/tessera-python regression/llama_shaped.py small.onnx --layers 2 --hidden 256 --heads 4 --vocab 2000

The weights stand in NAME.onnx.data beside it and are written piece by piece: a few MB of memory are enough for any
size. The same arguments give the same bytes.
"""
from __future__ import annotations

import argparse
import math
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Sequence

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

PIECE = 1 << 20  # elements drawn at once
ALIGNMENT = 4096  # of each tensor in the data file, as onnx requires for mapping


@dataclass(frozen=True)
class Shape:
    """Sizes of the network; the defaults are those of TinyLlama, 1.1 billion parameters."""

    layers: int = 22
    hidden: int = 2048
    ffn: int = 5632
    heads: int = 32
    kv_heads: int = 4
    vocab: int = 32000
    sequence: int = 8

    @property
    def head(self) -> int:
        return self.hidden // self.heads

    @property
    def parameters(self) -> int:
        attention = 2 * self.hidden * self.hidden + 2 * self.hidden * self.kv_heads * self.head
        layer = attention + 3 * self.hidden * self.ffn + 2 * self.hidden
        return self.layers * layer + 2 * self.vocab * self.hidden + self.hidden


class _Graph:
    """Collects nodes and initialisers; large weights are written to `data` at once."""

    def __init__(self, shape: Shape, seed: int, data: IO[bytes], location: str) -> None:
        self.shape, self.nodes, self.initializers = shape, [], []
        self._seed, self._data, self._location = seed, data, location

    def add(self, op: str, inputs: Sequence[str], name: str, **attributes: object) -> str:
        """Adds a node; returns its single result, which has the node's name."""
        self.nodes.append(helper.make_node(op, list(inputs), [name + "_out"], name=name, **attributes))
        return name + "_out"

    def constant(self, name: str, value: np.ndarray) -> str:
        if name not in (known.name for known in self.initializers):
            self.initializers.append(numpy_helper.from_array(value, name))
        return name

    def ints(self, *values: int) -> str:
        return self.constant("ints_" + "_".join(map(str, values)), np.array(values, np.int64))

    def weight(self, name: str, dims: Sequence[int], spread: float, mean: float = 0.0) -> str:
        """Adds normally distributed numbers, seeded per tensor, so that other tensors do not change them."""
        generator = np.random.default_rng([self._seed, len(self.initializers)])
        self._data.write(bytes(-self._data.tell() % ALIGNMENT))
        offset, left = self._data.tell(), math.prod(dims)
        tensor = TensorProto(name=name, data_type=TensorProto.FLOAT, dims=dims, data_location=TensorProto.EXTERNAL)
        for key, value in (("location", self._location), ("offset", offset), ("length", left * 4)):
            tensor.external_data.add(key=key, value=str(value))
        self.initializers.append(tensor)
        while left:
            piece = generator.standard_normal(min(left, PIECE), np.float32)
            piece *= np.float32(spread)
            piece += np.float32(mean)
            self._data.write(piece)
            left -= piece.size
        return name

    def linear(self, x: str, name: str, inner: int, outer: int) -> str:
        return self.add("MatMul", [x, self.weight(name + ".weight", (inner, outer), inner**-0.5)], name)

    def rms_norm(self, x: str, name: str) -> str:
        square = self.add("Pow", [x, self.constant("two", np.array(2, np.float32))], name + "/Pow")
        mean = self.add("ReduceMean", [square], name + "/ReduceMean", axes=[-1])
        lifted = self.add("Add", [mean, self.constant("epsilon", np.array(1e-5, np.float32))], name + "/Add")
        root = self.add("Sqrt", [lifted], name + "/Sqrt")
        inverse = self.add("Div", [self.constant("one", np.array(1, np.float32)), root], name + "/Div")
        scaled = self.add("Mul", [x, inverse], name + "/Mul")
        return self.add("Mul", [self.weight(name + ".weight", (self.shape.hidden,), 0.1, 1.0), scaled], name + "/Mul_1")

    def heads(self, x: str, name: str, count: int) -> str:
        """Reshapes [1, S, count * D] to [1, count, S, D]."""
        split = self.add("Reshape", [x, self.ints(1, self.shape.sequence, count, self.shape.head)], name + "/Reshape")
        return self.add("Transpose", [split], name + "/Transpose", perm=[0, 2, 1, 3])

    def rotary(self, x: str, name: str) -> str:
        half, sequence = self.shape.head // 2, self.shape.sequence
        angles = np.outer(np.arange(sequence), 10000.0 ** (-np.arange(half) / half))
        angles = np.concatenate([angles, angles], 1)[None, None]
        cos = self.constant("cos", np.cos(angles).astype(np.float32))
        sin = self.constant("sin", np.sin(angles).astype(np.float32))
        first = self.add("Slice", [x, self.ints(0), self.ints(half), self.ints(3)], name + "/Slice")
        second = self.add("Slice", [x, self.ints(half), self.ints(2 * half), self.ints(3)], name + "/Slice_1")
        turned = self.add("Concat", [self.add("Neg", [second], name + "/Neg"), first], name + "/Concat", axis=-1)
        kept, moved = self.add("Mul", [x, cos], name + "/Mul"), self.add("Mul", [turned, sin], name + "/Mul_1")
        return self.add("Add", [kept, moved], name + "/Add")

    def repeated(self, x: str, name: str) -> str:
        """Repeats each of the key's heads for the query heads that share it."""
        shape, each = self.shape, self.shape.heads // self.shape.kv_heads
        if each == 1:
            return x
        apart = self.add("Unsqueeze", [x, self.ints(2)], name + "/Unsqueeze")
        dims = self.ints(1, shape.kv_heads, each, shape.sequence, shape.head)
        wide = self.add("Expand", [apart, dims], name + "/Expand")
        return self.add("Reshape", [wide, self.ints(1, shape.heads, shape.sequence, shape.head)], name + "/Reshape_1")

    def attention(self, x: str, name: str) -> str:
        shape = self.shape
        kv = shape.kv_heads * shape.head
        q = self.heads(self.linear(x, name + "/q_proj", shape.hidden, shape.hidden), name + "/q", shape.heads)
        k = self.heads(self.linear(x, name + "/k_proj", shape.hidden, kv), name + "/k", shape.kv_heads)
        v = self.heads(self.linear(x, name + "/v_proj", shape.hidden, kv), name + "/v", shape.kv_heads)
        q, k = self.rotary(q, name + "/q_rope"), self.rotary(k, name + "/k_rope")
        k, v = self.repeated(k, name + "/k"), self.repeated(v, name + "/v")
        keys = self.add("Transpose", [k], name + "/Transpose", perm=[0, 1, 3, 2])
        scores = self.add("MatMul", [q, keys], name + "/MatMul")
        root = self.constant("root", np.array(math.sqrt(shape.head), np.float32))
        scores = self.add("Div", [scores, root], name + "/Div")
        mask = np.triu(np.full((shape.sequence, shape.sequence), np.finfo(np.float32).min, np.float32), 1)[None, None]
        scores = self.add("Add", [scores, self.constant("mask", mask)], name + "/Add")
        values = self.add("MatMul", [self.add("Softmax", [scores], name + "/Softmax", axis=-1), v], name + "/MatMul_1")
        joined = self.add("Transpose", [values], name + "/Transpose_1", perm=[0, 2, 1, 3])
        joined = self.add("Reshape", [joined, self.ints(1, shape.sequence, shape.hidden)], name + "/Reshape_2")
        return self.linear(joined, name + "/o_proj", shape.hidden, shape.hidden)

    def feed_forward(self, x: str, name: str) -> str:
        shape = self.shape
        gate = self.linear(x, name + "/gate_proj", shape.hidden, shape.ffn)
        gate = self.add("Mul", [gate, self.add("Sigmoid", [gate], name + "/Sigmoid")], name + "/Mul")
        up = self.linear(x, name + "/up_proj", shape.hidden, shape.ffn)
        return self.linear(self.add("Mul", [gate, up], name + "/Mul_1"), name + "/down_proj", shape.ffn, shape.hidden)

    def build(self) -> str:
        """Builds the graph from the input 'input_ids' to the logits."""
        shape = self.shape
        table = self.weight("embed_tokens.weight", (shape.vocab, shape.hidden), 1.0)
        x = self.add("Gather", [table, "input_ids"], "embed_tokens")
        for layer in range(shape.layers):
            name = f"layers.{layer}"
            attended = self.attention(self.rms_norm(x, name + "/input_layernorm"), name + "/self_attn")
            x = self.add("Add", [x, attended], name + "/Add")
            fed = self.feed_forward(self.rms_norm(x, name + "/post_attention_layernorm"), name + "/mlp")
            x = self.add("Add", [x, fed], name + "/Add_1")
        return self.linear(self.rms_norm(x, "norm"), "lm_head", shape.hidden, shape.vocab)


def write(path: Path, shape: Shape = Shape(), seed: int = 0) -> Path:
    """Writes the model to `path` and its weights to PATH.data."""
    data = path.with_name(path.name + ".data")
    with open(data, "wb") as file:
        graph = _Graph(shape, seed, file, data.name)
        graph.nodes.append(helper.make_node("Identity", [graph.build()], ["logits"], name="logits"))
    ids = helper.make_tensor_value_info("input_ids", TensorProto.INT64, [1, shape.sequence])
    logits = helper.make_tensor_value_info("logits", TensorProto.FLOAT, [1, shape.sequence, shape.vocab])
    result = helper.make_graph(graph.nodes, "llama_shaped", [ids], [logits], graph.initializers)
    model = helper.make_model(result, opset_imports=[helper.make_opsetid("", 17)], producer_name="llama_shaped.py")
    model.ir_version = 8
    onnx.save(model, path)
    return path


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("onnx", type=Path)
    parser.add_argument("--seed", type=int, default=0)
    for name, default in vars(Shape()).items():
        parser.add_argument(f"--{name}", type=int, default=default, help="default: %(default)s")
    args = parser.parse_args(argv)
    shape = Shape(**{name: getattr(args, name) for name in vars(Shape())})
    write(args.onnx, shape, args.seed)
    print(f"{args.onnx}: {shape.parameters / 1e6:.1f} million parameters, {shape.parameters * 4 / 1e9:.2f} GB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
