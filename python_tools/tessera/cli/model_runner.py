# SPDX-License-Identifier: Apache-2.0
"""model_runner: runs a .bmodel, a NAME_top.mlir (reference evaluator) or an .onnx (onnxruntime)."""
from __future__ import annotations

import argparse
from pathlib import Path
from typing import Callable, Mapping, Sequence

import numpy as np

from .. import bmodel, compare, inputs, onnx_runner, top_model
from ..errors import TesseraError, usage_error
from ..files import require_file, require_writable_folder, save_npz
from ..inputs import InputSpec
from .common import Context, Parser, run_command

NAME = "model_runner"
EPILOG = """examples:
  model_runner --model m.bmodel --input in.npz --output out.npz
  model_runner --model m.bmodel --input cat.jpg --output out.npz --threads 2
  model_runner --model m_top.mlir --input in.npz --output all.npz --dump_all_tensors"""

Runner = Callable[[Mapping[str, np.ndarray]], dict[str, np.ndarray]]


def parse(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = Parser(NAME, __doc__.split(": ", 1)[1], EPILOG)
    parser.add_argument("--model", required=True, metavar="FILE", help=".bmodel, NAME_top.mlir or .onnx")
    parser.add_argument("--input", required=True, metavar="FILE",
                        help=".npz with one array per input, .npy, a picture, NAME=FILE,NAME=FILE, or random")
    parser.add_argument("--output", required=True, metavar="FILE", help="output .npz")
    parser.add_argument("--dump_all_tensors", action="store_true", help="write every named tensor, not only the outputs")
    parser.add_argument("--threads", type=int, default=1, metavar="N", help="threads (default: %(default)s)")
    return parser.add_common().parse_args(argv)


def open_model(context: Context) -> tuple[list[InputSpec], Runner]:
    """The model's inputs and a function that runs it, by the kind of file."""
    args, report = context.args, context.report
    path = require_file(args.model, "model")
    if path.suffix == ".bmodel":
        net = bmodel.open_net(path, args.threads)
        return net.inputs, net.run_every_tensor if args.dump_all_tensors else net.run
    if path.suffix == ".mlir":
        top = top_model.open_top(path, report)
        return list(top.inputs), lambda arrays: top_model.evaluate(top, arrays, report, args.dump_all_tensors)
    if path.suffix == ".onnx":
        model = onnx_runner.OnnxModel(path, args.threads, every_tensor=args.dump_all_tensors)
        specs = []
        for spec in model.inputs:
            if None in spec.shape and args.input == "random":
                raise TesseraError(f"input {spec} has dynamic dims: random input needs a fixed shape",
                                   hint="give --input FILE.npz")
            specs.append(spec)
        return _fixed(specs, args.input), model.run
    raise usage_error(f"--model {path}: expected .bmodel, .mlir or .onnx")


def _fixed(specs: Sequence[onnx_runner.TensorSpec], given: str) -> list[InputSpec]:
    """ONNX inputs with dynamic dims taken from the arrays that are given."""
    shapes: dict[str, tuple[int, ...]] = {}
    if Path(given).suffix == ".npz":
        from ..files import load_npz

        shapes = {name: array.shape for name, array in load_npz(given, "--input").items()}
    fixed = []
    for spec in specs:
        have = shapes.get(spec.name, ())
        dims = tuple(h if d is None and len(have) == len(spec.shape) else d
                     for d, h in zip(spec.shape, have or spec.shape))
        fixed.append(InputSpec(spec.name, tuple(1 if d is None else d for d in dims), spec.dtype))
    return fixed


def work(context: Context) -> None:
    args, report = context.args, context.report
    if Path(args.output).suffix != ".npz":
        raise usage_error(f"--output {args.output}: the name must end in .npz")
    if args.threads < 1:
        raise usage_error(f"--threads {args.threads}: at least 1")
    require_writable_folder(args.output)
    with report.step("open model") as step:
        specs, run = open_model(context)
        step.note = args.model
    with report.step("load input") as step:
        arrays = inputs.random_inputs(specs) if args.input == "random" else inputs.load_inputs(args.input, specs)
        step.note = ", ".join(map(str, specs[:4]))
    with report.step("run") as step:
        results = run(arrays)
        step.note = f"{len(results)} tensors"
    save_npz(args.output, results)
    context.result["outputs"] = {n: {"shape": list(v.shape), "dtype": str(v.dtype)} for n, v in results.items()}
    non_finite = [n for n, v in results.items() if v.dtype.kind == "f" and not np.isfinite(v).all()]
    if non_finite:
        report.warn(f"NaN or infinity in: {', '.join(non_finite[:10])}")
    rows = [("tensor", "type", "shape", "min", "max")]
    for name, value in list(results.items())[:20]:
        low, high = (f"{value.min():.6g}", f"{value.max():.6g}") if value.size else ("-", "-")
        rows.append((name, str(value.dtype), "x".join(map(str, value.shape)) or "scalar", low, high))
    report.say(compare.align(rows, right=(3, 4)))
    report.finish([f"npz_tool dump {args.output}"])


def main(argv: Sequence[str] | None = None) -> int:
    return run_command(NAME, parse, work, steps=3, argv=argv)


if __name__ == "__main__":
    raise SystemExit(main())
