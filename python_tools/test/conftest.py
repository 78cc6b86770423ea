# SPDX-License-Identifier: Apache-2.0
"""Helpers of the tools' tests, which run the commands of this build as a user runs them."""
from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path
from typing import Callable

import pytest

# A job that a shell starts in the background ignores Ctrl-C, and so would all commands that tests run.
signal.signal(signal.SIGINT, signal.default_int_handler)

BUILD = Path(os.environ.get("TESSERA_BUILD_DIR", Path(__file__).resolve().parents[2] / "build"))


@pytest.fixture
def run_tool(tmp_path: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Returns a function: run_tool("npz_tool", "dump", file) runs a command of build/bin in a separate, empty
    folder."""

    def run(name: str, *arguments: object, cwd: Path = tmp_path, **more: object) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [str(BUILD / "bin" / name), *map(str, arguments)],
            cwd=cwd,
            text=True,
            capture_output=True,
            timeout=600,
            **more,
        )  # type: ignore[call-overload]

    return run


def assert_clean(result: subprocess.CompletedProcess[str], code: int, *words: str) -> None:
    """Checks that the run ended with `code` and printed all `words` to stderr, but neither a stack trace nor a
    crash."""
    text = result.stderr
    assert result.returncode == code, f"exit code {result.returncode} instead of {code}:\n{text}\n{result.stdout}"
    assert "Traceback" not in text and "Assertion" not in text and "Stack dump" not in text, text
    for word in words:
        assert word in text, f"'{word}' is not in:\n{text}"
