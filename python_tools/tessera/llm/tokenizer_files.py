# SPDX-License-Identifier: Apache-2.0
"""Finds and reads the tokenizer and the chat template of a folder."""
from __future__ import annotations

from pathlib import Path
from typing import Any

from ..errors import TesseraError
from ..files import load_json_object
from .sentencepiece_file import MARIAN_FILES, read_marian, read_sentencepiece
from .tokenizer_base import CONTROL, PREFIX, UNKNOWN, UNUSED, USER, token_text
from .tokenizer_json import read_tokenizer_json

_FILES = ("tokenizer.json", "tokenizer.model", "spiece.model")
"""Files with a tokenizer; the first that a folder has is used."""
_TEMPLATE = "chat_template.jinja"


def has_tokenizer(folder: Path) -> bool:
    return _file(folder) is not None or all((folder / name).is_file() for name in MARIAN_FILES)


def _file(folder: Path) -> Path | None:
    return next((folder / name for name in _FILES if (folder / name).is_file()), None)


def read_tokenizer(path: Path) -> dict[str, Any]:
    """Returns the tokenizer and the chat template in a folder, or those of a tokenizer.json or a tokenizer.model with
    the files beside it, by GGUF's keys."""
    folder = path if path.is_dir() else path.parent
    if path.is_dir() and not has_tokenizer(path):
        raise TesseraError(
            f"{path} has no tokenizer", hint=f"supported are {', '.join(_FILES)}, or Marian's {', '.join(MARIAN_FILES)}"
        )
    config = _config(folder)
    file = _file(path) if path.is_dir() else path
    if file is None:
        language = read_marian(folder, config)
    elif file.suffix == ".json":
        language = read_tokenizer_json(file)
    else:
        language = read_sentencepiece(file)
        _add_tokens(language, folder, config)
    language |= _special(config, {token: i for i, token in enumerate(language[PREFIX + "tokens"])})
    template = folder / _TEMPLATE
    text = template.read_text(encoding="utf-8") if template.is_file() else config.get("chat_template")
    return {**language, "tokenizer.chat_template": text} if isinstance(text, str) else language


def _config(folder: Path) -> dict[str, Any]:
    """Returns what the files beside a tokenizer say about its tokens; the second overrides the first."""
    files = [folder / name for name in ("special_tokens_map.json", "tokenizer_config.json")]
    found: dict[str, Any] = {}
    for file in files:
        found |= load_json_object(file, "tokenizer") if file.is_file() else {}
    return found


def _add_tokens(language: dict[str, Any], folder: Path, config: dict[str, Any]) -> None:
    """Adds the tokens that follow the pieces of a SentencePiece model."""
    special = {token_text(token) for token in config.get("additional_special_tokens") or []}
    special |= {
        token_text(config[key]) for key in ("bos_token", "eos_token", "unk_token", "pad_token") if config.get(key)
    }
    added: dict[int, tuple[str, bool]] = {}
    if (folder / "added_tokens.json").is_file():
        numbers = load_json_object(folder / "added_tokens.json", "tokenizer")
        added = {int(number): (token, token in special) for token, number in numbers.items()}
    for number, entry in (config.get("added_tokens_decoder") or {}).items():
        added[int(number)] = token_text(entry), bool(entry.get("special"))
    tokens, scores, types = (language[PREFIX + key] for key in ("tokens", "scores", "token_type"))
    for number in range(len(tokens), max(added, default=-1) + 1):
        tokens.append(f"<unused {number}>"), scores.append(0.0), types.append(UNUSED)
    for number, (token, is_special) in added.items():
        if number >= language["tokenizer.sentencepiece.pieces"] or (is_special and types[number] != UNKNOWN):
            tokens[number], types[number] = token, CONTROL if is_special else USER


def _special(config: dict[str, Any], numbers: dict[str, int]) -> dict[str, Any]:
    """Returns the numbers of the tokens that the configuration names."""
    found: dict[str, Any] = {}
    for key in ("bos", "eos", "unk"):
        token = token_text(config.get(f"{key}_token"))
        if token in numbers:
            found[f"{PREFIX}{'unknown' if key == 'unk' else key}_token_id"] = numbers[token]
    if "add_bos_token" in config:
        found[PREFIX + "add_bos_token"] = bool(config["add_bos_token"])
    return found
