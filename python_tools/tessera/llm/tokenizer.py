# SPDX-License-Identifier: Apache-2.0
"""Tokenizers of language models: byte-pair encoding of words (GPT-2 and its successors) and of sentences (Llama 1 and
2, Gemma), and unigrams (T5), from the vocabulary that the .bmodel holds under GGUF's keys."""
from __future__ import annotations

import codecs
import heapq
import re
import sys
import unicodedata
from functools import lru_cache
from typing import Any, Iterator, Mapping, Sequence

from ..errors import ExitCode, TesseraError

_NORMAL, _UNKNOWN, _CONTROL, _USER, _UNUSED, _BYTE = range(1, 7)  # tokenizer.ggml.token_type
_PREFIX = "tokenizer.ggml."
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


class Tokenizer:
    """Text to tokens and back. Subclasses encode a part without special tokens."""

    def __init__(self, language: Mapping[str, Any]) -> None:
        get = language.get
        self.tokens: list[str] = list(get(_PREFIX + "tokens", []))
        self.ids = {token: i for i, token in enumerate(self.tokens)}
        self._types: list[int] = list(get(_PREFIX + "token_type") or [_NORMAL] * len(self.tokens))
        if len(self._types) != len(self.tokens):
            raise TesseraError(f"the tokenizer has {len(self.tokens)} tokens, but {len(self._types)} types of tokens")
        self.bos = self._special(language, "bos_token_id")
        self.eos = self._special(language, "eos_token_id")
        self._adds_bos = bool(get(_PREFIX + "add_bos_token", self.adds_bos_by_default()))
        self._special_parts, self._user_parts = self._whole(_CONTROL, _USER), self._whole(_USER)
        ends = [self.eos, self._special(language, "eot_token_id"), self._special(language, "eom_token_id")]
        ends += [self.ids.get(t) for t in ("<|im_end|>", "<|eot_id|>", "<|end|>", "<end_of_turn>", "<|endoftext|>")]
        self.ends = {token for token in ends if token is not None}
        """Tokens that end an answer."""

    def _special(self, language: Mapping[str, Any], key: str) -> int | None:
        number = language.get(_PREFIX + key)
        return int(number) if isinstance(number, int) and 0 <= number < len(self.tokens) else None

    def _whole(self, *kinds: int) -> re.Pattern[str]:
        """Returns a pattern that finds the tokens of some kinds in a text."""
        whole = [t for t, kind in zip(self.tokens, self._types) if kind in kinds and t]
        return re.compile("|".join(map(re.escape, sorted(whole, key=len, reverse=True))) or r"(?!)")

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
            found.append(self.ids[match[0]])
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
        return self._types[token] in (_CONTROL, _UNUSED)

    def decode(self, tokens: Sequence[int]) -> str:
        return "".join(self.stream(iter(tokens)))

    def stream(self, tokens: Iterator[int]) -> Iterator[str]:
        """Returns the text of each token; characters of several tokens come with their last one."""
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        for token in tokens:
            yield decoder.decode(self.bytes_of(token))
        yield decoder.decode(b"", final=True)


class WordTokenizer(Tokenizer):
    """Splits text into words by a pattern, then joins pairs of their parts in the order of the merges."""

    def __init__(self, language: Mapping[str, Any]) -> None:
        super().__init__(language)
        split = str(language.get(_PREFIX + "pre", "default"))
        if split not in _SPLITS:
            raise TesseraError(
                f"the tokenizer splits text as '{split}', which is not supported; supported are {', '.join(_SPLITS)}",
                ExitCode.UNSUPPORTED,
            )
        self._patterns = [_pattern(text) for text in _SPLITS[split]]
        self._whole_first = split in _WHOLE_WORDS_FIRST
        merges = language.get(_PREFIX + "merges", [])
        self._ranks = {tuple(merge.split(" ", 1)): rank for rank, merge in enumerate(merges)}
        self._of_byte = _byte_characters()
        self._byte_of = {character: byte for byte, character in self._of_byte.items()}
        self._words: dict[str, list[int]] = {}

    def encode_part(self, text: str, is_first: bool) -> list[int]:
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


