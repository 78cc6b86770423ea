# SPDX-License-Identifier: Apache-2.0
"""Random networks with states: 20 runs, with a save and a restore in between, against onnxruntime and against the file
without states, both of which get the states by hand.

    build/bin/tessera-python regression/conformance/random_states.py --seeds 0:500 [--isa x86-v2] [--keep FOLDER]

Networks have up to four states of rank 2 to 4, and sometimes a counter. Their new values are results of ops, of the
same or of several states, constants, or other states, unchanged or swapped; some are outputs too. Some networks branch
at run time, some also read rows whose number differs in each run, and some are compiled in other precisions. The file
without states must give the same bits.
"""
from __future__ import annotations

import random
import sys
from pathlib import Path
from typing import Mapping, NamedTuple, Sequence

import numpy as np
import onnx
import onnxruntime
import random_graphs
import seed_runner
from engines import Compiler, StageError, deploy, in_child
from onnx import TensorProto, helper, numpy_helper

RUNS = 20
VARIANTS = (*random_graphs.supported_isas(), "npu-base")
TOLERANCES = {"F32": 1e-4, "BF16": 0.1, "F16": 1e-2, "W8": 0.05}
MOST_ROWS = 9  # of the input whose number of rows is open
Arrays = Mapping[str, np.ndarray]


class Network(NamedTuple):
    model: onnx.ModelProto
    states: dict[str, str]  # outputs by input
    is_open: bool  # has an input "rows" of any number of rows
    precision: str

    def draw_runs(self, seed: int) -> list[dict[str, np.ndarray]]:
        rng = np.random.default_rng(seed)
        shapes = {value.name: [d.dim_value for d in value.type.tensor_type.shape.dim] for value in self.inputs()}
        runs = [{"x": x} for x in rng.uniform(-1, 1, (RUNS, *shapes["x"])).astype(np.float32)]
        for given in runs if self.is_open else []:
            size = (rng.choice([0, 1, 2, MOST_ROWS]), shapes["x"][-1])
            given["rows"] = rng.uniform(-1, 1, size).astype(np.float32)
        return runs

    def inputs(self) -> Sequence[onnx.ValueInfoProto]:
        return self.model.graph.input

    def start(self) -> dict[str, np.ndarray]:
        """Returns the states of a new context."""
        result = {}
        for value in self.inputs():
            if value.name in self.states:
                tensor = value.type.tensor_type
                dtype = np.int64 if tensor.elem_type == TensorProto.INT64 else np.float32
                result[value.name] = np.zeros([d.dim_value for d in tensor.shape.dim], dtype)
        return result


