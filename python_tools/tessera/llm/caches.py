# SPDX-License-Identifier: Apache-2.0
"""The network of a language model and the caches of its sequences."""
from __future__ import annotations

import json
import zlib
from pathlib import Path
from typing import Any, Mapping, Sequence

import numpy as np

from ..errors import TesseraError
from ..files import require_file
from ..programs import read_model

_INPUT, _ROWS, _OUTPUT, _PROPERTY = "input_ids", "rows", "logits", "language"


def _checksum(tokens: bytes, states: bytes) -> int:
    """Returns a number that depends on all bytes of saved caches."""
    return zlib.crc32(states, zlib.crc32(tokens))


class Caches:
    """Runs the network. Each slot holds the tokens of one sequence in caches of its own; a file that was compiled
    without --sequences has one slot."""

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
        self._chooses_rows = inputs.pop(_ROWS, None) is not None
        self._names = list(inputs)
        known = [f"{_INPUT}.{i}" for i in range(len(inputs))] if self._chooses_rows else [_INPUT]
        if _PROPERTY not in texts or self._names != known or _OUTPUT not in outputs or not self._net.state_lengths:
            raise TesseraError(f"{path} is not a language model", hint="compile one with tessera llm")
        self.language: dict[str, Any] = json.loads(texts[_PROPERTY])
        self.chunk = int(inputs[known[0]].max_shape[1])
        self.vocabulary = int(outputs[_OUTPUT].max_shape[-1])
        self.returns_several = self._chooses_rows or int(outputs[_OUTPUT].max_shape[1]) > 1
        """True if a run can return logits of several tokens of a sequence."""
        self.context = min(capacity for _, capacity in self._net.state_lengths.values())
        self.tokens: list[list[int]] = [[] for _ in known]
        """By slot, the tokens in its caches."""
        names = list(self._net.state_lengths)
        several = len(known) > 1 or self._chooses_rows
        self._states = [next(n for n in names if not several or n.endswith(f".{i}")) for i in range(len(known))]

    def reset(self) -> None:
        """Empties all caches."""
        self._net.reset_state()
        self.tokens = [[] for _ in self.tokens]

    def cut(self, slot: int, length: int) -> None:
        """Forgets the tokens of a slot from number `length` on."""
        if length < len(self.tokens[slot]):
            self._net.set_state_length(length, self._states[slot])
            del self.tokens[slot][length:]

    def save(self) -> bytes:
        """Returns the tokens of all slots, a checksum, and what the network computed for the tokens."""
        tokens, states = json.dumps(self.tokens).encode(), self._net.save_state()
        return tokens + f" {_checksum(tokens, states):08x}\n".encode() + states

    def load(self, saved: bytes) -> None:
        """Restores what save() returned for the same file. Other bytes are an error and change nothing."""
        head, _, states = saved.partition(b"\n")
        text, _, checksum = head.rpartition(b" ")
        try:
            tokens = [[int(token) for token in slot] for slot in json.loads(text)]
            if int(checksum, 16) != _checksum(text, states):
                raise ValueError("they are damaged, because their checksum is wrong")
            if len(tokens) != len(self.tokens):
                raise ValueError(f"they have {len(tokens)} sequences, and the model {len(self.tokens)}")
            self._net.load_state(states)
        except (ValueError, TypeError, self._error) as error:
            raise TesseraError(f"the saved caches do not fit the model: {error}") from error
        self.tokens = tokens

    def cancel(self) -> None:
        """Ends the run in flight, from another thread."""
        self._net.cancel()

    def common(self, slot: int, tokens: Sequence[int]) -> int:
        """Returns how many tokens at the beginning of `tokens` a slot holds."""
        same = 0
        for a, b in zip(self.tokens[slot], tokens):
            if a != b:
                break
            same += 1
        return same

    def check(self, tokens: Sequence[int], held: int = 0) -> None:
        """Raises TesseraError unless `tokens` can be appended to `held` tokens."""
        if not len(tokens):
            raise TesseraError("the prompt has no tokens")
        if not 0 <= min(tokens) <= max(tokens) < self.vocabulary:
            raise TesseraError(f"tokens are from 0 to {self.vocabulary - 1}, not {min(tokens)} to {max(tokens)}")
        if held + len(tokens) > self.context:
            raise TesseraError(
                f"{held + len(tokens)} tokens do not fit into the model's context of {self.context}",
                hint="shorten the prompt, or compile the model with a larger --context",
            )

    def run(self, parts: Mapping[int, Sequence[int]], wanted: int | None = None) -> dict[int, np.ndarray]:
        """Appends up to `chunk` tokens to each slot in `parts`, in one run. Returns the logits of the last `wanted`
        tokens of each part, [n, vocabulary]; by default, those that the file was compiled to return."""
        for slot, tokens in parts.items():
            self.check(tokens, len(self.tokens[slot]))
        given = [np.asarray([parts.get(i, ())], np.int64).reshape(1, -1) for i in range(len(self.tokens))]
        feeds = dict(zip(self._names, given))
        ends = np.cumsum([part.shape[1] for part in given])
        counts = {slot: min(wanted or 1, len(tokens)) for slot, tokens in parts.items()}
        if self._chooses_rows:
            feeds[_ROWS] = np.concatenate([np.arange(ends[i] - counts[i], ends[i]) for i in sorted(parts)])
        try:
            logits = self._net(feeds)[_OUTPUT][0]
        except self._error as error:
            raise TesseraError(f"failed to run the model: {error}") from error
        for slot, tokens in parts.items():
            self.tokens[slot] += tokens
        if not self._chooses_rows:
            return {slot: logits if wanted is None else logits[-wanted:] for slot in parts}
        pieces = np.split(logits, np.cumsum([counts[i] for i in sorted(parts)])[:-1])
        return dict(zip(sorted(parts), pieces))
