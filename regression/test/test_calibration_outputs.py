# SPDX-License-Identifier: Apache-2.0
"""Calibration, trials and searches of models whose outputs have no step of their own.

Random small graphs list as outputs: feature maps that are reshaped as well, one tensor under two names, inputs,
constants, folded shapes and tensors without elements. TESSERA_CALIBRATION_GRAPHS=N draws N graphs.
"""
from __future__ import annotations

import json
import os
import random
from pathlib import Path

import numpy as np
import pytest
import small_models
from conftest import check, run_tool
from onnx import TensorProto, helper, numpy_helper

from tessera.files import save_npz

GRAPHS = int(os.environ.get("TESSERA_CALIBRATION_GRAPHS", "6"))
COMPUTED = ("c", "a", "y", "p")
"""Every graph has at least one of these outputs: a table needs a computed output to measure."""
FIXED = ("handed_on", "constant", "folded", "shape", "empty")
OUTPUTS = {
    "c": [1, 4, 4, 4],
    "a": [1, 4, 4, 4],
    "y": [1, 5],
    "p": [1, 5],
    "flat": [1, 64],
    "unsqueezed": [1, 1, 4, 4, 4],
    "moved": [1, 4, 4, 4],
    "a_again": [1, 4, 4, 4],
    "p_again": [1, 5],
    "y_column": [5, 1],
    "handed_on": [1, 3, 6, 6],
    "constant": [5],
    "folded": [5],
    "shape": [4],
    "empty": [0, 4, 4, 4],
}


def nodes() -> list:
    node = helper.make_node
    return [
        node("Conv", ["x", "w"], ["c"]),
        node("Relu", ["c"], ["a"]),
        node("Flatten", ["a"], ["flat"]),
        node("Gemm", ["flat", "g", "constant"], ["y"]),
        node("Softmax", ["y"], ["p"], axis=1),
        node("Unsqueeze", ["a", "zero"], ["unsqueezed"]),
        node("Transpose", ["a"], ["moved"], perm=[0, 2, 3, 1]),
        node("Identity", ["a"], ["a_again"]),
        node("Identity", ["p"], ["p_again"]),
        node("Reshape", ["y", "column"], ["y_column"]),
        node("Identity", ["x"], ["handed_on"]),
        node("Add", ["constant", "constant"], ["folded"]),
        node("Shape", ["a"], ["shape"]),
        node("Slice", ["a", "zero", "zero", "zero"], ["empty"]),
    ]


def build(path: Path, names: list[str]) -> Path:
    """Writes a model with these outputs. Nodes that it does not use are left out."""
    generator = np.random.default_rng(1)
    weights = {
        "w": generator.normal(size=(4, 3, 3, 3)).astype(np.float32),
        "g": generator.normal(size=(64, 5)).astype(np.float32) * np.float32(0.2),
        "constant": np.float32([0.1, -2, 0.3, 0, 1]),
        "zero": np.int64([0]),
        "column": np.int64([5, 1]),
    }
    used, kept = set(names), []
    for each in reversed(nodes()):
        if used & set(each.output):
            kept.insert(0, each)
            used.update(each.input)
    kinds = {"shape": TensorProto.INT64}
    return small_models.save(
        path,
        kept,
        [small_models.tensor("x", [1, 3, 6, 6])],
        [small_models.tensor(name, OUTPUTS[name], kinds.get(name, TensorProto.FLOAT)) for name in names],
        [numpy_helper.from_array(array, name) for name, array in weights.items() if name in used],
    )


def draw(seed: int) -> list[str]:
    generator = random.Random(seed)
    others = [name for name in OUTPUTS if name not in COMPUTED]
    names = [*generator.sample(COMPUTED, generator.randint(1, 2)), *generator.sample(others, generator.randint(1, 4))]
    generator.shuffle(names)
    return names


def calibrated(folder: Path, names: list[str], *flags: str) -> None:
    """Writes m.onnx, m_top.mlir, samples.npz and m_cali.json."""
    save_npz(folder / "samples.npz", {"x": np.random.default_rng(2).normal(size=(6, 1, 3, 6, 6)).astype(np.float32)})
    build(folder / "m.onnx", names)
    check(run_tool("model_transform", "--model_def", "m.onnx", "--mlir", "m_top.mlir", cwd=folder))
    table = ("--dataset", "samples.npz", "-o", "m_cali.json", "--tune_num", "2", "--workers", "1")
    check(run_tool("run_calibration", "m_top.mlir", *table, *flags, cwd=folder))


def deployed(folder: Path, *flags: str) -> dict:
    arguments = ("--quantize", "INT8", "--calibration_table", "m_cali.json", "--model", "m.bmodel", "--json")
    return json.loads(check(run_tool("model_deploy", "--mlir", "m_top.mlir", *arguments, *flags, cwd=folder)))


@pytest.mark.parametrize("seed", range(GRAPHS))
def test_outputs_without_a_step_of_their_own(tmp_path: Path, seed: int) -> None:
    import tessera.runtime as runtime

    names = draw(seed)
    methods = ("--methods", "gptq") if seed % 3 == 0 else ()
    calibrated(tmp_path, names, "--max_error", "0.001" if seed % 2 else "0.03", *methods)
    assert json.loads((tmp_path / "m_cali.json").read_text())["tensors"]
    assert deployed(tmp_path)["output_error"]["error"] < 0.2
    x = np.load(tmp_path / "samples.npz")["x"][0]
    outputs = runtime.load(str(tmp_path / "m.bmodel")).net()({"x": x})
    assert list(outputs) == names
    assert all(list(array.shape) == OUTPUTS[name] for name, array in outputs.items())
    if "handed_on" in outputs:
        assert np.array_equal(outputs["handed_on"], x)
    for name in ("a", "p"):
        if {name, f"{name}_again"} <= set(outputs):
            assert np.array_equal(outputs[name], outputs[f"{name}_again"])


@pytest.mark.parametrize("chip", ["x86", "npu-base"])
def test_a_search_over_such_outputs(tmp_path: Path, chip: str) -> None:
    calibrated(tmp_path, ["a", "y", "a_again", "handed_on", "constant", "empty", "flat", "shape"])
    found = deployed(tmp_path, "--chip", chip, "--target", "cos>=0.9", "--data", "samples.npz")["search"]
    assert found["met"]
    models = ("m.onnx", "m.bmodel", "--task", "agreement", "--data", "samples.npz")
    check(run_tool("tessera", "accuracy", *models, cwd=tmp_path))


def test_outputs_that_nothing_computes_do_not_dilute_the_error(tmp_path: Path) -> None:
    """An output that is always exact must not halve the squared error of the other output."""
    errors = []
    for names in (["y"], ["y", "handed_on", "constant", "empty"]):
        folder = tmp_path / str(len(names))
        folder.mkdir()
        calibrated(folder, names)
        errors.append(json.loads((folder / "m_cali.json").read_text())["output_error"])
    assert errors[0] > 0 and errors[1] == pytest.approx(errors[0], rel=1e-3)
