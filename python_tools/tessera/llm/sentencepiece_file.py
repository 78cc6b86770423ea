# SPDX-License-Identifier: Apache-2.0
"""Reads tokenizers of SentencePiece (tokenizer.model) and Marian (source.spm, target.spm and vocab.json) into GGUF's
keys."""
from __future__ import annotations

import base64
import struct
from pathlib import Path
from typing import Any, Iterator, Mapping

from ..errors import ExitCode, TesseraError
from ..files import load_json_object, require_file
from .tokenizer_base import BYTE, CONTROL, NORMAL, PREFIX, UNKNOWN, UNUSED, USER, token_text

_UNIGRAM, _BPE = 1, 2  # TrainerSpec.model_type
MARIAN_FILES = _SOURCE, _, _VOCABULARY = "source.spm", "target.spm", "vocab.json"
_MARIAN_SPECIAL = {"unk_token": "<unk>", "eos_token": "</s>", "pad_token": "<pad>"}

Fields = dict[int, list[Any]]


def _fields(data: bytes) -> Fields:
    """Returns the values in a message of Protocol Buffers by number: integers, or bytes."""
    found: Fields = {}
    at = 0

    def varint() -> int:
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value
            if shift > 63:
                raise ValueError("a number has more than 64 bits")

    while at < len(data):
        key = varint()
        kind = key & 7
        if kind == 0:
            value: Any = varint()
        elif kind in (1, 2, 5):
            size = varint() if kind == 2 else 8 if kind == 1 else 4
            if size > len(data) - at:
                raise ValueError(f"a field of {size} bytes goes beyond the end")
            value = data[at : at + size]
            at += size
        else:
            raise ValueError(f"a field has the unknown type {kind}")
        found.setdefault(key >> 3, []).append(value)
    return found


def _pieces(model: Fields) -> Iterator[tuple[str, float, int]]:
    """Returns text, score and type of each piece."""
    for message in model.get(1, []):
        piece = _fields(_checked(message, 1, b""))
        kind = int(_last(piece, 3, NORMAL))
        if kind not in (NORMAL, UNKNOWN, CONTROL, USER, UNUSED, BYTE):
            raise ValueError(f"a piece has the unknown type {kind}")
        yield _last(piece, 1, b"").decode(), struct.unpack("<f", _last(piece, 2, bytes(4)))[0], kind


def _last(fields: Fields, number: int, default: Any) -> Any:
    return _checked(fields.get(number, [default])[-1], number, default)


def _checked(value: Any, number: int, default: Any) -> Any:
    if not isinstance(value, type(default)):
        raise ValueError(f"field {number} has another type than in SentencePiece")
    return value


def _read(path: Path) -> dict[str, Any]:
    """Returns the model in a file by GGUF's keys without their prefix."""
    data = require_file(path, "tokenizer").read_bytes()
    try:
        model = _fields(data)
        trainer, normalizer = _fields(_last(model, 2, b"")), _fields(_last(model, 3, b""))
        pieces = list(_pieces(model))
        kind = _last(trainer, 3, _UNIGRAM)
        keys: dict[str, Any] = {
            "model": {_UNIGRAM: "t5", _BPE: "llama"}.get(kind),
            "tokens": [text for text, *_ in pieces],
            "scores": [score for _, score, _ in pieces],
            "token_type": [kind for *_, kind in pieces],
            "add_space_prefix": bool(_last(normalizer, 3, 1)),
            "remove_extra_whitespaces": bool(_last(normalizer, 4, 1)),
            "precompiled_charsmap": base64.b64encode(_last(normalizer, 2, b"")).decode(),
        }
        for name, field, default in (("unknown", 40, 0), ("bos", 41, 1), ("eos", 42, 2), ("padding", 43, -1)):
            if (number := _last(trainer, field, default)) in range(len(pieces)):
                keys[f"{name}_token_id"] = number
        is_suffix, escapes = bool(_last(trainer, 24, 0)), bool(_last(normalizer, 5, 1))
    except (ValueError, IndexError, struct.error) as error:
        raise TesseraError(f"the tokenizer {path} is not a model of SentencePiece: {error}") from error
    if not pieces:
        raise TesseraError(f"the tokenizer {path} is not a model of SentencePiece: it has no pieces")
    if keys["model"] is None or is_suffix or not escapes:
        why = "the spaces of its pieces are at their ends" if is_suffix else "it does not mark spaces"
        why = f"its model has the type {kind}; supported are unigram and BPE" if keys["model"] is None else why
        raise TesseraError(f"the tokenizer {path} is not supported: {why}", ExitCode.UNSUPPORTED)
    return keys


def read_sentencepiece(path: Path) -> dict[str, Any]:
    """Returns the tokenizer in a tokenizer.model by GGUF's keys."""
    keys = _read(path)
    return {"tokenizer.sentencepiece.pieces": len(keys["tokens"]), **{PREFIX + key: keys[key] for key in keys}}


def read_marian(folder: Path, config: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the tokenizer of a Marian folder by GGUF's keys: the pieces of the source, numbered by vocab.json."""
    if config.get("separate_vocabs"):
        raise TesseraError(f"{folder}: separate vocabularies of two languages are not supported", ExitCode.UNSUPPORTED)
    keys = _read(folder / _SOURCE)
    if keys["model"] != "t5":
        raise TesseraError(
            f"the tokenizer {folder / _SOURCE} is not supported: it must be unigram", ExitCode.UNSUPPORTED
        )
    numbers = load_json_object(folder / _VOCABULARY, "vocabulary")
    if sorted(numbers.values(), key=str) != sorted(range(len(numbers)), key=str):
        raise TesseraError(f"{folder / _VOCABULARY} must number its pieces from 0 to {len(numbers) - 1}")
    tokens = sorted(numbers, key=numbers.__getitem__)
    special = {name: token_text(config.get(name) or default) for name, default in _MARIAN_SPECIAL.items()}
    missing = [token for token in special.values() if token not in numbers]
    if missing:
        raise TesseraError(f"{folder / _VOCABULARY} lacks the token {missing[0]}")
    # A code such as >>fra<< before the text chooses the language of the translation.
    is_whole = lambda token: token in special.values() or token.startswith(">>") and token.endswith("<<")
    pieces = list(zip(keys["tokens"], keys["scores"], keys["token_type"]))
    keys |= {
        "tokens": tokens,
        "scores": [0.0] * len(tokens),
        "token_type": [CONTROL if is_whole(token) else NORMAL for token in tokens],
        "unknown_token_id": numbers[special["unk_token"]],
        "eos_token_id": numbers[special["eos_token"]],
        "padding_token_id": numbers[special["pad_token"]],
        "add_bos_token": False,
    }
    keys.pop("bos_token_id", None)
    return {"tokenizer.marian.pieces": pieces, **{PREFIX + key: value for key, value in keys.items()}}
