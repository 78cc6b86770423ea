# SPDX-License-Identifier: Apache-2.0
"""A compiled language model: tokens in, tokens or text out."""
from __future__ import annotations

import contextlib
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Iterator, Sequence

import numpy as np

from ..errors import TesseraError, usage_error
from .batch import Batch
from .caches import Caches
from .chat import Message, render
from .constraint import Constraint, Grammar
from .likelihood import log_likelihoods
from .sampling import Sampler, Sampling
from .speculation import Drafter, DraftModel, PromptLookup
from .tokenizer import make_tokenizer
from .tokenizer_base import Tokenizer

_DRAFT = 3
"""Largest number of tokens that a drafter guesses at a time. Attention of up to four tokens has the bits of single
tokens (FewQueries::kMostRows), so guesses never change the text."""


@dataclass
class Statistics:
    """Counts and times of a generation. cached: tokens of the prompt that were in the caches already. drafted and
    accepted: guessed tokens, and those of them that were right."""

    prompt_tokens: int = 0
    cached: int = 0
    new_tokens: int = 0
    prefill_seconds: float = 0.0
    decode_seconds: float = 0.0
    drafted: int = 0
    accepted: int = 0
    ended_by: str = ""
    tokens: list[int] = field(default_factory=list)

    def describe(self) -> str:
        computed = self.prompt_tokens - self.cached
        return (
            f"prefill {computed} tokens, {computed / max(self.prefill_seconds, 1e-9):.1f} tokens/s; "
            f"decode {self.new_tokens} tokens, {max(self.new_tokens - 1, 0) / max(self.decode_seconds, 1e-9):.1f} "
            "tokens/s" + (f"; {self.accepted} of {self.drafted} guesses right" if self.drafted else "")
        )


