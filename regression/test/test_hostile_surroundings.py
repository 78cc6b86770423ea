# SPDX-License-Identifier: Apache-2.0
"""Tests commands in unusual environments: modules of the same names in the current folder, a removed
folder, names that are not UTF-8, few file descriptors, a damaged kernel cache, signals for the compiler alone."""
from __future__ import annotations

import json
import os
import resource
import shutil
import signal
from pathlib import Path

import pytest
from all_commands import COMMANDS, arguments, make_files
from conftest import check, run_tool
from test_limits import child_of, limited, slow_compile, started

INTERRUPTED = 130
# Limits of open files: the launcher's shell needs 11; TESSERA_DESCRIPTORS=11:40:1 tries more.
DESCRIPTORS = range(*map(int, os.environ.get("TESSERA_DESCRIPTORS", "11:24:6").split(":")))


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_files(tmp_path_factory.mktemp("files"))


PYTHON_COMMANDS = [name for name, words in COMMANDS.items() if words[0] != "bmrt_bench"]
# One command for each way to start: the compiler as a session, workers, the runtime in this process, files alone.
KINDS = ("calibrate", "deploy", "run", "verdict", "dump")


@pytest.mark.parametrize("name", PYTHON_COMMANDS)
def test_modules_in_the_current_folder_and_no_docstrings(name: str, files: Path, tmp_path: Path) -> None:
    folder = tmp_path / "with modules"
    shutil.copytree(files, folder)
    for module in ("json", "numpy", "tessera", "statistics", "onnx", "PIL", "rich"):
        (folder / f"{module}.py").write_text(f"raise SystemExit('imported {module}.py of the current folder')\n")
    check(run_tool(*arguments(name, tmp_path), cwd=folder, env={**os.environ, "PYTHONOPTIMIZE": "2"}))


@pytest.mark.parametrize("name", KINDS)
def test_a_removed_current_folder(name: str, tmp_path: Path) -> None:
    folder = tmp_path / "removed"
    folder.mkdir()
    result = run_tool(*arguments(name, tmp_path), cwd=folder, preexec_fn=folder.rmdir)
    assert result.returncode == 1, result.stderr
    assert "the current folder no longer exists" in result.stderr, result.stderr


def test_a_current_folder_that_is_not_utf8(files: Path, tmp_path: Path) -> None:
    folder = Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff\xfe"))
    folder.mkdir()
    for name in ("m_top.mlir", "m_weights.safetensors"):
        shutil.copy(files / name, folder)
    result = run_tool("model_deploy", "--mlir", "m_top.mlir", "--model", "n.bmodel", "--json", cwd=folder)
    assert result.returncode == 1 and "is not UTF-8" in result.stderr, result.stderr
    assert json.loads(result.stdout)["exit_code"] == 1
    assert not (folder / "n.bmodel").exists()


@pytest.mark.parametrize("name", KINDS)
def test_few_file_descriptors(name: str, files: Path, tmp_path: Path) -> None:
    """A low limit gives a message that names it, never a message that blames Tessera or the model."""
    for limit in DESCRIPTORS:
        result = run_tool(*arguments(name, tmp_path), cwd=files, preexec_fn=limited(resource.RLIMIT_NOFILE, limit))
        said = f"limit {limit}: exit code {result.returncode}\n{result.stdout[-2000:]}\n{result.stderr[-2000:]}"
        assert result.returncode in (0, 1, 127), said
        assert "fault in Tessera" not in result.stderr, said
        if result.returncode == 1:
            assert "oo many open files" in result.stderr, said


def cache_entries(cache: Path) -> list[Path]:
    return sorted(path for path in cache.rglob("*") if not path.is_dir())


@pytest.mark.parametrize("damage", ["fifo", "endless", "another kernel", "folder"])
def test_a_damaged_kernel_cache_means_compiling_again(damage: str, files: Path, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    deploy = ["model_deploy", "--mlir", files / "m_top.mlir", "--skip_validation", "--cache_dir", cache, "--model"]
    check(run_tool(*deploy, tmp_path / "first.bmodel"))
    entries = cache_entries(cache)
    assert len(entries) > 1
    other = entries[0].read_bytes()
    for entry in entries[1:]:
        entry.unlink()
        if damage == "fifo":
            os.mkfifo(entry)
        elif damage == "endless":
            entry.symlink_to("/dev/zero")
        elif damage == "folder":
            entry.mkdir()
        else:
            entry.write_bytes(other)
    check(run_tool(*deploy, tmp_path / "second.bmodel", timeout=60))
    assert (tmp_path / "second.bmodel").read_bytes() == (tmp_path / "first.bmodel").read_bytes()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_for_the_compiler_alone(number: signal.Signals, tmp_path: Path) -> None:
    with started(slow_compile(tmp_path), tmp_path) as command:
        os.kill(child_of(command.pid), number)
        text = command.communicate(timeout=60)[1]
    assert command.returncode == INTERRUPTED, text
    assert "fault in Tessera" not in text and not (tmp_path / "s.bmodel").exists(), text
