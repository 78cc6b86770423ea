# SPDX-License-Identifier: Apache-2.0
"""Tokenizers that take a text as a whole, with its spaces, as SentencePiece does: byte-pair encoding (Llama 1 and 2,
Gemma) and unigrams (T5, Marian)."""
from __future__ import annotations

import heapq
import re
from array import array
from typing import Any, Iterator, Mapping, Sequence

from ..errors import TesseraError
from .normalizer import SPACE, Normalizer
from .tokenizer_base import BYTE, NORMAL, PREFIX, UNKNOWN, UNUSED, USER, Tokenizer


class PieceTokenizer(Tokenizer):
    """Text in pieces, in which a mark stands for a space. Characters that no piece has become tokens of their bytes, or
    one token for adjacent unknown characters."""

    def __init__(self, language: Mapping[str, Any], removes_spaces: bool) -> None:
        super().__init__(language)
        self._scores = list(language.get(PREFIX + "scores", []))
        if len(self._scores) != len(self.tokens):
            raise TesseraError(f"the tokenizer has {len(self.tokens)} tokens, but {len(self._scores)} scores")
        self._adds_space = bool(language.get(PREFIX + "add_space_prefix", True))
        where = language.get("tokenizer.space_before", "first")
        self._adds_to_each, self._doubles_space = where.startswith("each"), not where.endswith("unless there")
        unknown = self._special(language, "unknown_token_id")
        self._unknown = self._types.index(UNKNOWN) if unknown is None and UNKNOWN in self._types else unknown
        names = {f"<0x{byte:02X}>": byte for byte in range(256)}
        # Vocabularies without types of tokens have bytes under these names, too.
        found = {i: names[t] for i, t in enumerate(self.tokens) if t in names and self._types[i] in (NORMAL, BYTE)}
        self._bytes = found if len(found) == len(names) or BYTE in self._types else {}
        self._of_byte = {byte: token for token, byte in self._bytes.items()}
        symbols = sorted([re.escape(each) for each in self.symbols], key=len, reverse=True)
        self._normalizer = Normalizer(language, removes_spaces, "|".join(symbols))
        self._characters = re.compile("|".join([*symbols, "."]), re.DOTALL)

    def encode_part(self, text: str, is_first: bool) -> list[int]:
        found: list[int] = []
        is_unknown = False
        normalized = self._normalizer.normalize(text)
        if normalized and self._adds_space and (is_first or self._adds_to_each):
            normalized = SPACE + normalized if self._doubles_space else SPACE + normalized.removeprefix(SPACE)
        for piece, token in self.split(normalized):
            was_unknown, is_unknown = is_unknown, token is None
            if token is not None:
                found.append(token)
            elif self._of_byte:
                values = [self._of_byte.get(byte, self._unknown) for byte in piece.encode()]
                found += [value for value in values if value is not None]
            elif self._unknown is None:
                raise TesseraError(f"the tokenizer's vocabulary lacks '{piece}', and has no bytes")
            elif not was_unknown:
                found.append(self._unknown)
        return found

    def split(self, text: str) -> Iterator[tuple[str, int | None]]:
        """Returns the pieces of a normalised text with their tokens, None for characters that no token has."""
        raise NotImplementedError

    def bytes_of(self, token: int) -> bytes:
        if token in self._bytes:
            return bytes([self._bytes[token]])
        return b"" if self.is_control(token) else self.tokens[token].replace(SPACE, " ").encode()

    def decode(self, tokens: Sequence[int]) -> str:
        text = super().decode(tokens)
        if self._normalizer.removes_spaces:
            return text.lstrip(" ")
        return text[1:] if self._adds_space and text.startswith(" ") else text


