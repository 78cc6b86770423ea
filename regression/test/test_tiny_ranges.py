# SPDX-License-Identifier: Apache-2.0
"""Tests INT8 of a network with tensors of small magnitude: it is as accurate as at any magnitude, and float is used if
integers cannot hold the values."""
from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from conftest import check, run_tool
from onnx import helper, numpy_helper
from small_models import save, tensor


def scaled_conv(path: Path, magnitude: float) -> Path:
    """Writes a network for inputs of this magnitude: a convolution with Relu, a second one, and a multiplication that
    scales the result up as far as f32 allows."""
    generator = np.random.default_rng(0)
    arrays = {
        "w": generator.standard_normal((8, 4, 3, 3)) / 6,
        "b": generator.standard_normal(8) * magnitude,
        "v": generator.standard_normal((4, 8, 1, 1)) / 3,
        "k": np.array(min(1 / magnitude, 1e30)),
    }
    nodes = [
        helper.make_node("Conv", ["x", "w", "b"], ["c"], pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["c"], ["r"]),
        helper.make_node("Conv", ["r", "v"], ["d"]),
        helper.make_node("Mul", ["d", "k"], ["y"]),
    ]
    weights = [numpy_helper.from_array(array.astype(np.float32), name) for name, array in arrays.items()]
    return save(path, nodes, [tensor("x", [1, 4, 8, 8])], [tensor("y", [1, 4, 8, 8])], weights)


@pytest.mark.parametrize(("magnitude", "integers"), [(1e-12, True), (1e-20, True), (1e-32, False), (1e-44, False)])
def test_small_networks(tmp_path: Path, magnitude: float, integers: bool) -> None:
    scaled_conv(tmp_path / "m.onnx", magnitude)
    (tmp_path / "cal").mkdir()
    generator = np.random.default_rng(1)
    for sample in range(2):
        x = generator.standard_normal((1, 4, 8, 8)) * magnitude
        np.savez(tmp_path / "cal" / f"{sample}.npz", x=x.astype(np.float32))
    given = ("--test_input", "cal/0.npz")
    check(run_tool("model_transform", "--model_def", "m.onnx", "--mlir", "m_top.mlir", *given, cwd=tmp_path))
    flags = ("--dataset", "cal", "-o", "table.json", "--methods", "none", "--workers", "1")
    check(run_tool("run_calibration", "m_top.mlir", *flags, cwd=tmp_path))
    flags = ("--quantize", "INT8", "--calibration_table", "table.json", "--model", "m.bmodel", "--json", *given)
    result = json.loads(check(run_tool("model_deploy", "--mlir", "m_top.mlir", *flags, cwd=tmp_path)))
    info = result["model"]["quantization"]
    assert (info["integer_ops"] >= 2) == integers
    if not integers:
        assert "integers need at least 1.0e-25" in info["float_ops"][0]["reason"]
    if magnitude >= 1e-32:
        output = next(row for row in result["comparison"]["tensors"] if row["name"] == "y")
        assert output["cosine"] > 0.999
