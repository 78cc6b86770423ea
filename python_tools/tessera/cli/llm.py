# SPDX-License-Identifier: Apache-2.0
"""The verbs of `tessera` for language models: llm compiles, generate and chat run."""
from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from typing import Iterator, Sequence

from .. import top_model
from ..errors import usage_error
from ..families import HOST
from ..files import atomic_write, require_file, scratch_folder
from ..llm import Constraint, Drafter, LanguageModel, Sampling
from ..progress import command
from ..targets import targets
from .calibrated_decoder import PRECISIONS, Calibration, Chosen, check_precision
from .common import Context, Parser
from .decoder_source import AS_IN_THE_FILE, DecoderSource, Precision
from .encoder_decoder import compile_encoder_decoder, is_encoder_decoder

_EXIT = ("/exit", "/quit")


def add_verbs(verbs: "argparse._SubParsersAction[Parser]") -> list[Parser]:
    """Adds the verbs to `tessera`."""
    return [_add_llm(verbs), _add_generate(verbs), _add_chat(verbs)]


def _add_weights(sub: Parser) -> None:
    """Adds the flags that say how weights are stored."""
    sub.add_argument(
        "--quantize",
        default=AS_IN_THE_FILE,
        type=str.upper,
        help=f"{AS_IN_THE_FILE}: weights keep their bits where the file quantises groups of at least 16 numbers; W4A8 "
        "or W8A8: the same, and matmuls quantise blocks of their inputs at run time, which is faster; or F32, BF16, "
        "W8, W4, DYNAMIC_INT8: weights are dequantised and then treated as by model_deploy (default: %(default)s)",
    )
    sub.add_argument(
        "--calibration_text",
        metavar="FILE",
        help=f"--quantize {', '.join(PRECISIONS)}: choose the integer weights with this text, so that the outputs of "
        "each matmul change least; they are used if the perplexity of the last quarter of the text falls",
    )
    sub.add_argument(
        "--group_size",
        type=int,
        metavar="N",
        help="W4, W4A8: weights that share a scale, a multiple of 16 (default: 32)",
    )


def _add_llm(verbs: "argparse._SubParsersAction[Parser]") -> Parser:
    sub = verbs.add_parser(
        "llm",
        help="compile a language model from a checkpoint",
        allow_abbrev=False,
        description="Compiles a language model from a .gguf file, a Hugging Face folder, or a decoder with caches in "
        "an .onnx file. The .bmodel contains the tokenizer and the chat template, and keeps the tokens of a "
        "conversation in its caches. A folder with encoder_model.onnx and decoders, as optimum writes it, becomes a "
        "folder for transcribe and translate.",
    )
    sub.add_argument(
        "model",
        help="the .gguf or .onnx file, the folder with config.json and model.safetensors, or that of an encoder and a "
        "decoder",
    )
    sub.add_argument("-o", "--output", required=True, metavar="PATH", help="output, the .bmodel")
    _add_weights(sub)
    sub.add_argument(
        "--tokenizer",
        metavar="PATH",
        help="of an .onnx file or a folder: a tokenizer.json, a tokenizer.model of SentencePiece, or the folder with "
        "one (default: that beside the model)",
    )
    sub.add_argument(
        "--context", type=int, metavar="N", help="tokens that the caches hold (default: the model's, at most 4096)"
    )
    sub.add_argument(
        "--chunk", type=int, default=512, metavar="N", help="largest number of tokens of a run (default: %(default)s)"
    )
    sub.add_argument(
        "--kv",
        choices=("f32", "bf16", "int8"),
        help="type of keys and values in the caches; int8 has a scale for each head and token (default: f32)",
    )
    logits = sub.add_mutually_exclusive_group()
    logits.add_argument(
        "--all_logits", action="store_true", help="return logits for all tokens of a run instead of the last one"
    )
    logits.add_argument(
        "--sequences", type=int, metavar="N", help="generate up to N texts together, each with caches of its own"
    )
    sub.add_argument("--chip", default=HOST, help=f"{HOST} or one of its variants (default: %(default)s)")
    return sub


