# SPDX-License-Identifier: Apache-2.0
"""Nodes that onnxruntime computes differently from the ONNX specification (seen in 1.32), and equivalent nodes that it
computes correctly.

  Resize, nearest, by sizes    source pixels are found in single precision: off by one at, or next to, ties
  Resize by scales             copies the input if its shape does not change (scales next to 1); left out
  Resize, tf_crop_and_resize   a dim that keeps its size is not cropped; without equivalent: left out
  Slice, backwards             an end of INT_MAX or more is taken for the beginning instead of the last element
"""
from __future__ import annotations

import math
from fractions import Fraction
from typing import Any, Callable, Mapping, Optional, Sequence

import numpy as np

from . import onnx_pieces

Shapes = Mapping[str, Sequence[int]]
Constants = Callable[[str], Optional[np.ndarray]]
Changes = Optional["tuple[str, dict[str, np.ndarray], list[Any]]"]
"""The deviation, constants to add, and the nodes that replace the faulty one; no nodes if there is no equivalent."""


def correct(model: Any, shapes: Shapes) -> list[str]:
    """Replaces such nodes of the top graph, or removes them with all nodes that depend on them; returns a line about
    each. shapes: of all tensors, by name."""
    from onnx import numpy_helper

    graph = model.graph
    known = {tensor.name: tensor for tensor in graph.initializer}
    known.update({node.output[0]: node.attribute[0].t for node in graph.node if node.op_type == "Constant"})

    def constant(name: str) -> np.ndarray | None:
        return numpy_helper.to_array(known[name]) if name in known and not known[name].external_data else None

    lines, nodes = [], []
    lost: set[str] = set()
    for number, node in enumerate(graph.node):
        if lost & onnx_pieces.names_read(node):
            lost.update(node.output)
            continue
        correction = _CORRECTIONS.get(node.op_type) if node.domain in ("", "ai.onnx") else None
        changes = correction(node, shapes, constant) if correction and node.input[0] in shapes else None
        if changes is None:
            nodes.append(node)
            continue
        text, constants, replacement = changes
        prefix = f"onnxruntime/{number}/"
        graph.initializer.extend(numpy_helper.from_array(array, prefix + name) for name, array in constants.items())
        for each in replacement:
            _prefix(each, constants, prefix)
        nodes += replacement
        lost.update(node.output if not replacement else ())
        how = (
            "it is compared as ONNX defines it"
            if replacement
            else "it and the nodes that depend on it are not compared"
        )
        lines.append(f"node '{node.name or node.output[0]}' ({node.op_type}): {text}; {how}")
    if lines:
        copies = [node.SerializeToString() for node in nodes]
        del graph.node[:]
        for data in copies:
            graph.node.add().ParseFromString(data)
        for number in reversed(range(len(graph.output))):
            if graph.output[number].name in lost:
                del graph.output[number]
    return lines


def _prefix(node: Any, constants: Mapping[str, np.ndarray], prefix: str) -> None:
    for names in (node.input, node.output):
        for place, name in enumerate(names):
            if name in constants or name.startswith("?"):
                names[place] = prefix + name


def _attribute(node: Any, name: str, default: Any) -> Any:
    from onnx import helper

    found = next((helper.get_attribute_value(each) for each in node.attribute if each.name == name), default)
    return found.decode() if isinstance(found, bytes) else found


def _resize(node: Any, shapes: Shapes, constant: Constants) -> Changes:
    if any(each.name in ("axes", "keep_aspect_ratio_policy") for each in node.attribute):
        return None
    inputs = [*node.input, "", "", ""]
    if _attribute(node, "coordinate_transformation_mode", "half_pixel") == "tf_crop_and_resize":
        return _cropped(node, shapes, constant(inputs[1]))
    scales, sizes = constant(inputs[2]), constant(inputs[3])
    if scales is not None and (scales != 1).any() and shapes[node.input[0]] == shapes.get(node.output[0]):
        return "onnxruntime copies the input if its shape does not change, whatever the scales", {}, []
    if _attribute(node, "mode", "nearest") != "nearest" or sizes is None:
        return None
    return _nearest(node, shapes[node.input[0]], [int(size) for size in sizes])


