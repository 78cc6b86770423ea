# SPDX-License-Identifier: Apache-2.0
"""A compiled language model: tokens in, tokens or text out."""
from __future__ import annotations

import contextlib
import json
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Iterator, Sequence

import numpy as np

from ..errors import TesseraError, usage_error
from ..files import require_file
from ..programs import read_model
from .chat import Message, render
from .sampling import Sampler, Sampling
from .tokenizer import Tokenizer, make_tokenizer

_INPUT, _OUTPUT, _PROPERTY = "input_ids", "logits", "language"


@dataclass
class Statistics:
    """Counts and times of a generation. cached: tokens of the prompt that were in the caches already."""

    prompt_tokens: int = 0
    cached: int = 0
    new_tokens: int = 0
    prefill_seconds: float = 0.0
    decode_seconds: float = 0.0
    ended_by: str = ""
    tokens: list[int] = field(default_factory=list)

    def describe(self) -> str:
        computed = self.prompt_tokens - self.cached
        return (
            f"prefill {computed} tokens, {computed / max(self.prefill_seconds, 1e-9):.1f} tokens/s; "
            f"decode {self.new_tokens} tokens, {max(self.new_tokens - 1, 0) / max(self.decode_seconds, 1e-9):.1f} "
            "tokens/s"
        )


class LanguageModel:
    """A language model with its caches. It serves one sequence at a time; a prompt that begins like the tokens in the
    caches continues from there."""

    def __init__(self, path: str | Path, threads: int = 1) -> None:
        from tessera import runtime

        require_file(path, "model")
        self._error = runtime.Error
        try:
            self._net = runtime.load(str(path), threads=threads).net()
        except self._error as error:
            raise TesseraError(f"failed to open {path}: {error}") from error
        texts = {entry["key"]: entry["value"] for entry in read_model(path).get("properties", [])}
        inputs = {tensor.name: tensor for tensor in self._net.inputs}
        outputs = {tensor.name: tensor for tensor in self._net.outputs}
        if _PROPERTY not in texts or list(inputs) != [_INPUT] or _OUTPUT not in outputs or not self._net.state_lengths:
            raise TesseraError(f"{path} is not a language model", hint="compile one with tessera llm")
        self._language: dict[str, Any] = json.loads(texts[_PROPERTY])
        self._chunk = int(inputs[_INPUT].max_shape[1])
        self.vocabulary = int(outputs[_OUTPUT].max_shape[-1])
        self.context = min(capacity for _, capacity in self._net.state_lengths.values())
        """Number of tokens that the caches hold."""
        self._tokens: list[int] = []  # in the caches
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
        self._net.reset_state()
        self._tokens = []

    def feed(self, tokens: Sequence[int]) -> np.ndarray:
        """Appends tokens to the sequence in the caches; returns the logits of the last run, [n, vocabulary], where n is
        1 or, for models compiled with --all_logits, the number of tokens in the run."""
        self._check(tokens)
        logits = np.empty((0, self.vocabulary), np.float32)
        for begin in range(0, len(tokens), self._chunk):
            part = list(tokens[begin : begin + self._chunk])
            try:
                logits = self._net({_INPUT: np.asarray([part], np.int64)})[_OUTPUT][0]
            except self._error as error:
                raise TesseraError(f"failed to run the model: {error}") from error
            self._tokens += part
        return logits

    def _check(self, tokens: Sequence[int]) -> None:
        if not len(tokens):
            raise TesseraError("the prompt has no tokens")
        if not 0 <= min(tokens) <= max(tokens) < self.vocabulary:
            raise TesseraError(f"tokens are from 0 to {self.vocabulary - 1}, not {min(tokens)} to {max(tokens)}")
        if len(self._tokens) + len(tokens) > self.context:
            raise TesseraError(
                f"{len(self._tokens) + len(tokens)} tokens do not fit into the model's context of {self.context}",
                hint="shorten the prompt, or compile the model with a larger --context",
            )

    def _prefill(self, tokens: Sequence[int]) -> tuple[np.ndarray, int]:
        """Makes the caches hold `tokens`; returns the logits of the last one and the number of tokens that the caches
        held already."""
        same = 0
        for a, b in zip(self._tokens, tokens[:-1]):  # the last token is always computed, for its logits
            if a != b:
                break
            same += 1
        if same < len(self._tokens):
            self._net.set_state_length(same)
            del self._tokens[same:]
        return self.feed(tokens[same:])[-1], same

    def generate_tokens(
        self, prompt: Sequence[int], max_tokens: int | None = None, sampling: Sampling = Sampling()
    ) -> Iterator[int]:
        """Returns the tokens that follow `prompt`, one by one, up to a token that ends an answer (which is returned,
        too), `max_tokens`, or the end of the context. `last` says how it ended, after the last token."""
        stats = self.last = Statistics(prompt_tokens=len(prompt))
        if max_tokens is not None and max_tokens < 1:
            raise usage_error(f"--max_tokens {max_tokens}: must be at least 1")
        sampler = Sampler(sampling)
        ends = self._ends()
        begin = time.perf_counter()
        logits, stats.cached = self._prefill(prompt)
        stats.prefill_seconds = time.perf_counter() - begin
        while True:
            token = sampler.choose(logits, [*prompt, *stats.tokens] if sampling.repetition_penalty != 1 else ())
            stats.tokens.append(token)
            stats.new_tokens += 1
            stats.ended_by = (
                "end"
                if token in ends
                else "max_tokens"
                if stats.new_tokens == max_tokens
                else "context"
                if len(self._tokens) == self.context
                else ""
            )
            yield token
            if stats.ended_by:
                return
            begin = time.perf_counter()
            logits = self.feed([token])[-1]
            stats.decode_seconds += time.perf_counter() - begin

    def _ends(self) -> set[int]:
        try:
            return self.tokenizer.ends
        except TesseraError:
            return set()  # a model without a tokenizer generates tokens from tokens

    def generate(
        self, prompt: str | Sequence[int], max_tokens: int | None = None, stop: Sequence[str] = (), **sampling: Any
    ) -> Iterator[str]:
        """Returns the text that follows `prompt`, piece by piece, up to the first of the texts `stop`, which is not
        returned. sampling: the fields of Sampling, e.g. temperature=0.7."""
        tokens = self.tokenizer.encode(prompt) if isinstance(prompt, str) else list(prompt)
        made = self.generate_tokens(tokens, max_tokens, Sampling(**sampling))
        yield from self._until(self.tokenizer.stream(made), [text for text in stop if text])

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
