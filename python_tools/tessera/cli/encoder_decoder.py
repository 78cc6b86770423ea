# SPDX-License-Identifier: Apache-2.0
"""Networks of an encoder and a decoder: compilation of a folder of ONNX files for `tessera llm`, and the verbs
transcribe and translate."""
from __future__ import annotations

import argparse
import json
import shutil
import time
from pathlib import Path
from typing import Any

from .. import top_model
from ..errors import TesseraError, usage_error
from ..files import load_json_object, require_file, scratch_folder, staging_folder
from ..llm.audio import RATE, read_wav
from ..llm.encoder_decoder import ENCODER, FIRST, NEXT, SETTINGS, EncoderDecoder
from ..llm.tokenizer_files import has_tokenizer, read_tokenizer
from ..llm.transcribe import Transcriber
from ..progress import command
from .common import Context, Parser

_SOURCE_ENCODER = "encoder_model.onnx"
_MERGED, _FIRST, _NEXT = "decoder_model_merged.onnx", "decoder_model.onnx", "decoder_with_past_model.onnx"


def is_encoder_decoder(path: Path) -> bool:
    return (path / _SOURCE_ENCODER).is_file()


def _sources(folder: Path) -> dict[str, Path]:
    """Returns the ONNX files of a folder by the names of the compiled ones."""
    merged, first = folder / _MERGED, folder / _FIRST
    if merged.is_file():
        return {ENCODER: folder / _SOURCE_ENCODER, FIRST: merged}
    return {ENCODER: folder / _SOURCE_ENCODER, FIRST: first, NEXT: require_file(folder / _NEXT, "decoder")}


def _settings(folder: Path, context: int | None) -> dict[str, Any]:
    """Returns what generation needs from the configuration of a folder."""
    files = [folder / "config.json", folder / "generation_config.json"]
    config: dict[str, Any] = {}
    for file in files:
        config |= load_json_object(file, "configuration") if file.is_file() else {}
    ends = config.get("eos_token_id", [])
    words = config.get("bad_words_ids") or []
    prefix = lambda names: {name.strip("<|>"): number for name, number in (names or {}).items()}
    most = config.get("max_target_positions") or config.get("n_positions") or 512
    if context is not None and config.get("max_target_positions") and context > most:
        raise usage_error(f"--context {context}: the model was trained for {most} positions; choose at most these")
    return {
        "start": config.get("decoder_start_token_id", 0),
        "ends": ends if isinstance(ends, list) else [ends],
        "context": context or most,
        "languages": prefix(config.get("lang_to_id")),
        "tasks": config.get("task_to_id") or {},
        "no_timestamps": config.get("no_timestamps_token_id"),
        # Marian must not choose the token for padding.
        "suppressed": [*(config.get("suppress_tokens") or []), *(w[0] for w in words if len(w) == 1)],
        "begin_suppressed": config.get("begin_suppress_tokens") or [],
        "language": read_tokenizer(folder) if has_tokenizer(folder) else {},
    }


def _dims(source: Path, context: int, longest: int) -> str:
    """Returns the ranges of the open dims of a file: one sequence, up to `longest` tokens for the encoder and `context`
    for the decoder."""
    import onnx  # type: ignore[import]

    ranges: dict[str, str] = {}
    for value in onnx.load(str(source), load_external_data=False).graph.input:
        for axis, dim in enumerate(value.type.tensor_type.shape.dim):
            if dim.HasField("dim_value"):
                continue
            is_cache = value.name.startswith("past")
            if axis == 0:
                size = "1"
            elif is_cache and ".encoder." not in value.name:
                size = f"0..{context}~{context // 2}"
            elif value.name == "input_ids" and source.name != _SOURCE_ENCODER:
                size = f"1..{min(16, context)}~1"
            else:
                size = f"1..{longest}~{max(longest // 8, 1)}"
            ranges.setdefault(dim.dim_param or f"{value.name}.{axis}", size)
    return ",".join(f"{name}={size}" for name, size in ranges.items())


