# SPDX-License-Identifier: Apache-2.0
"""Changes one thing in a graph: an attribute, a constant, an operand, an operator, a reader, a dim."""
from __future__ import annotations

import copy
from typing import Callable

import numpy as np
import onnx
from near_miss_case import Case
from onnx import helper, numpy_helper

Values = dict[str, np.ndarray]
Change = Callable[[Case, Values], str]
"""A function that changes the case in place and returns a description, "" if the draw does not fit. Values: all tensors
before the change."""

SIBLINGS = [
    ("Add", "Sub", "Mul", "Div", "Max", "Min"),
    ("ReduceMean", "ReduceMax", "ReduceMin", "ReduceL2", "ReduceSumSquare"),
    ("Sqrt", "Reciprocal", "Exp", "Neg", "Abs"),
    ("Relu", "Sigmoid", "Tanh", "Erf", "Softplus", "HardSwish"),
    ("Softmax", "LogSoftmax"),
    ("Cos", "Sin"),
    ("MaxPool", "AveragePool"),
    ("GlobalAveragePool", "GlobalMaxPool"),
]
WORDS = [
    ("constant", "edge", "reflect"),
    ("nearest", "linear"),
    ("asymmetric", "half_pixel", "align_corners", "pytorch_half_pixel"),
    ("floor", "ceil", "round_prefer_floor", "round_prefer_ceil"),
    ("DCR", "CRD"),
]


def _ints_nearby(case: Case, values: list[int]) -> list[int]:
    """Returns a list of integers with one entry changed, exchanged, dropped or added."""
    r, values = case.rng, list(values)
    form = r.choice(["step", "step", "exchange", "drop", "add"]) if values else "add"
    i = r.randrange(max(len(values), 1))
    if form == "step":
        values[i] += r.choice([1, -1, -values[i], 2])
    elif form == "exchange":
        j = r.randrange(len(values))
        values[i], values[j] = values[j], values[i]
    elif form == "drop":
        del values[i]
    else:
        values.insert(i, r.choice([0, 1, -1, 2, -2]))
    return values


def change_attribute(case: Case, values: Values) -> str:
    nodes = [node for node in case.nodes if node.attribute]
    if not nodes:
        return ""
    node = case.rng.choice(nodes)
    attribute = case.rng.choice(node.attribute)
    before = helper.get_attribute_value(attribute)
    if attribute.type == onnx.AttributeProto.INT:
        is_flag = attribute.name in ("keepdims", "transA", "transB", "count_include_pad")
        after: object = 1 - before if is_flag else case.rng.choice([before + 1, before - 1, 1 - before])
    elif attribute.type == onnx.AttributeProto.INTS:
        after = _ints_nearby(case, list(before))
    elif attribute.type == onnx.AttributeProto.FLOAT:
        after = before * case.rng.choice([1.001, 1.1, -1, 0, 100])
    else:
        word = before.decode()
        others = [other for words in WORDS if word in words for other in words if other != word]
        if not others:
            return ""
        after = case.rng.choice(others)
    attribute.CopyFrom(helper.make_attribute(attribute.name, after))
    return f"{node.op_type}.{attribute.name} {before!r} -> {after!r}"


def add_keepdims(case: Case, values: Values) -> str:
    nodes = [node for node in case.nodes if node.op_type.startswith("Reduce")]
    if not nodes:
        return ""
    node = case.rng.choice(nodes)
    kept = [attribute for attribute in node.attribute if attribute.name != "keepdims"]
    del node.attribute[:]
    node.attribute.extend([*kept, helper.make_attribute("keepdims", 0)])
    return f"{node.op_type} {node.output[0]} keepdims 0"


