# SPDX-License-Identifier: Apache-2.0
"""Random networks with branches and loops that are decided at run time, against onnxruntime and the Top reference.

    build/bin/tessera-python regression/conformance/random_control.py --seeds 0:500 [--isa npu-base] [--keep FOLDER]

If, Loop and Scan are nested up to three deep; regions capture values of all blocks around them, return captured and
carried values as they are, and let carried values change places. In two of three networks, sizes change as well:
branches return, loops carry and stack, and scans read matrices of any height, some of which NonZero or Compress finds.
The result of a branch may be a matrix or a row. Each network runs several times in one context: with zero passes,
conditions that are false at once, and conditions that become false. Some loops carry integers. Some networks are
compiled in 16-bit floats or with integer weights; their conditions do not depend on results, whose roundings could
change them.
"""
from __future__ import annotations

import random
import sys
from pathlib import Path
from typing import Mapping, Sequence

import numpy as np
import onnx
import onnxruntime
import seed_runner
from engines import Compiler, StageError, deploy, in_child, run_reference, supported_isas
from guarded import guarded
from onnx import TensorProto, helper, numpy_helper

ISAS = supported_isas()
OTHER_CHIPS = ("npu-base", "npu-edge", "cuda")  # without open sizes
TOLERANCES = {"F32": 1e-4, "BF16": 0.1, "F16": 2e-2, "W8": 0.1}
SHAPE = (3, 5)
TALLEST = 12  # rows of a matrix that grows
MOST_STEPS, MOST_DEPTH = 4, 3
FLOAT, INT64, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL
UNARY = ("Tanh", "Relu", "Neg", "Sigmoid", "Abs", "Identity")
BINARY = ("Add", "Sub", "Mul", "Max", "Min")
Arrays = Mapping[str, np.ndarray]


def value(name: str, shape: Sequence[int | None] | None = SHAPE, kind: int = FLOAT) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, kind, shape)


def tall(name: str) -> onnx.ValueInfoProto:
    return value(name, [None, SHAPE[1]])


