# SPDX-License-Identifier: Apache-2.0
"""model_deploy --target: searches for the cheapest precisions, as a step of model_deploy."""
from __future__ import annotations

import argparse
import hashlib
import json
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Sequence

from .. import any_model, bmodel, compare, top_model
from ..calibration import table as tables
from ..errors import ExitCode, TesseraError, usage_error
from ..families import HOST
from ..files import require_writable_folder, scratch_folder
from ..output_error import name_for
from ..precision import qtable
from ..precision.evaluator import CompiledEvaluator, Recorder, Setup
from ..precision.cost import Op
from ..precision.journal import Journal
from ..precision.search import Found, Search, units_of
from ..precision.target import Target, check_figures, why_cosine_misleads
from ..tasks import TASKS
from ..tasks.scale import serious_warning
from ..tasks.scorers import AGREEMENT, SCORER_FUNCTION, Scorer, make_scorer
from ..top_model import TopModel
from .accuracy import add_decoder, check_decoder
from .common import Context, Parser

LADDER = ("INT16", "F32")
"""Types above INT8, the cheapest first; types that the compiler rejects are skipped."""
SHOWN = 12
FAR = 0.3
"""Outputs that differ by more than this cause a warning even if the score holds."""


def add_flags(parser: Parser) -> None:
    group = parser.add_argument_group(
        "search for the cheapest mixed precision that meets a target",
        "Measures on the compiled quantised model which ops need more than 8 bits, and writes them to "
        "NAME_qtable.json.",
    )
    group.add_argument(
        "--target",
        metavar="CONDITION",
        help="'cos>=0.999': mean cosine between the outputs and f32's; 'sqnr>=30': signal to noise ratio in dB of the "
        "worst output; 'agree>=99': percentage of equal answers (classes, boxes, places found); "
        "'drop<=0.5': loss of --task or --scorer against f32, in points (hundredths of the full scale)",
    )
    group.add_argument(
        "--task", choices=(*TASKS, AGREEMENT), help="the task that measures the drop, see tessera accuracy --help"
    )
    group.add_argument(
        "--scorer", metavar="FILE.py", help=f"your own function {SCORER_FUNCTION}(model, data) instead, see there"
    )
    add_decoder(group)
    group.add_argument("--data", metavar="PATH", help="data to score; use other samples than for calibration")
    group.add_argument(
        "--input_num",
        type=int,
        default=100,
        metavar="N",
        help="maximum number of samples on which outputs are compared (default: %(default)s)",
    )
    group.add_argument(
        "--search_table",
        metavar="FILE",
        help="the output table (default: NAME_qtable.json beside --model; another file of that name is kept as "
        "NAME_qtable.json.1)",
    )


def check_usage(args: argparse.Namespace) -> None:
    """Checks the flags before anything is compiled."""
    if not args.target:
        for flag in ("task", "scorer", "decoder", "data", "search_table"):
            if getattr(args, flag):
                raise usage_error(f"--{flag} requires --target")
        return
    target = Target.parse(args.target)
    check_decoder(args)
    if args.quantize != "INT8":
        raise usage_error(f"--target requires --quantize INT8, not {args.quantize}")
    if target.is_agreement and (args.task or args.scorer):
        raise usage_error(f"--target '{target.metric}…' compares outputs; --task and --scorer are for 'drop<=POINTS'")
    if not target.is_agreement and bool(args.task) == bool(args.scorer):
        raise usage_error("--target 'drop…' requires either --task NAME or --scorer FILE.py to measure the score")
    if not args.data:
        raise usage_error("--target requires --data, the samples to score (not the calibration samples)")
    if args.input_num < 1:
        raise usage_error(f"--input_num {args.input_num}: must be at least 1")


@dataclass(frozen=True)
class Scored:
    """The f32 model's score."""

    scorer: Scorer
    figures: dict[str, float]
    figure: str
    recorder: Recorder


