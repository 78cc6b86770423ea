# SPDX-License-Identifier: Apache-2.0
"""Tests that a run holds the weights that it reads, the activations and little else."""
from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import onnx
import pytest
from case_file import REGRESSION, Case, all_cases
from conftest import BUILD, Builder, check, run_tool
from onnx import TensorProto, helper, numpy_helper

sys.path.insert(0, str(REGRESSION / "bench"))

from figures import measure_memory  # noqa: E402

CASES = [case for case in all_cases() if case.name in ("mobilenetv1_0.25_128", "light_resnet50")]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_memory(case: Case, builder: Builder, need) -> None:
    need(case.model)
    memory = measure_memory(BUILD, builder.bmodel(case, "x86"))
    assert memory.peak <= memory.allowed, memory


def resident(path: Path) -> int:
    """Returns how many bytes of the file `path` this process has in memory."""
    total, is_mine = 0, False
    for line in Path("/proc/self/smaps").read_text().splitlines():
        words = line.split()
        if not words[0].endswith(":"):
            is_mine = words[-1] == str(path)
        elif is_mine and words[0] == "Rss:":
            total += 1024 * int(words[1])
    return total


def test_rows_of_a_table_are_read_when_they_are_needed(tmp_path: Path) -> None:
    """Opening a model checks all bytes of a large table, and keeps none of them in memory."""
    import tessera.runtime as runtime

    table = np.random.default_rng(0).standard_normal((1 << 17, 32), np.float32)
    x = helper.make_tensor_value_info("x", TensorProto.INT64, [2])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, [2, 32])
    node = helper.make_node("Gather", ["table", "x"], ["y"])
    graph = helper.make_graph([node], "g", [x], [y], [numpy_helper.from_array(table, "table")])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]), tmp_path / "g.onnx")
    model = tmp_path / "g.bmodel"
    mlir = ("--mlir", tmp_path / "g_top.mlir")
    check(run_tool("model_transform", "--model_name", "g", "--model_def", tmp_path / "g.onnx", *mlir))
    check(run_tool("model_deploy", *mlir, "--chip", "x86", "--model", model, "--skip_validation"))
    net = runtime.load(str(model)).net()
    assert resident(model) < table.nbytes / 4
    rows = np.array([5, (1 << 17) - 1])
    np.testing.assert_array_equal(net({"x": rows})["y"], table[rows])
