# SPDX-License-Identifier: Apache-2.0
"""Tests unusual paths, pipes, names and files: each ends in a message and a documented exit code, never in an internal
error."""
from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest
from all_commands import COMMANDS, arguments, make_files
from conftest import BUILD, check, run_tool

NOT_UTF8 = os.fsdecode(b"n\xffme")


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_files(tmp_path_factory.mktemp("files"))


def with_output(words: list[str], output: Path) -> list[list[str]]:
    """Yields the command once for each of its outputs, which is replaced by `output`."""
    places = [i for i, word in enumerate(words) if word.startswith("{out}")]
    return [
        [
            str(output) if i == place else word.replace("{out}", str(output.parent / "others"))
            for i, word in enumerate(words)
        ]
        for place in places
    ]


@pytest.mark.parametrize("name", [name for name in COMMANDS if any("{out}" in word for word in COMMANDS[name])])
def test_an_output_that_is_a_folder(name: str, files: Path, tmp_path: Path) -> None:
    for number, word in enumerate(word for word in COMMANDS[name] if word.startswith("{out}")):
        taken = tmp_path / str(number) / f"taken{Path(word).suffix}"
        taken.mkdir(parents=True)
        if not Path(word).suffix:  # the argument is a folder
            taken.rmdir()
            taken.write_text("a file")
        (tmp_path / "others").mkdir(exist_ok=True)
        result = run_tool(*with_output(COMMANDS[name], taken)[number], cwd=files)
        assert result.returncode == 1, result.stdout + result.stderr
        assert str(taken) in result.stderr and "fault in Tessera" not in result.stderr, result.stderr
        assert taken.exists() and not list(taken.parent.glob(".tessera-*"))


@pytest.mark.parametrize("name", COMMANDS)
def test_a_closed_pipe(name: str, files: Path, tmp_path: Path) -> None:
    """`COMMAND | head -c0` prints nothing. The exit code is 141 if the work was not done, like that of any program that
    SIGPIPE ends."""
    for flags in ([], ["--json"]) if name in ("deploy", "run", "info", "dump", "bench") else ([],):
        out = tmp_path / ("json" if flags else "text")
        out.mkdir()
        words = [BUILD / "bin" / COMMANDS[name][0], *arguments(name, out)[1:], *flags]
        reader, writer = os.pipe()
        os.close(reader)
        result = subprocess.run(words, cwd=files, stdout=writer, stderr=subprocess.PIPE, text=True)
        os.close(writer)
        allowed = (0, 141, -13) if flags else (141, -13)
        assert result.returncode in allowed, result.stderr
        assert (
            "Traceback" not in result.stderr
            and "BrokenPipe" not in result.stderr
            and "Exception ignored" not in result.stderr
        )
        if not flags:
            assert list(out.rglob("*.*")) == [], "outputs of a command that did not end its work"


def test_a_closed_stderr(files: Path) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    result = subprocess.run(
        [BUILD / "bin" / "model_tool", "info", "none.bmodel"], cwd=files, stderr=writer, stdout=subprocess.PIPE
    )
    os.close(writer)
    assert result.returncode == 1 and result.stdout == b""


DEEP = "[" * 200_000
BAD_JSON = {
    "deep": DEEP,
    "deep objects": '{"a":' * 100_000,
    "cut": '{"format"',
    "list": "[]",
    "no UTF-8": '{"format": "\udcff"}',
    "huge number": '{"tensors": 1e999999}',
}


@pytest.mark.parametrize("content", BAD_JSON.values(), ids=BAD_JSON)
def test_json_of_users(content: str, files: Path, tmp_path: Path) -> None:
    bad = tmp_path / "bad.json"
    bad.write_bytes(content.encode(errors="surrogateescape"))
    (tmp_path / "annotations.json").write_bytes(bad.read_bytes())
    deploy = [
        "model_deploy",
        "--mlir",
        "m_top.mlir",
        "--model",
        str(tmp_path / "o.bmodel"),
        "--skip_validation",
        "--quantize",
        "INT8",
    ]
    calibrated = [*deploy, "--calibration_table", "cali.json"]
    for words in (
        [*deploy, "--calibration_table", str(bad)],
        [*calibrated, "--quantize_table", str(bad)],
        [*calibrated, "--chip", "npu-edge", "--plan", str(bad)],
        [*calibrated, "--chip", str(bad)],
        [*calibrated, "--target", "cos>=0.9", "--data", "data", "--quantize_table", str(bad)],
        ["run_calibration", "m_top.mlir", "--check_table", str(bad)],
        ["tessera", "estimate", "m.onnx", "--chip", str(bad)],
        ["tessera", "report", "m.bmodel", "-o", str(tmp_path / "r.html"), "--accuracy", str(bad)],
        ["tessera", "accuracy", "m.bmodel", "--task", "detection", "--data", str(tmp_path)],
    ):
        result = run_tool(*words, cwd=files)
        assert result.returncode in (
            1,
            4,
        ), f"{words}: {result.returncode}\n{result.stdout[-500:]}\n{result.stderr[-2000:]}"
        assert "bad.json" in result.stderr or "annotations.json" in result.stderr, result.stderr


