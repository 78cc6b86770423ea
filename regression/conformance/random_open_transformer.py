# SPDX-License-Identifier: Apache-2.0
"""Random attention and transformer blocks whose batch, tokens, keys, cached tokens and heads are known at run time: one
compile, then runs at sizes around the tiles of kernels against files for these sizes, and against onnxruntime.

    build/bin/tessera-python regression/conformance/random_open_transformer.py --seeds 0:500 [--isa x86-v2]

INT8 and DYNAMIC_INT8 bit by bit, also their float ops; other precisions within a tolerance.
"""
from __future__ import annotations

import random
import sys
from pathlib import Path
from typing import Mapping, Sequence

import numpy as np
import onnx
import seed_runner
import random_sizes
from engines import Compiler
from onnx import TensorProto, helper, numpy_helper
from open_networks import OpenNetwork, Symbol

MODES = ("INT8", "F32", "BF16", "INT8", "DYNAMIC_INT8", "F16", "INT8", "W8", "W4", "W4A8", "W8A8")  # by seed
# Below and above the rows, columns and K steps of register tiles, primes, and the smallest sizes.
EDGES = (1, 2, 3, 4, 7, 8, 12, 13, 14, 15, 16, 17, 23, 28, 29, 31, 32, 33, 47, 48, 61, 63, 64, 65, 97, 112, 126, 127)


