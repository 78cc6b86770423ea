# SPDX-License-Identifier: Apache-2.0
"""Random networks with growing caches as state: 20 runs with 0, 1, 2 or more new positions each, up to the capacity,
against onnxruntime, which gets past and present by hand.

    build/bin/tessera-python regression/conformance/random_caches.py --seeds 0:500 [--isa x86-v2] [--keep FOLDER]

Networks have up to three layers with one or two caches each, which grow along any of their dims. In between, runs that
exceed the capacity must fail without a change, states are shortened, saved, restored in another context, and reset.
"""
from __future__ import annotations

import random
import sys
from pathlib import Path
from typing import Callable, Mapping, NamedTuple

import numpy as np
import onnx
import onnxruntime
import random_graphs
import seed_runner
from engines import Compiler, StageError, deploy, in_child
from onnx import TensorProto, helper, numpy_helper

RUNS = 20
VARIANTS = tuple(random_graphs.supported_isas())
NEW = (0, 1, 1, 2, 3, 7, 13)
TOLERANCES = {"F32": 1e-4, "BF16": 0.08}
Arrays = Mapping[str, np.ndarray]


class Cache(NamedTuple):
    shape: tuple[int, ...]  # with 0 in place of the length
    axis: int


class Network(NamedTuple):
    model: onnx.ModelProto
    caches: dict[str, Cache]
    width: int
    batch: int
    capacity: int
    biased: bool
    precision: str


