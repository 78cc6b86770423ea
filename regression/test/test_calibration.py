# SPDX-License-Identifier: Apache-2.0
"""Tests run_calibration as a user runs it, on a small real model: every kind of data set, good and bad, and
interruptions."""
from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Iterator

import numpy as np
import onnx
import pytest
import small_models
from case_file import REGRESSION
from conftest import BUILD, check, run_tool
from PIL import Image
from test_bad_input import assert_rejected

from tessera.files import save_npz

MODEL = REGRESSION / "models" / "resnet8_cifar10" / "resnet8_cifar10.onnx"
PICTURES = REGRESSION / "models" / "mobilenetv1_0.25_128" / "pictures"
GENERATOR = """
import os, signal
import numpy as np

def samples():
    generator = np.random.default_rng(3)
    for i in range(40):
        if i == 24 and os.path.exists({stop!r}):
            os.kill(os.getpid(), signal.SIGKILL)
        yield {{"input": generator.uniform(0, 255, (1, 3, 32, 32)).astype(np.float32)}}
"""


@pytest.fixture(scope="session")
def top(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("calibration")
    check(
        run_tool(
            "model_transform",
            "--model_def",
            MODEL,
            "--model_name",
            "r8",
            "--pixel_format",
            "rgb",
            "--not_inference",
            "--mlir",
            "r8_top.mlir",
            cwd=folder,
        )
    )
    return folder / "r8_top.mlir"


@pytest.fixture
def pictures(tmp_path: Path) -> Path:
    """Writes 16 crops of photos: more informative than noise, and small enough to be quick."""
    folder = tmp_path / "pictures"
    folder.mkdir()
    for i, path in enumerate(sorted(PICTURES.glob("*.png")) * 3):
        with Image.open(path) as image:
            if i < 16:
                image.crop((8 * i, 4 * i, 8 * i + 64, 4 * i + 64)).save(folder / f"p{i:02}.png")
    return folder


def calibrate(top: Path, dataset: object, output: Path, *flags: object) -> subprocess.CompletedProcess[str]:
    return run_tool("run_calibration", top, "--dataset", dataset, "-o", output, *flags, cwd=output.parent)


def entries(path: Path) -> dict[str, dict]:
    return {entry["name"]: entry for entry in json.loads(path.read_text())["tensors"]}


def test_every_tensor_is_in_the_table(top: Path, pictures: Path, tmp_path: Path) -> None:
    text = check(calibrate(top, pictures, tmp_path / "t.json", "--tune_num", "2"))
    assert "only 16 sample(s)" in text and "model_deploy" in text
    found = entries(tmp_path / "t.json")
    outputs = {name for node in onnx.load(MODEL).graph.node for name in node.output}
    assert "input" in found and "output" in found
    assert set(found) <= outputs | {"input"} and len(found) >= 15
    for entry in found.values():
        assert entry["scale"] > 0 and entry["threshold"] > 0 and entry["min"] <= 0 <= entry["max"]
    check(run_tool("run_calibration", top, "--check_table", tmp_path / "t.json"))


def test_statistics_are_those_of_the_reference(top: Path, tmp_path: Path) -> None:
    """Method max on one sample gives the extremes that the reference evaluator finds in every tensor."""
    array = np.random.default_rng(0).uniform(0, 255, (1, 3, 32, 32)).astype(np.float32)
    save_npz(tmp_path / "in.npz", {"input": array})
    check(calibrate(top, tmp_path / "in.npz", tmp_path / "t.json", "--cali_method", "max"))
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
    reference = np.load(tmp_path / "all.npz")
    found = entries(tmp_path / "t.json")
    compared = [name for name in found if name in reference.files]
    assert len(compared) >= 15
    for name in compared:
        values = reference[name]
        assert found[name]["max"] == pytest.approx(max(values.max(), 0), rel=1e-4, abs=1e-5), name
        assert found[name]["min"] == pytest.approx(min(values.min(), 0), rel=1e-4, abs=1e-5), name
        assert found[name]["threshold"] == pytest.approx(np.abs(values).max(), rel=1e-4), name


def test_kinds_of_data_give_the_same_table(top: Path, tmp_path: Path) -> None:
    arrays = np.random.default_rng(5).uniform(0, 255, (12, 3, 32, 32)).astype(np.float32)
    folder = tmp_path / "npz"
    folder.mkdir()
    for i, array in enumerate(arrays):
        save_npz(folder / f"{i:02}.npz", {"input": array[None]})
    save_npz(tmp_path / "all.npz", {"input": arrays})
    np.save(tmp_path / "stack.npy", arrays)
    (tmp_path / "list.txt").write_text("# samples\n" + "".join(f"npz/{i:02}.npz\n" for i in range(12)))
    (tmp_path / "make.py").write_text(
        f"import numpy as np\ndef samples():\n    yield from np.load({str(tmp_path / 'stack.npy')!r})[:, None]\n"
    )
    tables = []
    for i, data in enumerate((folder, tmp_path / "all.npz", tmp_path / "list.txt", tmp_path / "make.py")):
        check(calibrate(top, data, tmp_path / f"t{i}.json", "--workers", 1 + i % 2, "--tune_num", "2"))
        tables.append((tmp_path / f"t{i}.json").read_bytes())
    assert len(set(tables)) == 1


@pytest.mark.parametrize("method", ["max", "kl", "mse", "aciq", "percentile9999", "percentile"])
def test_methods_and_schemes(top: Path, pictures: Path, tmp_path: Path, method: str) -> None:
    for scheme in ("--symmetric", "--asymmetric"):
        check(
            calibrate(
                top,
                pictures,
                tmp_path / "t.json",
                "--cali_method",
                method,
                scheme,
                "--input_num",
                "4",
                "--workers",
                "1",
            )
        )
        found = entries(tmp_path / "t.json").values()
        assert {entry["symmetric"] for entry in found} == {scheme == "--symmetric"}
        assert {entry["method"] for entry in found} == {method}


@pytest.fixture
def own_temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Sets TMPDIR to a folder of this test, for files that a killed command cannot remove."""
    (tmp_path / "tmp").mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "tmp"))


@pytest.mark.usefixtures("own_temporary")
def test_killed_at_half_and_resumed(top: Path, tmp_path: Path) -> None:
    stop = tmp_path / "stop"
    (tmp_path / "make.py").write_text(GENERATOR.format(stop=str(stop)))
    flags = ["--input_num", "40", "--workers", "2", "--tune_num", "2", "--checkpoint_every", "0", "--methods", "gptq"]
    check(calibrate(top, tmp_path / "make.py", tmp_path / "whole.json", *flags))
    stop.touch()
    assert calibrate(top, tmp_path / "make.py", tmp_path / "t.json", *flags).returncode == -signal.SIGKILL
    assert not (tmp_path / "t.json").exists() and (tmp_path / "t.json.partial").exists()
    stop.unlink()
    # The generator's text is part of the samples' identity. Only the file that it waits for has changed.
    text = check(calibrate(top, tmp_path / "make.py", tmp_path / "t.json", *flags, "--resume"))
    assert "before the interruption" in text
    assert (tmp_path / "t.json").read_bytes() == (tmp_path / "whole.json").read_bytes()
    assert not (tmp_path / "t.json.partial").exists()


@pytest.mark.usefixtures("own_temporary")
def test_resume_over_other_samples_is_rejected(top: Path, tmp_path: Path) -> None:
    (tmp_path / "make.py").write_text(GENERATOR.format(stop=str(tmp_path)))
    flags = ["--input_num", "40", "--workers", "1", "--checkpoint_every", "0", "--methods", "gptq"]
    assert calibrate(top, tmp_path / "make.py", tmp_path / "t.json", *flags).returncode == -signal.SIGKILL
    flags[1] = "39"
    assert_rejected(
        calibrate(top, tmp_path / "make.py", tmp_path / "t.json", *flags, "--resume"),
        1,
        "t.json.partial",
        "other samples",
        "without --resume",
    )
    (tmp_path / "t.json.partial").write_bytes(b"nonsense")
    assert_rejected(calibrate(top, tmp_path / "make.py", tmp_path / "t.json", *flags, "--resume"), 1, "t.json.partial")


@pytest.fixture
def dask_address(tmp_path: Path) -> Iterator[str]:
    """Returns the address of a scheduler with two workers on the loopback."""
    pytest.importorskip("distributed", reason="dask.distributed is not installed")
    environment = {**os.environ, "PYTHONPATH": str(BUILD / "python")}
    common = {"env": environment, "cwd": tmp_path, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    # The system chooses the port: another test may already use a port that was free a moment ago.
    info = tmp_path / "scheduler.json"
    started = [
        subprocess.Popen(
            [
                sys.executable,
                "-m",
                "distributed.cli.dask_scheduler",
                "--host",
                "127.0.0.1",
                "--port",
                "0",
                "--no-dashboard",
                "--scheduler-file",
                info,
            ],
            **common,
        )
    ]
    try:
        from distributed import Client

        while not info.exists() or not info.read_text().endswith("}"):
            assert started[0].poll() is None, "the scheduler ended"
            time.sleep(0.1)
        address = json.loads(info.read_text())["address"]
        started += [
            subprocess.Popen(
                [
                    sys.executable,
                    "-m",
                    "distributed.cli.dask_worker",
                    address,
                    "--nthreads",
                    "1",
                    "--no-dashboard",
                    "--no-nanny",
                ],
                **common,
            )
            for _ in range(2)
        ]
        with Client(address, timeout=300, set_as_default=False) as client:
            client.wait_for_workers(2, timeout=300)
        yield address
    finally:
        for process in reversed(started):
            process.kill()
            process.wait()


def test_dask_gives_the_same_table(top: Path, pictures: Path, tmp_path: Path, dask_address: str) -> None:
    check(calibrate(top, pictures, tmp_path / "here.json", "--tune_num", "2", "--workers", "1"))
    text = check(calibrate(top, pictures, tmp_path / "there.json", "--tune_num", "2", "--distributed", dask_address))
    assert "2 worker(s)" in text
    assert (tmp_path / "there.json").read_bytes() == (tmp_path / "here.json").read_bytes()


def test_no_dask_scheduler(top: Path, pictures: Path, tmp_path: Path) -> None:
    pytest.importorskip("distributed", reason="dask.distributed is not installed")
    assert_rejected(
        calibrate(top, pictures, tmp_path / "t.json", "--distributed", "tcp://127.0.0.1:9"), 1, "127.0.0.1:9"
    )


# Tests of bad data.


def test_folders_without_samples(top: Path, tmp_path: Path) -> None:
    empty, other, mixed = tmp_path / "empty", tmp_path / "other", tmp_path / "mixed"
    for folder in (empty, other, mixed):
        folder.mkdir()
    (other / "readme.md").write_text("x")
    Image.new("RGB", (32, 32)).save(mixed / "a.png")
    save_npz(mixed / "b.npz", {"input": np.zeros((1, 3, 32, 32), np.float32)})
    for data, words in (
        (empty, ("empty", "neither pictures")),
        (other, ("1 other file(s)", "readme.md")),
        (tmp_path / "none", ("none", "no such file")),
        (mixed, ("1 picture(s)", "1 .npz")),
        (other / "readme.md", ("unknown kind",)),
    ):
        assert_rejected(calibrate(top, data, tmp_path / "t.json"), 1, *words)
    assert not (tmp_path / "t.json").exists()


def test_unreadable_pictures_are_left_out_and_named(top: Path, pictures: Path, tmp_path: Path) -> None:
    (pictures / "p03.png").write_bytes(b"\x89PNG\r\n\x1a\nnothing")
    (pictures / "p07.png").write_bytes((pictures / "p08.png").read_bytes()[:200])
    result = calibrate(top, pictures, tmp_path / "t.json", "--tune_num", "2", "--json")
    assert result.returncode == 0, result.stderr
    document = json.loads(result.stdout)
    assert sorted(document["table"]["skipped"]) == ["p03.png", "p07.png"] and document["table"]["samples"] == 14
    assert any(
        "2 of 16 samples could not be read" in text and "'p03.png', 'p07.png'" in text for text in document["warnings"]
    )
    for path in pictures.iterdir():
        path.write_bytes(b"no picture")
    assert_rejected(calibrate(top, pictures, tmp_path / "u.json"), 1, "no sample could be read", "p00.png")


def test_grey_alpha_palette_and_sixteen_bits(top: Path, tmp_path: Path) -> None:
    """All files show the same picture, so all give the same table."""
    grey = (np.arange(32 * 32, dtype=np.uint16).reshape(32, 32) % 256).astype(np.uint8)
    rgb = np.repeat(grey[:, :, None], 3, axis=2)
    result = {
        "rgb": Image.fromarray(rgb),
        "grey": Image.fromarray(grey),
        "rgba": Image.fromarray(np.dstack([rgb, np.full_like(grey, 255)])),
        "sixteen": Image.fromarray(grey.astype(np.uint16) * 257),
        "palette": Image.fromarray(grey).convert("P"),
    }
    tables = {}
    for name, image in result.items():
        (tmp_path / name).mkdir()
        image.save(tmp_path / name / "a.png")
        check(calibrate(top, tmp_path / name, tmp_path / f"{name}.json", "--cali_method", "max", "--workers", "1"))
        tables[name] = (tmp_path / f"{name}.json").read_text()
    assert {name for name, text in tables.items() if text == tables["rgb"]} == set(result)


def test_arrays_that_are_not_the_models(top: Path, tmp_path: Path) -> None:
    good = np.zeros((1, 3, 32, 32), np.float32)
    bad = {
        "name": ({"data": good}, ("'data' is not an input", "'input'")),
        "shape": ({"input": good[:, :, :16]}, ("[1, 3, 16, 32]", "[1, 3, 32, 32]")),
        "type": ({"input": good.astype(np.int64)}, ("int64", "float32")),
        "more": ({"input": good, "extra": good}, ("'extra'",)),
    }
    for name, (arrays, words) in bad.items():
        folder = tmp_path / name
        folder.mkdir()
        save_npz(folder / "a.npz", arrays)
        assert_rejected(calibrate(top, folder, tmp_path / "t.json"), 1, *words)
        assert_rejected(calibrate(top, folder / "a.npz", tmp_path / "t.json"), 1, *words)


def test_lists_and_generators_with_faults(top: Path, tmp_path: Path) -> None:
    (tmp_path / "empty.txt").write_text("# nothing\n\n")
    (tmp_path / "many.txt").write_text("a.npy,b.npy\n")
    (tmp_path / "gone.txt").write_text("gone.png\n")
    (tmp_path / "none.py").write_text("x = 1\n")
    (tmp_path / "syntax.py").write_text("def samples(:\n")
    (tmp_path / "raises.py").write_text("def samples():\n    yield from []\n    raise KeyError('photo')\n")
    for name, words in (
        ("empty.txt", ("names no file",)),
        ("many.txt", ("many.txt:1", "names 2 files, the model has 1 input")),
        ("gone.txt", ("gone.png",)),
        ("none.py", ("samples()",)),
        ("syntax.py", ("syntax.py:1", "SyntaxError")),
        ("raises.py", ("raises.py:3", "KeyError", "photo")),
    ):
        assert_rejected(calibrate(top, tmp_path / name, tmp_path / "t.json", "--workers", "1"), 1, *words)


def test_nan_and_infinity_name_tensor_and_sample(tmp_path: Path) -> None:
    model = small_models.save(
        tmp_path / "m.onnx",
        [
            onnx.helper.make_node("Log", ["x"], ["logarithm"], name="log"),
            onnx.helper.make_node("Neg", ["logarithm"], ["y"], name="neg"),
        ],
        [small_models.tensor("x", [1, 8])],
        [small_models.tensor("y", [1, 8])],
    )
    check(run_tool("model_transform", "--model_def", model, "--not_inference", "--mlir", "m_top.mlir", cwd=tmp_path))
    arrays = np.linspace(1, 2, 80, dtype=np.float32).reshape(10, 1, 8)
    arrays[6, 0, 3], arrays[8, 0, :2] = -1.0, 0.0
    save_npz(tmp_path / "in.npz", {"x": arrays})
    text = check(calibrate(tmp_path / "m_top.mlir", tmp_path / "in.npz", tmp_path / "t.json", "--workers", "2"))
    assert "tensor 'logarithm' has 1 NaN and 2 infinite values, first in sample in.npz[6]" in text, text
    assert entries(tmp_path / "t.json")["logarithm"]["max"] == pytest.approx(np.log(2), rel=1e-3)
    (tmp_path / "t.json").unlink()
    save_npz(tmp_path / "nan.npz", {"x": np.full((2, 1, 8), np.nan, np.float32)})
    done = calibrate(tmp_path / "m_top.mlir", tmp_path / "nan.npz", tmp_path / "t.json", "--workers", "1")
    assert_rejected(done, 1, "tensor 'x'", "in any of the 2 samples", "nan.npz[0]", "nan.npz[1]")
    assert not (tmp_path / "t.json").exists()
    arrays[:] = 1.0
    save_npz(tmp_path / "in.npz", {"x": arrays})
    text = check(calibrate(tmp_path / "m_top.mlir", tmp_path / "in.npz", tmp_path / "t.json", "--workers", "1"))
    assert "same value everywhere" in text and "'x'" in text


def test_picture_for_a_model_that_takes_none(tmp_path: Path) -> None:
    model = small_models.deep_chain(tmp_path / "m.onnx", 1, 8)
    check(run_tool("model_transform", "--model_def", model, "--not_inference", "--mlir", "m_top.mlir", cwd=tmp_path))
    (tmp_path / "p").mkdir()
    Image.new("RGB", (8, 8)).save(tmp_path / "p" / "a.png")
    assert_rejected(calibrate(tmp_path / "m_top.mlir", tmp_path / "p", tmp_path / "t.json"), 1, "[1, 8]", "picture")


def test_tables_of_another_model_and_edited_ones(top: Path, pictures: Path, tmp_path: Path) -> None:
    path = tmp_path / "t.json"
    check(calibrate(top, pictures, path, "--cali_method", "max", "--input_num", "2", "--workers", "1"))
    whole = path.read_text()
    text = "\n".join(line for line in whole.splitlines() if '"network"' not in line)
    for old, new, words in (
        ('"name": "input"', '"name": "inputs"', ("no tensor 'inputs'", "did you mean 'input'?")),
        ('"model_hash": "', '"network": "", "model_hash": "0', ("of another model",)),
        ('"threshold": ', '"threshold": -', ("tensor 'input'", "is not positive")),
        ('"min": ', '"min": 1e9, "mim": ', ('unknown key "mim"',)),
    ):
        path.write_text(text.replace(old, new, 1))
        assert_rejected(run_tool("run_calibration", top, "--check_table", path), 1, "t.json", *words)
    path.write_text(whole)
    check(run_tool("run_calibration", top, "--export_table", path, "-o", tmp_path / "cali_table"))
    check(run_tool("run_calibration", top, "--import_table", tmp_path / "cali_table", "-o", tmp_path / "u.json"))
    again, first = entries(tmp_path / "u.json"), entries(path)
    assert {name: entry["symmetric"] for name, entry in again.items()} == {
        name: entry["symmetric"] for name, entry in first.items()
    }


def test_wrong_flags(top: Path, pictures: Path, tmp_path: Path) -> None:
    for flags, words in (
        (["--input_num", "0"], "--input_num 0"),
        (["--percentile", "12"], "--percentile 12"),
        (["--max_error", "0"], "--max_error 0"),
        (["--workers", "2", "--distributed", "x"], "--distributed"),
        (["--symmetric", "--asymmetric"], "not allowed"),
        (["--cali_method", "best"], "invalid choice"),
    ):
        assert_rejected(calibrate(top, pictures, tmp_path / "t.json", *flags), 2, words)
    assert_rejected(run_tool("run_calibration", top, "--dataset", pictures), 2, "-o FILE")
    assert_rejected(run_tool("run_calibration", top, "-o", "t.json", cwd=tmp_path), 2, "--dataset")
    assert_rejected(calibrate(tmp_path / "none.mlir", pictures, tmp_path / "t.json"), 1, "none.mlir")


def test_memory_does_not_grow_with_samples(top: Path, tmp_path: Path) -> None:
    """Ten times the samples need at most 5 % more memory."""
    peaks = []
    for count in (40, 400):
        (tmp_path / "make.py").write_text(
            f"import numpy as np\ndef samples():\n    g = np.random.default_rng(0)\n"
            f"    for i in range({count}): yield g.uniform(0, 255, (1, 3, 32, 32)).astype(np.float32)\n"
        )
        code = (
            "import resource, sys; from tessera.cli.run_calibration import main; code = main(sys.argv[1:]);"
            "print('peak', resource.getrusage(resource.RUSAGE_SELF).ru_maxrss); sys.exit(code)"
        )
        result = subprocess.run(
            [
                BUILD / "bin" / "tessera-python",
                "-c",
                code,
                top,
                "--dataset",
                tmp_path / "make.py",
                "--input_num",
                "400",
                "--workers",
                "1",
                "--tune_num",
                "2",
                "-o",
                tmp_path / "t.json",
            ],
            capture_output=True,
            text=True,
            env={**os.environ, "PYTHONPATH": str(BUILD / "python")},
            timeout=300,
        )
        peaks.append(int(check(result).split("peak ")[1]))
    assert peaks[1] <= 1.05 * peaks[0], peaks


def test_products_of_two_activations_have_no_weights_to_learn(tmp_path: Path) -> None:
    model = small_models.product_of_activations(tmp_path / "m.onnx")
    check(run_tool("model_transform", "--model_def", model, "--mlir", tmp_path / "m_top.mlir", "--not_inference"))
    save_npz(tmp_path / "x.npz", {"x": np.linspace(-1, 1, 40, dtype=np.float32).reshape(1, 5, 8)})
    check(calibrate(tmp_path / "m_top.mlir", tmp_path / "x.npz", tmp_path / "t.json"))
    assert {"query", "key", "y"} <= entries(tmp_path / "t.json").keys()
    check(
        run_tool(
            "model_deploy",
            "--mlir",
            tmp_path / "m_top.mlir",
            "--chip",
            "x86",
            "--quantize",
            "INT8",
            "--calibration_table",
            tmp_path / "t.json",
            "--model",
            tmp_path / "m.bmodel",
            "--test_input",
            tmp_path / "x.npz",
        )
    )
