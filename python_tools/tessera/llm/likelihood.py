# SPDX-License-Identifier: Apache-2.0
"""Log-likelihoods of given tokens, from which perplexities and multiple-choice scores are computed."""
from __future__ import annotations

from typing import Iterator, Sequence

import numpy as np

from ..errors import TesseraError
from .caches import Caches


def log_likelihoods(caches: Caches, tokens: Sequence[int], first: int) -> np.ndarray:
    """Returns the natural logarithms of the probabilities of tokens[first:], each given all tokens before it. Tokens at
    the beginning that the first slot holds are not computed again."""
    if not 1 <= first < len(tokens):
        raise TesseraError(f"the likelihood of token {first} of {len(tokens)} is undefined; allowed: 1 to the last one")
    caches.check(tokens[:-1])
    caches.cut(0, min(caches.common(0, tokens[:-1]), first - 1))
    found = []
    for begin, end in _runs(caches, first, len(tokens) - 1):
        wanted = end - max(begin, first - 1)
        logits = caches.run({0: list(tokens[begin:end])}, max(wanted, 1))[0]
        if wanted > 0:
            found.append(log_probabilities(logits, tokens[end - wanted + 1 : end + 1]))
    return np.concatenate(found)


def _runs(caches: Caches, first: int, last: int) -> Iterator[tuple[int, int]]:
    """Yields the first and the last token of each run up to `last`. A model that returns the logits of one token in a
    run gets the tokens before number `first` in large runs, and the others one by one."""
    begin = len(caches.tokens[0])
    while begin < last:
        if caches.returns_several:
            end = min(begin + caches.chunk, last)
        else:
            end = min(begin + caches.chunk, first) if begin < first else begin + 1
        yield begin, end
        begin = end


def log_probabilities(logits: np.ndarray, tokens: Sequence[int]) -> np.ndarray:
    """Returns the logarithm of the probability that row i of `logits` [n, vocabulary] gives to tokens[i]."""
    shifted = logits - logits.max(axis=1, keepdims=True)
    wanted = shifted[np.arange(len(tokens)), np.asarray(tokens)].astype(np.float64)
    np.exp(shifted, out=shifted)
    return wanted - np.log(shifted.sum(axis=1, dtype=np.float64))
