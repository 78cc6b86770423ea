# SPDX-License-Identifier: Apache-2.0
"""All tools give one figure for the error of a model's outputs, and one verdict, on every chip."""
from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import small_models
from conftest import check, run_tool
from onnx import helper, numpy_helper

from tessera.files import save_npz

CHIPS = ("x86", "npu-edge")
SIDE, WIDTH = 20, 64
"""A convolution of 15 million multiplications, more than a simulator runs on 16 samples."""


def made(folder: Path, nodes: list, outputs: list, weights: dict[str, np.ndarray], shape: list[int]) -> None:
    """m_top.mlir and samples.npz."""
    constants = [numpy_helper.from_array(array, name) for name, array in weights.items()]
    small_models.save(folder / "m.onnx", nodes, [small_models.tensor("x", shape)], outputs, constants)
    check(run_tool("model_transform", "--model_def", "m.onnx", "--mlir", "m_top.mlir", "--not_inference", cwd=folder))
    x = np.random.default_rng(2).normal(size=(40, *shape)) * np.linspace(0.2, 1, 40).reshape(-1, *[1] * len(shape))
    save_npz(folder / "samples.npz", {"x": x.astype(np.float32)})


def one_probability(folder: Path, width: int, side: int) -> None:
    """A network that gives one probability for each sample."""
    node, generator = helper.make_node, np.random.default_rng(1)
    nodes = [
        node("Conv", ["x", "w"], ["c"], pads=[1, 1, 1, 1]),
        node("Relu", ["c"], ["a"]),
        node("GlobalMaxPool", ["a"], ["pooled"]),
        node("Flatten", ["pooled"], ["flat"]),
        node("Gemm", ["flat", "g", "b"], ["logit"]),
        node("Sigmoid", ["logit"], ["p"]),
    ]
    weights = {
        "w": (generator.normal(size=(width, width, 3, 3)) / width).astype(np.float32),
        "g": (generator.normal(size=(width, 1)) * 16 / width).astype(np.float32),
        "b": np.float32([0.5]),
    }
    made(folder, nodes, [small_models.tensor("p", [1, 1])], weights, [1, width, side, side])


def deployed(folder: Path, chip: str, *flags: str) -> dict:
    arguments = ("--chip", chip, "--model", f"{chip}.bmodel", "--json", *flags)
    return json.loads(check(run_tool("model_deploy", "--mlir", "m_top.mlir", *arguments, cwd=folder)))


@pytest.mark.parametrize("width, side", [(4, 6), (WIDTH, SIDE)], ids=["simulated", "too-large-to-simulate"])
def test_one_figure_on_the_same_samples(tmp_path: Path, width: int, side: int) -> None:
    one_probability(tmp_path, width, side)
    flags = ("--dataset", "samples.npz", "-o", "t.json", "--tune_num", "2", "--workers", "1", "--max_error", "1")
    calibrated = json.loads(check(run_tool("run_calibration", "m_top.mlir", *flags, "--json", cwd=tmp_path)))["table"]
    quantised = ("--quantize", "INT8", "--calibration_table", "t.json")
    x86, npu = (deployed(tmp_path, chip, *quantised)["output_error"] for chip in CHIPS)
    assert x86["name"] == calibrated["error_name"] == "log-odds error" and x86["samples"] == 16
    assert x86 == npu and 0.001 < x86["error"] < 0.2
    assert calibrated["output_error"] == pytest.approx(x86["error"], rel=0.25)
    check(run_tool("model_deploy", "--mlir", "m_top.mlir", "--model", "f32.bmodel", cwd=tmp_path))
    for golden in ("f32.bmodel", "m.onnx"):
        for chip in CHIPS[: 2 if width < WIDTH else 1]:
            models = (golden, f"{chip}.bmodel", "--task", "agreement", "--data", "samples.npz")
            document = json.loads(check(run_tool("tessera", "accuracy", *models, "--json", cwd=tmp_path)))
            info = document["models"][1]["output_error"]
            assert info["error"] == pytest.approx(x86["error"], rel=2e-3)
            assert {key: info[key] for key in ("name", "samples")} == {key: x86[key] for key in ("name", "samples")}
    text = check(run_tool("tessera", "accuracy", *models, cwd=tmp_path))
    assert f"log-odds error {info['error']:.2%} on 16 samples" in text
    page = tmp_path / "page.html"
    (tmp_path / "deploy.json").write_text(
        check(
            run_tool("model_deploy", "--mlir", "m_top.mlir", "--model", "r.bmodel", *quantised, "--json", cwd=tmp_path)
        )
    )
    check(run_tool("tessera", "report", "r.bmodel", "--accuracy", "deploy.json", "-o", page, cwd=tmp_path))
    assert f"log-odds error {x86['error']:.2%} on 16 samples" in page.read_text()


