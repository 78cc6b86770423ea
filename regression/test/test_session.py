# SPDX-License-Identifier: Apache-2.0
"""Tests that one compiler process serves all requests of a command: files are read and hashed once, and a crash ends
only one request."""
from __future__ import annotations

import io
import os
import signal
import subprocess
import threading
import time
from pathlib import Path
from typing import Callable

import llama_shaped
import pytest
from conftest import BUILD, check, run_tool

from tessera import compile_driver, compile_session
from tessera.compile_driver import run_compile
from tessera.errors import ExitCode, TesseraError
from tessera.progress import Report

SHAPE = llama_shaped.Shape(layers=1, hidden=256, ffn=512, heads=4, kv_heads=2, vocab=500)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("session")
    llama_shaped.write(folder / "m.onnx", SHAPE)
    check(run_tool("model_transform", "--model_def", "m.onnx", "--mlir", "m_top.mlir", "--not_inference", cwd=folder))
    return folder


def ask(*arguments: object, beside: Path = Path(".")) -> dict:
    return run_compile([str(word) for word in arguments], Report(1, io.StringIO()), reproducer_beside=beside)


def info(folder: Path) -> dict:
    return ask("info", "--mlir", folder / "m_top.mlir")


def change_unseen(path: Path) -> Callable[[], None]:
    """Changes a byte of a file without changing its size or times. Returns a function that restores it."""
    before, times = path.read_bytes(), path.stat()
    data = bytearray(before)
    data[-1] ^= 1

    def put(content: bytes) -> None:
        with open(path, "r+b") as file:
            file.write(content)
        os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))

    put(bytes(data))
    return lambda: put(before)


def test_weights_are_hashed_once(folder: Path) -> None:
    weights = folder / "m_weights.safetensors"
    with compile_session.session():
        first = info(folder)
        undo = change_unseen(weights)
        try:
            assert info(folder) == first, "it was hashed again"
        finally:
            undo()
    undo = change_unseen(weights)
    try:
        with compile_session.session(), pytest.raises(TesseraError, match="the file was changed"):
            info(folder)
    finally:
        undo()


def test_what_was_written_is_not_hashed_again(folder: Path) -> None:
    """A file that the session has written is not hashed again, even if it was renamed."""
    with compile_session.session():
        ask("import", "--onnx", folder / "m.onnx", "--output", folder / "n_top.mlir", "--model-name", "n")
        undo = change_unseen(folder / "n_weights.safetensors")
        (folder / "moved").mkdir()
        for name in ("n_top.mlir", "n_weights.safetensors"):
            (folder / name).rename(folder / "moved" / name)
        assert ask("info", "--mlir", folder / "moved" / "n_top.mlir")["model_name"] == "n"
    del undo


def test_changed_files_are_read_again(folder: Path) -> None:
    text = (folder / "m_top.mlir").read_text()
    with compile_session.session():
        first = info(folder)
        (folder / "m_top.mlir").write_text(text.replace('top.model_name = "m"', 'top.model_name = "other"'))
        second = info(folder)
        (folder / "m_top.mlir").write_text(text)
        assert (first["model_name"], second["model_name"], info(folder)["model_name"]) == ("m", "other", "m")
        (folder / "m_top.mlir").write_text("no module")
        with pytest.raises(TesseraError, match="is not a valid Top module"):
            info(folder)
        (folder / "m_top.mlir").write_text(text)
        assert info(folder) == first


def test_requests_side_by_side(folder: Path) -> None:
    def deploy(index: int) -> dict:
        return ask(
            "deploy",
            "--mlir",
            folder / "m_top.mlir",
            "--output",
            folder / f"{index}.bmodel",
            "--quantize",
            ("F32", "W8", "W4")[index % 3],
            "--cache-dir",
            "none",
        )

    with compile_session.session():
        jobs = [lambda index=index: deploy(index) for index in range(3)]
        together = compile_driver.side_by_side(jobs)
    for index in range(3):
        alone = deploy(index + 3)
        assert (folder / f"{index}.bmodel").read_bytes() == (folder / f"{index + 3}.bmodel").read_bytes()
        assert alone["steps"] == together[index]["steps"]


def test_a_compiler_outlives_the_thread_that_asked_first(folder: Path) -> None:
    """A child that must end with its parent is also ended by the system when the thread ends that created it."""
    with compile_session.session():
        opened = compile_session._open
        assert opened is not None
        first = threading.Thread(target=info, args=[folder])
        first.start()
        first.join()
        compiler = opened._process
        assert compiler is not None
        with pytest.raises(subprocess.TimeoutExpired):
            compiler.wait(0.5)
        info(folder)
        assert opened._process is compiler


def test_a_killed_command_leaves_no_compiler(folder: Path) -> None:
    script = (
        "import os, sys; from tessera import compile_session as s; from tessera.compile_driver import run_compile; "
        "from tessera.progress import Report; session = s.session(); session.__enter__(); "
        "run_compile(['info', '--mlir', sys.argv[1]], Report(0)); print(s._open._process.pid, flush=True); "
        "os.kill(os.getpid(), 9)"
    )
    killed = subprocess.run(
        [str(BUILD / "bin" / "tessera-python"), "-c", script, str(folder / "m_top.mlir")],
        capture_output=True,
        text=True,
    )
    wait_for_end(int(killed.stdout))


def wait_for_end(pid: int) -> None:
    deadline = time.monotonic() + 60
    while Path(f"/proc/{pid}").exists() and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not Path(f"/proc/{pid}").exists()


def in_the_middle(act: Callable[[compile_driver._Child], None]) -> threading.Thread:
    """Calls a function while a request runs."""

    def wait() -> None:
        while not any(child._process is not None for child in list(compile_driver._running)):
            time.sleep(0.001)
        act(next(iter(compile_driver._running)))

    thread = threading.Thread(target=wait)
    thread.start()
    return thread


@pytest.mark.parametrize("whole", [False, True], ids=["request", "session"])
def test_a_crash_is_one_requests(folder: Path, tmp_path: Path, whole: bool) -> None:
    def crash(child: compile_driver._Child) -> None:
        request = child._process
        assert isinstance(request, compile_session.Request)
        while not whole and request.poll() is None and request._find("pid") is None:
            time.sleep(0.001)
        os.kill(request._compiler.pid, signal.SIGSEGV) if whole else request.send_signal(signal.SIGSEGV)

    with compile_session.session():
        first = info(folder)
        thread = in_the_middle(crash)
        with pytest.raises(TesseraError, match="fault in Tessera") as caught:
            ask(
                "deploy",
                "--mlir",
                folder / "m_top.mlir",
                "--output",
                tmp_path / "o.bmodel",
                "--cache-dir",
                "none",
                beside=tmp_path,
            )
        thread.join()
        assert caught.value.code == ExitCode.INTERNAL
        saved = next(tmp_path.glob("tessera-reproducer*"))
        assert (saved / "m_top.mlir").read_bytes() == (folder / "m_top.mlir").read_bytes()
        assert info(folder) == first


def test_nothing_is_left_running(folder: Path) -> None:
    """After the block no compiler is running, even if a request was still running."""
    with compile_session.session():
        info(folder)
        opened = compile_session._open
        assert opened is not None and opened._process is not None
        compiler = opened._process.pid
        request = opened.start(
            str(BUILD / "bin" / "tessera-compile"),
            ["deploy", "--mlir", str(folder / "m_top.mlir"), "--output", str(folder / "o.bmodel")],
        )
        while request._find("pid") is None:
            request.poll()
        pid = request._find("pid")
    for number in (compiler, pid):
        wait_for_end(number)
