# SPDX-License-Identifier: Apache-2.0
"""Random chains of Cast with arithmetic between, compared to the bit with a reference in numpy.

A cast to f16 or bf16 rounds; what ops compute on such values is rounded to f32 alone until the next cast. The
arithmetic is exact or rounds once, so every engine must give the same bits. Inputs have the special values of each
type: halves between two numbers, the largest and smallest ones, infinities, NaN, subnormals.
    build/bin/tessera-python regression/conformance/random_casts.py --seeds 0:500 [--isa npu-base] [--keep FOLDER]
"""
from __future__ import annotations

import random
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Iterator, Sequence

import numpy as np
import onnx
import seed_runner
from engines import GPUS, Compiler, StageError, deploy, run_bmodel, run_reference, supported_isas
from onnx import TensorProto, helper

VARIANTS = (*supported_isas("x86-avx512bf16"), "npu-base", "npu-edge")
PRECISIONS = ("F32", "F32", "F32", "BF16", "F16", "W8")

BF16 = "bfloat16"  # not a type of numpy: values are float32
TYPES = {
    "float32": TensorProto.FLOAT,
    "float16": TensorProto.FLOAT16,
    BF16: TensorProto.BFLOAT16,
    "float64": TensorProto.DOUBLE,
    "int8": TensorProto.INT8,
    "uint8": TensorProto.UINT8,
    "int16": TensorProto.INT16,
    "uint16": TensorProto.UINT16,
    "int32": TensorProto.INT32,
    "uint32": TensorProto.UINT32,
    "int64": TensorProto.INT64,
    "uint64": TensorProto.UINT64,
    "bool": TensorProto.BOOL,
}
FLOATS = ("float32", "float16", BF16, "float64")
NARROW = ("float16", BF16)
SIZE = 96


def round_bf16(values: np.ndarray) -> np.ndarray:
    """Returns the nearest bf16 of floats of any width, as float32."""
    exact = values.astype(np.float64)
    with np.errstate(all="ignore"):
        exponent = np.maximum(np.frexp(exact)[1] - 1, -126)
        unit = np.ldexp(1.0, exponent - 7)
        rounded = np.where(np.isfinite(exact), np.rint(exact / unit) * unit, exact)
        rounded = np.where(np.abs(rounded) >= 2.0**128, np.copysign(np.inf, exact), rounded)
    return rounded.astype(np.float32)


def to_integer(values: np.ndarray, name: str) -> np.ndarray:
    """Truncates floats to integers of type `name`. The conversion has 64 bits for 64-bit types and uint32, otherwise
    32: a value out of its range becomes the smallest integer of that width, of which the other types keep the low
    bits."""
    kind = np.dtype(name)
    bits = 64 if kind in (np.int64, np.uint64, np.uint32) else 32
    with np.errstate(all="ignore"):
        exact = np.trunc(values.astype(np.float64))
        fits = (exact >= -(2.0 ** (bits - 1))) & (exact < 2.0 ** (bits - 1))
        whole = np.where(fits, exact, -(2.0 ** (bits - 1))).astype(np.int64)
        if kind == np.uint64:
            beyond = (exact >= 2.0**63) & (exact < 2.0**64)
            return np.where(beyond, np.where(beyond, exact, 0).astype(np.uint64), whole.astype(np.uint64))
    return whole.astype(kind)


def cast(values: np.ndarray, source: str, target: str) -> np.ndarray:
    """Casts values like the reference. Values of narrow types are float32, and may have more bits than the type."""
    if source == target:
        return values
    with np.errstate(all="ignore"):
        if target == "bool":
            return values != 0
        if target not in FLOATS:
            return to_integer(values, target) if source in FLOATS else values.astype(target)
        if target in NARROW and source not in FLOATS:
            values = values.astype(np.float32)
        if target == BF16:
            return round_bf16(values)
        return values.astype(np.float16).astype(np.float32) if target == "float16" else values.astype(target)


def specials() -> np.ndarray:
    """Returns float32 numbers at the limits of the other types."""
    numbers = [0.0, -0.0, 0.1, 1 / 3, 0.5, 1.5, 2.5, -0.5, -0.9, 0.99999994, 254.5, 255.5, 256, 127.6, -128.4, -129]
    numbers += [2049, 2051, 4098, 65503.9, 65504, 65519.996, 65520, 65536, 1e5, 70000, 257, 259, 2**24 + 2]
    numbers += [
        2**-24,
        2**-25,
        2**-25 * 1.0001,
        3 * 2**-25,
        6.1e-5,
        6.09e-5,
        5.96e-8,
        1e-9,
        1e-38,
        1.2e-38,
        1e-40,
        1e-45,
    ]
    numbers += [32767.5, 32768, 65535.5, 2147483520, 2147483648, 4294967040, 4294967296, 9.2e18, 2e19, 3.4e38]
    numbers += [3.39e38, 3.3953e38, np.inf, np.nan]
    array = np.array(numbers, np.float32)
    return np.concatenate([array, -array])


