# SPDX-License-Identifier: Apache-2.0
"""model_runner: runs a .bmodel, a NAME_top.mlir (reference evaluator) or an .onnx (onnxruntime)."""
from __future__ import annotations

import argparse
from pathlib import Path
from typing import Sequence

import numpy as np

from .. import any_model, compare, inputs
from ..errors import TesseraError, usage_error
from ..files import load_npz, require_writable_folder, save_npz
from .common import Context, Parser, run_command

NAME = "model_runner"
EPILOG = """examples:
  model_runner --model m.bmodel --input in.npz --output out.npz
  model_runner --model m.bmodel --input cat.jpg --output out.npz --threads 2
  model_runner --model m_top.mlir --input in.npz --output all.npz --dump_all_tensors"""


def parse(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = Parser(NAME, __doc__.split(": ", 1)[1], EPILOG)
    parser.add_argument("--model", required=True, metavar="FILE", help=".bmodel, NAME_top.mlir or .onnx")
    parser.add_argument("--input", required=True, metavar="FILE",
                        help=".npz with one array per input, .npy, a picture, NAME=FILE,NAME=FILE, or random")
    parser.add_argument("--output", required=True, metavar="FILE", help="output .npz")
    parser.add_argument("--dump_all_tensors", action="store_true", help="write every named tensor, not only the outputs")
    parser.add_argument("--threads", type=int, default=1, metavar="N", help="threads (default: %(default)s)")
    return parser.add_common().parse_args(argv)


def open_model(context: Context) -> any_model.AnyModel:
    """The model; dims that an .onnx leaves open are those of the arrays that are given."""
    args = context.args
    arrays = load_npz(args.input, "--input") if Path(args.model).suffix == ".onnx" and Path(args.input).suffix == ".npz" else {}
    model = any_model.open_model(args.model, context.report, args.threads, args.dump_all_tensors,
                                 {name: array.shape for name, array in arrays.items()})
    if model.assumed and args.input == "random":
        raise TesseraError(f"input {model.assumed[0]} has dynamic dims: random input needs a fixed shape",
                           hint="give --input FILE.npz")
    return model


def work(context: Context) -> None:
    args, report = context.args, context.report
    if Path(args.output).suffix != ".npz":
        raise usage_error(f"--output {args.output}: the name must end in .npz")
    if args.threads < 1:
        raise usage_error(f"--threads {args.threads}: at least 1")
    require_writable_folder(args.output)
    with report.step("open model") as step:
        model = open_model(context)
        specs = list(model.inputs)
        step.note = args.model
    with report.step("load input") as step:
        arrays = inputs.random_inputs(specs) if args.input == "random" else inputs.load_inputs(args.input, specs)
        step.note = ", ".join(map(str, specs[:4]))
    with report.step("run") as step:
        results = model.run(arrays)
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
