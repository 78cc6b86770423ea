# SPDX-License-Identifier: Apache-2.0
"""Tests that the results of nodes that draw random numbers become inputs, in every command and in onnxruntime."""
from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import onnx
import pytest
from conftest import check, run_tool
from onnx import TensorProto, helper
from test_bad_input import assert_rejected, transform

SHAPE = [1, 4, 5]


def noisy(path: Path, op: str, **attributes: object) -> Path:
    """Writes y = relu(x), z = y + r, where `op` draws r."""
    values = {name: helper.make_tensor_value_info(name, TensorProto.FLOAT, SHAPE) for name in "xyz"}
    shape = {} if op.endswith("Like") else {"shape": SHAPE}
    nodes = [
        helper.make_node("Relu", ["x"], ["y"]),
        helper.make_node(op, ["y"] if not shape else [], ["r"], "noise", **shape, **attributes),
        helper.make_node("Add", ["y", "r"], ["z"]),
    ]
    graph = helper.make_graph(nodes, "g", [values["x"]], [values["y"], values["z"]])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)
    onnx.checker.check_model(model)
    onnx.save(model, path)
    return path


@pytest.mark.parametrize(
    "op, words",
    [
        ("RandomNormal", "a normal distribution with mean 2.5 and standard deviation 0.001"),
        ("RandomNormalLike", "a normal distribution with mean 2.5 and standard deviation 0.001"),
        ("RandomUniform", "a uniform distribution from -0.25 to 1"),
        ("RandomUniformLike", "a uniform distribution from -0.25 to 1"),
    ],
)
def test_result_is_an_input(op: str, words: str, tmp_path: Path) -> None:
    range_of = {"mean": 2.5, "scale": 0.001} if "Normal" in op else {"low": -0.25}
    model = noisy(tmp_path / "m.onnx", op, seed=3.0, **range_of)
    text = check(transform(model))
    assert f"node 'noise' ({op}) draws random numbers, and ONNX does not define which ones for a seed" in text
    assert words in text and "'r' float32[1, 4, 5]" in text and "2 tensors, worst cos 1.000000" in text


def test_run_compares_with_onnxruntime(tmp_path: Path) -> None:
    text = check(run_tool("tessera", "run", noisy(tmp_path / "m.onnx", "RandomNormalLike"), cwd=tmp_path))
    assert "verdict: PASS: 2 output(s) compared with onnxruntime" in text


@pytest.mark.parametrize("value, wanted", [("0.5", np.full(SHAPE, 0.5)), (None, np.arange(20.0).reshape(SHAPE))])
def test_values_are_given(value: str | None, wanted: np.ndarray, tmp_path: Path) -> None:
    model = noisy(tmp_path / "m.onnx", "RandomNormalLike")
    value = value or json.dumps(wanted.tolist()).replace(" ", "")
    text = check(transform(model, "--input_values", f"r={value}", "--test_result", tmp_path / "result.npz"))
    assert "draws random numbers" not in text
    with np.load(tmp_path / "result.npz") as result:
        np.testing.assert_allclose(result["z"] - result["y"], wanted, atol=1e-6)


def test_wrong_values_are_rejected(tmp_path: Path) -> None:
    model = noisy(tmp_path / "m.onnx", "RandomNormalLike")
    result = transform(model, "--input_values", "r=[1,2]")
    assert_rejected(result, 1, "input 'r' has the shape 2; the model expects 1x4x5")


def test_output_before_it_needs_no_input(tmp_path: Path) -> None:
    text = check(transform(noisy(tmp_path / "m.onnx", "RandomNormal"), "--output_names", "y"))
    assert "'r'" not in text


def test_branch_is_rejected(tmp_path: Path) -> None:
    value = helper.make_tensor_value_info("x", TensorProto.FLOAT, [2])
    branch = helper.make_graph(
        [helper.make_node("RandomUniformLike", ["x"], ["b"], "noise")], "branch", [], [onnx.ValueInfoProto(name="b")]
    )
    graph = helper.make_graph(
        [helper.make_node("If", ["c"], ["y"], then_branch=branch, else_branch=branch)],
        "g",
        [value, helper.make_tensor_value_info("c", TensorProto.BOOL, [])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [2])],
    )
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8), tmp_path / "m.onnx")
    assert_rejected(transform(tmp_path / "m.onnx"), 4, "node 'noise'", "inside a branch, a loop or a function")