def compile_encoder_decoder(context: Context, precision: str) -> None:
    """Compiles a folder of ONNX files to a folder of .bmodel files."""
    args, report, folder = context.args, context.report, Path(context.args.model)
    settings = _settings(folder, args.context)
    output = Path(args.output)
    with scratch_folder() as scratch, staging_folder(output) as staging:
        for name, source in _sources(folder).items():
            with report.step(f"compile {source.name}") as step:
                require_file(source, "model")
                model, result = top_model.import_onnx(
                    source,
                    scratch / f"{source.stem}_top.mlir",
                    report,
                    model_name=source.stem,
                    dims=_dims(source, int(settings["context"]), args.chunk),
                    states=["none"],
                )
                top_model.deploy(model, staging / name, report, chip=args.chip, quantize=precision)
                step.note = f"{result.get('ops', 0)} ops, {(staging / name).stat().st_size / 1e6:.1f} MB"
        (staging / SETTINGS).write_text(json.dumps(settings))
        output.mkdir(parents=True, exist_ok=True)
        (output / NEXT).unlink(missing_ok=True)
        for file in staging.iterdir():
            shutil.move(str(file), str(output / file.name))
    context.result.update(model=args.output, architecture="encoder-decoder")
    verb = ["transcribe", "audio.wav"] if settings["no_timestamps"] else ["translate", "--text", "Hello"]
    report.finish([command("tessera", verb[0], *verb[1:], "--model", args.output)])


def add_verbs(verbs: "argparse._SubParsersAction[Parser]") -> list[Parser]:
    return [_add_transcribe(verbs), _add_translate(verbs)]


def _add_shared(sub: Parser) -> None:
    sub.add_argument("--model", required=True, metavar="FOLDER", help="the folder that tessera llm wrote")
    sub.add_argument("--threads", type=int, default=1, metavar="N", help="threads of a run (default: %(default)s)")


def _add_transcribe(verbs: "argparse._SubParsersAction[Parser]") -> Parser:
    sub = verbs.add_parser(
        "transcribe",
        help="write down the speech in a .wav file",
        allow_abbrev=False,
        description="Prints the text of speech with a model in the shape of Whisper, which tessera llm compiles from "
        "the ONNX files of its encoder and decoder.",
    )
    sub.add_argument("audio", help=f"the .wav file, {RATE} samples per second")
    sub.add_argument("--language", default="en", help="language of the speech (default: %(default)s)")
    sub.add_argument("--task", default="transcribe", help="transcribe, or translate to English (default: %(default)s)")
    sub.add_argument("--timestamps", action="store_true", help="print the start and the end of each segment")
    _add_shared(sub)
    return sub


def _add_translate(verbs: "argparse._SubParsersAction[Parser]") -> Parser:
    sub = verbs.add_parser(
        "translate",
        help="generate a text from another one with an encoder and a decoder",
        allow_abbrev=False,
        description="Prints the text that a model in the shape of T5 generates, e.g. a translation.",
    )
    source = sub.add_mutually_exclusive_group(required=True)
    source.add_argument("--text", help="the text, with the model's prefix for the task")
    source.add_argument("--tokens", metavar="N,..", help="the numbers of its tokens; prints those of the answer")
    sub.add_argument("--max_tokens", type=int, metavar="N", help="longest answer (default: the model's context)")
    _add_shared(sub)
    return sub


def _open(args: argparse.Namespace) -> EncoderDecoder:
    if args.threads < 1:
        raise usage_error(f"--threads {args.threads}: must be at least 1")
    return EncoderDecoder(args.model, args.threads)


def work_transcribe(context: Context) -> None:
    args, report = context.args, context.report
    samples = read_wav(Path(args.audio))
    model = _open(args)
    begin = time.perf_counter()
    segments = []
    for segment in Transcriber(model, args.language, args.task).transcribe(samples, args.timestamps):
        text = model.tokenizer.decode(segment.tokens) if model.settings["language"] else str(list(segment.tokens))
        report.say(f"[{segment.start:.2f} -> {segment.end:.2f}]{text}" if args.timestamps else text.strip())
        segments.append({"start": segment.start, "end": segment.end, "text": text, "tokens": list(segment.tokens)})
    seconds = time.perf_counter() - begin
    report.say(f"{len(samples) / RATE:.1f} s of audio in {seconds:.2f} s")
    context.result.update(segments=segments, seconds=seconds)


def work_translate(context: Context) -> None:
    import numpy as np

    args = context.args
    model = _open(args)
    try:
        tokens = (
            [int(n) for n in args.tokens.split(",")] if args.tokens is not None else model.tokenizer.encode(args.text)
        )
    except ValueError as error:
        raise usage_error(f"--tokens {args.tokens}: write numbers, e.g. 5,17,1") from error
    longest = model.input_shape[1]
    if not 0 < len(tokens) <= longest:
        raise TesseraError(
            f"the text has {len(tokens)} tokens; the model takes 1 to {longest}",
            hint="shorten it, or compile the model with a larger --chunk",
        )
    encoded = model.encode(np.asarray([tokens], np.int64))
    made = list(model.generate(encoded, [model.settings["start"]], args.max_tokens))
    text = model.tokenizer.decode(made) if args.tokens is None else ",".join(map(str, made))
    context.report.say(text.strip())
    context.result.update(text=text, tokens=made)
