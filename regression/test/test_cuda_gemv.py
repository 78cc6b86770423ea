# SPDX-License-Identifier: Apache-2.0
"""Tests products of few rows by integer weights (W8, W4): each warp computes a few columns and reads 16 bytes of their
weights at once."""
from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from conftest import check, run_tool
from onnx import TensorProto, helper, numpy_helper
from small_models import save, tensor
from test_cuda_tiles import IS_WHOLE, answers, machine  # noqa: F401

CASES = 60 if IS_WHOLE else 12
seen: dict[str, set[str]] = {"order": set(), "columns": set(), "warps": set(), "group": set()}


def random_case(rng: np.random.Generator) -> tuple[tuple[int, ...], int, int, str, tuple[str, ...], int]:
    """Returns dims of x before K, K, columns, operator, flags, multiprocessors."""
    rows = int(rng.choice([1, 1, 2, 3, 5, 8]))
    dims = (rows,) if rng.integers(2) else (1, rows)
    depth = int(rng.choice([256, 288, 320, 512, 1024, 2080, 4096, 8192]))
    columns = int(rng.choice([1, 7, 18, 64, 130]))
    kind = "Gemm" if len(dims) == 1 and rng.integers(2) else "MatMul"
    flags = ("--quantize", str(rng.choice(["W8", "W4"])))
    if rng.integers(3):
        flags += ("--group-size", str(rng.choice([16, 32, 64, 96, 128])))
    return dims, depth, columns, kind, flags, int(rng.choice([1, 2, 108]))


@pytest.mark.parametrize("seed", range(CASES))
def test_few_rows(seed: int, tmp_path: Path) -> None:
    rng = np.random.default_rng(seed)
    dims, depth, columns, kind, flags, multiprocessors = random_case(rng)
    x = (rng.standard_normal((*dims, depth)) / depth**0.5).astype(np.float32)
    w = rng.standard_normal((columns, depth) if kind == "Gemm" else (depth, columns)).astype(np.float32)
    last = rng.standard_normal((columns, 3)).astype(np.float32)  # W4 keeps 8 bits for a model's last product
    nodes = [
        helper.make_node(kind, ["x", "w"], ["t"], **({"transB": 1} if kind == "Gemm" else {})),
        helper.make_node("Tanh", ["t"], ["u"]),
        helper.make_node("MatMul", ["u", "last"], ["y"]),
    ]
    given, results = [tensor("x", x.shape, TensorProto.FLOAT)], [tensor("y", (*dims, 3), TensorProto.FLOAT)]
    constants = [numpy_helper.from_array(w, "w"), numpy_helper.from_array(last, "last")]
    save(tmp_path / "m.onnx", nodes, given, results, constants, opset=18)
    flags_in = ("--model_name", "m", "--model_def", "m.onnx", "--mlir", "m_top.mlir", "--not_inference")
    check(run_tool("model_transform", *flags_in, cwd=tmp_path))
    want, got = answers(tmp_path, x, multiprocessors, *flags)
    np.testing.assert_allclose(got, want, rtol=0, atol=2e-5 * float(np.abs(want).max()))
    text = "".join(file.read_text() for file in (tmp_path / "ir").glob("*.mlir"))
    found = re.search(r"#cuda\.gemv<columns = (\d), warps = (\d x \d)>, packing = #cuda\.packing<(\w+), [^>]*>", text)
    grouped = re.search(r"#cuda\.packing<\w+, shape = [^>]*, group = (\d+)>", text)
    if found:
        for key, value in zip(("columns", "warps", "order"), found.groups()):
            seen[key].add(value)
        seen["group"].add(grouped.group(1) if grouped else "none")


def test_few_rows_took_every_way() -> None:
    """Checks what the tests above have recorded."""
    assert seen["order"] == {"bytes", "nibbles"} and seen["columns"] == {"2", "4"}, seen
    assert len(seen["warps"]) > 2 and len(seen["group"]) > 2, seen