def change_constant(case: Case, values: Values) -> str:
    r = case.rng
    if not case.constants:
        return ""
    name = r.choice(list(case.constants))
    before = case.constants[name]
    if before.dtype.kind == "i":
        after = np.array(_ints_nearby(case, before.reshape(-1).tolist()), np.int64)
        after = after.reshape(before.shape) if after.size == before.size else after
    else:
        form = r.choice(["scale", "scale", "element", "vary", "one", "grow"])
        shape = values[r.choice(list(values))].shape
        if form == "scale":
            after = before * np.float32(r.choice([1.001, 1.01, 0.9, -1, 2, 0]))
        elif form == "element":
            after = np.array(before)
            if after.size:
                after.reshape(-1)[r.randrange(after.size)] += np.float32(r.choice([0.01, 1, -0.3]))
        elif form == "vary":
            dims = shape[r.randrange(len(shape) + 1) :]
            after = (before.reshape(-1)[:1] * case.array_rng.uniform(0.5, 1.5, dims)).astype(np.float32)
        elif form == "one":
            axis = r.randrange(max(before.ndim, 1))
            after = before.take([0], axis) if before.ndim else before.reshape(1)
        else:
            after = r.choice([np.stack([before] * r.randint(1, 2)), before.reshape((1,) * len(shape) + before.shape)])
    case.constants[name] = after
    return f"constant {name} {before.shape} {before.reshape(-1)[:6]} -> {after.shape} {after.reshape(-1)[:6]}"


def swap_operands(case: Case, values: Values) -> str:
    nodes = [node for node in case.nodes if len(node.input) >= 2]
    if not nodes:
        return ""
    node = case.rng.choice(nodes)
    i, j = case.rng.sample(range(len(node.input)), 2)
    node.input[i], node.input[j] = node.input[j], node.input[i]
    return f"{node.op_type} {node.output[0]} operands {i}, {j} exchanged"


def _draw_use(case: Case, values: Values) -> tuple[int, int] | None:
    """Draws a node by its place, and one of its float operands; None if the node has none."""
    place = case.rng.randrange(len(case.nodes))
    operands = case.nodes[place].input
    uses = [i for i, name in enumerate(operands) if name in values and values[name].dtype == np.float32]
    return (place, case.rng.choice(uses)) if uses else None


def change_operand(case: Case, values: Values) -> str:
    """Replaces an operand of a node with another tensor: an earlier one, a new input, one with a dim of 1, or one of
    another rank."""
    r = case.rng
    drawn = _draw_use(case, values)
    if not drawn:
        return ""
    place, use = drawn
    node = case.nodes[place]
    name = node.input[use]
    shape = values[name].shape
    earlier = {*case.inputs, *case.constants, *(out for other in case.nodes[:place] for out in other.output)}
    alike = [other for other in earlier if other != name and values[other].shape == shape]
    form = r.choice(["earlier", "new", "one", "rank"])
    if form == "earlier":
        if not alike:
            return ""
        node.input[use] = r.choice(sorted(alike))
    elif form == "new":
        node.input[use] = case.input(*shape)
    elif form == "one" and shape:
        axis = r.randrange(len(shape))
        node.input[use] = case.input(*shape[:axis], 1, *shape[axis + 1 :])
    else:
        node.input[use] = case.input(*r.choice([shape[1:], (1, *shape), (2, *shape), (*shape, 1)]))
    return f"{node.op_type} {node.output[0]} reads {node.input[use]} ({form}), not {name}"


def change_operator(case: Case, values: Values) -> str:
    node = case.rng.choice(case.nodes)
    others = [other for group in SIBLINGS if node.op_type in group for other in group if other != node.op_type]
    if not others:
        return ""
    before, node.op_type = node.op_type, case.rng.choice(others)
    return f"{before} {node.output[0]} -> {node.op_type}"


def add_reader(case: Case, values: Values) -> str:
    """Makes an intermediate tensor an output, or adds a node that reads it."""
    r = case.rng
    name = r.choice([name for node in case.nodes for name in node.output])
    form = r.choice(["output", "node", "end"])
    if form == "output":
        if name in case.outputs:
            return ""
        case.outputs.append(name)
    elif form == "node":
        case.outputs.append(case.op(r.choice(["Neg", "Relu", "Identity"]), name))
    else:
        case.outputs.append(case.op("Add", name, case.outputs[0]))
    return f"reader of {name}: {form}"


