# SPDX-License-Identifier: Apache-2.0
"""tessera accuracy: scores models on a task and tells what the others lose against the first."""
from __future__ import annotations

import argparse
import runpy
from dataclasses import dataclass
from pathlib import Path
from typing import Callable, Mapping

from .. import any_model, compare
from ..any_model import AnyModel
from ..calibration.dataset import Unreadable, open_dataset, user_fault
from ..errors import ExitCode, TesseraError, usage_error
from ..files import require_file
from ..tasks import TASKS, agreement
from .common import Context

AGREEMENT = "agreement"
SCORER_FUNCTION = "score"
EPILOG = """--data by --task:
""" + "\n".join(f"  {name:17} {task.data}" for name, task in TASKS.items()) + f"""
  {AGREEMENT:17} samples as of run_calibration --dataset; no labels: compared with the first model
  --scorer FILE.py  whatever the file's function {SCORER_FUNCTION}(model, data) makes of it: model.run({{name: array}}) gives
                    the outputs by name, model.inputs their names and shapes; it returns a number, or a dict of numbers
                    of which the first counts; higher is better

An .onnx takes pre-processing and open sizes from the other models.

examples:
  tessera accuracy m_f32.bmodel m_int8.bmodel --task classification --data pictures/
  tessera accuracy m.onnx m_int8.bmodel --task {AGREEMENT} --data pictures/ --max_drop 1""".replace("{AGREEMENT}", AGREEMENT)


def add_verb(verbs: "argparse._SubParsersAction[argparse.ArgumentParser]") -> argparse.ArgumentParser:
    """Adds `accuracy` with its flags."""
    verb = verbs.add_parser("accuracy", help="score models on a task", allow_abbrev=False, epilog=EPILOG,
                            formatter_class=argparse.RawDescriptionHelpFormatter,
                            description="Scores models on a task and tells what the others lose against the first.")
    verb.add_argument("models", nargs="+", metavar="MODEL", help=".bmodel, .onnx (onnxruntime) or NAME_top.mlir (slow reference)")
    how = verb.add_mutually_exclusive_group(required=True)
    how.add_argument("--task", choices=(*TASKS, AGREEMENT), help="what is scored, see below")
    how.add_argument("--scorer", metavar="FILE.py", help="a scoring function of your own, see below")
    verb.add_argument("--data", required=True, metavar="PATH", help="see below")
    verb.add_argument("--input_num", type=int, default=100, metavar="N", help=f"most samples of --task {AGREEMENT} (default: %(default)s)")
    verb.add_argument("--max_drop", type=float, metavar="POINTS",
                      help="fail (exit code 3) where a model loses more points than this against the first")
    verb.add_argument("--threads", type=int, default=1, metavar="N", help="default: %(default)s")
    return verb


@dataclass(frozen=True)
class Scorer:
    """score: figures of a model. figure: the one that counts, "" for the first; points: what 1 of it is in points."""

    score: Callable[[AnyModel], Mapping[str, float]]
    figure: str
    points: float


def work(context: Context) -> None:
    args, report = context.args, context.report
    if args.threads < 1 or args.input_num < 1:
        raise usage_error("--threads and --input_num: at least 1")
    if args.max_drop is not None and len(args.models) < 2:
        raise usage_error("--max_drop needs at least two models: the others are held against the first")
    report.total = len(args.models) + 1
    with report.step("open models"):
        models = open_models(context)
    scorer = _scorer(context, models)
    rows: list[dict[str, float]] = []
    for model in models:
        with report.step(f"score {model.path.name}") as step:
            figures = {name: float(value) for name, value in scorer.score(model).items()}
            step.note = ", ".join(f"{name} {value:.6g}" for name, value in figures.items())
            rows.append(figures)
    figure = scorer.figure or next(iter(rows[0]))
    drops = [(rows[0][figure] - row[figure]) * scorer.points for row in rows]
    context.result["models"] = [{"file": str(model.path), "figures": row, "drop_points": drop}
                                for model, row, drop in zip(models, rows, drops)]
    report.say(_table(models, rows, figure, drops))
    report.finish([])
    lost = [(model, drop) for model, drop in zip(models[1:], drops[1:]) if args.max_drop is not None and drop > args.max_drop]
    if lost:
        raise TesseraError(f"{lost[0][0].path} loses {lost[0][1]:.3f} points of {figure} against {models[0].path}; "
                           f"allowed: {args.max_drop:g}", ExitCode.ACCURACY,
                           details=[f"{model.path} loses {drop:.3f}" for model, drop in lost[1:]])


