# SPDX-License-Identifier: Apache-2.0
"""Reads tokenizers of Hugging Face folders (tokenizer.json, tokenizer_config.json) into GGUF's keys."""
from __future__ import annotations

from pathlib import Path
from typing import Any, Iterator

from ..errors import ExitCode, TesseraError
from ..files import load_json_object

_NORMAL, _CONTROL, _USER, _BYTE = 1, 3, 4, 6  # tokenizer.ggml.token_type
_FILE, _CONFIG, _TEMPLATE = "tokenizer.json", "tokenizer_config.json", "chat_template.jinja"


def read_tokenizer(path: Path) -> dict[str, Any]:
    """Returns the tokenizer and the chat template in a folder, or beside a tokenizer.json, by GGUF's keys."""
    file = path / _FILE if path.is_dir() else path
    tokenizer = load_json_object(file, "tokenizer")
    config = load_json_object(file.with_name(_CONFIG), "tokenizer") if file.with_name(_CONFIG).is_file() else {}
    model = tokenizer.get("model") or {}
    kind = model.get("type", "BPE")
    if kind not in ("BPE", "Unigram") or not isinstance(model.get("vocab"), dict if kind == "BPE" else list):
        raise _unsupported(file, f"its model is {kind}; supported are BPE and Unigram")
    tokens, types = _vocabulary(tokenizer)
    merges = [merge if isinstance(merge, str) else " ".join(merge) for merge in model.get("merges", [])]
    keys: dict[str, Any] = {"tokens": tokens, "token_type": types}
    if kind == "Unigram":
        scores = [float(score) for _, score in model["vocab"]]
        keys |= {"model": "t5", "scores": scores + [0.0] * (len(tokens) - len(scores)), "add_bos_token": False}
        keys |= {"unknown_token_id": model.get("unk_id")}
    elif any(part.get("type") == "ByteLevel" for part in _parts(tokenizer.get("pre_tokenizer"))):
        keys |= {"model": "gpt2", "merges": merges, "pre": _split(file, tokenizer), "add_bos_token": False}
    else:
        keys |= {"model": "llama", "scores": _scores(tokens, merges), "add_bos_token": True}
        keys["add_space_prefix"] = "Prepend" in {part.get("type") for part in _parts(tokenizer.get("normalizer"))}
    for part in _parts(tokenizer.get("post_processor")):
        if part.get("single"):
            keys["add_bos_token"] = "SpecialToken" in part["single"][0]
    keys |= _special(config, {token: i for i, token in enumerate(tokens)})
    language = {f"tokenizer.ggml.{key}": value for key, value in keys.items()}
    template = file.with_name(_TEMPLATE)
    text = template.read_text(encoding="utf-8") if template.is_file() else config.get("chat_template")
    return {**language, "tokenizer.chat_template": text} if isinstance(text, str) else language


def _unsupported(file: Path, why: str) -> TesseraError:
    return TesseraError(f"the tokenizer {file} is not supported: {why}", ExitCode.UNSUPPORTED)


def _parts(entry: Any) -> Iterator[dict[str, Any]]:
    """Returns an entry, or those of a sequence."""
    entry = entry or {}
    lists = (entry.get(key) for key in ("pretokenizers", "normalizers", "processors"))
    yield from next((parts for parts in lists if parts), [entry])


def _vocabulary(tokenizer: dict[str, Any]) -> tuple[list[str], list[int]]:
    """Returns the tokens in the order of their numbers, and their types."""
    numbers: dict[int, tuple[str, int]] = {}
    vocabulary = tokenizer["model"]["vocab"]
    pairs = vocabulary.items() if isinstance(vocabulary, dict) else ((t, i) for i, (t, _) in enumerate(vocabulary))
    for token, number in pairs:
        is_byte = len(token) == 6 and token.startswith("<0x") and token.endswith(">")
        numbers[int(number)] = token, _BYTE if is_byte else _NORMAL
    for added in tokenizer.get("added_tokens", []):
        numbers[int(added["id"])] = added["content"], _CONTROL if added.get("special") else _USER
    unused = ("", 5)
    found = [numbers.get(i, unused) for i in range(max(numbers, default=-1) + 1)]
    return [token for token, _ in found], [kind for _, kind in found]


def _split(file: Path, tokenizer: dict[str, Any]) -> str:
    """Returns GGUF's name of the patterns that split text into words."""
    parts = list(_parts(tokenizer.get("pre_tokenizer")))
    patterns = [str(part.get("pattern", {}).get("Regex", "")) for part in parts if part.get("type") == "Split"]
    if any("\\p{N}{1,3}" in pattern for pattern in patterns):
        return "llama-bpe"
    if any("\\p{N}|" in pattern for pattern in patterns):
        return "qwen2"
    if patterns:
        raise _unsupported(file, f"it splits text by the pattern {patterns[0]}")
    digits = any(part.get("type") == "Digits" and part.get("individual_digits") for part in parts)
    return "smollm" if digits else "gpt-2"


def _scores(tokens: list[str], merges: list[str]) -> list[float]:
    """Returns scores with which the pair of the first merge is joined first."""
    ranks: dict[str, int] = {}
    for rank, merge in enumerate(merges):
        ranks.setdefault(merge.replace(" ", "", 1), rank)
    return [-float(ranks.get(token, len(merges))) for token in tokens]


def _special(config: dict[str, Any], numbers: dict[str, int]) -> dict[str, Any]:
    """Returns the numbers of the tokens that the configuration names."""
    found: dict[str, Any] = {}
    for key in ("bos", "eos", "unk"):
        token = config.get(f"{key}_token")
        token = token.get("content") if isinstance(token, dict) else token
        if token in numbers:
            found[f"{'unknown' if key == 'unk' else key}_token_id"] = numbers[token]
    if "add_bos_token" in config:
        found["add_bos_token"] = bool(config["add_bos_token"])
    return found