def run(context: Context, model: TopModel, extra: Sequence[str]) -> tuple[Path, TesseraError | None]:
    """Runs the search. Returns the file with the table, and the error to raise at the end if the target was not
    reached."""
    args, report = context.args, context.report
    target, output = Target.parse(args.target), _table_path(args)
    if not bmodel.can_run(args.chip):
        raise TesseraError(
            f"--target runs the model, and this machine cannot execute {args.chip} code",
            hint=f"search on a machine that can, or for {HOST}, and pass the table with --quantize_table",
        )
    lines = qtable.load(args.quantize_table) if args.quantize_table else []
    begin = time.perf_counter()
    with scratch_folder() as folder:
        with report.step("score of f32") as step:
            scored = _score_golden(context, model, target, folder)
            step.note = ", ".join(f"{name} {value:.6g}" for name, value in scored.figures.items())
        _warn_of_samples(context, scored)
        setup = Setup(model, args.chip, extra, lines, folder, args.threads)
        with Journal(output.with_name(output.name + ".partial"), _identity(context, scored)) as journal:
            evaluator = CompiledEvaluator(
                setup,
                scored.scorer,
                target,
                scored.figure,
                scored.figures[scored.figure],
                scored.scorer.scale_for(scored.figures[scored.figure], report.warn),
                scored.recorder.guides(),
                journal,
            )
            with report.step(f"search for {target}") as step:
                found = Search(evaluator, LADDER, lambda what, done, of: step.progress(done, of, what)).run(
                    units_of([op for op in evaluator.ops({}) if op.name not in {line.name for line in lines}])
                )
                again = f", {journal.resumed} known from the interrupted run" if journal.resumed else ""
                step.note = (
                    f"{evaluator.errors_measured} output errors on {len(evaluator.guides)} samples, "
                    f"{evaluator.scores_taken} scores{again}: {found.verdict}"
                )
            chosen = _lines(found, evaluator)
            table = context.outputs.path(output)
            qtable.save(table, Path(args.mlir).stem.removesuffix("_top"), [*lines, *chosen])
            if not args.search_table and (text := context.outputs.keep_other(output)):
                report.warn(text)
            _print_report(context, found, evaluator, chosen, output, time.perf_counter() - begin)
        context.outputs.remove(journal.path)
    if found.verdict.met:
        return table, None
    return table, TesseraError(
        f"--target {target} was not reached: the best found is {found.verdict}",
        ExitCode.ACCURACY,
        hint=f"its table is {output}, its model is {args.model}",
    )


def _table_path(args: argparse.Namespace) -> Path:
    name = Path(args.mlir).stem.removesuffix("_top") + "_qtable.json"
    path = Path(args.search_table) if args.search_table else Path(args.model).with_name(name)
    return require_writable_folder(path) / path.name


def _score_golden(context: Context, model: TopModel, target: Target, folder: Path) -> Scored:
    args, report = context.args, context.report
    path = folder / "f32.bmodel"
    cache = ["--cache-dir", args.cache_dir] if args.cache_dir else []
    top_model.deploy(model, path, report, chip=args.chip, quantize="F32", extra=cache)
    golden = any_model.open_model(path, report, args.threads)
    recorder = Recorder(golden)
    task = AGREEMENT if target.is_agreement else args.task
    scorer = make_scorer(task, args.scorer, args.data, args.input_num, golden, report.warn, args.decoder, target.metric)
    figures = scorer.score(recorder.model)
    figure = scorer.figure or next(iter(figures))
    if figure == "agree" and figure not in figures:
        raise TesseraError(
            "--target 'agree…': no output gives comparable answers on these samples: neither classes, boxes "
            "nor probabilities above 1/2",
            hint="compare the outputs themselves: --target 'sqnr>=30'",
        )
    check_figures(figures, figure, "--target")
    if not recorder.digests:
        raise TesseraError("--target: the scorer did not run the model", hint="score(model, data) must call model.run")
    return Scored(scorer, figures, figure, recorder)


def _identity(context: Context, scored: Scored) -> str:
    """Returns everything that a measurement depends on, and nothing else, so that another target can reuse
    measurements."""
    args = context.args
    files = [args.mlir, args.calibration_table, args.quantize_table, args.scorer]
    digests = [hashlib.sha256(Path(file).read_bytes()).hexdigest() if file else "" for file in files]
    return json.dumps([digests, args.chip, args.task, scored.figures, scored.recorder.digests, args.input_num])


def _warn_of_samples(context: Context, scored: Scored) -> None:
    table = tables.load(context.args.calibration_table)
    used = set(table.sample_digests)
    both = sum(digest[: tables.DIGEST_LENGTH] in used for digest in dict.fromkeys(scored.recorder.digests))
    if both:
        context.report.warn(
            f"{both} of the {len(scored.recorder.digests)} scored samples were used for calibration, so the "
            "score is too good; score other samples"
        )


def _lines(found: Found, evaluator: CompiledEvaluator) -> list[qtable.Line]:
    """Returns a table line for each op, with its measurements."""
    lines, figure = [], found.verdict.figure
    base = evaluator.measure({}).error ** 0.5
    for segment, rung in sorted(found.chosen, key=lambda entry: -entry[0].error):
        ops = [op for unit in segment.units for op in unit if op.name in segment.types(rung)]
        beside = f", with {len(ops) - 1} ops beside it," if len(ops) > 1 else ""
        measured = (
            f"its 8 bits alone{beside} change the outputs by {segment.error ** 0.5:.2%}"
            if segment.error
            else "not measured alone"
        )
        reason = (
            f"{measured}, all-INT8 by {base:.2%}; {figure} {found.base_verdict.figures[figure]:.5g} in INT8, "
            f"{found.verdict.figures[figure]:.5g} with this table"
        )
        lines += [qtable.Line(op.name, rung, reason) for op in ops]
    return lines