def draw_values(r: random.Random) -> np.ndarray:
    rng = np.random.default_rng(r.randrange(1 << 30))
    if r.random() < 0.4:
        return rng.permutation(specials())[:SIZE]
    exponents = rng.integers(-r.choice([3, 12, 30, 45]), r.choice([4, 8, 17, 34]), SIZE)
    values = (rng.uniform(1, 2, SIZE) * 2.0**exponents * rng.choice([-1, 1], SIZE)).astype(np.float32)
    if r.random() < 0.5:  # halves of the narrow types
        keep = r.choice([0x10000, 0x2000])  # bf16, f16
        bits = values.view(np.uint32) & np.uint32(0xFFFFFFFF ^ (keep - 1))
        values = (bits | np.uint32(keep // 2)).view(np.float32)
    return values


@dataclass
class Network:
    model: onnx.ModelProto
    inputs: dict[str, np.ndarray]
    bfloat16: tuple[str, ...]  # inputs
    expected: dict[str, np.ndarray]
    precision: str


class Chain:
    """Builds one network; `values` holds the values of the last tensor."""

    def __init__(self, seed: int) -> None:
        self.r = random.Random(seed)
        self.precision = self.r.choice(PRECISIONS)
        self.nodes: list[onnx.NodeProto] = []
        self.constants: list[onnx.TensorProto] = []
        self.seen: list[tuple[str, str, np.ndarray]] = []

    def add(self, op: str, inputs: Sequence[str], values: np.ndarray, type_name: str, **attributes: object) -> None:
        name = f"v{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, list(inputs), [name], **attributes))
        self.name, self.values, self.type = name, values, type_name
        self.seen.append((name, type_name, values))

    def constant(self, value: float) -> "tuple[str, np.ndarray]":
        """Adds a constant; returns its name and its values in the type of the chain."""
        name = f"c{len(self.constants)}"
        exact = cast(np.array(value, np.float32), "float32", self.type)
        self.constants.append(helper.make_tensor(name, TYPES[self.type], [], [exact.item()]))
        return name, exact

    def add_cast(self) -> None:
        target = self.r.choice([*TYPES] if self.type in NARROW else [*NARROW, *NARROW, *NARROW, *FLOATS, *TYPES])
        self.add("Cast", [self.name], cast(self.values, self.type, target), target, to=TYPES[target])

    def add_arithmetic(self) -> None:
        """Adds an op whose result is exact or rounded once, to f32 for narrow types."""
        if self.type not in FLOATS and self.type not in ("int32", "int64"):
            return
        op = self.r.choice(["Neg", "Abs", "Mul", "Add", "Sum", "Max", "Relu", "Sub"])
        x, kind = self.values, self.values.dtype.type
        with np.errstate(all="ignore"):
            if op == "Neg":
                self.add(op, [self.name], -x, self.type)
            elif op == "Abs":
                self.add(op, [self.name], np.abs(x), self.type)
            elif op == "Mul":
                name, factor = self.constant(self.r.choice([2, 4] if self.type not in FLOATS else [0.5, 2, 4, -8]))
                self.add(op, [self.name, name], x * factor, self.type)
            elif op in ("Add", "Sub"):
                name, step = self.constant(self.r.choice([1, 3, 257]))
                self.add(op, [self.name, name], x + step if op == "Add" else x - step, self.type)
            elif op == "Sum":
                self.add("Add", [self.name, self.name], x + x, self.type)
            elif self.type in FLOATS:  # NaN passes through both
                low = kind(1 if op == "Max" else 0)
                values = np.where(np.isnan(x), x, np.maximum(x, low))
                self.add(op, [self.name, self.constant(1)[0]] if op == "Max" else [self.name], values, self.type)

    def add_move(self) -> None:
        self.add("Flatten", [self.name], self.values.reshape(1, -1), self.type, axis=0)
        self.add("Transpose", [self.name], self.values.T, self.type, perm=[1, 0])
        self.add("Flatten", [self.name], self.values.reshape(1, -1), self.type, axis=0)
        axes = f"c{len(self.constants)}"
        self.constants.append(helper.make_tensor(axes, TensorProto.INT64, [1], [0]))
        self.add("Squeeze", [self.name, axes], self.values.reshape(-1), self.type)

    def build(self) -> Network:
        r = self.r
        self.type = r.choice(["float32", "float32", "float32", *TYPES])
        self.name, self.values = "x", cast(draw_values(r), "float32", self.type)
        source = (self.type, self.values)
        for _ in range(r.randint(2, 8)):
            choice = r.random()
            if choice < 0.65 or (choice < 0.9 and self.precision != "F32"):
                self.add_cast()
            elif choice < 0.9:
                self.add_arithmetic()
            else:
                self.add_move()
        if not self.nodes:
            self.add_cast()
        chosen = {name for name, *_ in self.seen if r.random() < 0.25} | {self.name}
        outputs = [entry for entry in self.seen if entry[0] in chosen]
        graph = helper.make_graph(
            self.nodes,
            "casts",
            [helper.make_tensor_value_info("x", TYPES[source[0]], source[1].shape)],
            [helper.make_tensor_value_info(name, TYPES[kind], values.shape) for name, kind, values in outputs],
            self.constants,
        )
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
        given = source[1].astype(np.float16) if source[0] == "float16" else source[1]
        narrow = ("x",) if source[0] == BF16 else ()
        expected = {name: stored(values, kind) for name, kind, values in outputs}
        return Network(model, {"x": given}, narrow, expected, self.precision)


def stored(values: np.ndarray, kind: str) -> np.ndarray:
    """Returns the values as an output of type `kind` holds them: rounded to a narrow type."""
    with np.errstate(all="ignore"):
        return round_bf16(values) if kind == BF16 else values.astype(np.float16) if kind == "float16" else values


def make_network(seed: int) -> Network:
    return Chain(seed).build()


def describe(model: onnx.ModelProto) -> str:
    types = {number: name for name, number in TYPES.items()}
    steps = [types[model.graph.input[0].type.tensor_type.elem_type]]
    for node in model.graph.node:
        steps.append(types[node.attribute[0].i] if node.op_type == "Cast" else node.op_type)
    return " ".join(steps)


def compare(engine: str, network: Network, got: dict[str, np.ndarray]) -> None:
    given = network.inputs["x"].reshape(-1)
    for name, expected in network.expected.items():
        actual, expected = np.asarray(got[name]).reshape(-1), expected.reshape(-1)
        if actual.dtype != expected.dtype or actual.size != expected.size:
            raise StageError("compare", f"'{name}' of {engine} is {actual.dtype}[{actual.size}]")
        differs = actual != expected
        if expected.dtype.kind == "f":
            differs &= ~(np.isnan(actual) & np.isnan(expected))
        if differs.any():
            at = int(np.flatnonzero(differs)[0])
            raise StageError(
                "compare",
                f"'{name}' of {engine} {network.precision} differs in {differs.sum()} of {differs.size}: "
                f"{given[at]!r} gives {actual[at]!r}, expected {expected[at]!r}; {describe(network.model)}",
            )


def _check(compiler: Compiler, seed: int, isa: str, folder: Path) -> None:
    network = make_network(seed)
    path, mlir = folder / "model.onnx", folder / "model_top.mlir"
    path.write_bytes(network.model.SerializeToString())
    compiler("import", "import", "--onnx", path, "--output", mlir)
    bmodel = deploy(compiler, mlir, isa, "--quantize", network.precision)
    compare(isa, network, run_bmodel(bmodel, network.inputs, network.bfloat16))
    # The reference follows the definition: it also rounds results of ops.
    if all(node.op_type not in ("Add", "Sub", "Mul") for node in network.model.graph.node):
        compare("the Top reference", network, run_reference(compiler, mlir, network.inputs, network.bfloat16))


def run_seed(seed: int, isa: str, keep: Path | None = None) -> str:
    """Returns the fault of the network of a seed, or ""."""
    return seed_runner.run_in_folder(_check, "casts", seed, isa, keep)


def run_seeds(seeds: Sequence[int], jobs: int, isa: str | None = None, keep: Path | None = None) -> Iterator[str]:
    """Returns run_seed's results for many seeds. Without `isa` the chips alternate."""
    return seed_runner.map_seeds(run_seed, VARIANTS, seeds, jobs, isa, keep)


def main() -> int:
    arguments = seed_runner.parse_arguments(__doc__, (*VARIANTS, *GPUS))
    return seed_runner.report_faults(run_seed, VARIANTS, arguments)


if __name__ == "__main__":
    sys.exit(main())
