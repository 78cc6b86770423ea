# SPDX-License-Identifier: Apache-2.0
"""Tests that models with f16, bf16, 0-d tensors or results of DequantizeLinear work in all commands with default
flags."""
from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from conftest import check, run_tool
from onnx import TensorProto, helper, numpy_helper
from small_models import save, tensor

FLOAT, F16, BF16 = TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.BFLOAT16
node = helper.make_node


def bf16_inputs(path: Path) -> Path:
    return save(path, [node("Add", ["x", "x"], ["y"])], [tensor("x", [4], BF16)], [tensor("y", [4], BF16)])


def product(path: Path, kind: int) -> Path:
    """Writes a model that casts x to a narrow type, multiplies it by weights of this type, and casts the result
    back."""
    weights = helper.make_tensor("w", kind, [8, 6], np.linspace(-1, 1, 48).tolist())
    nodes = [
        node("Cast", ["x"], ["narrow"], to=kind),
        node("MatMul", ["narrow", "w"], ["product"]),
        node("Cast", ["product"], ["y"], to=FLOAT),
    ]
    return save(path, nodes, [tensor("x", [3, 8])], [tensor("y", [3, 6])], [weights])


def round_trips(path: Path) -> Path:
    nodes = [
        node("Cast", ["x"], ["half"], to=F16),
        node("Relu", ["half"], ["positive"]),
        node("Cast", ["positive"], ["y"], to=FLOAT),
        node("Cast", ["x"], ["brain"], to=BF16),
        node("Cast", ["brain"], ["z"], to=TensorProto.INT32),
    ]
    return save(path, nodes, [tensor("x", [6])], [tensor("y", [6]), tensor("z", [6], TensorProto.INT32)])


def scalar(path: Path) -> Path:
    nodes = [node("ReduceMax", ["x"], ["most"], keepdims=0), node("Div", ["x", "most"], ["y"])]
    return save(path, nodes, [tensor("x", [2, 5])], [tensor("y", [2, 5])])


def dequantised(path: Path) -> Path:
    scale = numpy_helper.from_array(np.array(0.1, np.float32), "s")
    zero = numpy_helper.from_array(np.array(0, np.int8), "z")
    nodes = [node("QuantizeLinear", ["x", "s", "z"], ["q"]), node("DequantizeLinear", ["q", "s", "z"], ["y"])]
    return save(path, nodes, [tensor("x", [2, 5])], [tensor("y", [2, 5])], [scale, zero])


MODELS = {
    "bf16_inputs": bf16_inputs,
    "bf16_product": lambda path: product(path, BF16),
    "f16_product": lambda path: product(path, F16),
    "round_trips": round_trips,
    "scalar": scalar,
    "dequantised": dequantised,
}


@pytest.mark.parametrize("name", MODELS)
def test_the_commands_run(name: str, tmp_path: Path) -> None:
    model = MODELS[name](tmp_path / "m.onnx")
    check(run_tool("model_transform", "--model_def", model, "--mlir", "m_top.mlir", cwd=tmp_path))
    for chip, precision in (("x86", "F32"), ("x86", "BF16"), ("npu-base", "F16")):
        flags = ("--chip", chip, "--quantize", precision, "--model", "m.bmodel")
        check(run_tool("model_deploy", "--mlir", "m_top.mlir", *flags, cwd=tmp_path))
    check(run_tool("model_runner", "--model", "m.bmodel", "--input", "random", "--output", "y.npz", cwd=tmp_path))


def test_casts_round(tmp_path: Path) -> None:
    round_trips(tmp_path / "m.onnx")
    x = np.array([0.1, -3, 2049, 70000, 1e-9, 258.9], np.float32)
    np.savez(tmp_path / "x.npz", x=x)
    given = ("--test_input", "x.npz")
    check(run_tool("model_transform", "--model_def", "m.onnx", "--mlir", "m_top.mlir", *given, cwd=tmp_path))
    check(run_tool("model_deploy", "--mlir", "m_top.mlir", "--model", "m.bmodel", *given, cwd=tmp_path))
    check(run_tool("model_runner", "--model", "m.bmodel", "--input", "x.npz", "--output", "y.npz", cwd=tmp_path))
    with np.load(tmp_path / "y.npz") as got:
        assert got["y"].tolist() == [np.float32(np.float16(0.1)), 0, 2048, np.inf, 0, 259]
        assert got["z"].tolist() == [0, -3, 2048, 70144, 0, 258]


def test_a_bf16_input_takes_floats(tmp_path: Path) -> None:
    bf16_inputs(tmp_path / "m.onnx")
    np.savez(tmp_path / "x.npz", x=np.array([0.1, 1, 3e38, -7.01], np.float32))
    check(run_tool("model_transform", "--model_def", "m.onnx", "--mlir", "m_top.mlir", cwd=tmp_path))
    check(run_tool("model_deploy", "--mlir", "m_top.mlir", "--model", "m.bmodel", cwd=tmp_path))
    check(run_tool("model_runner", "--model", "m.bmodel", "--input", "x.npz", "--output", "y.npz", cwd=tmp_path))
    with np.load(tmp_path / "y.npz") as got:
        assert got["y"].tolist() == [np.float32(0.2001953125), 2, np.inf, -14]
