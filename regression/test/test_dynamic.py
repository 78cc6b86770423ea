# SPDX-License-Identifier: Apache-2.0
"""Tests DYNAMIC_INT8 as users see it: it needs no table, is close to f32, gives smaller files and quantises each row by
itself. A matmul that it cannot quantise is reported or rejected.

Equal bits on every engine: test_exact_models.py (whole models) and regression/conformance/random_ops.py.
"""
from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import onnx
import pytest
from case_file import Case, all_cases, data_path
from conftest import Builder, check, run_tool
from onnx import TensorProto, helper, numpy_helper
from test_cases import skip_if_missing

CASES = {case.name: case for case in all_cases()}


def deploy(mlir: Path, output: Path, *flags: object) -> dict:
    return json.loads(
        check(run_tool("model_deploy", "--mlir", mlir, "--model", output, "--skip_validation", "--json", *flags))
    )


def run(bmodel: Path, inputs: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    import tessera.runtime as runtime

    return {name: array.copy() for name, array in runtime.load(str(bmodel), threads=1).net()(inputs).items()}


def relative_error(got: np.ndarray, wanted: np.ndarray) -> float:
    return float(np.linalg.norm(got - wanted) / np.linalg.norm(wanted))


@pytest.mark.parametrize("name, error, size", [("stories260k", 0.03, 0.6), ("toycar_autoencoder", 0.03, 0.5)])
def test_models_of_matmuls_stay_near_and_get_small(
    builder: Builder, tmp_path: Path, name: str, error: float, size: float
) -> None:
    case: Case = CASES[name]
    skip_if_missing(case)
    small, of_bytes = tmp_path / "d.bmodel", tmp_path / "v.bmodel"
    info = deploy(builder.top(case), small, "--quantize", "DYNAMIC_INT8")["model"]["quantization"]
    assert info["integer_products"] == info["products"] > 0 and not info["float_ops"]
    f32 = builder.bmodel(case, "x86")
    # For machines without VNNI, weights are stored in two bytes.
    deploy(builder.top(case), of_bytes, "--quantize", "DYNAMIC_INT8", "--chip", "x86-avx512vnni")
    assert of_bytes.stat().st_size < size * f32.stat().st_size
    given = {key: np.load(data_path(path)) for key, path in case.inputs.items()}
    wanted, got = run(f32, given), run(small, given)
    assert all(0 < relative_error(got[key], wanted[key]) < error for key in wanted)


def make_product(folder: Path, rows: int) -> Path:
    rng = np.random.default_rng(1)
    weights = (rng.standard_normal((70, 33)) * 10.0 ** rng.integers(-2, 3, 33)).astype(np.float32)
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "w"], ["y"], name="product")],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [rows, 70])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [rows, 33])],
        [numpy_helper.from_array(weights, "w")],
    )
    onnx.save(
        helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), folder / f"p{rows}.onnx"
    )
    mlir = folder / f"p{rows}_top.mlir"
    check(
        run_tool(
            "model_transform",
            "--model_name",
            f"p{rows}",
            "--model_def",
            folder / f"p{rows}.onnx",
            "--mlir",
            mlir,
            "--not_inference",
        )
    )
    return mlir


def test_a_row_does_not_depend_on_the_others(tmp_path: Path) -> None:
    """A token gives the same bits alone and beside others, however large these are."""
    x = np.random.default_rng(2).standard_normal((5, 70)).astype(np.float32) * np.float32(
        [[1], [1e4], [1e-4], [0], [3]]
    )
    for rows in (1, 5):
        deploy(make_product(tmp_path, rows), tmp_path / f"{rows}.bmodel", "--quantize", "DYNAMIC_INT8")
    together = run(tmp_path / "5.bmodel", {"x": x})["y"]
    for i, row in enumerate(together):
        assert np.array_equal(row, run(tmp_path / "1.bmodel", {"x": x[i : i + 1]})["y"][0])
    weights = numpy_helper.to_array(onnx.load(tmp_path / "p5.onnx").graph.initializer[0])
    exact = x.astype(np.float64) @ weights
    assert not together[3].any() and all(relative_error(together[i], exact[i]) < 0.02 for i in (0, 1, 2, 4))