class Maker:
    """Adds random ops. All values are [.., ROWS, SIZE] and stay within about [-1, 1]."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.numbers = np.random.default_rng(seed)
        self.rows, self.size = self.rng.choice([1, 1, 2, 3]), self.rng.choice([1, 4, 16, 17, 64])
        self.branches = seed % 4 == 3
        self.more = random.Random(seed + 1)  # what was added later, so that a seed keeps its network
        self.shape = (*self.more.choice([(), (), (1,), (2,), (1, 3), (2, 1)]), self.rows, self.size)
        self.nodes: list[onnx.NodeProto] = []
        self.constants: list[onnx.TensorProto] = []

    def constant(self, *shape: int) -> str:
        array = self.numbers.uniform(-1, 1, shape).astype(np.float32) / np.float32(max(1, shape[0]) ** 0.5)
        self.constants.append(numpy_helper.from_array(array, f"c{len(self.constants)}"))
        return self.constants[-1].name

    def node(self, kind: str, *inputs: str, **attributes: object) -> str:
        name = f"v{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, list(inputs), [name], name=f"n{len(self.nodes)}", **attributes))
        return name

    def combine(self, values: list[str]) -> str:
        """Returns a value that depends on some of `values`."""
        a, b = self.rng.choice(values), self.rng.choice(values)
        kind = self.rng.randrange(5)
        if self.branches and self.rng.random() < 0.3:
            return self.branch(a, b)
        if kind == 0:
            return self.node("Tanh", self.node("MatMul", a, self.constant(self.size, self.size)))
        if kind == 1:
            return self.node("Mul", self.node("Sigmoid", a), b)
        if kind == 2:
            return self.node("Tanh", self.node("Add", a, b))
        if kind == 3:
            return self.node("Mul", a, self.constant(self.rows, self.size))
        return self.shifted(a, b)

    def branch(self, a: str, b: str) -> str:
        """Returns a value that one of two branches computes, by the sum of the input."""
        name = f"b{len(self.nodes)}"
        graphs = []
        for kind, op in (("then", "Mul"), ("else", "Min")):
            end = helper.make_tensor_value_info(f"{name}_{kind}", TensorProto.FLOAT, self.shape)
            graphs.append(helper.make_graph([helper.make_node(op, [a, b], [end.name])], kind, [], [end]))
        self.constants.append(numpy_helper.from_array(np.array(0, np.float32), f"zero{len(self.nodes)}"))
        condition = self.node("Greater", self.node("ReduceSum", "x", keepdims=0), self.constants[-1].name)
        return self.node("If", condition, then_branch=graphs[0], else_branch=graphs[1])

    def shifted(self, a: str, b: str) -> str:
        """Returns a window over the columns of `a` and `b`, as a buffer of past values."""
        begin = self.rng.randint(0, self.size)
        for name, value in (("begin", begin), ("end", begin + self.size), ("axis", len(self.shape) - 1)):
            self.constants.append(numpy_helper.from_array(np.array([value], np.int64), f"{name}{len(self.nodes)}"))
        names = [tensor.name for tensor in self.constants[-3:]]
        return self.node("Slice", self.node("Concat", a, b, axis=-1), *names)

    def sum_of_rows(self) -> str:
        """Returns the sum of the input of any number of rows, as a value."""
        self.constants.append(numpy_helper.from_array(np.array([0], np.int64), "first"))
        return self.node("Tanh", self.node("Add", "x", self.node("ReduceSum", "rows", "first", keepdims=1)))

    def move_rows(self, state: str) -> None:
        """Adds the output "moved": the input of any number of rows plus the largest elements of a state."""
        largest = self.node("ReduceMax", state, axes=[*range(len(self.shape) - 1)], keepdims=0)
        self.nodes.append(helper.make_node("Add", ["rows", largest], ["moved"], name="to_moved"))

    def counted(self) -> str:
        """Returns a value that depends on the number of runs, of which "n_out" becomes the next one."""
        self.constants.append(numpy_helper.from_array(np.array([1], np.int64), "one"))
        self.nodes.append(helper.make_node("Add", ["n_in", "one"], ["n_out"], name="count"))
        return self.node("Mul", "x", self.node("Sin", self.node("Cast", "n_in", to=TensorProto.FLOAT)))


def make_network(seed: int, allows_open_sizes: bool = True) -> Network:
    maker = Maker(seed)
    rng = maker.rng
    inputs = [f"s{i}_in" for i in range(rng.randint(1, 4))]
    values = ["x", *inputs]
    counts, is_open = maker.more.random() < 0.3, maker.more.random() < 0.4 and allows_open_sizes
    precision = maker.more.choice(["F32", "F32", "F32", "BF16", *(["F16", "W8"] if allows_open_sizes else [])])
    values += [maker.counted()] if counts else []
    values += [maker.sum_of_rows()] if is_open else []
    for _ in range(rng.randint(1, 8)):
        values.append(maker.combine(values[-5:] + inputs))
    ends = {"y": values[-1]}
    for name in inputs:
        new = rng.choice([rng.choice(values), rng.choice(values), maker.combine(values), rng.choice(inputs)])
        ends[name.replace("_in", "_out")] = maker.constant(*maker.shape) if rng.random() < 0.05 else new
    if rng.random() < 0.3:
        ends["z"] = ends[rng.choice(inputs).replace("_in", "_out")]  # a state that is an output too
    if rng.random() < 0.2:
        ends["old"] = rng.choice(inputs)
    for name, value in ends.items():
        maker.nodes.append(helper.make_node("Identity", [value], [name], name=f"to_{name}"))
    info = lambda name: helper.make_tensor_value_info(name, TensorProto.FLOAT, maker.shape)  # noqa: E731
    given, results = [info("x"), *map(info, inputs)], [info(name) for name in ends]
    if counts:
        for name, ports in (("n_in", given), ("n_out", results)):
            ports.append(helper.make_tensor_value_info(name, TensorProto.INT64, [1]))
    if is_open:
        maker.move_rows(inputs[0])
        for name, ports in (("rows", given), ("moved", results)):
            ports.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, ["t", maker.size]))
    graph = helper.make_graph(maker.nodes, "states", given, results, maker.constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.checker.check_model(model)
    states = {name: name.replace("_in", "_out") for name in [*inputs, *(["n_in"] if counts else [])]}
    return Network(model, states, is_open, precision)


def run_by_hand(run: object, network: Network, given: Sequence[Arrays]) -> list[dict[str, np.ndarray]]:
    """Returns the outputs of all runs of a network whose states are fed back by hand."""
    now, states = network.start(), network.states
    results = []
    for arrays in given:
        outputs = run({**arrays, **now})  # type: ignore[operator]
        now = {name: np.array(outputs[output]) for name, output in states.items()}
        results.append({name: np.array(a) for name, a in outputs.items() if name not in states.values()})
    return results


def run_with_states(bmodel: Path, given: Sequence[Arrays], threads: int) -> list[dict[str, np.ndarray]]:
    """Returns the outputs of all runs of a file with states. Saves the states after a third of the runs, continues in
    another context later, and resets at last: all of this must give the same outputs."""
    import tessera.runtime as rt

    model = rt.load(str(bmodel), threads=threads)
    net, third = model.net(), len(given) // 3

    def run(net: object, begin: int, end: int) -> list[dict[str, np.ndarray]]:
        runs = (net(dict(arrays)) for arrays in given[begin:end])  # type: ignore[operator]
        return [{name: np.array(array) for name, array in outputs.items()} for outputs in runs]

    results = run(net, 0, third)
    saved = net.save_state()
    results += run(net, third, len(given))
    other = model.net()
    other(dict(given[0]))
    other.load_state(saved)
    net.reset_state()
    for name, again, expected in (
        ("restored", run(other, third, len(given)), results[third:]),
        ("reset", run(net, 0, third), results[:third]),
    ):
        for got, want in zip(again, expected):
            if any(got[n].tobytes() != want[n].tobytes() for n in want):
                raise ValueError(f"the {name} states give other outputs")
    return results


def check(compiler: Compiler, seed: int, isa: str, folder: Path) -> None:
    network = make_network(seed, allows_open_sizes=isa != "npu-base")
    path = folder / "model.onnx"
    path.write_bytes(network.model.SerializeToString())
    files = []
    for name, flags in (("plain", ()), ("kept", ("--state", ",".join(map("=".join, network.states.items()))))):
        (folder / name).mkdir(exist_ok=True)
        mlir = folder / name / "model_top.mlir"
        dims = ("--dims", f"t=0..{MOST_ROWS}") if network.is_open else ()
        compiler("import", "import", "--onnx", path, "--output", mlir, *flags, *dims)
        files.append(deploy(compiler, mlir, isa, "--quantize", network.precision))
    plain, kept = files
    given = network.draw_runs(seed)

    def work() -> list[list[dict[str, np.ndarray]]]:
        import tessera.runtime as rt

        results = [run_with_states(kept, given, threads) for threads in (1, 2)]
        return [*results, run_by_hand(rt.load(str(plain)).net(), network, given)]

    one, two, by_hand = in_child("run", work)  # type: ignore[misc]
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    framework = run_by_hand(lambda feed: dict(zip(names, session.run(names, feed))), network, given)
    for number, (got, other, plain_got, wanted) in enumerate(zip(one, two, by_hand, framework)):
        for name, want in wanted.items():
            for what, have in (("the file without states", plain_got), ("2 threads", other)):
                if not np.array_equal(got[name], have[name], equal_nan=True):
                    raise StageError("compare", f"run {number}: '{name}' differs from {what}")
            error = float(np.abs(got[name] - want).max(initial=0))
            if not error <= TOLERANCES[network.precision]:
                raise StageError("compare", f"run {number}: '{name}' has error {error:.3g} against onnxruntime")


def run_seed(seed: int, isa: str, keep: Path | None = None) -> str:
    """Returns the fault of the network of a seed, or ""."""
    fault = seed_runner.run_in_folder(check, "states", seed, isa, keep)
    return fault and f"{isa}, {fault}"


def run_seeds(seeds: Sequence[int], jobs: int) -> list[str]:
    """Returns the faults of many seeds."""
    return list(filter(None, seed_runner.map_seeds(run_seed, VARIANTS, seeds, jobs, None, None)))


def main() -> int:
    return seed_runner.report_faults(run_seed, VARIANTS, seed_runner.parse_arguments(__doc__, VARIANTS))


if __name__ == "__main__":
    sys.exit(main())
