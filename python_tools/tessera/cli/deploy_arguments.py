# SPDX-License-Identifier: Apache-2.0
"""The flags of model_deploy, and checks of their combinations."""
from __future__ import annotations

import argparse
from typing import Any, Sequence

from .. import custom_ops, families, tolerances
from ..errors import QUANTISED_ALREADY, ExitCode, TesseraError, usage_error
from ..families import EXAMPLE, HOST, Owners
from ..targets import Names, targets
from . import precision
from .common import Parser, add_chip_set

NAME = "model_deploy"
PURPOSE = "Compiles NAME_top.mlir to a .bmodel for a chip, and checks it layer by layer against the Top reference."
TILES_TUNED = 8
PIXELS = ("packed", "planar", "rgb_packed", "rgb_planar", "bgr_packed", "bgr_planar")
EPILOG = f"""examples:
  model_deploy --mlir m_top.mlir --chip {HOST} --quantize F32 --model m.bmodel
  model_deploy --mlir m_top.mlir --chip {HOST} --quantize INT8 --calibration_table m_cali.json --model m_int8.bmodel
  model_deploy --mlir m_top.mlir --quantize INT8 --calibration_table m_cali.json --target "drop<=0.5" \\
      --task classification --data pictures/ --model m_int8.bmodel
  model_deploy --mlir m_top.mlir --chip {HOST}-avx2 --quantize F32 --test_input m_in_f32.npz \\
      --test_reference m_top_outputs.npz --tolerance 0.9999,0.999 --model m.bmodel
  model_deploy --mlir m_b1_top.mlir m_b4_top.mlir --chip {EXAMPLE} --quantize INT8 --calibration_table m_cali.json \\
               --model m.bmodel"""


