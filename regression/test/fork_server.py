# SPDX-License-Identifier: Apache-2.0
"""Runs the Python commands of build/bin as forks of a process that has already imported numpy and the standard
library's modules.

Starting Python and importing these modules takes half of a short command's time. Each run still imports all of
Tessera's modules itself, in its own process, with the environment, folder, arguments and signals that the launcher in
build/bin gives it. What depends on the launcher and on the interpreter's start is tested by commands that are started
as users start them: those of test_interrupts.py, test_wheel.py, test_docs.py and test_limits.py, and all of them with
TESSERA_TEST_EXEC=1.
"""
from __future__ import annotations

import atexit
import importlib
import json
import os
import runpy
import selectors
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Sequence

MODULES = {
    name: f"tessera.cli.{name}"
    for name in (
        "model_transform",
        "run_calibration",
        "model_deploy",
        "model_runner",
        "model_tool",
        "npz_tool",
        "tessera",
    )
}
_FROM_LAUNCHER = ("PYTHONPATH", "ORT_DISABLE_TELEMETRY")


class ForkServer:
    """One process from which commands are forked, one at a time."""

    def __init__(self, launcher: Path) -> None:
        self._channel, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._start = {key: value for key, value in os.environ.items() if key.startswith("PYTHON")}
        with theirs:
            # Pipes, like those of the commands later: Python's streams behave differently for files.
            self._process = subprocess.Popen(
                [launcher, __file__, str(theirs.fileno())],
                pass_fds=[theirs.fileno()],
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
            )
        atexit.register(self.close)

    def close(self) -> None:
        self._channel.close()
        self._process.communicate()

    def suits(self) -> bool:
        """Returns true if the interpreter started with the PYTHON* variables of the current environment."""
        return self._start == {key: value for key, value in os.environ.items() if key.startswith("PYTHON")}

    def run(self, name: str, arguments: Sequence[str], cwd: str, timeout: float) -> subprocess.CompletedProcess[str]:
        """Runs a command like subprocess.run() with captured text."""
        pipes = [os.pipe(), os.pipe()]
        request = json.dumps(
            {"module": MODULES[name], "arguments": arguments, "cwd": cwd, "environment": dict(os.environ)}
        )
        try:
            socket.send_fds(self._channel, [request.encode()], [write for _, write in pipes])
        finally:
            for _, write in pipes:
                os.close(write)
        child = self._answer()
        try:
            texts = _read([read for read, _ in pipes], time.monotonic() + timeout)
        except TimeoutError:
            os.kill(child, signal.SIGKILL)
            self._answer()
            raise subprocess.TimeoutExpired([name, *arguments], timeout) from None
        return subprocess.CompletedProcess([name, *arguments], os.waitstatus_to_exitcode(self._answer()), *texts)

    def _answer(self) -> int:
        answer = self._channel.recv(64)
        if not answer:
            raise ChildProcessError(self._process.communicate()[1].decode(errors="replace"))
        return int(answer)


def _read(descriptors: Sequence[int], deadline: float) -> list[str]:
    """Reads all descriptors to their end and closes them. Raises TimeoutError."""
    received = {descriptor: b"" for descriptor in descriptors}
    try:
        with selectors.DefaultSelector() as selector:
            for descriptor in descriptors:
                selector.register(descriptor, selectors.EVENT_READ)
            while selector.get_map():
                ready = selector.select(max(0.0, deadline - time.monotonic()))
                if not ready:
                    raise TimeoutError
                for key, _ in ready:
                    chunk = os.read(key.fd, 1 << 16)
                    received[key.fd] += chunk
                    if not chunk:
                        selector.unregister(key.fd)
    finally:
        for descriptor in descriptors:
            os.close(descriptor)
    return [text.decode(errors="replace").replace("\r\n", "\n").replace("\r", "\n") for text in received.values()]


def _serve(channel: socket.socket) -> dict:
    """Returns only in the child processes, with the command that the child has to run."""
    while True:
        data, descriptors, _, _ = socket.recv_fds(channel, 1 << 20, 2)
        if not data:
            os._exit(0)
        child = os.fork()
        if child == 0:
            channel.close()
            for target, descriptor in enumerate(descriptors, 1):
                os.dup2(descriptor, target)
                os.close(descriptor)
            return json.loads(data)
        for descriptor in descriptors:
            os.close(descriptor)
        channel.send(str(child).encode())
        channel.send(str(os.waitpid(child, 0)[1]).encode())


# Modules that every command imports, besides Tessera's own.
IMPORTED = """argparse base64 concurrent.futures contextlib ctypes dataclasses datetime enum functools hashlib
importlib.util inspect io itertools logging math pickle queue re runpy shutil struct tempfile textwrap threading typing
urllib.parse weakref zipfile numpy"""


def main() -> None:
    for module in IMPORTED.split():
        importlib.import_module(module)
    request = _serve(socket.socket(fileno=int(sys.argv[1])))
    kept = {key: os.environ[key] for key in _FROM_LAUNCHER if key in os.environ}
    os.environ.clear()
    os.environ.update({**request["environment"], **kept})
    os.chdir(request["cwd"])
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])  # as the launcher does
    sys.argv = ["-m", *request["arguments"]]
    sys.path[0] = os.getcwd()
    runpy.run_module(request["module"], run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