def test_arrays_of_users(files: Path, tmp_path: Path) -> None:
    """Rejects files that look like .npz, .npy or safetensors, but are not."""
    header = ("[" * 100_000).encode()
    for name, content in {
        "a.safetensors": len(header).to_bytes(8, "little") + header,
        "b.safetensors": (2).to_bytes(8, "little") + b"[]",
        "c.safetensors": (46).to_bytes(8, "little") + b'{"x":{"dtype":"F32","shape":[1e30],"data_o":1}}',
        "d.npy": b"\x93NUMPY\x01\x00\x40\x00{'descr': '<f4', 'fortran_order': False, 'shape': (((((((",
        "e.npz": b"PK\x03\x04" + b"\xff" * 60,
        "f.npz": b"",
        "g.npy": b"\x93NUMPY",
    }.items():
        (tmp_path / name).write_bytes(content)
        result = run_tool("npz_tool", "dump", tmp_path / name, cwd=files)
        assert result.returncode == 1 and name in result.stderr, f"{name}: {result.returncode} {result.stderr}"


@pytest.mark.parametrize("name", COMMANDS)
def test_names_that_are_no_utf8(name: str, files: Path, tmp_path: Path) -> None:
    """File names that are not UTF-8 are read, written and reported, with and without --json."""
    for path in files.iterdir():
        if path.name.startswith("m_") or path.is_dir() or path.name == "cali.json":
            (tmp_path / path.name).symlink_to(path)
        else:
            (tmp_path / f"{NOT_UTF8}{path.name}").symlink_to(path)
    words = [
        NOT_UTF8 + word if (tmp_path / (NOT_UTF8 + word)).exists() else word
        for word in arguments(name, tmp_path / f"{NOT_UTF8}out")
    ]
    (tmp_path / f"{NOT_UTF8}out").mkdir()
    result = run_tool(*words, "--json", cwd=tmp_path)
    assert result.returncode in (0, 1, 3, 4), result.stdout + result.stderr
    assert "fault in Tessera" not in result.stderr and "Traceback" not in result.stderr
    if name != "bench":
        json.loads(result.stdout)
    elsewhere = [word.replace("m.bmodel", "none").replace("m.onnx", "none").replace("m_top", "none") for word in words]
    if elsewhere != words and name not in ("workers", "npu", "bench"):  # now in a message
        result = run_tool(*elsewhere, cwd=tmp_path)
        assert result.returncode == 1 and "none" in result.stderr, result.stderr


def test_tensor_names_that_are_no_utf8(files: Path, tmp_path: Path) -> None:
    result = run_tool("npz_tool", "rename", files / "data" / "0.npz", tmp_path / "o.npz", f"x={NOT_UTF8}")
    assert result.returncode in (0, 1), result.stderr
    result = run_tool(
        "model_transform",
        "--model_def",
        files / "m.onnx",
        "--mlir",
        tmp_path / "o_top.mlir",
        "--output_names",
        NOT_UTF8,
    )
    assert result.returncode == 1, result.stderr


def test_an_unusable_kernel_cache_is_mentioned_once(files: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder")
    result = run_tool(
        "model_deploy",
        "--mlir",
        "m_top.mlir",
        "--model",
        tmp_path / "o.bmodel",
        "--cache_dir",
        tmp_path / "file" / "cache",
        "--json",
        cwd=files,
    )
    check(result)
    warnings = [text for text in json.loads(result.stdout)["warnings"] if "kernels are not cached" in text]
    assert len(warnings) == 1 and str(tmp_path / "file") in warnings[0] and "--cache_dir" in warnings[0]


def test_results_name_the_users_files(files: Path, tmp_path: Path) -> None:
    """Messages name the user's files, not the temporary files that replace them until the command ends."""
    for name in ("transform", "calibrate", "deploy", "npu", "combine", "perf", "verdict"):
        out = tmp_path / name
        out.mkdir()
        result = run_tool(*arguments(name, out), "--json", cwd=files)
        assert ".tessera-" not in result.stdout + result.stderr, result.stdout + result.stderr
        assert result.returncode == 0 and not list(out.rglob(".tessera-*"))