def _print_report(
    context: Context,
    found: Found,
    evaluator: CompiledEvaluator,
    lines: Sequence[qtable.Line],
    output: Path,
    seconds: float,
) -> None:
    report = context.report
    ops = evaluator.ops(found.types)
    f32 = evaluator.cost_of(ops, {op.name: "F32" for op in ops})
    cost, base = evaluator.cost(found.types), evaluator.cost({})
    share = _float_share(ops)
    report.say(f"all-INT8: {found.base_verdict}; chosen: {found.verdict}")
    name = name_for(evaluator.setup.model.outputs, evaluator.setup.model.origins)
    before, after = evaluator.measure({}).error ** 0.5, evaluator.measure(found.types).error ** 0.5
    report.say(f"{name} on {len(evaluator.guides)} samples of --data: all-INT8 {before:.2%}, chosen {after:.2%}")
    report.say(
        f"{len(lines)} ops above INT8 by this search; {share:.1%} of the multiplications are not INT8; estimated time "
        f"{cost / base:.2f} of all-INT8, {cost / f32:.2f} of f32"
    )
    report.say(
        f"{evaluator.errors_measured + evaluator.scores_taken} evaluations of {evaluator.compiled} compiled models in "
        f"{seconds:.0f} s; written to {output}"
    )
    if lines:
        report.say(_table_of(lines, ops))
        if len(lines) > SHOWN:
            report.say(f"… and {len(lines) - SHOWN} more in {output}")
    _warn_of_risk(context, found, evaluator)
    context.result["search"] = {
        "target": str(found.verdict.target),
        "met": found.verdict.met,
        "value": found.verdict.value,
        "figures": found.verdict.figures,
        "f32": found.verdict.golden,
        "int8": found.base_verdict.figures,
        "output_errors": evaluator.errors_measured,
        "scores": evaluator.scores_taken,
        "compiled": evaluator.compiled,
        "seconds": round(seconds, 2),
        "resumed": evaluator.journal.resumed,
        "not_int8_products": share,
        "time_of_int8": cost / base,
        "time_of_f32": cost / f32,
        "table": str(output),
        "ops": [vars(line) for line in lines],
    }


def _table_of(lines: Sequence[qtable.Line], ops: Sequence[Op]) -> str:
    """Returns the first lines of a quantise table as text."""
    by_name = {op.name: op for op in ops}
    known = [(line, by_name[line.name]) for line in lines[:SHOWN] if line.name in by_name]
    rows = [("op", "kind", "type", "products", "because")]
    rows += [(line.name, op.op, line.type, str(op.products or "-"), line.reason.split(";")[0]) for line, op in known]
    return compare.align(rows, right=(3,))


def _float_share(ops: Sequence[Op]) -> float:
    products = sum(op.products for op in ops)
    return sum(op.products for op in ops if op.type != "INT8") / products if products else 0.0


def _warn_of_risk(context: Context, found: Found, evaluator: CompiledEvaluator) -> None:
    """Warns if the score holds only narrowly or by chance."""
    warn, verdict = context.report.warn, found.verdict
    if verdict.met and verdict.target.metric == "cos":
        if text := why_cosine_misleads(verdict.figures, verdict.target.limit):
            warn(f"the cosine is a poor measure here: {text}; --target 'sqnr>=30' or 'agree>=99' are more meaningful")
    count = int(verdict.figures.get("n", 0))
    if text := serious_warning("the model", verdict.lost, verdict.figure) if not verdict.target.is_agreement else "":
        warn(text)
    if verdict.target.metric == "drop" and verdict.scale.full == 1 and count:
        one = 100 / count
        if verdict.met and verdict.value + one > verdict.target.limit:
            warn(
                f"at risk: one of the {count} samples counts {one:.2f} points, more than the "
                f"{verdict.target.limit - verdict.value:.2f} "
                "left to the target; use more data"
            )
    elif verdict.met and verdict.target.metric == "drop" and verdict.value > 0.9 * verdict.target.limit > 0:
        warn(
            f"at risk: {verdict.value:.3f} of the allowed {verdict.target.limit:g} points are used on the data "
            "by which the precisions were chosen"
        )
    error = evaluator.measure(found.types).error ** 0.5
    if verdict.met and error > FAR:
        name = name_for(evaluator.setup.model.outputs, evaluator.setup.model.origins)
        warn(
            f"at risk: the score holds, but the outputs have a {name} of {error:.0%} on {len(evaluator.guides)} samples"
        )
