# SPDX-License-Identifier: Apache-2.0
"""Makes networks of fixed sizes open: names dims of inputs, and rewrites nodes that state sizes as numbers."""
from __future__ import annotations

import random
import re
from typing import Callable, Mapping, NamedTuple

import numpy as np
import onnx
from onnx import helper, numpy_helper, shape_inference

ELEMENTWISE = ("Add", "Sub", "Mul", "Div", "Max", "Min")
# Sizes around the tiles of kernels, primes, and the smallest ones.
INTERESTING = (0, 1, 2, 3, 4, 5, 7, 8, 11, 13, 15, 16, 17, 19, 23, 31, 32, 33, 37, 47, 48, 49, 61, 63, 64, 65)

Arrays = Mapping[str, np.ndarray]
Shape = tuple[int, ...]
Replace = Callable[[onnx.NodeProto, int, np.ndarray], None]  # a node's operand by a constant


class Symbol(NamedTuple):
    own: int  # size in the network that was opened
    least: int
    most: int
    step: int = 1  # all sizes are multiples of it
    likely: int | None = None

    def narrowed(self) -> Symbol:
        """Returns the range without sizes below `own`, or `own` alone if there are none."""
        return Symbol(self.own, self.own, self.most if self.least < self.own else self.own, self.step)

    def sizes(self) -> range:
        return range(self.least, self.most + 1, self.step)

    def text(self) -> str:
        step = f":{self.step}" if self.step > 1 else ""
        return f"{self.least}..{self.most}{step}" + ("" if self.likely is None else f"~{self.likely}")


