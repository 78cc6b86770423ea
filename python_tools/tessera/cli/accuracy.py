# SPDX-License-Identifier: Apache-2.0
"""tessera accuracy: scores models on a task and reports their loss against the first one."""
from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Mapping

from .. import any_model, compare
from ..any_model import AnyModel
from ..errors import ExitCode, TesseraError, usage_error
from ..sizes import add_at, named_at
from ..tasks import LANGUAGE_TASKS, TASKS
from ..tasks.detection_heads import DECODER_FUNCTION
from ..tasks.scale import DECLARATION, Loss, Scale, serious_warning
from ..tasks.scorers import AGREEMENT, SCORER_FUNCTION, make_scorer
from . import accuracy_language
from .accuracy_language import precisions_of
from .common import Context, Parser

EPILOG = (
    """--data by --task:
"""
    + "\n".join(f"  {name:17} {task.data}" for name, task in (TASKS | LANGUAGE_TASKS).items())
    + f"""
  {AGREEMENT:17} samples as for run_calibration --dataset; needs no labels: compares with the first model
  --scorer FILE.py  passed to the file's function {SCORER_FUNCTION}(model, data):
                    model.run({{name: array}}) returns the outputs by name; model.inputs lists names and shapes.
                    The function returns a number, or a dict of numbers whose first one counts; higher is better.
                    {DECLARATION} = 1.0 in the file declares the full scale

A drop is measured in points, hundredths of the full scale, which is 1 for shares (top1, mAP50, mIoU, hit, cos), 100 dB
for psnr, and the first model's own value for ppl. A model that loses more than a third of the first model's score is
always reported.

An .onnx model takes pre-processing and dynamic sizes from the other models.

{' and '.join(LANGUAGE_TASKS)} score language models: files that tessera llm wrote, or checkpoints that it reads, which
are compiled first.

examples:
  tessera accuracy m_f32.bmodel m_int8.bmodel --task classification --data pictures/
  tessera accuracy m.onnx m_int8.bmodel --task {AGREEMENT} --data pictures/ --max_drop 1
  tessera accuracy model.gguf --quantize F32,FILE,W4A8 --task perplexity --data text.txt"""
)


def add_verb(verbs: "argparse._SubParsersAction[Parser]") -> Parser:
    """Adds `accuracy` with its flags."""
    verb = verbs.add_parser(
        "accuracy",
        help="score models on a task",
        allow_abbrev=False,
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        description="Scores models on a task and reports their loss against the first one.",
    )
    verb.add_argument(
        "models",
        nargs="+",
        metavar="MODEL",
        help=".bmodel, .onnx (onnxruntime), NAME_top.mlir (slow reference), or a checkpoint of a language model",
    )
    how = verb.add_mutually_exclusive_group(required=True)
    how.add_argument("--task", choices=(*TASKS, *LANGUAGE_TASKS, AGREEMENT), help="the task, see below")
    how.add_argument("--scorer", metavar="FILE.py", help="your own scoring function, see below")
    add_decoder(verb)
    verb.add_argument("--data", required=True, metavar="PATH", help="see below")
    verb.add_argument(
        "--input_num",
        type=int,
        default=100,
        metavar="N",
        help=f"maximum number of samples for --task {AGREEMENT} (default: %(default)s)",
    )
    verb.add_argument(
        "--max_drop",
        type=float,
        metavar="POINTS",
        help="fail with exit code 3 if a model loses more points (hundredths of the full scale, see below) than this "
        "against the first",
    )
    verb.add_argument("--threads", type=int, default=1, metavar="N", help="number of threads (default: %(default)s)")
    add_at(verb, "sizes of the inputs, for models with open sizes")
    accuracy_language.add_flags(verb)
    return verb


def add_decoder(parser: argparse._ActionsContainer) -> None:
    """Adds the flag --decoder, also used by model_deploy --target."""
    parser.add_argument(
        "--decoder",
        metavar="FILE.py",
        help=f"--task detection: your own function {DECODER_FUNCTION}(outputs), which converts outputs by name to "
        "boxes [n,4] (x1, y1, x2, y2 in pixels of the input), scores [n], classes [n] (from 0, in the order of the "
        "category ids)",
    )


def check_decoder(args: argparse.Namespace) -> None:
    if args.decoder and args.task != "detection":
        raise usage_error("--decoder requires --task detection")


def work(context: Context) -> None:
    args, report = context.args, context.report
    check_decoder(args)
    accuracy_language.check_flags(args)
    if args.threads < 1 or args.input_num < 1:
        raise usage_error("--threads and --input_num must be at least 1")
    is_language = args.task in LANGUAGE_TASKS
    precisions = [p for path in args.models for p in (precisions_of(args, path) if is_language else [""])]
    if args.max_drop is not None and len(precisions) < 2:
        raise usage_error("--max_drop requires at least two models; the others are compared with the first")
    sizes = args.at or [""]
    report.total = len(precisions) + sum(map(bool, precisions)) if is_language else (len(precisions) + 1) * len(sizes)
    scores = score_language(context) if is_language else [each for at in sizes for each in score(context, at)]
    report.say(_table(scores))
    for each in scores:
        where = named_at(f"{each.path} {each.precision}".rstrip(), each.at)
        text = "" if each.is_first else serious_warning(where, each.loss, each.figure)
        if text:
            report.warn(text)
    report.finish([])
    lost = [each for each in scores if args.max_drop is not None and not each.loss.points <= args.max_drop]
    if lost:
        first = lost[0]
        raise TesseraError(
            f"{first.name} loses {first.loss.points:.3f} points of {first.figure} against {args.models[0]} "
            f"({first.loss}); allowed: {args.max_drop:g}",
            ExitCode.ACCURACY,
            details=[f"{each.name} loses {each.loss.points:.3f}: {each.loss}" for each in lost[1:]],
        )