def _add_generation(sub: Parser) -> None:
    sub.add_argument("model", help="the .bmodel, from tessera llm")
    sub.add_argument("--max_tokens", type=int, metavar="N", help="longest answer (default: up to the model's context)")
    group = sub.add_argument_group("choice of tokens")
    group.add_argument(
        "--temperature",
        type=float,
        default=0.0,
        metavar="T",
        help="0: always the most likely token (default: %(default)s)",
    )
    group.add_argument("--top_k", type=int, default=0, metavar="K", help="only the K most likely tokens (default: all)")
    group.add_argument(
        "--top_p", type=float, default=1.0, metavar="P", help="only the most likely tokens whose probabilities sum to P"
    )
    group.add_argument(
        "--min_p",
        type=float,
        default=0.0,
        metavar="P",
        help="only tokens at least P times as likely as the most likely one",
    )
    group.add_argument(
        "--repetition_penalty",
        type=float,
        default=1.0,
        metavar="F",
        help="makes tokens that occurred before less likely if above 1",
    )
    group.add_argument("--seed", type=int, metavar="N", help="the same seed gives the same tokens")
    sub.add_argument(
        "--stop",
        action="append",
        default=[],
        metavar="TEXT",
        help="ends an answer before this text; may be given several times",
    )
    grammar = sub.add_argument_group("form of the answer").add_mutually_exclusive_group()
    grammar.add_argument("--json_schema", metavar="FILE", help="answers are JSON that follows the schema in FILE")
    grammar.add_argument("--gbnf", metavar="FILE", help="answers follow the grammar in FILE, in llama.cpp's format")
    grammar.add_argument("--regex", metavar="REGEX", help="answers match the regular expression")
    guesses = sub.add_argument_group(
        "speculation", "checks several guessed tokens in one run; needs a model compiled with --sequences"
    ).add_mutually_exclusive_group()
    guesses.add_argument("--lookup", action="store_true", help="guess that the text repeats")
    guesses.add_argument("--draft", metavar="FILE", help="let a smaller .bmodel with the same tokens guess")
    sub.add_argument("--threads", type=int, default=1, metavar="N", help="threads of a run (default: %(default)s)")


def _add_generate(verbs: "argparse._SubParsersAction[Parser]") -> Parser:
    sub = verbs.add_parser(
        "generate",
        help="continue a text with a language model",
        allow_abbrev=False,
        description="Prints the text that a language model generates, token by token, and its speed.",
    )
    _add_generation(sub)
    prompt = sub.add_mutually_exclusive_group(required=True)
    prompt.add_argument(
        "--prompt",
        action="append",
        metavar="TEXT",
        help="the text to continue; several are continued together, if the model was compiled with --sequences",
    )
    prompt.add_argument("--prompt_file", metavar="FILE", help="a file with the text to continue")
    return sub


def _add_chat(verbs: "argparse._SubParsersAction[Parser]") -> Parser:
    sub = verbs.add_parser(
        "chat",
        help="talk to a language model",
        allow_abbrev=False,
        description="Answers the lines of stdin with a language model, in the form of its chat template. "
        f"{' or '.join(_EXIT)} ends the conversation.",
    )
    _add_generation(sub)
    sub.add_argument("--system", metavar="TEXT", help="instructions for the model, before the conversation")
    sub.add_argument(
        "--state",
        metavar="FILE",
        help="keeps the caches after the system prompt: FILE is read if it exists, and written otherwise",
    )
    return sub


def _check_rounding(args: argparse.Namespace, is_pair: bool) -> None:
    """Checks the flags that say how weights become integers."""
    for flag in ("calibration_text", "group_size"):
        if getattr(args, flag) is not None and is_pair:
            raise usage_error(f"--{flag} is for decoders; the folder has an encoder")
    if args.calibration_text is not None:
        check_precision(args.quantize)
    if args.group_size is not None and (
        args.quantize not in ("W4", "W4A8") or args.group_size < 16 or args.group_size % 16
    ):
        raise usage_error(
            f"--group_size {args.group_size}: must be a multiple of 16, and requires --quantize W4 or W4A8"
        )