def open_models(context: Context) -> list[AnyModel]:
    """All models; what an .onnx leaves open is taken from the first of the others that says it."""
    args, report = context.args, context.report
    whole = {path: any_model.open_model(path, report, args.threads) for path in args.models if Path(path).suffix != ".onnx"}
    like = next((model for model in whole.values() if any(spec.preprocess for spec in model.inputs)), None) or next(
        iter(whole.values()), None)
    shapes = {spec.name: spec.shape for spec in like.inputs} if like else {}
    models = [whole.get(path) or any_model.open_model(path, report, args.threads, shapes=shapes) for path in args.models]
    for model in models:
        if model.assumed:
            raise TesseraError(f"{model.path}: input {model.assumed[0]} has open dims",
                               hint="score it beside a .bmodel of the same model, whose sizes are taken")
    return [model.preprocessed_like(like) if like else model for model in models]


def _scorer(context: Context, models: list[AnyModel]) -> Scorer:
    args = context.args
    if args.scorer:
        return Scorer(_user_function(Path(args.scorer), args.data), "", 1)
    if args.task != AGREEMENT:
        task = TASKS[args.task]
        return Scorer(lambda model: task.score(model, Path(args.data)), task.figure, task.points)
    dataset = open_dataset(args.data, models[0].inputs, args.input_num)
    skipped: set[str] = set()

    def samples():
        for sample in dataset.samples():
            try:
                yield sample.load(models[0].inputs)
            except Unreadable as error:
                if sample.name not in skipped:
                    skipped.add(sample.name)
                    context.report.warn(f"left out: {error}")
    return Scorer(lambda model: agreement.score(model, models[0], samples()), "cos", 100)


def _user_function(path: Path, data: str) -> Callable[[AnyModel], Mapping[str, float]]:
    require_file(path, "scorer")
    try:
        function = runpy.run_path(str(path)).get(SCORER_FUNCTION)
    except Exception as error:
        raise user_fault(path, error) from error
    if not callable(function):
        raise TesseraError(f"--scorer {path}: defines no function {SCORER_FUNCTION}()",
                           hint=f"def {SCORER_FUNCTION}(model, data): return 0.75")

    def score(model: AnyModel) -> Mapping[str, float]:
        try:
            result = function(model, data)
        except TesseraError:
            raise
        except Exception as error:
            raise user_fault(path, error) from error
        figures = result if isinstance(result, Mapping) else {"score": result}
        try:
            numbers = {str(name): float(value) for name, value in figures.items()}
        except (TypeError, ValueError):
            numbers = {}
        if not numbers:
            raise TesseraError(f"--scorer {path}: {SCORER_FUNCTION}() returned {result!r}",
                               hint="it must return a number, or a dict of numbers that is not empty")
        return numbers
    return score


def _table(models: list[AnyModel], rows: list[dict[str, float]], figure: str, drops: list[float]) -> str:
    names = list(rows[0])
    lines = [("model", *names, f"drop of {figure}")]
    for model, row, drop in zip(models, rows, drops):
        lines.append((model.path.name, *(f"{row.get(name, float('nan')):.6g}" for name in names), f"{drop:+.3f} points"))
    return compare.align(lines, right=tuple(range(1, len(names) + 2)))
