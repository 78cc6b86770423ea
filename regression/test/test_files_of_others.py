# SPDX-License-Identifier: Apache-2.0
"""Tests that files which the user has edited, or another run has written, are never lost silently."""
from __future__ import annotations

import json
from pathlib import Path

import pytest
from all_commands import make_files
from conftest import check, run_tool

TRANSFORM = ["model_transform", "--model_def", "m.onnx", "--not_inference", "--mlir"]
CALIBRATE = ["run_calibration", "m_top.mlir", "--dataset", "data", "--workers", "1", "--cali_method", "max", "-o"]
SEARCH = [
    "model_deploy",
    "--mlir",
    "m_top.mlir",
    "--quantize",
    "INT8",
    "--calibration_table",
    "cali.json",
    "--target",
    "cos>=0.5",
    "--data",
    "data",
    "--skip_validation",
    "--json",
    "--model",
]


@pytest.fixture
def files(tmp_path: Path) -> Path:
    return make_files(tmp_path)


def test_target_keeps_an_edited_table(files: Path) -> None:
    table, kept = files / "m_qtable.json", files / "m_qtable.json.1"
    check(run_tool(*SEARCH, "o.bmodel", cwd=files))
    found = table.read_bytes()
    again = json.loads(check(run_tool(*SEARCH, "o.bmodel", cwd=files)))
    assert not kept.exists() and not [
        text for text in again["warnings"] if "qtable" in text
    ], "the same table was there"
    table.write_text("my own work")
    warnings = json.loads(check(run_tool(*SEARCH, "o.bmodel", cwd=files)))["warnings"]
    assert kept.read_text() == "my own work" and table.read_bytes() == found
    assert any("m_qtable.json.1" in text for text in warnings), warnings
    table.write_text("more of it")
    check(run_tool(*SEARCH, "o.bmodel", cwd=files))
    assert (kept.read_text(), (files / "m_qtable.json.2").read_text()) == ("my own work", "more of it")


def test_search_table_decides(files: Path) -> None:
    """The table is written to the path that the user gave, and replaces a file there: the user named this file."""
    (files / "m_qtable.json").write_text("my own work")
    check(run_tool(*SEARCH, "o.bmodel", "--search_table", "mine.json", cwd=files))
    assert json.loads((files / "mine.json").read_text())["format"] == "tessera-quantize-table"
    assert (files / "m_qtable.json").read_text() == "my own work" and not (files / "m_qtable.json.1").exists()


def test_calibration_keeps_an_edited_table(files: Path) -> None:
    table, kept = files / "c.json", files / "c.json.1"
    check(run_tool(*CALIBRATE, "c.json", "--methods", "none", cwd=files))
    check(run_tool(*CALIBRATE, "c.json", "--methods", "none", "--symmetric", cwd=files))
    assert not kept.exists(), "nobody had edited it"
    edited = table.read_text().replace('"method": "max"', '"method": "mine"')
    assert edited != table.read_text()
    table.write_text(edited)
    text = check(run_tool(*CALIBRATE, "c.json", "--methods", "none", cwd=files))
    assert kept.read_text() == edited and "c.json.1" in text and "edited" in text


def test_calibration_leaves_weights_of_others(files: Path) -> None:
    """A safetensors file with the table's name that another program wrote is neither replaced nor removed."""
    theirs = files / "model.safetensors"
    theirs.write_text("of a framework")
    for methods in ("none", "auto"):
        result = run_tool(*CALIBRATE, "model.json", "--methods", methods, cwd=files)
        assert result.returncode == 1 and "model.safetensors" in result.stderr, result.stderr
        assert theirs.read_text() == "of a framework" and not (files / "model.json").exists()


def test_transform_leaves_weights_of_another_model(files: Path) -> None:
    """m.mlir and m_top.mlir would share one weights file."""
    weights = (files / "m_weights.safetensors").read_bytes()
    result = run_tool(*TRANSFORM, "m.mlir", cwd=files)
    assert result.returncode == 1 and "m_top.mlir" in result.stderr and "m_weights.safetensors" in result.stderr
    assert (files / "m_weights.safetensors").read_bytes() == weights and not (files / "m.mlir").exists()
    check(run_tool(*TRANSFORM, "m_top.mlir", cwd=files))
    assert not (files / "m_weights.safetensors.1").exists(), "its own may be replaced"


def test_transform_keeps_files_of_others(files: Path) -> None:
    """Covers outputs whose names are derived from the model's name."""
    (files / "n_weights.safetensors").write_text("of a framework")
    (files / "m_in_f32.npz").write_text("my samples")
    text = check(run_tool("model_transform", "--model_def", "m.onnx", "--mlir", "n_top.mlir", cwd=files))
    assert (files / "n_weights.safetensors.1").read_text() == "of a framework"
    assert (files / "m_in_f32.npz.1").read_text() == "my samples"
    assert "n_weights.safetensors.1" in text and "m_in_f32.npz.1" in text
    check(run_tool("model_runner", "--model", "n_top.mlir", "--input", "m_in_f32.npz", "--output", "o.npz", cwd=files))
