# SPDX-License-Identifier: Apache-2.0
"""The command model_transform."""
from __future__ import annotations

import argparse
import re
from collections import ChainMap
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Callable, MutableMapping, Sequence, cast

import numpy as np

from .. import compare, custom_ops, inputs, onnx_runner, preprocess, tflite_runner, tolerances, top_model
from ..background import running
from ..errors import usage_error
from ..families import HOST
from ..files import save_npz
from ..onnx_reference import ReferenceModel
from ..preprocess import default_order_warning, is_picture
from ..progress import Report, command
from ..safetensors_io import MappedTensors
from ..top_model import TopModel, check_weights_free, weights_path
from .common import Context, Parser, run_command
from .framework_check import Framework, compare_with_framework

NAME = "model_transform"
PURPOSE = "Imports an ONNX file as NAME_top.mlir and NAME_weights.safetensors, and checks the result."
EPILOG = """examples:
  model_transform --model_name m --model_def m.onnx --mlir m_top.mlir
  model_transform --model_name m --model_def m.onnx --input_shapes "[[1,3,224,224]]" \\
      --mean 123.675,116.28,103.53 --scale 0.0171,0.0175,0.0174 --pixel_format rgb \\
      --resize_dims 256,256 --keep_aspect_ratio --keep_ratio_mode short_side_scale \\
      --test_input cat.jpg --test_result m_top_outputs.npz --mlir m_top.mlir"""


def _add_input_flags(parser: argparse.ArgumentParser) -> None:
    """Adds the flags that remove inputs."""
    parser.add_argument(
        "--input_values",
        metavar="NAME=VALUE",
        nargs="+",
        default=[],
        help="turns inputs into constants: sr=16000, flag=true, x=[1,2,3]. They are removed from the model's inputs, "
        "and values that depend on "
        "them alone are computed now; of an If, for example, only the branch taken is kept",
    )
    parser.add_argument(
        "--state",
        metavar="INPUT=OUTPUT",
        nargs="+",
        default=[],
        help="inputs that become states: h_in=h_out c_in=c_out. A state is neither an input nor an output: the "
        "compiled model keeps the output's value for the next run, and starts at zero. auto: all inputs and outputs "
        "whose names and types fit, such as past.0.key and present.0.key; none: do not report these",
    )


