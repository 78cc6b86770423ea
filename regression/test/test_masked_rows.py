# SPDX-License-Identifier: Apache-2.0
"""Attention whose mask hides every key of a query: ONNX's Attention gives 0 on every engine and in every precision; a
softmax written as single operators gives NaN, as its definition does."""
from __future__ import annotations

import os
import sys
from pathlib import Path

import numpy as np
import pytest
from conftest import calibrate, check, run_tool
from onnx import TensorProto, helper, numpy_helper
from small_models import tensor
from test_cuda import MACHINE, has_machine

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "conformance"))
from engines import supported_isas  # noqa: E402

CHIPS = [*supported_isas("x86-avx512bf16"), "npu-base", "npu-pro", "cuda"]
# Batch, heads, key heads, queries, keys, depth, features: rows of vectors and tails, register tiles, tensor cores.
SHAPES = [(2, 2, 2, 5, 7, 6, 9), (1, 4, 2, 32, 48, 16, 16), (1, 2, 2, 64, 64, 32, 32)]
TOLERANCE = {"F32": 1e-5, "F16": 5e-3, "BF16": 4e-2, "INT8": 8e-2}


@pytest.fixture(autouse=True)
def driver(monkeypatch: pytest.MonkeyPatch) -> None:
    if has_machine() and not os.environ.get("BMRT_LIBCUDA"):
        monkeypatch.setenv("BMRT_LIBCUDA", str(MACHINE))


def inputs_of(shape: tuple[int, ...], kind: str) -> dict[str, np.ndarray]:
    """Returns q, k, v and a mask that hides some keys of most queries, and all keys of queries 0 and 3 and of half the
    queries of batch 0."""
    batch, heads, key_heads, queries, keys, depth, features = shape
    generator = np.random.default_rng(queries)
    sizes = {"q": (heads, queries, depth), "k": (key_heads, keys, depth), "v": (key_heads, keys, features)}
    result = {n: generator.uniform(-1, 1, (batch, *size)).astype(np.float32) for n, size in sizes.items()}
    visible = generator.random((batch, 1, queries, keys)) < 0.6
    visible[:, :, (0, 3)], visible[0, :, queries // 2 :, :] = False, False
    visible[:, :, 1, -1] = visible[:, :, -1, 0] = True
    result["mask"] = visible if kind == "bool" else np.where(visible, 0, -np.inf).astype(np.float32)
    return result


def expected(given: dict[str, np.ndarray], is_causal: bool) -> tuple[np.ndarray, np.ndarray]:
    """Returns the expected result, and which rows do not have a visible key."""
    q, k, v = (given[name].astype(np.float64) for name in "qkv")
    k, v = (np.repeat(x, q.shape[1] // k.shape[1], 1) for x in (k, v))
    mask = given["mask"] if given["mask"].dtype == bool else given["mask"] == 0
    if is_causal:
        mask = mask & np.tri(q.shape[2], k.shape[2], dtype=bool)
    scores = np.where(mask, q @ k.swapaxes(2, 3) / np.sqrt(q.shape[3]), -np.inf)
    best = scores.max(-1, keepdims=True)
    powers = np.exp(scores - np.where(np.isinf(best), 0, best))
    return powers @ v / np.maximum(powers.sum(-1, keepdims=True), 1e-30), np.isinf(best[..., 0])


def save(path: Path, given: dict[str, np.ndarray], nodes: list, constants: list = []) -> Path:
    kinds = {np.dtype(bool): TensorProto.BOOL, np.dtype(np.float32): TensorProto.FLOAT}
    graph = helper.make_graph(
        nodes,
        "g",
        [tensor(name, array.shape, kinds[array.dtype]) for name, array in given.items()],
        [tensor("y", [])],
        constants,
    )
    graph.output[0].type.tensor_type.ClearField("shape")
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 23)], ir_version=10)
    path.write_bytes(model.SerializeToString())
    return path


def imported(model: Path) -> Path:
    top = model.with_name("m_top.mlir")
    check(run_tool("tessera-compile", "import", "--onnx", model, "--output", top))
    return top


def run(top: Path, chip: str, given: dict[str, np.ndarray], *flags: object) -> np.ndarray:
    import tessera.runtime as runtime

    if chip == "cuda" and not os.environ.get("BMRT_LIBCUDA"):
        pytest.skip("no GPU, and the PTX machine is not built or this processor lacks AVX2, FMA or F16C")
    model = top.with_name(f"{chip}.bmodel")
    check(run_tool("tessera-compile", "deploy", "--mlir", top, "--chip", chip, *flags, "--output", model))
    return np.array(runtime.load(str(model)).net()(given)["y"])