def test_what_is_no_matmul_stays_f32_and_says_so(builder: Builder, tmp_path: Path) -> None:
    info = deploy(builder.top(CASES["resnet8_cifar10"]), tmp_path / "m.bmodel", "--quantize", "DYNAMIC_INT8")["model"][
        "quantization"
    ]
    assert info["integer_ops"] == 1
    assert {op["reason"] for op in info["float_ops"]} == {
        "top.conv cannot be quantised at run time; only top.matmul can"
    }


def qtable(folder: Path, name: str) -> Path:
    table = folder / "q.json"
    table.write_text(
        json.dumps({"format": "tessera-quantize-table", "version": 1, "ops": [{"name": name, "type": "DYNAMIC_INT8"}]})
    )
    return table


def test_a_line_of_a_quantise_table(tmp_path: Path) -> None:
    mlir = make_product(tmp_path, 5)
    info = deploy(mlir, tmp_path / "m.bmodel", "--quantize", "BF16", "--quantize_table", qtable(tmp_path, "product"))
    assert info["model"]["quantization"]["integer_ops"] == 1


def test_rejected(builder: Builder, tmp_path: Path) -> None:
    mlir = builder.top(CASES["resnet8_cifar10"])
    info = json.loads(check(run_tool("tessera-compile", "info", "--mlir", mlir, "--tensors")).splitlines()[-1])
    conv = qtable(tmp_path, info["tensors"][1])
    result = run_tool(
        "model_deploy", "--mlir", mlir, "--model", tmp_path / "m.bmodel", "--quantize", "W8", "--quantize_table", conv
    )
    assert (
        result.returncode == 1 and "cannot be DYNAMIC_INT8: top.conv cannot be quantised at run time" in result.stderr
    )
    assert not (tmp_path / "m.bmodel").exists()
    result = run_tool("model_deploy", "--mlir", mlir, "--model", tmp_path / "m.bmodel", "--quantize", "DYNAMIC_INT4")
    assert result.returncode == 2 and "DYNAMIC_INT8" in result.stderr


@pytest.mark.parametrize("chip", ["npu-edge", "npu-base", "npu-pro"])
def test_npus_run_all_of_it(builder: Builder, tmp_path: Path, chip: str) -> None:
    """Rows' zero points are subtracted from sums that are known to stay below 2^24. The map has more operands than a
    command."""
    top = builder.top(CASES["stories260k_kv"])
    skip_if_missing(CASES["stories260k_kv"])
    deploy(top, tmp_path / "x86.bmodel", "--quantize", "DYNAMIC_INT8")
    deploy(top, tmp_path / "npu.bmodel", "--quantize", "DYNAMIC_INT8", "--chip", chip, "--strict")
    given = {key: np.load(data_path(path)) for key, path in CASES["stories260k_kv"].inputs.items()}
    wanted, got = run(tmp_path / "x86.bmodel", given), run(tmp_path / "npu.bmodel", given)
    assert wanted.keys() == got.keys() and all(np.array_equal(got[key], wanted[key]) for key in wanted)


def test_sums_that_npus_cannot_hold_stay_on_the_host(tmp_path: Path) -> None:
    """The sums of long rows may exceed 2^24, so the op that subtracts the zero points runs on the host."""
    weights = np.where(np.random.default_rng(3).standard_normal((3000, 8)) < 0, -1, 1).astype(np.float32)
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "w"], ["y"], name="product")],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [4, 3000])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [4, 8])],
        [numpy_helper.from_array(weights, "w")],
    )
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), tmp_path / "p.onnx")
    top = tmp_path / "p_top.mlir"
    check(
        run_tool(
            "model_transform", "--model_name", "p", "--model_def", tmp_path / "p.onnx", "--mlir", top, "--not_inference"
        )
    )
    deploy(top, tmp_path / "x86.bmodel", "--quantize", "DYNAMIC_INT8")
    info = deploy(top, tmp_path / "npu.bmodel", "--quantize", "DYNAMIC_INT8", "--chip", "npu-base")["model"][
        "partition"
    ]
    assert any("beyond 2^24" in op["reason"] for op in info["host_ops"]), info
    x = np.random.default_rng(4).standard_normal((4, 3000)).astype(np.float32)
    assert np.array_equal(run(tmp_path / "x86.bmodel", {"x": x})["y"], run(tmp_path / "npu.bmodel", {"x": x})["y"])
