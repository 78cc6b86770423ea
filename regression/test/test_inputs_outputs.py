# SPDX-License-Identifier: Apache-2.0
"""Tests model_deploy --fuse_preprocess, --quant_input, --quant_output: from pixels and in integers, the answers are the
same as without the flags."""
from __future__ import annotations

import json
import subprocess
from pathlib import Path

import numpy as np
import pytest
from case_file import REGRESSION
from conftest import check, run_tool
from PIL import Image
from test_bad_input import assert_rejected

MODEL = REGRESSION / "models" / "resnet8_cifar10" / "resnet8_cifar10.onnx"
MEAN, SCALE = np.float32([3, 7.5, 11]), np.float32([0.9, 1.0, 1.1])


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Returns a folder with a Top model with pre-processing, smooth pictures, and a table made from them."""
    folder = tmp_path_factory.mktemp("pixels")
    check(
        run_tool(
            "model_transform",
            "--model_def",
            MODEL,
            "--model_name",
            "r8",
            "--pixel_format",
            "rgb",
            "--mean",
            "3,7.5,11",
            "--scale",
            "0.9,1.0,1.1",
            "--not_inference",
            "--mlir",
            "r8_top.mlir",
            cwd=folder,
        )
    )
    (folder / "pictures").mkdir()
    generator = np.random.default_rng(5)
    for i in range(8):
        small = Image.fromarray(generator.integers(0, 256, (6, 6, 3), np.uint8))
        small.resize((32, 32), Image.BILINEAR).save(folder / "pictures" / f"{i}.png")
    check(
        run_tool(
            "run_calibration",
            "r8_top.mlir",
            "--dataset",
            "pictures",
            "--cali_method",
            "max",
            "--methods",
            "none",
            "-o",
            "r8_cali.json",
            cwd=folder,
        )
    )
    return folder


def deploy(folder: Path, output: Path, *flags: object, int8: bool = True) -> subprocess.CompletedProcess[str]:
    quantize = ["--quantize", "INT8", "--calibration_table", "r8_cali.json"] if int8 else []
    return run_tool("model_deploy", "--mlir", "r8_top.mlir", *quantize, "--model", output, *flags, cwd=folder)


def load(path: Path):
    import tessera.runtime as runtime

    return runtime.load(str(path), threads=1).net()


def pixels_of(folder: Path) -> list[np.ndarray]:
    """Returns pixels [1,H,W,3] in RGB."""
    return [np.asarray(Image.open(path))[None] for path in sorted((folder / "pictures").iterdir())]


def floats_of(pixels: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(((pixels.astype(np.float32) - MEAN) * SCALE).transpose(0, 3, 1, 2))


@pytest.mark.parametrize("int8", [False, True])
@pytest.mark.parametrize("form", ["packed", "planar", "bgr_packed", "bgr_planar", "rgb_planar"])
def test_pixels_give_the_same_bits(folder: Path, tmp_path: Path, form: str, int8: bool) -> None:
    check(deploy(folder, tmp_path / "a.bmodel", "--skip_validation", int8=int8))
    check(deploy(folder, tmp_path / "b.bmodel", "--skip_validation", "--fuse_preprocess", form, int8=int8))
    plain, fused = load(tmp_path / "a.bmodel"), load(tmp_path / "b.bmodel")
    assert fused.inputs[0].type == "u8" and fused.inputs[0].shape == (
        (1, 3, 32, 32) if "planar" in form else (1, 32, 32, 3)
    )
    for pixels in pixels_of(folder):
        given = pixels[..., ::-1] if form.startswith("bgr") else pixels
        given = np.ascontiguousarray(given.transpose(0, 3, 1, 2) if "planar" in form else given)
        want, got = plain({"input": floats_of(pixels)})["output"], fused({"input": given})["output"]
        assert got.tobytes() == want.tobytes() if int8 else np.allclose(got, want, atol=1e-6)


@pytest.mark.parametrize("chip", ["npu-edge", "npu-base", "npu-pro"])
def test_pixels_cost_an_npu_nothing(folder: Path, tmp_path: Path, chip: str) -> None:
    """A table for each channel maps pixels to the model's integers. For such small pictures, packed pixels may take one
    more transfer, whose latency is allowed."""
    check(deploy(folder, tmp_path / "x86.bmodel", "--skip_validation"))
    info = {}
    for form in ("", "packed", "bgr_planar"):
        flags = ["--fuse_preprocess", form] if form else []
        text = check(
            deploy(folder, tmp_path / f"{form or chip}.bmodel", "--skip_validation", "--json", "--chip", chip, *flags)
        )
        info[form] = json.loads(text)["perf"]["microseconds"]
    assert info["packed"] <= 1.02 * info[""] and info["bgr_planar"] <= 1.02 * info[""], info
    nets = {form: load(tmp_path / f"{form}.bmodel") for form in ("x86", "packed", "bgr_planar")}
    for pixels in pixels_of(folder):
        want = nets["x86"]({"input": floats_of(pixels)})["output"]
        planar = np.ascontiguousarray(pixels[..., ::-1].transpose(0, 3, 1, 2))
        for form, given in (("packed", pixels), ("bgr_planar", planar)):
            assert nets[form]({"input": given})["output"].tobytes() == want.tobytes(), form


def test_tools_feed_pixels(folder: Path, tmp_path: Path) -> None:
    """Checks, runs and scores of a fused model equal those of the plain model for the same pictures."""
    picture = folder / "pictures" / "0.png"
    text = check(deploy(folder, tmp_path / "b.bmodel", "--fuse_preprocess", "--test_input", picture, int8=False))
    assert "FAIL" not in text
    check(deploy(folder, tmp_path / "a.bmodel", "--skip_validation", int8=False))
    document = json.loads(
        check(
            run_tool(
                "tessera",
                "accuracy",
                tmp_path / "a.bmodel",
                tmp_path / "b.bmodel",
                "--scorer",
                "s.py",
                "--data",
                folder / "pictures",
                "--json",
                cwd=_scorer(tmp_path),
            )
        )
    )
    first, second = (model["figures"]["sum"] for model in document["models"])
    assert first == pytest.approx(second, abs=1e-5) and first != 0


def _scorer(folder: Path) -> Path:
    (folder / "s.py").write_text(
        "from pathlib import Path\nimport numpy as np\nfrom tessera.tasks import read_picture\n"
        "def score(model, data):\n    spec = model.inputs[0]\n    outputs = [model.run({spec.name: "
        "read_picture(spec, p)})['output'].ravel() "
        "for p in sorted(Path(data).iterdir())]\n    return {'sum': float(np.stack(outputs) @ np.arange(10) @ "
        "np.arange(len(outputs)))}\n"
    )
    return folder


def test_integers_in_and_out(folder: Path, tmp_path: Path) -> None:
    check(deploy(folder, tmp_path / "a.bmodel", "--skip_validation"))
    text = check(
        deploy(
            folder,
            tmp_path / "b.bmodel",
            "--quant_input",
            "--quant_output",
            "--test_input",
            folder / "pictures" / "0.png",
        )
    )
    assert "stays f32" not in text
    plain, integers = load(tmp_path / "a.bmodel"), load(tmp_path / "b.bmodel")
    into, out = integers.inputs[0], integers.outputs[0]
    assert into.type == out.type == "i8" and into.scale > 0 and out.scale > 0
    for pixels in pixels_of(folder):
        x = floats_of(pixels)
        q = np.clip(np.rint(x / np.float32(into.scale)) + into.zero_point, -128, 127).astype(np.int8)
        want = plain({"input": x})["output"]
        got = integers({"input": q})["output"]
        assert got.dtype == np.int8
        assert np.array_equal(got, np.clip(np.rint(want / np.float32(out.scale)) + out.zero_point, -128, 127))
    info = check(run_tool("model_tool", "info", tmp_path / "b.bmodel"))
    assert "I8" in info and "scale" in info and "zero point" in info


def test_pixels_and_integers_together(folder: Path, tmp_path: Path) -> None:
    check(
        deploy(
            folder, tmp_path / "b.bmodel", "--fuse_preprocess", "--quant_input", "--quant_output", "--skip_validation"
        )
    )
    net = load(tmp_path / "b.bmodel")
    assert net.inputs[0].type == "u8" and net.outputs[0].type == "i8"


def test_what_has_no_range_stays_f32_and_is_told(folder: Path, tmp_path: Path) -> None:
    table = json.loads((folder / "r8_cali.json").read_text())
    table["tensors"] = [line for line in table["tensors"] if line["name"] not in ("input", "output")]
    (tmp_path / "t.json").write_text(json.dumps(table))
    text = check(
        run_tool(
            "model_deploy",
            "--mlir",
            folder / "r8_top.mlir",
            "--quantize",
            "INT8",
            "--calibration_table",
            tmp_path / "t.json",
            "--quant_input",
            "--quant_output",
            "--skip_validation",
            "--model",
            tmp_path / "m.bmodel",
        )
    )
    assert "input 'input' stays f32" in text and "output 'output' stays f32" in text
    assert load(tmp_path / "m.bmodel").inputs[0].type == "f32"


@pytest.mark.parametrize(
    "flags, code, words",
    [
        (["--fuse_preprocess", "rgba"], 2, ["rgba"]),
        (["--quant_input"], 2, ["quantised models"]),
        (["--quant_output"], 2, ["quantised models"]),
    ],
)
def test_bad_flags(folder: Path, tmp_path: Path, flags: list[str], code: int, words: list[str]) -> None:
    assert_rejected(deploy(folder, tmp_path / "m.bmodel", *flags, int8=False), code, *words)


def test_a_model_without_pre_processing(folder: Path, tmp_path: Path) -> None:
    check(
        run_tool(
            "model_transform",
            "--model_def",
            MODEL,
            "--model_name",
            "r8",
            "--not_inference",
            "--mlir",
            "r8_top.mlir",
            cwd=tmp_path,
        )
    )
    result = run_tool("model_deploy", "--mlir", "r8_top.mlir", "--fuse_preprocess", "--model", "m.bmodel", cwd=tmp_path)
    assert_rejected(result, 1, "no pre-processing", "model_transform")
