# SPDX-License-Identifier: Apache-2.0
"""tessera estimate: estimates the time of a model on other chips from the ONNX file alone, without data, chip or
run."""
from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any, Mapping, Sequence

from .. import advice, compare, families, partition, top_model
from ..calibration import table as tables
from ..compare import percent
from ..errors import ExitCode, TesseraError, usage_error
from ..families import EXAMPLE, HOST
from ..files import require_file, scratch_folder
from ..progress import Report
from ..sizes import add_at, named_at
from ..targets import targets
from ..top_model import TopModel
from . import from_onnx
from .common import Context, Parser, add_chip_set

REASONS_SHOWN = 5
# Times do not depend on values. Zero points follow from ranges, and some add or remove a command; a typical activation
# range like this one is within half a per cent.
LOW, HIGH = -1.0, 4.0
# Sensitive tensors found by calibration get int16 activations, which take twice the time and bytes; only data show
# which ones. Deploy's times after default calibration lay within this share of the way from all-int8 to all-int16
# (python_tools/RATIONALE.md).
LIKELY = 1 / 3
EPILOG = f"""examples:
  tessera estimate model.onnx
  tessera estimate model.onnx --chip {EXAMPLE} --chip_set memories.ddr.gbps=8 --report reports/
  tessera estimate decoder.onnx --quantize W4A8 --state none --dims batch=1,seq=1 \\
      --at past=127,total=128 past=511,total=512"""