class Block:
    """A graph under construction. `tensors` are the f32 tensors of SHAPE that its nodes may read, `talls` those with
    any number of rows, `flags` the conditions."""

    def __init__(
        self, network: Network, tensors: Sequence[str], flags: Sequence[str], depth: int, talls: Sequence[str] = ()
    ) -> None:
        self.network, self.tensors, self.flags, self.depth = network, list(tensors), list(flags), depth
        self.talls = list(talls)
        self.nodes: list[onnx.NodeProto] = []
        self.own: list[str] = []  # tensors that nodes of this block compute

    def node(self, kind: str, inputs: Sequence[str], count: int = 1, **attributes: object) -> list[str]:
        outputs = [self.network.name() for _ in range(count)]
        self.nodes.append(helper.make_node(kind, inputs, outputs, name=outputs[0], **attributes))
        return outputs

    def add(self, names: Sequence[str]) -> None:
        self.tensors += names
        self.own += names

    def any(self) -> str:
        """Returns a tensor: in two of three cases one of the last."""
        recent = self.tensors[-4:]
        return self.network.rng.choice(recent if self.network.rng.random() < 0.67 else self.tensors)

    def flag(self) -> str:
        """Returns a condition: one that exists, or one that depends on data."""
        if self.network.rng.random() < 0.4 or self.network.precision != "F32":
            return self.network.rng.choice(self.flags)
        (total,) = self.node("ReduceSum", [self.any()], keepdims=0)
        (flag,) = self.node(self.network.rng.choice(["Less", "Greater"]), [total, self.network.scalar()])
        return flag

    def rows(self) -> str:
        return self.network.rng.choice(self.talls[-4:])

    def row(self, matrix: str) -> str:
        """Returns the sum of all rows, which is bounded."""
        return self.node("Tanh", self.node("ReduceSum", [matrix, "first"], keepdims=1))[0]

    def join(self, matrices: Sequence[str]) -> str:
        """Returns up to TALLEST of the rows of several matrices."""
        (joined,) = self.node("Concat", matrices, axis=0)
        return self.node("Slice", [joined, "zero", self.network.rng.choice(["tallest", "two"]), "first"])[0]

    def sized_step(self) -> None:
        """Adds nodes that read or compute matrices of any height."""
        rng = self.network.rng
        choice = rng.randrange(9 if self.network.precision == "F32" else 6)
        if choice == 8 and self.depth < MOST_DEPTH - 1:
            self.scan_rows()
            return
        if choice == 0:
            self.add(self.node("Add", [self.any(), self.row(self.rows())]))
            return
        if choice == 1:
            (size,) = self.node("Cast", self.node("Shape", [self.rows()], start=0, end=1), to=FLOAT)
            self.add(self.node("Tanh", self.node("Sub", [self.any(), size])))
            return
        if choice == 2:
            found = self.node(rng.choice(UNARY), [self.rows()])[0]
        elif choice == 3:
            found = self.node("MatMul", [self.rows(), "weights"])[0]
        elif choice == 4:
            found = self.join([self.rows(), rng.choice([self.rows(), self.any()])])
        elif choice == 5:
            found = self.node(rng.choice(BINARY), [self.rows(), self.row(self.any())])[0]
        else:
            (flags,) = self.node("Greater", [self.any(), self.network.scalar()])
            if choice != 7:
                (places,) = self.node("NonZero", [flags])
                (places,) = self.node("Gather", [places, "at_zero"], axis=0)
                found = self.node("Gather", [self.any(), places], axis=0)[0]
            else:
                (numbers,) = self.node("Cast", [flags], to=FLOAT)
                (numbers,) = self.node("ReduceMax", [numbers], axes=[1], keepdims=0)
                (flags,) = self.node("Slice", [numbers, "zero", "two"])
                found = self.node("Compress", [self.any(), self.node("Cast", [flags], to=BOOL)[0]], axis=0)[0]
        self.talls.append(found)

    def sized_results(self, count: int) -> list[str]:
        """Returns matrices of any height as results, through an op, because a name may be that of an outer graph."""
        return [self.node(self.network.rng.choice(["Identity", "Tanh"]), [self.rows()])[0] for _ in range(count)]

    def step(self) -> None:
        if self.talls and self.network.rng.random() < 0.4:
            self.sized_step()
            return
        choice = self.network.rng.random()
        if choice < 0.03 and self.depth < MOST_DEPTH and self.network.takes_ranks():
            self.branch_of_ranks()
        elif choice < 0.25 and self.depth < MOST_DEPTH:
            self.branch()
        elif choice < 0.45 and self.depth < MOST_DEPTH:
            self.loop()
        elif choice < 0.5 and self.depth < MOST_DEPTH - 1:
            self.scan()
        elif choice < 0.6:
            self.add(self.node("MatMul", [self.any(), "weights"]))
        elif choice < 0.8:
            self.add(self.node(self.network.rng.choice(UNARY), [self.any()]))
        else:
            self.add(self.node(self.network.rng.choice(BINARY), [self.any(), self.any()]))

    def inner(self, tensors: Sequence[str] = (), flags: Sequence[str] = ()) -> Block:
        return Block(self.network, [*self.tensors, *tensors], [*self.flags, *flags], self.depth + 1, self.talls)

    def sized_count(self) -> int:
        return self.network.rng.randrange(3) if self.talls else 0

    def fill(self) -> None:
        for _ in range(self.network.rng.randrange(MOST_STEPS)):
            self.step()

    def results(self, count: int) -> list[str]:
        """Returns tensors as results, bounded, so that loops do not diverge. A graph cannot return a name of an outer
        graph, or one name twice, so these pass through an Identity."""
        names: list[str] = []
        for _ in range(count):
            name = self.any()
            if self.network.rng.random() < 0.5:
                (name,) = self.node("Tanh", [name])
            elif name not in self.own or name in names or self.network.rng.random() < 0.2:
                (name,) = self.node("Identity", [name])
            names.append(name)
        return names

    def graph(self, results: Sequence[onnx.ValueInfoProto], inputs: Sequence[onnx.ValueInfoProto] = ()) -> object:
        return helper.make_graph(self.nodes, self.network.name(), inputs, results)

    def branch(self) -> None:
        count, flag, sized = self.network.rng.randint(1, 3), self.flag(), self.sized_count()
        graphs = []
        for _ in range(2):
            inner = self.inner()
            inner.fill()
            results = [value(name) for name in inner.results(count)]
            graphs.append(inner.graph([*results, *map(tall, inner.sized_results(sized))]))
        outputs = self.node("If", [flag], count + sized, then_branch=graphs[0], else_branch=graphs[1])
        self.add(outputs[:count])
        self.talls += outputs[count:]

    def branch_of_ranks(self) -> None:
        """An if whose result is a matrix or a row. What follows is compiled for both."""
        matrix, flag = self.inner(), self.flag()
        (whole,) = matrix.node("Tanh", [matrix.any()])
        row = self.inner()
        (least,) = row.node("ReduceMin", [row.any()], axes=[0], keepdims=0)
        graphs = [matrix.graph([value(whole, None)]), row.graph([value(least, None)])]
        (either,) = self.node("If", [flag], then_branch=graphs[0], else_branch=graphs[1])
        (scaled,) = self.node("MatMul", [either, "weights"])
        self.add(self.node("Add", [self.any(), scaled]))

    def loop(self) -> None:
        count, rng, sized = self.network.rng.randint(1, 3), self.network.rng, self.sized_count()
        matrices = [self.network.name() for _ in range(sized)]
        iteration, going = self.network.name(), self.network.name()
        carried = [self.network.name() for _ in range(count)]
        trips = rng.choice(["n", "m", "n", "", "few"])
        start = rng.choice([self.flag(), "" if trips else "always"])
        inner = self.inner(carried, [going])
        inner.talls += matrices
        (position,) = inner.node("Cast", [iteration], to=FLOAT)
        inner.add(inner.node("Add", [inner.any(), position]))
        inner.fill()
        if not trips:  # the condition alone must end the loop
            (on,) = inner.node("Less", [position, "most"])
        else:
            on = inner.flag() if start or rng.random() < 0.3 else going
            (on,) = inner.node("Identity", [on])
        results = [value(name) for name in inner.results(count)]
        grown = [inner.join([name, inner.row(inner.any())]) if rng.randrange(2) else "" for name in matrices]
        grown = [name or inner.sized_results(1)[0] for name in grown]
        arguments = [value(iteration, [], INT64), value(going, [], BOOL), *map(value, carried), *map(tall, matrices)]
        stacked = inner.node("Tanh", [inner.any()]) if trips and self.talls and rng.randrange(2) else []
        init = [*(self.any() for _ in range(count)), *(self.rows() for _ in range(sized))]
        results += map(tall, grown)
        if self.network.more.random() < 0.3:  # an integer is the last of the carried values
            arguments.append(value(self.network.name(), [], INT64))
            results.append(value(inner.node("Add", [arguments[-1].name, iteration])[0], [], INT64))
            init.append("n")
        body = inner.graph([value(on, [], BOOL), *results, *map(value, stacked)], arguments)
        outputs = self.node("Loop", [trips, start, *init], len(init) + len(stacked), body=body)
        if len(init) > count + sized:
            (number,) = self.node("Cast", [outputs[len(init) - 1]], to=FLOAT)
            self.add(self.node("Mul", [self.any(), self.node("Sin", [number])[0]]))
        self.add(outputs[:count])
        self.talls += outputs[count : count + sized]
        if stacked:
            (flat,) = self.node("Reshape", [outputs[-1], "flat"])
            self.talls.append(self.join([flat, self.any()]))

    def scan_rows(self) -> None:
        """A scan over the rows of a matrix of any height, forwards or backwards, which reads a tensor from outside."""
        state, read = self.network.name(), self.network.name()
        inner = Block(self.network, [], [], MOST_DEPTH)
        (outer,) = inner.node("ReduceMax", [self.any()], axes=[0], keepdims=0)
        (mixed,) = inner.node(self.network.rng.choice(BINARY), [state, read])
        (new,) = inner.node("Tanh", [mixed])
        (row,) = inner.node(self.network.rng.choice(BINARY), [new, outer])
        width = list(SHAPE[1:])
        body = inner.graph([value(new, width), value(row, width)], [value(state, width), value(read, width)])
        (start,) = self.node("ReduceMax", [self.any()], axes=[0], keepdims=0)
        attributes = {"num_scan_inputs": 1, "scan_input_directions": [self.network.rng.randrange(2)], "body": body}
        scanned = self.join([self.rows(), self.any()])  # onnxruntime rejects a scan of no rows
        last, rows = self.node("Scan", [start, scanned], 2, **attributes)
        self.talls.append(rows)
        self.add(self.node("Add", [self.any(), last]))

    def scan(self) -> None:
        """A scan over the first dim of two tensors, whose results are stacked to one of the usual shape again."""
        state, first, second = (self.network.name() for _ in range(3))
        inner = Block(self.network, [], [], MOST_DEPTH)
        (mixed,) = inner.node(self.network.rng.choice(BINARY), [state, first])
        (mixed,) = inner.node(self.network.rng.choice(BINARY), [mixed, second])
        (new,) = inner.node("Tanh", [mixed])
        (row,) = inner.node("Add", [new, first])
        width = list(SHAPE[1:])
        body = inner.graph(
            [value(new, width), value(row, width)], [value(state, width), value(first, width), value(second, width)]
        )
        (start,) = self.node("ReduceMax", [self.any()], axes=[0], keepdims=0)
        directions = [self.network.rng.randrange(2) for _ in range(2)]
        attributes = {"num_scan_inputs": 2, "scan_input_directions": directions, "body": body}
        last, rows = self.node("Scan", [start, self.any(), self.any()], 2, **attributes)
        self.add([rows])
        self.add(self.node("Add", [rows, last]))