def _cropped(node: Any, shapes: Shapes, region: np.ndarray | None) -> Changes:
    before, after = shapes[node.input[0]], shapes.get(node.output[0], ())
    if region is None or len(region) != 2 * len(before) or len(before) != len(after):
        return None
    begins, ends = np.split(region, 2)
    kept = [begin == 0 and end == 1 for begin, end in zip(begins, ends)]
    if all(same or dim != size for same, dim, size in zip(kept, before, after)):
        return None
    return "onnxruntime does not crop a dim that keeps its size", {}, []


_PLACES: dict[str, Callable[[int, int, int], Fraction]] = {
    "half_pixel": lambda i, dim, size: Fraction((2 * i + 1) * dim, 2 * size) - Fraction(1, 2),
    "pytorch_half_pixel": lambda i, dim, size: Fraction((2 * i + 1) * dim, 2 * size) - Fraction(1, 2)
    if size > 1
    else Fraction(0),
    "asymmetric": lambda i, dim, size: Fraction(i * dim, size),
    "align_corners": lambda i, dim, size: Fraction(i * (dim - 1), size - 1) if size > 1 else Fraction(0),
}
"""The exact position in a dim of the input for output i."""
_ROUNDINGS: dict[str, Callable[[Fraction], int]] = {
    "floor": math.floor,
    "ceil": math.ceil,
    "round_prefer_floor": lambda place: math.ceil(place - Fraction(1, 2)),
    "round_prefer_ceil": lambda place: math.floor(place + Fraction(1, 2)),
}


def _nearest(node: Any, shape: Sequence[int], sizes: Sequence[int]) -> Changes:
    from onnx import helper

    place_of = _PLACES.get(_attribute(node, "coordinate_transformation_mode", "half_pixel"))
    rounding = _ROUNDINGS.get(_attribute(node, "nearest_mode", "round_prefer_floor"))
    axes = [axis for axis, (dim, size) in enumerate(zip(shape, sizes)) if dim != size]
    if place_of is None or rounding is None or not axes or len(sizes) != len(shape):
        return None
    constants, nodes, last = {}, [], node.input[0]
    for axis in axes:
        dim, size = shape[axis], sizes[axis]
        places = [min(max(rounding(place_of(i, dim, size)), 0), dim - 1) for i in range(size)]
        constants[f"places{axis}"] = np.array(places, np.int64)
        result = node.output[0] if axis == axes[-1] else f"?along{axis}"
        nodes.append(helper.make_node("Gather", [last, f"places{axis}"], [result], axis=axis))
        last = result
    return "onnxruntime finds the nearest pixels in single precision, off by one at ties", constants, nodes


def _slice(node: Any, shapes: Shapes, constant: Constants) -> Changes:
    from onnx import NodeProto

    parts = [constant(name) for name in node.input[1:]]
    if len(parts) < 4 or any(part is None for part in parts):
        return None
    _, ends, axes, steps = (np.asarray(part).astype(np.int64) for part in parts)
    far = (steps < 0) & (ends >= np.iinfo(np.int32).max)
    if not far.any():
        return None
    last = np.array([shapes[node.input[0]][int(axis)] - 1 for axis in axes], np.int64)
    sliced = NodeProto.FromString(node.SerializeToString())
    sliced.input[2] = "ends"
    ends = np.where(far, last, ends).astype(np.asarray(parts[1]).dtype)
    return "backwards, onnxruntime takes an end of INT_MAX for the beginning", {"ends": ends}, [sliced]


_CORRECTIONS: dict[str, Callable[[Any, Shapes, Constants], Changes]] = {"Resize": _resize, "Slice": _slice}
