# SPDX-License-Identifier: Apache-2.0
"""Texts that follow a grammar."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from ..errors import ExitCode, TesseraError

if TYPE_CHECKING:
    from .tokenizer_base import Tokenizer

FORMATS = ("json_schema", "gbnf", "regex")


class Constraint(Protocol):
    """The tokens that may follow."""

    is_done: bool  # the text is complete, and nothing may follow

    def mask(self, logits: np.ndarray) -> np.ndarray:
        """Returns the logits with -inf for tokens that must not follow."""

    def accept(self, token: int) -> None:
        """Appends a token to the text."""


class Grammar:
    """A grammar as llguidance understands it."""

    def __init__(self, tokenizer: Tokenizer, form: str, text: str, vocabulary: int) -> None:
        try:
            import llguidance  # type: ignore[import]
            from llguidance import numpy as masks
        except ImportError as error:
            raise TesseraError(
                "grammars need llguidance, which is not installed", ExitCode.ERROR, hint="pip install llguidance"
            ) from error
        if not tokenizer.ends:
            raise TesseraError("the model has no token that ends a text, which a grammar needs")
        self._fill = masks.fill_next_token_bitmask
        self._apply = masks.apply_token_bitmask_inplace
        self._bits = masks.allocate_token_bitmask(1, vocabulary)
        self.is_done = False
        try:
            self._matcher: Any = llguidance.LLMatcher(
                llguidance.LLTokenizer(llguidance.TokenizerWrapper(_Vocabulary(tokenizer, vocabulary))),
                llguidance.grammar_from(form, text),
            )
        except ValueError as error:
            raise TesseraError(f"the grammar is wrong: {error}") from error
        self._check("the grammar is wrong")

    def _check(self, what: str) -> None:
        if self._matcher.is_error():
            raise TesseraError(f"{what}: {self._matcher.get_error()}")

    def mask(self, logits: np.ndarray) -> np.ndarray:
        masked = np.array(logits[None])
        self._fill(self._matcher, self._bits)
        self._check("the grammar cannot be followed")
        self._apply(masked, self._bits)
        return masked[0]

    def accept(self, token: int) -> None:
        self._matcher.consume_token(token)
        self._check("the grammar cannot be followed")
        self.is_done = bool(self._matcher.is_stopped())


class _Vocabulary:
    """A tokenizer in the form that llguidance asks for."""

    def __init__(self, tokenizer: Tokenizer, vocabulary: int) -> None:
        self._tokenizer = tokenizer
        self.eos_token_id = min(tokenizer.ends)
        self.bos_token_id = tokenizer.bos
        known = len(tokenizer.tokens)
        unused = range(known, vocabulary)
        self.tokens = [tokenizer.bytes_of(token) for token in range(known)] + [b""] * len(unused)
        self.special_token_ids = [token for token in range(known) if tokenizer.is_control(token)] + list(unused)

    def __call__(self, text: str) -> list[int]:
        return self._tokenizer.encode_part(text, is_first=False)
