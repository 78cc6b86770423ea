# SPDX-License-Identifier: Apache-2.0
"""Reads the tokenizers of Hugging Face's package tokenizers (tokenizer.json) into GGUF's keys. Unsupported parts
that may change the tokens of a text are errors."""
from __future__ import annotations

from pathlib import Path
from typing import Any, Iterator

from ..errors import ExitCode, TesseraError
from ..files import load_json_object
from .normalizer import SPACE
from .tokenizer_base import BYTE, CONTROL, NORMAL, PREFIX, UNUSED, USER

_CONTRACTIONS = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)"
_WORDS = (
    rf"{_CONTRACTIONS}|[^\r\n\p{{L}}\p{{N}}]?\p{{L}}+|\p{{N}}DIGITS"
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
_PATTERNS = {_WORDS.replace("DIGITS", "{1,3}"): "llama-bpe", _WORDS.replace("DIGITS", ""): "qwen2"}
"""GGUF's names of the patterns that split text into words."""
_SPACES = (" {2,}", "\\s{2,}")

Keys = dict[str, Any]


def read_tokenizer_json(file: Path) -> Keys:
    """Returns the tokenizer in a tokenizer.json by GGUF's keys."""
    return _Reader(file).read()


class _Reader:
    def __init__(self, file: Path) -> None:
        self._file, self._json = file, load_json_object(file, "tokenizer")
        self._model: dict[str, Any] = self._json.get("model") or {}
        self._normalizers = list(_parts(self._json.get("normalizer")))
        self._splitters = list(_parts(self._json.get("pre_tokenizer")))

    def read(self) -> Keys:
        model, kind = self._model, self._model.get("type", "BPE")
        if kind not in ("BPE", "Unigram") or not isinstance(model.get("vocab"), dict if kind == "BPE" else list):
            raise self._unsupported(f"its model is {kind}; supported are BPE and Unigram")
        for key in ("dropout", "continuing_subword_prefix", "end_of_word_suffix"):
            if model.get(key):
                raise self._unsupported(f"its model has '{key}'")
        tokens, types = self._vocabulary()
        keys: Keys = {PREFIX + "tokens": tokens, PREFIX + "token_type": types}
        if kind == "Unigram":
            keys |= self._unigram(len(tokens))
        elif any(part.get("type") == "ByteLevel" for part in self._splitters):
            keys |= self._words()
        else:
            keys |= self._sentences(tokens)
        return {**keys, **self._first_token(), **self._spaces_of_tokens()}

    def _unsupported(self, why: str) -> TesseraError:
        return TesseraError(f"the tokenizer {self._file} is not supported: {why}", ExitCode.UNSUPPORTED)

    def _vocabulary(self) -> tuple[list[str], list[int]]:
        """Returns the tokens in the order of their numbers, and their types."""
        numbers: dict[int, tuple[str, int]] = {}
        vocabulary = self._model["vocab"]
        pairs = vocabulary.items() if isinstance(vocabulary, dict) else ((t, i) for i, (t, _) in enumerate(vocabulary))
        for token, number in pairs:
            is_byte = self._model.get("byte_fallback") and len(token) == 6 and token[:3] + token[-1] == "<0x>"
            numbers[int(number)] = token, BYTE if is_byte else NORMAL
        for added in self._json.get("added_tokens") or []:
            numbers[int(added["id"])] = added["content"], CONTROL if added.get("special") else USER
        found = [numbers.get(i, (f"<unused {i}>", UNUSED)) for i in range(max(numbers, default=-1) + 1)]
        return [token for token, _ in found], [kind for _, kind in found]

    def _merges(self) -> list[str]:
        return [merge if isinstance(merge, str) else " ".join(merge) for merge in self._model.get("merges", [])]

    def _unigram(self, count: int) -> Keys:
        scores = [float(score) for _, score in self._model["vocab"]]
        keys: Keys = {"model": "t5", "scores": scores + [0.0] * (count - len(scores)), "add_bos_token": False}
        keys["unknown_token_id"] = self._model.get("unk_id")
        is_split = any(part.get("type") == "WhitespaceSplit" for part in self._splitters)
        keys["remove_extra_whitespaces"], strips = is_split, ""
        for part in self._splitters:
            if part.get("type") not in (None, "WhitespaceSplit", "Metaspace"):
                raise self._unsupported(f"it splits text by {part.get('type')}")
        for part in self._normalizers:
            kind, pattern = part.get("type"), (part.get("pattern") or {}).get("Regex")
            if kind == "Precompiled":
                keys["precompiled_charsmap"] = str(part.get("precompiled_charsmap") or "")
            elif kind == "Replace" and pattern in _SPACES:
                keys["remove_extra_whitespaces"] = True
            elif kind == "Strip":
                strips = "l" * bool(part.get("strip_left")) + "r" * bool(part.get("strip_right"))
            elif kind is not None:
                raise self._unsupported(f"its normalizer is {kind}; supported are Precompiled and Strip")
        found = {PREFIX + key: value for key, value in keys.items()}
        found |= {"tokenizer.split_at_whitespace": is_split, "tokenizer.has_exact_sums": True}
        found["tokenizer.strips"] = strips
        return {**found, **self._space_before()}

    def _words(self) -> Keys:
        keys: Keys = {PREFIX + "model": "gpt2", PREFIX + "merges": self._merges(), PREFIX + "add_bos_token": False}
        keys |= {PREFIX + "pre": self._pattern(), "tokenizer.whole_words_first": bool(self._model.get("ignore_merges"))}
        for part in self._normalizers:
            if part.get("type") not in (None, "NFC", "NFKC"):
                raise self._unsupported(f"its normalizer is {part.get('type')}; supported are NFC and NFKC")
            keys["tokenizer.unicode_form"] = part.get("type") or ""
        return keys

    def _pattern(self) -> str:
        """Returns GGUF's name of the patterns that split text into words."""
        kinds = [part.get("type") for part in self._splitters]
        bytes_of = self._splitters[kinds.index("ByteLevel")]
        if bytes_of.get("add_prefix_space"):
            raise self._unsupported("it adds a space before the text ('add_prefix_space')")
        digits = [part for part in self._splitters if part.get("type") == "Digits" and part.get("individual_digits")]
        if kinds == ["Split", "ByteLevel"] and not bytes_of.get("use_regex", True):
            split = self._splitters[0]
            pattern = str((split.get("pattern") or {}).get("Regex", ""))
            if pattern in _PATTERNS and split.get("behavior") == "Isolated" and not split.get("invert"):
                return _PATTERNS[pattern]
            raise self._unsupported(f"it splits text by the pattern {pattern}")
        if not bytes_of.get("use_regex", True) or len(kinds) != 1 + len(digits) or kinds[-1] != "ByteLevel":
            raise self._unsupported(f"it splits text by {', '.join(map(str, kinds))}")
        return "smollm" if digits else "gpt-2"

    def _sentences(self, tokens: list[str]) -> Keys:
        """Returns the keys of byte-pair encoding in which a mark stands for a space."""
        marks = False
        for part in (*self._normalizers, *self._splitters):
            pattern = (part.get("pattern") or {}).get("String")
            is_mark = part.get("type") == "Replace" and pattern == " " and part.get("content") == SPACE
            marks |= is_mark or part.get("type") == "Metaspace"
            is_idle = part.get("type") in (None, "Prepend") or (part.get("type") == "Split" and pattern == " ")
            if not is_mark and not is_idle and (part.get("type") != "Metaspace" or part.get("split", True)):
                raise self._unsupported(f"it changes or splits text by {part.get('type')}")
        if not marks:
            raise self._unsupported("it neither splits text to bytes nor marks spaces")
        keys: Keys = {"model": "llama", "scores": _scores(tokens, self._merges()), "add_bos_token": True}
        if (unknown := self._model.get("unk_token")) in tokens:
            keys["unknown_token_id"] = tokens.index(unknown)
        return {**{PREFIX + key: value for key, value in keys.items()}, **self._space_before()}

    def _space_before(self) -> Keys:
        """Returns where a space is added before text."""
        for part in (*self._normalizers, *self._splitters):
            if part.get("type") == "Prepend":
                return {PREFIX + "add_space_prefix": True, "tokenizer.space_before": "each"}
            if part.get("type") == "Metaspace":
                scheme = part.get("prepend_scheme", "always" if part.get("add_prefix_space", True) else "never")
                where = {"first": "first, unless there", "always": "each, unless there"}.get(scheme, "")
                return {PREFIX + "add_space_prefix": scheme != "never", "tokenizer.space_before": where}
        return {PREFIX + "add_space_prefix": False}

    def _first_token(self) -> Keys:
        """Returns the token that begins every text."""
        for part in _parts(self._json.get("post_processor")):
            if part.get("single"):
                first = part["single"][0].get("SpecialToken")
                ids = ((part.get("special_tokens") or {}).get((first or {}).get("id")) or {}).get("ids")
                found = {PREFIX + "bos_token_id": ids[0]} if ids else {}
                return {**found, PREFIX + "add_bos_token": first is not None}
        return {}

    def _spaces_of_tokens(self) -> Keys:
        """Returns the tokens that take the whitespace before or after them."""
        found: Keys = {}
        for side in ("lstrip", "rstrip"):
            tokens = [str(added["content"]) for added in self._json.get("added_tokens") or [] if added.get(side)]
            found |= {f"tokenizer.{side}": tokens} if tokens else {}
        return found


def _parts(entry: Any) -> Iterator[dict[str, Any]]:
    """Returns an entry, or those of a sequence."""
    entry = entry or {}
    lists = (entry.get(key) for key in ("pretokenizers", "normalizers", "processors"))
    yield from next((parts for parts in lists if parts), [entry])


def _scores(tokens: list[str], merges: list[str]) -> list[float]:
    """Returns scores with which the pair of the first merge is joined first."""
    ranks: dict[str, int] = {}
    for rank, merge in enumerate(merges):
        ranks.setdefault(merge.replace(" ", "", 1), rank)
    return [-float(ranks.get(token, len(merges))) for token in tokens]
