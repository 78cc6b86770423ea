# SPDX-License-Identifier: Apache-2.0
"""Tests commands that run out of memory or disk, or are killed: they report it with their own message and exit code,
write complete outputs or none, and do not leave temporary files permanently."""
from __future__ import annotations

import os
import re
import resource
import signal
import subprocess
import time
from pathlib import Path

import pytest
import small_models
from all_commands import COMMANDS, arguments, make_files
from conftest import BUILD, check, run_tool

# MiB of address space: limits with which only the interpreter starts, with which the compiler starts, and in between.
# TESSERA_LIMITS=100:900:10 for more.
LIMITS = range(*map(int, os.environ.get("TESSERA_LIMITS", "150:900:350").split(":")))
OUT_OF_MEMORY, KILLED = 71, -signal.SIGKILL


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_files(tmp_path_factory.mktemp("files"))


def limited(kind: int, amount: int):
    return lambda: resource.setrlimit(kind, (amount, amount))


def left_in(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


@pytest.mark.parametrize("name", [name for name in COMMANDS])
def test_out_of_memory(name: str, files: Path, tmp_path: Path) -> None:
    """Running out of memory is never reported as a bug of Tessera, whenever it happens, and never leaves a partial
    output."""
    for mebibytes in LIMITS:
        out = tmp_path / str(mebibytes)
        out.mkdir()
        result = run_tool(
            *arguments(name, out),
            cwd=files,
            preexec_fn=limited(resource.RLIMIT_AS, mebibytes << 20),
            env={**os.environ, "TMPDIR": str(tmp_path)},
        )
        said = f"{mebibytes} MiB: exit code {result.returncode}\n{result.stdout[-2000:]}\n{result.stderr[-2000:]}"
        # 127: not even the program's libraries fit.
        assert result.returncode in (0, 71, 127), said
        assert "fault in Tessera" not in result.stderr and "Traceback" not in result.stderr, said
        if result.returncode == 71:
            assert "out of memory" in result.stderr and "MiB" in result.stderr, said
            assert left_in(out) == [], said
        assert not [path for path in (*tmp_path.glob("tessera-*"), *out.glob(".tessera-*"))], said


def test_the_compiler_says_what_it_did(files: Path) -> None:
    """The compiler reports it without the Python tools, too: with the step, the size, and the limit."""
    program = [
        BUILD / "bin" / "tessera-compile",
        "deploy",
        "--mlir",
        "m_top.mlir",
        "--output",
        "/dev/null/x.bmodel",
        "--cache-dir",
        "none",
    ]
    for mebibytes in range(300, 1200, 20):
        result = subprocess.run(
            program, cwd=files, capture_output=True, text=True, preexec_fn=limited(resource.RLIMIT_AS, mebibytes << 20)
        )
        if result.returncode == OUT_OF_MEMORY and "' " in result.stdout or "':" in result.stdout:
            assert re.search(
                rf'"code":71,.*out of memory in \'\w+\'.*\d+ MiB of address space.*{mebibytes} MiB \(ulimit -v\)',
                result.stdout,
            )
            return
        assert result.returncode in (OUT_OF_MEMORY, 127, 1), result.stdout + result.stderr
    pytest.fail("no limit ended it within a step")


def test_a_killed_compiler_is_most_likely_out_of_memory(files: Path, tmp_path: Path) -> None:
    """The kernel kills processes that need too much memory."""
    with started(slow_compile(tmp_path), tmp_path) as command:
        os.kill(child_of(command.pid), signal.SIGKILL)
        text = command.communicate(timeout=60)[1]
    assert command.returncode == OUT_OF_MEMORY, text
    assert "SIGKILL" in text and "out of memory" in text and "fault in Tessera" not in text, text


def slow_compile(folder: Path) -> list[str]:
    """Returns a command whose compiler takes seconds."""
    if not (folder / "s_top.mlir").exists():
        small_models.deep_chain(folder / "s.onnx", 150, 128)
        check(
            run_tool("model_transform", "--model_def", "s.onnx", "--mlir", "s_top.mlir", "--not_inference", cwd=folder)
        )
    return [
        "model_deploy",
        "--mlir",
        "s_top.mlir",
        "--chip",
        "npu-base",
        "--quantize",
        "BF16",
        "--opt",
        "3",
        "--model",
        "s.bmodel",
        "--skip_validation",
    ]


def started(command: list[str], folder: Path) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [BUILD / "bin" / command[0], *command[1:]],
        cwd=folder,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        env={**os.environ, "TMPDIR": str(folder)},
    )


def children_of(parent: int) -> list[tuple[int, str]]:
    """Returns child processes and their names."""
    found = []
    for status in Path("/proc").glob("[0-9]*/status"):
        try:
            fields = dict(line.split(":\t", 1) for line in status.read_text().splitlines() if ":\t" in line)
        except OSError:
            continue
        if fields.get("PPid") == str(parent):
            found.append((int(fields["Pid"]), fields["Name"]))
    return found