def parse(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = Parser(NAME, PURPOSE, EPILOG)
    parser.add_argument(
        "--mlir",
        required=True,
        metavar="FILE",
        nargs="+",
        dest="mlirs",
        help="NAME_top.mlir from model_transform; several of one network with different "
        "input shapes become stages of one file, which stores equal weights once",
    )
    chip = parser.add_argument(
        "--chip",
        "--processor",
        default=HOST,
        help=f"%(chips)s or the .json of another {families.simulated().chip}; {HOST} is this machine's best variant "
        "(default: %(default)s)",
    )
    chip.chips = Names()  # type: ignore[attr-defined] # of its help
    parser.add_argument(
        "--quantize",
        default="F32",
        type=str.upper,
        help="precision: F32, BF16, F16, INT8 or INT16 (activations; int8 weights) with a calibration table, W8 or "
        "W4 (W8F32, W4F32): integer weights only; W8A8 or W4A8: the same with matmuls that quantise blocks of their "
        "inputs at run time, for language models; DYNAMIC_INT8: int8 matmuls that quantise each row of their inputs at "
        "run time (default: %(default)s)",
    )
    parser.add_argument(
        "--group_size",
        type=int,
        metavar="N",
        help="W4: number of weights that share a scale, a multiple of 16 (default: 32)",
    )
    parser.add_argument("--model", required=True, metavar="FILE", help="output, the .bmodel")
    parser.add_argument("--cache_dir", metavar="DIR|none", help="kernel cache (default: the user's cache folder)")
    parser.add_argument("--jobs", type=int, metavar="N", help="parallel compile jobs (default: one per core)")
    custom_ops.add_argument(parser)
    _add_planning(parser)
    _add_forms(parser)
    _add_quantisation(parser)
    precision.add_flags(parser)
    _add_check(parser)
    args = parser.add_common().parse_args(argv)
    args.mlir, args.bucket = args.mlirs[0], None
    return args


def _add_planning(parser: Parser) -> None:
    """Adds the flags that only some families take: changes of the chip, the host's part, and the effort of planning."""

    def add(flag: str, text: str, **more: Any) -> None:
        action = parser.add_argument(f"--{flag}", help=f"for %(owners)s: {text}", **more)
        action.owners = Owners(flag)  # type: ignore[attr-defined] # of its help

    add_chip_set(parser, "for %(owners)s: change fields of the chip").owners = Owners("chip_set")  # type: ignore
    add(
        "tf32",
        "round factors of f32 contractions to 10 bits of fraction and multiply them on tensor cores, as PyTorch does "
        "with allow_tf32",
        action="store_true",
    )
    add(
        "strict",
        "ops that the chip cannot run are an error (exit code 4) instead of running on the host",
        action="store_true",
    )
    add(
        "host_chip",
        f"the {HOST} variant that the host's part is compiled for (default: this machine's best)",
        metavar="CHIP",
    )
    add(
        "buckets",
        "for a model with open dims: the sizes to which a run pads them, one stage for each combination; a run takes "
        "the smallest that fits",
        metavar="NAME=N,N,...",
    )
    add(
        "beyond_buckets",
        f"with --buckets: also compile a stage for {HOST} (or one of its variants), which runs all larger sizes",
        metavar="CHIP",
    )
    add(
        "opt",
        "0 plans op by op, 1 keeps tensors in local memory between ops, 2 takes the best of several plans, 3 searches "
        "for better ones (default: 2)",
        type=int,
        choices=range(4),
    )
    add("plan", "follow this plan, written by --plan_out and possibly edited", metavar="FILE")
    add(
        "plan_out",
        "write the plan to FILE: which tensors stay in local memory and which layers run slice by slice, or the tile "
        "of each contraction",
        metavar="FILE",
    )
    add(
        "tune",
        "for each contraction, measure on this machine's GPU the N tiles that the cost model ranks fastest, and use "
        f"the best; results are cached (default N: {TILES_TUNED})",
        type=int,
        nargs="?",
        const=TILES_TUNED,
        metavar="N",
    )
    files = ", ".join(families.simulated().files)
    add("report", f"write {files} to DIR: time, traffic and memories of every layer", metavar="DIR")


def _add_forms(parser: Parser) -> None:
    """Adds flags for further outputs and for the types of the model's inputs and outputs."""
    parser.add_argument("--device_mlir", metavar="FILE", help="also write the device-level IR")
    parser.add_argument(
        "--dump_ir", metavar="DIR", help="also write the IR after every pass to DIR; tessera-opt can continue from it"
    )
    parser.add_argument(
        "--fuse_preprocess",
        nargs="?",
        const="packed",
        choices=PIXELS,
        metavar="FORMAT",
        help="take u8 pixels instead of f32; mean, scale and channel order become part of the model. "
        f"{', '.join(PIXELS)}: packed is [1,H,W,C], planar [1,C,H,W]; without rgb_ or bgr_ the model's own order "
        "(default: %(const)s)",
    )
    parser.add_argument(
        "--quant_input",
        action="store_true",
        help="for quantised models: inputs are integers; model_tool info lists scale and zero point",
    )
    parser.add_argument("--quant_output", action="store_true", help="for quantised models: outputs are integers")


def _add_quantisation(parser: Parser) -> None:
    """Adds flags for the tables of quantised models and for requantisation."""
    parser.add_argument(
        "--calibration_table",
        metavar="FILE",
        help="NAME_cali.json from run_calibration, required for INT8 and INT16; for F16 it shows overflows, for BF16 "
        "where bf16 is too coarse",
    )
    parser.add_argument("--quantize_table", metavar="FILE", help="NAME_qtable.json, the precision of each op")
    parser.add_argument(
        "--requantize",
        choices=("float", "fixed", "tflite"),
        help="how integer sums are rounded to few bits: in single precision, with a 31-bit multiplier and a "
        "shift, or as in TensorFlow Lite (default: the chip's preference, mostly single precision)",
    )


def _add_check(parser: Parser) -> None:
    """Adds flags for the check of the compiled model."""
    owners = families.simulated().chip + "s"
    check = parser.add_argument_group("check of the .bmodel against the Top reference, layer by layer")
    check.add_argument(
        "--test_input",
        metavar="FILE",
        help=".npz, .npy, a picture, or NAME=FILE,… (default: a sample that run_calibration stored "
        "beside --calibration_table, else random values in the table's ranges, or in [-1, 1) without a table)",
    )
    check.add_argument(
        "--test_reference", metavar="FILE", help=".npz from model_transform --test_result (default: evaluate now)"
    )
    check.add_argument(
        "--tolerance",
        metavar=tolerances.METAVAR,
        help="least cosine and euclidean similarity of each tensor, or a precision to use its default: "
        f"{tolerances.ALL}. If given, a tensor outside is an error (exit code 3). Default: that of --quantize; then "
        "F32 excuses "
        "rounding (docs/numerics.md), and other precisions fail only if a float output lies below cosine "
        f"{tolerances.LEAST_OUTPUT_COSINE:g} over the test input and the calibration samples kept beside the table",
    )
    check.add_argument(
        "--accept_loss",
        action="store_true",
        help="report such an output of a quantised model as a warning (as with --target, which judges by itself)",
    )
    check.add_argument("--excepts", default="", metavar="A,B", help="tensors to leave out of the check")
    check.add_argument(
        "--compare_all",
        action="store_true",
        help=f"show every tensor in the table, not only the worst; for {owners} also compile a variant whose layers' "
        "results leave the chip, compare it layer by layer, and report the first wrong layer with its commands (exit "
        "code 3)",
    )
    check.add_argument(
        "--layers",
        metavar="DIR",
        help=f"for {owners}: compare layer by layer, show wrong ones, and write layers.bmodel and its references to "
        "DIR, for 'model_tool layers DIR' and 'model_runner --dump_all_tensors'",
    )
    check.add_argument(
        "--threads", type=int, default=1, metavar="N", help="threads for the check (default: %(default)s)"
    )
    check.add_argument("--skip_validation", action="store_true", help="skip the check")


def reject_unsupported(args: argparse.Namespace) -> None:
    """Checks the flags: planned features that do not exist yet exit with code 4, impossible choices with code 2."""
    known = targets()
    known.require_chip(args.chip)
    wanted = known.precision(args.quantize)
    args.quantize = wanted.name
    _reject_foreign(args)
    if wanted.needs_table and not args.calibration_table:
        raise TesseraError(
            f"--quantize {args.quantize} needs --calibration_table",
            ExitCode.USAGE,
            hint=f"make one: run_calibration {args.mlir} --dataset DATA -o cali.json; {QUANTISED_ALREADY}",
        )
    if args.quantize == "F32":
        _reject_for_f32(args)
    precision.check_usage(args)
    if args.group_size is not None and (args.group_size < 16 or args.group_size % 16):
        raise usage_error(f"--group_size {args.group_size}: expected a multiple of 16")
    if len(args.mlirs) > 1 or args.buckets:
        _reject_for_several(args)
    if args.beyond_buckets and targets().family(args.beyond_buckets) != targets().family(HOST):
        raise usage_error(f"--beyond_buckets {args.beyond_buckets}: expected {HOST} or one of its variants")
    if args.beyond_buckets and not args.buckets:
        raise usage_error("--beyond_buckets needs --buckets")
    if args.test_reference and not args.test_input:
        raise usage_error("--test_reference requires the --test_input from which it was computed")
    if args.skip_validation and (args.test_input or args.test_reference or args.layers):
        raise usage_error("--skip_validation contradicts --test_input, --test_reference and --layers")
    if args.threads < 1:
        raise usage_error(f"--threads {args.threads}: must be at least 1")


INSTEAD = {
    "report": "for --chip {}, measure with bmrt_bench",
    "layers": "for --chip {}, --compare_all shows every tensor",
    "chip_set": "--chip {} is neither",
    "tf32": "--chip {} multiplies f32 as it is",
    "tune": "--chip {} does not choose kernels by measuring",
}
"""What to do on a chip of another family, by flag."""


def _reject_foreign(args: argparse.Namespace) -> None:
    """Rejects flags that are for chips of another family."""
    known = targets()
    if args.plan and args.opt is not None:
        raise usage_error("--plan and --opt exclude each other: a plan contains all decisions of --opt")
    for flag, like in [*((flag, flag) for flag in known.flags), ("layers", "report")]:
        is_given = getattr(args, flag) not in (None, False, [])
        if is_given and known.family(args.chip) not in known.flags[like]:
            instead = INSTEAD.get(flag, "--chip {} runs the whole model itself").format(args.chip)
            raise usage_error(f"--{flag} is for {Owners(like)}; {instead}")
    if args.tune is not None and (args.tune < 1 or args.plan):
        raise usage_error("--tune takes a number that is at least 1, and excludes --plan, because it creates a plan")


def _reject_for_f32(args: argparse.Namespace) -> None:
    """Rejects flags that only apply to quantised models."""
    for flag in ("calibration_table", "quantize_table"):
        if getattr(args, flag):
            raise usage_error(f"--{flag} is for quantised models; --quantize F32 does not use it")
    if args.quant_input or args.quant_output:
        raise usage_error("--quant_input and --quant_output are for quantised models")
    if args.requantize not in (None, "float"):
        raise usage_error(f"--requantize {args.requantize} is for quantised models; --quantize F32 has no integers")
    if args.accept_loss:
        raise usage_error("--accept_loss is for quantised models; --quantize F32 has no loss")


def _reject_for_several(args: argparse.Namespace) -> None:
    """Rejects flags that apply to a single model."""
    if args.buckets and len(args.mlirs) > 1:
        raise usage_error("--buckets is for one model with open dims; --mlir names several")
    for flag in ("device_mlir", "dump_ir", "plan", "plan_out", "tune", "target", "test_input", "test_reference"):
        if getattr(args, flag):
            raise TesseraError(
                f"--{flag} is for a single model; "
                + ("--buckets compiles several" if args.buckets else f"--mlir names {len(args.mlirs)}"),
                ExitCode.USAGE,
                hint="deploy each one separately, then run: model_tool combine A.bmodel B.bmodel -o OUT.bmodel",
            )
