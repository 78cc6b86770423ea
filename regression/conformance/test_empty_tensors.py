# SPDX-License-Identifier: Apache-2.0
"""A part of the grid of tensors without elements and without dims; empty_tensors.py runs all of it."""
from __future__ import annotations

import os
import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))

import empty_tensors  # noqa: E402
from engines import BUILD, Compiler, deploy, run_bmodel  # noqa: E402

MACHINE = BUILD / "ptx_machine" / "libcuda.so.1"
EVERY = 61  # does not divide the number of cases of an op


def faults_of(chips: list[str], precisions: list[str], every: int) -> list[str]:
    runs = empty_tensors.run_all(chips, precisions, "", os.cpu_count() or 1, every)
    return [line for lines in runs for line in lines]


def test_f32_on_cpus_and_npus() -> None:
    faults = faults_of(["x86", "npu-base"], ["F32"], EVERY)
    assert not faults, "\n".join(faults)


def test_other_precisions_on_an_npu() -> None:
    faults = faults_of(["npu-edge"], ["BF16", "INT8", "W8"], 2 * EVERY + 1)
    assert not faults, "\n".join(faults)


def test_cuda(monkeypatch: pytest.MonkeyPatch) -> None:
    if not MACHINE.exists():
        pytest.skip("the PTX machine is not built")
    monkeypatch.setenv("BMRT_LIBCUDA", os.environ.get("BMRT_LIBCUDA", str(MACHINE)))
    faults = faults_of(["cuda"], ["F32"], 3 * EVERY)
    assert not faults, "\n".join(faults)


def test_the_grid_has_every_op_at_every_rank() -> None:
    names = [case.name for group in empty_tensors.groups("") for case in group]
    assert len(names) == len(set(names)) > 5000
    assert {name.split("_")[0] for name in names} >= {*empty_tensors.UNARY, *empty_tensors.BINARY, "Conv", "MatMul"}


def test_a_module_that_no_top_pass_has_seen(tmp_path: Path) -> None:
    """The NPU leaves ops on tensors without elements to the host."""
    top = tmp_path / "m_top.mlir"
    top.write_text(
        """func.func @main(%x: tensor<3x0xf32> {top.name = "x"}) -> (tensor<3xf32> {top.name = "y"}) {
             %0 = top.reduce %x {kind = 0 : i32, axes = array<i64: 1>, keepDims = false}
                  : (tensor<3x0xf32>) -> tensor<3xf32>
             return %0 : tensor<3xf32>
           }"""
    )
    compiler = Compiler()
    try:
        bmodel = deploy(compiler, top, "npu-base")
        moved = compiler.info["partition"]["host_ops"]
    finally:
        compiler.close()
    assert [op["reason"] for op in moved] == ["has a tensor without elements, at least one is needed"]
    assert run_bmodel(bmodel, {"x": np.zeros((3, 0), np.float32)})["y"].tolist() == [0, 0, 0]