def child_of(command: int, name: str = "tessera-compile", begin: float = 0.0) -> int:
    """Returns the process of the compiler, as soon as it compiles the model."""
    for _ in range(600):
        for compiler, program in children_of(command):
            for pid, request in children_of(compiler) if program == name else []:
                if request == "deploy":
                    return pid
        time.sleep(0.05)
    raise AssertionError(f"no {name} was started")


def is_gone(pid: int) -> bool:
    for _ in range(200):
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
        except OSError:
            return True
        if state == "Z":
            return True
        time.sleep(0.05)
    return False


def test_a_killed_command_leaves_no_process_and_no_folder(tmp_path: Path) -> None:
    with started(slow_compile(tmp_path), tmp_path) as command:
        child = child_of(command.pid)
        command.kill()
        command.wait(60)
        assert is_gone(child), "tessera-compile goes on"
    abandoned = list(tmp_path.glob(".tessera-*"))
    assert abandoned, "it was killed too early: the test tests nothing"
    mine = tmp_path / ".tessera-notebook"  # the name has the same form, but is not a temporary folder
    mine.mkdir()
    check(
        run_tool("npz_tool", "merge", "x.npz", tmp_path / "s_in.npz", cwd=tmp_path)
        if (tmp_path / "s_in.npz").exists()
        else run_tool("model_runner", "--model", "s_top.mlir", "--input", "random", "--output", "x.npz", cwd=tmp_path)
    )
    assert [path for path in abandoned if path.exists()] == [] and mine.is_dir()


def test_a_running_command_keeps_its_folder(tmp_path: Path) -> None:
    """Another command at the same time removes only folders without a running owner."""
    slow = slow_compile(tmp_path)
    with started(slow, tmp_path) as command:
        child = child_of(command.pid)
        os.kill(child, signal.SIGSTOP)  # otherwise it ends before the other command, if that one waits for a core
        inside = list(tmp_path.glob(".tessera-*"))
        check(run_tool("model_runner", "--model", "s_top.mlir", "--input", "random", "--output", "x.npz", cwd=tmp_path))
        assert inside and all(path.is_dir() for path in inside)
        command.terminate()
        os.kill(child, signal.SIGCONT)
        text = command.communicate(timeout=60)[1]
    assert command.returncode == 130, text
    assert list(tmp_path.glob(".tessera-*")) == []


def test_workers_end_with_their_command(files: Path, tmp_path: Path) -> None:
    (tmp_path / "slow.py").write_text(
        "import time\nimport numpy as np\n\n\ndef samples():\n    for i in range(1000):\n"
        "        time.sleep(0.05)\n        yield {'x': np.full((1, 3, 8, 8), i, np.float32)}\n"
    )
    with started(
        [
            "run_calibration",
            str(files / "m_top.mlir"),
            "--dataset",
            "slow.py",
            "--input_num",
            "1000",
            "-o",
            "c.json",
            "--workers",
            "2",
        ],
        tmp_path,
    ) as command:
        workers: list[int] = []
        for _ in range(600):
            workers = [
                pid
                for pid, _ in children_of(command.pid)
                if b"multiprocessing.spawn" in Path(f"/proc/{pid}/cmdline").read_bytes()
            ]
            if len(workers) == 2:
                break
            time.sleep(0.05)
        assert len(workers) == 2
        time.sleep(1)
        command.kill()
        command.wait(60)
        assert all(is_gone(worker) for worker in workers)


@pytest.mark.parametrize(
    "name, output, like",
    [
        ("transform", "n_top.mlir", ""),
        ("deploy", "n.bmodel", "m.bmodel"),
        ("run", "o.npz", ""),
        ("npu", "n.bmodel", "npu.bmodel"),
        ("combine", "both.bmodel", ""),
    ],
)
def test_full_disk(name: str, output: str, like: str, files: Path, tmp_path: Path) -> None:
    """The message contains the user's name for the file, and what to do. A limit on the file size makes commands fail
    at the same places as a full disk."""
    limit = (files / like).stat().st_size - 1 if like else 256
    result = run_tool(*arguments(name, tmp_path), cwd=files, preexec_fn=limited(resource.RLIMIT_FSIZE, limit))
    assert result.returncode == 1, result.stdout + result.stderr
    assert (
        f"write '{tmp_path / output}'" in result.stderr or f"write {tmp_path / output}" in result.stderr
    ), result.stderr
    assert "File too large" in result.stderr and f"{limit} bytes" in result.stderr, result.stderr
    if output != "n_top.mlir":  # the size of a text is unknown in advance
        assert re.search(
            rf"it has {limit + 1} bytes|, \d+ bytes" if like else r"\d+ bytes", result.stderr
        ), result.stderr
    assert left_in(tmp_path) == []


def test_a_compiler_that_cannot_say_anything(files: Path) -> None:
    """The compiler's own output goes to a full disk."""
    with open("/dev/full", "w", encoding="ascii") as full:
        result = subprocess.run(
            [BUILD / "bin" / "tessera-compile", "info", "--mlir", "m_top.mlir"], cwd=files, stdout=full
        )
    assert result.returncode == 1
