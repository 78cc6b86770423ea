# SPDX-License-Identifier: Apache-2.0
"""The cost of an op in each precision; the only place that decides which of two precisions is cheaper.

An op takes max(arithmetic, memory) as in a roofline: its multiplications at the chip's rate for the type, and the bytes
that it reads and writes. Only ratios matter to a search. The compiler reports the chip's rates and the width of each
type.
"""
from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Mapping, Sequence

from ..targets import targets


@dataclass(frozen=True)
class Rates:
    """Rates of a chip. products: multiplications per nanosecond by type. bytes: memory traffic per nanosecond."""

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
    """Returns the ops in the compiler's result."""
    return [Op(**entry) for entry in quantization["ops"]]  # type: ignore[attr-defined]


def rates_of(quantization: Mapping[str, object]) -> Rates:
    """Returns the chip's rates in the compiler's result."""
    return Rates(**quantization["rates"])  # type: ignore[arg-type]


def nanoseconds(op: Op, precision: str, rates: Rates) -> float:
    """Returns the estimated time of an op. A type without a rate costs as much as F32."""
    known = targets().precision(precision if precision in rates.products else "F32")
    moved = ((op.reads + op.writes) * known.activation_bits + op.weights * known.weight_bits) / 8
    return max(op.products / rates.products[known.name], moved / rates.bytes)


def share_of_f32(quantization: Mapping[str, object]) -> float:
    """Returns the estimated time of the multiplications in the compiler's result, relative to F32; NaN if there are
    none. Second products of residual weights count at the rate of INT16, as their operands may be i16. Traffic is left
    out: caches hide most of what 16-bit results save, and the casts cost part of the rest."""
    ops, rates = ops_of(quantization), rates_of(quantization).products
    floats = sum(op.products for op in ops) / rates["F32"]
    second: int = quantization["second_products"]  # type: ignore[assignment]
    times = [op.products / rates.get(targets().precision(op.type).name, rates["F32"]) for op in ops]
    time = sum(times) + second / rates.get("INT16", rates["F32"])
    return round(time / floats, 4) if floats else math.nan


def total(ops: Sequence[Op], rates: Rates, types: Mapping[str, str]) -> float:
    """Returns the estimated time of all ops. types: by name, where they differ from the ops'."""
    return sum(nanoseconds(op, types.get(op.name, op.type), rates) for op in ops)
