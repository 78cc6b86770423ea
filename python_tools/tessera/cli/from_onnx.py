# SPDX-License-Identifier: Apache-2.0
"""Import, calibration and deployment of an .onnx file, for the verbs of `tessera` that take one."""
from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Sequence

import numpy as np

from .. import top_model
from ..errors import QUANTISED_ALREADY, usage_error
from ..preprocess import Preprocess
from ..targets import targets
from ..top_model import TopModel
from . import calibration_arguments, run_calibration
from .common import Context
from .part import run_part

TABLES_FOR = ("W8", "W4")
"""Precisions with their own calibration tables; all others use INT8's."""


def add_flags(parser: argparse.ArgumentParser, quantize: str = "F32") -> None:
    """Adds the flags for import and precision. quantize: the default precision."""
    group = parser.add_argument_group("import of an .onnx file, and precision")
    group.add_argument(
        "--input_shapes", metavar="SHAPES", help="fixes dynamic dims: x=1x3x224x224,y=1x8 or '[[1,3,224,224]]'"
    )
    group.add_argument("--dims", metavar="RANGES", help="keeps dims open, as model_transform does: batch=1..8")
    group.add_argument(
        "--input_values",
        metavar="NAME=VALUE",
        nargs="+",
        default=[],
        help="makes inputs constants, as model_transform does: sr=16000",
    )
    group.add_argument(
        "--state",
        metavar="INPUT=OUTPUT",
        nargs="+",
        default=[],
        help="makes inputs states, as model_transform does: h_in=h_out",
    )
    group.add_argument("--output_names", metavar="A,B", help="tensors to end the network at (default: its outputs)")
    group.add_argument(
        "--quantize",
        default=quantize,
        type=str.upper,
        help="precision, as for model_deploy: F32, BF16, F16, INT8, W8, ... (default: %(default)s)",
    )
    group.add_argument(
        "--dataset", "--data_list", metavar="DATA", help="samples to calibrate with, as for run_calibration"
    )
    group.add_argument(
        "--input_num", type=int, default=100, metavar="N", help="maximum number of samples (default: %(default)s)"
    )


def check_flags(args: argparse.Namespace, needs_samples: bool = True) -> None:
    """Checks the flags before anything is compiled. needs_samples: a precision with a table requires --dataset."""
    wanted = targets().precision(args.quantize)
    args.quantize = wanted.name
    if needs_samples and wanted.needs_table and not args.dataset:
        raise usage_error(
            f"--quantize {args.quantize} needs --dataset, the samples to calibrate with",
            "samples are a folder of pictures, or of .npz files that hold an array for each input, like those that the "
            f"network will see (tens to hundreds); {QUANTISED_ALREADY}",
        )
    if args.dataset and args.quantize == "F32":
        raise usage_error("--dataset is for quantised models: add e.g. --quantize INT8")
    if args.input_num < 1:
        raise usage_error(f"--input_num {args.input_num}: must be at least 1")


@dataclass(frozen=True)
class Imported:
    """An imported Top model. fixed: the inputs of the file that became constants. ends: the outputs that the user
    named."""

    model: TopModel
    fixed: dict[str, np.ndarray]
    ends: tuple[str, ...]


def import_model(
    context: Context, path: Path, mlir: Path, preprocess: Preprocess | None = None, at: str = ""
) -> Imported:
    """Imports the .onnx file `path` according to the flags. at: sizes, as for --at, that replace ranges of --dims."""
    args = context.args
    model, result = top_model.import_onnx(
        path,
        mlir,
        context.report,
        model_name=path.stem,
        input_shapes=args.input_shapes,
        dims=_dims_at(args.dims, at),
        output_names=args.output_names,
        preprocess=preprocess,
        input_values=args.input_values,
        states=args.state,
    )
    ends = tuple(name.strip() for name in (args.output_names or "").split(",") if name.strip())
    return Imported(model, top_model.fixed_inputs(result), ends)


def _dims_at(dims: str | None, at: str) -> str | None:
    """Returns the value of --dims with the ranges of some dims replaced by the sizes in `at`."""
    if not at:
        return dims
    given = [part for text in (dims if dims != "auto" else "", at) for part in (text or "").split(",") if part]
    return ",".join({part.partition("=")[0]: part for part in given}.values())


def calibrate(context: Context, model: TopModel, folder: Path) -> Path | None:
    """Writes NAME_cali.json to `folder` with run_calibration and --dataset; None without --dataset."""
    args, report = context.args, context.report
    if not args.dataset:
        return None
    table = folder / f"{model.path.stem.removesuffix('_top')}_cali.json"
    words = [str(model.path), "--dataset", args.dataset, "--input_num", str(args.input_num), "-o", str(table)]
    words += ["--quantize", args.quantize] if args.quantize in TABLES_FOR else []
    report.say(f"run_calibration with {args.dataset}:")
    part = run_part(run_calibration.NAME, calibration_arguments.parse, run_calibration.work, words, report)
    context.result["calibration"] = {**part.result, "steps": part.report.steps}
    return table


def deploy(
    context: Context, model: TopModel, output: Path, chip: str, table: Path | None, more: Sequence[str] = ()
) -> dict[str, Any]:
    """Compiles the model for the chip; returns the compiler's result."""
    extra = [*(["--calibration-table", str(table)] if table else []), *more]
    return top_model.deploy(model, output, context.report, chip=chip, quantize=context.args.quantize, extra=extra)


def file_name(name: str, chip: str, quantize: str) -> str:
    """Returns the file name of a compiled model: network, chip and precision."""
    return f"{name}_{Path(chip).stem if chip.endswith('.json') else chip}_{quantize.lower()}.bmodel"