def parse(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = Parser(NAME, PURPOSE, EPILOG)
    parser.add_argument("--model_def", required=True, metavar="FILE", help="the .onnx or .tflite file")
    parser.add_argument(
        "--mlir", required=True, metavar="FILE", help="output, NAME_top.mlir; the weights are written beside it"
    )
    parser.add_argument("--model_name", help="name inside the model (default: the file's name)")
    parser.add_argument(
        "--input_shapes",
        metavar="SHAPES",
        nargs="+",
        default=[None],
        help="fixes dynamic dims: 1x3x224x224,1x8 or '[[1,3,224,224],[1,8]]' in input order, or "
        "x=1x3x224x224,y=1x8,z=scalar. "
        "Several values give one model each, NAME_1x3x224x224_1x8_top.mlir, which model_deploy combines",
    )
    parser.add_argument(
        "--dims",
        metavar="RANGES",
        help="keeps dims open, with the sizes that they may have: batch=1..8,h=32..1280:32,seq=1..2048~128 (a divisor "
        "after :, the usual size after ~), by the name in the file or INPUT.AXIS; auto: usual ranges for all open dims",
    )
    _add_input_flags(parser)
    parser.add_argument(
        "--memory_limit",
        metavar="GIB",
        type=float,
        help="limit in GiB of each tensor and of all constants computed during import (default: for a tensor, "
        "this machine's "
        "memory; for constants, 2 GiB plus four times those of the file)",
    )
    custom_ops.add_argument(parser)
    parser.add_argument("--output_names", metavar="A,B", help="tensors to end the network at (default: its outputs)")
    preprocess.add_arguments(parser)
    check = parser.add_argument_group(
        "check of the Top model against onnxruntime, tensor by tensor, or against the outputs of LiteRT"
    )
    check.add_argument(
        "--test_input", metavar="FILE", help=".npz, .npy, a picture, or NAME=FILE,NAME=FILE (default: seeded random)"
    )
    check.add_argument("--test_result", metavar="FILE", help="write every tensor of the Top reference to this .npz")
    check.add_argument(
        "--tolerance",
        metavar=tolerances.METAVAR,
        help="least cosine and euclidean similarity of each tensor, without the excuses for "
        f"rounding in docs/numerics.md, or a precision to use its default: {tolerances.ALL} (default: "
        "F32's, with excuses)",
    )
    check.add_argument("--excepts", default="", metavar="A,B", help="tensors to leave out of the check")
    check.add_argument("--not_inference", "--skip_validation", dest="skip", action="store_true", help="skip the check")
    return parser.add_common().parse_args(argv)


def work(context: Context) -> None:
    args, report = context.args, context.report
    mlir, model_def = Path(args.mlir), Path(args.model_def)
    tolerance = tolerances.parse(args.tolerance)
    if mlir.suffix != ".mlir":
        raise usage_error(f"--mlir {mlir}: the name must end in .mlir, e.g. {model_def.stem}_top.mlir")
    if args.skip and (args.test_input or args.test_result):
        raise usage_error("--not_inference contradicts --test_input and --test_result")
    if args.test_result:
        context.outputs.path(args.test_result)
    name = args.model_name or model_def.stem
    if len(args.input_shapes) == 1:
        next_steps = _transform(context, name, mlir, args.input_shapes[0], name, tolerance)
    else:
        next_steps = _transform_each(context, name, mlir, tolerance)
    report.finish(next_steps)


def _transform_each(context: Context, name: str, mlir: Path, tolerance: compare.Tolerance) -> list[str]:
    """Transforms the model once for each of the shapes."""
    args, report = context.args, context.report
    if args.test_result:
        raise usage_error("--test_result is for a single model; --input_shapes names several")
    if args.test_input and not is_picture(args.test_input):
        raise usage_error(
            f"--test_input {args.test_input} has one shape, but --input_shapes names several: pass a picture, or "
            "no --test_input"
        )
    given = args.test_input
    labels = [_label(shapes) for shapes in args.input_shapes]
    if len(set(labels)) < len(labels):
        raise usage_error("--input_shapes lists the same shapes twice")
    report.total = (1 if args.skip else 4) * len(labels)
    stem, result = mlir.stem.removesuffix("_top"), []
    for label, shapes in zip(labels, args.input_shapes):
        path = mlir.with_name(f"{stem}_{label}_top.mlir")
        report.say(f"{path}:")
        args.test_input = given
        _transform(context, name, path, shapes, f"{name}_{label}", tolerance)
        result.append({**context.result.pop("model"), "comparison": context.result.pop("comparison", None)})
    context.result["models"] = result
    return [
        command(
            *("model_deploy", "--mlir", *(entry["mlir"] for entry in result), "--chip", HOST, "--quantize", "F32"),
            *("--model", mlir.with_name(name + f"_{HOST}_f32.bmodel")),
        )
    ]


def _label(shapes: str) -> str:
    """Converts "x=1x3x224x224,y=1x8" or "[[1,3,224,224],[1,8]]" to a part of a file name: "1x3x224x224_1x8"."""
    groups = (
        re.findall(r"\[([-\d,\s]+)\]", shapes)
        if shapes.lstrip().startswith("[")
        else [part.rpartition("=")[2] for part in shapes.split(",")]
    )
    return "_".join("x".join(re.findall(r"\d+", group)) for group in groups)


def _transform(
    context: Context, name: str, mlir: Path, shapes: str | None, label: str, tolerance: compare.Tolerance
) -> list[str]:
    """Transforms and checks one model; returns the proposed next commands. label: names the file that holds the inputs
    used."""
    args, report = context.args, context.report
    model_def, weights = Path(args.model_def), weights_path(mlir)
    check_weights_free(mlir)
    with report.step("import and optimise") as step:
        context.outputs.path(weights)  # before the .mlir that names the weights, which must never exist without them
        model, result = top_model.import_onnx(
            model_def,
            context.outputs.path(mlir),
            report,
            model_name=name,
            input_shapes=shapes,
            dims=args.dims,
            output_names=args.output_names,
            preprocess=preprocess.from_arguments(args),
            input_values=args.input_values,
            states=args.state,
            memory_limit=args.memory_limit,
        )
        if "ops" in result:
            step.note = f"{result['ops']} ops"
    if text := default_order_warning(args, args.test_input):
        report.warn(text)
    fixed = top_model.fixed_inputs(result)
    if model.weights.exists() and not top_model.names_weights(mlir):
        _warn_of_other(context, weights)
    context.result["model"] = {
        "mlir": str(mlir),
        "weights": str(weights),
        "inputs": [str(i) for i in model.inputs],
        "outputs": [str(o) for o in model.outputs],
        "states": {state.input.name: state.output.name for state in model.states},
        "assumed_shapes": top_model.assumed_shapes(result),
        "custom_ops": result.get("custom_ops", []),
    }
    test_input = args.test_input
    if args.skip:
        report.warn("not checked: --not_inference was given")
    else:
        test_input = _check_sizes(context, model.as_ports(), mlir.with_name(f"{label}_in_f32.npz"), tolerance, fixed)
    _describe(report, model, fixed, result.get("state_candidates", []))
    deploy = ["model_deploy", "--mlir", mlir, "--chip", HOST, "--quantize", "F32"]
    deploy += ["--test_input", test_input] if test_input else []
    deploy += ["--test_reference", args.test_result] if args.test_result else []
    return [command(*deploy, "--model", mlir.with_name(name + f"_{HOST}_f32.bmodel"))]


def _describe(report: Report, model: TopModel, fixed: dict[str, np.ndarray], candidates: Sequence[str]) -> None:
    """Reports the inputs, outputs and states. candidates: pairs that look like states."""
    report.say(f"inputs   {', '.join(map(str, model.inputs))}")
    if fixed:
        report.say(f"fixed    {', '.join(f'{key} = {value.tolist()}' for key, value in fixed.items())}")
    report.say(f"outputs  {', '.join(map(str, model.outputs))}")
    if model.states:
        report.say(f"states   {', '.join(state.describe() for state in model.states)}")
    if candidates:
        report.say(
            f"{len(candidates)} input(s) look like states that the model could keep between runs; to make them states, "
            f"add --state {' '.join(candidates)}, or --state auto"
        )
    for spec in model.inputs:
        if spec.preprocess:
            report.say(f"pictures for '{spec.name}': {spec.preprocess.describe()}")


def _warn_of_other(context: Context, path: Path) -> None:
    """Warns if an output whose name the user did not choose would replace another file."""
    if text := context.outputs.keep_other(path):
        context.report.warn(text)


def _check_sizes(
    context: Context, model: TopModel, input_path: Path, tolerance: compare.Tolerance, fixed: dict[str, np.ndarray]
) -> str:
    """Checks the model at its usual, smallest and largest sizes, or on the given test input alone; returns the file
    that holds the inputs of the first check."""
    args, report = context.args, context.report
    if not model.sizes or args.test_input:
        return _check(context, model, input_path, tolerance, fixed)
    result, comparisons = "", {}
    report.total += 6
    for which in ("likely", "min", "max"):
        at = replace(model, inputs=model.inputs_at(which))
        report.say(f"{which} sizes: {', '.join(map(str, at.inputs))}")
        path = input_path if which == "likely" else input_path.with_name(f"{input_path.stem}_{which}.npz")
        file = _check(context, at, path, tolerance, fixed)
        result = result or file
        comparisons[which] = context.result.get("comparison")
    context.result["comparisons"] = comparisons
    return result


def _check(
    context: Context, model: TopModel, input_path: Path, tolerance: compare.Tolerance, fixed: dict[str, np.ndarray]
) -> str:
    """Runs the reference and the framework; returns the file that holds the inputs used, `input_path` if the user gave
    none. fixed: inputs that only the framework has."""
    args, report = context.args, context.report
    with report.step("test input") as step:
        if args.test_input:
            arrays = inputs.load_inputs(args.test_input, model.inputs, "--test_input")
            step.note = args.test_input
        else:
            arrays = inputs.random_inputs(model.inputs)
            if tflite_runner.is_tflite(args.model_def):
                arrays |= inputs.random_codes(model.inputs)
            step.note = f"random, seed {inputs.RANDOM_SEED}"
        input_file = args.test_input
        if input_file is None or not input_file.endswith(".npz"):
            input_file = str(input_path)
            save_npz(context.outputs.path(input_path), arrays)
            _warn_of_other(context, input_path)
    if context.result["model"]["custom_ops"]:
        report.total -= 1
        _evaluate(context, model, arrays)
        report.warn(
            "not compared with onnxruntime, which does not know the custom operators of this model: "
            f"{', '.join(context.result['model']['custom_ops'])}; the results are unchecked"
        )
        context.result["comparison"] = None
        return input_file
    wide_file = input_path.with_name(input_path.name.replace("_in_f32", "_wide_in"))
    if tflite_runner.is_tflite(args.model_def):
        got = _evaluate(context, model, arrays)
        load_tflite = partial(tflite_runner.TfliteModel, args.model_def)
        compare_with_framework(context, model, got, {**arrays, **fixed}, [load_tflite], tolerance, wide_file)
        return input_file
    ends = [name.strip() for name in (args.output_names or "").split(",") if name.strip()]
    load = partial(onnx_runner.OnnxModel, args.model_def, every_tensor=True, optimise=False, ends=ends)
    with running([load]) as (framework,):  # onnxruntime is slow to load
        got = _evaluate(context, model, arrays)
    if not onnx_runner.available():
        report.warn(
            "not compared with the framework: onnxruntime is not installed (pip install onnxruntime); "
            "the results of this model are unchecked"
        )
        context.result["comparison"] = None
        return input_file
    frameworks: list[Callable[[], Framework]] = [framework.result, partial(ReferenceModel, args.model_def)]
    compare_with_framework(context, model, got, {**arrays, **fixed}, frameworks, tolerance, wide_file)
    return input_file


def _evaluate(context: Context, model: TopModel, arrays: dict[str, np.ndarray]) -> MappedTensors:
    """Returns every tensor of the Top reference, and writes them to --test_result."""
    with context.report.step("Top reference") as step:
        got = top_model.evaluate(model, arrays, context.report, every_tensor=True)
        step.note = f"{len(got)} tensors"
        if context.args.test_result:
            save_npz(
                context.outputs.path(context.args.test_result),
                ChainMap(cast("MutableMapping[str, np.ndarray]", got), {s.name: arrays[s.name] for s in model.inputs}),
            )
    return got


def main(argv: Sequence[str] | None = None) -> int:
    return run_command(NAME, parse, work, steps=4, argv=argv)


if __name__ == "__main__":
    raise SystemExit(main())
