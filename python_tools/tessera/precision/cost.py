# SPDX-License-Identifier: Apache-2.0
"""What an op costs in each precision: the one place that says which of two precisions is cheaper.

An op takes max(arithmetic, memory), as a roofline has it: its multiplications at the chip's rate of the type, and the
bytes it reads and writes. Only ratios matter to a search. The compiler tells a chip's rates and how wide each type is.
"""
from __future__ import annotations

from dataclasses import dataclass
from typing import Mapping, Sequence

from ..targets import targets


@dataclass(frozen=True)
class Rates:
    """Of a chip. products: multiplications a nanosecond by type; bytes: of memory traffic a nanosecond."""

    products: Mapping[str, float]
    bytes: float


@dataclass(frozen=True)
class Op:
    """One op as `tessera-compile deploy` lists it."""

    name: str
    op: str
    type: str
    moves: bool
    products: int
    weights: int
    reads: int
    writes: int


def ops_of(quantization: Mapping[str, object]) -> list[Op]:
    """From the compiler's result."""
    return [Op(**entry) for entry in quantization["ops"]]  # type: ignore[attr-defined]


def rates_of(quantization: Mapping[str, object]) -> Rates:
    """Of the chip, from the same."""
    return Rates(**quantization["rates"])  # type: ignore[arg-type]


def nanoseconds(op: Op, precision: str, rates: Rates) -> float:
    """Estimated time of an op. A type without a rate costs what F32 does."""
    known = targets().precision(precision if precision in rates.products else "F32")
    moved = ((op.reads + op.writes) * known.activation_bits + op.weights * known.weight_bits) / 8
    return max(op.products / rates.products[known.name], moved / rates.bytes)


def total(ops: Sequence[Op], rates: Rates, types: Mapping[str, str]) -> float:
    """Of all ops; types: by name where they differ from what the op has."""
    return sum(nanoseconds(op, types.get(op.name, op.type), rates) for op in ops)
