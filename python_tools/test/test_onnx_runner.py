# SPDX-License-Identifier: Apache-2.0
"""Tests onnxruntime as Tessera starts it."""
from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from conftest import BUILD

from tessera import onnx_runner
from tessera.onnx_reference import ReferenceModel

LOADED = "import os; from tessera import onnx_runner; onnx_runner.version(); print(len(os.listdir('/proc/self/task')))"


def test_onnxruntime_reports_to_nobody(tmp_path: Path) -> None:
    """onnxruntime's telemetry would leave a temporary file and start a thread that sends data."""
    pytest.importorskip("onnxruntime")
    unset = {name: value for name, value in os.environ.items() if name != "ORT_DISABLE_TELEMETRY"}
    environment = {
        **unset,
        "PYTHONPATH": str(BUILD / "python"),
        "TMPDIR": str(tmp_path),
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
    }
    result = subprocess.run([sys.executable, "-c", LOADED], env=environment, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    assert os.listdir(tmp_path) == []
    assert result.stdout.strip() == "1", "threads"


def test_a_user_may_decide_otherwise() -> None:
    result = subprocess.run(
        [sys.executable, "-c", "import os, tessera.onnx_runner; print(os.environ['ORT_DISABLE_TELEMETRY'])"],
        env={**os.environ, "PYTHONPATH": str(BUILD / "python"), "ORT_DISABLE_TELEMETRY": "0"},
        capture_output=True,
        text=True,
    )
    assert result.stdout.strip() == "0", result.stderr


@pytest.mark.parametrize(
    "text, reason",
    [
        (
            "[ONNXRuntimeError] : 1 : FAIL : Exception during initialization: /onnxruntime_src/core/rnn.h:53 "
            "onnxruntime::LSTMBase::LSTMBase(const OpKernelInfo&) layout_ == 0 was false. Not supported.",
            "layout_ == 0 was false. Not supported.",
        ),
        ("first line\nsecond", "first line"),
        ("word " * 200, ("word " * 80).strip() + " ..."),
    ],
)
def test_reasons_are_one_line_for_people(text: str, reason: str) -> None:
    assert onnx_runner.reason_of(RuntimeError(text)) == reason


class Evaluator:
    """Behaves like onnx.reference for one Neg: the result has a type like bfloat16, and the only known input is x."""

    input_names, output_names = ["x"], ["y"]
    rt_nodes_ = (SimpleNamespace(output=["t", ""]), SimpleNamespace(output=["y"]))

    def __init__(self, path: str) -> None:
        if "bad" in path:
            raise NotImplementedError("no such operator")

    def run(self, names: object, feed: dict, intermediate: bool) -> dict:
        assert names is None and intermediate
        return {"x": feed["x"], "t": -feed["x"], "y": -feed["x"], "absent": None}


def test_reference_implementation(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "onnx.reference", SimpleNamespace(ReferenceEvaluator=Evaluator))
    model = ReferenceModel("m.onnx")
    assert model.tensors == {"t", "y"} and "reference implementation" in model.name
    given = {"x": np.ones(3, np.float32)}
    assert sorted(name for name, _ in model.each(given, {"t": 12, "y": 12, "absent": 0})) == ["t", "y"]
    assert (model.run(given)["y"] == -1).all()
    with pytest.raises(onnx_runner.Unreadable, match="cannot run the model: 'x'"):
        model.run({})
    with pytest.raises(onnx_runner.Unreadable, match="cannot load the model: no such operator"):
        ReferenceModel("bad.onnx")
    monkeypatch.setitem(sys.modules, "onnx.reference", None)
    with pytest.raises(onnx_runner.Unreadable, match="is not installed"):
        ReferenceModel("m.onnx")


def test_tensors_in_blocks_are_not_compared() -> None:
    """onnxruntime stores tensors between operators of com.microsoft.nchwc in another order than Tessera."""
    from onnx import helper

    domain = "com.microsoft.nchwc"
    nodes = [
        helper.make_node("Relu", ["x"], ["a"]),
        helper.make_node("ReorderInput", ["a"], ["b"], domain=domain),
        helper.make_node("Relu", ["b"], ["c"]),
        helper.make_node("ReorderOutput", ["c"], ["y"], domain=domain, channels=3),
        helper.make_node("Relu", ["y"], ["z"]),
    ]
    model = helper.make_model(helper.make_graph(nodes, "g", [], [helper.make_empty_tensor_value_info("z")]))
    onnx_runner._add_all_outputs(model)
    assert [value.name for value in model.graph.output] == ["z", "a", "y"]
