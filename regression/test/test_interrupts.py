# SPDX-License-Identifier: Apache-2.0
"""Tests Ctrl-C and SIGTERM at any moment: exit code 130 means that there is no output, 0 that all outputs are there.
Nothing else is left or shown."""
from __future__ import annotations

import os
import signal
import subprocess
import time
from pathlib import Path

import numpy as np
import pytest
import small_models
from conftest import BUILD, check, run_tool

from tessera.files import save_npz

# By default every fourth of the points below is tested; with TESSERA_INTERRUPTS=all, every point.
THINNED = 1 if os.environ.get("TESSERA_INTERRUPTS") == "all" else 4
EVERYWHERE = Path(__file__).with_name("interrupt_everywhere.py")


@pytest.fixture
def good(tmp_path: Path) -> Path:
    """Returns a folder with m.onnx, m_top.mlir, its weights and two samples in data/."""
    small_models.conv_relu(tmp_path / "m.onnx")
    check(run_tool("model_transform", "--model_def", "m.onnx", "--mlir", "m_top.mlir", "--not_inference", cwd=tmp_path))
    (tmp_path / "data").mkdir()
    for index in range(2):
        save_npz(tmp_path / "data" / f"{index}.npz", {"x": np.full((1, 3, 8, 8), index + 1, np.float32)})
    return tmp_path


def outputs_of(folder: Path) -> list[str]:
    return sorted(p.name for p in folder.iterdir() if p.suffix != ".onnx")


@pytest.mark.parametrize(
    "number, points, command",
    [
        ("SIGINT", 160, ["model_transform", "--model_def", "m.onnx", "--mlir", "{out}/b_top.mlir", "--not_inference"]),
        ("SIGTERM", 80, ["model_transform", "--model_def", "m.onnx", "--mlir", "{out}/b_top.mlir", "--not_inference"]),
        (
            "SIGINT",
            20,
            [
                "model_transform",
                "--model_def",
                "m.onnx",
                "--mlir",
                "{out}/b_top.mlir",
                "--test_result",
                "{out}/all.npz",
            ],
        ),
        (
            "SIGINT",
            60,
            [
                "model_deploy",
                "--mlir",
                "m_top.mlir",
                "--model",
                "{out}/o.bmodel",
                "--cache_dir",
                "none",
                "--device_mlir",
                "{out}/d.mlir",
            ],
        ),
        (
            "SIGINT",
            20,
            [
                "run_calibration",
                "m_top.mlir",
                "--dataset",
                "data",
                "-o",
                "{out}/o.json",
                "--checkpoint_every",
                "100000",
            ],
        ),  # on a busy machine the command may store a state for --resume
        ("SIGINT", 40, ["model_runner", "--model", "m_top.mlir", "--input", "data/0.npz", "--output", "{out}/o.npz"]),
        ("SIGINT", 100, ["npz_tool", "rename", "data/0.npz", "{out}/o.npz", "x=z"]),
        ("SIGTERM", 20, ["tessera", "run", "m.onnx", "--output_dir", "{out}/kept"]),
        ("SIGINT", 20, ["tessera", "report", "m.bmodel", "-o", "{out}/r.html", "--model_explorer", "{out}/me"]),
    ],
    ids=lambda value: value[0] if isinstance(value, list) else str(value),
)
def test_interrupt_at_any_step(
    good: Path, tmp_path_factory: pytest.TempPathFactory, number: str, points: int, command: list[str]
) -> None:
    """The command is interrupted at steps that are evenly spaced, so the test is deterministic."""
    folder = tmp_path_factory.mktemp("runs")
    if "m.bmodel" in command:
        check(run_tool("model_deploy", "--mlir", "m_top.mlir", "--model", "m.bmodel", "--skip_validation", cwd=good))
    result = subprocess.run(
        [BUILD / "bin" / "tessera-python", EVERYWHERE, number, str(points // THINNED), folder, *command],
        cwd=good,
        capture_output=True,
        text=True,
    )
    assert result.returncode == 0, result.stdout + result.stderr


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_interrupt_leaves_nothing_half_written(tmp_path: Path, number: int) -> None:
    onnx = small_models.deep_chain(tmp_path / "big.onnx", 60, 256)
    command = [
        BUILD / "bin" / "model_transform",
        "--model_def",
        onnx,
        "--mlir",
        tmp_path / "b_top.mlir",
        "--not_inference",
    ]
    begin = time.monotonic()
    check(subprocess.run(command, capture_output=True, text=True))
    whole = time.monotonic() - begin
    complete = ["b_top.mlir", "b_weights.safetensors"]
    assert outputs_of(tmp_path) == complete
    interrupted = 0
    for fraction in (0.15, 0.35, 0.55, 0.7, 0.8, 0.9, 0.97):
        for name in complete:
            (tmp_path / name).unlink(missing_ok=True)
        begin = time.monotonic()
        with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as child:
            time.sleep(whole * fraction)
            child.send_signal(number)
            text = child.communicate(timeout=600)[1]
        assert child.returncode in (0, 130, -number), text
        assert "Traceback" not in text, text
        if child.returncode == 0:  # the machine may be less busy now, so that the command finished
            whole = min(whole, time.monotonic() - begin)
        interrupted += child.returncode != 0
        assert outputs_of(tmp_path) == (complete if child.returncode == 0 else [])
    assert interrupted > 0, "no run was interrupted: the test tested nothing"


def test_interrupt_while_the_interpreter_starts(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text("import os, signal; os.kill(os.getpid(), signal.SIGINT)\n")
    result = run_tool("npz_tool", "--help", env={**os.environ, "PYTHONPATH": str(tmp_path)})
    assert result.returncode == -signal.SIGINT, result.stdout
    assert result.stderr == ""