class Network:
    """A random network. Its inputs: two f32 tensors, a flag, and two numbers of passes."""

    def __init__(self, seed: int, allows_open_sizes: bool = True, precision: str = "") -> None:
        self.rng, self.count, self.ranks = random.Random(seed), 0, 0
        self.is_sized = allows_open_sizes and seed % 3 != 0
        self.more = random.Random(seed + 1)  # what was added later, so that a seed keeps its network
        others = ["BF16", "F16", "W8"] if allows_open_sizes else ["BF16"]
        self.precision = precision or self.more.choice(["F32"] * 7 + others)
        self.constants: dict[str, np.ndarray] = {
            "weights": np.random.default_rng(seed).standard_normal((SHAPE[1], SHAPE[1])).astype(np.float32) / 2,
            "few": np.int64(self.rng.randrange(4)),
            "always": np.bool_(True),
            "most": np.float32(self.rng.randrange(5)),
        }
        if self.is_sized:
            numbers = {
                "first": [0],
                "zero": [0],
                "two": [2],
                "tallest": [TALLEST],
                "flat": [-1, SHAPE[1]],
                "at_zero": 0,
            }
            self.constants |= {name: np.array(number, np.int64) for name, number in numbers.items()}
        main = Block(self, ["x", "z"], ["c"], 0, ["t"] if self.is_sized else [])
        while sum(node.op_type in ("If", "Loop") for node in main.nodes) < 2:
            main.step()
        outputs = [value(name) for name in main.results(self.rng.randint(1, 3))]
        inputs = [value("x"), value("z"), value("c", [], BOOL), value("n", [], INT64), value("m", [], INT64)]
        if self.is_sized:
            outputs += map(tall, main.sized_results(2))
            inputs.append(value("t", ["rows", SHAPE[1]]))
        held = [numpy_helper.from_array(np.asarray(array), name) for name, array in self.constants.items()]
        graph = helper.make_graph(main.nodes, f"control_{seed}", inputs, outputs, held)
        self.model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)

    def name(self) -> str:
        self.count += 1
        return f"v{self.count}"

    def takes_ranks(self) -> bool:
        """Returns whether the network may have one more if of two ranks, each of which doubles the rest."""
        self.ranks += 1
        return self.ranks <= 2

    def scalar(self) -> str:
        name = self.name()
        self.constants[name] = np.float32(self.rng.uniform(-3, 3))
        return name

    def runs(self, seed: int) -> list[dict[str, np.ndarray]]:
        rng = np.random.default_rng(seed)
        return [
            {
                **{name: rng.standard_normal(SHAPE).astype(np.float32) for name in ("x", "z")},
                **({"t": rng.standard_normal((rows, SHAPE[1])).astype(np.float32)} if self.is_sized else {}),
                "c": np.array(bool(flag)),
                "n": np.array(n),
                "m": np.array(m),
            }
            for flag, n, m, rows in ((1, 3, 1, 2), (0, 0, 2, 6), (1, 1, 0, 0), (0, 7, -1, 1))
        ]


