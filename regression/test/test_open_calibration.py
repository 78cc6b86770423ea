# SPDX-License-Identifier: Apache-2.0
"""Tests run_calibration on models with open sizes: every sample keeps its own size and counts as much as any other."""
from __future__ import annotations

import json
from pathlib import Path

import numpy as np
from conftest import check, run_tool
from onnx import helper
from test_sizes import Nodes, import_at, relu_add, save, weights

DIMS = "batch=1..4,h=8..32"


def network() -> Nodes:
    """A convolution whose channels need equalising, a mean along an open dim, and a matmul."""
    nodes = [
        helper.make_node("Conv", ["x", "w0"], ["a"], kernel_shape=[3, 3], pads=[1, 1, 1, 1], name="first"),
        helper.make_node("Relu", ["a"], ["r"]),
        helper.make_node("Conv", ["r", "w1"], ["c"], kernel_shape=[1, 1], name="second"),
        helper.make_node("GlobalAveragePool", ["c"], ["g"]),
        helper.make_node("Flatten", ["g"], ["f"]),
        helper.make_node("Gemm", ["f", "w2"], ["y"], transB=1),
    ]
    channels = np.geomspace(0.02, 1, 32, dtype=np.float32).reshape(32, 1, 1, 1)
    return nodes, {"w0": channels * weights(32, 4, 3, 3), "w1": weights(32, 32, 1, 1), "w2": weights(16, 32)}


def samples(path: Path, sizes: "list[tuple[int, int]]") -> Path:
    """Writes a folder with one sample per (batch, height)."""
    path.mkdir()
    random = np.random.default_rng(1)
    for i, (batch, height) in enumerate(sizes):
        np.savez(path / f"{i:02}.npz", x=random.standard_normal((batch, 4, height, 16), np.float32))
    return path


def calibrate(mlir: Path, dataset: Path, *flags: object) -> Path:
    table = mlir.with_name(f"{mlir.parent.name}_{mlir.stem}_cali.json")
    check(run_tool("run_calibration", mlir, "--dataset", dataset, "--workers", 1, "-o", table, *flags))
    return table


def run_int8(mlir: Path, table: Path, x: np.ndarray) -> np.ndarray:
    import tessera.runtime as rt

    model = table.with_suffix(".bmodel")
    deploy = ("--chip", "x86", "--quantize", "INT8", "--calibration_table", table, "--model", model)
    check(run_tool("model_deploy", "--mlir", mlir, *deploy, "--skip_validation"))
    return rt.load(str(model)).net()({"x": x})["y"]


def test_samples_of_one_size_give_the_static_table(tmp_path: Path) -> None:
    """Also with equalised channels and learned weights. The numbers of elements are powers of two, so that equal
    weights of samples are exact."""
    save(tmp_path / "n.onnx", network(), ["batch", 4, "h", 16], 2)
    dataset = samples(tmp_path / "samples", [(2, 16)] * 8)
    flags = ("--methods", "cross_layer_equalization,bias_correction,clip_weights")
    x = np.load(dataset / "00.npz")["x"]
    found = []
    for name, how in (("open", ("--dims", DIMS)), ("static", ("--input-shapes", "x=2x4x16x16"))):
        mlir = import_at(tmp_path, "n", *how)
        mlir = mlir.rename(mlir.with_name(f"{name}.mlir"))
        table = calibrate(mlir, dataset, *flags)
        content = json.loads(table.read_text())
        found.append((content["tensors"], table.with_suffix(".safetensors").read_bytes(), run_int8(mlir, table, x)))
    assert found[0][:2] == found[1][:2]
    np.testing.assert_array_equal(found[0][2], found[1][2])


def test_every_sample_has_one_vote(tmp_path: Path) -> None:
    """Nine tenths of the values of nine small samples are within 0.9. A large sample of tiny values, which holds most
    of all values, must not change that much."""
    save(tmp_path / "n.onnx", relu_add(), ["batch", 3, "h", 8], 4)
    (tmp_path / "samples").mkdir()
    for i in range(10):
        size, most = ((8, 3, 64, 8), 0.01) if i == 9 else ((1, 3, 1, 8), 1.0)
        np.savez(
            tmp_path / "samples" / f"{i}.npz",
            x=np.linspace(-most, most, int(np.prod(size)), dtype=np.float32).reshape(size),
        )
    mlir = import_at(tmp_path, "n", "--dims", "batch=1..8,h=1..64")
    table = calibrate(mlir, tmp_path / "samples", "--cali_method", "percentile", "--percentile", 90)
    (entry,) = [each for each in json.loads(table.read_text())["tensors"] if each["name"] == "x"]
    assert 0.8 < entry["threshold"] < 1, entry