def _calibrate(context: Context, source: DecoderSource, flags: Sequence[str], folder: Path) -> Chosen | None:
    """Chooses weights with --calibration_text, if it is given."""
    args, report = context.args, context.report
    if args.calibration_text is None:
        return None
    chosen = Calibration(source, args.quantize, flags, folder, report).run(Path(args.calibration_text))
    found = chosen.perplexities
    report.say(
        f"perplexity of {found['tokens']} tokens that did not choose weights: F32 {found['f32']:.4f}, {args.quantize} "
        f"{found['without']:.4f}, with chosen weights {found['with']:.4f}"
    )
    context.result["calibration"] = {**found, "used": bool(chosen.weights)}
    if not chosen.weights:
        report.warn("--calibration_text does not lower the perplexity, so the model is the same as without it")
    return chosen


def work_llm(context: Context) -> None:
    args, report = context.args, context.report
    is_pair = is_encoder_decoder(Path(args.model))
    if not Path(args.model).is_dir():
        require_file(args.model, "model")
    targets().require_chip(args.chip)
    precision = Precision.parse(args.quantize)
    _check_rounding(args, is_pair)
    for flag in ("sequences", "kv"):
        if getattr(args, flag) is not None and (is_pair or Path(args.model).suffix == ".onnx"):
            raise usage_error(f"--{flag} needs a .gguf file or a checkpoint folder: an .onnx file has its own caches")
    if is_pair:
        compile_encoder_decoder(context, precision.compiled)
        return
    shape = {name: getattr(args, name) for name in ("tokenizer", "context", "chunk", "all_logits", "sequences", "kv")}
    source = DecoderSource(Path(args.model), **shape)
    output = context.outputs.path(args.output)
    flags = [] if args.group_size is None else ["--group-size", str(args.group_size)]
    report.total = 2 if args.calibration_text is None else 5
    with scratch_folder() as folder:
        chosen = _calibrate(context, source, flags, folder)
        dequantises = precision.dequantises or bool(chosen and chosen.weights)
        with report.step("import and optimise") as step:
            model, result = source.import_top(folder, report, dequantises)
            step.note = f"{result['architecture']}, {result.get('ops', 0)} ops"
        flags += chosen.flags_for(model, folder, report) if chosen else []
        with report.step(f"compile for {args.chip}, {args.quantize}") as step:
            top_model.deploy(model, output, report, chip=args.chip, quantize=precision.compiled, extra=flags)
            step.note = f"{output.stat().st_size / 1e6:.1f} MB"
    context.result.update(model=args.output, architecture=result["architecture"])
    report.finish([command("tessera", "generate", args.output, "--prompt", "Once upon a time")])


def _open(args: argparse.Namespace) -> tuple[LanguageModel, Sampling]:
    """Checks the flags; returns the model and how it chooses tokens."""
    sampling = Sampling(args.temperature, args.top_k, args.top_p, args.min_p, args.repetition_penalty, args.seed)
    sampling.check()
    if args.threads < 1:
        raise usage_error(f"--threads {args.threads}: must be at least 1")
    if args.max_tokens is not None and args.max_tokens < 1:
        raise usage_error(f"--max_tokens {args.max_tokens}: must be at least 1")
    return LanguageModel(args.model, args.threads), sampling


def _drafter(args: argparse.Namespace, model: LanguageModel) -> Drafter | None:
    if args.draft:
        return model.drafter(LanguageModel(args.draft, args.threads))
    return model.drafter() if args.lookup else None


def _constraint(args: argparse.Namespace, model: LanguageModel) -> Constraint | None:
    """Returns the form of one answer."""
    if args.regex is not None:
        return model.grammar("regex", args.regex)
    for form in ("json_schema", "gbnf"):
        if path := getattr(args, form):
            require_file(path, "grammar")
            return model.grammar(form, Path(path).read_text())
    return None


