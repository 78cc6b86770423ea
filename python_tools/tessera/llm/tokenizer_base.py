# SPDX-License-Identifier: Apache-2.0
"""The text of tokens and the special ones among them, for all kinds of tokenizers."""
from __future__ import annotations

import codecs
import re
from typing import Any, Iterator, Mapping, Sequence

from ..errors import TesseraError

NORMAL, UNKNOWN, CONTROL, USER, UNUSED, BYTE = range(1, 7)
"""Values of tokenizer.ggml.token_type, which are those of SentencePiece."""
PREFIX = "tokenizer.ggml."


def token_text(entry: Any) -> str:
    """Returns the text of a token in a configuration file."""
    return str(entry.get("content") if isinstance(entry, dict) else entry)


class Tokenizer:
    """Text to tokens and back. Subclasses encode a part without special tokens."""

    def __init__(self, language: Mapping[str, Any]) -> None:
        get = language.get
        self.tokens: list[str] = list(get(PREFIX + "tokens", []))
        self.ids = {token: i for i, token in enumerate(self.tokens)}
        self._types: list[int] = list(get(PREFIX + "token_type") or [NORMAL] * len(self.tokens))
        if len(self._types) != len(self.tokens):
            raise TesseraError(f"the tokenizer has {len(self.tokens)} tokens, but {len(self._types)} types of tokens")
        self.bos = self._special(language, "bos_token_id")
        self.eos = self._special(language, "eos_token_id")
        self._adds_bos = bool(get(PREFIX + "add_bos_token", self.adds_bos_by_default()))
        # The pieces of a SentencePiece model come first; the model itself splits text at those that its user defined.
        count = int(get("tokenizer.sentencepiece.pieces", 0))
        self.symbols = {t for t, kind in zip(self.tokens[:count], self._types) if kind == USER and t}
        self._special_parts, self._user_parts = self._whole(language, CONTROL, USER), self._whole(language, USER)
        ends = [self.eos, self._special(language, "eot_token_id"), self._special(language, "eom_token_id")]
        ends += [self.ids.get(t) for t in ("<|im_end|>", "<|eot_id|>", "<|end|>", "<end_of_turn>", "<|endoftext|>")]
        self.ends = {token for token in ends if token is not None}
        """Tokens that end an answer."""

    def _special(self, language: Mapping[str, Any], key: str) -> int | None:
        number = language.get(PREFIX + key)
        return int(number) if isinstance(number, int) and 0 <= number < len(self.tokens) else None

    def _whole(self, language: Mapping[str, Any], *kinds: int) -> re.Pattern[str]:
        """Returns a pattern that finds the tokens of some kinds in a text, each as a group."""
        before, after = ({*language.get(f"tokenizer.{side}", ())} for side in ("lstrip", "rstrip"))
        space = lambda token, tokens: r"\s*" if token in tokens else ""
        whole = [t for t, k in zip(self.tokens, self._types) if k in kinds and t and t not in self.symbols]
        patterns = [
            f"{space(t, before)}({re.escape(t)}){space(t, after)}" for t in sorted(whole, key=len, reverse=True)
        ]
        return re.compile("|".join(patterns) or r"(?!)")

    def adds_bos_by_default(self) -> bool:
        return False

    @property
    def first(self) -> int | None:
        """The token that encode() puts before a text, if any."""
        return self.bos if self._adds_bos else None

    def encode(self, text: str, special: bool = True) -> list[int]:
        """Returns the tokens of a text. special: control tokens such as <|im_start|> count as such, else as plain
        text."""
        found = [] if self.first is None else [self.first]
        position = 0
        for match in (self._special_parts if special else self._user_parts).finditer(text):
            found += self.encode_part(text[position : match.start()], position == 0)
            found.append(self.ids[match[match.lastindex or 0]])
            position = match.end()
        found += self.encode_part(text[position:], position == 0)
        # A template writes the token for the beginning itself.
        return found[1:] if self.first is not None and found[:2] == [self.first] * 2 else found

    def encode_part(self, text: str, is_first: bool) -> list[int]:
        raise NotImplementedError

    def bytes_of(self, token: int) -> bytes:
        """Returns the bytes of text that a token stands for; none for control tokens."""
        raise NotImplementedError

    def is_control(self, token: int) -> bool:
        return self._types[token] in (CONTROL, UNUSED)

    def decode(self, tokens: Sequence[int]) -> str:
        return "".join(self.stream(iter(tokens)))

    def stream(self, tokens: Iterator[int]) -> Iterator[str]:
        """Returns the text of each token; characters of several tokens come with their last one."""
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        for token in tokens:
            # Networks often have logits for more tokens than their tokenizer, as padding.
            yield decoder.decode(self.bytes_of(token) if token < len(self.tokens) else b"")
        yield decoder.decode(b"", final=True)
