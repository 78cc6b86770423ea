# SPDX-License-Identifier: Apache-2.0
"""The time of a table's multiplications on a chip, and the ops that would be no slower in f32.

Repairs accumulate: an op that reads int16 and has expanded weights may take longer than f32, which is exact. Costs come
from the chip's arithmetic (`Target::rates`); some chips multiply f32 of 3x3 convolutions by Winograd's algorithm.
"""
from __future__ import annotations

from dataclasses import dataclass
from typing import Mapping, Sequence

import numpy as np

from ..families import HOST
from .contractions import Contraction
from .table import Table
from .trial import Tried

DEFAULT_CHIP = f"{HOST}-avx512vnni"
"""A named level, so that the table does not depend on the machine that calibrates."""
LEAST_CHANNELS = 16
"""Least channels on both sides of a convolution for which Winograd's algorithm pays."""


@dataclass(frozen=True)
class Speed:
    """Costs on one chip. chip: its name. rates: multiplications per nanosecond by type. sizes: elements of each
    tensor."""

    chip: str
    rates: Mapping[str, float]
    products: Sequence[Contraction]
    sizes: Mapping[str, float]

    @staticmethod
    def of(
        chip: str,
        rates: Mapping[str, float],
        contractions: Sequence[Contraction],
        shapes: Mapping[str, tuple[int, ...]],
    ) -> "Speed":
        sizes = {name: float(np.prod(shape)) for name, shape in shapes.items()}
        known = [contraction for contraction in contractions if contraction.name in sizes]
        return Speed(chip, rates, known, sizes)

    def in_float(self, contraction: Contraction) -> float:
        """Returns the nanoseconds of the contraction in f32."""
        rate = self.rates["F32"]
        if _takes_winograd(contraction):
            rate = max(rate, self.rates.get("WINOGRAD", 0.0))
        return self._count(contraction) / rate

    def in_table(self, contraction: Contraction, table: "Forms") -> float:
        """Returns the nanoseconds of the contraction in the precision of the table."""
        if contraction.input in table.wide:
            rate = self.rates["INT16"]
        elif contraction.input in table.narrow:
            rate = self.rates["INT8"]
        else:
            return self.in_float(contraction)
        return self._count(contraction) * (2 if contraction.name in table.split else 1) / rate

    def share_of_float(self, table: Table, tried: Tried) -> float:
        """Returns the time of all contractions relative to f32."""
        forms = Forms.of(table, tried)
        floats = sum(map(self.in_float, self.products))
        return sum(self.in_table(contraction, forms) for contraction in self.products) / floats if floats else 1.0

    def added(self, before: "Forms", after: "Forms") -> dict[str, float]:
        """Returns the time that each kind of repair adds to the contractions that it changes, relative to f32."""
        floats, found = sum(map(self.in_float, self.products)) or 1.0, dict[str, float]()
        for contraction in self.products:
            more = self.in_table(contraction, after) - self.in_table(contraction, before)
            kind = "f32" if contraction.input not in {**after.narrow, **after.wide} else "16 bits"
            kind = "residual weights" if kind == "16 bits" and contraction.name in after.split else kind
            if more:
                found[kind] = found.get(kind, 0.0) + more / floats
        return found

    def prefer_float(self, table: Table, tried: Tried) -> Table:
        """Returns the table with f32 for tensors whose readers together are no slower in it. Only tensors in 16 bits
        and tensors whose readers have expanded weights are considered, because the user asked for 8 bits."""
        forms = Forms.of(table, tried)
        chosen: set[str] = set()
        for names in forms.groups():
            readers = [contraction for contraction in self.products if contraction.input in names]
            repaired = [p for p in readers if p.input in forms.wide or p.name in forms.split]
            if repaired and sum(map(self.in_float, readers)) <= sum(self.in_table(p, forms) for p in readers):
                chosen.update(names)
        if not chosen:
            return table
        return table.in_float(chosen)

    def _count(self, contraction: Contraction) -> float:
        return self.sizes[contraction.name] * contraction.depth


@dataclass(frozen=True)
class Forms:
    """The tensors that a table's model stores in 8 and in 16 bits, with their quantisation, and the ops with expanded
    weights."""

    narrow: Mapping[str, tuple[float, int]]
    wide: Mapping[str, tuple[float, int]]
    split: frozenset[str]

    @staticmethod
    def of(table: Table, tried: Tried) -> "Forms":
        split = frozenset(entry.name for entry in table.tensors if entry.weight_terms == 2)
        return Forms(tried.narrow, tried.wide, split)

    def groups(self) -> list[list[str]]:
        """Returns groups of tensors with the same quantisation, which data movement enforces."""
        found: dict[tuple[bool, float, int], list[str]] = {}
        for forms in (self.narrow, self.wide):
            for name, form in forms.items():
                found.setdefault((forms is self.wide, *form), []).append(name)
        return list(found.values())


def _takes_winograd(contraction: Contraction) -> bool:
    return (
        contraction.kind == "conv"
        and contraction.weight.shape[2:] == (3, 3)
        and contraction.groups == 1
        and set(contraction.strides) <= {1}
        and set(contraction.dilations) <= {1}
        and min(contraction.weight.shape[:2]) >= LEAST_CHANNELS
    )
