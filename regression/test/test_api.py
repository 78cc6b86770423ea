# SPDX-License-Identifier: Apache-2.0
"""Tests that the Python functions give the same results as the commands."""
from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from case_file import REGRESSION
from conftest import check, run_tool

import tessera
from tessera.errors import ExitCode, TesseraError

MNIST = REGRESSION / "models" / "mnist"


@pytest.fixture
def digit() -> np.ndarray:
    return np.load(MNIST / "in_Input3.npy")


def test_compile_and_run(digit: np.ndarray, tmp_path: Path) -> None:
    model = tessera.compile(MNIST / "mnist-8.onnx", tmp_path / "m.bmodel")
    golden = np.load(MNIST / "out_Plus214_Output_0.npy")
    for one, wanted in zip(digit, golden):
        scores = model.run({"Input3": one[None]})["Plus214_Output_0"]
        np.testing.assert_allclose(scores[0], wanted, rtol=1e-4, atol=1e-2)
    check(run_tool("model_tool", "check", tmp_path / "m.bmodel"))
    assert model.transform["comparison"] and model.deployment["comparison"] and not model.calibration
    assert [path.name for path in tmp_path.iterdir()] == ["m.bmodel"]


def test_int8_from_arrays(digit: np.ndarray) -> None:
    samples = [{"Input3": digit[:1] + np.float32(shift)} for shift in range(4)]
    model = tessera.compile(MNIST / "mnist-8.onnx", quantize="INT8", calibration=samples, methods="none", workers=1)
    scores = model.run({"Input3": digit[:1]})["Plus214_Output_0"]
    assert scores.argmax() == np.load(MNIST / "out_Plus214_Output_0.npy")[0].argmax()
    assert model.calibration and isinstance(model.warnings, list)
    path = model.path
    assert path.exists()
    del model
    assert not path.exists()


def test_estimate_and_accuracy(digit: np.ndarray, tmp_path: Path) -> None:
    estimate = tessera.estimate(MNIST / "mnist-8.onnx", chip="npu-edge")
    assert "npu-edge" in str(estimate)
    np.savez(tmp_path / "0.npz", Input3=digit[:1])
    first = tessera.compile(MNIST / "mnist-8.onnx", tmp_path / "a.bmodel")
    result = tessera.accuracy([first.path, MNIST / "mnist-8.onnx"], tmp_path, task="agreement")
    assert result["models"][1]["figures"]["cos"] == pytest.approx(1)


def test_failures_are_the_commands(tmp_path: Path) -> None:
    with pytest.raises(TesseraError, match="nothing.onnx") as missing:
        tessera.compile(tmp_path / "nothing.onnx")
    assert missing.value.code == ExitCode.ERROR
    with pytest.raises(TesseraError, match="calibration_table") as table:
        tessera.compile(MNIST / "mnist-8.onnx", quantize="INT8")
    assert table.value.code == ExitCode.USAGE
    with pytest.raises(TesseraError, match="unrecognized arguments: --colour") as flag:
        tessera.estimate(MNIST / "mnist-8.onnx", colour="red")
    assert flag.value.code == ExitCode.USAGE
    with pytest.raises(AttributeError):
        tessera.nothing  # type: ignore[attr-defined]
