# SPDX-License-Identifier: Apache-2.0
"""The flags of run_calibration."""
from __future__ import annotations

import argparse
import difflib
import math
from typing import Sequence

from .. import custom_ops
from ..calibration.checks import MAX_ERROR
from ..calibration.equalization import METHODS as EQUALIZATION
from ..calibration.rounding import ALONE
from ..calibration.rounding import METHODS as WEIGHT_METHODS
from ..calibration.speed import DEFAULT_CHIP
from ..calibration.thresholds import DEFAULT_PERCENTILE, METHODS
from ..errors import usage_error
from ..targets import targets
from .common import Parser

NAME = "run_calibration"
PURPOSE = "Runs sample data through the compiled f32 model and writes the table of ranges for int8."
TUNED = 4
EPILOG = """--dataset is one of
  DIR        pictures (pre-processed as set in model_transform), or .npz files with one array per input
  LIST.txt   one sample per line: FILE, or NAME=FILE,NAME=FILE; paths relative to the list
  FILE.npz   one array per input, samples along the first axis
  FILE.py    defines samples(), a generator of dicts of arrays

examples:
  run_calibration m_top.mlir --dataset pictures/ --input_num 100 -o m_cali.json
  run_calibration m_top.mlir --dataset list.txt --cali_method kl --symmetric --workers 4 -o m_cali.json
  run_calibration m_top.mlir --check_table m_cali.json
  run_calibration m_top.mlir --import_table tpu_mlir_cali_table -o m_cali.json
  run_calibration m_top.mlir --export_table m_cali.json -o tpu_mlir_cali_table"""


class Options(argparse.Namespace):
    """The flags of run_calibration. at_any_price: --max_error was given."""

    mlir: str
    dataset: str
    input_num: int
    cali_method: str
    percentile: float
    methods: str
    quantize: str
    max_error: float
    at_any_price: bool
    chip: str
    group_size: int | None
    symmetric: bool
    asymmetric: bool
    tune_num: int | None
    workers: int | None
    distributed: str | None
    resume: bool
    checkpoint_every: float
    cache_dir: str | None
    check_table: str | None
    import_table: str | None
    export_table: str | None
    output: str
    histograms: str | None

    @property
    def scheme(self) -> str:
        """The kind of ranges, as choose.choice_by takes it."""
        return "symmetric" if self.symmetric else "asymmetric" if self.asymmetric else "best"

    @property
    def compiler_flags(self) -> tuple[str, ...]:
        flags = {"--cache-dir": self.cache_dir, "--group-size": self.group_size}
        return tuple(word for flag, value in flags.items() if value is not None for word in (flag, str(value)))


def parse(argv: Sequence[str] | None) -> Options:
    parser = Parser(NAME, PURPOSE, EPILOG)
    parser.add_argument("mlir", metavar="NAME_top.mlir", help="from model_transform")
    parser.add_argument("--dataset", "--data_list", metavar="DATA", help="the samples, see below")
    parser.add_argument(
        "--input_num",
        type=int,
        default=100,
        metavar="N",
        help="maximum number of samples, evenly spread over all (default: %(default)s)",
    )
    parser.add_argument(
        "--cali_method",
        choices=("auto", *METHODS, "percentile"),
        default="auto",
        help="auto chooses per tensor the method with the least measured output error (default: %(default)s)",
    )
    parser.add_argument(
        "--percentile",
        type=float,
        default=DEFAULT_PERCENTILE,
        metavar="P",
        help="share of values kept by --cali_method percentile, in %% (default: %(default)s)",
    )
    custom_ops.add_argument(parser)
    _add_weights(parser)
    _add_running(parser)
    _add_table_tools(parser)
    parser.add_argument(
        "-o", "--calibration_table", "--output", dest="output", metavar="FILE", help="output, NAME_cali.json"
    )
    parser.add_argument(
        "--histograms",
        metavar="FILE",
        help="also write each tensor's histogram and the range of every method, for tessera report",
    )
    return parser.add_common().parse_args(argv, Options())