def add_verb(verbs: "argparse._SubParsersAction[Parser]") -> Parser:
    """Adds 'estimate' to the verbs of `tessera`."""
    sub = verbs.add_parser(
        "estimate",
        help="estimate time and traffic on other chips, and list unsupported ops, without data",
        allow_abbrev=False,
        description="Compiles a model for other chips and reports how long it takes on each, how much DRAM traffic it "
        "causes and what bounds it. Ranges are placeholders, because times do not depend on values. In INT8 they "
        "depend on how many tensors need int16 activations, so a range is reported. Ops that a chip "
        "cannot run are listed and run on its host. Times of GPUs are rooflines of each launch.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    sub.add_argument("model", help="the .onnx file, or a NAME_top.mlir from model_transform")
    chip = sub.add_argument("--chip", default="all", metavar="A,B", help="%(chips)s (default: %(default)s)")
    chip.chips = families.Estimated()  # type: ignore[attr-defined] # of its help
    from_onnx.add_flags(sub, "INT8")
    add_chip_set(sub, "estimate for changed chips")
    sub.add_argument(
        "--strict",
        action="store_true",
        help="treat a chip that cannot run the whole model as unsupported; exit code 4 if none can",
    )
    add_at(sub, "sizes of open dims, for chips that need one file per size")
    sub.add_argument("--report", metavar="DIR", help=f"write {', '.join(families.simulated().files)} to DIR/CHIP")
    return sub


def work(context: Context) -> None:
    args = context.args
    chips = chosen(args.chip)
    from_onnx.check_flags(args, needs_samples=False)
    path = require_file(args.model, "model")
    if args.at and path.suffix == ".mlir":
        raise usage_error("--at is for .onnx files: the sizes of a NAME_top.mlir were chosen by model_transform")
    sizes = args.at or [""]
    context.report.total = (1 + len(chips)) * len(sizes)
    context.result["estimates"] = []
    for at in sizes:
        with scratch_folder() as temporary:
            estimate_all(context, path, chips, temporary, at)


def chosen(text: str) -> list[str]:
    """Returns the chips of --chip without duplicates."""
    every = targets().chips_of(families.simulated().name)
    chips = list(dict.fromkeys(every if text == "all" else text.split(",")))
    for chip in chips:
        if not families.of_chip(chip).is_estimated:
            raise usage_error(f"--chip '{chip}': expected {families.Estimated()}; measure {HOST} with bmrt_bench")
    return chips


def needs_table(quantize: str) -> bool:
    return targets().precision(quantize).needs_table


def estimate_all(context: Context, path: Path, chips: Sequence[str], folder: Path, at: str) -> None:
    """Estimates the model on all chips at sizes of --at, and reports it."""
    args, report = context.args, context.report
    with report.step(named_at("import and optimise", at)):
        model = (
            top_model.open_top(path, report)
            if path.suffix == ".mlir"
            else from_onnx.import_model(context, path, folder / "m_top.mlir", at=at).model
        )
    table = from_onnx.calibrate(context, model, folder)
    if needs_table(args.quantize) and not table:
        table = made_up_table(model, folder / "table.json", context)
    info: dict[str, dict[str, Any]] = {}
    rejected: dict[str, str] = {}
    for index, chip in enumerate(chips):
        with report.step(f"compile for {Path(chip).name}") as step:
            try:
                output = folder / f"{index}.bmodel"
                extra = ["--calibration-table", str(table)] if table else []
                for change in args.chip_set:
                    extra += ["--chip-set", change]
                extra += ["--strict"] * args.strict
                result = top_model.deploy(model, output, report, chip=chip, quantize=args.quantize, extra=extra)
                # The file contains the changed chip, so that no changes are passed here.
                written = context.outputs.folder(report_folder(args, chip, at)) if args.report else None
                info[chip] = families.of_chip(chip).measure(output, written)
                info[chip]["partition"] = result["partition"]
                # With samples, the precision of every tensor is known.
                least, precision = result["partition"]["total_microseconds"], "" if args.dataset else args.quantize
                info[chip]["range"] = times = time_range(model, folder, chip, precision, extra, least, report)
                step.note = f"{span(times)} us"
            except TesseraError as error:
                if error.code != ExitCode.UNSUPPORTED:
                    raise
                rejected[chip] = error.message
                step.note = "cannot run it"
    context.result["estimates"] += [
        {
            "chip": chip,
            **({"at": at} if at else {}),
            "supported": chip in info,
            "advice": [each.as_dict() for each in advice.of_perf(info[chip])] if chip in info else [],
            **({"report": info[chip]} if chip in info else dict[str, Any](reason=rejected[chip])),
        }
        for chip in chips
    ]
    if at:
        report.say(f"\nat {at}")
    print_report(context, chips, info, rejected, "" if info else _on_host(model, folder, report))


def report_folder(args: argparse.Namespace, chip: str, at: str) -> Path:
    """Returns the folder of a chip's files in --report DIR; one per size if --at has several."""
    return Path(args.report) / (at if len(args.at) > 1 else "") / Path(chip).stem


def _on_host(model: TopModel, folder: Path, report: Report) -> str:
    """Tries whether this machine can run a model that no chip can, and describes the result."""
    try:
        top_model.deploy(model, folder / "host.bmodel", report, chip=HOST, quantize="F32")
    except TesseraError as error:
        return f"{HOST} cannot run it either: {error.message}"
    return f"{HOST} can run it: measure with tessera run"


def time_range(
    model: TopModel, folder: Path, chip: str, quantize: str, extra: Sequence[str], least: float, report: Report
) -> dict[str, float]:
    """Returns microseconds per run: 'low' with all activations in 8 bits, 'high' with all in 16, and 'likely_high'
    between them; all are equal unless `quantize` is INT8."""
    high = least
    if quantize == "INT8":
        wide = top_model.deploy(model, folder / "wide.bmodel", report, chip=chip, quantize="INT16", extra=extra)
        high = max(least, wide["partition"]["total_microseconds"])
    return {"low": least, "likely_high": least + LIKELY * (high - least), "high": high}


def span(times: Mapping[str, float]) -> str:
    """Returns '13.2' or '13.2 .. 17.1'."""
    low, high = f"{times['low']:.1f}", f"{times['likely_high']:.1f}"
    return low if low == high else f"{low} .. {high}"


def made_up_table(model: TopModel, path: Path, context: Context) -> Path:
    """Writes a calibration table with the same range for every tensor to `path`; returns the path."""
    info = top_model.describe(model.path, context.report)
    entries = tuple(tables.Entry.make(str(name), HIGH, LOW, HIGH, False, "made up") for name in info["tensors"])
    tables.Table(str(info["model_name"]), str(info["model_hash"]), "made up", 0, "", entries).save(path)
    return path


def print_report(
    context: Context, chips: Sequence[str], info: dict[str, dict[str, Any]], rejected: dict[str, str], on_host: str
) -> None:
    """Prints the table and the reasons of unsupported chips. Raises TesseraError if no chip can run the model, with
    this machine's result."""
    report = context.report
    rows: list[tuple[str, ...]] = [
        ("chip", "us", "host", "runs/s", "of MAC peak", "x roofline", "DDR MB", "x least", "local memory", "bound by")
    ]
    for chip in chips:
        unsupported = (Path(chip).stem, *["-"] * 8, "unsupported, see below")
        rows.append(_row(chip, info[chip]) if chip in info else unsupported)
    report.say(compare.align(rows, right=(1, 2, 3, 4, 5, 6, 7, 8)))
    for chip in info:
        families.of_chip(chip).print_estimate(report, Path(chip).stem, info[chip])
    _report_hosts({Path(chip).stem: info[chip]["partition"] for chip in chips if chip in info}, report)
    if needs_table(context.args.quantize) and not context.args.dataset:
        report.warn(
            "the ranges are placeholders: times do not depend on values and equal those of a calibrated model with the "
            "same precisions; they say nothing about accuracy"
        )
    if any(report_of["range"]["high"] > report_of["range"]["low"] for report_of in info.values()):
        every = ", ".join(f"{Path(chip).stem} {info[chip]['range']['high']:.1f}" for chip in info)
        report.warn(
            "times range from all activations in int8 to a likely mix, as only data show which tensors need int16. "
            "The mix "
            f"is estimated at a third of the way to all in int16 ({every} us); the other columns are for int8"
        )
    by_reason: dict[str, list[str]] = {}
    for chip, text in rejected.items():
        # The compiler's message names the chip; the rest is often the same for all chips.
        by_reason.setdefault(text.replace(f"chip '{Path(chip).stem}'", "the chip"), []).append(chip)
    for text, names in by_reason.items():
        reasons = text.split("; ")
        more = f"; and {len(reasons) - REASONS_SHOWN} more (--json names all)" if len(reasons) > REASONS_SHOWN else ""
        report.say(f"{', '.join(names)}: {'; '.join(reasons[:REASONS_SHOWN])}{more}")
    if not info:
        raise TesseraError("none of the chips can run this model", ExitCode.UNSUPPORTED, hint=on_host)
    first = "run_calibration, then " if needs_table(context.args.quantize) else ""
    report.finish(
        [f"{first}model_deploy --chip {Path(chip).stem} --quantize {context.args.quantize}" for chip in list(info)[:1]]
    )


def _report_hosts(partitions: dict[str, dict[str, Any]], report: Report) -> None:
    """Prints which ops run on the chips' hosts, and why; chips with the same reasons share a line."""
    by_ops: dict[tuple[str, ...], list[str]] = {}
    for chip, info in partitions.items():
        if info["host_ops"]:
            report.say(f"{chip}: {partition.summary(info, chip)}")
            ops = sorted(info["host_ops"], key=lambda op: (not op["refused"], -op["products"]))
            by_ops.setdefault(tuple(f"'{op['name'] or op['op']}': {op['reason']}" for op in ops), []).append(chip)
    for texts, chips in by_ops.items():
        more = f"; and {len(texts) - REASONS_SHOWN} more (--json names all)" if len(texts) > REASONS_SHOWN else ""
        report.say(f"on the host of {', '.join(chips)}: {'; '.join(texts[:REASONS_SHOWN])}{more}")


def _row(chip: str, info: dict[str, Any]) -> tuple[str, ...]:
    total = info["partition"]["total_microseconds"]
    return (
        Path(chip).stem,
        span(info["range"]),
        f"{percent(max(0.0, total - info['microseconds']), total)} %",
        f"{1e6 / total:.0f}" if total else "-",
        *families.of_chip(chip).row(info),
    )
