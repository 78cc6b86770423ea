# SPDX-License-Identifier: Apache-2.0
"""Byte-pair encoding of words, as in GPT-2 and its successors."""
from __future__ import annotations

import re
import sys
import unicodedata
from functools import lru_cache
from typing import Any, Iterator, Mapping

from ..errors import ExitCode, TesseraError
from .tokenizer_base import PREFIX, Tokenizer

_GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
_LLAMA3 = (
    r"(?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}DIGITS"
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
_SPLITS = {
    "gpt-2": [_GPT2],
    "smollm": [r"\p{N}", _GPT2],
    "llama-bpe": [_LLAMA3.replace("DIGITS", "{1,3}")],
    "qwen2": [_LLAMA3.replace("DIGITS", "")],
}
"""Patterns by tokenizer.ggml.pre. Each one splits what the patterns before it have left; text between matches is a
piece, too."""
_SPLITS["default"] = _SPLITS["gpt-2"]
_SPLITS["llama3"] = _SPLITS["llama-bpe"]
_WHOLE_WORDS_FIRST = {"llama-bpe", "llama3"}  # a word of the vocabulary is one token, whatever the merges say


@lru_cache(maxsize=None)
def _characters(category: str) -> str:
    """Returns the ranges of a regular expression's class that hold the characters of a Unicode category, L or N."""
    ranges: list[list[int]] = []
    for code in range(sys.maxunicode + 1):
        if unicodedata.category(chr(code))[0] == category:
            if ranges and ranges[-1][1] == code - 1:
                ranges[-1][1] = code
            else:
                ranges.append([code, code])
    return "".join(f"\\U{first:08x}-\\U{last:08x}" for first, last in ranges)


@lru_cache(maxsize=None)
def _pattern(text: str) -> re.Pattern[str]:
    """Compiles a pattern with the Unicode categories \\p{L} and \\p{N}, which Python's re does not have."""
    for category in "LN":
        inside = re.compile(rf"(\[[^\]]*)\\p\{{{category}\}}")
        while inside.search(text):
            text = inside.sub(lambda match: match[1] + _characters(category), text)
        text = text.replace(f"\\p{{{category}}}", f"[{_characters(category)}]")
    return re.compile(text)


def _byte_characters() -> dict[int, str]:
    """Returns the characters that stand for bytes in vocabularies like GPT-2's."""
    plain = [*range(ord("!"), ord("~") + 1), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in plain]
    return {**{byte: chr(byte) for byte in plain}, **{byte: chr(256 + i) for i, byte in enumerate(others)}}


class WordTokenizer(Tokenizer):
    """Splits text into words by a pattern, then joins pairs of their parts in the order of the merges."""

    def __init__(self, language: Mapping[str, Any]) -> None:
        super().__init__(language)
        split = str(language.get(PREFIX + "pre", "default"))
        if split not in _SPLITS:
            raise TesseraError(
                f"the tokenizer splits text as '{split}', which is not supported; supported are {', '.join(_SPLITS)}",
                ExitCode.UNSUPPORTED,
            )
        self._patterns = [_pattern(text) for text in _SPLITS[split]]
        self._whole_first = bool(language.get("tokenizer.whole_words_first", split in _WHOLE_WORDS_FIRST))
        self._form = str(language.get("tokenizer.unicode_form") or "")
        merges = language.get(PREFIX + "merges", [])
        self._ranks = {tuple(merge.split(" ", 1)): rank for rank, merge in enumerate(merges)}
        self._of_byte = _byte_characters()
        self._byte_of = {character: byte for byte, character in self._of_byte.items()}
        self._words: dict[str, list[int]] = {}

    def encode_part(self, text: str, is_first: bool) -> list[int]:
        text = unicodedata.normalize(self._form, text) if self._form else text  # type: ignore[arg-type]
        pieces = [text] if text else []
        for pattern in self._patterns:
            pieces = [part for piece in pieces for part in _split(pattern, piece)]
        found = []
        for piece in pieces:
            if piece not in self._words:
                self._words[piece] = self._encode_word(piece)
            found += self._words[piece]
        return found

    def _encode_word(self, word: str) -> list[int]:
        parts = [self._of_byte[byte] for byte in word.encode()]
        if self._whole_first and "".join(parts) in self.ids:
            return [self.ids["".join(parts)]]
        while len(parts) > 1:
            rank, i = min(
                (self._ranks.get((a, b), len(self._ranks)), i) for i, (a, b) in enumerate(zip(parts, parts[1:]))
            )
            if rank == len(self._ranks):
                break
            parts[i : i + 2] = ["".join(parts[i : i + 2])]
        missing = [part for part in parts if part not in self.ids]
        if missing:
            raise TesseraError(f"the tokenizer's vocabulary lacks '{missing[0]}', a part of '{word}'")
        return [self.ids[part] for part in parts]

    def bytes_of(self, token: int) -> bytes:
        if self.is_control(token):
            return b""
        text = self.tokens[token]
        if all(character in self._byte_of for character in text):
            return bytes(self._byte_of[character] for character in text)
        return text.encode()


def _split(pattern: re.Pattern[str], text: str) -> Iterator[str]:
    """Returns the matches in a text and the text between them."""
    position = 0
    for match in pattern.finditer(text):
        yield from filter(None, (text[position : match.start()], match[0]))
        position = match.end()
    if position < len(text):
        yield text[position:]
