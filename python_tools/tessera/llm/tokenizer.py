# SPDX-License-Identifier: Apache-2.0
"""Tokenizers of language models, from the vocabulary that the .bmodel holds under GGUF's keys."""
from __future__ import annotations

from typing import Any, Mapping

from ..errors import ExitCode, TesseraError
from .sentence_tokenizer import SentenceTokenizer, UnigramTokenizer
from .tokenizer_base import PREFIX, Tokenizer
from .word_tokenizer import WordTokenizer


def make_tokenizer(language: Mapping[str, Any], vocabulary: int) -> Tokenizer:
    """Returns the tokenizer of a model with logits for `vocabulary` tokens. Raises TesseraError if the model has none,
    one of an unknown kind, or one of another vocabulary."""
    kinds = {"gpt2": WordTokenizer, "llama": SentenceTokenizer, "t5": UnigramTokenizer}
    kind = language.get(PREFIX + "model")
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