class OpenTransformer(OpenNetwork):
    """A network generated from a seed. |isExact|: files of fixed sizes must have its bits, so no earlier tokens may be
    missing: such a file does not join them, and other ranges apply."""

    def __init__(self, seed: int, isExact: bool) -> None:
        self.isExact = isExact
        self.rng, self.arrays = random.Random(seed), np.random.default_rng(seed)
        self.symbols, self.axes, self.inputs = {}, {}, {}
        self.nodes: list[onnx.NodeProto] = []
        self.constants: dict[str, np.ndarray] = {}
        r = self.rng
        self.heads, self.depth = r.choice([1, 2, 3, 4]), r.choice([4, 6, 8, 16, 20, 32])
        self.width = self.heads * self.depth
        batch = r.choice([1, 2])
        self.symbols["batch"] = Symbol(batch, 1, batch + r.choice([0, 1, 3]))
        for name in ("seq", "keys"):
            self.symbols[name] = Symbol(r.choice([5, 16, 33]), 1, r.choice([40, 64, 130]))
        result = getattr(self, r.choice(["tokens", "tokens", "memory", "cache", "matrices"]))()
        self.symbols = {name: each for name, each in self.symbols.items() if name in self._used()}
        self.model = self._model(result)

    def _used(self) -> set[str]:
        return {name for axes in self.axes.values() for name in axes.values()}

    def _model(self, result: str) -> onnx.ModelProto:
        inputs = [
            helper.make_tensor_value_info(
                name, TensorProto.FLOAT, [self.axes[name].get(i, size) for i, size in enumerate(array.shape)]
            )
            for name, array in self.inputs.items()
        ]
        rank = 2 if self.nodes[-1].op_type == "ReduceMean" else 4 if "q" in self.inputs else 3
        output = helper.make_tensor_value_info(result, TensorProto.FLOAT, [None] * rank)
        constants = [numpy_helper.from_array(array, name) for name, array in self.constants.items()]
        graph = helper.make_graph(self.nodes, "transformer", inputs, [output], constants)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)

    def draw_sizes(self) -> list[dict[str, int]]:
        def drawn(each: Symbol) -> int:
            return self.rng.choice([n for n in (*EDGES, each.most) if each.least <= n <= each.most])

        sizes = [{name: each[i] for name, each in self.symbols.items()} for i in range(3)]
        sizes += [{name: drawn(each) for name, each in self.symbols.items()} for _ in range(2)]
        return [each for i, each in enumerate(sizes) if each not in sizes[:i]]

    def inputs_at(self, sizes: Mapping[str, int]) -> dict[str, np.ndarray]:
        return super().inputs_at({**sizes, "total": sizes.get("past", 0) + sizes.get("seq", 0)})

    def op(self, kind: str, *operands: str, **attributes: object) -> str:
        name = f"t{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, list(operands), [name], name=f"{kind}_{name}", **attributes))
        return name

    def constant(self, value: np.ndarray) -> str:
        name = f"c{len(self.constants)}"
        self.constants[name] = value
        return name

    def given(self, name: str, *dims: "int | str") -> str:
        """Adds an input with the named dims open."""
        own = {**{n: each.own for n, each in self.symbols.items()}}
        own["total"] = own.get("past", 0) + own["seq"]
        shape = [own[dim] if isinstance(dim, str) else dim for dim in dims]
        self.axes[name] = {i: dim for i, dim in enumerate(dims) if isinstance(dim, str)}
        self.inputs[name] = self.arrays.standard_normal(shape).astype(np.float32)
        return name

    def linear(self, x: str, columns: int, rows: int) -> str:
        w = self.arrays.standard_normal((rows, columns)) * (1.5 / np.sqrt(rows))
        y = self.op("MatMul", x, self.constant(w.astype(np.float32)))
        bias = self.constant(0.2 * self.arrays.standard_normal(columns).astype(np.float32))
        return self.op("Add", y, bias) if self.rng.random() < 0.7 else y

    def norm(self, x: str) -> str:
        factor = self.constant(np.linspace(0.2, 2, self.width, dtype=np.float32))
        bias = self.constant(np.linspace(-0.3, 0.4, self.width, dtype=np.float32))
        return self.op("LayerNormalization", x, factor, bias, axis=-1, epsilon=1e-5)

    def by_heads(self, x: str) -> str:
        shape = self.constant(np.array([0, 0, self.heads, self.depth], np.int64))
        return self.op("Transpose", self.op("Reshape", x, shape), perm=[0, 2, 1, 3])

    def attend(self, q: str, k: str, v: str, keys: str) -> str:
        """Returns softmax(q k / sqrt(depth) + mask) v."""
        scores = self.op("MatMul", q, self.op("Transpose", k, perm=[0, 1, 3, 2]))
        scores = self.op("Mul", scores, self.constant(np.float32(self.depth**-0.5)))
        if self.rng.random() < 0.5:
            shape = (self.rng.choice([1, "batch"]), 1, self.rng.choice([1, "seq"]), keys)
            scores = self.op("Add", scores, self.given("mask", *shape))
        return self.op("MatMul", self.op("Softmax", scores, axis=-1), v)

    def attention(self, x: str, y: str, keys: str) -> str:
        q, k, v = (self.by_heads(self.linear(each, self.width, self.width)) for each in (x, y, y))
        if keys == "total":
            past = (self.given(f"past_{name}", "batch", self.heads, "past", self.depth) for name in "kv")
            k, v = (self.op("Concat", old, new, axis=2) for old, new in zip(past, (k, v)))
        y = self.op("Transpose", self.attend(q, k, v, keys), perm=[0, 2, 1, 3])
        y = self.op("Reshape", y, self.constant(np.array([0, 0, self.width], np.int64)))
        return self.linear(y, self.width, self.width)

    def block(self, x: str, memory: str = "", keys: str = "seq") -> str:
        """Attention to `memory`, or of the tokens to themselves, and two matmuls; at random a mean of the tokens."""
        before = self.rng.random() < 0.6
        y = self.norm(x) if before else x
        x = self.op("Add", x, self.attention(y, memory or y, keys))
        x = x if before else self.norm(x)
        wide = self.rng.choice([2, 3]) * self.width + self.rng.choice([0, 5])
        y = self.op(self.rng.choice(["Relu", "Sigmoid", "Tanh"]), self.linear(self.norm(x), wide, self.width))
        x = self.op("Add", x, self.linear(y, self.width, wide))
        return self.op("ReduceMean", x, axes=[1], keepdims=0) if self.rng.random() < 0.3 else self.norm(x)

    def tokens(self) -> str:
        return self.block(self.given("x", "batch", "seq", self.width))

    def memory(self) -> str:
        memory = self.given("memory", "batch", "keys", self.width)
        return self.block(self.given("x", "batch", "seq", self.width), memory, "keys")

    def cache(self) -> str:
        self.symbols["past"] = Symbol(self.rng.choice([3, 16]), int(self.isExact), self.rng.choice([20, 100]))
        return self.block(self.given("x", "batch", "seq", self.width), keys="total")

    def matrices(self) -> str:
        """Attention to matrices as they are, of which there may be any number."""
        heads = self.rng.choice([self.heads, "heads"])
        self.symbols["heads"] = Symbol(self.heads, 1, self.heads + 3)
        q = self.given("q", "batch", heads, "seq", self.depth)
        k, v = (self.given(name, "batch", heads, "keys", self.depth) for name in "kv")
        weights = self.arrays.standard_normal((self.depth, self.depth)).astype(np.float32) / self.depth**0.5
        return self.op("MatMul", self.attend(q, k, v, "keys"), self.constant(weights))


def check(compiler: Compiler, seed: int, isa: str, folder: Path) -> None:
    mode = MODES[seed % len(MODES)]
    isExact = mode.endswith("INT8")
    network = random_sizes.Network(compiler, seed, isa, folder, mode, OpenTransformer(seed, isExact))
    tolerance = random_sizes.TOLERANCE.get(mode, random_sizes.TOLERANCE["F32"])
    random_sizes.check_network(network, 0.0 if isExact else tolerance)


def run_seed(seed: int, isa: str, keep: Path | None = None) -> str:
    """Returns the fault of the network of a seed, or ""."""
    fault = seed_runner.run_in_folder(check, "transformer", seed, isa, keep)
    return fault and f"{MODES[seed % len(MODES)]} on {isa}, {fault}"


def run_seeds(
    seeds: Sequence[int], jobs: int, isa: str | None = None, keep: Path | None = None
) -> tuple[list[str], int]:
    """Returns the faults of many seeds, and how many networks were rejected."""
    return random_sizes.faults_of(run_seed, seeds, jobs, isa, keep)


if __name__ == "__main__":
    sys.exit(random_sizes.main(__doc__, run_seeds))
