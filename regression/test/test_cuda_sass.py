# SPDX-License-Identifier: Apache-2.0
"""Tests the main loops of matmuls that NVIDIA's assembler produces, and the loop of a large matmul on tensor cores."""
from __future__ import annotations

import shutil
import sys
from pathlib import Path

import numpy as np
import pytest
from conftest import calibrate, check, run_tool
from onnx import TensorProto, helper, numpy_helper
from small_models import save, tensor
from test_cuda import deploy

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "cuda"))
import sass  # noqa: E402

needs_tools = pytest.mark.skipif(
    not (shutil.which("ptxas") and shutil.which("nvdisasm")),
    reason="ptxas or nvdisasm (CUDA toolkit, or PyPI's nvidia-cuda-nvcc and nvidia-cuda-nvdisasm) is not on the path",
)
LEAST = 0.85  # the smallest allowed share of the main loop's time in which tensor cores work
TEXT = """
\t.section\t.text.product,"ax",@progbits
.text.product:
        /*0000*/                   MOV R1, c[0x0][0x28] ;
.L_x_1:
        /*0010*/                   HMMA.16816.F32 R4, R8, R12, R4 ;
.L_x_2:
        /*0020*/                   LDSM.16.M88.4 R8, [R3] ;
        /*0030*/               @P1 LDGSTS.E.BYPASS.128 [R3], desc[UR4][R6.64] ;
        /*0040*/                   HMMA.16816.F32 R4, R8, R12, R4 ;
        /*0050*/                   HMMA.16816.F32 R4, R8, R12, R4 ;
        /*0060*/              @!P0 BRA `(.L_x_2) ;
        /*0070*/              @!UP0 BRA `(.L_x_1) ;
        /*0080*/                   EXIT ;
.L_x_3:
        /*0090*/                   BRA `(.L_x_3);
.text.map:
        /*0000*/                   STG.E.128 desc[UR4][R2.64], R4 ;
        /*0010*/                   EXIT ;
"""
CHIP = {"sm": {"schedulers": 4}, "tensor_cores": {"f16": 1024, "int8": 2048, "mma_sync": 0.5}}


def test_the_main_loop_is_found_and_judged() -> None:
    kernels = sass.parse(TEXT)
    assert list(kernels) == ["product", "map"] and not sass.main_loop(*kernels["map"])
    loop = sass.main_loop(*kernels["product"])
    assert [each.name for each in loop] == [
        "LDSM.16.M88.4",
        "LDGSTS.E.BYPASS.128",
        "HMMA.16816.F32",
        "HMMA.16816.F32",
        "BRA",
    ]
    info = sass.judge(loop, CHIP)
    # Two instructions of 2048 products at 1024 / 4 / 2 a cycle; five instructions; 4 warps of 4 passes each, twice.
    assert info == {"mma": 2, "instructions": 5, "tensor": 32, "issue": 5, "shared": 32, "busy": 1}
    assert sass.judge(loop[:3], CHIP)["busy"] == 0.5


def test_a_loop_unrolled_whole_is_all_from_the_first_to_the_last() -> None:
    code, labels = sass.parse(TEXT.replace("@!P0 BRA `(.L_x_2)", "NOP").replace("@!UP0 BRA `(.L_x_1)", "NOP"))[
        "product"
    ]
    loop = sass.main_loop(code, labels)
    assert len(loop) == 5 and loop[0].name == loop[-1].name == "HMMA.16816.F32"


@needs_tools
@pytest.mark.parametrize("chip", ["cuda-sm80", "cuda-sm86", "cuda-sm89", "cuda-sm90"])
@pytest.mark.parametrize("precision", ["F16", "INT8"])
def test_a_large_product_keeps_tensor_cores_busy(precision: str, chip: str, tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    rows, columns, k = 4096, 1024, 1024
    weights = rng.standard_normal((k, columns)).astype(np.float32) * np.float32(0.02)
    nodes = [helper.make_node("Relu", ["x"], ["r"]), helper.make_node("MatMul", ["r", "w"], ["y"], name="product")]
    values = [tensor("x", (rows, k), TensorProto.FLOAT)], [tensor("y", (rows, columns), TensorProto.FLOAT)]
    save(tmp_path / "m.onnx", nodes, *values, [numpy_helper.from_array(weights, "w")])
    flags = ("--model_name", "m", "--model_def", "m.onnx", "--mlir", "m_top.mlir", "--not_inference")
    check(run_tool("model_transform", *flags, cwd=tmp_path))
    more = ("--calibration-table", calibrate(tmp_path / "m_top.mlir", tmp_path)[0]) if precision == "INT8" else ()
    deploy(tmp_path / "m_top.mlir", chip, tmp_path / "m.bmodel", "--quantize", precision, *more)
    loops = sass.main_loops(tmp_path / "m.bmodel", chip)
    assert loops and all(each["busy"] >= LEAST for each in loops.values()), loops