def insert_node(case: Case, values: Values) -> str:
    """Inserts a node between a tensor and one of its readers."""
    r = case.rng
    drawn = _draw_use(case, values)
    if not drawn:
        return ""
    place, use = drawn
    node = case.nodes[place]
    name = node.input[use]
    shape = values[name].shape
    kinds = ["Neg", "Relu", "Identity", "Abs", "Mul", "Add", "Cast", "Reshape", "Transpose", "Clip"]
    kind = r.choice(kinds)
    operands: list[str] = []
    attributes: dict[str, object] = {}
    if kind in ("Mul", "Add"):
        operands = [case.weights(*r.choice([(), (1,), shape, shape[-1:], (*shape[:-1], 1)[: len(shape)]]), offset=1)]
    elif kind == "Reshape":
        operands = [case.ints(*r.choice([shape, (1, *shape), (*shape, 1), (-1,), shape[::-1]]))]
    elif kind == "Clip":
        operands = [case.constant(r.choice([0, -1])), case.constant(r.choice([1, 6]))]
    elif kind == "Cast":
        attributes = {"to": onnx.TensorProto.FLOAT}
    elif kind == "Transpose":
        attributes = {"perm": r.sample(range(len(shape)), len(shape))}
    node.input[use] = case.op(kind, name, *operands, **attributes)
    case.nodes.insert(place, case.nodes.pop())
    return f"{kind} between {name} and {node.op_type} {node.output[0]}"


def change_input(case: Case, values: Values) -> str:
    """Changes a dim or the rank of an input."""
    r = case.rng
    name = r.choice(list(case.inputs))
    before = case.inputs[name].shape
    axis = r.randrange(len(before))
    after = r.choice(
        [
            (*before[:axis], 1, *before[axis + 1 :]),
            (*before[:axis], before[axis] + 1, *before[axis + 1 :]),
            before[1:],
            (2, *before),
        ]
    )
    case.inputs[name] = case.array_rng.standard_normal(after).astype(np.float32)
    return f"input {name} {before} -> {after}"


CHANGES: list[Change] = [
    change_attribute,
    change_attribute,
    add_keepdims,
    change_constant,
    change_constant,
    change_constant,
    swap_operands,
    change_operand,
    change_operand,
    change_operator,
    change_operator,
    add_reader,
    insert_node,
    insert_node,
    change_input,
]


def changed(case: Case, values: Values) -> tuple[Case, str]:
    """Returns a copy of the case with one random change, and a description of it; "" if the change was not possible."""
    other = copy.copy(case)
    other.nodes = [onnx.NodeProto.FromString(node.SerializeToString()) for node in case.nodes]
    other.constants, other.inputs, other.outputs = dict(case.constants), dict(case.inputs), list(case.outputs)
    return other, case.rng.choice(CHANGES)(other, values)


def widened(case: Case) -> Case:
    """Returns the case in double precision."""
    other = copy.copy(case)
    wide = {np.dtype(np.float32): np.float64}
    for name in ("constants", "inputs"):
        arrays = getattr(case, name)
        setattr(other, name, {key: array.astype(wide.get(array.dtype, array.dtype)) for key, array in arrays.items()})
    return other


def model_of(cases: dict[str, Case], every_tensor: bool = False) -> tuple[onnx.ModelProto, Values]:
    """Combines cases in one model, with tensor names prefixed by the keys; returns the model and its inputs."""
    nodes, initializers, inputs, outputs = [], [], {}, []
    for prefix, case in cases.items():
        names = lambda each: [prefix + name if name else "" for name in each]  # noqa: E731
        for i, node in enumerate(case.nodes):
            copied = onnx.NodeProto.FromString(node.SerializeToString())
            copied.name = f"{prefix}n{i}_{node.op_type}"
            copied.input[:], copied.output[:] = names(node.input), names(node.output)
            nodes.append(copied)
        read = {name for node in case.nodes for name in node.input}
        initializers += [numpy_helper.from_array(a, prefix + n) for n, a in case.constants.items() if n in read]
        inputs.update({prefix + name: array for name, array in case.inputs.items() if name in read})
        result = [name for node in case.nodes for name in node.output] if every_tensor else case.outputs
        outputs += [prefix + name for name in dict.fromkeys(result)]
    graph = helper.make_graph(
        nodes,
        "near_misses",
        [helper.make_tensor_value_info(n, numpy_helper.from_array(a).data_type, a.shape) for n, a in inputs.items()],
        [onnx.ValueInfoProto(name=name) for name in outputs],
        initializers,
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    model.ir_version = 8
    return model, inputs
