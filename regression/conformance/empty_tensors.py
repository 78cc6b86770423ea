# SPDX-License-Identifier: Apache-2.0
"""A grid of tensors without elements and without dims: ranks 0 to 6, sizes 0, 1 and 2, every family of ops, every
precision, every chip, against onnxruntime (or the Top reference where onnxruntime rejects the model).

Every op stands between two others, so that its tensors are results and operands, or alone. Several cases share a model;
where one fails, each is tried by itself.
    build/bin/tessera-python regression/conformance/empty_tensors.py [--chip npu-base] [--precision BF16] [--only REGEX]
"""
from __future__ import annotations

import argparse
import itertools
import os
import re
import sys
import tempfile
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Callable, Iterator, Sequence

import numpy as np
import onnx
from engines import GPUS, Compiler, StageError, deploy, run_bmodel, run_reference
from onnx import TensorProto, helper, numpy_helper
from random_attention import write_table
from seed_runner import compiler_of_process

from tessera import safetensors_io

CHIPS = ("x86", "x86-v2", "npu-edge", "npu-base", *GPUS)
PRECISIONS = ("F32", "BF16", "F16", "INT8", "W8", "DYNAMIC_INT8")
TOLERANCE = {"F32": 1e-4, "BF16": 3e-2, "F16": 4e-3, "INT8": 0.25, "W8": 3e-2, "DYNAMIC_INT8": 6e-2}
CASES_PER_MODEL = 16
Shape = tuple[int, ...]


def shapes_of(rank: int) -> list[Shape]:
    """Returns all shapes with dims 0, 1 and 2 up to rank 2; for higher ranks, shapes with a 0 at each place and some
    others."""
    if rank <= 2:
        return list(itertools.product((0, 1, 2), repeat=rank))
    full = [2, 1] * 3
    with_zero = [tuple(0 if d == at else full[(d + at) % 2] for d in range(rank)) for at in range(rank)]
    return [(1,) * rank, tuple(full[:rank]), (0,) * rank, *with_zero]


@dataclass
class Case:
    """One op in a separate graph; `inputs` are computed, `constants` are not."""

    name: str
    nodes: list[onnx.NodeProto] = field(default_factory=list)
    inputs: dict[str, np.ndarray] = field(default_factory=dict)
    constants: dict[str, np.ndarray] = field(default_factory=dict)
    outputs: list[str] = field(default_factory=list)

    def given(self, shape: Shape, kind: type = np.float32) -> str:
        """Adds an input. In some cases the result is not the input itself, but an op on it."""
        name = f"{self.name}.x{len(self.inputs)}"
        size = int(np.prod(shape))
        self.inputs[name] = (np.linspace(0.25, 1.5, size) if size else np.zeros(0)).reshape(shape).astype(kind)
        if kind is not np.float32 or len(self.name) % 2:
            return name
        return self.op("Abs", [name])[0]

    def constant(self, value: object, kind: type = np.int64) -> str:
        name = f"{self.name}.c{len(self.constants)}"
        self.constants[name] = np.asarray(value, kind)
        return name

    def weight(self, shape: Shape) -> str:
        return self.constant(np.linspace(-1, 1, int(np.prod(shape))).reshape(shape), np.float32)

    def op(self, op: str, inputs: Sequence[str], count: int = 1, **attributes: object) -> list[str]:
        names = [f"{self.name}.v{len(self.nodes)}_{i}" for i in range(count)]
        self.nodes.append(helper.make_node(op, list(inputs), names, **attributes))
        return names

    def end(self, op: str, inputs: Sequence[str], count: int = 1, follow: bool = True, **attributes: object) -> "Case":
        results = self.op(op, inputs, count, **attributes)
        self.outputs = [self.op("Neg", [y])[0] for y in results] if follow and len(self.name) % 3 else results
        return self


# --- The families: each yields the cases of a shape ---