def _answer(
    context: Context, model: LanguageModel, sampling: Sampling, text: str, drafter: Drafter | None = None
) -> str:
    """Prints the text that follows `text`, piece by piece, and returns it."""
    args, stream = context.args, sys.stderr if context.args.json else sys.stdout
    pieces: Iterator[str] = model.generate(
        text, args.max_tokens, args.stop, _constraint(args, model), drafter, **vars(sampling)
    )
    made = []
    for piece in pieces:
        made.append(piece)
        print(piece, end="", file=stream, flush=True)
    print(file=stream)
    _warn_if_full(context, model)
    return "".join(made)


def _warn_if_full(context: Context, model: LanguageModel) -> None:
    if model.last.ended_by == "context":
        text = (
            f"the answer ended because the model's context of {model.context} tokens is full; compile it with a larger "
            "--context"
        )
        context.report.warn(text)
        context.report.say(f"warning: {text}")


def work_generate(context: Context) -> None:
    args = context.args
    if args.prompt_file:
        require_file(args.prompt_file, "prompt")
    model, sampling = _open(args)
    if args.prompt and len(args.prompt) > 1:
        return _generate_together(context, model, sampling)
    prompt = args.prompt[0] if args.prompt else Path(args.prompt_file).read_text()
    text = _answer(context, model, sampling, prompt, _drafter(args, model))
    stats = model.last
    context.report.say(stats.describe())
    context.result.update(
        text=text,
        tokens=stats.tokens,
        ended_by=stats.ended_by,
        prompt_tokens=stats.prompt_tokens,
        prefill_seconds=stats.prefill_seconds,
        decode_seconds=stats.decode_seconds,
        drafted=stats.drafted,
        accepted=stats.accepted,
    )


def _generate_together(context: Context, model: LanguageModel, sampling: Sampling) -> None:
    """Continues several prompts, and prints the texts when all are complete."""
    args, stream = context.args, sys.stderr if context.args.json else sys.stdout
    for flag in ("stop", "json_schema", "gbnf", "regex", "lookup", "draft"):
        if getattr(args, flag):
            raise usage_error(f"--{flag} needs a single --prompt")
    begin = time.perf_counter()
    answers = model.generate_all(args.prompt, args.max_tokens, **vars(sampling))
    seconds = time.perf_counter() - begin
    for prompt, text in zip(args.prompt, answers):
        print(f"== {prompt}\n{text}", file=stream)
    _warn_if_full(context, model)
    stats = model.last
    context.report.say(
        f"{stats.prompt_tokens} tokens read and {stats.new_tokens} generated in {seconds:.2f} s, "
        f"{stats.new_tokens / seconds:.1f} tokens/s"
    )
    context.result.update(texts=answers, tokens=stats.new_tokens, seconds=seconds)


def _resume(model: LanguageModel, path: Path, text: str) -> None:
    """Makes the caches hold the beginning of a conversation, read from `path` if it exists."""
    if path.exists():
        model.restore(path.read_bytes())
    else:
        model.prefill(model.tokenizer.encode(text))
        with atomic_write(path) as file:
            file.write(model.save())


def work_chat(context: Context) -> None:
    args = context.args
    model, sampling = _open(args)
    drafter = _drafter(args, model)
    messages = [{"role": "system", "content": args.system}] if args.system else []
    first = model.chat_text([*messages, {"role": "user", "content": ""}])  # a wrong template is reported at once
    if args.state:
        _resume(model, Path(args.state), first)
    is_terminal = sys.stdin.isatty()
    while True:
        if is_terminal:
            print("> ", end="", flush=True)
        line = sys.stdin.readline()
        if not line or line.strip() in _EXIT:
            break
        messages.append({"role": "user", "content": line.rstrip("\n")})
        answer = _answer(context, model, sampling, model.chat_text(messages), drafter)
        messages.append({"role": "assistant", "content": answer})
    context.result["messages"] = messages
