# SPDX-License-Identifier: Apache-2.0
"""Tests the second, wide input of the default checks of model_transform and model_deploy: a fault that only numbers
beyond [-1, 1) show gives exit code 3."""
from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from small_models import save, tensor

from tessera import bmodel, top_model
from tessera.cli import model_deploy, model_transform
from tessera.files import load_npz


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    nodes = [
        helper.make_node("Tanh", ["x"], ["t"], "squash"),
        helper.make_node("Mul", ["t", "x"], ["m"], "scale"),
        helper.make_node("Abs", ["m"], ["y"], "abs"),
    ]
    save(tmp_path / "m.onnx", nodes, [tensor("x", [200])], [tensor("t", [200]), tensor("y", [200])], [], opset=13)
    return tmp_path


def transform(capsys: pytest.CaptureFixture[str], name: str = "m") -> tuple[int, dict]:
    code = model_transform.main(["--model_def", f"{name}.onnx", "--mlir", f"{name}_top.mlir", "--json"])
    return code, json.loads(capsys.readouterr().out)


def deploy(capsys: pytest.CaptureFixture[str], name: str = "m") -> tuple[int, dict]:
    code = model_deploy.main(["--mlir", f"{name}_top.mlir", "--model", f"{name}.bmodel", "--json"])
    return code, json.loads(capsys.readouterr().out)


def test_both_checks_pass_and_report_the_wide_input(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for run in (transform, deploy):
        code, document = run(capsys)
        assert code == 0 and document["comparison"]["failed"] == 0
        assert document["wide"] == {"checked": document["wide"]["checked"], "wrong": []}
        assert document["wide"]["checked"] >= 2
    assert not list(folder.glob("*_wide_in.npz"))


def test_a_reference_that_is_wrong_far_out_is_noticed(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    evaluate = top_model.evaluate_each

    def altered(*arguments: object, **options: object) -> object:
        tensors, cones = evaluate(*arguments, **options)
        return {name: np.where(np.abs(a) > 100, a / np.float32(2), a) for name, a in tensors.items()}, cones

    monkeypatch.setattr(top_model, "evaluate_each", altered)
    code, document = transform(capsys)
    assert code == 3 and "on inputs of any magnitude" in document["error"]["message"]
    assert "'t'" not in document["error"]["message"], "tanh stays below 1"
    assert np.abs(load_npz("m_wide_in.npz")["x"]).max() > 1e20


def test_an_engine_that_is_wrong_far_out_is_noticed(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    run = bmodel.Net.run_every_tensor

    def altered(net: bmodel.Net, arrays: dict, keep: object) -> dict[str, np.ndarray]:
        outputs = run(net, arrays, keep)
        return {name: np.where(a > 1e4, np.float32(1e4), a) for name, a in outputs.items()}

    assert transform(capsys)[0] == 0
    monkeypatch.setattr(bmodel.Net, "run_every_tensor", altered)
    code, document = deploy(capsys)
    assert code == 3 and "'y'" in document["error"]["message"] and document["comparison"]["failed"] == 0
    assert len(document["wide"]["wrong"]) == 1


def test_indices_and_divisors_stay_valid(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    nodes = [
        helper.make_node("Gather", ["table", "i"], ["g"], axis=0),
        helper.make_node("Div", ["a", "b"], ["q"]),
        helper.make_node("Add", ["i", "one"], ["j"]),
        helper.make_node("Gather", ["pair", "j"], ["h"], axis=0),
    ]
    values = {"table": np.arange(5, dtype=np.float32), "one": np.int64(1), "pair": np.arange(3, dtype=np.float32)}
    integers = [tensor(name, [50], TensorProto.INT64) for name in ("i", "a", "b")]
    save(
        folder / "n.onnx",
        nodes,
        integers,
        [tensor("g", [50]), tensor("q", [50], TensorProto.INT64), tensor("h", [50])],
        [onnx.numpy_helper.from_array(np.asarray(value), name) for name, value in values.items()],
        opset=13,
    )
    for run in (transform, deploy):
        code, document = run(capsys, "n")
        assert code == 0 and document["wide"]["wrong"] == [], document


def test_the_order_of_unsorted_topk_is_no_fault(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    nodes = [
        helper.make_node("TopK", ["x", "k"], ["v", "i"], axis=-1, sorted=0),
        helper.make_node("ReduceSum", ["v"], ["y"], keepdims=0),
    ]
    k = onnx.numpy_helper.from_array(np.array([7], np.int64), "k")
    inner = [tensor("v", [8, 7]), tensor("i", [8, 7], TensorProto.INT64)]
    save(folder / "k.onnx", nodes, [tensor("x", [8, 40])], [*inner, tensor("y", [])], [k], opset=13)
    code, document = transform(capsys, "k")
    assert code == 0, document
    assert document["comparison"]["failed"] == 0