def run_all(bmodel: Path, runs: Sequence[Arrays]) -> list[dict[str, np.ndarray]]:
    """Runs a file with all inputs in one context, twice, on 1 and 2 threads; all must give the same bits."""

    def work() -> list[dict[str, np.ndarray]]:
        import tessera.runtime as rt

        results: list[dict[str, np.ndarray]] = [{} for _ in runs]
        for threads in (1, 2):
            net = rt.load(str(bmodel), threads=threads).net()
            for turn in (0, 1):
                for inputs, result in zip(runs, results):
                    placed = {name: guarded(array, at_end=turn == 0) for name, array in inputs.items()}
                    for name, array in net(placed).items():
                        if np.asarray(array).tobytes() != result.setdefault(name, np.array(array)).tobytes():
                            raise ValueError(f"turn {turn} on {threads} threads has other bits in '{name}'")
        return results

    return in_child("run", work)  # type: ignore[return-value]


def compare(what: str, got: Arrays, wanted: Arrays, tolerance: float = TOLERANCES["F32"]) -> None:
    for name, expected in wanted.items():
        error = np.abs(got[name].astype(np.float64) - expected)
        scale = max(float(np.abs(expected[np.isfinite(expected)]).max(initial=0)), 1.0)
        if got[name].shape != expected.shape or not np.nan_to_num(error).max(initial=0) <= tolerance * scale:
            raise StageError("compare", f"'{name}' {got[name].shape}, {what}: error {error.max(initial=0):.3g}")


