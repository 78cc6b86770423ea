# SPDX-License-Identifier: Apache-2.0
"""Normalisation of text before it is split into tokens, as SentencePiece does it."""
from __future__ import annotations

import base64
import binascii
import re
from array import array
from typing import Any, Mapping

from ..errors import TesseraError

SPACE = "\u2581"  # stands for a space in tokens
_PREFIX = "tokenizer.ggml."


class CharacterMap:
    """Replacements of characters, e.g. NFKC: a trie (a double array, as darts-clone writes it) and the texts that it
    refers to. An empty map replaces nothing."""

    def __init__(self, data: bytes) -> None:
        size = int.from_bytes(data[:4], "little")
        if data and (size % 4 or not 0 < size <= len(data) - 4):
            raise TesseraError(
                f"the tokenizer's character map is damaged: its trie would take {size} of {len(data)} bytes"
            )
        self._units, self._texts = array("I", data[4 : 4 + size]), data[4 + size :]

    def find(self, text: bytes, at: int) -> tuple[bytes, int]:
        """Returns the replacement of the longest known text at a place, and the bytes that it replaces; those of the
        next character, unchanged, if none is known."""
        first = text[at]
        found, length = None, 1 if first < 0xC0 else 2 if first < 0xE0 else 3 if first < 0xF0 else 4
        units = self._units
        node = self._offset(units[0]) if units else 0
        for i in range(at, len(text) if units else at):
            node ^= text[i]
            if node >= len(units) or units[node] & 0x800000FF != text[i]:
                break
            has_value = units[node] >> 8 & 1
            node ^= self._offset(units[node])
            if has_value and node < len(units):
                found, length = units[node] & 0x7FFFFFFF, i + 1 - at
        if found is None:
            return text[at : at + length], length
        return self._texts[found : self._texts.find(b"\0", found)], length

    @staticmethod
    def _offset(unit: int) -> int:
        return unit >> 10 << ((unit & 512) >> 6)


class Normalizer:
    """Replaces characters, removes superfluous spaces, and marks the others."""

    def __init__(self, language: Mapping[str, Any], removes_spaces: bool, symbols: str = "") -> None:
        """removes_spaces: unless the model says. symbols: a pattern of texts that stay as they are."""
        self._map = CharacterMap(_bytes_of(language.get(_PREFIX + "precompiled_charsmap", "")))
        self.removes_spaces = bool(language.get(_PREFIX + "remove_extra_whitespaces", removes_spaces))
        self._splits = bool(language.get("tokenizer.split_at_whitespace"))
        self._strips = str(language.get("tokenizer.strips", ""))
        self._symbols = re.compile(symbols.encode() or rb"(?!)")

    def normalize(self, text: str) -> str:
        """Returns the text with a mark for each space."""
        text = text.lstrip() if "l" in self._strips else text
        text = text.rstrip() if "r" in self._strips else text
        data, at, made = text.encode(errors="replace"), 0, bytearray()
        while at < len(data):
            symbol = self._symbols.match(data, at)
            replaced, length = (symbol[0], len(symbol[0])) if symbol else self._map.find(data, at)
            at += length
            if self.removes_spaces:
                replaced = replaced.lstrip(b" ") if not made or made.endswith(b" ") else replaced
            made += replaced
        if self.removes_spaces:
            while made.endswith((b" ", SPACE.encode())):
                del made[-1 if made.endswith(b" ") else -3 :]
        found = made.decode(errors="replace")
        return (" ".join(found.split()) if self._splits else found).replace(" ", SPACE)


def _bytes_of(value: Any) -> bytes:
    """Returns the bytes of a value in base64, or of a list of bytes."""
    try:
        return base64.b64decode(value) if isinstance(value, str) else bytes(int(byte) & 255 for byte in value)
    except (TypeError, ValueError, binascii.Error) as error:
        raise TesseraError(f"the tokenizer's character map is damaged: {error}") from error
