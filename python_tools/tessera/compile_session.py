# SPDX-License-Identifier: Apache-2.0
"""One compiler process for all requests of a command, so that shared data is read and hashed only once.

`tessera-compile session` creates a process for each request, which behaves like one started by this process: it has its
own stdout and stderr, receives signals, and crashes alone. Outside `session()` each run is a separate program.
"""
from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import socket
import subprocess
import threading
import time
from typing import Iterator, Sequence

from . import interrupts
from .programs import environment

_PATIENCE = 5.0  # seconds for the compiler to end after the last request
_LOOK_AGAIN = 0.05  # seconds; another thread may have read the end
_open: "Session | None" = None


class Session:
    """The compiler, started with the first request."""

    def __init__(self) -> None:
        self._owner = os.getpid()
        self._lock = threading.Lock()  # only taken with interrupts held, and only briefly
        self._socket: socket.socket | None = None
        self._process: subprocess.Popen[bytes] | None = None

    def start(self, program: str, arguments: Sequence[str]) -> "Request":
        """Sends a request, to a new compiler if the previous one has ended. Call with interrupts held."""
        with self._lock:
            pipes = [os.pipe() for _ in range(3)]
            try:
                process = self._send(program, arguments, [write for _, write in pipes])
            except BaseException:
                for read, _ in pipes:
                    os.close(read)
                raise
            finally:
                for _, write in pipes:
                    os.close(write)
            return Request(process, *(read for read, _ in pipes))

    def _send(self, program: str, arguments: Sequence[str], channels: Sequence[int]) -> "subprocess.Popen[bytes]":
        """Sends the compiler a request and returns the compiler. A compiler that ends before it reads the request
        reports why on the same channels."""
        if self._process is None or self._process.poll() is not None:
            self._begin(program, *channels[:2])
        assert self._socket is not None and self._process is not None
        text = json.dumps({"arguments": list(arguments)}).encode()
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            socket.send_fds(self._socket, [text], channels)
        return self._process

    def _begin(self, program: str, stdout: int, stderr: int) -> None:
        self.close()
        self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            # Has its own session: a terminal's Ctrl-C reaches its processes once, through us. It ends when its end of
            # the socket closes. It must not be tied to its parent's life, because that is the life of this thread,
            # which may only make one request.
            self._process = subprocess.Popen(
                [program, "session"], stdin=theirs.fileno(), stdout=stdout, stderr=stderr, start_new_session=True
            )

    def close(self) -> None:
        """Ends the compiler and its running requests."""
        if self._owner != os.getpid():  # this process is a fork: the compiler belongs to the original
            return
        if self._socket is not None:
            self._socket.close()
            self._socket = None
        if self._process is not None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(_PATIENCE)
            if self._process.poll() is None:
                self._process.kill()
                self._process.wait()
            self._process = None


class Request:
    """A process created by the compiler, with the subset of subprocess.Popen that is used. One thread waits, any thread
    may end it."""

    def __init__(self, compiler: "subprocess.Popen[bytes]", stdout: int, stderr: int, status: int) -> None:
        self._compiler, self._status, self._told = compiler, open(status, "rb", buffering=0), b""
        self.stdout = open(stdout, encoding="utf-8", errors="replace")
        self.stderr = open(stderr, encoding="utf-8", errors="replace")
        self._lock = threading.Lock()
        self.returncode: int | None = None

    def poll(self) -> int | None:
        """Returns the exit code, as Popen does; None while the process runs."""
        with interrupts.held(), self._lock:
            while self.returncode is None and select.select([self._status], [], [], 0)[0]:
                self._read()
            return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Waits and returns the exit code. Raises subprocess.TimeoutExpired."""
        deadline = None if timeout is None else time.monotonic() + timeout
        while (code := self.poll()) is None:
            if deadline is not None and time.monotonic() > deadline:
                raise subprocess.TimeoutExpired("tessera-compile", timeout or 0.0)
            select.select([self._status], [], [], _LOOK_AGAIN)
        return code

    def _read(self) -> None:
        """Reads the compiler's status messages. If they end without an exit code, the process has ended with the
        compiler."""
        data = self._status.read(4096) or b""
        self._told += data
        if (code := self._find("exit")) is not None or not data:
            if code is None:
                try:
                    code = self._compiler.wait(_PATIENCE)
                except subprocess.TimeoutExpired:
                    code = -signal.SIGKILL
            self.returncode = code

    def _find(self, key: str) -> int | None:
        for line in self._told.decode("ascii", "replace").splitlines():
            word, _, number = line.partition(" ")
            if word == key:
                return int(number)
        return None

    def send_signal(self, number: int) -> None:
        """Sends the signal to the process, or to the compiler if it has not created the process yet."""
        if self.poll() is not None:
            return
        with contextlib.suppress(ProcessLookupError):
            pid = self._find("pid")
            if pid is None:
                self._compiler.send_signal(number)
            else:
                os.kill(pid, number)


@contextlib.contextmanager
def session() -> Iterator[None]:
    """Sends runs of the compiler in the block as requests to one process. Enter with interrupts held."""
    global _open
    before, _open = _open, Session()
    try:
        yield
    finally:
        with interrupts.held():
            _open.close()
            _open = before


def _is_text(words: Sequence[str]) -> bool:
    """Returns true if JSON can hold the words: file names can be any bytes."""
    try:
        return bool("".join(words).encode())
    except UnicodeEncodeError:
        return False


def start(program: str, arguments: Sequence[str]) -> "subprocess.Popen[str] | Request":
    """Starts a run of the compiler. Call with interrupts held."""
    if _open is not None and _is_text(arguments):
        return _open.start(program, arguments)
    # Has its own session: a terminal's Ctrl-C reaches the child once, through us.
    return subprocess.Popen(
        [program, *arguments],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        start_new_session=True,
        env=environment(),
    )
