# SPDX-License-Identifier: Apache-2.0
"""Tests the flags of all commands: --version, both spellings of a flag, and that every flag in the documentation exists
in this spelling."""
from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest
from conftest import BUILD

from tessera import __version__

ROOT = Path(__file__).resolve().parents[2]
BIN = BUILD / "bin"
# Programs of tests, and the interpreter that the launchers use.
NO_COMMANDS = re.compile(
    r".*(_test|_fuzzer|_cts|_check)$|^(bmrt_make_|bmrt_npu_orders|bmrt_reseal|fuzz_|tessera-python$).*"
)
COMMANDS = sorted(
    name
    for name in os.listdir(BIN)
    if os.access(BIN / name, os.X_OK) and (BIN / name).is_file() and not NO_COMMANDS.match(name)
)
PYTHON = {name for name in COMMANDS if b"tessera.cli" in (BIN / name).read_bytes()[:1000]}


def help_of(*words: str) -> str:
    return subprocess.run(
        [str(BIN / words[0]), *words[1:], "--help"], capture_output=True, text=True, timeout=60
    ).stdout


@pytest.mark.parametrize("name", COMMANDS)
def test_version(name: str) -> None:
    for flag in ("--version", "-V"):
        result = subprocess.run([BIN / name, flag], capture_output=True, text=True, timeout=60)
        assert (result.returncode, result.stdout) == (0, f"{name} {__version__}\n"), result.stderr


def test_all_commands_were_found() -> None:
    assert {
        "model_transform",
        "run_calibration",
        "model_deploy",
        "model_runner",
        "model_tool",
        "npz_tool",
        "tessera",
    } <= PYTHON
    assert {
        "tessera-compile",
        "tessera-opt",
        "bmrt_bench",
        "npu-perf",
        "npu-describe",
        "bmodel-dump",
        "bmodel-combine",
    } <= set(COMMANDS)


@pytest.mark.parametrize(
    "words, other, code",
    [
        (["model_transform", "--model_def", "none.onnx", "--mlir", "o.mlir"], ["--model-def", "--mlir"], 1),
        (["npz_tool", "compare", "--per_channel", "x", "none.npz", "none.npz"], ["--per-channel"], 1),
        (["tessera", "run", "--input_shapes=x=1x3", "none.onnx"], ["--input-shapes=x=1x3"], 1),
        (["bmrt_bench", "none.bmodel", "--iters", "1"], [], 1),
        (["bmrt_peak", "many"], [], 2),
        (["tessera-compile", "info", "--mlir", "none.mlir"], [], 1),
        (["npu-perf", "none.bmodel", "--chip-set", "lanes=8"], ["--chip_set"], 1),
        (["tessera-compile", "deploy", "--chip-set", "x", "--mlir", "none.mlir", "--output", "o"], ["--chip_set"], 2),
    ],
)
def test_either_spelling(words: list[str], other: list[str], code: int, tmp_path: Path) -> None:
    """--a_b and --a-b are the same flag of every command; values keep their spelling."""
    first = subprocess.run([BIN / words[0], *words[1:]], cwd=tmp_path, capture_output=True, text=True)
    assert first.returncode == code, first.stdout + first.stderr
    for flag in other:
        key = flag.partition("=")[0].replace("-", "").replace("_", "")
        changed = [
            flag if word.startswith("--") and word.partition("=")[0].replace("-", "").replace("_", "") == key else word
            for word in words
        ]
        again = subprocess.run([BIN / changed[0], *changed[1:]], cwd=tmp_path, capture_output=True, text=True)
        assert (again.returncode, again.stderr) == (first.returncode, first.stderr)  # stdout contains times


def documented() -> list[tuple[str, str, str]]:
    """Returns (command, flag, location) for every line of code in the documentation that runs a command of Tessera."""
    found = []
    pages = [
        ROOT / "README.md",
        ROOT / "CONTRIBUTING.md",
        *sorted((ROOT / "docs").glob("*.md")),
        *sorted(
            page for folder in ("advice", "concepts", "tutorials") for page in (ROOT / "docs" / folder).glob("*.md")
        ),
        *sorted(ROOT.glob("*/README.md")),
    ]
    for page in pages:
        text = page.read_text(encoding="utf-8")
        codes = re.findall(r"^```\w*\n(.*?)^```", text, re.M | re.S) + re.findall(r"(?<!`)`([^`\n]+)`(?!`)", text)
        for code in codes:
            for line in code.replace("\\\n", " ").splitlines():
                for part in re.split(r"[|;]|&&", line.split("  #")[0]):
                    words = [word for word in part.split() if word != "$"]
                    while words and re.match(r"\w+=", words[0]):  # environment variables
                        words.pop(0)
                    name = Path(words[0]).name if words else ""
                    if name in COMMANDS:
                        found += [
                            (name, word.partition("=")[0].rstrip(",.)]"), f"{page.name}: {part.strip()[:90]}")
                            for word in words[1:]
                            if re.match(r"\[?--[a-z]", word)
                        ]
    return found


def flags_of(name: str, known: dict[str, set[str]]) -> set[str]:
    """Returns the flags of the command `name` and of its subcommands."""
    if name not in known:
        text = help_of(name)
        for verb in re.findall(r"^\s{2,4}([a-z_]+)\s{2,}", text, re.M):
            text += help_of(name, verb) if name in PYTHON | {"tessera-compile"} else ""
        known[name] = set(re.findall(r"--[a-zA-Z][\w-]*", text))
    return known[name]


def test_documentation_spells_flags_as_they_are() -> None:
    known: dict[str, set[str]] = {}
    lines = documented()
    assert len(lines) > 40, "the documentation was not found"
    wrong = [
        f"{name} has no {flag.lstrip('[')}: {where}"
        for name, flag, where in lines
        if name not in ("tessera-opt", "npu-perf", "bmodel-dump") and flag.lstrip("[") not in flags_of(name, known)
    ]
    assert wrong == []