UNARY = (
    "Relu",
    "Sigmoid",
    "Exp",
    "Neg",
    "Sqrt",
    "Erf",
    "Softplus",
    "HardSwish",
    "LeakyRelu",
    "Floor",
    "Identity",
    "Tanh",
)
BINARY = ("Add", "Mul", "Div", "Max", "Pow", "Sub")
REDUCTIONS = (
    "ReduceSum",
    "ReduceMean",
    "ReduceProd",
    "ReduceL1",
    "ReduceL2",
    "ReduceSumSquare",
    "ReduceMax",
    "ReduceMin",
)


def label(*parts: object) -> str:
    return "_".join("x".join(map(str, p)) or "scalar" if isinstance(p, tuple) else str(p) for p in parts)


def elementwise(shape: Shape) -> Iterator[Case]:
    for op in UNARY:
        case = Case(label(op, shape))
        yield case.end(op, [case.given(shape)])
    for op, (way, other) in itertools.product(BINARY, {"same": shape, "scalar": (), "one": (1,)}.items()):
        case = Case(label(op, way, shape))
        yield case.end(op, [case.given(shape), case.given(other)])
    case = Case(label("Where", shape))
    condition = case.op("Greater", [case.given(shape), case.given(())])[0]
    yield case.end("Where", [condition, case.given(shape), case.given((1,))])
    for kind in (TensorProto.FLOAT16, TensorProto.INT32, TensorProto.BOOL):
        case = Case(label("Cast", kind, shape))
        yield case.end("Cast", [case.given(shape)], follow=False, to=kind)
    case = Case(label("Clip", shape))
    yield case.end("Clip", [case.given(shape), case.constant(0.5, np.float32), case.constant(1, np.float32)])
    case = Case(label("Qdq", shape))
    scale, zero = case.constant(0.02, np.float32), case.constant(3, np.int8)
    yield case.end("DequantizeLinear", [case.op("QuantizeLinear", [case.given(shape), scale, zero])[0], scale, zero])
    if shape != () and 0 not in shape:
        case = Case(label("DynamicQuantizeLinear", shape))
        yield case.end("DynamicQuantizeLinear", [case.given(shape)], 3, follow=False)


