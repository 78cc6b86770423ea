# SPDX-License-Identifier: Apache-2.0
"""Several texts generated together by one model."""
from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from typing import Sequence

from ..errors import TesseraError, usage_error
from .caches import Caches
from .constraint import Constraint
from .sampling import Sampler, Sampling


@dataclass(eq=False)
class _Sequence:
    tokens: list[int]  # of the prompt and the answer
    prompt: int  # number of tokens of the prompt
    limit: int | None
    sampler: Sampler
    slot: int = -1


@dataclass(frozen=True)
class Step:
    """The result of a step: the new token of each sequence that has one, and why the sequences in `ended` ended: "end",
    "max_tokens" or "context"."""

    tokens: dict[int, int] = field(default_factory=dict)
    ended: dict[int, str] = field(default_factory=dict)


class Batch:
    """Generates several sequences together. A sequence may be added or removed between any two steps; its tokens are
    those that it would have alone. Sequences beyond the number of slots wait until one ends."""

    def __init__(self, caches: Caches, ends: set[int]) -> None:
        self._caches, self._ends = caches, ends
        self._numbers = itertools.count()
        self._sequences: dict[int, _Sequence] = {}

    @property
    def slots(self) -> int:
        """Number of sequences that a step computes at most."""
        return len(self._caches.tokens)

    def __len__(self) -> int:
        return len(self._sequences)

    def add(
        self,
        prompt: Sequence[int],
        max_tokens: int | None = None,
        sampling: Sampling = Sampling(),
        constraint: Constraint | None = None,
    ) -> int:
        """Adds a sequence that continues the tokens `prompt`; returns its number."""
        if max_tokens is not None and max_tokens < 1:
            raise usage_error(f"--max_tokens {max_tokens}: must be at least 1")
        self._caches.check(prompt)
        number = next(self._numbers)
        self._sequences[number] = _Sequence(list(prompt), len(prompt), max_tokens, Sampler(sampling, constraint))
        return number

    def remove(self, number: int) -> None:
        """Ends a sequence. Others are not affected."""
        if self._sequences.pop(number, None) is None:
            raise TesseraError(f"the batch has no sequence {number}")

    def step(self) -> Step:
        """Computes the next token of each sequence that has a slot, or the next part of its prompt."""
        self._assign_slots()
        running = {n: s for n, s in self._sequences.items() if s.slot >= 0}
        if not running:
            return Step()
        held = self._caches.tokens
        parts = {s.slot: s.tokens[len(held[s.slot]) :][: self._caches.chunk] for s in running.values()}
        logits = self._caches.run(parts)
        step = Step()
        for number, sequence in running.items():
            if len(held[sequence.slot]) < len(sequence.tokens):
                continue  # more of the prompt follows
            token = sequence.sampler.choose(logits[sequence.slot][-1], sequence.tokens)
            sequence.tokens.append(token)
            step.tokens[number] = token
            made = len(sequence.tokens) - sequence.prompt
            why = self._why_ended(token, made == sequence.limit, len(held[sequence.slot]), sequence.sampler.is_done)
            if why:
                step.ended[number] = why
                del self._sequences[number]
        return step

    def _why_ended(self, token: int, is_last: bool, held: int, is_done: bool) -> str:
        if token in self._ends or is_done:
            return "end"
        return "max_tokens" if is_last else "context" if held == self._caches.context else ""

    def _assign_slots(self) -> None:
        """Gives waiting sequences the free slots that hold most of their tokens."""
        free = set(range(self.slots)) - {s.slot for s in self._sequences.values()}
        for sequence in self._sequences.values():
            if sequence.slot < 0 and free:
                sequence.slot = max(free, key=lambda slot: self._caches.common(slot, sequence.tokens[:-1]))
                self._caches.cut(sequence.slot, self._caches.common(sequence.slot, sequence.tokens[:-1]))
                free.remove(sequence.slot)