class OpenNetwork:
    """`model` has open dims, whose ranges are `symbols`; `inputs` are those of the network's own sizes."""

    def __init__(self, model: onnx.ModelProto, inputs: Arrays, seed: int) -> None:
        self.model, self.inputs, self.rng = model, inputs, random.Random(seed)
        self.more = random.Random(seed + 1)  # what was added later, so that a seed keeps its network
        self.later = random.Random(seed + 2)
        self.symbols: dict[str, Symbol] = {}
        self.axes: dict[str, dict[int, str]] = {}  # names of open dims by input
        shapes = _shapes(model)
        self._open_inputs()
        self._rewrite(shapes)
        for value in model.graph.output:
            value.type.tensor_type.ClearField("shape")
        del model.graph.value_info[:]

    def _open_inputs(self) -> None:
        weights = {name for node in self.model.graph.node for name in node.input[1:] if node.op_type == "Conv"}
        opens_extents, opens_channels = self.rng.random() < 0.4, self.more.random() < 0.12
        for value in self.model.graph.input:
            dims = value.type.tensor_type.shape.dim
            axes = [0, *range(2, len(dims))] if opens_extents or len(dims) in (3, 5) else [0]
            for axis in axes + [1] if opens_channels and len(dims) > 1 else axes:
                if dims and value.name not in weights:
                    own = dims[axis].dim_value
                    name = f"{'nchwd'[axis]}{own}"
                    self.symbols.setdefault(name, self._draw(own, axis))
                    self.axes.setdefault(value.name, {})[axis] = name
                    dims[axis].dim_param = name

    def _draw(self, own: int, axis: int) -> Symbol:
        if axis == 0:
            drawn = Symbol(own, self.rng.choice([0, 1, 1, 1, 1, 1, 1, 1]), own + self.rng.choice([1, 7, 12, 33]))
        else:
            drawn = Symbol(own, max(1, own - self.rng.choice([0, 0, 1, 8])), own + self.rng.choice([1, 5, 20]))
        return self._varied(drawn, axis)

    def _varied(self, symbol: Symbol, axis: int) -> Symbol:
        """Makes some ranges wider, multiples of a divisor, or such that a size is likely."""
        own, least, most, *_ = symbol
        kind = self.more.randrange(8)
        steps = [step for step in (2, 3, 4, 8) if own % step == 0]
        if kind == 0 and steps:
            step = self.more.choice(steps)
            return Symbol(own, -(-least // step) * step, own + step * self.more.choice([1, 2, 5]), step)
        if kind == 1:
            return Symbol(own, least, most, 1, self.more.randint(least, most))
        if kind == 2 and axis != 0:
            return Symbol(own, self.more.choice([0, 1, 1]), own + self.more.choice([29, 60]))
        return symbol

    def _rewrite(self, shapes: dict[str, Shape]) -> None:
        graph = self.model.graph
        constants = {tensor.name: numpy_helper.to_array(tensor) for tensor in graph.initializer}

        def replace(node: onnx.NodeProto, i: int, array: np.ndarray) -> None:
            name = f"open{len(graph.initializer)}"
            graph.initializer.append(numpy_helper.from_array(array, name))
            node.input[i] = name

        for node in list(graph.node):
            x = shapes.get(node.input[0], ())
            if node.op_type == "Reshape" and node.input[1] in constants:
                self._reshape(node, x, constants[node.input[1]], replace)
            elif node.op_type == "Resize" and len(node.input) == 4:
                scales = constants[node.input[3]] / np.array(x)
                replace(node, 2, scales.astype(np.float32))
                del node.input[3]
                if self.later.random() < 0.5:
                    next(a for a in node.attribute if a.name == "mode").s = b"linear"
            elif node.op_type in ELEMENTWISE:
                for i, name in enumerate(node.input):
                    if name in constants and len(constants[name].shape) > 1:
                        replace(node, i, self._without_open_dims(constants[name]))

    def _reshape(self, node: onnx.NodeProto, x: Shape, shape: np.ndarray, replace: Replace) -> None:
        """Replaces the shape by one with 0 for dims that stay, and with one -1. Dims at the end that stay, but at other
        positions, are read from the tensor's shape, as exporters do."""
        target = self._target(x, shape)
        count = 0
        while count < min(len(x), len(target)) and target[-1 - count] > 0 and x[-1 - count] == target[-1 - count]:
            count += 1
        others = [i for i, size in enumerate(target[: len(target) - count]) if size > 0]
        if count == 0 or not others or len(x) == len(target):
            others = [i for i, size in enumerate(target) if size > 0]
            if others:
                target[self.rng.choice(others)] = -1
            replace(node, 1, target)
            return
        target[self.rng.choice(others)] = -1
        replace(node, 1, target[:-count])
        name = f"{node.name}_shape"
        nodes = [
            helper.make_node("Shape", [node.input[0]], [f"{name}_all"], start=len(x) - count, name=f"{name}_all"),
            helper.make_node("Concat", [node.input[1], f"{name}_all"], [name], axis=0, name=name),
        ]
        at = list(self.model.graph.node).index(node)
        for new in reversed(nodes):
            self.model.graph.node.insert(at, new)
        node = self.model.graph.node[at + len(nodes)]
        node.input[1] = name

    @staticmethod
    def _target(x: Shape, target: np.ndarray) -> np.ndarray:
        """Returns the shape with 0 for dims that stay."""
        return np.array([0 if i < len(x) and x[i] == size else int(size) for i, size in enumerate(target)], np.int64)

    def _without_open_dims(self, array: np.ndarray) -> np.ndarray:
        """Keeps one element of the dims of a constant that may be those of open ones."""
        sizes = {symbol.own for symbol in self.symbols.values()}
        return array[
            tuple(slice(0, 1) if size in sizes and i != 1 else slice(None) for i, size in enumerate(array.shape))
        ]

    def ranges(self) -> str:
        return ",".join(f"{name}={each.text()}" for name, each in self.symbols.items())

    def narrow(self, message: str) -> bool:
        """Narrows the range of a dim that the message of a rejection names. Returns false if there is none."""
        named = re.search("narrow or fix ([^;]*) with --dims", message)
        for name in named[1].split(", ") if named else ():
            known = next((own for own in self.symbols if name.split("/")[0] == own), None)
            if known and len(self.symbols[known].sizes()) > 1:
                self.symbols[known] = self.symbols[known].narrowed()
                return True
        return False

    def draw_sizes(self) -> list[dict[str, int]]:
        """Returns the network's own sizes, the smallest, the largest, and others."""
        sizes = [{name: each[i] for name, each in self.symbols.items()} for i in range(3)]
        for _ in range(2):
            sizes.append(
                {
                    name: self.rng.choice([n for n in INTERESTING if n in each.sizes()] or [each.most])
                    for name, each in self.symbols.items()
                }
            )
        return [each for i, each in enumerate(sizes) if each not in sizes[:i]]

    def inputs_at(self, sizes: Mapping[str, int]) -> dict[str, np.ndarray]:
        """Returns inputs of the given sizes."""
        result, rng = {}, np.random.default_rng(sum(sizes.values()))
        for name, array in self.inputs.items():
            shape = [
                sizes[self.axes[name][i]] if i in self.axes.get(name, ()) else n for i, n in enumerate(array.shape)
            ]
            result[name] = rng.standard_normal(shape).astype(array.dtype)
        return result


def _shapes(model: onnx.ModelProto) -> dict[str, Shape]:
    graph = shape_inference.infer_shapes(model, data_prop=True).graph
    values = (*graph.input, *graph.value_info, *graph.output)
    return {value.name: tuple(dim.dim_value for dim in value.type.tensor_type.shape.dim) for value in values}
