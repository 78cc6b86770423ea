# SPDX-License-Identifier: Apache-2.0
"""Greedy continuation with a language model of fixed sequence length."""
from __future__ import annotations

from typing import Callable, Sequence

import numpy as np


def greedy(run: Callable[[np.ndarray], np.ndarray], length: int, prompt: Sequence[int], count: int) -> list[int]:
    """`count` token ids in all, starting with `prompt`.

    `run` maps ids int64 [1,length] to logits [1,length,vocabulary]. The network is causal: the ids
    behind the last one known do not matter, zeros stand there.
    """
    ids = np.zeros((1, length), np.int64)
    known = list(prompt)
    while len(known) < min(count, length):
        ids[0, :len(known)] = known
        known.append(int(np.argmax(run(ids)[0, len(known) - 1])))
    return known
