# SPDX-License-Identifier: Apache-2.0
"""Guesses of the tokens that follow, which the model checks several at a time."""
from __future__ import annotations

from typing import Protocol, Sequence

from ..errors import TesseraError
from .caches import Caches


class Drafter(Protocol):
    """Guesses tokens. A wrong guess costs time and never changes the text."""

    def draft(self, tokens: Sequence[int], count: int) -> list[int]:
        """Returns up to `count` tokens that may follow `tokens`."""


class PromptLookup:
    """Guesses that the text repeats: finds the last place where the newest tokens occurred before, and returns what
    followed there."""

    def __init__(self, longest: int = 3) -> None:
        self._longest = longest

    def draft(self, tokens: Sequence[int], count: int) -> list[int]:
        tokens = list(tokens)
        for size in range(min(self._longest, len(tokens) - 1), 0, -1):
            newest = tokens[-size:]
            for at in range(len(tokens) - size - 1, -1, -1):
                if tokens[at : at + size] == newest:
                    return tokens[at + size : at + size + count]
        return []


class DraftModel:
    """Lets a smaller model with the same tokens guess."""

    def __init__(self, caches: Caches) -> None:
        self._caches = caches

    def check_vocabulary(self, model: Caches) -> None:
        """Raises TesseraError unless both models have the same tokens."""
        names = ("tokenizer.ggml.tokens", "tokenizer.ggml.model")
        same = all(self._caches.language.get(name) == model.language.get(name) for name in names)
        if not same or self._caches.vocabulary != model.vocabulary:
            raise TesseraError(
                f"the draft model has a tokenizer of another vocabulary ({self._caches.vocabulary} tokens, and the "
                f"model {model.vocabulary})",
                hint="take a draft model of the same family",
            )

    def draft(self, tokens: Sequence[int], count: int) -> list[int]:
        caches = self._caches
        caches.cut(0, caches.common(0, tokens[:-1]))
        made: list[int] = []
        rest = list(tokens[len(caches.tokens[0]) :])
        count = min(count, caches.context - len(tokens) + 1)
        while len(made) < count:
            for begin in range(0, len(rest), caches.chunk):
                logits = caches.run({0: rest[begin : begin + caches.chunk]})[0]
            made.append(int(logits[-1].argmax()))
            rest = made[-1:]
        return made