def _add_weights(parser: Parser) -> None:
    """Adds flags for channel scaling, for learned weights, and for the kind of ranges."""
    parser.add_argument(
        "--methods",
        default="auto",
        metavar="A,B",
        help="methods that scale channels and learn weights from samples: any of "
        f"{', '.join((*EQUALIZATION, *WEIGHT_METHODS))} (for W4 "
        f"{', '.join(ALONE['W4'])}, for W8 {', '.join(ALONE['W8'])}); none: default rounding of weights; "
        "auto: the methods that lower the measured output error (default: %(default)s)",
    )
    parser.add_argument(
        "--quantize",
        choices=("INT8", "W8", "W4"),
        default="INT8",
        type=str.upper,
        help="precision for which weights are learned, as for model_deploy (default: %(default)s)",
    )
    parser.add_argument(
        "--max_error",
        type=float,
        metavar="SHARE",
        help="allowed relative error of the quantised model's outputs, reached with 16 bits and residual weights at "
        f"any cost; a larger error is a warning (default: {MAX_ERROR}, for at most a twentieth more multiplications)",
    )
    parser.add_argument(
        "--chip",
        default=DEFAULT_CHIP,
        metavar="NAME",
        help="chip whose arithmetic determines the cost of 16 bits, residual weights and f32; the table serves all "
        "chips (default: %(default)s)",
    )
    parser.add_argument("--group_size", type=int, metavar="N", help="W4: as for model_deploy (default: 32)")
    scheme = parser.add_mutually_exclusive_group()
    scheme.add_argument("--symmetric", action="store_true", help="zero point 0 for all tensors")
    scheme.add_argument(
        "--asymmetric", action="store_true", help="a zero point for all tensors (default without both: where it pays)"
    )


def _add_running(parser: Parser) -> None:
    """Adds flags that distribute and resume the work."""
    parser.add_argument(
        "--tune_num",
        type=int,
        metavar="N",
        help=f"number of samples on which auto measures (default: {TUNED}, at most a quarter of all)",
    )
    parser.add_argument("--workers", type=int, metavar="N", help="processes (default: one per core)")
    parser.add_argument("--distributed", metavar="ADDRESS", help="use the workers of a Dask scheduler instead")
    parser.add_argument("--resume", action="store_true", help="continue an interrupted run with the same arguments")
    parser.add_argument("--checkpoint_every", type=float, default=5.0, metavar="SECONDS", help="(default: %(default)s)")
    parser.add_argument("--cache_dir", metavar="DIR|none", help="kernel cache (default: the user's cache folder)")


def _add_table_tools(parser: Parser) -> None:
    """Adds flags that work on existing tables."""
    other = parser.add_argument_group("instead of calibrating").add_mutually_exclusive_group()
    other.add_argument("--check_table", metavar="FILE", help="check that a table, e.g. an edited one, fits the model")
    other.add_argument("--import_table", metavar="FILE", help="convert a tpu-mlir text table")
    other.add_argument("--export_table", metavar="FILE", help="convert a table to tpu-mlir's text format")


def check_usage(args: Options) -> None:
    if args.check_table:
        return
    if not args.output:
        raise usage_error("-o FILE is missing: pass the file to write the table to")
    if args.import_table or args.export_table:
        return
    if not args.dataset:
        raise usage_error("--dataset is missing: pass the samples to calibrate with")
    for flag, value in (("--input_num", args.input_num), ("--tune_num", args.tune_num), ("--workers", args.workers)):
        if value is not None and value < 1:
            raise usage_error(f"{flag} {value}: must be at least 1")
    if not 50 < args.percentile <= 100:
        raise usage_error(f"--percentile {args.percentile:g}: must be above 50 and at most 100")
    if args.group_size is not None and (args.quantize != "W4" or args.group_size < 16 or args.group_size % 16):
        raise usage_error(f"--group_size {args.group_size}: must be a multiple of 16, and requires --quantize W4")
    args.at_any_price = args.max_error is not None
    args.max_error = MAX_ERROR if args.max_error is None else args.max_error
    if args.chip != DEFAULT_CHIP and args.chip not in targets().rates:
        raise usage_error(f"--chip '{args.chip}': expected one of {', '.join(targets().rates)}")
    if not 0 < args.max_error < math.inf:
        raise usage_error(f"--max_error {args.max_error:g}: must be a share above 0, such as 0.05")
    if args.distributed and args.workers:
        raise usage_error("--workers and --distributed exclude each other: a Dask scheduler has its own workers")


def chosen_methods(args: Options) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Returns the methods that choose weights and the kinds of contractions whose inputs are equalised, from --methods;
    auto stands for all methods of the precision. Raises TesseraError for unknown names."""
    scaling = EQUALIZATION if args.quantize == "INT8" else {}
    allowed = (*scaling, *ALONE.get(args.quantize, WEIGHT_METHODS))
    names = {"none": (), "auto": allowed}.get(args.methods, tuple(args.methods.split(",")))
    for name in names:
        if name not in allowed:
            near = difflib.get_close_matches(name, allowed, 1)
            raise usage_error(
                f"--methods: unknown method '{name}' for {args.quantize}"
                + (f"; did you mean '{near[0]}'?" if near else ""),
                hint=f"allowed: auto, none, or a list of {', '.join(allowed)}",
            )
    return tuple(name for name in names if name not in scaling), tuple(
        kind for name, kind in scaling.items() if name in names
    )