class SentenceTokenizer(Tokenizer):
    """Joins the pair of adjacent parts whose token has the highest score, until no pair is a token."""

    _SPACE = "\u2581"

    def __init__(self, language: Mapping[str, Any]) -> None:
        super().__init__(language)
        self._scores = list(language.get(_PREFIX + "scores", []))
        if len(self._scores) != len(self.tokens):
            raise TesseraError(f"the tokenizer has {len(self.tokens)} tokens, but {len(self._scores)} scores")
        self._adds_space = bool(language.get(_PREFIX + "add_space_prefix", True))
        self._unknown = self._special(language, "unknown_token_id")
        self._bytes = {self.ids[t]: i for i in range(256) if (t := f"<0x{i:02X}>") in self.ids}
        self._of_byte = {byte: token for token, byte in self._bytes.items()}

    def adds_bos_by_default(self) -> bool:
        return True

    def encode_part(self, text: str, is_first: bool) -> list[int]:
        if not text:
            return []
        text = (" " if self._adds_space and is_first else "") + text
        parts: list[str] = list(text.replace(" ", self._SPACE))
        after = list(range(1, len(parts) + 1))
        before = list(range(-1, len(parts) - 1))
        heap: list[tuple[float, int, str]] = []

        def propose(i: int) -> None:
            if i >= 0 and after[i] < len(parts):
                joined = parts[i] + parts[after[i]]
                if (token := self.ids.get(joined)) is not None:
                    heapq.heappush(heap, (-self._scores[token], i, joined))

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
        return [token for part in parts if part for token in self._tokens_of(part)]

    def _tokens_of(self, part: str) -> list[int]:
        if part in self.ids:
            return [self.ids[part]]
        values = [self._of_byte.get(byte, self._unknown) for byte in part.encode()]
        known = [value for value in values if value is not None]
        if not known:
            raise TesseraError(f"the tokenizer's vocabulary lacks '{part}', and has no bytes")
        return known

    def bytes_of(self, token: int) -> bytes:
        if token in self._bytes:
            return bytes([self._bytes[token]])
        return b"" if self.is_control(token) else self.tokens[token].replace(self._SPACE, " ").encode()

    def decode(self, tokens: Sequence[int]) -> str:
        text = super().decode(tokens)
        return text[1:] if self._adds_space and text.startswith(" ") else text


class UnigramTokenizer(Tokenizer):
    """Splits text into the tokens with the highest sum of scores (T5), and ends it with the token for the end."""

    _SPACE = "\u2581"
    _PENALTY = 10.0
    """A character without a token scores this much less than the token with the lowest score, as in SentencePiece."""

    def __init__(self, language: Mapping[str, Any]) -> None:
        super().__init__(language)
        self._scores = list(language.get(_PREFIX + "scores", []))
        self._unknown = self._special(language, "unknown_token_id")
        if len(self._scores) != len(self.tokens) or self._unknown is None:
            raise TesseraError(
                f"the tokenizer has {len(self.tokens)} tokens, {len(self._scores)} scores and "
                f"{'no' if self._unknown is None else 'a'} token for unknown characters"
            )
        self._longest = max(map(len, self.tokens))
        self._lowest = min(self._scores) - self._PENALTY

    def encode(self, text: str, special: bool = True) -> list[int]:
        return super().encode(text, special) + ([] if self.eos is None else [self.eos])

    def encode_part(self, text: str, is_first: bool) -> list[int]:
        words = unicodedata.normalize("NFKC", text).split()
        return [token for word in words for token in self._encode_word(self._SPACE + word)]

    def _encode_word(self, word: str) -> list[int]:
        # Each prefix has an entry: the best score, and the start and the number of its last token.
        best: list[tuple[float, int, int]] = [(0.0, 0, -1)]
        for end in range(1, len(word) + 1):
            found = [(best[end - 1][0] + self._lowest, end - 1, -1)]
            for start in range(max(0, end - self._longest), end):
                token = self.ids.get(word[start:end])
                if token is not None and self._types[token] == _NORMAL:
                    found.append((best[start][0] + self._scores[token], start, token))
            best.append(max(found, key=lambda entry: entry[0]))
        tokens: list[int] = []
        end = len(word)
        while end:
            _, start, token = best[end]
            if token >= 0 or not tokens or tokens[-1] != self._unknown:  # one token for adjacent unknown characters
                tokens.append(self._unknown if token < 0 else token)  # type: ignore[arg-type]
            end = start
        return tokens[::-1]

    def bytes_of(self, token: int) -> bytes:
        return b"" if self.is_control(token) else self.tokens[token].replace(self._SPACE, " ").encode()

    def decode(self, tokens: Sequence[int]) -> str:
        return super().decode(tokens).removeprefix(" ")


def make_tokenizer(language: Mapping[str, Any], vocabulary: int) -> Tokenizer:
    """Returns the tokenizer of a model with logits for `vocabulary` tokens. Raises TesseraError if the model has none,
    one of an unknown kind, or one of another vocabulary."""
    kinds = {"gpt2": WordTokenizer, "llama": SentenceTokenizer, "t5": UnigramTokenizer}
    kind = language.get(_PREFIX + "model")
    if kind not in kinds:
        raise TesseraError(
            "the model has no tokenizer" if kind is None else f"the model's tokenizer is of the unknown kind '{kind}'",
            ExitCode.UNSUPPORTED,
            hint=f"supported are {', '.join(kinds)}; from Python, pass token numbers instead of text",
        )
    tokenizer = kinds[kind](language)
    if not 0 < len(tokenizer.tokens) <= vocabulary:
        raise TesseraError(
            f"the tokenizer has {len(tokenizer.tokens)} tokens, but the model has logits for {vocabulary}: it belongs "
            "to another model"
        )
    return tokenizer
