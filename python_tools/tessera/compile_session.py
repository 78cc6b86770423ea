# SPDX-License-Identifier: Apache-2.0
"""One compiler for all that a command asks of it: what its requests have in common is read and hashed once.

`tessera-compile session` makes a process for each request, which looks like one that this process has started: it has
its own stdout and stderr, can be sent signals, and crashes alone. Outside of `session()` each run is one program.
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

_PATIENCE = 5.0  # seconds, for the compiler to end once nobody asks any more
_LOOK_AGAIN = 0.05  # another thread may have read the end
_open: "Session | None" = None


class Session:
    """The compiler, started with the first request."""

    def __init__(self) -> None:
        self._owner = os.getpid()
        self._lock = threading.Lock()  # only taken where interrupts wait, and for moments
        self._socket: socket.socket | None = None
        self._process: subprocess.Popen[bytes] | None = None

    def start(self, program: str, arguments: Sequence[str]) -> "Request":
        """Makes a request; where the compiler has ended, of a new one. To be called where interrupts wait."""
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
        """Gives the compiler, which it returns, a request. One that ends before it reads it says why on the same
        channels."""
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
            # A session of its own: a terminal's Ctrl-C reaches its processes once, through us. It ends with its end
            # of the socket; as a program that ends with its parent it would end with this thread, which may only make
            # one request.
            self._process = subprocess.Popen(
                [program, "session"], stdin=theirs.fileno(), stdout=stdout, stderr=stderr, start_new_session=True
            )

    def close(self) -> None:
        """Ends the compiler, and what it still does."""
        if self._owner != os.getpid():  # this process is a copy: the compiler is the other's
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
    """A process that the compiler made, with what is used of subprocess.Popen. One thread waits, any may end it."""

    def __init__(self, compiler: "subprocess.Popen[bytes]", stdout: int, stderr: int, status: int) -> None:
        self._compiler, self._status, self._told = compiler, open(status, "rb", buffering=0), b""
        self.stdout = open(stdout, encoding="utf-8", errors="replace")
        self.stderr = open(stderr, encoding="utf-8", errors="replace")
        self._lock = threading.Lock()
        self.returncode: int | None = None

    def poll(self) -> int | None:
        """Its exit code, as of Popen; None while it runs."""
        with interrupts.held(), self._lock:
            while self.returncode is None and select.select([self._status], [], [], 0)[0]:
                self._read()
            return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """The same once it has ended. Raises subprocess.TimeoutExpired."""
        deadline = None if timeout is None else time.monotonic() + timeout
        while (code := self.poll()) is None:
            if deadline is not None and time.monotonic() > deadline:
                raise subprocess.TimeoutExpired("tessera-compile", timeout or 0.0)
            select.select([self._status], [], [], _LOOK_AGAIN)
        return code

    def _read(self) -> None:
        """What the compiler tells of it; where that ends without an exit code, it has ended with the compiler."""
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
        """To the process; where the compiler has not made it yet, to the compiler."""
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
    """Runs of the compiler in the block are requests to one. To be entered where interrupts wait."""
    global _open
    before, _open = _open, Session()
    try:
        yield
    finally:
        with interrupts.held():
            _open.close()
            _open = before


def _is_text(words: Sequence[str]) -> bool:
    """Whether JSON can hold them: names of files can be any bytes."""
    try:
        return bool("".join(words).encode())
    except UnicodeEncodeError:
        return False


def start(program: str, arguments: Sequence[str]) -> "subprocess.Popen[str] | Request":
    """Starts a run of the compiler. To be called where interrupts wait."""
    if _open is not None and _is_text(arguments):
        return _open.start(program, arguments)
    # A session of its own: a terminal's Ctrl-C reaches the child once, through us.
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
