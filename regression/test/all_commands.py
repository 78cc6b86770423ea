# SPDX-License-Identifier: Apache-2.0
"""Lists every command with arguments that make it do its main work. The model is so small that a command takes hardly
longer than its start. Used by tests of properties that all commands share."""
from __future__ import annotations

from pathlib import Path

import numpy as np
import small_models
from conftest import check, run_tool

from tessera.files import save_npz

# {out} stands for the folder that a command writes to; relative paths refer to the files of make_files().
COMMANDS: dict[str, list[str]] = {
    "transform": [
        "model_transform",
        "--model_def",
        "m.onnx",
        "--mlir",
        "{out}/n_top.mlir",
        "--test_result",
        "{out}/all.npz",
    ],
    "calibrate": [
        "run_calibration",
        "m_top.mlir",
        "--dataset",
        "data",
        "-o",
        "{out}/c.json",
        "--workers",
        "1",
        "--cache_dir",
        "none",
    ],
    "workers": [
        "run_calibration",
        "m_top.mlir",
        "--dataset",
        "data",
        "-o",
        "{out}/c.json",
        "--workers",
        "2",
        "--cache_dir",
        "none",
    ],
    "deploy": [
        "model_deploy",
        "--mlir",
        "m_top.mlir",
        "--model",
        "{out}/n.bmodel",
        "--cache_dir",
        "none",
        "--device_mlir",
        "{out}/n.mlir",
    ],
    "npu": [
        "model_deploy",
        "--mlir",
        "m_top.mlir",
        "--chip",
        "npu-edge",
        "--quantize",
        "INT8",
        "--calibration_table",
        "cali.json",
        "--model",
        "{out}/n.bmodel",
        "--plan_out",
        "{out}/plan.json",
        "--report",
        "{out}/report",
    ],
    "run": ["model_runner", "--model", "m.bmodel", "--input", "data/0.npz", "--output", "{out}/o.npz"],
    "reference": ["model_runner", "--model", "m_top.mlir", "--input", "data/0.npz", "--output", "{out}/o.npz"],
    "info": ["model_tool", "info", "m.bmodel"],
    "combine": ["model_tool", "combine", "m.bmodel", "npu.bmodel", "-o", "{out}/both.bmodel"],
    "perf": ["model_tool", "perf", "npu.bmodel", "--report", "{out}/report"],
    "dump": ["npz_tool", "dump", "data/0.npz"],
    "compare": ["npz_tool", "compare", "data/0.npz", "data/0.npz", "--save", "{out}/t.csv"],
    "verdict": ["tessera", "run", "m.onnx", "--output_dir", "{out}/kept"],
    "estimate": ["tessera", "estimate", "m.onnx", "--chip", "npu-edge"],
    "score": ["tessera", "accuracy", "m.bmodel", "m_top.mlir", "--task", "agreement", "--data", "data"],
    "bench": ["bmrt_bench", "m.bmodel", "--iters", "1", "--warmup", "0"],
}


def make_files(folder: Path) -> Path:
    """Writes m.onnx, m_top.mlir with its weights, cali.json, m.bmodel, npu.bmodel and two samples in data/."""
    small_models.conv_relu(folder / "m.onnx")
    (folder / "data").mkdir()
    for index in range(2):
        save_npz(
            folder / "data" / f"{index}.npz",
            {"x": np.random.default_rng(index).normal(size=(1, 3, 8, 8)).astype(np.float32)},
        )
    int8 = ["--quantize", "INT8", "--calibration_table", "cali.json"]
    for command in (
        ["model_transform", "--model_def", "m.onnx", "--mlir", "m_top.mlir", "--not_inference"],
        [
            "run_calibration",
            "m_top.mlir",
            "--dataset",
            "data",
            "-o",
            "cali.json",
            "--workers",
            "1",
            "--methods",
            "none",
        ],
        ["model_deploy", "--mlir", "m_top.mlir", "--model", "m.bmodel", "--skip_validation"],
        [
            "model_deploy",
            "--mlir",
            "m_top.mlir",
            "--chip",
            "npu-edge",
            *int8,
            "--model",
            "npu.bmodel",
            "--skip_validation",
        ],
    ):
        check(run_tool(*command, cwd=folder))
    return folder


def arguments(name: str, out: Path) -> list[str]:
    """Returns the command's words; {out} is replaced by `out`."""
    return [word.replace("{out}", str(out)) for word in COMMANDS[name]]
