# SPDX-License-Identifier: Apache-2.0
"""onnxruntime as Tessera starts it."""
from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import BUILD

LOADED = "import os; from tessera import onnx_runner; onnx_runner.version(); print(len(os.listdir('/proc/self/task')))"


def test_onnxruntime_reports_to_nobody(tmp_path: Path) -> None:
    """Its telemetry would leave a file among the temporary ones and start a thread that sends."""
    pytest.importorskip("onnxruntime")
    unset = {name: value for name, value in os.environ.items() if name != "ORT_DISABLE_TELEMETRY"}
    environment = {
        **unset,
        "PYTHONPATH": str(BUILD / "python"),
        "TMPDIR": str(tmp_path),
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
    }
    result = subprocess.run([sys.executable, "-c", LOADED], env=environment, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    assert os.listdir(tmp_path) == []
    assert result.stdout.strip() == "1", "threads"


def test_a_user_may_decide_otherwise() -> None:
    result = subprocess.run(
        [sys.executable, "-c", "import os, tessera.onnx_runner; print(os.environ['ORT_DISABLE_TELEMETRY'])"],
        env={**os.environ, "PYTHONPATH": str(BUILD / "python"), "ORT_DISABLE_TELEMETRY": "0"},
        capture_output=True,
        text=True,
    )
    assert result.stdout.strip() == "0", result.stderr
