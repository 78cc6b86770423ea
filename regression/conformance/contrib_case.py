# SPDX-License-Identifier: Apache-2.0
"""A model of one operator (random_contrib.py) and the random choices that its families make."""
from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Callable

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

MS, ML = "com.microsoft", "ai.onnx.ml"
Rng = np.random.Generator


@dataclass
class Case:
    """One node with its operands: `fed` at run time, `constants` in the file."""

    op: str
    domain: str = MS
    opset: int = 21
    fed: dict[str, np.ndarray] = field(default_factory=dict)
    constants: dict[str, Any] = field(default_factory=dict)
    names: list[str] = field(default_factory=list)  # the node's inputs in order, "" for those left out
    attributes: dict[str, Any] = field(default_factory=dict)
    outputs: int = 1
    compared: int = 9  # number of outputs that are compared
    tolerance: float = 2e-4
    reference: Callable[[], list[np.ndarray]] | None = None  # computes the outputs if onnxruntime rejects the case

    def add(self, name: str, array: Any, constant: bool = False) -> None:
        (self.constants if constant else self.fed)[name] = array
        self.names.append(name)

    def skip(self) -> None:
        self.names.append("")

    def model(self) -> onnx.ModelProto:
        while self.names and not self.names[-1]:
            self.names.pop()
        outputs = [f"out{i}" for i in range(self.outputs)]
        node = helper.make_node(self.op, self.names, outputs, name="node", domain=self.domain)
        for name, value in self.attributes.items():
            node.attribute.append(
                value if isinstance(value, onnx.AttributeProto) else helper.make_attribute(name, value)
            )
        inputs = [
            helper.make_tensor_value_info(n, onnx.mapping.NP_TYPE_TO_TENSOR_TYPE[a.dtype], a.shape)
            for n, a in self.fed.items()
        ]
        tensors = [
            c if isinstance(c, TensorProto) else numpy_helper.from_array(np.asarray(c), n)
            for n, c in self.constants.items()
        ]
        graph = helper.make_graph([node], "g", inputs, [onnx.ValueInfoProto(name=name) for name in outputs], tensors)
        opsets = [helper.make_opsetid("", self.opset)]
        if self.domain:
            opsets.append(helper.make_opsetid(self.domain, 1 if self.domain == MS else 3))
        return helper.make_model(graph, opset_imports=opsets, ir_version=10)


def floats(rng: Rng, *shape: int) -> np.ndarray:
    return rng.standard_normal(shape).astype(np.float32)


def maybe(rng: Rng, chance: float = 0.5) -> bool:
    return bool(rng.random() < chance)


def pick(rng: Rng, *values: Any) -> Any:
    return values[int(rng.integers(len(values)))]
