# SPDX-License-Identifier: Apache-2.0
"""Random networks of windows, like Swin: pixels of blocks as channels before a convolution, windows of images that are
shifted or not, attention with a mask per window, head or both, and blocks of rows merged by norms.

    build/bin/tessera-python regression/conformance/random_windows.py --seeds 0:500 [--isa npu-base] [--keep FOLDER]

INT8 with ranges that values sometimes exceed: the bits of the device reference.
"""
from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import seed_runner
import random_transformer
from random_quantized import NPUS, VARIANTS
from random_transformer import TransformerNet


class WindowNet(TransformerNet):
    """A network generated from a seed. Images have rows and columns, with channels last."""

    def build(self) -> str:
        r = self.rng
        self.batch = 1
        self.depth = r.choice([8, 16, 24, 32, 64])
        self.features, self.groups, self.heads = self.depth, 1, r.choice([1, 2, 3, 5])
        self.width = self.heads * self.depth
        self.wide = 2 * self.width
        self.window = (r.choice([2, 3, 4, 7]), r.choice([2, 4, 5, 7]))
        self.grid = (r.choice([1, 2, 2, 3]), r.choice([1, 2, 4]))
        self.rows, self.columns = (self.window[i] * self.grid[i] for i in range(2))
        x = self.pixels()
        for _ in range(r.choice([1, 2])):
            x = self.block(x)
        if self.rows % 2 == 0 and self.columns % 2 == 0 and r.random() < 0.7:
            return self.op("Neg", self.merged(x))
        return self.op("Neg", self.norm(x) if r.random() < 0.7 else x)

    def shaped(self, x: str, *shape: int) -> str:
        return self.op("Reshape", x, self.constant(np.array(shape, np.int64)))

    def part(self, x: str, axis: int, begin: int, end: int, step: int = 1) -> str:
        return self.op("Slice", x, *(self.constant(np.array([v], np.int64)) for v in (begin, end, axis, step)))

    def pixels(self) -> str:
        """Converts a picture to channels last, by a convolution after moving blocks of pixels to channels, or by one
        whose kernel is its stride."""
        r = self.rng
        channels, tall, broad = r.choice([1, 3, 3, 4]), r.choice([1, 2, 2, 3]), r.choice([2, 2, 4])
        x = self.given("x", 1, channels, self.rows * tall, self.columns * broad)
        if r.random() < 0.6:
            blocks = [(i, j) for i in range(tall) for j in range(broad)]
            r.shuffle(blocks)
            parts = [
                self.part(self.part(x, 2, i, self.rows * tall, tall), 3, j, self.columns * broad, broad)
                for i, j in blocks
            ]
            x, channels = self.op("Concat", *parts, axis=1), channels * tall * broad
            kernel = [r.choice([1, 2, 3]), r.choice([1, 3, 4])]
            pads = [(k - 1) // 2 for k in kernel] + [k // 2 for k in kernel]
            steps = [1, 1]
        else:
            kernel, pads, steps = [tall, broad], [0] * 4, [tall, broad]
        w = self.arrays.standard_normal((self.width, channels, *kernel)) * (1.5 / np.sqrt(channels * np.prod(kernel)))
        x = self.op("Conv", x, self.constant(w.astype(np.float32)), pads=pads, strides=steps)
        return self.op("Transpose", x, perm=[0, 2, 3, 1])

    def shifted(self, x: str, by: tuple[int, int]) -> str:
        for axis, size, steps in ((1, self.rows, by[0]), (2, self.columns, by[1])):
            if steps % size:
                begin = steps % size
                parts = [self.part(x, axis, begin, size), self.part(x, axis, 0, begin)]
                x = self.op("Concat", *parts, axis=axis)
        return x

    def attention(self, x: str) -> str:
        r, (a, b), (m, n) = self.rng, self.grid, self.window
        by = (r.randint(0, m - 1), r.randint(0, n - 1)) if r.random() < 0.6 else (0, 0)
        x = self.shaped(self.shifted(x, by), 1, a, m, b, n, self.width)
        x = self.shaped(self.op("Transpose", x, perm=[0, 1, 3, 2, 4, 5]), a * b, m * n, self.width)
        if r.random() < 0.5:
            q, k, v = self.packed(self.linear(x, 3 * self.width, self.width))
        else:
            q, k, v = (self.by_heads(self.linear(x, self.width, self.width), self.heads, self.depth) for _ in range(3))
        scores = self.op("MatMul", q, self.op("Transpose", k, perm=[0, 1, 3, 2]))
        scores = self.op("Mul", scores, self.constant(np.float32(self.depth**-0.5)))
        if r.random() < 0.8:
            shape = [r.choice([1, a * b]), r.choice([1, self.heads, self.heads]), m * n, m * n]
            mask = self.arrays.standard_normal(shape) - 100 * (self.arrays.random(shape) < 0.2)
            scores = self.op("Add", scores, self.constant(mask.astype(np.float32)))
        y = self.op("MatMul", self.op("Softmax", scores, axis=-1), v)
        y = self.shaped(self.op("Transpose", y, perm=[0, 2, 1, 3]), a * b, m * n, self.width)
        isBehind = r.random() < 0.5  # windows are joined
        y = y if isBehind else self.linear(y, self.width, self.width)
        y = self.op("Transpose", self.shaped(y, 1, a, b, m, n, self.width), perm=[0, 1, 3, 2, 4, 5])
        y = self.shifted(self.shaped(y, 1, self.rows, self.columns, self.width), (-by[0], -by[1]))
        return self.linear(y, self.width, self.width) if isBehind else y

    def merged(self, x: str) -> str:
        """Turns blocks of 2 x 2 pixels into rows."""
        order = [0, 1, 3, 4, 2, 5] if self.rng.random() < 0.5 else [0, 1, 3, 2, 4, 5]
        x = self.op("Transpose", self.shaped(x, 1, self.rows // 2, 2, self.columns // 2, 2, self.width), perm=order)
        size = 4 * self.width
        x = self.shaped(x, 1, self.rows * self.columns // 4, size)
        factor = self.constant(np.linspace(0.2, 2, size, dtype=np.float32))
        x = self.op("LayerNormalization", x, factor, axis=-1, epsilon=1e-5)
        return self.linear(x, 2 * self.width, size) if self.rng.random() < 0.7 else x


def run_seed(seed: int, chip: str, keep: Path | None = None) -> str:
    """Returns the fault of the network of a seed, or ""."""

    def check(compiler: random_transformer.Compiler, seed: int, chip: str, folder: Path) -> None:
        random_transformer.check(compiler, seed, chip, folder, WindowNet)

    return seed_runner.run_in_folder(check, "windows", seed, chip, keep)


def main() -> int:
    arguments = seed_runner.parse_arguments(__doc__, (*VARIANTS, *NPUS))
    return seed_runner.report_faults(run_seed, VARIANTS, arguments)


if __name__ == "__main__":
    sys.exit(main())
