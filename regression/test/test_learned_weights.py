# SPDX-License-Identifier: Apache-2.0
"""Tests weights that run_calibration learns from samples: each method repairs a real model, and faulty arguments are
named."""
from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Callable

import numpy as np
import pytest
from conftest import check, run_tool
from PIL import Image
from test_bad_input import assert_rejected
from test_calibration import PICTURES, calibrate, pictures, top  # noqa: F401: fixtures

from tessera import top_model
from tessera.calibration.worker import Job, Worker
from tessera.files import save_npz
from tessera.progress import Report


def test_weights_by_the_samples(top: Path, pictures: Path, tmp_path: Path) -> None:
    """The weights are written beside the table, and the same samples give the same bytes."""
    document = json.loads(
        check(calibrate(top, pictures, tmp_path / "a.json", "--methods", "gptq,bias_correction", "--json"))
    )
    info = document["methods"]
    assert info["ops"] == 10 and min(info["error_with"], info["error_without"]) > 0
    check(calibrate(top, pictures, tmp_path / "b.json", "--methods", "gptq,bias_correction", "--workers", "1"))
    assert (tmp_path / "a.safetensors").read_bytes() == (tmp_path / "b.safetensors").read_bytes()
    assert (tmp_path / "a.json").read_bytes() == (tmp_path / "b.json").read_bytes() and b"weights_hash" in (
        tmp_path / "a.json"
    ).read_bytes()
    deployed = check(
        run_tool(
            "model_deploy",
            "--mlir",
            top,
            "--quantize",
            "INT8",
            "--calibration_table",
            tmp_path / "a.json",
            "--model",
            tmp_path / "a.bmodel",
            "--skip_validation",
            "--json",
            cwd=tmp_path,
        )
    )
    assert json.loads(deployed)["model"]["quantization"]["learned_weights"] == 10
    check(calibrate(top, pictures, tmp_path / "a.json", "--methods", "none"))
    assert not (tmp_path / "a.safetensors").exists() and "weights" not in json.loads((tmp_path / "a.json").read_text())


def test_four_bit_weights_by_the_samples(top: Path, pictures: Path, tmp_path: Path) -> None:
    """Learned weights lower the error of W4 on samples. Other precisions do not use them, and other group sizes are
    rejected."""
    info = json.loads(
        check(calibrate(top, pictures, tmp_path / "a.json", "--quantize", "W4", "--group_size", "16", "--json"))
    )["methods"]
    assert info["ops"] >= 7 and 0 < info["error_with"] < 0.8 * info["error_without"], info

    def deploy(precision: str, *flags: object) -> subprocess.CompletedProcess[str]:
        return run_tool(
            "model_deploy",
            "--mlir",
            top,
            "--quantize",
            precision,
            "--calibration_table",
            tmp_path / "a.json",
            "--model",
            tmp_path / "a.bmodel",
            "--skip_validation",
            "--json",
            *flags,
            cwd=tmp_path,
        )

    learned = {
        precision: json.loads(check(deploy(precision, *flags)))["model"]["quantization"]["learned_weights"]
        for precision, *flags in (("W4", "--group_size", "16"), ("INT8",))
    }
    assert learned == {"W4": info["ops"], "INT8": 0}
    assert_rejected(deploy("W4", "--group_size", "64"), 1, "a.safetensors", "the same --group_size")
    assert_rejected(
        calibrate(top, pictures, tmp_path / "a.json", "--quantize", "W8", "--group_size", "16"),
        2,
        "--group_size 16",
        "W4",
    )


