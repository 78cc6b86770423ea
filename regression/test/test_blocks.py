# SPDX-License-Identifier: Apache-2.0
"""Tests W4A8 and W8A8 as users see them: files are small, rows of any number have the same bits on every x86 level, and
onnxruntime's MatMulNBits keeps its weights."""
from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import onnx
import pytest
from conftest import check, run_tool
from onnx import TensorProto, helper, numpy_helper
from test_dynamic import deploy, relative_error, run

DEPTH, WIDTH, COLUMNS = 100, 160, 40
LEVELS = ("x86-v2", "x86-avx2", "x86-avx512", "x86-avx512vnni")


def runs_here(chip: str) -> bool:
    targets = json.loads(check(run_tool("tessera-compile", "targets")).splitlines()[-1])
    return any(each["name"] == chip and each["runs_here"] for each in targets["chips"])


@pytest.fixture(scope="module")
def network(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Returns the Top file of two layers with an open number of rows."""
    folder = tmp_path_factory.mktemp("blocks")
    rng = np.random.default_rng(0)
    weights = {
        "w": rng.standard_normal((DEPTH, WIDTH)) / DEPTH**0.5,
        "v": rng.standard_normal((WIDTH, COLUMNS)) / WIDTH**0.5,
        "b": rng.standard_normal(WIDTH),
    }
    graph = helper.make_graph(
        [
            helper.make_node("MatMul", ["x", "w"], ["h"]),
            helper.make_node("Add", ["h", "b"], ["s"]),
            helper.make_node("Relu", ["s"], ["r"]),
            helper.make_node("MatMul", ["r", "v"], ["y"]),
        ],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["rows", DEPTH])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["rows", COLUMNS])],
        [numpy_helper.from_array(array.astype(np.float32), name) for name, array in weights.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.save(model, folder / "m.onnx")
    flags = ("--model_name", "m", "--model_def", folder / "m.onnx", "--mlir", folder / "m_top.mlir")
    check(run_tool("model_transform", *flags, "--dims", "rows=1..40~1", "--not_inference"))
    return folder / "m_top.mlir"


@pytest.mark.parametrize("precision, error", [("W4A8", 0.15), ("W8A8", 0.02)])
def test_rows_have_the_same_bits_on_every_level(network: Path, tmp_path: Path, precision: str, error: float) -> None:
    deploy(network, tmp_path / "f32.bmodel")
    files = {}
    for chip in LEVELS:
        files[chip] = tmp_path / f"{chip}.bmodel"
        info = deploy(network, files[chip], "--quantize", precision, "--chip", chip)["model"]["quantization"]
        assert info["integer_ops"] == 2 and not info["float_ops"]
    x = np.random.default_rng(1).standard_normal((33, DEPTH)).astype(np.float32)
    chips = [chip for chip in LEVELS if runs_here(chip)]
    wanted = {chip: run(files[chip], {"x": x})["y"] for chip in chips}
    assert 0 < relative_error(wanted["x86-v2"], run(tmp_path / "f32.bmodel", {"x": x})["y"]) < error
    for chip in chips:
        assert np.array_equal(wanted[chip], wanted["x86-v2"]), chip
        for rows in (1, 2, 7, 9, 16):
            assert np.array_equal(run(files[chip], {"x": x[:rows]})["y"], wanted[chip][:rows]), (chip, rows)
