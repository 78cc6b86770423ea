# SPDX-License-Identifier: Apache-2.0
"""Small graphs that the passes recover, fold or fuse, as exporters write them; near_misses.py changes one thing in
each."""
from __future__ import annotations

import random
from typing import Callable, Sequence

import numpy as np
import onnx
from onnx import helper

Build = Callable[["Case"], Sequence[str]]
PATTERNS: dict[str, tuple[Build, str]] = {}
"""Name -> how to build it (returns its outputs), and the op of the optimised module that shows the recovery."""


class Case:
    """A small ONNX graph with the values of its inputs and constants."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.array_rng = np.random.default_rng(seed)
        self.nodes: list[onnx.NodeProto] = []
        self.constants: dict[str, np.ndarray] = {}
        self.inputs: dict[str, np.ndarray] = {}
        self.outputs: list[str] = []

    def input(self, *shape: int) -> str:
        name = f"x{len(self.inputs)}"
        self.inputs[name] = self.array_rng.standard_normal(shape).astype(np.float32)
        return name

    def constant(self, value: object, dtype: type = np.float32) -> str:
        name = f"c{len(self.constants)}"
        self.constants[name] = np.asarray(value, dtype)
        return name

    def weights(self, *shape: int, offset: float = 0.0) -> str:
        return self.constant(self.array_rng.standard_normal(shape) * 0.5 + offset)

    def ints(self, *values: int) -> str:
        return self.constant(values, np.int64)

    def op(self, kind: str, *operands: str, **attributes: object) -> str:
        name = f"t{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, list(operands), [name], **attributes))
        return name

    def either(self, kind: str, a: str, b: str) -> str:
        """Adds a commutative op with its operands in random order."""
        return self.op(kind, *self.rng.sample([a, b], 2))

    def square(self, x: str) -> str:
        return self.op("Mul", x, x) if self.rng.random() < 0.5 else self.op("Pow", x, self.constant(2))

    def cut(self, x: str, start: int, end: int, axis: int = -1, step: int = 1) -> str:
        return self.op("Slice", x, self.ints(start), self.ints(end), self.ints(axis), self.ints(step))

    def dims(self, low: int = 2, high: int = 4) -> tuple[int, ...]:
        return tuple(self.rng.randint(2, 6) for _ in range(self.rng.randint(low, high)))


def pattern(recovered: str = "") -> Callable[[Build], Build]:
    def register(build: Build) -> Build:
        PATTERNS[build.__name__] = build, recovered
        return build

    return register
