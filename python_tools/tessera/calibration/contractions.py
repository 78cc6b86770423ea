# SPDX-License-Identifier: Apache-2.0
"""Statistics of the inputs of convolutions and matmuls on the samples: means and second moments, streamed."""
from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Mapping

import numpy as np

from tessera import _calibration

from .worker import Candidate

ROWS = {"conv": 256, "matmul": 512, "conv_transpose": 256}
"""Most output positions used per op and sample, evenly spread. Neighbouring positions in a picture are much alike."""


@dataclass(frozen=True)
class Contraction:
    """A convolution or matmul as described by the compiler. weight: [OC, C / groups, K...] of a convolution, [K, N] of
    a matmul ([N, K] with trans_b), [C, OC, K...] of a transposed convolution without overlapping windows. bits, group:
    of the weights in W4; `group` of the C / groups or K share a scale. wide: keeps 8 bits in W4."""

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
    def make(entry: Mapping[str, Any], weight: np.ndarray) -> "Contraction":
        fields = {key: tuple(value) if isinstance(value, list) else value for key, value in entry.items()}
        return Contraction(weight=weight, **fields)

    @property
    def matrix(self) -> np.ndarray:
        """Weights as float64 [groups, OC / groups, K]: one row per output channel, in the order of the input rows; for
        a transposed convolution one row per tap and output channel."""
        return self._matrix_of(self.weight.astype(np.float64))

    @property
    def as_it_lies(self) -> np.ndarray:
        """The weights as `matrix`, but as a view in their own type."""
        return self._matrix_of(self.weight)

    def _matrix_of(self, w: np.ndarray) -> np.ndarray:
        if self.kind == "matmul":
            return (w if self.trans_b else w.T)[None]
        if self.kind == "conv_transpose":
            return w.reshape(w.shape[0], -1).T[None]
        return w.reshape(self.groups, w.shape[0] // self.groups, -1)

    @property
    def sharing(self) -> int:
        """Number of matrix rows that share a scale, i.e. rows of one output channel."""
        return self.weight[0, 0].size if self.kind == "conv_transpose" else 1

    def restored(self, integers: np.ndarray, scales: np.ndarray) -> np.ndarray:
        """Returns the weights represented by integers [in the layout of the weight] and scales [output channels,
        weights per run]."""
        matrix = self._matrix_of(integers).astype(np.float32)
        run = (
            -(-matrix.shape[2] // scales.shape[1])
            if scales.shape[1] == 1
            else self.group * (self.depth // self.reduced)
        )
        steps = np.repeat(scales.reshape(*matrix.shape[:2], -1), run, axis=2)[:, :, : matrix.shape[2]]
        return self.like_weight(matrix * steps)

    def like_weight(self, matrix: np.ndarray) -> np.ndarray:
        """Converts a matrix back to the layout of the weight."""
        if self.kind == "matmul":
            return np.ascontiguousarray(matrix[0] if self.trans_b else matrix[0].T)
        if self.kind == "conv_transpose":
            return np.ascontiguousarray(matrix[0].T).reshape(self.weight.shape)
        return matrix.reshape(self.weight.shape)

    @property
    def reduced(self) -> int:
        """Number of channels that one output element sums over: C / groups, or K."""
        return self.weight.shape[1 if self.kind == "conv" or self.trans_b else 0]

    @property
    def depth(self) -> int:
        """K: number of multiplications summed into one output element."""
        return self.reduced * (self.weight[0, 0].size if self.kind == "conv" else 1)

    def rows(self, shape: tuple[int, ...]) -> int:
        """Returns the number of positions used in one sample with this input shape."""
        return min(self.patches(shape).positions, ROWS[self.kind])

    def patches(self, shape: tuple[int, ...]) -> "_calibration.Patches":
        """Returns the rows that the op multiplies with its weights, for this input shape."""
        if self.kind == "matmul":
            return _calibration.Patches((int(np.prod(shape[:-1])), shape[-1]), 1, (), (), (), ())
        if self.kind == "conv_transpose":
            ones = (1,) * (len(shape) - 2)
            return _calibration.Patches(shape, 1, ones, ones, (0, 0) * len(ones), ones)
        return _calibration.Patches(shape, self.groups, self.weight.shape[2:], self.strides, self.pads, self.dilations)


def _positions(count: int, rows: int, shift: int) -> list[int]:
    """Returns `rows` of the numbers below `count`, evenly spread; each shift selects different ones. With fewer numbers
    than rows, numbers repeat."""
    if count in (0, rows):
        return list(range(count))
    return np.sort((np.arange(rows) * count // rows + shift * 7919) % count).tolist()


class Statistics:
    """Statistics of one op's input over all samples; their size does not depend on the number of samples. second:
    collects second moments too."""

    def __init__(self, contraction: Contraction, second: bool = True) -> None:
        self._contraction = contraction
        self._k = contraction.depth
        self.second = second
        self._finite = True
        self._moments = _calibration.Moments(contraction.groups, self._k, second)

    def add(self, x: np.ndarray, shift: int, way: Candidate | None, rows: int | None = None) -> None:
        """Adds a sample. x: the op's input. shift: varies the selected output positions. way: the quantisation of x.
        rows: the number of positions to use; equal numbers give samples of different sizes equal weight."""
        patches = self._contraction.patches(x.shape)
        self._finite = self._finite and bool(np.isfinite(x).all())
        self._moments.add(
            patches,
            np.ascontiguousarray(x, np.float32),
            _positions(patches.positions, rows or self._contraction.rows(x.shape), shift),
            way and (way.scale, way.zero_point, way.lowest),
        )

    @property
    def count(self) -> int:
        """Number of rows of each group."""
        return self._moments.count

    @property
    def exact(self) -> np.ndarray:
        """Means of the rows [groups, K], with each value clipped to the range of the integers."""
        return self._mean(self._moments.exact)

    @property
    def rounded(self) -> np.ndarray:
        """Means of the quantised input [groups, K]."""
        return self._mean(self._moments.rounded)

    @property
    def moments(self) -> np.ndarray:
        """Second moments of the quantised input, float32 [groups, K, K]; only if they were requested."""
        sums = np.frombuffer(self._moments.products(), np.float32).reshape(-1, self._k, self._k)
        return sums * np.float32(1 / max(self.count, 1))

    def _mean(self, sums: bytes) -> np.ndarray:
        return np.frombuffer(sums, np.float64).reshape(-1, self._k) / max(self.count, 1)

    @property
    def is_finite(self) -> bool:
        """True if there were samples, and none with NaN, infinity or numbers whose squares overflow float32."""
        return self.count > 0 and self._finite and (not self.second or _has_sum(self.moments))


def _has_sum(moments: np.ndarray) -> bool:
    """Returns true if the sum of squares of each group is finite, which bounds all other moments."""
    with np.errstate(over="ignore", invalid="ignore"):
        return bool(np.isfinite(np.einsum("gkk->g", moments)).all())


class Lack:
    """Cross moments of an op's input error (wanted minus actual input) with its actual input, over all samples."""

    def __init__(self, contraction: Contraction) -> None:
        self._contraction = contraction
        self._k, self._finite = contraction.depth, True
        self._moments = _calibration.CrossMoments(contraction.groups, self._k, self._k)

    def add(self, x: np.ndarray, wanted: np.ndarray, shift: int, rows: int | None = None) -> None:
        """Adds a sample. x: the op's input. wanted: what the input should be. shift, rows: as for Statistics."""
        patches = self._contraction.patches(x.shape)
        lack = np.ascontiguousarray(wanted - x, np.float32)
        self._finite = self._finite and bool(np.isfinite(lack).all())
        self._moments.add(
            patches,
            lack,
            patches,
            np.ascontiguousarray(x, np.float32),
            _positions(patches.positions, rows or self._contraction.rows(x.shape), shift),
        )

    @property
    def moments(self) -> np.ndarray:
        """float32 [groups, K, K]: means of input error times input."""
        sums = np.frombuffer(self._moments.products(), np.float32).reshape(-1, self._k, self._k)
        return sums * np.float32(1 / max(self._moments.count, 1))

    @property
    def is_finite(self) -> bool:
        return self._finite and bool(np.isfinite(self.moments).all())


def bytes_of(contraction: Contraction) -> int:
    """Returns the size of the contraction's statistics in bytes."""
    return contraction.groups * contraction.depth**2 * 4
