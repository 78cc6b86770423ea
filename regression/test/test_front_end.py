# SPDX-License-Identifier: Apache-2.0
"""Tests that a small part with too large a range for integers gets f32 by default: the spectrum before a speech
network's logarithm.
Powers span nine orders of magnitude, and the logarithm makes all of them matter: 16 bits are not enough.
"""
from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import small_models
from conftest import check, run_tool
from onnx import helper, numpy_helper

from tessera.files import save_npz

LENGTH, FRAME, HOP, BINS, BANDS, CLASSES = 4000, 128, 64, 65, 20, 12


def speech_network(path: Path) -> Path:
    """Waveform -> short-time spectrum (a convolution) -> powers -> bands -> logarithm -> three convolutions."""
    generator = np.random.default_rng(0)

    def weights(*shape: int) -> np.ndarray:
        return (generator.normal(size=shape) * (2 / np.prod(shape[1:])) ** 0.5).astype(np.float32)

    phase = 2 * np.pi * np.arange(BINS)[:, None] * np.arange(FRAME) / FRAME
    spectrum = np.concatenate([np.cos(phase), np.sin(phase)])[:, None] * np.hanning(FRAME)
    centres = np.linspace(0, BINS - 1, BANDS + 2)
    bands = np.maximum(0, 1 - np.abs(np.arange(BINS)[:, None] - centres[1:-1]) / (centres[1] - centres[0]))
    constants = {
        "spectrum": spectrum.astype(np.float32),
        "bands": bands.astype(np.float32),
        "floor": np.float32(1e-10),
        "mean": np.float32(-5),
        "scale": np.float32(0.25),
        "w1": weights(128, BANDS, 3),
        "w2": weights(128, 128, 3),
        "w3": weights(128, 128, 3),
        "w4": weights(CLASSES, 128).T.copy(),
        "zero": np.int64([0]),
        "middle": np.int64([BINS]),
        "end": np.int64([2 * BINS]),
        "axis": np.int64([1]),
    }
    node = helper.make_node
    nodes = [
        node("Conv", ["x", "spectrum"], ["parts"], strides=[HOP]),
        node("Mul", ["parts", "parts"], ["squares"]),
        node("Slice", ["squares", "zero", "middle", "axis"], ["real"]),
        node("Slice", ["squares", "middle", "end", "axis"], ["imaginary"]),
        node("Add", ["real", "imaginary"], ["columns"]),
        node("Transpose", ["columns"], ["powers"], perm=[0, 2, 1]),
        node("MatMul", ["powers", "bands"], ["banded"]),
        node("Max", ["banded", "floor"], ["positive"]),
        node("Log", ["positive"], ["logarithms"]),
        node("Sub", ["logarithms", "mean"], ["shifted"]),
        node("Mul", ["shifted", "scale"], ["rows"]),
        node("Transpose", ["rows"], ["features"], perm=[0, 2, 1]),
        node("Conv", ["features", "w1"], ["c1"], pads=[1, 1]),
        node("Relu", ["c1"], ["r1"]),
        node("Conv", ["r1", "w2"], ["c2"], pads=[1, 1]),
        node("Relu", ["c2"], ["r2"]),
        node("Conv", ["r2", "w3"], ["c3"], pads=[1, 1]),
        node("Relu", ["c3"], ["r3"]),
        node("ReduceMean", ["r3"], ["pooled"], axes=[2], keepdims=0),
        node("MatMul", ["pooled", "w4"], ["y"]),
    ]
    return small_models.save(
        path,
        nodes,
        [small_models.tensor("x", [1, 1, LENGTH])],
        [small_models.tensor("y", [1, CLASSES])],
        [numpy_helper.from_array(array, name) for name, array in constants.items()],
    )


def utterances(count: int, seed: int) -> np.ndarray:
    """Returns harmonics of a gliding pitch, alternately loud and quiet, above faint noise."""
    generator, found = np.random.default_rng(seed), []
    time = np.arange(LENGTH) / 16000
    for _ in range(count):
        pitch = np.cumsum(generator.uniform(90, 250) * (1 + 0.3 * np.sin(2 * np.pi * generator.uniform(1, 4) * time)))
        voice = sum(np.sin(2 * np.pi * pitch / 16000 * k) * generator.uniform(0, 1) / k for k in range(1, 20))
        envelope = np.clip(np.sin(2 * np.pi * (generator.uniform(2, 5) * time + generator.uniform())), 0, 1) ** 2
        found.append(0.2 * voice * envelope + 2e-4 * generator.normal(size=LENGTH))
    return np.stack(found).astype(np.float32)[:, None, None]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("front_end")
    speech_network(folder / "m.onnx")
    save_npz(folder / "calibration.npz", {"x": utterances(24, 1)})
    save_npz(folder / "test.npz", {"x": utterances(40, 2)})
    check(run_tool("model_transform", "--model_def", "m.onnx", "--mlir", "m_top.mlir", "--not_inference", cwd=folder))
    flags = ("--dataset", "calibration.npz", "-o", "m_cali.json", "--json")
    repaired = json.loads(check(run_tool("run_calibration", "m_top.mlir", *flags, cwd=folder)))["repair"]
    (folder / "repair.json").write_text(json.dumps(repaired))
    return folder


def deployed(folder: Path, chip: str) -> dict:
    flags = ("--quantize", "INT8", "--calibration_table", "m_cali.json", "--model", f"{chip}.bmodel", "--json")
    return json.loads(check(run_tool("model_deploy", "--mlir", "m_top.mlir", "--chip", chip, *flags, cwd=folder)))


def test_spectra_get_f32_where_16_bits_are_not_enough(folder: Path) -> None:
    repaired = json.loads((folder / "repair.json").read_text())
    assert {"squares", "columns"} <= set(repaired["floats"]) and repaired["error_before"] > 0.3
    assert json.loads((folder / "m_cali.json").read_text())["output_error"] < 0.05


@pytest.mark.parametrize("chip", ["x86", "npu-base"])
def test_the_default_keeps_the_answers(folder: Path, chip: str) -> None:
    result = deployed(folder, chip)
    assert result["output_error"]["error"] < 0.05 and result["output_error"]["samples"] == 16
    info = result["model"]["quantization"]
    assert info["integer_products"] > 0.9 * info["products"]
    if chip == "x86":
        data = ("--task", "agreement", "--data", "test.npz", "--json")
        scored = json.loads(check(run_tool("tessera", "accuracy", "m.onnx", "x86.bmodel", *data, cwd=folder)))
        assert scored["models"][1]["figures"]["agree"] >= 97