def test_four_bit_weights_in_order_and_wide(top: Path, pictures: Path, tmp_path: Path) -> None:
    """Each of the two methods lowers the error that gptq leaves. At most a tenth of the weights keeps 8 bits; these are
    reported and deployed."""
    info = {}
    for methods in ("gptq", "gptq,in_order", "gptq,keep_wide"):
        info[methods] = json.loads(
            check(calibrate(top, pictures, tmp_path / "a.json", "--quantize", "W4", "--methods", methods, "--json"))
        )["methods"]
    error = {methods: found["error_with"] for methods, found in info.items()}
    assert error["gptq,in_order"] < 0.9 * error["gptq"] and error["gptq,keep_wide"] < 0.95 * error["gptq"], error
    assert info["gptq,keep_wide"]["wide"] and not info["gptq,in_order"]["wide"]
    text = check(calibrate(top, pictures, tmp_path / "a.json", "--quantize", "W4"))
    assert "keep 8 bits" in text and "in_order+keep_wide" in text
    deployed = json.loads(
        check(
            run_tool(
                "model_deploy",
                "--mlir",
                top,
                "--quantize",
                "W4",
                "--calibration_table",
                tmp_path / "a.json",
                "--model",
                tmp_path / "a.bmodel",
                "--skip_validation",
                "--json",
                cwd=tmp_path,
            )
        )
    )
    assert deployed["model"]["quantization"]["learned_weights"] == info["gptq"]["ops"]
    assert_rejected(calibrate(top, pictures, tmp_path / "a.json", "--methods", "in_order"), 2, "in_order", "for INT8")


@pytest.mark.parametrize("method, most", [("gptq", 0.85), ("bias_correction", 0.85)])
def test_one_method_repairs_mobilenet(mobilenet: Path, crops: Path, tmp_path: Path, method: str, most: float) -> None:
    """int8 costs this model a sixth of the output's norm. Each of the two methods removes a quarter of this error, on
    samples that were not used for learning."""
    info = json.loads(
        check(calibrate(mobilenet, crops, tmp_path / "a.json", "--cali_method", "mse", "--methods", method, "--json"))
    )["methods"]
    assert info["methods"] == [method] and info["error_without"] > 0.1
    assert info["error_with"] < most * info["error_without"], info


