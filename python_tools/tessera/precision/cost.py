# SPDX-License-Identifier: Apache-2.0
"""What an op costs on a chip in each precision: the one place that says which of two precisions is cheaper.

An op takes max(arithmetic, memory), as a roofline has it: its multiplications at the rate of the type on one core, and
the bytes it reads and writes. Only ratios matter to a search. The rates are those of the kernels' inner loops
(docs/numerics.md tells which instructions these are); what a chip lacks costs what it is emulated with. A new chip is
a line here.
"""
from __future__ import annotations

from dataclasses import dataclass
from typing import Mapping, Sequence

BYTES = {"INT8": 1, "INT16": 2, "BF16": 2, "F16": 2, "F32": 4}
"""Of one activation. Weights of INT16 ops are int8."""
WEIGHT_BYTES = {**BYTES, "INT16": 1}


@dataclass(frozen=True)
class Chip:
    """macs: multiplications a nanosecond by type; bytes: of memory traffic a nanosecond."""

    macs: Mapping[str, float]
    bytes: float


CHIPS = {
    # vpdpbusd, vpdpwssd, vfmadd on 512 bits at about 4 GHz.
    "x86-avx512": Chip({"INT8": 480, "INT16": 240, "BF16": 240, "F16": 110, "F32": 120}, 20),
    # vpmaddwd of bytes widened to words; fma.
    "x86-avx2": Chip({"INT8": 100, "INT16": 110, "BF16": 55, "F16": 55, "F32": 60}, 20),
    # pmaddwd; mulps and addps.
    "x86-v2": Chip({"INT8": 45, "INT16": 50, "BF16": 14, "F16": 14, "F32": 15}, 15),
}


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


def nanoseconds(op: Op, precision: str, chip: str) -> float:
    """Estimated time of an op on one core. chip: as the compiler names it. A type without rates costs what F32 does."""
    rates, known = CHIPS[chip], precision if precision in BYTES else "F32"
    moved = (op.reads + op.writes) * BYTES[known] + op.weights * WEIGHT_BYTES[known]
    return max(op.products / rates.macs[known], moved / rates.bytes)


def total(ops: Sequence[Op], chip: str, types: Mapping[str, str]) -> float:
    """Of all ops; types: by name where they differ from what the op has."""
    return sum(nanoseconds(op, types.get(op.name, op.type), chip) for op in ops)
