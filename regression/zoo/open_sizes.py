# SPDX-License-Identifier: Apache-2.0
"""Sizes that a network's inputs may leave open. Does not need torch."""
from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Mapping, Sequence

from registry import Input

BATCH = "batch"
LEVELS = ("sizes", "lengths", "batch")
"""What is open: heights, widths, lengths and the batch; the lengths of integers and the batch; the batch. A network
that holds only for one size of picture, e.g. because of learned positions, is exported at a later level."""
Shapes = Mapping[str, tuple[int, ...]]


@dataclass(frozen=True)
class Symbol:
    """An open dim. own: its size in the network's description. exported: its size while the network is exported."""

    own: int
    least: int
    most: int
    divisor: int
    exported: int
    tried: tuple[int, ...]

    def range(self) -> str:
        return f"{self.least}..{self.most}" + (f":{self.divisor}" if self.divisor > 1 else "")


def batch() -> Symbol:
    return Symbol(1, 1, 4, 1, 2, (1, 2, 4, 3))


def tokens(own: int) -> Symbol:
    """Returns the length of a text."""
    return Symbol(own, 1, 2 * own, 1, own, (own, max(2, own // 3), 2 * own, 1))


def pixels(own: int, axis: int) -> Symbol:
    """Returns a height or a width, which are never equal."""
    step = 32 if own % 32 == 0 else own
    tried = (own, own + step, own + 2 * step, own) if axis % 2 == 0 else (own + step, own + 2 * step, own, own)
    return Symbol(own, own, own + 2 * step, step, own + (axis % 2) * step, tried)


def samples(own: int) -> Symbol:
    """Returns the length of a signal."""
    step = max(1, own // 4)
    return Symbol(own, own, own + 2 * step, step, own + step, (own, own + step, own + 2 * step, own))


class OpenInputs:
    """The open dims of a network's inputs at a level: `axes` names them by input and axis."""

    def __init__(self, inputs: Mapping[str, Input], level: str) -> None:
        self.inputs = inputs
        self.symbols: dict[str, Symbol] = {}
        self.axes: dict[str, dict[int, str]] = {name: {} for name in inputs}
        for name, each in inputs.items():
            for axis in [axis for axis, size in enumerate(each.shape[:2]) if size == 1][:1]:  # 1 in states
                self._open(name, axis, BATCH, batch())
            if level != "batch":
                self._open_sizes(name, each, pictures=level == "sizes")

    def _open(self, name: str, axis: int, label: str, symbol: Symbol) -> None:
        self.symbols.setdefault(label, symbol)
        self.axes[name][axis] = label

    def _open_sizes(self, name: str, each: Input, pictures: bool) -> None:
        rank, shape = len(each.shape), each.shape
        if each.kind not in ("normal", "uniform"):
            if rank == 2:
                self._open(name, 1, f"length{shape[1]}", tokens(shape[1]))
        elif pictures and rank in (4, 5):
            for axis in (rank - 2, rank - 1):
                self._open(name, axis, f"{'hw'[axis - rank + 2]}{shape[axis]}", pixels(shape[axis], axis - rank))
        elif pictures and rank in (2, 3):
            axis = max(range(1, rank), key=lambda axis: shape[axis])
            self._open(name, axis, f"length{shape[axis]}", samples(shape[axis]))

    def shapes(self, sizes: Mapping[str, int]) -> Shapes:
        """Returns the shapes of the inputs for sizes of the open dims."""
        return {
            name: tuple(
                sizes[axes[axis]] if axis in axes else size for axis, size in enumerate(self.inputs[name].shape)
            )
            for name, axes in self.axes.items()
        }

    def exported(self) -> dict[str, Input]:
        """Returns the inputs at which the network is exported."""
        shapes = self.shapes({label: symbol.exported for label, symbol in self.symbols.items()})
        return {name: replace(each, shape=shapes[name]) for name, each in self.inputs.items()}

    def tried(self) -> list[Shapes]:
        """Returns the shapes at which the network is run."""
        count = len(batch().tried)
        return [self.shapes({label: symbol.tried[i] for label, symbol in self.symbols.items()}) for i in range(count)]


def levels(inputs: Mapping[str, Input]) -> list[OpenInputs]:
    """Returns the levels that differ, with most open dims first."""
    result: list[OpenInputs] = []
    for level in LEVELS:
        inputs_of_level = OpenInputs(inputs, level)
        if inputs_of_level.symbols and all(inputs_of_level.axes != other.axes for other in result):
            result.append(inputs_of_level)
    return result


def named_ranges(opened: OpenInputs, names: Mapping[str, Sequence[str]]) -> str:
    """Returns the value of --dims for a file whose inputs have dims of these names; "" means fixed or unnamed."""
    ranges: dict[str, str] = {}
    for name, axes in opened.axes.items():
        for axis, label in axes.items():
            if name in names:
                ranges.setdefault(names[name][axis] or f"{name}.{axis}", opened.symbols[label].range())
    return ",".join(f"{name}={text}" for name, text in ranges.items())
