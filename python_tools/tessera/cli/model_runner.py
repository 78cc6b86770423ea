# SPDX-License-Identifier: Apache-2.0
"""The command model_runner."""
from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any, Sequence

import numpy as np

from .. import any_model, compare, custom_ops, inputs
from ..errors import TesseraError, usage_error
from ..families import EXAMPLE, of_subnet, stages_of
from ..files import load_npz, save_npz
from ..programs import read_model
from ..progress import command
from ..stages import parse_shapes
from .common import Context, Parser, run_command

NAME = "model_runner"
PURPOSE = "Runs a .bmodel, a NAME_top.mlir (reference evaluator) or an .onnx (onnxruntime)."
EPILOG = f"""examples:
  model_runner --model m.bmodel --input in.npz --output out.npz
  model_runner --model m.bmodel --input cat.jpg --output out.npz --threads 2
  model_runner --model m.bmodel --input random --input_shapes x=4x3x224x224 --chip {EXAMPLE} --output out.npz
  model_runner --model m_top.mlir --input in.npz --output all.npz --dump_all_tensors"""


def parse(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = Parser(NAME, PURPOSE, EPILOG)
    parser.add_argument("--model", required=True, metavar="FILE", help=".bmodel, NAME_top.mlir or .onnx")
    parser.add_argument(
        "--input",
        required=True,
        metavar="FILE",
        help=".npz with one array per input, .npy, a picture, NAME=FILE,NAME=FILE, or random",
    )
    parser.add_argument("--output", required=True, metavar="FILE", help="output .npz")
    parser.add_argument(
        "--dump_all_tensors",
        action="store_true",
        help="write every named tensor, not only the outputs; for a simulated chip, run layers.bmodel, which "
        "'model_deploy --layers' writes",
    )
    parser.add_argument(
        "--input_shapes",
        metavar="SHAPES",
        help="for a .bmodel with several shapes or open dims: x=4x3x224x224,y=4x8 is the shape of pictures and random "
        "input (default: that of the arrays in --input, else the first stage and the largest sizes)",
    )
    parser.add_argument(
        "--chip",
        metavar="CHIP",
        help="for a .bmodel with several chips: use only the stages for this one, by name or family (default: any)",
    )
    custom_ops.add_argument(parser)
    parser.add_argument("--threads", type=int, default=1, metavar="N", help="number of threads (default: %(default)s)")
    return parser.add_common().parse_args(argv)


def open_model(context: Context) -> tuple[any_model.AnyModel, list[inputs.InputSpec]]:
    """Opens the model; the given arrays fix the dims that an .onnx leaves open and choose the stage of a .bmodel.
    Returns the model and its inputs, in the shapes of --input_shapes if given."""
    args = context.args
    takes = (
        Path(args.model).suffix in (".onnx", ".bmodel") and Path(args.input).suffix == ".npz" and not args.input_shapes
    )
    shapes: dict[str, tuple[int, ...]] = {
        name: array.shape for name, array in (load_npz(args.input, "--input") if takes else {}).items()
    }
    if args.input_shapes:
        first = any_model.open_model(args.model, context.report, chip=args.chip)
        shapes = parse_shapes(args.input_shapes, [spec.name for spec in first.inputs])
    model = any_model.open_model(args.model, context.report, args.threads, args.dump_all_tensors, shapes, args.chip)
    if args.input_shapes and not all(spec.accepts(tuple(shapes[spec.name])) for spec in model.inputs):
        raise TesseraError(f"--input_shapes {args.input_shapes}: the model takes {', '.join(map(str, model.inputs))}")
    if model.assumed and args.input == "random":
        raise TesseraError(
            f"input {model.assumed[0]} has dynamic dims: random input needs a fixed shape",
            hint="give --input_shapes or --input FILE.npz",
        )
    specs = [spec.at(shapes[spec.name]) if args.input_shapes else spec for spec in model.inputs]
    return model, specs


def _hides_layers(model: dict[str, Any]) -> bool:
    """Returns true if, by bmodel-dump's description, a simulated chip runs part of the model and shows only outputs."""
    shows = any(entry == {"key": "layers", "value": "kept"} for entry in model.get("properties", []))
    return not shows and any(
        of_subnet(model, subnet).is_simulated for stage in stages_of(model) for subnet in stage["subnets"]
    )


def work(context: Context) -> None:
    args, report = context.args, context.report
    if Path(args.output).suffix != ".npz":
        raise usage_error(f"--output {args.output}: the name must end in .npz")
    if (args.chip or args.input_shapes) and Path(args.model).suffix != ".bmodel":
        raise usage_error(f"--chip and --input_shapes are for a .bmodel, not {args.model}")
    if args.threads < 1:
        raise usage_error(f"--threads {args.threads}: must be at least 1")
    output = context.outputs.path(args.output)
    with report.step("open model") as step:
        model, specs = open_model(context)
        step.note = ", ".join(filter(None, (args.model, model.stage)))
    with report.step("load input") as step:
        arrays = (
            inputs.random_inputs(specs)
            if args.input == "random"
            else inputs.load_inputs(args.input, specs, states=model.states)
        )
        step.note = ", ".join(map(str, specs[:4]))
    with report.step("run") as step:
        results = model.run(arrays)
        step.note = f"{len(results)} tensors"
    save_npz(output, results)
    if args.dump_all_tensors and Path(args.model).suffix == ".bmodel" and _hides_layers(read_model(Path(args.model))):
        report.warn(
            f"the results of {args.model}'s layers stay on the chip; 'model_deploy --layers DIR' writes layers.bmodel, "
            "which computes the same and shows them"
        )
    context.result["outputs"] = {n: {"shape": list(v.shape), "dtype": str(v.dtype)} for n, v in results.items()}
    non_finite = [n for n, v in results.items() if v.dtype.kind == "f" and not np.isfinite(v).all()]
    if non_finite:
        report.warn(f"NaN or infinity in: {', '.join(non_finite[:10])}")
    rows = [("tensor", "type", "shape", "min", "max")]
    for name, value in list(results.items())[:20]:
        low, high = (f"{value.min():.6g}", f"{value.max():.6g}") if value.size else ("-", "-")
        rows.append((name, str(value.dtype), "x".join(map(str, value.shape)) or "scalar", low, high))
    report.say(compare.align(rows, right=(3, 4)))
    report.finish([command("npz_tool", "dump", args.output)])


def main(argv: Sequence[str] | None = None) -> int:
    return run_command(NAME, parse, work, steps=3, argv=argv)


if __name__ == "__main__":
    raise SystemExit(main())