@pytest.fixture(scope="session")
def mobilenet(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder, scale = tmp_path_factory.mktemp("mobilenet"), "0.00784313725490196"
    check(
        run_tool(
            "model_transform",
            "--model_def",
            PICTURES.parent / "mobilenetv1_0.25_128.onnx",
            "--model_name",
            "m",
            "--resize_dims",
            "146,146",
            "--keep_aspect_ratio",
            "--keep_ratio_mode",
            "short_side_scale",
            "--pixel_format",
            "rgb",
            "--mean",
            "127.5,127.5,127.5",
            "--scale",
            ",".join([scale] * 3),
            "--not_inference",
            "--mlir",
            "m_top.mlir",
            cwd=folder,
        )
    )
    return folder / "m_top.mlir"


@pytest.fixture(scope="session")
def crops(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Returns 36 large crops of photos: they give as many rows as the roundings of most ops need."""
    folder = tmp_path_factory.mktemp("crops")
    for i, path in enumerate(sorted(PICTURES.glob("*.png"))):
        with Image.open(path) as image:
            for k in range(6):
                image.crop((4 * k, 4 * k, image.width - 6 * k, image.height - 5 * k)).save(
                    folder / f"p{6 * k + i:02}.png"
                )
    return folder


def test_clipping_weights_repairs_resnet(top: Path, pictures: Path, tmp_path: Path) -> None:
    info = json.loads(
        check(
            calibrate(top, pictures, tmp_path / "a.json", "--cali_method", "mse", "--methods", "clip_weights", "--json")
        )
    )["methods"]
    assert info["error_with"] < 0.97 * info["error_without"], info


@pytest.mark.parametrize("method, most", [("gptq", 0.6), ("clip_weights", 0.75), ("bias_correction", 0.85)])
def test_one_method_repairs_super_resolution(
    super_resolution: Path, need: Callable[[str], Path], tmp_path: Path, method: str, most: float
) -> None:
    info = json.loads(
        check(
            calibrate(
                super_resolution,
                need("data:images/pets_calib"),
                tmp_path / "a.json",
                "--cali_method",
                "mse",
                "--methods",
                method,
                "--input_num",
                "24",
                "--json",
            )
        )
    )["methods"]
    assert info["error_with"] < most * info["error_without"], info


@pytest.fixture
def super_resolution(need: Callable[[str], Path], tmp_path: Path) -> Path:
    check(
        run_tool(
            "model_transform",
            "--model_def",
            need("data:models/sr/super_resolution_x3.onnx"),
            "--model_name",
            "sr",
            "--input_shapes",
            "[[1,1,224,224]]",
            "--pixel_format",
            "gray",
            "--scale",
            "0.00392156862745098",
            "--not_inference",
            "--mlir",
            "sr_top.mlir",
            cwd=tmp_path,
        )
    )
    return tmp_path / "sr_top.mlir"


def test_weights_by_the_samples_repair_super_resolution(
    super_resolution: Path, need: Callable[[str], Path], tmp_path: Path
) -> None:
    """The error of int8 in this model comes from the rounding of the weights. Its tensors are stored in channel blocks
    while they are compared."""
    document = json.loads(
        check(
            calibrate(
                super_resolution, need("data:images/pets_calib"), tmp_path / "a.json", "--input_num", "24", "--json"
            )
        )
    )
    info = document["methods"]
    assert info["error_with"] < 0.6 * info["error_without"], info
    assert (tmp_path / "a.safetensors").exists()


def test_weights_of_another_table_are_rejected(top: Path, pictures: Path, tmp_path: Path) -> None:
    check(calibrate(top, pictures, tmp_path / "a.json", "--methods", "gptq"))
    (tmp_path / "a.safetensors").write_bytes((tmp_path / "a.safetensors").read_bytes()[:-1] + b"x")
    result = run_tool(
        "model_deploy",
        "--mlir",
        top,
        "--quantize",
        "INT8",
        "--calibration_table",
        tmp_path / "a.json",
        "--model",
        tmp_path / "a.bmodel",
        "--skip_validation",
        cwd=tmp_path,
    )
    assert_rejected(result, 1, "a.safetensors", "SHA-256 differs", "run_calibration")


def test_unknown_method_is_rejected(top: Path, pictures: Path, tmp_path: Path) -> None:
    assert_rejected(
        calibrate(top, pictures, tmp_path / "a.json", "--methods", "gptq,bias_corection"),
        2,
        "bias_corection",
        "did you mean 'bias_correction'?",
    )


def test_tensors_are_read_row_by_row(top: Path, tmp_path: Path) -> None:
    """The weights are learned from tensors in their logical shape, although many are stored in channel blocks."""
    array = np.random.default_rng(0).uniform(0, 255, (1, 3, 32, 32)).astype(np.float32)
    save_npz(tmp_path / "in.npz", {"input": array})
    check(
        run_tool(
            "model_runner",
            "--model",
            top,
            "--input",
            tmp_path / "in.npz",
            "--output",
            tmp_path / "all.npz",
            "--dump_all_tensors",
        )
    )
    reference, report = np.load(tmp_path / "all.npz"), Report(1, quiet=True)
    model = top_model.open_top(top, report)
    info = top_model.deploy(
        model,
        tmp_path / "o.bmodel",
        report,
        chip="x86",
        quantize="F32",
        extra=["--observe", "--weights", str(tmp_path / "w.safetensors")],
    )
    observed = {t["name"]: t for t in info["tensors"] if t["name"] in reference.files and len(t["shape"]) == 4}
    worker = Worker(Job("k", str(tmp_path / "o.bmodel"), model.inputs, tuple(t["source"] for t in observed.values())))
    worker.run({"input": array})
    assert len(observed) >= 10
    for name, tensor in observed.items():
        want = reference[name].reshape(tensor["shape"])
        assert np.allclose(
            worker.array(tensor["source"]).reshape(tensor["shape"]), want, rtol=1e-3, atol=1e-3 * np.abs(want).max()
        ), name
