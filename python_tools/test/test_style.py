# SPDX-License-Identifier: Apache-2.0
"""check_style finds each kind of sentence that it is for, and nothing in a clean tree."""
from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[1] / "dev" / "check_style.py"
GIT = ["git", "-c", "user.name=a", "-c", "user.email=a@b"]


def run(root: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, str(SCRIPT), str(root)], text=True, capture_output=True)


@pytest.mark.parametrize(
    "name, text, message",
    [
        ("a.cpp", "/// Of an op its name.\nint a;\n", "a.cpp:1: comment opens with 'Of'"),
        ("a.h", "int a; ///< What it holds\n", "a.h:1: comment opens with 'What'"),
        ("a.h", "/* Whether it is. */\n", "comment opens with 'Whether'"),
        ("a.td", "// Fine.\nint a;\n// The same of b.\n", "a.td:3: comment opens with 'The same'"),
        ("a.cpp", "// Fine.\n// It is told here.\n", "a.cpp:2: comment says 'told'"),
        ("a.cpp", 'f("size is no integer");\n', "message says 'is no'"),
        ("a.cpp", "f('\"'); // As of now.\n", "comment opens with 'As of'"),
        ("a.py", '"""What it is."""\n', "a.py:1: comment opens with 'What'"),
        ("a.py", "def f():\n    # So that it is.\n    pass\n", "a.py:2: comment opens with 'So that'"),
        ("a.py", 'print(f"{a} has not the size {b}")\n', "message says 'has not'"),
        ("a.py", 'print("a type which has no name")\n', "message says 'which has no'"),
        ("quant/RATIONALE.md", "x\n" * 151, "151 lines, at most 150"),
    ],
)
def test_violation_is_found(tmp_path: Path, name: str, text: str, message: str) -> None:
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_text(text)
    result = run(tmp_path)
    assert result.returncode == 1 and message in result.stdout


@pytest.mark.parametrize(
    "subject, message",
    [
        ("[quant] " + "A" * 65, "subject of 73 characters"),
        ("[nowhere] Add a test", "folder 'nowhere' does not exist"),
        ("Add a test", "does not have the form"),
    ],
)
def test_subject_of_a_commit_is_checked(tmp_path: Path, subject: str, message: str) -> None:
    (tmp_path / "quant").mkdir()
    (tmp_path / "quant/a.cpp").write_text("// Adds.\n")
    for command in (["init", "-q"], ["add", "."], ["commit", "-q", "-m", subject]):
        subprocess.run([*GIT, *command], cwd=tmp_path, check=True)
    result = run(tmp_path)
    assert result.returncode == 1 and message in result.stdout


def test_ordinary_sentences_are_clean(tmp_path: Path) -> None:
    (tmp_path / "a.cpp").write_text('// Returns the size.\n// What follows is fine.\nf("there is no file", "of");\n')
    (tmp_path / "a.py").write_text('"""Reads a file."""\nprint("it is no longer open", "told")\n')
    result = run(tmp_path)
    assert result.returncode == 0, result.stdout
    assert run(tmp_path / "empty").returncode == 1