class Maker:
    """Adds layers. The input and the result of a layer are [batch, seq, width]."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.numbers = np.random.default_rng(seed)
        self.batch, self.width = self.rng.choice([1, 1, 2]), self.rng.choice([4, 8, 16, 24, 33])
        self.capacity = self.rng.choice([13, 16, 31, 40])
        self.biased = False
        self.nodes: list[onnx.NodeProto] = []
        self.constants: list[onnx.TensorProto] = []
        self.caches: dict[str, Cache] = {}
        self.presents: dict[str, str] = {}

    def array(self, array: np.ndarray) -> str:
        self.constants.append(numpy_helper.from_array(array, f"c{len(self.constants)}"))
        return self.constants[-1].name

    def weights(self, *shape: int) -> str:
        return self.array(self.numbers.uniform(-1, 1, shape).astype(np.float32) / np.float32(shape[0] ** 0.5))

    def node(self, kind: str, *inputs: str, **attributes: object) -> str:
        name = f"v{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, list(inputs), [name], name=f"n{len(self.nodes)}", **attributes))
        return name

    def grow(self, new: str, shape: tuple[int, ...], axis: int) -> str:
        """Appends `new` to a cache. `shape` has a 0 for the length, which is dim `axis`."""
        name = f"past.{len(self.caches)}"
        self.caches[name] = Cache(shape, axis)
        self.presents[name] = self.node("Concat", name, new, axis=axis)
        return self.presents[name]

    def project(self, x: str, size: int) -> str:
        return self.node("MatMul", x, self.weights(self.width, size))

    def split(self, x: str, heads: int, depth: int) -> str:
        """Returns [batch, heads, seq, depth]."""
        return self.node(
            "Transpose",
            self.node("Reshape", x, self.array(np.array([self.batch, -1, heads, depth]))),
            perm=[0, 2, 1, 3],
        )

    def heads(self, x: str) -> str:
        """Attention of several heads, which may share keys and values."""
        keys, group, depth = self.rng.choice([1, 2, 4]), self.rng.choice([1, 1, 2]), self.rng.choice([3, 4, 8, 16])
        shape = (self.batch, keys, 0, depth)
        k, v = (self.grow(self.split(self.project(x, keys * depth), keys, depth), shape, 2) for _ in range(2))
        q = self.split(self.project(x, group * keys * depth), group * keys, depth)
        if group > 1:
            k, v = (self.repeat(c, keys, group, depth) for c in (k, v))
        scores = self.node("MatMul", q, self.node("Transpose", k, perm=[0, 1, 3, 2]))
        scores = self.node("Mul", scores, self.array(np.float32(depth**-0.5).reshape(())))
        if self.rng.random() < 0.6:
            self.biased = True
            scores = self.node("Add", scores, "bias")
        y = self.node("MatMul", self.node("Softmax", scores, axis=-1), v)
        size = group * keys * depth
        y = self.node(
            "Reshape", self.node("Transpose", y, perm=[0, 2, 1, 3]), self.array(np.array([self.batch, -1, size]))
        )
        return self.node("MatMul", y, self.weights(size, self.width))

    def repeat(self, cache: str, keys: int, group: int, depth: int) -> str:
        """Returns `cache` with each head repeated."""
        wide = self.node("Unsqueeze", cache, self.array(np.array([2])))
        wide = self.node("Expand", wide, self.array(np.array([1, 1, group, 1, 1])))
        return self.node("Reshape", wide, self.array(np.array([self.batch, keys * group, -1, depth])))

    def rows(self, x: str) -> str:
        """Attention over [batch, length, width], the only cache, without a scale."""
        present = self.grow(self.project(x, self.width), (self.batch, 0, self.width), 1)
        scores = self.node("MatMul", self.node("Tanh", x), self.node("Transpose", present, perm=[0, 2, 1]))
        return self.node("MatMul", self.node("Softmax", scores, axis=-1), present)

    def columns(self, x: str) -> str:
        """Attention with keys stored as columns [batch, width, length]; also reads the earlier ones alone."""
        new = self.node("Transpose", self.project(x, self.width), perm=[0, 2, 1])
        present = self.grow(new, (self.batch, self.width, 0), 2)
        powers = self.node("Softmax", self.node("MatMul", self.node("Tanh", x), present), axis=-1)
        y = self.node("MatMul", powers, self.node("Transpose", present, perm=[0, 2, 1]))
        if self.rng.random() < 0.5:
            past = next(name for name, value in self.presents.items() if value == present)
            axes = self.array(np.array([2]))
            total = self.node("Transpose", self.node("ReduceSum", past, axes, keepdims=1), perm=[0, 2, 1])
            y = self.node("Add", y, self.node("Tanh", total))
        return y

    def front(self, x: str) -> str:
        """A mean over a cache that grows along its first dim, of all batches."""
        flat = self.node("Transpose", self.project(x, self.width), perm=[1, 0, 2])
        present = self.grow(flat, (0, self.batch, self.width), 0)
        best = self.node("ReduceMax", self.node("Tanh", present), axes=[0], keepdims=0)
        return self.node("Mul", x, self.node("Unsqueeze", best, self.array(np.array([1]))))


def make_network(seed: int) -> Network:
    maker = Maker(seed)
    rng = maker.rng
    value = "x"
    for _ in range(rng.randint(1, 3)):
        layer = rng.choice([maker.heads, maker.heads, maker.rows, maker.columns, maker.front])
        value = maker.node("Tanh", maker.node("Add", value, layer(value)))
    ends = {"y": value, **{name.replace("past", "present"): present for name, present in maker.presents.items()}}
    for name, value in ends.items():
        maker.nodes.append(helper.make_node("Identity", [value], [name], name=f"to_{name}"))

    def info(name: str, shape: list[object] | None) -> onnx.ValueInfoProto:
        return helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)

    inputs = [info("x", [maker.batch, "seq", maker.width])]
    inputs += [info("bias", [1, 1, "seq", "total"])] if maker.biased else []
    inputs += [
        info(name, [d if i != c.axis else "past" for i, d in enumerate(c.shape)]) for name, c in maker.caches.items()
    ]
    graph = helper.make_graph(maker.nodes, "caches", inputs, [info(name, None) for name in ends], maker.constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    precision = "BF16" if rng.random() < 0.2 else "F32"
    return Network(model, maker.caches, maker.width, maker.batch, maker.capacity, maker.biased, precision)


class Framework:
    """onnxruntime with past and present by hand."""

    def __init__(self, network: Network, path: Path) -> None:
        self.network = network
        self.session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
        self.past = {name: np.zeros(cache.shape, np.float32) for name, cache in network.caches.items()}

    def __call__(self, arrays: Arrays) -> np.ndarray:
        names = [output.name for output in self.session.get_outputs()]
        outputs = dict(zip(names, self.session.run(names, {**arrays, **self.past})))
        self.past = {name: outputs[name.replace("past", "present")] for name in self.past}
        return np.array(outputs["y"])

    def shorten(self, length: int) -> None:
        self.past = {
            name: np.take(array, range(length), self.network.caches[name].axis) for name, array in self.past.items()
        }


class Session:
    """One sequence of runs of the file with states, which `wanted` follows."""

    def __init__(self, network: Network, net: object, wanted: Framework, seed: int) -> None:
        self.network, self.net, self.wanted = network, net, wanted
        self.rng, self.numbers = random.Random(seed), np.random.default_rng(seed)
        self.length = 0

    def inputs(self, new: int, length: int) -> dict[str, np.ndarray]:
        network = self.network
        x = self.numbers.uniform(-1, 1, (network.batch, new, network.width)).astype(np.float32)
        bias = np.where(
            np.arange(length + new)[None] > np.arange(new)[:, None] + length, np.float32(-1e9), np.float32(0)
        )
        return {"x": x, "bias": bias[None, None]} if network.biased else {"x": x}

    def step(self, number: int) -> None:
        new = self.rng.choice(NEW)
        if self.length + new > self.network.capacity:
            self.exceed(new)
            self.shorten(self.rng.choice([0, self.length // 2, max(0, self.length - 1)]))
            return
        if new == 0 and (self.length == 0 or self.rng.random() < 0.7):
            new = self.network.capacity - self.length if self.rng.random() < 0.2 else 1  # fills the caches
            new = min(new, max(NEW))
        if self.length + new > self.network.capacity:
            return
        arrays = self.inputs(new, self.length)
        self.compare(number, self.net(arrays)["y"], self.wanted(arrays))  # type: ignore[operator]
        self.length += new
        lengths = {length for length, _ in self.net.state_lengths.values()}  # type: ignore[attr-defined]
        if lengths != {self.length}:
            raise ValueError(f"run {number}: the states have lengths {lengths}, not {self.length}")

    def compare(self, number: int, got: np.ndarray, want: np.ndarray) -> None:
        error = float(np.abs(got - want).max(initial=0)) if got.shape == want.shape else np.inf
        if not error <= TOLERANCES[self.network.precision]:
            raise ValueError(f"run {number} at {self.length}: 'y' has error {error:.3g} against onnxruntime")

    def exceed(self, new: int) -> None:
        try:
            self.net(self.inputs(new, self.length))  # type: ignore[operator]
        except ValueError as error:
            if "do not fit" not in str(error):
                raise ValueError(f"{new} more than the capacity: {error}") from error
            return
        raise ValueError(f"accepts {new} positions after {self.length}, beyond the capacity {self.network.capacity}")

    def shorten(self, length: int) -> None:
        self.net.set_state_length(length)  # type: ignore[attr-defined]
        self.wanted.shorten(length)
        self.length = length


def run_all(network: Network, path: Path, bmodel: Path, seed: int, threads: int) -> None:
    import tessera.runtime as rt

    model = rt.load(str(bmodel), threads=threads)
    session = Session(network, model.net(), Framework(network, path), seed)
    for number in range(RUNS):
        if number == RUNS // 3:  # continue in another context
            other = model.net()
            saved = session.net.save_state()  # type: ignore[attr-defined]
            other.load_state(saved)
            session.net = other
        if number == 2 * RUNS // 3:
            session.net.reset_state()  # type: ignore[attr-defined]
            session.wanted.shorten(0)
            session.length = 0
        session.step(number)


def check(compiler: Compiler, seed: int, isa: str, folder: Path) -> None:
    network = make_network(seed)
    path, mlir = folder / "model.onnx", folder / "model_top.mlir"
    path.write_bytes(network.model.SerializeToString())
    dims = f"seq=0..{max(NEW)},past=0..{network.capacity}"
    compiler("import", "import", "--onnx", path, "--output", mlir, "--dims", dims, "--state", "auto")
    options = () if network.precision == "F32" else ("--quantize", network.precision)
    bmodel = deploy(compiler, mlir, isa, *options)

    def work() -> str:
        for threads in (1, 2):
            run_all(network, path, bmodel, seed, threads)
        return ""

    in_child("run", work)


def run_seed(seed: int, isa: str, keep: Path | None = None) -> str:
    """Returns the fault of the network of a seed, or ""."""
    fault = seed_runner.run_in_folder(check, "caches", seed, isa, keep)
    return fault and f"{isa}, {fault}"


def run_seeds(seeds: range, jobs: int) -> list[str]:
    """Returns the faults of many seeds."""
    return list(filter(None, seed_runner.map_seeds(run_seed, VARIANTS, seeds, jobs, None, None)))


def main() -> int:
    return seed_runner.report_faults(run_seed, VARIANTS, seed_runner.parse_arguments(__doc__, VARIANTS))


if __name__ == "__main__":
    sys.exit(main())