def reductions(shape: Shape) -> Iterator[Case]:
    rank = len(shape)
    some = {tuple(range(rank)), *((d,) for d in range(rank)), tuple(range(1, rank))} - {()}
    for op, axes, keep in itertools.product(REDUCTIONS, sorted(some), (0, 1)):
        empty = any(shape[d] == 0 for d in axes)
        if (empty and op in ("ReduceMax", "ReduceMin", "ReduceMean")) or (rank > 2 and keep and op != "ReduceSum"):
            continue  # not defined for empty tensors
        case = Case(label(op, axes, keep, shape))
        yield case.end(op, [case.given(shape), case.constant(axes)], keepdims=keep)
    for axis in (d for d in range(rank) if shape[d]):
        case = Case(label("ArgMax", axis, shape))
        yield case.end("ArgMax", [case.given(shape)], follow=False, axis=axis)
    for axis in range(rank):
        case = Case(label("Softmax", axis, shape))
        yield case.end("Softmax", [case.given(shape)], axis=axis)
        case = Case(label("CumSum", axis, shape))
        yield case.end("CumSum", [case.given(shape), case.constant(axis)])
    if rank and shape[-1]:
        case = Case(label("LayerNormalization", shape))
        x, scale = case.given(shape), case.weight(shape[-1:])
        yield case.end("LayerNormalization", [x, scale, case.weight(shape[-1:])], axis=-1)
        case = Case(label("TopK", shape))
        yield case.end("TopK", [case.given(shape), case.constant([shape[-1] // 2])], 2, follow=False, axis=-1)
    if rank:
        case = Case(label("TopK0", shape))
        yield case.end("TopK", [case.given(shape), case.constant([0])], 2, follow=False, axis=-1)


def moves(shape: Shape) -> Iterator[Case]:
    rank = len(shape)
    reversed_ = tuple(reversed(range(rank)))
    plans: list[tuple[str, Callable[[Case, str], Case]]] = [
        ("Flatten", lambda c, x: c.end("Flatten", [x], axis=min(1, rank))),
        ("Reshape", lambda c, x: c.end("Reshape", [x, c.constant(list(reversed(shape)))], allowzero=1)),
        ("Transpose", lambda c, x: c.end("Transpose", [x], perm=reversed_)),
        ("Unsqueeze", lambda c, x: c.end("Unsqueeze", [x, c.constant([0])])),
        ("Expand", lambda c, x: c.end("Expand", [x, c.constant([2, *(max(d, 1) for d in shape)])])),
        ("Shape", lambda c, x: c.end("Shape", [x], follow=False)),
        ("Size", lambda c, x: c.end("Size", [x], follow=False)),
        (
            "MatMulOfReshape",
            lambda c, x: c.end("MatMul", [c.op("Flatten", [x], axis=0)[0], c.weight((int(np.prod(shape)), 3))]),
        ),
    ]
    if rank:
        n = shape[0]
        plans += [
            ("SliceNone", lambda c, x: c.end("Slice", [x, c.constant([1]), c.constant([1]), c.constant([0])])),
            ("SliceTail", lambda c, x: c.end("Slice", [x, c.constant([-1]), c.constant([99]), c.constant([rank - 1])])),
            ("Concat", lambda c, x: c.end("Concat", [x, c.given((2, *shape[1:])), x], axis=0)),
            ("ConcatLast", lambda c, x: c.end("Concat", [x, c.given((*shape[:-1], 1))], axis=-1)),
            ("Split", lambda c, x: c.end("Split", [x, c.constant([0, n])], 2, axis=0)),
            ("Tile", lambda c, x: c.end("Tile", [x, c.constant([2] * rank)])),
            ("Tile0", lambda c, x: c.end("Tile", [x, c.constant([1] * (rank - 1) + [0])])),
            ("Pad", lambda c, x: c.end("Pad", [x, c.constant([1] * rank + [0] * rank)])),
            ("GatherNone", lambda c, x: c.end("Gather", [x, c.constant(np.zeros((0,)))], axis=0)),
        ]
        if n:
            plans += [
                ("Gather0d", lambda c, x: c.end("Gather", [x, c.constant(0)], axis=0)),
                ("GatherInput", lambda c, x: c.end("Gather", [x, c.given((0, 2), np.int64)], axis=0)),
                (
                    "ScatterNone",
                    lambda c, x: c.end("ScatterND", [x, c.constant(np.zeros((0, 1))), c.given((0, *shape[1:]))]),
                ),
            ]
    if 1 in shape:
        plans.append(("Squeeze", lambda c, x: c.end("Squeeze", [x, c.constant([shape.index(1)])])))
    for name, plan in plans:
        case = Case(label(name, shape))
        yield plan(case, case.given(shape))


def products(shape: Shape) -> Iterator[Case]:
    rank = len(shape)
    if rank == 0:
        return
    k = shape[-1]
    for n in (0, 1, 3):
        case = Case(label("MatMul", n, shape))
        yield case.end("MatMul", [case.given(shape), case.weight((k, n))])
        case = Case(label("MatMulInputs", n, shape))
        yield case.end("MatMul", [case.given(shape), case.given((*shape[:-2], k, n))])
        case = Case(label("MatMulBias", n, shape))
        y = case.op("MatMul", [case.given(shape), case.weight((k, n))])[0]
        yield case.end("Relu", case.op("Add", [y, case.weight((n,))]))
    if rank == 2:
        case = Case(label("Gemm", shape))
        yield case.end("Gemm", [case.given(shape), case.weight((3, k)), case.weight((3,))], transB=1)
        case = Case(label("Einsum", shape))
        yield case.end("Einsum", [case.given(shape), case.given((k, 2))], equation="ij,jk->ik")


def windows(shape: Shape) -> Iterator[Case]:
    rank = len(shape)
    if rank not in (3, 4, 5) or 0 in shape[1:]:
        return  # images without pixels or channels have no windows
    spatial, channels = rank - 2, shape[1]
    for op, kernel in (("Conv", (3,)), ("ConvTranspose", (2,))):
        case = Case(label(op, shape))
        weight = case.weight((4, channels) + kernel * spatial if op == "Conv" else (channels, 4) + kernel * spatial)
        yield case.end(
            op, [case.given(shape), weight, case.weight((4,))], pads=[1] * 2 * spatial if op == "Conv" else None
        )
    case = Case(label("Depthwise", shape))
    weight = case.weight((channels, 1) + (3,) * spatial)
    yield case.end("Conv", [case.given(shape), weight], pads=[1] * 2 * spatial, group=channels)
    for op in ("MaxPool", "AveragePool"):
        case = Case(label(op, shape))
        yield case.end(op, [case.given(shape)], kernel_shape=[2] * spatial, pads=[1] * 2 * spatial)
    case = Case(label("GlobalAveragePool", shape))
    yield case.end("GlobalAveragePool", [case.given(shape)])
    case = Case(label("InstanceNormalization", shape))
    yield case.end("InstanceNormalization", [case.given(shape), case.weight((channels,)), case.weight((channels,))])
    case = Case(label("BatchNormalization", shape))
    ones = case.constant(np.ones(channels), np.float32)
    yield case.end("BatchNormalization", [case.given(shape), ones, case.weight((channels,)), ones, ones])
    if rank == 4:
        case = Case(label("Resize", shape))
        scales = case.constant([1, 1, 2, 2], np.float32)
        yield case.end("Resize", [case.given(shape), "", scales], mode="linear")
        case = Case(label("SpaceToDepth", shape))
        yield case.end("DepthToSpace", [case.given((shape[0], 4, *shape[2:]))], blocksize=2)


def nothing(shape: Shape) -> Iterator[Case]:
    """Models in which no op computes."""
    for op in ("Identity", "Shape"):
        case = Case(label("Only" + op, shape))
        case.inputs[case.name] = np.ones(shape, np.float32)
        yield case.end(op, [case.name], follow=False)
    case = Case(label("OnlyConstant", shape))
    case.inputs[case.name] = np.ones(shape, np.float32)
    yield case.end("Identity", [case.weight(shape)], follow=False)


FAMILIES = (elementwise, reductions, moves, products, windows)


def groups(only: str, ranks: Sequence[int] = range(7), every: int = 1) -> Iterator[list[Case]]:
    """Yields lists of cases that share a model; a case in which no op computes is alone. every: takes each Nth case."""
    shapes = [shape for rank in ranks for shape in shapes_of(rank)]

    def take(cases: Iterator[Case]) -> list[Case]:
        return [case for case in cases if re.search(only, case.name)][::every]

    for case in take(case for shape in shapes for case in nothing(shape)):
        yield [case]
    cases = take(case for shape in shapes for family in FAMILIES for case in family(shape))
    for at in range(0, len(cases), CASES_PER_MODEL):
        yield cases[at : at + CASES_PER_MODEL]


# --- Running ---


def model_of(cases: Sequence[Case]) -> onnx.ModelProto:
    graph = helper.make_graph(
        [node for case in cases for node in case.nodes],
        "empty",
        [
            helper.make_tensor_value_info(name, numpy_helper.from_array(array).data_type, array.shape)
            for case in cases
            for name, array in case.inputs.items()
        ],
        [onnx.ValueInfoProto(name=name) for case in cases for name in case.outputs],
        [numpy_helper.from_array(array, name) for case in cases for name, array in case.constants.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)


def run_onnxruntime(model: onnx.ModelProto, inputs: dict[str, np.ndarray]) -> dict[str, np.ndarray] | None:
    try:
        import onnxruntime as ort

        options = ort.SessionOptions()
        options.log_severity_level = 4
        options.intra_op_num_threads = 1
        session = ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
        names = [output.name for output in session.get_outputs()]
        return dict(zip(names, session.run(names, inputs)))
    except Exception:  # onnxruntime raises its own unrelated classes
        return None


def check(compiler: Compiler, cases: Sequence[Case], chip: str, precision: str, folder: Path) -> None:
    model, inputs = model_of(cases), {name: array for case in cases for name, array in case.inputs.items()}
    path, mlir = folder / "model.onnx", folder / "model_top.mlir"
    path.write_bytes(model.SerializeToString())
    compiler("import", "import", "--onnx", path, "--output", mlir)
    expected = run_onnxruntime(model, inputs)
    if expected is None:
        if len(cases) > 1:
            raise StageError("onnxruntime", "one of the cases is beyond it")
        expected = run_reference(compiler, mlir, inputs)
    flags = ["--quantize", precision]
    if precision == "INT8":
        given, results, table = folder / "in.st", folder / "out.st", folder / "table.json"
        run_reference(compiler, mlir, inputs)
        compiler(
            "reference",
            "reference",
            "--mlir",
            mlir,
            "--input",
            mlir.with_name("in.safetensors"),
            "--output",
            results,
            "--all",
        )
        info = compiler("info", "info", "--mlir", mlir, "--tensors")
        values = {name: array for name, array in safetensors_io.load(results).items() if name in info["tensors"]}
        write_table(table, str(info["model_hash"]), values, 0)
        flags += ["--calibration-table", str(table)]
    got = run_bmodel(deploy(compiler, mlir, chip, *flags), inputs)
    for name, wanted in expected.items():
        wanted, actual = np.asarray(wanted), np.asarray(got[name])
        if wanted.shape != actual.shape or wanted.dtype != actual.dtype:
            raise StageError(
                "compare", f"'{name}' is {actual.dtype}{actual.shape}, expected {wanted.dtype}{wanted.shape}"
            )
        limit = TOLERANCE[precision] * max(1.0, float(np.abs(wanted.astype(np.float64)).max(initial=0)))
        limit = limit if wanted.dtype.kind == "f" else 0 if precision == "F32" else np.inf
        if not np.allclose(actual.astype(np.float64), wanted.astype(np.float64), rtol=0, atol=limit, equal_nan=True):
            raise StageError("compare", f"'{name}' is {actual.reshape(-1)[:4]}, expected {wanted.reshape(-1)[:4]}")


def run_group(cases: Sequence[Case], chip: str, precision: str) -> list[str]:
    """Returns the faults of the cases, one line each."""
    with tempfile.TemporaryDirectory() as folder:
        try:
            check(compiler_of_process(), cases, chip, precision, Path(folder))
            return []
        except StageError as fault:
            if len(cases) == 1:
                return [f"{cases[0].name} on {chip} in {precision}: {fault.stage}: {str(fault)[:400]}"]
    each = [line for case in cases for line in run_group([case], chip, precision)]
    return each


def run_all(
    chips: Sequence[str],
    precisions: Sequence[str],
    only: str,
    jobs: int,
    every: int = 1,
    ranks: Sequence[int] = range(7),
) -> Iterator[list[str]]:
    """Returns the faults of every model."""
    tasks = [(g, c, p) for c in chips for p in precisions for g in groups(only, ranks, every)]
    with ProcessPoolExecutor(jobs) as pool:
        yield from pool.map(run_group, *zip(*tasks), chunksize=2)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--chip", choices=CHIPS, action="append")
    parser.add_argument("--precision", choices=PRECISIONS, action="append")
    parser.add_argument("--only", default="", metavar="REGEX", help="cases whose names have this")
    parser.add_argument("--every", type=int, default=1, metavar="N", help="every Nth case alone")
    parser.add_argument("--ranks", type=int, nargs="*", default=range(7))
    parser.add_argument("-j", "--jobs", type=int, default=os.cpu_count() or 1)
    args = parser.parse_args()
    faults = models = 0
    for lines in run_all(
        args.chip or CHIPS, args.precision or PRECISIONS, args.only, args.jobs, args.every, args.ranks
    ):
        models += 1
        for line in lines:
            faults += 1
            print(line, flush=True)
    count = sum(len(group) for group in groups(args.only, args.ranks, args.every))
    print(f"{faults} faults; {count} cases in {models} models")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
