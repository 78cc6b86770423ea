# SPDX-License-Identifier: Apache-2.0
"""Tests tiled convolutions with random shapes, with and without groups. Bytes must give x86's integers; floats are
small integers, whose sums are exact in any order. Padding of tiles must not be multiplied."""
from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import pytest
from onnx import NodeProto, TensorProto, helper, numpy_helper
from small_models import save, tensor
from test_cuda_tiles import FORMS, IS_WHOLE, answers, import_model, machine, tiles_in  # noqa: F401

from conftest import check, run_tool

CASES = 300 if IS_WHOLE else 8
CHANNELS = [1, 3, 8, 12, 16, 17, 24, 32, 40, 48, 64, 72, 80, 96, 120]
CHIPS = [1, 4, 108]


def random_conv(rng: np.random.Generator, channels: int, word: int) -> tuple[tuple[int, ...], dict]:
    """Returns dims of the weights, and attributes. Half of the convolutions have groups if these can have channels in
    words of `word`."""
    kernel = [int(k) for k in rng.choice([1, 1, 2, 3], 2)]
    groups = [g for g in range(2, channels) if channels % g == 0 and channels // g % word == 0]
    group = int(rng.choice(groups)) if groups and rng.integers(2) else 1
    attributes = {
        "group": group,
        "strides": [int(s) for s in rng.integers(1, 3, 2)],
        "pads": [int(p) for p in rng.integers(0, 2, 4)],
        "dilations": [int(d) for d in rng.integers(1, 3, 2)],
    }
    columns = group * int(rng.choice([3, 8, 12, 16, 24])) if group > 1 else int(rng.choice(CHANNELS))
    return (columns, channels // group, *kernel), attributes


@pytest.mark.parametrize("seed", range(CASES))
def test_convolutions_of_bytes(seed: int, tmp_path: Path) -> None:
    """Two convolutions: the second one reads the result of the first, including its padded channels."""
    rng = np.random.default_rng([seed, 1])
    shape = (int(rng.integers(1, 3)), int(rng.choice(CHANNELS)), *(int(size) for size in rng.integers(15, 24, 2)))
    x = rng.integers(-128, 128, shape).astype(np.int8)
    constants: dict[str, np.ndarray] = {"zero": np.array(int(rng.integers(-5, 6)), np.int8)}
    nodes: list[NodeProto] = []
    name, channels = "x", shape[1]
    constants["one"] = np.array(1, np.float32)
    for i in range(2):
        dims, attributes = random_conv(rng, channels, 4)
        w = rng.integers(-128, 128, dims).astype(np.int8)
        scale = np.float32(1 / (74 * 74 * np.sqrt(np.prod(dims[1:]))) * 50)
        constants |= {f"w{i}": w, f"s{i}": np.array(scale), f"z{i}": np.array(0, np.int8)}
        constants[f"b{i}"] = rng.integers(-1000, 1000, dims[0]).astype(np.int32)
        inputs = [name, "one", "zero", f"w{i}", f"s{i}", f"z{i}", "one", "zero", f"b{i}"]
        nodes.append(helper.make_node("QLinearConv", inputs, [f"t{i}"], **attributes))
        name, channels = f"t{i}", dims[0]
    results = [helper.make_tensor_value_info(name, TensorProto.INT8, None)]
    held = [numpy_helper.from_array(value, key) for key, value in constants.items()]
    save(tmp_path / "m.onnx", nodes, [tensor("x", x.shape, TensorProto.INT8)], results, held, opset=18)
    flags = ("--model_name", "m", "--model_def", "m.onnx", "--mlir", "m_top.mlir", "--not_inference")
    check(run_tool("model_transform", *flags, cwd=tmp_path))
    want, got = answers(tmp_path, x, int(rng.choice(CHIPS)))
    assert len(np.unique(want)) > 20 or want.size < 100
    np.testing.assert_array_equal(got, want)
    assert set(tiles_in(tmp_path / "ir"))


@pytest.mark.parametrize("seed", range(CASES))
def test_convolutions_of_floats(seed: int, tmp_path: Path) -> None:
    rng = np.random.default_rng([seed, 2])
    shape = (int(rng.integers(1, 3)), int(rng.choice(CHANNELS)), *(int(size) for size in rng.integers(7, 18, 2)))
    dims, attributes = random_conv(rng, shape[1], 2)
    x, w = (rng.integers(-4, 5, size).astype(np.float32) for size in (shape, dims))
    nodes = [helper.make_node("Neg", ["x"], ["n"]), helper.make_node("Conv", ["n", "w"], ["y"], **attributes)]
    import_model(tmp_path, nodes, x, w, TensorProto.FLOAT)
    form = FORMS[str(rng.choice(list(FORMS)))]
    want, got = answers(tmp_path, x, int(rng.choice(CHIPS)), *form)
    np.testing.assert_array_equal(got, want)
    assert set(tiles_in(tmp_path / "ir"))


@pytest.mark.parametrize("multiprocessors", CHIPS if IS_WHOLE else CHIPS[::2])
@pytest.mark.parametrize("shape", [(32, 80, 24), (49, 272, 16), (13, 144, 40)], ids=str)
def test_padding_is_not_multiplied(shape: tuple[int, int, int], multiprocessors: int, tmp_path: Path) -> None:
    """The least work is 16 rows, 8 columns of a tile if it has all of them, and 16 bytes of K."""
    rng, (m, k, n) = np.random.default_rng(shape), shape
    x, w = (rng.integers(-128, 128, size).astype(np.int8) for size in ((m, k), (k, n)))
    import_model(tmp_path, [helper.make_node("MatMulInteger", ["x", "w"], ["y"])], x, w, TensorProto.INT32)
    want, got = answers(tmp_path, x, multiprocessors)
    np.testing.assert_array_equal(got, want)
    (tile,) = set(tiles_in(tmp_path / "ir"))
    rows, columns, warp_rows, warp_columns = (int(tile[i]) for i in (0, 1, 3, 4))
    # If several tiles or warps share a dim, the last one with valid elements multiplies its whole part.
    own = rows // warp_rows if warp_rows > 1 or m > rows else 16
    own_columns = columns // warp_columns if warp_columns > 1 or n > columns else 8
    np.savez(tmp_path / "in.npz", x=x)
    flags = ("--model", tmp_path / "cuda.bmodel", "--input", tmp_path / "in.npz", "--output", tmp_path / "out.npz")
    counting = {"PTX_MACHINE_COUNTS": str(tmp_path / "counts.json")}
    run_tool("model_runner", *flags, env=os.environ | counting).check_returncode()
    counts = json.loads((tmp_path / "counts.json").read_text())
    issued = sum(kernel["tensor_products"] for kernel in counts.values())
    assert issued == -(-m // own) * own * -(-n // own_columns) * own_columns * k