def test_a_search_uses_the_same_figure(tmp_path: Path) -> None:
    one_probability(tmp_path, 4, 6)
    flags = ("--dataset", "samples.npz", "-o", "t.json", "--tune_num", "2", "--workers", "1", "--max_error", "1")
    check(run_tool("run_calibration", "m_top.mlir", *flags, cwd=tmp_path))
    quantised = ("--quantize", "INT8", "--calibration_table", "t.json")
    plain = deployed(tmp_path, "x86", *quantised)["output_error"]
    search = ("--model", "s.bmodel", "--target", "sqnr>=1", "--data", "samples.npz", "--input_num", "16")
    text = check(run_tool("model_deploy", "--mlir", "m_top.mlir", *quantised, *search, cwd=tmp_path))
    models = ("m.onnx", "x86.bmodel", "--task", "agreement", "--data", "samples.npz", "--input_num", "16")
    info = json.loads(check(run_tool("tessera", "accuracy", *models, "--json", cwd=tmp_path)))
    assert f"log-odds error on 16 samples of --data: all-INT8 {info['models'][1]['output_error']['error']:.2%}" in text
    assert plain["name"] == "log-odds error"


@pytest.mark.parametrize("chip", CHIPS)
def test_random_inputs_decide_without_samples(tmp_path: Path, chip: str) -> None:
    one_probability(tmp_path, 4, 6)
    result = deployed(tmp_path, chip, "--quantize", "BF16")
    assert result["output_error"]["samples"] == 4 and result["output_error"]["name"] == "log-odds error"
    save_npz(tmp_path / "x.npz", {"x": np.load(tmp_path / "samples.npz")["x"][9]})
    given = deployed(tmp_path, chip, "--quantize", "BF16", "--test_input", "x.npz")
    assert given["output_error"]["samples"] == 1


def flipping_mask(folder: Path) -> None:
    """Scores below a threshold become -inf, as in beam search; rounding flips some that lie close to it."""
    node, generator = helper.make_node, np.random.default_rng(1)
    nodes = [
        node("MatMul", ["x", "w"], ["scores"]),
        node("Less", ["scores", "threshold"], ["low"]),
        node("Where", ["low", "minus_inf", "scores"], ["masked"]),
        node("Softmax", ["masked"], ["weights"], axis=1),
        node("MatMul", ["weights", "v"], ["y"]),
    ]
    weights = {
        "w": generator.normal(size=(16, 200)).astype(np.float32),
        "threshold": np.float32(0.1),
        "minus_inf": np.float32(-np.inf),
        "v": generator.normal(size=(200, 8)).astype(np.float32),
    }
    outputs = [small_models.tensor("y", [1, 8]), small_models.tensor("masked", [1, 200])]
    made(folder, nodes, outputs, weights, [1, 16])


def test_a_mask_that_flips_is_no_broken_model(tmp_path: Path) -> None:
    """Some chips show the tensors inside of the network and others do not; the verdict is that of the outputs."""
    flipping_mask(tmp_path)
    table = ("--dataset", "samples.npz", "-o", "t.json", "--workers", "1", "--max_error", "1")
    check(run_tool("run_calibration", "m_top.mlir", *table, cwd=tmp_path))
    results = [deployed(tmp_path, chip, "--quantize", "INT8", "--calibration_table", "t.json") for chip in CHIPS]
    rows = {row["name"]: row for row in results[0]["comparison"]["tensors"]}
    assert rows["masked"]["non_finite_differs"] > 0
    assert results[0]["output_error"] == results[1]["output_error"]


def test_outputs_that_no_op_computes_are_recorded(tmp_path: Path) -> None:
    import tessera.runtime as runtime

    node = helper.make_node
    nodes = [
        node("Gemm", ["x", "w"], ["y"]),
        node("Softmax", ["y"], ["p"], axis=1),
        node("Reshape", ["p", "column"], ["moved"]),
        node("Sigmoid", ["y"], ["q"]),
        node("Concat", ["p", "q"], ["both"], axis=1),
        node("Identity", ["x"], ["given"]),
        node("Identity", ["w"], ["constant"]),
    ]
    weights = {"w": np.eye(4, dtype=np.float32), "column": np.int64([4, 1])}
    shapes = {"y": [1, 4], "moved": [4, 1], "q": [1, 4], "both": [1, 8], "given": [1, 4], "constant": [4, 4]}
    made(tmp_path, nodes, [small_models.tensor(name, shape) for name, shape in shapes.items()], weights, [1, 4])
    wanted = {"y": None, "moved": "softmax", "q": "sigmoid", "both": "softmax", "given": "none", "constant": "none"}
    for chip in CHIPS:
        for quantize in ("F32", "BF16"):
            deployed(tmp_path, chip, "--quantize", quantize)
            outputs = runtime.load(str(tmp_path / f"{chip}.bmodel")).net().outputs
            assert {info.name: info.computed_by for info in outputs} == wanted