class LanguageModel:
    """A language model with its caches. A prompt that begins like the tokens in the caches continues from there."""

    def __init__(self, path: str | Path, threads: int = 1) -> None:
        self._caches = Caches(path, threads)
        self._language = self._caches.language
        self.vocabulary = self._caches.vocabulary
        self.context = self._caches.context
        """Number of tokens that the caches hold."""
        self._tokenizer: Tokenizer | None = None
        self.last = Statistics()
        """Of the last generation."""

    @property
    def tokenizer(self) -> Tokenizer:
        if self._tokenizer is None:
            self._tokenizer = make_tokenizer(self._language, self.vocabulary)
        return self._tokenizer

    def chat_text(self, messages: Sequence[Message]) -> str:
        """Returns the text of a conversation in the form that the model was trained on."""
        template = self._language.get("tokenizer.chat_template")
        if not template:
            raise TesseraError("the model has no chat template", hint="use tessera generate")
        names = {"bos_token": self.tokenizer.bos, "eos_token": self.tokenizer.eos}
        texts = {name: "" if token is None else self.tokenizer.tokens[token] for name, token in names.items()}
        return render(template, messages, **texts)

    def reset(self) -> None:
        """Empties the caches."""
        self._caches.reset()

    def save(self) -> bytes:
        """Returns the tokens in the caches with all that was computed for them, e.g. after a long system prompt."""
        return self._caches.save()

    def restore(self, saved: bytes) -> None:
        """Restores what save() returned, also in another process; the file must be the same."""
        self._caches.load(saved)

    def cancel(self) -> None:
        """Ends the run in flight, which raises TesseraError. May be called from any thread; the caches stay valid."""
        self._caches.cancel()

    def truncate(self, length: int) -> None:
        """Keeps the first `length` tokens in the caches."""
        self._caches.cut(0, length)

    def feed(self, tokens: Sequence[int]) -> np.ndarray:
        """Appends tokens to the sequence in the caches; returns the logits of the last run, [n, vocabulary], where n is
        1 or, for models compiled with --all_logits, the number of tokens in the run."""
        self._caches.check(tokens, len(self._caches.tokens[0]))
        logits = np.empty((0, self.vocabulary), np.float32)
        for begin in range(0, len(tokens), self._caches.chunk):
            logits = self._caches.run({0: list(tokens[begin : begin + self._caches.chunk])})[0]
        return logits

    def prefill(self, tokens: Sequence[int]) -> tuple[np.ndarray, int]:
        """Makes the caches hold `tokens`; returns the logits of the last one and the number of tokens that the caches
        held already."""
        same = self._caches.common(0, tokens[:-1])  # the last token is always computed, for its logits
        self._caches.cut(0, same)
        return self.feed(tokens[same:])[-1], same

    def log_likelihoods(self, tokens: Sequence[int], first: int = 1) -> np.ndarray:
        """Returns the natural logarithms of the probabilities of tokens[first:], each given all tokens before it. The
        caches hold `tokens` without the last one afterwards. Slow for models that return the logits of one token in a
        run."""
        return log_likelihoods(self._caches, tokens, first)

    @property
    def returns_several(self) -> bool:
        """True if a run can return the logits of several tokens."""
        return self._caches.returns_several

    def batch(self) -> Batch:
        """Returns an object that generates several sequences together."""
        return Batch(self._caches, self._ends())

    def grammar(self, form: str, text: str) -> Constraint:
        """Returns a constraint for one answer. form: json_schema, gbnf or regex."""
        return Grammar(self.tokenizer, form, text, self.vocabulary)

    def drafter(self, draft: LanguageModel | None = None) -> Drafter:
        """Returns an object that guesses the next tokens: from the text itself, or by a smaller model."""
        if not self.returns_several:
            raise TesseraError(
                "the model returns the logits of one token in a run, so guesses cannot be checked together",
                hint="compile it with --sequences 1, or an .onnx file with --all_logits",
            )
        if draft is None:
            return PromptLookup()
        model = DraftModel(draft._caches)
        model.check_vocabulary(self._caches)
        return model

    def generate_tokens(
        self,
        prompt: Sequence[int],
        max_tokens: int | None = None,
        sampling: Sampling = Sampling(),
        constraint: Constraint | None = None,
        drafter: Drafter | None = None,
    ) -> Iterator[int]:
        """Returns the tokens that follow `prompt`, one by one, up to a token that ends an answer (which is returned,
        too), `max_tokens`, or the end of the context. `last` says how it ended, after the last token. A drafter changes
        the speed only."""
        stats = self.last = Statistics(prompt_tokens=len(prompt))
        if max_tokens is not None and max_tokens < 1:
            raise usage_error(f"--max_tokens {max_tokens}: must be at least 1")
        sampler = Sampler(sampling, constraint)
        ends = self._ends()
        begin = time.perf_counter()
        row, stats.cached = self.prefill(prompt)
        stats.prefill_seconds = time.perf_counter() - begin
        rows = row[None]
        draft: list[int] = []
        while True:
            for i, logits in enumerate(rows):
                token = sampler.choose(logits, [*prompt, *stats.tokens] if sampling.repetition_penalty != 1 else ())
                stats.tokens.append(token)
                stats.new_tokens += 1
                is_right = i < len(draft) and token == draft[i]
                stats.accepted += is_right
                stats.ended_by = self._why_ended(token in ends or sampler.is_done, max_tokens)
                if stats.ended_by or not is_right:
                    self._caches.cut(0, len(prompt) + stats.new_tokens - 1)
                yield token
                if stats.ended_by:
                    return
                if not is_right:
                    break
            begin = time.perf_counter()
            draft = self._draft(drafter, [*prompt, *stats.tokens], max_tokens)
            rows = self._caches.run({0: [token, *draft]}, len(draft) + 1)[0]
            stats.decode_seconds += time.perf_counter() - begin
            stats.drafted += len(draft)

    def _why_ended(self, is_end: bool, max_tokens: int | None) -> str:
        stats = self.last
        if is_end:
            return "end"
        if stats.new_tokens == max_tokens:
            return "max_tokens"
        return "context" if stats.prompt_tokens + stats.new_tokens > self.context else ""

    def _draft(self, drafter: Drafter | None, tokens: list[int], max_tokens: int | None) -> list[int]:
        """Returns guesses of the tokens after `tokens`, of which the caches lack the last one."""
        if drafter is None:
            return []
        rest = [_DRAFT, self.context - len(tokens), self._caches.chunk - 1]
        if max_tokens is not None:
            rest.append(max_tokens - self.last.new_tokens - 1)
        return list(drafter.draft(tokens, min(rest)))[: min(rest)] if min(rest) > 0 else []

    def _ends(self) -> set[int]:
        try:
            return self.tokenizer.ends
        except TesseraError:
            return set()  # a model without a tokenizer generates tokens from tokens

    def generate(
        self,
        prompt: str | Sequence[int],
        max_tokens: int | None = None,
        stop: Sequence[str] = (),
        constraint: Constraint | None = None,
        drafter: Drafter | None = None,
        **sampling: Any,
    ) -> Iterator[str]:
        """Returns the text that follows `prompt`, piece by piece, up to the first of the texts `stop`, which is not
        returned. sampling: the fields of Sampling, e.g. temperature=0.7."""
        made = self.generate_tokens(self._encode(prompt), max_tokens, Sampling(**sampling), constraint, drafter)
        yield from self._until(self.tokenizer.stream(made), [text for text in stop if text])

    def generate_all(
        self, prompts: Sequence[str | Sequence[int]], max_tokens: int | None = None, **sampling: Any
    ) -> list[str]:
        """Returns the texts that follow each prompt, generated together. `last.ended_by` is "context" if the context of
        one was full."""
        batch = self.batch()
        encoded = [self._encode(prompt) for prompt in prompts]
        numbers = [batch.add(tokens, max_tokens, Sampling(**sampling)) for tokens in encoded]
        made: dict[int, list[int]] = {number: [] for number in numbers}
        ended: dict[int, str] = {}
        while len(batch):
            step = batch.step()
            ended |= step.ended
            for number, token in step.tokens.items():
                made[number].append(token)
        self.last = Statistics(sum(map(len, encoded)), new_tokens=sum(map(len, made.values())))
        self.last.ended_by = "context" if "context" in ended.values() else ""
        return ["".join(self.tokenizer.stream(iter(made[number]))) for number in numbers]

    def _encode(self, prompt: str | Sequence[int]) -> list[int]:
        return self.tokenizer.encode(prompt) if isinstance(prompt, str) else list(prompt)

    def _until(self, pieces: Iterator[str], stop: Sequence[str]) -> Iterator[str]:
        """Returns the pieces up to the first of the texts `stop`. Holds back text that may be the beginning of one."""
        held = ""
        with contextlib.closing(pieces):  # type: ignore[type-var] # a generator
            for piece in pieces:
                held += piece
                found = [at for text in stop if (at := held.find(text)) >= 0]
                if found:
                    self.last.ended_by = "stop"
                    if held[: min(found)]:
                        yield held[: min(found)]
                    return
                keep = max((n for text in stop for n in range(1, len(text)) if held.endswith(text[:n])), default=0)
                ready, held = held[: len(held) - keep], held[len(held) - keep :]
                if ready:
                    yield ready
        if held:
            yield held


def load(path: str | Path, threads: int = 1) -> LanguageModel:
    """Opens a .bmodel that `tessera llm` wrote."""
    return LanguageModel(path, threads)
