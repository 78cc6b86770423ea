# SPDX-License-Identifier: Apache-2.0
"""Tests that forked commands behave like commands started by a user: output, exit code, environment and folder, with
their own copies of the modules."""
from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
import small_models
from conftest import BUILD, check
from fork_server import ForkServer

WORDS = {
    "model_transform": ("--model_def", "m.onnx", "--mlir", "m_top.mlir"),
    "model_deploy": ("--mlir", "m_top.mlir", "--model", "m.bmodel", "--json"),
    "model_tool": ("info", "m.bmodel"),
    "npz_tool": ("dump", "none\udcff.npz"),
    "model_runner": ("--help",),
    "run_calibration": ("--nonsense",),
    "tessera": ("estimate", "m.onnx", "--chip", "x86"),
}


def words_alone(text: str) -> str:
    """Returns the text without numbers, which differ between runs, and without the spaces around them."""
    return re.sub(r"[\d.]+| +", " ", text)


@pytest.fixture(scope="module")
def server() -> ForkServer:
    return ForkServer(BUILD / "bin" / "tessera-python")


def test_the_same_as_started(server: ForkServer, tmp_path: Path) -> None:
    folders = [tmp_path / "a", tmp_path / "b"]
    for folder in folders:
        folder.mkdir()
        small_models.conv_relu(folder / "m.onnx")
    codes = set()
    for name, words in WORDS.items():
        forked = server.run(name, list(words), str(folders[0]), 600)
        started = subprocess.run(
            [BUILD / "bin" / name, *words], cwd=folders[1], capture_output=True, text=True, errors="replace"
        )
        assert forked.returncode == started.returncode, forked.stderr + started.stderr
        assert words_alone(forked.stdout) == words_alone(started.stdout) and words_alone(forked.stderr) == words_alone(
            started.stderr
        )
        codes.add(forked.returncode)
    assert codes == {0, 1, 2}
    assert {path.name for path in folders[0].iterdir()} == {path.name for path in folders[1].iterdir()}


def test_the_environment_is_that_of_the_call(
    server: ForkServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    small_models.conv_relu(tmp_path / "m.onnx")
    monkeypatch.setenv("TMPDIR", str(tmp_path / "missing"))
    result = server.run("model_transform", ["--model_def", "m.onnx", "--mlir", "m_top.mlir"], str(tmp_path), 600)
    alone = subprocess.run(
        [BUILD / "bin" / "model_transform", "--model_def", "m.onnx", "--mlir", "m_top.mlir"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert result.returncode == alone.returncode and words_alone(result.stderr) == words_alone(alone.stderr)
    assert server.suits()
    monkeypatch.setenv("PYTHONOPTIMIZE", "1")
    assert not server.suits()


def test_one_that_hangs_is_ended(server: ForkServer, tmp_path: Path) -> None:
    with pytest.raises(subprocess.TimeoutExpired):
        server.run(
            "model_transform",
            ["--model_def", str(small_models.deep_chain(tmp_path / "big.onnx", 60, 256)), "--mlir", "b_top.mlir"],
            str(tmp_path),
            0.2,
        )
    check(server.run("npz_tool", ["--help"], str(tmp_path), 600))
