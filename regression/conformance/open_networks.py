# SPDX-License-Identifier: Apache-2.0
"""Makes networks of fixed sizes open: names dims of inputs, and rewrites nodes that state sizes as numbers."""
from __future__ import annotations

import random
from typing import Mapping, NamedTuple

import numpy as np
import onnx
from onnx import helper, numpy_helper, shape_inference

ELEMENTWISE = ("Add", "Sub", "Mul", "Div", "Max", "Min")
# Sizes around the tiles of kernels, primes, and the smallest ones.
INTERESTING = (0, 1, 2, 3, 4, 5, 7, 8, 11, 13, 15, 16, 17, 19, 23, 31, 32, 33, 37)

Arrays = Mapping[str, np.ndarray]
Shape = tuple[int, ...]


class Symbol(NamedTuple):
    own: int  # size in the network that was opened
    least: int
    most: int


class OpenNetwork:
    """`model` has open dims, whose ranges are `symbols`; `inputs` are those of the network's own sizes."""

    def __init__(self, model: onnx.ModelProto, inputs: Arrays, seed: int) -> None:
        self.model, self.inputs, self.rng = model, inputs, random.Random(seed)
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
        opens_images = self.rng.random() < 0.4
        for value in self.model.graph.input:
            dims = value.type.tensor_type.shape.dim
            for axis in (0, 2, 3) if opens_images and len(dims) == 4 else (0,):
                if dims and value.name not in weights:
                    own = dims[axis].dim_value
                    name = f"{'nchw'[axis]}{own}"
                    self.symbols.setdefault(name, self._draw(own, axis))
                    self.axes.setdefault(value.name, {})[axis] = name
                    dims[axis].dim_param = name

    def _draw(self, own: int, axis: int) -> Symbol:
        if axis == 0:
            return Symbol(own, self.rng.choice([0, 1, 1, 1, 1, 1, 1, 1]), own + self.rng.choice([1, 7, 12, 33]))
        return Symbol(own, max(1, own - self.rng.choice([0, 0, 1, 8])), own + self.rng.choice([1, 5, 20]))

    def _rewrite(self, shapes: dict[str, Shape]) -> None:
        graph = self.model.graph
        constants = {tensor.name: numpy_helper.to_array(tensor) for tensor in graph.initializer}

        def replace(node: onnx.NodeProto, i: int, array: np.ndarray) -> None:
            name = f"open{len(graph.initializer)}"
            graph.initializer.append(numpy_helper.from_array(array, name))
            node.input[i] = name

        for node in graph.node:
            x = shapes.get(node.input[0], ())
            if node.op_type == "Reshape" and node.input[1] in constants:
                replace(node, 1, self._target(x, constants[node.input[1]]))
            elif node.op_type == "Resize" and len(node.input) == 4:
                scales = constants[node.input[3]] / np.array(x)
                replace(node, 2, scales.astype(np.float32))
                del node.input[3]
            elif node.op_type in ELEMENTWISE:
                for i, name in enumerate(node.input):
                    if name in constants and len(constants[name].shape) > 1:
                        replace(node, i, self._without_open_dims(constants[name]))

    def _target(self, x: Shape, target: np.ndarray) -> np.ndarray:
        """Returns the shape with 0 for dims that stay, and with one -1."""
        result = [0 if i < len(x) and x[i] == size else int(size) for i, size in enumerate(target)]
        others = [i for i, size in enumerate(result) if size > 0]
        if others:
            result[self.rng.choice(others)] = -1
        return np.array(result, np.int64)

    def _without_open_dims(self, array: np.ndarray) -> np.ndarray:
        """Keeps one element of the dims of a constant that may be those of open ones."""
        sizes = {symbol.own for symbol in self.symbols.values()}
        return array[
            tuple(slice(0, 1) if size in sizes and i != 1 else slice(None) for i, size in enumerate(array.shape))
        ]

    def ranges(self) -> str:
        return ",".join(f"{name}={each.least}..{each.most}" for name, each in self.symbols.items())

    def draw_sizes(self) -> list[dict[str, int]]:
        """Returns the network's own sizes, the smallest, the largest, and others."""
        sizes = [{name: each[i] for name, each in self.symbols.items()} for i in range(3)]
        for _ in range(2):
            sizes.append(
                {
                    name: self.rng.choice([n for n in INTERESTING if each.least <= n <= each.most] or [each.most])
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
