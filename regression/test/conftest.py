# SPDX-License-Identifier: Apache-2.0
"""Fixtures of the whole-way tests: commands of this build, models compiled once and shared."""
from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Callable

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from case_file import Case, DataMissing, data_path  # noqa: E402

# A job that a shell starts in the background ignores Ctrl-C, and so would all commands that tests run.
signal.signal(signal.SIGINT, signal.default_int_handler)

BUILD = Path(os.environ.get("TESSERA_BUILD_DIR", Path(__file__).resolve().parents[2] / "build"))
Run = Callable[..., "subprocess.CompletedProcess[str]"]


def run_tool(name: str, *arguments: object, cwd: Path | None = None, timeout: int = 600,
             **more: object) -> subprocess.CompletedProcess[str]:
    """Runs a command of build/bin as a user would."""
    return subprocess.run([str(BUILD / "bin" / name), *map(str, arguments)], cwd=cwd, text=True, errors="replace",
                          capture_output=True, timeout=timeout, **more)  # type: ignore[call-overload]


def check(result: subprocess.CompletedProcess[str]) -> str:
    """The output of a run that must have ended well."""
    assert result.returncode == 0, f"exit code {result.returncode}\n{result.stdout[-3000:]}\n{result.stderr[-3000:]}"
    return result.stdout


class Builder:
    """Transforms and deploys cases, each once a session."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._done: dict[object, Path] = {}

    def top(self, case: Case) -> Path:
        """The case's NAME_top.mlir."""
        if case.name not in self._done:
            folder = self._folder / case.name
            folder.mkdir()
            mlir = folder / f"{case.name}_top.mlir"
            flags = list(case.transform) + (["--input_shapes", case.input_shapes] if case.input_shapes else [])
            flags += [] if case.validate else ["--not_inference"]
            check(run_tool("model_transform", "--model_name", case.name, "--model_def", data_path(case.model),
                           "--mlir", mlir, *flags, cwd=folder))
            self._done[case.name] = mlir
        return self._done[case.name]

    def bmodel(self, case: Case, isa: str) -> Path:
        """The case compiled for one instruction set."""
        key = (case.name, isa)
        if key not in self._done:
            mlir = self.top(case)
            output = mlir.with_name(f"{case.name}_{isa}.bmodel")
            flags = [] if case.validate else ["--skip_validation"]
            check(run_tool("model_deploy", "--mlir", mlir, "--chip", isa, "--quantize", "F32", "--model", output,
                           *flags, cwd=mlir.parent))
            self._done[key] = output
        return self._done[key]


@pytest.fixture(scope="session")
def builder(tmp_path_factory: pytest.TempPathFactory) -> Builder:
    return Builder(tmp_path_factory.mktemp("models"))


@pytest.fixture
def need() -> Callable[[str], Path]:
    """need("data:…"): the file, or a skip that names what is missing."""
    def path(text: str) -> Path:
        try:
            return data_path(text)
        except DataMissing as missing:
            pytest.skip(str(missing))
    return path
