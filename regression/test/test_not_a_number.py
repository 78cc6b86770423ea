# SPDX-License-Identifier: Apache-2.0
"""Tests that NaN that is converted to an integer becomes 0, whatever the zero point, and that NaN that stays a float
stays NaN: on every engine (docs/numerics.md)."""
from __future__ import annotations

import os
import sys
from pathlib import Path

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "conformance"))

from engines import Compiler, deploy, run_bmodel, supported_isas  # noqa: E402
from small_models import save  # noqa: E402
from test_cuda import MACHINE, has_machine  # noqa: E402

KINDS = {
    TensorProto.INT8: np.int8,
    TensorProto.UINT8: np.uint8,
    TensorProto.INT16: np.int16,
    TensorProto.UINT16: np.uint16,
}
SHAPE = [2, 16, 5, 7]  # channels that fill a block, and positions that do not fill a vector


@pytest.fixture(scope="module")
def compiler():
    started = Compiler()
    yield started
    started.close()


def quotient(path: Path, kind: int, zero: int, rectified: bool, convolved: bool) -> Path:
    """Writes Quantize(a / b), with an optional convolution and Relu in between; 0 / 0 gives NaN."""

    def value(name: str, of: int, shape: list[int]):
        return helper.make_tensor_value_info(name, of, shape)

    nodes, last = [helper.make_node("Div", ["a", "b"], ["d"], name="d")], "d"
    if convolved:
        nodes.append(helper.make_node("Conv", ["d", "w"], ["c"], name="c"))
        last = "c"
    if rectified:
        nodes.append(helper.make_node("Relu", [last], ["r"], name="r"))
        last = "r"
    nodes.append(helper.make_node("QuantizeLinear", [last, "s", "z"], ["y"], name="y"))
    weights = np.random.default_rng(2).standard_normal((16, 16, 1, 1)).astype(np.float32)
    constants = [
        numpy_helper.from_array(np.float32(0.05), "s"),
        numpy_helper.from_array(np.array(zero, KINDS[kind]), "z"),
    ]
    constants += [numpy_helper.from_array(weights, "w")] if convolved else []
    return save(
        path,
        nodes,
        [value("a", TensorProto.FLOAT, SHAPE), value("b", TensorProto.FLOAT, SHAPE)],
        [value("y", kind, SHAPE)],
        constants,
        opset=21,
    )


@pytest.mark.parametrize(
    "kind, zero",
    [
        (TensorProto.INT8, 0),
        (TensorProto.INT8, 5),
        (TensorProto.INT8, -128),
        (TensorProto.UINT8, 0),
        (TensorProto.UINT8, 200),
        (TensorProto.INT16, 0),
        (TensorProto.UINT16, 300),
    ],
)
@pytest.mark.parametrize("rectified, convolved", [(False, False), (True, False), (False, True), (True, True)])
def test_it_is_stored_as_0(
    kind: int, zero: int, rectified: bool, convolved: bool, compiler: Compiler, tmp_path: Path
) -> None:
    path, mlir = quotient(tmp_path / "m.onnx", kind, zero, rectified, convolved), tmp_path / "m_top.mlir"
    compiler("import", "import", "--onnx", path, "--output", mlir)
    rng = np.random.default_rng(1)
    given = {
        name: np.where(rng.random(SHAPE) < 0.02, 0, rng.standard_normal(SHAPE)).astype(np.float32) for name in "ab"
    }
    given["a"][:, :, 2, 3] = given["b"][:, :, 2, 3] = 0
    with np.errstate(all="ignore"):
        is_nan = np.isnan(given["a"] / given["b"])
    if convolved:
        is_nan = np.broadcast_to(is_nan.any(1, keepdims=True), SHAPE)
    for chip in (*supported_isas(), "npu-base"):
        got = run_bmodel(deploy(compiler, mlir, chip), given, [])["y"]
        assert (got[is_nan] == 0).all(), f"{chip}: {np.unique(got[is_nan])}"