@pytest.mark.parametrize("precision", ["F32", "BF16", "F16"])
@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: "x".join(map(str, shape)))
def test_masked_rows_are_zero(tmp_path: Path, shape: tuple[int, ...], precision: str) -> None:
    for kind, is_causal in (("bool", 0), ("float", 0), ("bool", 1)):
        given = inputs_of(shape, kind)
        node = helper.make_node("Attention", ["q", "k", "v", "mask"], ["y"], name="attention", is_causal=is_causal)
        top = imported(save(tmp_path / "m.onnx", given, [node]))
        want, isMasked = expected(given, bool(is_causal))
        assert isMasked.any() and not isMasked.all()
        for chip in CHIPS:
            got = run(top, chip, given, "--quantize", precision)
            assert (got[isMasked] == 0).all(), f"{chip}, {kind} mask: {got[isMasked][:4]}"
            np.testing.assert_allclose(got, want, atol=TOLERANCE[precision], err_msg=f"{chip}, {kind} mask")


@pytest.mark.parametrize("shape", SHAPES[1:], ids=lambda shape: "x".join(map(str, shape)))
def test_masked_rows_of_integers_are_zero(tmp_path: Path, shape: tuple[int, ...]) -> None:
    given = inputs_of(shape, "bool")
    node = helper.make_node("Attention", ["q", "k", "v", "mask"], ["y"], name="attention")
    top = imported(save(tmp_path / "m.onnx", given, [node]))
    table, _ = calibrate(top, tmp_path)
    want, isMasked = expected(given, False)
    results = {
        chip: run(top, chip, given, "--quantize", "INT8", "--calibration-table", table)
        for chip in [*supported_isas("x86-avx512vnni"), "npu-base", "cuda"]
    }
    for chip, got in results.items():
        assert (got[isMasked] == 0).all(), f"{chip}: {got[isMasked][:4]}"
        np.testing.assert_allclose(got, want, atol=TOLERANCE["INT8"], err_msg=chip)
        np.testing.assert_array_equal(got, results["x86-v2"], err_msg=chip)


def parts(given: dict[str, np.ndarray], is_guarded: bool) -> tuple[list, list]:
    """Returns the graph of softmax(q k^T + mask) v for equal heads. If `is_guarded`, NaN becomes 0 before the last
    matmul."""
    node = helper.make_node
    nodes = [
        node("Transpose", ["k"], ["kt"], perm=[0, 1, 3, 2]),
        node("MatMul", ["q", "kt"], ["products"]),
        node("Mul", ["products", "scale"], ["scaled"]),
        node("Add", ["scaled", "mask"], ["scores"]),
        node("Softmax", ["scores"], ["weights"], axis=-1),
    ]
    weights = "weights"
    if is_guarded:
        nodes += [
            node("IsNaN", ["weights"], ["missing"]),
            node("Where", ["missing", "zero", "weights"], [weights := "guarded"]),
        ]
    scale = np.float32(given["q"].shape[3] ** -0.5)
    constants = [numpy_helper.from_array(scale, "scale"), numpy_helper.from_array(np.float32(0), "zero")]
    return [*nodes, node("MatMul", [weights, "v"], ["y"])], constants


@pytest.mark.parametrize("is_guarded", [False, True], ids=["bare", "guarded"])
def test_a_softmax_of_nothing_is_what_it_says(tmp_path: Path, is_guarded: bool) -> None:
    for shape in (SHAPES[0], SHAPES[2]):
        given = inputs_of(shape, "float")
        top = imported(save(tmp_path / "m.onnx", given, *parts(given, is_guarded)))
        want, isMasked = expected(given, False)
        want[isMasked] = 0 if is_guarded else np.nan
        for chip in CHIPS:
            np.testing.assert_allclose(run(top, chip, given), want, atol=TOLERANCE["F32"], err_msg=chip)


def test_softmax_of_minus_infinities(tmp_path: Path) -> None:
    x = np.array([[-np.inf] * 4, [0, -np.inf, 1, 2], [np.inf, 0, 1, 2]], np.float32)
    top = imported(save(tmp_path / "m.onnx", {"x": x}, [helper.make_node("Softmax", ["x"], ["y"], axis=-1)]))
    with np.errstate(invalid="ignore"):
        powers = np.exp(x - x.max(-1, keepdims=True))
        want = powers / powers.sum(-1, keepdims=True)
    for chip in CHIPS:
        np.testing.assert_allclose(run(top, chip, {"x": x}), want, atol=1e-6, err_msg=chip)
