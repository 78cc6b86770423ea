# SPDX-License-Identifier: Apache-2.0
"""Random networks with sizes that a run computes: numbers of rows that operators find (NonZero, Compress, Unique,
NonMaxSuppression), and sizes that are inputs (k of TopK, ends of slices, shapes). One compile, then runs on several
inputs against onnxruntime.

    build/bin/tessera-python regression/conformance/random_data_sizes.py --seeds 0:500 [--isa x86-v2] [--keep FOLDER]
"""
from __future__ import annotations

import random
import sys
from pathlib import Path
from typing import Callable, Sequence

import numpy as np
import onnx
import random_graphs
import seed_runner
import random_sizes
from engines import Compiler, StageError, deploy, in_child
from guarded import guarded
from onnx import TensorProto, helper, numpy_helper

RUNS = 5
Arrays = dict[str, np.ndarray]


class Builder:
    """A network under construction: `rows` is a matrix [c, width] of floats whose c a run computes."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.nodes: list[onnx.NodeProto] = []
        self.inputs: dict[str, tuple[int, tuple[int, ...], Callable[[np.random.Generator], np.ndarray]]] = {}
        self.constants: dict[str, np.ndarray] = {}
        self.outputs: list[str] = []
        self.width = self.random.choice((1, 3, 8))
        self.most = self.random.choice((1, 5, 12, 33))

    def add(self, operator: str, inputs: Sequence[str], outputs: int = 1, **attributes: object) -> list[str]:
        names = [f"{operator.lower()}{len(self.nodes)}_{i}" for i in range(outputs)]
        self.nodes.append(helper.make_node(operator, list(inputs), names, **attributes))
        return names

    def constant(self, value: object, dtype: object = np.int64) -> str:
        name = f"c{len(self.constants)}"
        self.constants[name] = np.asarray(value, dtype)
        return name

    def floats(self, *shape: int) -> str:
        name = f"x{len(self.inputs)}"
        self.inputs[name] = (TensorProto.FLOAT, shape, lambda r: r.standard_normal(shape).astype(np.float32))
        return name

    def flags(self, *shape: int) -> str:
        """A tensor of which any part is not 0: none, some or all."""
        name = f"f{len(self.inputs)}"
        draw = lambda r: (r.random(shape) < r.choice((0.0, 0.1, 0.5, 1.0))).astype(np.float32)  # noqa: E731
        self.inputs[name] = (TensorProto.FLOAT, shape, draw)
        return name

    def size(self, least: int, most: int) -> str:
        name = f"n{len(self.inputs)}"
        self.inputs[name] = (TensorProto.INT64, (1,), lambda r: r.integers(least, most + 1, 1, np.int64))
        return name

    # Sources: each returns indices [c] (i64) into the first dim of a tensor of `most` rows.

    def non_zero(self) -> str:
        (found,) = self.add("NonZero", [self.flags(self.most, 2)])
        self.outputs.append(found)
        (rows,) = self.add("Gather", [found, self.constant(0)], axis=0)
        return rows

    def compress(self) -> str:
        (flags,) = self.add("Cast", [self.flags(self.most)], to=TensorProto.BOOL)
        return self.add("Compress", [self.constant(np.arange(self.most)), flags], axis=0)[0]

    def unique(self) -> str:
        (values,) = self.add("Floor", [self.floats(self.most)])
        results = self.add("Unique", [values], 4, sorted=self.random.randrange(2))
        self.outputs += self.random.sample(results, 2)
        return results[1]

    def suppression(self) -> str:
        (corners,) = self.add("Abs", [self.floats(1, self.most, 4)])
        limits = [self.constant(self.random.choice((3, 100))), self.constant(0.4, np.float32)]
        inputs = [corners, self.floats(1, 2, self.most), *limits, self.constant(0.1, np.float32)]
        (found,) = self.add("NonMaxSuppression", inputs)
        self.outputs.append(found)
        (column,) = self.add("Slice", [found, self.constant([2]), self.constant([3]), self.constant([1])])
        return self.add("Squeeze", [column, self.constant([1])])[0]

    def top_k(self) -> str:
        values, indices = self.add("TopK", [self.floats(self.most), self.size(0, self.most)], 2)
        self.outputs.append(values)
        return indices

    def range(self) -> str:
        (limit,) = self.add("Squeeze", [self.size(0, self.most), self.constant([0])])
        return self.add("Range", [self.constant(0), limit, self.constant(1)])[0]

    def cut(self) -> str:
        starts, ends = self.size(-3, self.most), self.size(-3, self.most + 3)
        return self.add("Slice", [self.constant(np.arange(self.most)), starts, ends])[0]

    def filled(self) -> str:
        (ones,) = self.add(
            "ConstantOfShape",
            [self.size(0, self.most)],
            value=numpy_helper.from_array(np.array([self.most - 1], np.int64)),
        )
        return ones

    # Steps: each takes and returns rows [c, width].

    def arithmetic(self, rows: str) -> str:
        (other,) = self.add("Mul", [rows, self.constant(np.arange(self.width), np.float32)])
        return self.add(self.random.choice(("Add", "Sub", "Max")), [rows, other])[0]

    def function(self, rows: str) -> str:
        return self.add(self.random.choice(("Relu", "Tanh", "Sigmoid", "Neg")), [rows])[0]

    def transposed(self, rows: str) -> str:
        (columns,) = self.add("Transpose", [rows], perm=[1, 0])
        (columns,) = self.add("Exp", [self.add("Tanh", [columns])[0]])
        return self.add("Transpose", [columns], perm=[1, 0])[0]

    def joined(self, rows: str) -> str:
        return self.add("Concat", [rows, self.add("Abs", [rows])[0]], axis=0)[0]

    def flat(self, rows: str) -> str:
        (flat,) = self.add("Reshape", [rows, self.constant([-1])])
        (flat,) = self.add("Add", [flat, self.constant([1], np.float32)])
        return self.add("Reshape", [flat, self.constant([-1, self.width])])[0]

    def product(self, rows: str) -> str:
        weights = np.linspace(-1, 1, self.width * self.width)
        return self.add("MatMul", [rows, self.constant(np.reshape(weights, (self.width, self.width)), np.float32)])[0]

    def narrowed(self, rows: str) -> str:
        (whole,) = self.add("Cast", [self.add("Mul", [rows, self.constant(8, np.float32)])[0]], to=TensorProto.INT32)
        return self.add("Cast", [whole], to=TensorProto.FLOAT)[0]

    def centred(self, rows: str) -> str:
        (sums,) = self.add("ReduceSum", [rows, self.constant([0])], keepdims=1)
        return self.add("Sub", [rows, sums])[0]


SOURCES = ("non_zero", "compress", "unique", "suppression", "top_k", "range", "cut", "filled")
STEPS = ("arithmetic", "function", "transposed", "joined", "flat", "product", "narrowed", "centred")


def make_network(seed: int) -> tuple[onnx.ModelProto, list[Arrays]]:
    """Returns a network of one or two sources and some steps, and inputs for several runs."""
    b = Builder(seed)
    for source in b.random.sample(SOURCES, b.random.choice((1, 1, 2))):
        indices = getattr(b, source)()
        (rows,) = b.add("Gather", [b.floats(b.most, b.width), indices], axis=0)
        for step in b.random.choices(STEPS, k=b.random.randrange(4)):
            rows = getattr(b, step)(rows)
        if b.random.randrange(3) == 0:
            (rows,) = b.add("ReduceSum", [rows, b.constant([0])], keepdims=b.random.randrange(2))
        b.outputs += [rows, *([indices] if b.random.randrange(2) else [])]
    graph = helper.make_graph(
        b.nodes,
        f"seed{seed}",
        [helper.make_tensor_value_info(name, kind, shape) for name, (kind, shape, _) in b.inputs.items()],
        [onnx.ValueInfoProto(name=name) for name in dict.fromkeys(b.outputs)],
        [numpy_helper.from_array(value, name) for name, value in b.constants.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    draws = [np.random.default_rng((seed, run)) for run in range(RUNS)]
    return model, [{name: draw(r) for name, (_, _, draw) in b.inputs.items()} for r in draws]


def run_all(bmodel: Path, given: Sequence[Arrays]) -> list[Arrays]:
    """Runs all inputs in one context, forwards and backwards, on 1 and 2 threads; equal inputs give equal bits."""

    def work() -> list[Arrays]:
        import tessera.runtime as rt

        results: list[Arrays] = [{} for _ in given]
        for threads in (1, 2):
            net = rt.load(str(bmodel), threads=threads).net()
            for turn, i in enumerate((*range(len(given)), *reversed(range(len(given))))):
                placed = {name: guarded(array, at_end=turn % 2 == 0) for name, array in given[i].items()}
                for name, array in net(placed).items():
                    known = results[i].setdefault(name, np.array(array))
                    if known.shape != array.shape or known.tobytes() != np.array(array).tobytes():
                        raise ValueError(f"run {turn} on {threads} threads has other bits in '{name}'")
        return results

    return in_child("run", work)  # type: ignore[return-value]


def check(compiler: Compiler, seed: int, isa: str, folder: Path) -> None:
    model, given = make_network(seed)
    path, mlir = folder / "model.onnx", folder / "model_top.mlir"
    path.write_bytes(model.SerializeToString())
    try:
        compiler("import", "import", "--onnx", path, "--output", mlir, "--dims", "auto")
        bmodel = deploy(compiler, mlir, isa)
    except StageError as fault:
        if fault.rejected:
            raise StageError(random_sizes.REJECTED, str(fault)) from fault
        raise
    for i, (inputs, got) in enumerate(zip(given, run_all(bmodel, given))):
        wanted = random_sizes.expected_outputs(path, inputs)
        random_sizes.compare(f"onnxruntime in run {i}", got, wanted, random_graphs.TOLERANCE)


def run_seed(seed: int, isa: str, keep: Path | None = None) -> str:
    """Returns the fault of the network of a seed, or ""."""
    return seed_runner.run_in_folder(check, "data_sizes", seed, isa, keep)


def run_seeds(
    seeds: Sequence[int],
    jobs: int,
    isa: str | None = None,
    keep: Path | None = None,
    run: Callable[[int, str, Path | None], str] = run_seed,
) -> tuple[list[str], int]:
    """Returns the faults that `run` finds in the networks of many seeds, and how many networks were rejected."""
    texts = list(filter(None, seed_runner.map_seeds(run, random_sizes.VARIANTS, seeds, jobs, isa, keep)))
    faults = [text for text in texts if f"{random_sizes.REJECTED}:" not in text]
    return faults, len(texts) - len(faults)


if __name__ == "__main__":
    sys.exit(random_sizes.main(__doc__, run_seeds))
