# SPDX-License-Identifier: Apache-2.0
"""Finds which layer of a report reads the results of which other layer, by the bytes that steps and commands touch in
execution order."""
from __future__ import annotations

from typing import Any, Iterable, Mapping, Sequence

Rows = Sequence[int]
CALLS = {"CallSubnetDef": ("subnet",), "BranchDef": ("then_subnet", "else_subnet"), "LoopDef": ("body",)}
"""Steps that call other subnets."""


class Memories:
    """The last writer of each byte."""

    def __init__(self, tensors: Sequence[Mapping[str, Any]]) -> None:
        self._tensors = tensors
        self._written: dict[tuple[str, int], list[tuple[int, int, Rows]]] = {}

    def _place(self, slot: int) -> tuple[tuple[str, int], int, int]:
        tensor = self._tensors[slot]
        begin = tensor["offset"]
        return (tensor["place"], tensor["place_index"]), begin, begin + max(1, tensor["bytes"])

    def write(self, slot: int, rows: Rows) -> None:
        place, begin, end = self._place(slot)
        left: list[tuple[int, int, Rows]] = []
        for old_begin, old_end, old in self._written.get(place, []):
            if old_begin < begin:
                left.append((old_begin, min(old_end, begin), old))
            if end < old_end:
                left.append((max(old_begin, end), old_end, old))
        self._written[place] = [*left, (begin, end, rows)]

    def read(self, slot: int) -> Iterable[int]:
        """Yields the rows that wrote these bytes; none for inputs and constants."""
        place, begin, end = self._place(slot)
        for old_begin, old_end, rows in self._written.get(place, []):
            if old_begin < end and begin < old_end:
                yield from rows


def of_stage(
    stage: Mapping[str, Any], perf: Mapping[str, Any] | None, row_of_step: Mapping[tuple[int, int], int]
) -> list[list[int]]:
    """Returns pairs [from, to] of rows, each once. perf: the estimate of a chip that runs command streams, whose
    layers are the first rows. row_of_step: row by (subnet number, step number)."""
    layers = list(enumerate(perf["layers"])) if perf else []
    row_of_layer = {layer["layer"]: row for row, layer in layers}
    edges = {(row_of_layer[each], row) for row, layer in layers for each in layer["reads_layers"]}
    memories, streams = Memories(stage.get("tensors", [])), 0
    for subnet, number, step in _in_order(stage):
        op, written = step.get("op", {}), step.get("writes", [])
        if perf and step["op_type"].startswith("RunStream"):
            mine = [(row, layer) for row, layer in layers if layer["stream"] == streams]
            streams += 1
            buffers = [*op["inputs"], *op["outputs"]] if "inputs" in op else [*stage["inputs"], *stage["outputs"]]
            for row, layer in mine:
                edges |= {(source, row) for k in layer["reads_buffers"] for source in memories.read(buffers[k])}
            for k, slot in enumerate(buffers):
                if rows := [row for row, layer in mine if k in layer["writes_buffers"]]:
                    memories.write(slot, rows)
        elif step["op_type"] == "CopyDef":
            memories.write(op["to"], list(memories.read(op["from"])))
        elif (subnet, number) in row_of_step:
            row = row_of_step[(subnet, number)]
            reads = [slot for slot in op.get("args", []) if slot not in written]
            edges |= {(source, row) for slot in reads for source in memories.read(slot)}
            for slot in written:
                memories.write(slot, [row])
    return [list(edge) for edge in sorted(edges) if edge[0] != edge[1]]


def _in_order(stage: Mapping[str, Any]) -> Iterable[tuple[int, int, Mapping[str, Any]]]:
    """Yields every step in execution order; the steps of a called subnet are placed at the call."""
    subnets = stage.get("subnets", [])

    def walk(number: int) -> Iterable[tuple[int, int, Mapping[str, Any]]]:
        for at, step in enumerate(subnets[number].get("plan", [])):
            called = [step["op"].get(key, -1) for key in CALLS.get(step["op_type"], ())]
            for callee in called:
                if callee >= 0:
                    yield from walk(callee)
            if not called:
                yield number, at, step

    if subnets:
        yield from walk(0)
