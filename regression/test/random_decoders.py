# SPDX-License-Identifier: Apache-2.0
"""Random small decoders in the style of llama, with the caches as inputs: norms, rotary embeddings, grouped queries and
a gated network, for tests that compare chips."""
from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from test_decoders import Graph


@dataclass(frozen=True)
class Decoder:
    """Sizes of a decoder. rows: new tokens of a run. most: largest number of earlier tokens."""

    layers: int
    heads: int
    key_heads: int
    size: int
    hidden: int
    vocabulary: int
    rows: int
    most: int = 24

    @property
    def width(self) -> int:
        return self.heads * self.size

    @classmethod
    def draw(cls, rng: np.random.Generator) -> "Decoder":
        key_heads = int(rng.choice([1, 2, 3]))
        return cls(
            layers=int(rng.choice([1, 1, 2])),
            heads=key_heads * int(rng.choice([1, 2, 4])),
            key_heads=key_heads,
            size=int(rng.choice([4, 8, 16, 18])),
            hidden=int(rng.choice([24, 43, 64, 100, 172])),
            vocabulary=int(rng.choice([31, 64, 96, 130])),
            rows=int(rng.integers(1, 9)),
        )

    def inputs(self, past: int, rng: np.random.Generator) -> dict[str, np.ndarray]:
        """Returns inputs of a run behind `past` tokens. Later rows do not see earlier ones."""
        bias = np.zeros((1, 1, self.rows, past + self.rows), np.float32)
        bias[0, 0, :, past:] = np.triu(np.full((self.rows, self.rows), -1e9, np.float32), 1)
        given: dict[str, np.ndarray] = {
            "tokens": rng.integers(0, self.vocabulary, (1, self.rows)),
            "positions": np.arange(past, past + self.rows)[None],
            "bias": bias,
        }
        for layer in range(self.layers):
            for name in (f"past_key.{layer}", f"past_value.{layer}"):
                shape = (1, self.key_heads, past, self.size)
                given[name] = rng.standard_normal(shape).astype(np.float32)
        return given


class _Builder:
    def __init__(self, decoder: Decoder, rng: np.random.Generator) -> None:
        self.decoder, self.rng, self.g = decoder, rng, Graph()
        self.outputs: dict[str, str] = {}

    def weight(self, *shape: int) -> np.ndarray:
        return (self.rng.standard_normal(shape) / np.sqrt(shape[0])).astype(np.float32)

    def linear(self, x: str, depth: int, columns: int) -> str:
        return self.g.add("MatMul", x, self.weight(depth, columns))

    def norm(self, x: str) -> str:
        g = self.g
        mean = g.add("ReduceMean", g.add("Mul", x, x), np.array([-1]), keepdims=1)
        root = g.add("Sqrt", g.add("Add", mean, np.float32(1e-5)))
        scale = self.rng.uniform(0.5, 1.5, self.decoder.width).astype(np.float32)
        return g.add("Mul", g.add("Div", x, root), scale)

    def heads_of(self, x: str, heads: int) -> str:
        split = self.g.add("Reshape", x, np.array([1, self.decoder.rows, heads, self.decoder.size]))
        return self.g.add("Transpose", split, perm=[0, 2, 1, 3])

    def rotate(self, x: str, angles: tuple[str, str]) -> str:
        g, half = self.g, self.decoder.size // 2
        first = g.add("Slice", x, np.array([0]), np.array([half]), np.array([3]))
        second = g.add("Slice", x, np.array([half]), np.array([2 * half]), np.array([3]))
        turned = g.add("Concat", g.add("Neg", second), first, axis=3)
        return g.add("Add", g.add("Mul", x, angles[0]), g.add("Mul", turned, angles[1]))

    def angles(self) -> tuple[str, str]:
        """Returns cosines and sines [1, 1, rows, size] of the positions."""
        size, most = self.decoder.size, self.decoder.most + self.decoder.rows
        each = np.outer(np.arange(most), 100.0 ** (-np.arange(0, size, 2) / size)).astype(np.float32)
        table = np.concatenate([each, each], 1)
        pick = lambda of: self.g.add("Unsqueeze", self.g.add("Gather", of, "positions"), np.array([1]))
        return pick(np.cos(table)), pick(np.sin(table))

    def attend(self, x: str, layer: int, angles: tuple[str, str]) -> str:
        d, g = self.decoder, self.g
        q, k, v = (self.linear(x, d.width, d.size * n) for n in (d.heads, d.key_heads, d.key_heads))
        q = self.rotate(self.heads_of(q, d.heads), angles)
        k = self.rotate(self.heads_of(k, d.key_heads), angles)
        keys = g.add("Concat", f"past_key.{layer}", k, axis=2)
        values = g.add("Concat", f"past_value.{layer}", self.heads_of(v, d.key_heads), axis=2)
        self.outputs |= {f"key.{layer}": keys, f"value.{layer}": values}
        group = d.heads // d.key_heads
        if group > 1:
            q = g.add("Reshape", q, np.array([1, d.key_heads, group * d.rows, d.size]))
        scores = g.add("MatMul", q, g.add("Transpose", keys, perm=[0, 1, 3, 2]))
        scores = g.add("Mul", scores, np.float32(d.size**-0.5))
        bias = "bias" if group == 1 else g.add("Concat", *["bias"] * group, axis=2)
        y = g.add("MatMul", g.add("Softmax", g.add("Add", scores, bias), axis=-1), values)
        if group > 1:
            y = g.add("Reshape", y, np.array([1, d.heads, d.rows, d.size]))
        y = g.add("Reshape", g.add("Transpose", y, perm=[0, 2, 1, 3]), np.array([1, d.rows, d.width]))
        return self.linear(y, d.width, d.width)

    def build(self, path: Path) -> None:
        d, g = self.decoder, self.g
        x = g.add("Gather", self.weight(d.vocabulary, d.width), "tokens")
        angles = self.angles()
        for layer in range(d.layers):
            x = g.add("Add", x, self.attend(self.norm(x), layer, angles))
            normed = self.norm(x)
            gate, up = (self.linear(normed, d.width, d.hidden) for _ in range(2))
            gated = g.add("Mul", g.add("Mul", gate, g.add("Sigmoid", gate)), up)
            x = g.add("Add", x, self.linear(gated, d.hidden, d.width))
        self.outputs["logits"] = self.linear(self.norm(x), d.width, d.vocabulary)
        shapes: dict[str, list[int | str]] = {
            "tokens": [1, d.rows],
            "positions": [1, d.rows],
            "bias": [1, 1, d.rows, "total"],
        }
        for layer in range(d.layers):
            shapes |= {f"past_{part}.{layer}": [1, d.key_heads, "past", d.size] for part in ("key", "value")}
        g.save(path, shapes, self.outputs)


def write(path: Path, decoder: Decoder, rng: np.random.Generator) -> None:
    """Writes the decoder with random weights."""
    _Builder(decoder, rng).build(path)
