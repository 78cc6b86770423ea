# SPDX-License-Identifier: Apache-2.0
"""Networks of an encoder and a decoder (Whisper, T5, Marian): the encoder runs once, then the decoder runs token by
token."""
from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Callable, Iterator, Mapping, Sequence

import numpy as np

from ..errors import TesseraError
from .tokenizer import make_tokenizer
from .tokenizer_base import Tokenizer

ENCODER, FIRST, NEXT, SETTINGS = "encoder.bmodel", "decoder.bmodel", "decoder_with_past.bmodel", "settings.json"
"""The files of a compiled network: NEXT is missing if FIRST has a branch for later tokens."""
_PAST, _PRESENT = "past_key_values.", "present."
Choose = Callable[[np.ndarray, Sequence[int]], int]
"""Returns the next token from its logits and the tokens so far, without the prompt."""


@dataclass
class Encoded:
    """The result of the encoder for one input, and the caches of the decoder, by name."""

    hidden: np.ndarray
    mask: np.ndarray | None = None
    caches: dict[str, np.ndarray] = field(default_factory=dict)


class EncoderDecoder:
    def __init__(self, folder: str | Path, threads: int = 1) -> None:
        from tessera import runtime

        self._error = runtime.Error
        path = Path(folder)
        if not (path / SETTINGS).is_file():
            raise TesseraError(
                f"{path} is not a compiled encoder and decoder", hint="compile a folder of ONNX files with tessera llm"
            )
        self.settings: dict[str, Any] = json.loads((path / SETTINGS).read_text())
        try:
            nets = {name: runtime.load(str(path / name), threads=threads).net() for name in self._files(path)}
        except self._error as error:
            raise TesseraError(f"failed to open {path}: {error}") from error
        self._encoder, self._first = nets[ENCODER], nets[FIRST]
        self._next = nets.get(NEXT, self._first)
        self.vocabulary = int({t.name: t for t in self._first.outputs}["logits"].max_shape[-1])
        self._tokenizer: Tokenizer | None = None
        known = lambda key: [token for token in self.settings.get(key, []) if 0 <= token < self.vocabulary]
        self.suppressed, self._begin_suppressed = known("suppressed"), known("begin_suppressed")
        """Tokens that are never chosen, and those that are not chosen first."""

    def greedy(self, logits: np.ndarray, made: Sequence[int]) -> int:
        """Returns the most likely token that may follow."""
        suppressed = self.suppressed if made else [*self.suppressed, *self._begin_suppressed]
        if suppressed:
            logits = logits.copy()
            logits[suppressed] = -np.inf
        return int(logits.argmax())

    @staticmethod
    def _files(path: Path) -> list[str]:
        return [ENCODER, FIRST, *([NEXT] if (path / NEXT).is_file() else [])]

    @property
    def tokenizer(self) -> Tokenizer:
        if self._tokenizer is None:
            self._tokenizer = make_tokenizer(self.settings["language"], self.vocabulary)
        return self._tokenizer

    @property
    def input_shape(self) -> tuple[int, ...]:
        """Largest shape of the encoder's first input."""
        return tuple(self._encoder.inputs[0].max_shape)

    @property
    def context(self) -> int:
        """Largest number of tokens of the decoder."""
        return int(self.settings["context"])

    def _run(self, net: Any, inputs: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        try:
            return dict(net(inputs))
        except self._error as error:
            raise TesseraError(f"failed to run the model: {error}") from error

    def encode(self, x: np.ndarray) -> Encoded:
        """Runs the encoder on spectra [1, bins, frames], or on tokens [1, n]."""
        mask = np.ones(x.shape, np.int64) if x.dtype == np.int64 else None
        inputs = {t.name: x if mask is None or t.name != "attention_mask" else mask for t in self._encoder.inputs}
        return Encoded(next(iter(self._run(self._encoder, inputs).values())), mask)

    def feed(self, encoded: Encoded, tokens: Sequence[int]) -> np.ndarray:
        """Appends tokens to the caches; returns the logits of the last one."""
        is_first = not encoded.caches
        net = self._first if is_first else self._next
        found = self._run(net, {t.name: self._value(t, encoded, tokens, is_first) for t in net.inputs})
        for name, value in found.items():
            if name.startswith(_PRESENT) and value.size:  # the branch for later tokens leaves the encoder's empty
                encoded.caches[name[len(_PRESENT) :]] = value
        return found["logits"][0, -1]

    def _value(self, tensor: Any, encoded: Encoded, tokens: Sequence[int], is_first: bool) -> np.ndarray:
        """Returns the value of an input of a decoder."""
        name: str = tensor.name
        if name.startswith(_PAST):
            shape = list(tensor.max_shape)
            return encoded.caches.get(name[len(_PAST) :], np.zeros([*shape[:2], 0, shape[3]], np.float32))
        values = {
            "input_ids": np.asarray([tokens], np.int64),
            "encoder_hidden_states": encoded.hidden,
            "encoder_attention_mask": encoded.mask,
            "use_cache_branch": np.array([not is_first]),
        }
        if (value := values.get(name)) is None:
            raise TesseraError(f"the decoder has the unknown input '{name}'; known are {', '.join(values)}")
        return value

    def generate(
        self, encoded: Encoded, prompt: Sequence[int], max_tokens: int | None = None, choose: Choose | None = None
    ) -> Iterator[int]:
        """Returns the tokens that follow `prompt`, up to one that ends the text, which is not returned, or the end of
        the context."""
        choose = choose or self.greedy
        limit = self.context - len(prompt)
        limit = limit if max_tokens is None else min(limit, max_tokens)
        made: list[int] = []
        logits = self.feed(encoded, prompt)
        while len(made) < limit:
            token = choose(logits, made)
            if token in self.settings["ends"]:
                return
            made.append(token)
            yield token
            if len(made) < limit:
                logits = self.feed(encoded, [token])
