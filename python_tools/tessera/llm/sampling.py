# SPDX-License-Identifier: Apache-2.0
"""Choice of the next token from logits."""
from __future__ import annotations

from dataclasses import dataclass
from typing import Sequence

import numpy as np

from ..errors import usage_error
from .constraint import Constraint


@dataclass(frozen=True)
class Sampling:
    """How the next token is chosen. The steps are applied in this order, as in transformers: the penalty of tokens that
    occurred before, the temperature (0: the most likely token), the `top_k` most likely tokens (0: all), the most
    likely tokens whose probabilities sum to `top_p`, and those that are at least `min_p` times as likely as the most
    likely one."""

    temperature: float = 0.0
    top_k: int = 0
    top_p: float = 1.0
    min_p: float = 0.0
    repetition_penalty: float = 1.0
    seed: int | None = None

    def check(self) -> None:
        """Raises TesseraError for a value outside its range."""
        for name, value, low, high in (
            ("temperature", self.temperature, 0, np.inf),
            ("top_k", self.top_k, 0, np.inf),
            ("top_p", self.top_p, 0, 1),
            ("min_p", self.min_p, 0, 1),
        ):
            if not low <= value <= high:
                raise usage_error(f"--{name} {value}: must be {f'from {low} to {high}' if high == 1 else 'at least 0'}")
        if self.top_p == 0 or self.repetition_penalty <= 0:
            raise usage_error("--top_p and --repetition_penalty must be greater than 0")


class Sampler:
    """Chooses tokens that a constraint allows. The same seed gives the same tokens."""

    def __init__(self, sampling: Sampling, constraint: Constraint | None = None) -> None:
        sampling.check()
        self._sampling = sampling
        self._constraint = constraint
        self._random = np.random.default_rng(sampling.seed)

    @property
    def is_done(self) -> bool:
        """True if the constraint allows no more tokens."""
        return self._constraint is not None and self._constraint.is_done

    def choose(self, logits: np.ndarray, before: Sequence[int]) -> int:
        """Returns a token for logits [vocabulary]. before: the tokens of the prompt and of the answer so far."""
        if self._constraint is None:
            return self._choose(logits, before)
        token = self._choose(self._constraint.mask(logits), before)
        self._constraint.accept(token)
        return token

    def _choose(self, logits: np.ndarray, before: Sequence[int]) -> int:
        how = self._sampling
        if how.repetition_penalty != 1:
            logits = logits.copy()
            seen = np.unique(np.asarray(before, np.int64))
            logits[seen] *= np.where(logits[seen] > 0, 1 / how.repetition_penalty, how.repetition_penalty)
        if how.temperature == 0:
            return int(logits.argmax())
        tokens = np.arange(len(logits))
        if 0 < how.top_k < len(logits):
            tokens = np.argpartition(logits, -how.top_k)[-how.top_k :]
        tokens = tokens[np.argsort(-logits[tokens], kind="stable")]
        scaled = logits[tokens].astype(np.float64) / how.temperature
        chances = np.exp(scaled - scaled[0])
        chances /= chances.sum()
        kept = np.cumsum(chances) - chances < how.top_p
        kept &= chances >= how.min_p * chances[0]
        chances = np.where(kept, chances, 0)
        return int(self._random.choice(tokens, p=chances / chances.sum()))
