# SPDX-License-Identifier: Apache-2.0
"""Properties that an .onnx file leaves open about its tensors, so that two correct engines may differ."""
from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from .onnx_runner import load_model

_ROUNDS_ACTIVATIONS = ("DynamicQuantizeLSTM",)
"""Ops whose activations onnxruntime rounds to 8 bits and Tessera keeps in float."""


@dataclass(frozen=True)
class Freedom:
    """Freedom of the implementation. unordered: tensors with any order along the given axis, i.e. results of TopK with
    sorted = 0. coarse: tensors that may be computed from rounded activations."""

    unordered: dict[str, int] = field(default_factory=dict)
    coarse: frozenset[str] = frozenset()

    @property
    def tensors(self) -> frozenset[str]:
        return self.coarse.union(self.unordered)


def freedom_of(path: str | Path) -> Freedom:
    """Inspects the nodes of the outer graph; an unreadable file leaves nothing open."""
    model = load_model(Path(path))
    unordered: dict[str, int] = {}
    coarse: set[str] = set()
    for node in model.graph.node if model else ():
        numbers = {attribute.name: attribute.i for attribute in node.attribute}
        if node.op_type == "TopK" and numbers.get("sorted", 1) == 0:
            unordered.update(dict.fromkeys(node.output, numbers.get("axis", -1)))
        if node.op_type in _ROUNDS_ACTIVATIONS:
            coarse.update(node.output)
    return Freedom(unordered, frozenset(coarse))
