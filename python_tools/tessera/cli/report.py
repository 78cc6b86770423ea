# SPDX-License-Identifier: Apache-2.0
"""tessera report: writes one HTML file about compiled models."""
from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from ..calibration import histograms, table as tables
from ..errors import usage_error
from ..files import require_file, write_text
from ..report import model_explorer
from ..report.gather import gather, read_report
from ..report.page import page
from .common import Context, Parser
from ..programs import read_model
from ..sizes import add_at, named_at

EPILOG = """examples:
  tessera report m.bmodel -o report.html
  tessera report a.bmodel b.bmodel --accuracy told_a.json,told_b.json -o report.html"""


def add_verb(verbs: "argparse._SubParsersAction[Parser]") -> Parser:
    """Adds 'report' to the verbs of `tessera`."""
    sub = verbs.add_parser(
        "report",
        help="write one HTML file about compiled models: layers, times, memory, accuracy, advice",
        allow_abbrev=False,
        description="Writes a self-contained HTML file about compiled models: their contents, where each layer runs "
        "and why, how long it takes and what bounds it, the contents of the memories, and advice. Several models are "
        "compared.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    sub.add_argument("models", nargs="+", metavar="model", help="the .bmodel files")
    sub.add_argument("-o", "--output", default="report.html", metavar="FILE", help="output (default: %(default)s)")
    sub.add_argument(
        "--accuracy",
        metavar="FILE[,…]",
        help="the output of 'model_deploy --json' or 'model_tool layers --json' for each model",
    )
    sub.add_argument(
        "--measure",
        type=int,
        default=0,
        metavar="RUNS",
        help="measure the layers of models that run entirely on this machine: the median of RUNS runs on one thread, "
        "on zeros",
    )
    add_at(sub, "sizes at which a model with open sizes is measured and described")
    sub.add_argument("--histograms", metavar="FILE", help="the file from run_calibration --histograms")
    sub.add_argument("--model_explorer", metavar="DIR", help="also write the graphs as JSON for Model Explorer")
    sub.add_argument(
        "--calibration_table", metavar="FILE", help="the calibration table, to check its number of samples"
    )
    return sub


def work(context: Context) -> None:
    args, report = context.args, context.report
    output = Path(args.output)
    if output.suffix not in (".html", ".htm"):
        raise usage_error(f"--output {output}: the name must end in .html")
    if args.measure < 0:
        raise usage_error(f"--measure {args.measure}: must be a number of runs")
    given = args.accuracy.split(",") if args.accuracy else []
    if len(given) > len(args.models):
        raise usage_error(f"--accuracy: {len(given)} files for {len(args.models)} models")
    samples = tables.load(args.calibration_table).samples if args.calibration_table else None
    seen = histograms.load(args.histograms) if args.histograms else []
    models: list[dict[str, Any]] = []
    for index, name in enumerate(args.models):
        path = require_file(name, "model")
        info = read_report(given[index] if index < len(given) else None)
        result = info.get("model", {})
        if result.get("bmodel") and Path(result["bmodel"]).name != path.name:
            report.warn(f"{given[index]} describes {result['bmodel']}, not {path}")
        for at in args.at or [""]:
            found = gather(path, read_model(path), info, samples, args.measure, at)
            models.append({**found, "file": named_at(path.name, at if len(args.at) > 1 else ""), "histograms": seen})
    write_text(context.outputs.path(output), page(models))
    if args.model_explorer:
        folder = context.outputs.folder(args.model_explorer)
        for name, text in model_explorer.files(models).items():
            write_text(folder / name, text)
    context.result["report"] = {"html": str(output), "advice": [model["advice"] for model in models]}
    for model in models:
        for each in model["advice"]:
            stage = model["stages"][each["stage"]]["name"] if each["stage"] is not None else ""
            where = f" ({stage})" if len(model["stages"]) > 1 and stage else ""
            report.say(
                f"{each['code']} {each['layer'] or model['file']}{where}: {each['text']}; try {each['command']} "
                f"({each['page']})"
            )
    report.say(f"{output}: {len(models)} models, {len(json.dumps(models)) // 1024} KiB of data")
