# SPDX-License-Identifier: Apache-2.0
"""Temporary folders that do not outlive the process: removed at the end of their block or, if the process was killed,
by the next process.

Each contains a locked file while it is in use. The kernel releases the lock when the process ends for whatever reason,
so a folder with an unlocked file of this kind is abandoned. A folder without such a file does not belong to Tessera and
is not removed.
"""
from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import re
import shutil
import tempfile
from pathlib import Path
from typing import Iterator

from . import interrupts

_OWNER = ".owner"  # its contents are for people
_BESIDE, _TEMPORARY = ".tessera-", "tessera-"
_NAME = re.compile(r"\.?tessera-[a-z0-9_]{8}")  # the names that mkdtemp generates with the two prefixes
_INSIDE = re.compile(r"/\.tessera-[a-z0-9_]{8}(?=/)")
_in_use: set[Path] = set()  # by this process
_cleaned: set[Path] = set()  # folders that were searched for abandoned ones


@contextlib.contextmanager
def scratch_folder(beside: Path | None = None) -> Iterator[Path]:
    """Yields a folder in `beside` (default: the system's folder for temporary files), which is removed at the end, even
    by an interrupt."""
    with interrupts.held():
        scratch = Scratch(beside)
        try:
            with interrupts.raised():
                yield scratch.path
        finally:
            scratch.remove()


class Scratch:
    """A scratch folder without a block. Create and remove it with interrupts held."""

    def __init__(self, beside: Path | None = None) -> None:
        around = beside or Path(tempfile.gettempdir())
        if around not in _cleaned:
            _cleaned.add(around)
            remove_abandoned(around)
        self.path, self._lock = _make(around, _BESIDE if beside else _TEMPORARY)
        _in_use.add(self.path)

    def remove(self) -> None:
        _in_use.discard(self.path)
        shutil.rmtree(self.path, ignore_errors=True)
        os.close(self._lock)


def remove_abandoned(around: Path) -> None:
    """Removes the folders that killed processes have left."""
    try:
        with os.scandir(around) as entries:
            found = [
                entry.path
                for entry in entries
                if _NAME.fullmatch(entry.name)
                and entry.is_dir(follow_symlinks=False)
                and entry.stat(follow_symlinks=False).st_uid == os.geteuid()
            ]
    except OSError:
        return
    for folder in found:
        with contextlib.suppress(OSError):
            lock = os.open(Path(folder) / _OWNER, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(folder, ignore_errors=True)
            finally:
                os.close(lock)


def lasting_folder(path: Path) -> Path:
    """Returns the folder `path`, or the one that contains it, if it is permanent; else the folder that contains the
    outermost scratch folder around it."""
    path = path.resolve()
    around = [folder for folder in (path, *path.parents) if folder in _in_use]
    if around:
        return around[-1].parent
    return path if path.is_dir() else path.parent


def without_scratch(text: str) -> str:
    """Removes scratch folders from a message, so that it names the user's file."""
    return _INSIDE.sub("", text)


def _make(around: Path, prefix: str) -> tuple[Path, int]:
    """Returns a new folder and the descriptor that holds its lock."""
    while True:
        path = Path(tempfile.mkdtemp(dir=around, prefix=prefix)).resolve()
        lock = -1
        try:
            lock = os.open(path / _OWNER, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            with contextlib.suppress(OSError):  # without locks on this file system, nobody can take it for abandoned
                fcntl.flock(lock, fcntl.LOCK_EX)  # a process that removes abandoned folders may hold it right now
            if _is_same(path / _OWNER, lock):
                with contextlib.suppress(OSError):
                    os.write(lock, f"{os.getpid()} on {os.uname().nodename}\n".encode())
                return path, lock
        except FileNotFoundError:
            pass
        except BaseException:
            shutil.rmtree(path, ignore_errors=True)
            if lock >= 0:
                os.close(lock)
            raise
        if lock >= 0:  # another process took the folder for abandoned before it was locked
            os.close(lock)


def _is_same(path: Path, descriptor: int) -> bool:
    try:
        return os.path.samestat(os.stat(path), os.fstat(descriptor))
    except OSError as error:
        if error.errno in (errno.ENOENT, errno.ENOTDIR):
            return False
        raise
