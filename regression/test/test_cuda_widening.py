# SPDX-License-Identifier: Apache-2.0
"""Tests products of f32 by weights of 8 or 16 bits on tiles: weights are converted to f32 on their way to shared
memory."""
from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from onnx import NodeProto, TensorProto, helper, numpy_helper
from small_models import save, tensor
from test_cuda_tiles import IS_WHOLE, answers, machine  # noqa: F401

from conftest import check, run_tool

CASES = 150 if IS_WHOLE else 10
seen: set[str] = set()


def random_matmul(rng: np.random.Generator) -> tuple[list[NodeProto], np.ndarray, np.ndarray]:
    """Returns nodes that compute t from x and w, and random values of x and w."""
    rows, depth = int(rng.choice([9, 16, 33, 70, 130])), int(rng.choice([36, 64, 90, 128, 256, 400, 1030]))
    columns, dims = int(rng.choice([1, 7, 18, 24, 64, 130])), (rows,) if rng.integers(2) else (2, (rows + 1) // 2)
    x = (rng.standard_normal((*dims, depth)) / depth**0.5).astype(np.float32)
    swaps = len(dims) == 1 and rng.integers(2)
    w = rng.standard_normal((columns, depth) if swaps else (depth, columns)).astype(np.float32)
    kind, attributes = ("Gemm", {"transB": 1}) if swaps else ("MatMul", {})
    return [helper.make_node(kind, ["x", "w"], ["t"], **attributes)], x, w


def random_conv(rng: np.random.Generator, is_narrow: bool) -> tuple[list[NodeProto], np.ndarray, np.ndarray]:
    # With more channels, x becomes narrow too when it is blocked.
    channels = int(rng.choice([1, 3, 4, 8] if is_narrow else [3, 8, 12, 32, 50, 64]))
    columns = int(rng.choice([5, 16, 24, 64]))
    kernel = [int(k) for k in rng.choice([1, 3, 5], 2)]
    while channels * kernel[0] * kernel[1] <= 64:  # smaller convolutions have f32 weights
        kernel[1] += 1
    x = rng.standard_normal((1, channels, 17, 13 + kernel[1])).astype(np.float32)
    w = rng.standard_normal((columns, channels, *kernel)).astype(np.float32) / np.float32(channels**0.5)
    pads, strides = [int(p) for p in rng.integers(0, 2, 4)], [int(s) for s in rng.integers(1, 3, 2)]
    return [helper.make_node("Conv", ["x", "w"], ["t"], pads=pads, strides=strides)], x, w


@pytest.mark.parametrize("seed", range(CASES))
def test_weights_become_floats(seed: int, tmp_path: Path) -> None:
    rng = np.random.default_rng(seed)
    precision = str(rng.choice(["W8", "W4", "F16"]))
    flags: tuple[str, ...] = ("--quantize", precision)
    if precision[0] == "W" and rng.integers(3):
        flags += ("--group-size", str(rng.choice([16, 32, 64, 128])))
    is_narrow = precision[0] != "W"
    nodes, x, w = random_conv(rng, is_narrow) if is_narrow or rng.integers(2) else random_matmul(rng)
    nodes.append(helper.make_node("Tanh", ["t"], ["y"]))
    given, results = [tensor("x", x.shape, TensorProto.FLOAT)], [helper.make_tensor_value_info("y", 1, None)]
    save(tmp_path / "m.onnx", nodes, given, results, [numpy_helper.from_array(w, "w")], opset=18)
    flags_in = ("--model_name", "m", "--model_def", "m.onnx", "--mlir", "m_top.mlir", "--not_inference")
    check(run_tool("model_transform", *flags_in, cwd=tmp_path))
    want, got = answers(tmp_path, x, int(rng.choice([1, 12, 108])), *flags)
    np.testing.assert_allclose(got, want, rtol=0, atol=2e-5 if not is_narrow else 2e-3)
    text = "".join(file.read_text() for file in sorted((tmp_path / "ir").glob("*pack-weights.mlir")))
    lines = [line for line in text.splitlines() if "cuda.tile" in line]
    found = [re.search(r": \(tensor<\S*xf32[^)]*?>, tensor<\d+x\d+x(i8|f16)>", line) for line in lines]
    assert found and all(found), "no product by tiles whose weights are widened"
    for line, widened in zip(lines, found):
        assert widened
        seen.add(f"{'conv' if 'strides' in line else 'matmul'} {widened.group(1)}")
        seen.update({"groups"} if len(flags) > 2 and "weightGroup" in line else ())


def test_every_way_was_taken() -> None:
    """Checks what the tests above have recorded."""
    assert seen == {"conv i8", "matmul i8", "conv f16", "groups"}, seen
