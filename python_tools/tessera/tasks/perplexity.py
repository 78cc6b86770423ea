# SPDX-License-Identifier: Apache-2.0
"""Perplexity of a text for language models with caches, as llama.cpp's llama-perplexity defines it.

The text's tokens are split into windows that do not overlap; a rest is left out. Each window is read with empty caches.
If the tokenizer adds a token for the beginning, it replaces the first token of each window. The tokens of the second
half are scored, so that each of them has at least half a window before it.
"""
from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Sequence

import numpy as np

from ..errors import TesseraError
from ..files import require_file
from ..llm.model import LanguageModel
from ..llm.tokenizer_base import Tokenizer

NAME = "perplexity"
WINDOW = 512
"""Default number of tokens in a window, as in llama.cpp."""
SMALLEST = 4


@dataclass(frozen=True)
class Windows:
    """The windows of a text, of equal size."""

    tokens: list[list[int]]

    @property
    def size(self) -> int:
        return len(self.tokens[0])

    @property
    def first(self) -> int:
        """The number of the first scored token in each window."""
        return self.size // 2 + 1

    @property
    def count(self) -> int:
        """Number of tokens in all windows."""
        return self.size * len(self.tokens)

    def part(self, begin: int, end: int) -> "Windows":
        return Windows(self.tokens[begin:end])


def read_text(path: Path) -> str:
    """Returns the text of a file. Raises TesseraError if it is empty or not UTF-8."""
    try:
        text = require_file(path, "text").read_bytes().decode()
    except UnicodeDecodeError as error:
        raise TesseraError(f"{path}: byte {error.start} is not UTF-8", hint="convert the text to UTF-8") from error
    if not text.strip():
        raise TesseraError(f"{path} does not contain text")
    return text


def split(path: Path, tokens: Sequence[int], tokenizer: Tokenizer, size: int) -> Windows:
    """Splits the tokens of the file `path` into windows of `size` tokens."""
    count = len(tokens) // size
    if not count:
        raise TesseraError(
            f"{path} has {len(tokens)} tokens, fewer than a window of {size}",
            hint="use a longer text, or smaller windows: --context",
        )
    windows = [list(tokens[i * size : (i + 1) * size]) for i in range(count)]
    if tokenizer.first is not None:
        for window in windows:
            window[0] = tokenizer.first
    return Windows(windows)


def score_windows(model: LanguageModel, windows: Windows) -> dict[str, float]:
    """Returns {'tokens', 'nll', 'ppl', 'ppl_error'}: the number of scored tokens, the mean of their negative
    log-likelihoods in nats, the perplexity, and its standard error."""
    found = []
    for window in windows.tokens:
        model.reset()
        found.append(model.log_likelihoods(window, windows.first))
    logs = np.concatenate(found)
    nll = -float(logs.mean())
    perplexity = float(np.exp(nll))
    error = perplexity * float(logs.std()) / max(logs.size - 1, 1) ** 0.5
    return {"tokens": logs.size, "nll": nll, "ppl": perplexity, "ppl_error": error}


def score(model: LanguageModel, data: Path, context: int | None = None) -> dict[str, float]:
    """Returns the figures of score_windows for the text in the file `data`. context: tokens of a window."""
    size = min(WINDOW, model.context) if context is None else context
    if not SMALLEST <= size <= model.context:
        raise TesseraError(
            f"windows of {size} tokens are not supported; allowed: {SMALLEST} to the model's context, {model.context}",
            hint="choose another --context, or compile the model with a larger one",
        )
    tokens = model.tokenizer.encode(read_text(data), special=False)
    return score_windows(model, split(data, tokens, model.tokenizer, size))
