# SPDX-License-Identifier: Apache-2.0
"""Language models of fixed sequence length: perplexity of a text, greedy continuation.

The input is token ids int64 [1,length], the output logits [1,length,vocabulary]. The network is causal, so ids after
the last known one do not matter and are set to zero.
"""
from __future__ import annotations

import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Callable, Sequence

import numpy as np

from ..errors import TesseraError
from . import Model, only_input, require_data

NAME = "language"
BOS = 1
FIRST_BYTE = 3  # ids of the 256 single bytes begin here
SEPARATOR = "<|endoftext|>"


@dataclass(frozen=True)
class Tokenizer:
    """Byte-pair encoding with a score per token, as llama2.c stores it."""

    ids: dict[bytes, int]
    scores: list[float]
    tokens: list[bytes]

    @staticmethod
    def load(path: Path) -> "Tokenizer":
        """Reads a file: i32 longest token, then per token f32 score, i32 bytes, bytes; little endian."""
        data, at = path.read_bytes(), 4
        tokens: list[bytes] = []
        scores: list[float] = []
        try:
            while at < len(data):
                score, size = struct.unpack_from("<fi", data, at)
                if not 0 <= size <= len(data) - at - 8:
                    raise struct.error(f"a token with {size} bytes")
                tokens.append(data[at + 8 : at + 8 + size])
                scores.append(score)
                at += 8 + size
        except struct.error as error:
            raise TesseraError(f"{path}: not a llama2.c tokenizer: {error} at byte {at}") from error
        return Tokenizer({token: i for i, token in reversed(list(enumerate(tokens)))}, scores, tokens)

    def encode(self, text: str) -> list[int]:
        """Returns the ids, BOS first. The pair with the best score is merged until no pair is a token."""
        ids: list[int] = []
        for character in " " + text if text else "":
            raw = character.encode()
            ids += [self.ids[raw]] if raw in self.ids else [byte + FIRST_BYTE for byte in raw]
        while True:
            best, place = -1e10, -1
            for i in range(len(ids) - 1):
                joined = self.ids.get(self.tokens[ids[i]] + self.tokens[ids[i + 1]])
                if joined is not None and self.scores[joined] > best:
                    best, place = self.scores[joined], i
            if place < 0:
                return [BOS, *ids]
            ids[place : place + 2] = [self.ids[self.tokens[ids[place]] + self.tokens[ids[place + 1]]]]


def greedy(run: Callable[[np.ndarray], np.ndarray], length: int, prompt: Sequence[int], count: int) -> list[int]:
    """Returns `count` token ids in total, starting with `prompt`; `run` maps ids to logits."""
    ids = np.zeros((1, length), np.int64)
    known = list(prompt)
    while len(known) < min(count, length):
        ids[0, : len(known)] = known
        known.append(int(np.argmax(run(ids)[0, len(known) - 1])))
    return known


def _read(text: Path) -> str:
    try:
        return text.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise TesseraError(f"{text}: byte {error.start} is not UTF-8") from error


def score(model: Model, data: Path) -> dict[str, float]:
    """Returns {'tokens', 'nll', 'ppl', 'top1'} of the texts in a folder, each part between separators from its
    beginning.

    nll: mean negative log-likelihood of the next token in nats; parts longer than the model's sequence are cut.
    """
    spec, output = only_input(model, NAME), model.outputs[0].name
    tokenizers, texts = sorted(require_data(data, NAME).rglob("*.bin")), sorted(data.rglob("*.txt"))
    if len(tokenizers) != 1 or not texts:
        raise TesseraError(
            f"--task {NAME}: {data} has {len(tokenizers)} *.bin and {len(texts)} *.txt",
            hint="expected one tokenizer and at least one text",
        )
    tokenizer = Tokenizer.load(tokenizers[0])
    total, hits, count, length = 0.0, 0, 0, spec.shape[1]
    for text in texts:
        for part in _read(text).split(SEPARATOR):
            known = tokenizer.encode(part.strip())[: length + 1]
            if len(known) < 2:
                continue
            ids = np.zeros(spec.shape, np.int64)
            ids[0, : min(len(known), length)] = known[:length]
            logits = model.run({spec.name: ids})[output][0, : len(known) - 1].astype(np.float64)
            wanted = np.array(known[1:])
            shifted = logits - logits.max(axis=1, keepdims=True)
            likelihood = shifted[np.arange(len(wanted)), wanted] - np.log(np.exp(shifted).sum(axis=1))
            total -= float(likelihood.sum())
            hits += int((logits.argmax(axis=1) == wanted).sum())
            count += len(wanted)
    nll = total / count
    return {"tokens": count, "nll": nll, "ppl": float(np.exp(nll)), "top1": hits / count}
