# SPDX-License-Identifier: Apache-2.0
"""A random network that grows step by step: its nodes, values and the choice of its outputs."""
from __future__ import annotations

import random
from typing import Callable, Iterable, Sequence

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper


MAX_ELEMENTS = 60_000
Shape = tuple[int, ...]


class Network:
    """A growing ONNX graph; `values` are its f32 tensors by name."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.array_rng = np.random.default_rng(seed)
        self.nodes: list[onnx.NodeProto] = []
        self.initializers: list[onnx.TensorProto] = []
        self.inputs: dict[str, np.ndarray] = {}
        self.values: dict[str, Shape] = {}

    def add_input(self, shape: Shape) -> None:
        name = f"x{len(self.inputs)}"
        self.inputs[name] = self.array_rng.standard_normal(shape).astype(np.float32)
        self.values[name] = shape

    def constant(self, array: np.ndarray) -> str:
        name = f"c{len(self.initializers)}"
        self.initializers.append(numpy_helper.from_array(np.ascontiguousarray(array).reshape(array.shape), name))
        return name

    def weights(self, *shape: int, scale: float = 1.0, offset: float = 0.0) -> str:
        return self.constant((self.array_rng.standard_normal(shape) * scale + offset).astype(np.float32))

    def ints(self, *values: int) -> str:
        return self.constant(np.array(values, np.int64))

    def node(self, op: str, inputs: Sequence[str], shapes: Sequence[Shape], **attributes: object) -> list[str]:
        outputs = [f"t{len(self.nodes)}_{i}" for i in range(len(shapes))]
        self.nodes.append(helper.make_node(op, list(inputs), outputs, name=f"n{len(self.nodes)}_{op}", **attributes))
        self.values.update(zip(outputs, shapes))
        return outputs

    def pick(self, fits: Callable[[Shape], bool] = lambda shape: True) -> str | None:
        """Picks a value, recent ones more often."""
        found = [name for name, shape in self.values.items() if fits(shape)]
        return found[max(self.rng.randrange(len(found)), self.rng.randrange(len(found)))] if found else None

    def pick_image(self) -> str | None:
        return self.pick(lambda shape: len(shape) == 4)


def positions(size: int, kernel: int, stride: int, pads: tuple[int, int], dilation: int = 1) -> int:
    """Returns how many positions a window has along one axis."""
    return (size + sum(pads) - ((kernel - 1) * dilation + 1)) // stride + 1


def grow(net: Network, ops: Sequence[Callable[[Network], bool]], lengths: tuple[int, int], steps: int | None) -> None:
    """Adds one or two inputs, then a number of `ops` drawn from `lengths`, or only the first `steps` of them."""
    r = net.rng
    base = (r.choice([1, 1, 2]), r.randint(1, 67), r.randint(1, 13), r.randint(1, 13))
    net.add_input(base)
    if r.random() < 0.5:
        net.add_input(r.choice([base, (base[0], r.randint(1, 67), *base[2:]), (r.randint(1, 20), r.randint(1, 67))]))
    length, done = r.randint(*lengths), 0
    while done < (length if steps is None else min(steps, length)):
        done += r.choice(ops)(net)


def choose_outputs(net: Network, seed: int, names: Iterable[str]) -> list[str]:
    """Returns the values of `names` that nothing reads, and sometimes one that is read as well."""
    used = {name for node in net.nodes for name in node.input}
    return [name for name in names if name not in used or random.Random(f"{seed}{name}").random() < 0.15]


def finish(net: Network, seed: int, outputs: Sequence[tuple[str, int, Shape]]) -> onnx.ModelProto:
    """Returns the network as a model. outputs: name, ONNX element type, shape."""
    graph = helper.make_graph(
        net.nodes,
        f"seed{seed}",
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, a.shape) for name, a in net.inputs.items()],
        [helper.make_tensor_value_info(*output) for output in outputs],
        net.initializers,
    )
    return model_of(graph)


def model_of(graph: onnx.GraphProto) -> onnx.ModelProto:
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    model.ir_version = 8
    return model
