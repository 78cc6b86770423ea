# SPDX-License-Identifier: Apache-2.0
"""Runs an .onnx file in onnxruntime piece by piece, so that the tensors in memory stay within a budget.

A session returns all requested outputs together at the end. Therefore the graph is cut into pieces of consecutive nodes
by the sizes of the requested tensors. Each piece is a separate model, whose inputs were computed by earlier pieces.
"""
from __future__ import annotations

from pathlib import Path
from typing import Iterator, Mapping, Sequence

import numpy as np

from .onnx_session import failure_of, make_session

BUDGET = 256 << 20  # bytes


def run(
    path: str | Path,
    inputs: Mapping[str, np.ndarray],
    wanted: Mapping[str, int],
    threads: int = 1,
    budget: int = BUDGET,
) -> Iterator[tuple[str, np.ndarray]]:
    """Yields the tensors named in `wanted` in the order of the nodes; the values of `wanted` are sizes in bytes. Raises
    TesseraError; raises NotCut before the first tensor if the model cannot be cut, e.g. without the `onnx` package."""
    try:
        import onnx
    except ImportError as error:
        raise NotCut from error
    try:
        model = onnx.load(str(path), load_external_data=False)
    except Exception as error:
        raise NotCut from error
    pieces = _cut(list(model.graph.node), wanted, budget)
    reads = [set().union(*(names_read(node) for node in piece)) for piece in pieces]
    alive = dict(inputs)
    for index, piece in enumerate(pieces):
        later = set().union(*reads[index + 1 :]) if index + 1 < len(pieces) else set()
        result = [name for node in piece for name in node.output if name]
        outputs = [name for name in result if name in wanted or name in later]
        given = {name: alive[name] for name in reads[index] if name in alive}
        values = _run(_model_of(model, piece, given, outputs), given, outputs, path, threads)
        for name in [name for name in alive if name not in later]:
            del alive[name]
        del given
        for name in outputs:
            value = values.pop(name)
            if name in later:
                alive[name] = value
            if name in wanted:
                yield name, value
            del value


def keep_ancestors(model: object, outputs: Sequence[str]) -> None:
    """Removes the nodes on which no tensor in `outputs` depends, and makes `outputs` the outputs of the graph."""
    import onnx

    graph = model.graph  # type: ignore[attr-defined]
    needed, pending = set(), list(outputs)
    producers = {name: node for node in graph.node for name in node.output if name}
    while pending:
        name = pending.pop()
        if name not in needed:
            needed.add(name)
            pending += names_read(producers[name]) if name in producers else ()
    for number in reversed(range(len(graph.node))):
        if not needed.intersection(graph.node[number].output):
            del graph.node[number]
    declared = {value.name: value.SerializeToString() for value in graph.output}
    del graph.output[:]
    for name in dict.fromkeys(outputs):
        value = onnx.ValueInfoProto(name=name)
        graph.output.append(onnx.ValueInfoProto.FromString(declared[name]) if name in declared else value)


class NotCut(Exception):
    """The model has to run as a whole."""


_RANDOM = ("RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike")


def make_random_results_inputs(model: object) -> bool:
    """Makes the results of nodes that draw random numbers inputs, as Tessera's importer does. Returns true if there are
    such nodes."""
    from onnx import TensorProto, helper

    graph = model.graph  # type: ignore[attr-defined]
    types = {value.name: value.type.tensor_type.elem_type for value in (*graph.input, *graph.value_info, *graph.output)}
    drawn = [node for node in graph.node if node.op_type in _RANDOM and node.domain in ("", "ai.onnx")]
    for node in drawn:
        declared = [attribute.i for attribute in node.attribute if attribute.name == "dtype"]
        given = [types[name] for name in (*node.output, *node.input) if types.get(name)]
        element = (declared + given + [TensorProto.FLOAT])[0]
        graph.input.append(helper.make_tensor_value_info(node.output[0], element, None))
        graph.node.remove(node)
    return bool(drawn)


def _cut(nodes: list, wanted: Mapping[str, int], budget: int) -> list[list]:
    pieces: list[list] = [[]]
    used = 0
    for node in nodes:
        size = sum(wanted.get(name, 0) for name in node.output)
        if pieces[-1] and used + size > budget:
            pieces.append([])
            used = 0
        pieces[-1].append(node)
        used += size
    return pieces


def names_read(node: object) -> set[str]:
    """Returns the tensors that a node reads, including those read by its subgraphs."""
    names = {name for name in node.input if name}  # type: ignore[attr-defined]
    for attribute in node.attribute:  # type: ignore[attr-defined]
        for graph in [*([attribute.g] if attribute.HasField("g") else []), *attribute.graphs]:
            inside: set[str] = {value.name for value in graph.input} | {value.name for value in graph.initializer}
            for inner in graph.node:
                names |= names_read(inner) - inside
                inside |= set(inner.output)
            names |= {value.name for value in graph.output} - inside
    return names


def _model_of(model: object, nodes: list, given: Mapping[str, np.ndarray], outputs: list[str]) -> bytes:
    import onnx
    from onnx import helper, numpy_helper

    read = set().union(*(names_read(node) for node in nodes))
    piece = onnx.ModelProto()
    piece.ir_version = model.ir_version  # type: ignore[attr-defined]
    piece.opset_import.extend(model.opset_import)  # type: ignore[attr-defined]
    piece.functions.extend(model.functions)  # type: ignore[attr-defined]
    graph, whole = piece.graph, model.graph  # type: ignore[attr-defined]
    graph.name = "piece"
    graph.node.extend(nodes)
    graph.initializer.extend(each for each in whole.initializer if each.name in read and each.name not in given)
    graph.sparse_initializer.extend(each for each in whole.sparse_initializer if each.values.name in read)
    for name, array in given.items():
        kind = numpy_helper.from_array(np.zeros(1, array.dtype)).data_type
        graph.input.append(helper.make_tensor_value_info(name, kind, list(array.shape)))
    graph.output.extend(onnx.ValueInfoProto(name=name) for name in outputs)
    return piece.SerializeToString()


def _run(
    model: bytes, inputs: Mapping[str, np.ndarray], outputs: list[str], path: str | Path, threads: int
) -> dict[str, np.ndarray]:
    if not outputs:
        return {}
    try:
        values = make_session(model, path, threads, optimise=False).run(outputs, dict(inputs))
    except Exception as error:  # onnxruntime raises its own unrelated classes
        raise failure_of(error, f"onnxruntime cannot run {path}") from error
    return {name: value for name, value in zip(outputs, values)}
