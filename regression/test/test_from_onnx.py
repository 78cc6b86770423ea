# SPDX-License-Identifier: Apache-2.0
"""Tests tessera run, bench and estimate from an .onnx file to a verdict in one command: with a precision, samples,
fixed inputs and named outputs."""
from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import small_models
from conftest import check, run_tool

from tessera.files import save_npz


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Returns a folder with m.onnx, and samples for it in data/."""
    small_models.conv_relu(tmp_path / "m.onnx")
    (tmp_path / "data").mkdir()
    rng = np.random.default_rng(0)
    for number in range(4):
        save_npz(tmp_path / "data" / f"{number}.npz", {"x": rng.standard_normal((1, 3, 8, 8)).astype(np.float32)})
    return tmp_path


def test_from_a_model_and_samples_to_a_verdict(folder: Path) -> None:
    words = ("run", "m.onnx", "--quantize", "INT8", "--dataset", "data", "--output_dir", "out")
    text = check(run_tool("tessera", *words, cwd=folder))
    assert "verdict: PASS" in text and "run_calibration with data" in text and "cos >= 0.99" in text
    assert {"m_top.mlir", "m_cali.json", "m_x86_int8.bmodel"} <= {path.name for path in (folder / "out").iterdir()}
    info = json.loads(check(run_tool("model_tool", "info", folder / "out" / "m_x86_int8.bmodel", "--json")))
    assert {"key": "bit_equal", "value": "all"} in info["model"]["properties"]


@pytest.mark.parametrize("chip, quantize", [("npu-base", "F32"), ("x86-v2", "BF16")])
def test_files_are_named_by_chip_and_precision(folder: Path, chip: str, quantize: str) -> None:
    words = ("run", "m.onnx", "--chip", chip, "--quantize", quantize, "--output_dir", "out")
    text = check(run_tool("tessera", *words, cwd=folder))
    assert f"m_{chip}_{quantize.lower()}.bmodel" in text
    assert (folder / "out" / f"m_{chip}_{quantize.lower()}.bmodel").exists()


@pytest.mark.parametrize("verb", [["run"], ["bench", "--seconds", "0.1"]])
def test_samples_are_asked_for(folder: Path, verb: list[str]) -> None:
    rejected = run_tool("tessera", *verb, "m.onnx", "--quantize", "INT8", cwd=folder)
    assert rejected.returncode == 2 and "--dataset" in rejected.stderr
    assert "pictures, or of .npz files that hold an array for each input" in " ".join(rejected.stderr.split())
    rejected = run_tool("tessera", *verb, "m.onnx", "--dataset", "data", cwd=folder)
    assert rejected.returncode == 2 and "--quantize" in rejected.stderr
    rejected = run_tool("tessera", *verb, "m.onnx", "--quantize", "INT9", cwd=folder)
    assert rejected.returncode == 2 and "INT9" in rejected.stderr


def test_other_files_are_answered_with_the_inputs(folder: Path) -> None:
    (folder / "sounds").mkdir()
    (folder / "sounds" / "word.wav").write_bytes(b"RIFF")
    rejected = run_tool("tessera", "run", "m.onnx", "--quantize", "INT8", "--dataset", "sounds", cwd=folder)
    assert rejected.returncode == 1 and "1 other file(s), e.g. word.wav" in rejected.stderr
    assert "an array for each input: 'x' float32[1, 3, 8, 8]" in " ".join(rejected.stderr.split())


def test_fixed_inputs_and_named_outputs(tmp_path: Path) -> None:
    """Only the remaining part of the network is compared, measured and estimated."""
    model = small_models.by_rate(tmp_path / "m.onnx")
    pytest.importorskip("onnxruntime")
    text = check(run_tool("tessera", "run", model, "--input_values", "rate=16000", cwd=tmp_path))
    assert "verdict: PASS" in text
    small_models.conv_relu(tmp_path / "c.onnx")
    text = check(run_tool("tessera", "run", "c.onnx", "--output_names", "c", cwd=tmp_path))
    assert "verdict: PASS" in text and "\nc " in text
    words = ("bench", "c.onnx", "--output_names", "c", "--seconds", "0.1", "--warm", "0.1")
    check(run_tool("tessera", *words, cwd=tmp_path))
    rejected = run_tool("tessera", *words, "--against", "onnxruntime", cwd=tmp_path)
    assert rejected.returncode == 2 and "--model_def" in rejected.stderr
    check(run_tool("tessera", "estimate", "c.onnx", "--output_names", "c", "--chip", "npu-base", cwd=tmp_path))


def test_estimate_of_calibrated_ranges(folder: Path) -> None:
    text = check(run_tool("tessera", "estimate", "m.onnx", "--chip", "npu-base", "--dataset", "data", cwd=folder))
    assert "the ranges are placeholders" not in text and " .. " not in text
    assert not list(folder.glob("*cali*"))


def test_bench_of_a_quantised_model(folder: Path) -> None:
    words = ("bench", "m.onnx", "--quantize", "INT8", "--dataset", "data", "--seconds", "0.1", "--warm", "0.1")
    assert "runs/s" in check(run_tool("tessera", *words, cwd=folder))
