# SPDX-License-Identifier: Apache-2.0
"""Tests indices that are only known at run time and are out of range: every engine clamps them in the same way
(docs/numerics.md)."""
from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
from onnx import TensorProto, helper

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "conformance"))

from engines import Compiler, deploy, run_bmodel, supported_isas  # noqa: E402
from small_models import save  # noqa: E402

DATA = [6, 5, 8]
AXIS = 1
# The shape of the indices, whether there are updates, and the sizes that the entries of an index refer to.
OPERATORS = {
    "Gather": ([3, 4], False, [DATA[AXIS]]),
    "GatherElements": ([6, 7, 8], False, [DATA[AXIS]]),
    "GatherND": ([9, 2], False, DATA[:2]),
    "ScatterElements": ([6, 2, 8], True, [DATA[AXIS]]),
    "ScatterND": ([3, 2], True, DATA[:2]),
}


def model(operator: str, path: Path) -> Path:
    shape, is_scatter, sizes = OPERATORS[operator]
    values = [
        helper.make_tensor_value_info("x", TensorProto.FLOAT, DATA),
        helper.make_tensor_value_info("i", TensorProto.INT64, shape),
    ]
    if is_scatter:
        values.append(
            helper.make_tensor_value_info("u", TensorProto.FLOAT, shape if len(sizes) == 1 else [shape[0], DATA[2]])
        )
    attributes = {"axis": AXIS} if len(sizes) == 1 else {}
    node = helper.make_node(operator, [value.name for value in values], ["y"], name="op", **attributes)
    return save(path, [node], values, [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)])


def indices_of(operator: str, rng: np.random.Generator) -> np.ndarray:
    """Returns indices, most of them out of range. The indices of a scatter are distinct, because ONNX does not define
    the result of duplicates."""
    shape, _, sizes = OPERATORS[operator]
    if operator == "ScatterElements":
        return np.broadcast_to(np.array([-100, 100])[None, :, None], shape).copy()
    if operator == "ScatterND":
        return np.array([[-100, -100], [2, 1 << 40], [100, 3]])
    entries = [rng.integers(-3 * size, 3 * size, shape if len(sizes) == 1 else shape[:-1]) for size in sizes]
    return entries[0] if len(sizes) == 1 else np.stack(entries, -1)


@pytest.fixture(scope="module")
def compiler():
    started = Compiler()
    yield started
    started.close()


@pytest.mark.parametrize("operator", OPERATORS)
def test_outside_is_the_nearest_inside(operator: str, compiler: Compiler, tmp_path: Path) -> None:
    path, mlir = model(operator, tmp_path / "m.onnx"), tmp_path / "m_top.mlir"
    compiler("import", "import", "--onnx", path, "--output", mlir)
    shape, is_scatter, sizes = OPERATORS[operator]
    rng = np.random.default_rng(5)
    limits = np.array(sizes, np.int64)
    x = {"x": rng.standard_normal(DATA).astype(np.float32)}
    indices = indices_of(operator, rng)
    if is_scatter:
        x["u"] = rng.standard_normal(shape if len(sizes) == 1 else [shape[0], DATA[2]]).astype(np.float32)
    inside = np.clip(indices, -limits, limits - 1)
    assert (inside != indices).any()
    wanted = None
    for chip in (supported_isas()[-1], "x86-v2", "npu-base"):
        bmodel = deploy(compiler, mlir, chip)
        clamped = run_bmodel(bmodel, {**x, "i": inside}, [])["y"]
        wanted = clamped if wanted is None else wanted
        assert np.array_equal(clamped, wanted) and np.array_equal(
            run_bmodel(bmodel, {**x, "i": indices}, [])["y"], wanted
        ), chip