class SentenceTokenizer(PieceTokenizer):
    """Joins the pair of adjacent parts whose token has the highest score, until no pair is a token."""

    def __init__(self, language: Mapping[str, Any]) -> None:
        super().__init__(language, removes_spaces=False)
        kinds = (NORMAL, USER, UNUSED)
        self._joined = {token: i for token, i in self.ids.items() if self._types[i] in kinds and i not in self._bytes}

    def adds_bos_by_default(self) -> bool:
        return True

    def split(self, text: str) -> Iterator[tuple[str, int | None]]:
        parts: list[str] = self._characters.findall(text)
        after = list(range(1, len(parts) + 1))
        before = list(range(-1, len(parts) - 1))
        heap: list[tuple[float, int, str]] = []
        halves: dict[str, tuple[str, str]] = {}  # of pieces that must not be tokens themselves

        def propose(i: int) -> None:
            if i < 0 or after[i] == len(parts) or parts[i] in self.symbols or parts[after[i]] in self.symbols:
                return
            joined = parts[i] + parts[after[i]]
            if (token := self._joined.get(joined)) is not None:
                heapq.heappush(heap, (-self._scores[token], i, joined))
                if self._types[token] == UNUSED:
                    halves[joined] = parts[i], parts[after[i]]

        for i in range(len(parts)):
            propose(i)
        while heap:
            _, i, joined = heapq.heappop(heap)
            if not parts[i] or after[i] == len(parts) or parts[i] + parts[after[i]] != joined:
                continue  # one of the two has been joined with another part
            parts[after[i]], parts[i] = "", joined
            after[i] = after[after[i]]
            if after[i] < len(parts):
                before[after[i]] = i
            propose(before[i])
            propose(i)
        rest = [part for part in reversed(parts) if part]
        while rest:
            part = rest.pop()
            if part in halves:
                rest += reversed(halves[part])
            else:
                yield part, self._joined.get(part)


class UnigramTokenizer(PieceTokenizer):
    """Splits text into the pieces with the highest sum of scores, and ends it with the token for the end."""

    _PENALTY = 10.0
    """A character without a piece scores this much less than the piece with the lowest score, as in SentencePiece."""

    def __init__(self, language: Mapping[str, Any]) -> None:
        super().__init__({"tokenizer.space_before": "each", **language}, removes_spaces=True)
        if self._unknown is None:
            raise TesseraError("the tokenizer has no token for unknown characters")
        self._adds_eos = bool(language.get(PREFIX + "add_eos_token", True))
        # Marian numbers its pieces by another file, which may lack some of them.
        own = language.get("tokenizer.marian.pieces")
        pieces: list[tuple[str, float, int]] = list(own or zip(self.tokens, self._scores, self._types))
        scores = [score for _, score, kind in pieces if kind == NORMAL] or [0.0]
        # Rounding decides between equal sums.
        self._precision = "d" if language.get("tokenizer.has_exact_sums") else "f"
        self._lowest = array(self._precision, [min(scores) - self._PENALTY])[0]
        self._pieces: dict[str, tuple[float, int | None]] = {
            piece: (
                score if kind == NORMAL else len(piece.encode()) * max(scores) - 0.1,
                self.ids.get(piece, self._unknown),
            )
            for piece, score, kind in pieces
            if piece and (kind == NORMAL or piece in self.symbols)
        }
        self._longest = max(map(len, self._pieces), default=0)

    def encode(self, text: str, special: bool = True) -> list[int]:
        return super().encode(text, special) + ([self.eos] if self._adds_eos and self.eos is not None else [])

    def split(self, text: str) -> Iterator[tuple[str, int | None]]:
        # By position: the best score of the text before it, and the start of its last piece.
        best, starts = array(self._precision, [0.0] * (len(text) + 1)), [-1] * (len(text) + 1)
        rounded = array(self._precision, [0.0])
        for start in range(len(text)):
            has_single = False
            for end in range(start + 1, min(len(text), start + self._longest) + 1):
                piece = self._pieces.get(text[start:end])
                if piece is not None:
                    has_single |= end == start + 1
                    rounded[0] = piece[0] + best[start]
                    if starts[end] < 0 or rounded[0] > best[end]:
                        best[end], starts[end] = rounded[0], start
            if not has_single:
                rounded[0] = self._lowest + best[start]
                if starts[start + 1] < 0 or rounded[0] > best[start + 1]:
                    best[start + 1], starts[start + 1] = rounded[0], start
        ends = [len(text)] if text else [0]
        while ends[-1]:
            ends.append(starts[ends[-1]])
        for start, end in zip(ends[:0:-1], ends[-2::-1]):
            piece = self._pieces.get(text[start:end])
            yield text[start:end], None if piece is None else piece[1]
