# SPDX-License-Identifier: Apache-2.0
"""What convolutions and matmuls read on the samples: means and second moments of their inputs, streamed."""
from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Mapping

import numpy as np

from tessera import _calibration

from .worker import Candidate

ROWS = {"conv": 256, "matmul": 512, "conv_transpose": 256}
"""Output positions of one op that are looked at in one sample, evenly spread. Neighbours in a picture are much
alike."""


@dataclass(frozen=True)
class Product:
    """A convolution or matmul as the compiler describes it. weight: [OC, C / groups, K...], or [K, N] ([N, K] with
    trans_b), or [C, OC, K...] of a transposed convolution, whose windows do not overlap. bits, group: of its weights in
    W4; so many of the C / groups or K share a scale. wide: W4 was told to keep 8 bits.
    """

    name: str
    input: str
    kind: str
    weight: np.ndarray
    groups: int = 1
    strides: tuple[int, ...] = ()
    pads: tuple[int, ...] = ()
    dilations: tuple[int, ...] = ()
    trans_b: bool = False
    bits: int = 4
    group: int = 32
    wide: bool = False

    @staticmethod
    def make(entry: Mapping[str, Any], weight: np.ndarray) -> "Product":
        fields = {key: tuple(value) if isinstance(value, list) else value for key, value in entry.items()}
        return Product(weight=weight, **fields)

    @property
    def matrix(self) -> np.ndarray:
        """float64 [groups, OC / groups, K]: one row an output channel, as the op's inputs lie in `rows`; of transposed
        convolutions one a tap of each output channel."""
        return self._matrix_of(self.weight.astype(np.float64))

    @property
    def as_it_lies(self) -> np.ndarray:
        """The same as a view of the weight, in its type."""
        return self._matrix_of(self.weight)

    def _matrix_of(self, w: np.ndarray) -> np.ndarray:
        if self.kind == "matmul":
            return (w if self.trans_b else w.T)[None]
        if self.kind == "conv_transpose":
            return w.reshape(w.shape[0], -1).T[None]
        return w.reshape(self.groups, w.shape[0] // self.groups, -1)

    @property
    def sharing(self) -> int:
        """Rows of the matrix that have one scale: those of an output channel."""
        return self.weight[0, 0].size if self.kind == "conv_transpose" else 1

    def restored(self, integers: np.ndarray, scales: np.ndarray) -> np.ndarray:
        """What integers [as the weight lies] with scales [output channels, runs of weights] stand for."""
        matrix = self._matrix_of(integers).astype(np.float32)
        run = (
            -(-matrix.shape[2] // scales.shape[1])
            if scales.shape[1] == 1
            else self.group * (self.depth // self.reduced)
        )
        steps = np.repeat(scales.reshape(*matrix.shape[:2], -1), run, axis=2)[:, :, : matrix.shape[2]]
        return self.like_weight(matrix * steps)

    def like_weight(self, matrix: np.ndarray) -> np.ndarray:
        """The other way round."""
        if self.kind == "matmul":
            return np.ascontiguousarray(matrix[0] if self.trans_b else matrix[0].T)
        if self.kind == "conv_transpose":
            return np.ascontiguousarray(matrix[0].T).reshape(self.weight.shape)
        return matrix.reshape(self.weight.shape)

    @property
    def reduced(self) -> int:
        """Channels that one output element sums over: C / groups, or K."""
        return self.weight.shape[1 if self.kind == "conv" or self.trans_b else 0]

    @property
    def depth(self) -> int:
        """K: products that one output element sums up."""
        return self.reduced * (self.weight[0, 0].size if self.kind == "conv" else 1)

    def rows(self, shape: tuple[int, ...]) -> int:
        """Looked at in one sample whose input has such a shape."""
        return min(self.patches(shape).positions, ROWS[self.kind])

    def patches(self, shape: tuple[int, ...]) -> "_calibration.Patches":
        """The rows that the op multiplies with its weights, of an input of such a shape."""
        if self.kind == "matmul":
            return _calibration.Patches((int(np.prod(shape[:-1])), shape[-1]), 1, (), (), (), ())
        if self.kind == "conv_transpose":
            ones = (1,) * (len(shape) - 2)
            return _calibration.Patches(shape, 1, ones, ones, (0, 0) * len(ones), ones)
        return _calibration.Patches(shape, self.groups, self.weight.shape[2:], self.strides, self.pads, self.dilations)


def _positions(count: int, rows: int, shift: int) -> list[int]:
    """`rows` of the numbers below `count`, evenly spread, others for other shifts."""
    if count == rows:
        return list(range(count))
    return np.sort((np.arange(rows) * count // rows + shift * 7919) % count).tolist()


class Statistics:
    """Of what one op reads, over all samples; the size does not depend on their number. second: whether moments are
    wanted."""

    def __init__(self, product: Product, second: bool = True) -> None:
        self._product = product
        self._k = product.depth
        self.second = second
        self._finite = True
        self._moments = _calibration.Moments(product.groups, self._k, second)

    def add(self, x: np.ndarray, shift: int, way: Candidate | None) -> None:
        """x: the op's input in one sample. shift: turns which of the output positions are looked at. way: how it is
        quantised."""
        patches = self._product.patches(x.shape)
        self._finite = self._finite and bool(np.isfinite(x).all())
        self._moments.add(
            patches,
            np.ascontiguousarray(x, np.float32),
            _positions(patches.positions, self._product.rows(x.shape), shift),
            way and (way.scale, way.zero_point, way.lowest),
        )

    @property
    def count(self) -> int:
        """Rows of each group."""
        return self._moments.count

    @property
    def exact(self) -> np.ndarray:
        """Means of the rows [groups, K], each value clipped to what the integers reach."""
        return self._mean(self._moments.exact)

    @property
    def rounded(self) -> np.ndarray:
        """Means once the input is quantised [groups, K]."""
        return self._mean(self._moments.rounded)

    @property
    def moments(self) -> np.ndarray:
        """float32 [groups, K, K]: means of products of the quantised ones, where they are wanted."""
        sums = np.frombuffer(self._moments.products(), np.float32).reshape(-1, self._k, self._k)
        return sums * np.float32(1 / max(self.count, 1))

    def _mean(self, sums: bytes) -> np.ndarray:
        return np.frombuffer(sums, np.float64).reshape(-1, self._k) / max(self.count, 1)

    @property
    def is_finite(self) -> bool:
        """Whether there were samples, without NaN, infinity and numbers whose squares are no float32."""
        return self.count > 0 and self._finite and (not self.second or _has_sum(self.moments))


def _has_sum(moments: np.ndarray) -> bool:
    """Whether the sum of each group's squares is a number, by which those of products are, too."""
    with np.errstate(over="ignore", invalid="ignore"):
        return bool(np.isfinite(np.einsum("gkk->g", moments)).all())


class Lack:
    """How what one op reads differs from what it should, with regard to what it reads; over all samples."""

    def __init__(self, product: Product) -> None:
        self._product = product
        self._k, self._finite = product.depth, True
        self._moments = _calibration.CrossMoments(product.groups, self._k, self._k)

    def add(self, x: np.ndarray, wanted: np.ndarray, shift: int) -> None:
        """x: the op's input in one sample; wanted: what it should be. shift: as for Statistics."""
        patches = self._product.patches(x.shape)
        lack = np.ascontiguousarray(wanted - x, np.float32)
        self._finite = self._finite and bool(np.isfinite(lack).all())
        self._moments.add(
            patches,
            lack,
            patches,
            np.ascontiguousarray(x, np.float32),
            _positions(patches.positions, self._product.rows(x.shape), shift),
        )

    @property
    def moments(self) -> np.ndarray:
        """float32 [groups, K, K]: means of products of what is lacking and of what is read."""
        sums = np.frombuffer(self._moments.products(), np.float32).reshape(-1, self._k, self._k)
        return sums * np.float32(1 / max(self._moments.count, 1))

    @property
    def is_finite(self) -> bool:
        return self._finite and bool(np.isfinite(self.moments).all())


def bytes_of(product: Product) -> int:
    """What its statistics take."""
    return product.groups * product.depth**2 * 4