@dataclass(frozen=True)
class Score:
    """The figures of a model, and its loss of one of them against the first model. precision: in which a checkpoint was
    compiled."""

    path: Path
    at: str
    precision: str
    figures: dict[str, float]
    figure: str
    loss: Loss
    is_first: bool

    @property
    def name(self) -> str:
        return named_at(f"{self.path.name} {self.precision}".rstrip(), self.at)

    def as_dict(self) -> dict[str, Any]:
        """Returns what --json prints."""
        more = {"at": self.at, "precision": self.precision}
        entry = {"file": str(self.path), "figures": self.figures, "drop_points": self.loss.points}
        return {**entry, **{key: value for key, value in more.items() if value}}


def score_language(context: Context) -> list[Score]:
    """Scores language models, one after the other, and adds them to what --json prints."""
    args, task = context.args, LANGUAGE_TASKS[context.args.task]
    named, rows = [], []
    for subject in accuracy_language.subjects(context):
        with context.report.step(f"score {subject.path.name} {subject.precision}".rstrip()) as step:
            rows.append(task.score(subject.model, Path(args.data), context=args.context))
            step.note = _note(rows[-1])
            named.append((subject.path, subject.precision))
    scores = [
        Score(path, "", precision, row, task.figure, loss, row is rows[0])
        for (path, precision), row, loss in zip(named, rows, _losses(context, task.scale, rows, task.figure))
    ]
    context.result["models"] = [each.as_dict() for each in scores]
    return scores


def _note(figures: Mapping[str, float]) -> str:
    return ", ".join(f"{name} {value:.6g}" for name, value in figures.items())


def score(context: Context, at: str) -> list[Score]:
    """Scores all models at sizes of --at, and adds them to what --json prints."""
    args, report = context.args, context.report
    with report.step(named_at("open models", at)):
        models = open_models(context, at)
    scorer = make_scorer(args.task, args.scorer, args.data, args.input_num, models[0], report.warn, args.decoder)
    rows: list[dict[str, float]] = []
    for model in models:
        with report.step(f"score {named_at(model.path.name, at)}") as step:
            figures = scorer.score(model)
            step.note = _note(figures)
            rows.append(figures)
    figure = scorer.figure or next(iter(rows[0]))
    # A single model needs no scale.
    scale = scorer.scale_for(rows[0][figure], report.warn) if len(rows) > 1 else scorer.scale or Scale()
    scores = [
        Score(model.path, at, "", row, figure, loss, model is models[0])
        for model, row, loss in zip(models, rows, _losses(context, scale, rows, figure))
    ]
    for model, each in zip(models, scores):
        error = scorer.errors.get(model.path)
        if error and not each.is_first:
            report.say(f"{each.name} against {models[0].path.name}: {error}")
        context.result.setdefault("models", []).append(
            {**each.as_dict(), **({"output_error": error.as_dict()} if error else {})}
        )
    return scores


def _losses(context: Context, scale: Scale, rows: list[dict[str, float]], figure: str) -> list[Loss]:
    """Returns each model's loss against the first."""
    golden = rows[0][figure]
    context.result["scale"] = {"figure": figure, "full": abs(golden) if scale.full is None else scale.full}
    return [scale.loss(golden, row.get(figure, float("nan"))) for row in rows]


def open_models(context: Context, at: str) -> list[AnyModel]:
    """Opens all models, those with open sizes at sizes of --at. Dynamic dims of an .onnx are taken from the first other
    model that has pre-processing, else from the first other model."""
    args, report = context.args, context.report
    whole = {
        path: any_model.open_model(path, report, args.threads, at=at)
        for path in args.models
        if Path(path).suffix != ".onnx"
    }
    like = next((model for model in whole.values() if any(spec.preprocess for spec in model.inputs)), None) or next(
        iter(whole.values()), None
    )
    shapes = {spec.name: spec.shape for spec in like.inputs} if like else {}
    models = [
        whole.get(path) or any_model.open_model(path, report, args.threads, shapes=shapes) for path in args.models
    ]
    for model in models:
        if model.assumed:
            raise TesseraError(
                f"{model.path}: input {model.assumed[0]} has dynamic dims",
                hint="score it together with a .bmodel of the same network, which fixes the sizes",
            )
    return [model.preprocessed_like(like) if like else model for model in models]


def _table(scores: list[Score]) -> str:
    names = list(scores[0].figures)
    lines = [("model", *names, f"drop of {scores[0].figure}")]
    for each in scores:
        figures = (f"{each.figures.get(name, float('nan')):.6g}" for name in names)
        lines.append((each.name, *figures, f"{each.loss.points:+.3f} points"))
    return compare.align(lines, right=tuple(range(1, len(names) + 2)))