def check(compiler: Compiler, seed: int, isa: str, folder: Path) -> None:
    network = Network(seed, allows_open_sizes=isa not in OTHER_CHIPS)
    path, mlir, runs = folder / "model.onnx", folder / "model_top.mlir", network.runs(seed)
    onnx.checker.check_model(network.model)
    path.write_bytes(network.model.SerializeToString())
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    wanted = [dict(zip(names, session.run(names, inputs))) for inputs in runs]
    dims = ["--dims", "auto,rows=0..6"] if network.is_sized else []
    compiler("import", "import", "--onnx", path, "--output", mlir, *dims)
    compare("the reference in run 0", run_reference(compiler, mlir, runs[0]), wanted[0])
    bmodel = deploy(compiler, mlir, isa, "--quantize", network.precision)
    for number, (got, expected) in enumerate(zip(run_all(bmodel, runs), wanted)):
        compare(f"run {number}", got, expected, TOLERANCES[network.precision])


def run_seed(seed: int, isa: str, keep: Path | None = None) -> str:
    """Returns the fault of the network of a seed, or ""."""
    fault = seed_runner.run_in_folder(check, "control", seed, isa, keep)
    return fault and f"{isa}, {fault}"


def run_seeds(seeds: Sequence[int], jobs: int, isa: str | None = None, keep: Path | None = None) -> list[str]:
    return list(filter(None, seed_runner.map_seeds(run_seed, ISAS, seeds, jobs, isa, keep)))


def main() -> int:
    arguments = seed_runner.parse_arguments(__doc__, (*ISAS, *OTHER_CHIPS))
    faults = run_seeds(arguments.seeds, arguments.jobs, arguments.isa, arguments.keep)
    print("\n".join(faults))
    print(f"{len(faults)} of {len(arguments.seeds)} networks fail")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
