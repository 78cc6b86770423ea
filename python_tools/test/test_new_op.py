# SPDX-License-Identifier: Apache-2.0
"""Tests that ./dev new-op edits a copy of the sources once."""
from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FILES = (
    "top_dialect/IR/TopElementwiseOps.td",
    "top_dialect/Reference/ReferenceMath.cpp",
    "top_dialect/Import/Onnx/Operators/OnnxElementwise.cpp",
    "top_dialect/test/IR/elementwise.mlir",
)


def new_op(root: Path, name: str, *more: str) -> subprocess.CompletedProcess[str]:
    command = [
        sys.executable,
        str(ROOT / "python_tools/dev/new_op.py"),
        name,
        "--formula",
        "2^x",
        "--scalar",
        "e.exp(x)",
        "--reference",
        "std::exp2(x)",
        "--root",
        str(root),
        *more,
    ]
    return subprocess.run(command, text=True, capture_output=True)


def copy(root: Path) -> dict[str, str]:
    for file in FILES:
        (root / file).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / file, root / file)
    return {file: (root / file).read_text() for file in FILES}


def test_every_file_gets_its_edit(tmp_path: Path) -> None:
    before = copy(tmp_path)
    result = new_op(tmp_path, "power_of_two")
    assert result.returncode == 0, result.stderr
    definition, reference, handlers, test = ((tmp_path / file).read_text() for file in FILES)
    assert 'def Top_PowerOfTwoOp : Top_UnaryOp<"power_of_two"' in definition
    assert definition.rindex("#endif") > definition.index("Top_PowerOfTwoOp")
    assert "LogicalResult PowerOfTwoOp::evaluate" in reference
    assert '{"", "PowerOfTwo", unary<PowerOfTwoOp>},\n  };' in handlers
    assert "func.func @power_of_two" in test
    for file, text in before.items():
        assert len((tmp_path / file).read_text()) > len(text)


def test_a_second_time_changes_nothing(tmp_path: Path) -> None:
    copy(tmp_path)
    assert new_op(tmp_path, "power_of_two").returncode == 0
    once = {file: (tmp_path / file).read_text() for file in FILES}
    result = new_op(tmp_path, "power_of_two")
    assert result.returncode != 0 and "exists already, in top_dialect/IR/TopElementwiseOps.td" in result.stderr
    assert once == {file: (tmp_path / file).read_text() for file in FILES}


def test_a_bad_name_is_rejected(tmp_path: Path) -> None:
    result = new_op(tmp_path, "PowerOfTwo")
    assert result.returncode == 2 and "not a snake_case name" in result.stderr


@pytest.mark.parametrize(
    "name, more, said",
    [
        ("softsign", [], "top.softsign exists already, in top_dialect/IR/TopElementwiseOps.td"),
        (
            "soft_sign",
            ["--onnx", "Softsign"],
            "ai.onnx.Softsign has a handler already, in top_dialect/Import/Onnx/Operators/OnnxElementwise.cpp:",
        ),
        ("matmul", ["--onnx", "Fresh"], "top.matmul exists already, in top_dialect/IR/"),
        (
            "quick_gelu",
            ["--domain", "com.microsoft", "--onnx", "QuickGelu"],
            "com.microsoft.QuickGelu has a handler already",
        ),
    ],
)
def test_an_operator_that_exists_is_rejected(tmp_path: Path, name: str, more: list[str], said: str) -> None:
    """With a second handler of the same operator, it would be unclear which of them is used."""
    for folder in ("top_dialect/IR", "top_dialect/Import/Onnx"):
        shutil.copytree(ROOT / folder, tmp_path / folder)
    before = copy(tmp_path)
    result = new_op(tmp_path, name, *more)
    assert result.returncode != 0 and said in result.stderr, result.stderr
    assert before == {file: (tmp_path / file).read_text() for file in FILES}
