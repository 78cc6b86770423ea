# SPDX-License-Identifier: Apache-2.0
"""Tests loops whose number of iterations is known, as exporters write an embedding bag: they carry a sequence of
tensors and end by their condition."""
from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from conftest import check
from onnx import TensorProto, helper, numpy_helper
from test_bad_input import assert_rejected, transform

BAGS = [0, 3, 5, 8]


def embedding_bag(path: Path, reduction: str, constant_offsets: bool = True) -> Path:
    """Writes a network that reduces the rows of each bag in a loop, in the form of torch.onnx.export."""
    node = helper.make_node
    offsets = np.array(BAGS)
    constants = {"one": np.int64(1), "minus": np.array([-1]), "first": np.int64(0), "go": np.bool_(True)}
    constants |= {"bags": np.int64(len(BAGS) - 1), "zero": np.array([0])}
    constants |= {"table": np.random.default_rng(0).standard_normal((10, 4)).astype(np.float32)}
    constants |= {"offsets": offsets} if constant_offsets else {}
    body = helper.make_graph(
        [
            node("Reshape", ["i", "minus"], ["at"]),
            node("Add", ["at", "one"], ["next"]),
            node("Add", ["next", "one"], ["after"]),
            node("Slice", ["offsets", "at", "next"], ["start"]),
            node("Slice", ["offsets", "next", "after"], ["end"]),
            node("Slice", ["rows", "start", "end"], ["bag"], "slice_bag"),
            node(reduction, ["bag", "zero"], ["row"], keepdims=0),
            node("SequenceInsert", ["list", "row"], ["longer"]),
            node("Add", ["i", "one"], ["i_out"]),
            node("Less", ["i_out", "bags"], ["go_out"]),
        ],
        "body",
        [
            helper.make_tensor_value_info("trip", TensorProto.INT64, []),
            helper.make_tensor_value_info("go_in", TensorProto.BOOL, []),
            helper.make_tensor_sequence_value_info("list", TensorProto.FLOAT, None),
            helper.make_tensor_value_info("i", TensorProto.INT64, []),
        ],
        [
            helper.make_tensor_value_info("go_out", TensorProto.BOOL, []),
            helper.make_tensor_sequence_value_info("longer", TensorProto.FLOAT, None),
            helper.make_tensor_value_info("i_out", TensorProto.INT64, []),
        ],
    )
    inputs = [helper.make_tensor_value_info("ids", TensorProto.INT64, [8])]
    if not constant_offsets:
        inputs.append(helper.make_tensor_value_info("offsets", TensorProto.INT64, [len(BAGS)]))
    graph = helper.make_graph(
        [
            node("Gather", ["table", "ids"], ["rows"]),
            node("SequenceEmpty", [], ["empty"]),
            node("Loop", ["", "go", "empty", "first"], ["lists", "count"], "bags_loop", body=body),
            node("ConcatFromSequence", ["lists"], ["y"], axis=0, new_axis=1),
        ],
        "g",
        inputs,
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [len(BAGS) - 1, 4])],
        [numpy_helper.from_array(np.asarray(value), name) for name, value in constants.items()],
    )
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8), path)
    return path


@pytest.mark.parametrize("reduction", ["ReduceSum", "ReduceMean", "ReduceMax"])
def test_embedding_bag(reduction: str, tmp_path: Path) -> None:
    ids = np.arange(8) * 3 % 10
    np.savez(tmp_path / "in.npz", ids=ids)
    model = embedding_bag(tmp_path / "m.onnx", reduction)
    check(transform(model, "--test_input", tmp_path / "in.npz", "--test_result", tmp_path / "result.npz"))
    table = np.random.default_rng(0).standard_normal((10, 4)).astype(np.float32)
    reduce = {"ReduceSum": np.sum, "ReduceMean": np.mean, "ReduceMax": np.max}[reduction]
    wanted = [reduce(table[ids[start:end]], axis=0) for start, end in zip(BAGS, BAGS[1:])]
    with np.load(tmp_path / "result.npz") as result:
        np.testing.assert_allclose(result["y"], wanted, rtol=1e-6)


def test_offsets_at_run_time_ask_for_their_value(tmp_path: Path) -> None:
    model = embedding_bag(tmp_path / "m.onnx", "ReduceSum", constant_offsets=False)
    assert_rejected(transform(model), 4, "node 'slice_bag' (Slice)", "--input_values offsets=VALUE")
    check(transform(model, "--input_values", f"offsets={BAGS}".replace(" ", "")))


def test_unknown_end_of_a_sequence_is_rejected(tmp_path: Path) -> None:
    model = onnx.load(embedding_bag(tmp_path / "m.onnx", "ReduceSum"))
    (bags,) = [tensor for tensor in model.graph.initializer if tensor.name == "bags"]
    model.graph.initializer.remove(bags)
    model.graph.input.append(helper.make_tensor_value_info("bags", TensorProto.INT64, []))
    onnx.save(model, tmp_path / "m.onnx")
    assert_rejected(transform(tmp_path / "m.onnx"), 4, "'bags_loop'", "carries the sequence of tensors 'empty'")