FUNCTIONS = ("Sigmoid", "Tanh", "Exp", "Log", "Erf", "Softplus", "Elu", "Sin", "Sqrt", "HardSwish", "Mish", "Softmax")
# NaN bit patterns that are not results of arithmetic in every engine: arithmetic gives 0x7fc00000 or 0xffc00000 on x86,
# 0x7fffffff on GPUs.
PAYLOADS = (0x7FC00000, 0xFFC00000, 0x7FFFFFFF, 0x7FC00001, 0x7F812345)


@pytest.mark.parametrize("engine", (supported_isas()[-1], "cuda"))
@pytest.mark.parametrize("function", FUNCTIONS)
def test_not_a_number_stays_so(engine: str, function: str, compiler: Compiler, tmp_path: Path) -> None:
    """Covers all NaN bit patterns, including those that the engine itself produces. Other elements do not change."""
    if engine == "cuda" and not has_machine():
        pytest.skip("the PTX machine is not built or this processor lacks AVX2, FMA or F16C")
    shape = [4, 24]
    given, result = (helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name in "xy")
    nodes = [helper.make_node("Neg", ["x"], ["n"]), helper.make_node("Abs", ["n"], ["a"])]
    nodes.append(helper.make_node(function, ["a"], ["y"], name="f"))
    path = save(tmp_path / "m.onnx", nodes, [given], [result], [], opset=18)
    x = np.random.default_rng(5).standard_normal(shape).astype(np.float32)
    spoilt = x.copy()
    spoilt[0, : len(PAYLOADS)] = np.array(PAYLOADS, np.uint32).view(np.float32)
    compiler("import", "import", "--onnx", path, "--output", tmp_path / "m_top.mlir")
    with pytest.MonkeyPatch.context() as patch:
        if engine == "cuda" and "BMRT_LIBCUDA" not in os.environ:
            patch.setenv("BMRT_LIBCUDA", str(MACHINE))
        model = deploy(compiler, tmp_path / "m_top.mlir", engine)
        (clean,), (got,) = (run_bmodel(model, {"x": each}).values() for each in (x, spoilt))
    wanted = np.isnan(spoilt) if function != "Softmax" else np.isnan(spoilt).any(axis=1, keepdims=True) | (x != x)
    np.testing.assert_array_equal(np.isnan(got), wanted)
    np.testing.assert_array_equal(got[~wanted], clean[~wanted])


@pytest.mark.parametrize("chip", supported_isas("x86-avx512bf16", "x86-amx"))
@pytest.mark.parametrize("kernel", (4, 5, 7))
def test_infinities_of_other_windows_are_not_read(kernel: int, chip: str, compiler: Compiler, tmp_path: Path) -> None:
    """In bf16, columns of an image row are multiplied in pairs. The last column of an odd number must not read its
    neighbour."""
    shape, stride = [1, 4, 15, 40], 2
    size = [(each - kernel) // stride + 1 for each in shape[2:]]
    weights = np.random.default_rng(3).standard_normal((16, 4, kernel, kernel)).astype(np.float32)
    path = save(
        tmp_path / "m.onnx",
        [helper.make_node("Conv", ["x", "w"], ["y"], name="y", strides=[stride, stride])],
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 16, *size])],
        [numpy_helper.from_array(weights, "w")],
    )
    x = np.random.default_rng(5).standard_normal(shape).astype(np.float32)
    x[0, 1, 7, [9, 20, 39]] = np.inf
    windows = np.lib.stride_tricks.sliding_window_view(x, (kernel, kernel), axis=(2, 3))[:, :, ::stride, ::stride]
    sees = np.isinf(windows).any(axis=(1, 4, 5))
    compiler("import", "import", "--onnx", path, "--output", tmp_path / "m_top.mlir")
    (got,) = run_bmodel(deploy(compiler, tmp_path / "m_top.mlir", chip, "--quantize=BF16"), {"x": x}, []).values()
    np.testing.assert_array_equal(np.isfinite(got), np.broadcast_to(~sees[:, None], got.shape))
    assert sees.any() and not sees.all()
