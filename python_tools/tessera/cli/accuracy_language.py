# SPDX-License-Identifier: Apache-2.0
"""Language models for `tessera accuracy`: .bmodel files, and checkpoints, which are compiled in one or more precisions.
"""
from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path
from typing import Iterator

from ..errors import usage_error
from ..files import require_file, scratch_folder
from ..llm.model import LanguageModel
from ..tasks import LANGUAGE_TASKS
from ..tasks.perplexity import SMALLEST, WINDOW
from .common import Context, Parser
from .decoder_source import AS_IN_THE_FILE, DecoderSource, Precision
from .encoder_decoder import is_encoder_decoder

_CONTEXT, _QUANTIZE = "--context", "--quantize"


@dataclass(frozen=True)
class Subject:
    """A language model to score. precision: in which a checkpoint was compiled; "" for a .bmodel."""

    path: Path
    precision: str
    model: LanguageModel


def add_flags(verb: Parser) -> None:
    group = verb.add_argument_group(f"language models (--task {' or '.join(LANGUAGE_TASKS)})")
    group.add_argument(
        _CONTEXT,
        type=int,
        metavar="N",
        help=f"tokens of a window of a perplexity (default: {WINDOW}, as in llama.cpp); for other tasks, the number of "
        "tokens that the caches of a checkpoint hold",
    )
    group.add_argument(
        _QUANTIZE,
        metavar="LIST",
        help="precisions in which each checkpoint is compiled, as for tessera llm, separated by commas: F32,FILE,W4A8 "
        f"(default: {AS_IN_THE_FILE})",
    )


def check_flags(args: argparse.Namespace) -> None:
    """Raises a usage error if flags for language models do not fit the task or the models."""
    is_language = args.task in LANGUAGE_TASKS
    for flag, given in ((_CONTEXT, args.context), (_QUANTIZE, args.quantize)):
        if given is not None and not is_language:
            raise usage_error(f"{flag} requires --task {' or '.join(LANGUAGE_TASKS)}")
    if is_language and args.at:
        raise usage_error(f"--at is not for --task {args.task}: the text determines the sizes")
    if args.context is not None and args.context < SMALLEST:
        raise usage_error(f"{_CONTEXT} {args.context}: must be at least {SMALLEST}")
    if args.quantize is not None and all(_is_compiled(path) for path in args.models):
        raise usage_error(f"{_QUANTIZE} is for checkpoints; the models are compiled already")


def precisions_of(args: argparse.Namespace, path: str) -> list[str]:
    """Returns the precisions in which a model is compiled; [""] for a .bmodel."""
    return [""] if _is_compiled(path) else (args.quantize or AS_IN_THE_FILE).upper().split(",")


def _is_compiled(path: str) -> bool:
    return Path(path).suffix == ".bmodel"


def subjects(context: Context) -> Iterator[Subject]:
    """Yields the models, each opened when the one before it has been scored."""
    args = context.args
    wanted = [(path, precision) for path in args.models for precision in precisions_of(args, path)]
    for path, precision in wanted:  # errors come before the first model is compiled
        if is_encoder_decoder(Path(path)):
            raise usage_error(f"{path} has an encoder; --task {args.task} is for decoders")
        if not Path(path).is_dir():
            require_file(path, "model")
        if precision:
            Precision.parse(precision)
    for path, precision in wanted:
        if precision:
            model = _compile(context, Path(path), precision)
        else:
            model = LanguageModel(path, args.threads)
        if not model.returns_several:
            context.report.warn(
                f"{path} returns the logits of one token in a run, so tokens are scored one by one; compiled with "
                "--all_logits, it would take less time"
            )
        yield Subject(Path(path), precision, model)


def _compile(context: Context, path: Path, precision: str) -> LanguageModel:
    """Compiles a checkpoint into a temporary file, which the model keeps mapped."""
    args, report = context.args, context.report
    size = args.context or (WINDOW if args.task == "perplexity" else None)
    source = DecoderSource(path, context=size, all_logits=True)
    with report.step(f"compile {path.name} {precision}") as step, scratch_folder() as folder:
        output = folder / "model.bmodel"
        source.compile(folder, output, report, Precision.parse(precision))
        step.note = f"{output.stat().st_size / 1e6:.1f} MB"
        return LanguageModel(output, args.threads)
