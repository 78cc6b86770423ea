# SPDX-License-Identifier: Apache-2.0
"""What convolutions and matmuls read on the samples: means and second moments of their inputs, streamed."""
from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Mapping

import numpy as np

from .worker import Candidate

ROWS = 256
"""Output positions of one op that are looked at in one sample, evenly spread."""


@dataclass(frozen=True)
class Product:
    """A convolution or matmul as the compiler describes it. weight: [OC, C / groups, K...], or [K, N] ([N, K] with trans_b)."""

    name: str
    input: str
    kind: str
    weight: np.ndarray
    groups: int = 1
    strides: tuple[int, ...] = ()
    pads: tuple[int, ...] = ()
    dilations: tuple[int, ...] = ()
    trans_b: bool = False

    @staticmethod
    def make(entry: Mapping[str, Any], weight: np.ndarray) -> "Product":
        fields = {key: tuple(value) if isinstance(value, list) else value for key, value in entry.items()}
        return Product(weight=weight, **fields)

    @property
    def matrix(self) -> np.ndarray:
        """float64 [groups, OC / groups, K]: one row an output channel, as the op's inputs lie in `rows`."""
        w = self.weight.astype(np.float64)
        if self.kind == "matmul":
            return (w if self.trans_b else w.T)[None]
        return w.reshape(self.groups, w.shape[0] // self.groups, -1)

    def like_weight(self, matrix: np.ndarray) -> np.ndarray:
        """The other way round."""
        if self.kind == "matmul":
            return np.ascontiguousarray(matrix[0] if self.trans_b else matrix[0].T)
        return matrix.reshape(self.weight.shape)

    def rows(self, x: np.ndarray, shift: int) -> np.ndarray:
        """[groups, rows, K]: what the op multiplies with its weights at some positions. shift: turns which ones."""
        if self.kind == "matmul":
            flat = x.reshape(-1, x.shape[-1])
            return flat[_positions(flat.shape[0], shift)][None]
        return self._patches(x, shift)

    def _patches(self, x: np.ndarray, shift: int) -> np.ndarray:
        rank, kernel = x.ndim - 2, self.weight.shape[2:]
        padded = np.pad(x, [(0, 0), (0, 0), *zip(self.pads[:rank], self.pads[rank:])])
        sizes = padded.shape[2:]
        outputs = [(s - d * (k - 1) - 1) // stride + 1 for s, d, k, stride in zip(sizes, self.dilations, kernel, self.strides)]
        picked = np.unravel_index(_positions(x.shape[0] * int(np.prod(outputs)), shift), (x.shape[0], *outputs))
        taps = np.unravel_index(np.arange(int(np.prod(kernel))), kernel)
        coordinates = [picked[1 + i][:, None] * self.strides[i] + taps[i][None] * self.dilations[i] for i in range(rank)]
        places = np.ravel_multi_index(coordinates, sizes)
        found = padded.reshape(*padded.shape[:2], -1)[picked[0][:, None], :, places]  # [rows, taps, C]
        rows = found.transpose(2, 0, 1).reshape(self.groups, x.shape[1] // self.groups, len(places), -1)
        return rows.transpose(0, 2, 1, 3).reshape(self.groups, len(places), -1)


def _positions(count: int, shift: int) -> np.ndarray:
    """At most ROWS of the numbers below `count`, evenly spread, others for other shifts."""
    if count <= ROWS:
        return np.arange(count)
    return np.sort((np.arange(ROWS) * count // ROWS + shift * 7919) % count)


def fake_quantise(x: np.ndarray, way: Candidate) -> np.ndarray:
    """x as its integers give it back."""
    q = np.clip(np.rint(x / np.float32(way.scale)) + way.zero_point, way.lowest, 127)
    return (q - way.zero_point) * np.float32(way.scale)


@dataclass
class Statistics:
    """Of one op over all samples; its size does not depend on their number. exact, rounded: sums of rows [groups, K] before
    and after the input is quantised; moments: sums of products of the latter [groups, K, K]."""

    count: int = 0
    exact: np.ndarray | None = None
    rounded: np.ndarray | None = None
    moments: np.ndarray | None = field(default=None, repr=False)

    def add(self, rows: np.ndarray, way: Candidate) -> None:
        rows = rows.astype(np.float32)
        quantised = fake_quantise(rows, way)
        parts = (rows.sum(1, dtype=np.float64), quantised.sum(1, dtype=np.float64),
                 np.matmul(quantised.transpose(0, 2, 1), quantised).astype(np.float64))
        if self.exact is None:
            self.exact, self.rounded, self.moments = parts
        else:
            for mine, more in zip((self.exact, self.rounded, self.moments), parts):
                mine += more
        self.count += rows.shape[1]

    @property
    def is_finite(self) -> bool:
        """Whether there were rows, without NaN and infinity."""
        return self.moments is not None and bool(np.isfinite(self.moments).all())


def bytes_of(product: Product) -> int:
    """What its statistics take."""
    groups, _, k = product.matrix.shape
    return groups * k * k * 8
