# SPDX-License-Identifier: Apache-2.0
"""Output files that appear completely or not at all, and .npz files with any tensor name."""
from __future__ import annotations

import contextlib
import errno
import json
import os
import resource
import shutil
import tempfile
import zipfile
from pathlib import Path
from typing import IO, Any, Iterator, Mapping

import numpy as np

from . import memory
from .errors import TesseraError
from .scratch import scratch_folder


def require_file(path: str | Path, what: str) -> Path:
    """Returns `path` as a Path; raises TesseraError unless it is a readable file. what: 'model', 'test input', …"""
    path = Path(path)
    try:
        path.is_dir()
    except OSError as error:
        raise TesseraError(f"failed to open {what} {path}: {error.strerror}") from error
    if path.is_dir():
        raise TesseraError(f"failed to open {what} {path}: it is a folder")
    if not path.exists():
        raise TesseraError(f"failed to open {what} {path}: no such file")
    if not path.is_file():  # reading a pipe may never end
        raise TesseraError(f"failed to open {what} {path}: it is not a regular file, but a pipe, device or socket")
    if not os.access(path, os.R_OK):
        raise TesseraError(f"failed to open {what} {path}: no permission to read it")
    return path


def _reject_special(path: Path) -> None:
    """Raises OSError if a file cannot become `path`: renaming onto a device or a pipe would replace it for all programs
    of the system."""
    if path.is_dir():
        raise IsADirectoryError(errno.EISDIR, "it is a folder")
    if path.exists() and not path.is_file():
        raise OSError(errno.EINVAL, "it is not a regular file, but a pipe, device or socket")


def require_writable_folder(path: str | Path, shown: str | Path = "") -> Path:
    """Returns the folder that file `path` will be written to, creating it if necessary. shown: the path as the user
    knows it, if different."""
    folder = Path(path).resolve().parent
    try:
        if Path(path).exists() and not Path(path).is_dir():
            _reject_special(Path(path))
    except OSError as error:
        raise TesseraError(
            f"failed to write {shown or path}: {error.strerror}", hint="choose another output path"
        ) from error
    path = shown or path
    try:
        folder.mkdir(parents=True, exist_ok=True)
        # os.access allows root everything, even on a read-only file system, so try to write.
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise TesseraError(
            f"failed to write {path}: folder {folder}: {error.strerror}",
            hint="choose another output path or make the folder writable",
        ) from error
    return folder


@contextlib.contextmanager
def atomic_write(path: str | Path, size: int = 0) -> Iterator[IO[bytes]]:
    """Yields a binary file that becomes `path` if the block succeeds and vanishes otherwise. size: minimum size in
    bytes, if known: a lack of space is then reported at once."""
    path = Path(path)
    try:
        _reject_special(path)
        with scratch_folder(path.resolve().parent) as folder:
            staged = folder / path.name
            with open(staged, "wb") as file:
                if size:
                    _reserve(file, size)
                yield file
            staged.replace(path)
    except OSError as error:
        if memory.lacks(error) or isinstance(error, BrokenPipeError):
            raise
        wanted = f", {size} bytes" if size else ""
        raise TesseraError(
            f"failed to write {path}{wanted}: {error.strerror or error}",
            hint=room_hint(path, error) or "check the folder's permissions and the free space",
        ) from error


def write_text(path: str | Path, text: str) -> None:
    """Writes a file in UTF-8. Raises TesseraError."""
    with atomic_write(path) as file:
        file.write(text.encode())


def _reserve(file: IO[bytes], size: int) -> None:
    """Reserves disk space for this many bytes; the file's size stays 0."""
    try:
        os.posix_fallocate(file.fileno(), 0, size)
        os.ftruncate(file.fileno(), 0)
    except OSError as error:
        if error.errno in NO_ROOM:
            raise


NO_NAME = (errno.ENAMETOOLONG, errno.ELOOP)  # no file can have such a name
NO_ROOM = (errno.ENOSPC, errno.EFBIG, errno.EDQUOT)


def room_hint(path: str | Path, error: OSError | str) -> str:
    """Returns what to do if a file did not fit; "" if something else is wrong. error: may be a message with the
    system's words."""
    if isinstance(error, OSError):
        error = os.strerror(error.errno) if error.errno in NO_ROOM else ""
    if os.strerror(errno.EFBIG) in error:
        limit = resource.getrlimit(resource.RLIMIT_FSIZE)[0]
        return "raise the file size limit" + (
            f", which is {limit} bytes (ulimit -f)" if limit != resource.RLIM_INFINITY else ""
        )
    if os.strerror(errno.EDQUOT) in error:
        return "your disk quota is used up: remove something, or write to another disk"
    if os.strerror(errno.ENOSPC) not in error:
        return ""
    try:
        free = f"{shutil.disk_usage(Path(path).resolve().parent).free / 1e6:.1f} MB are free there"
    except OSError:
        free = "it is full"
    return f"{free}: remove something, or write to another disk"


@contextlib.contextmanager
def staging_folder(beside: str | Path) -> Iterator[Path]:
    """Yields a folder on the same file system as file `beside`, for files to be renamed into place; always removes
    it."""
    with scratch_folder(require_writable_folder(beside)) as path:
        yield path


def save_npz(path: str | Path, tensors: Mapping[str, np.ndarray]) -> None:
    """Writes an uncompressed .npz; unlike numpy.savez it accepts any tensor name ('file', 'a/b', …)."""
    size = sum(np.asanyarray(tensor).nbytes for tensor in tensors.values())
    with atomic_write(path, size) as file, zipfile.ZipFile(file, "w", zipfile.ZIP_STORED, allowZip64=True) as archive:
        for name, tensor in tensors.items():
            # A fixed time stamp, so that the same tensors give the same bytes.
            entry = zipfile.ZipInfo(f"{name}.npy", date_time=(1980, 1, 1, 0, 0, 0))
            with archive.open(entry, "w", force_zip64=True) as member:
                np.lib.format.write_array(member, np.asanyarray(tensor), allow_pickle=False)


def load_json(path: str | Path, what: str, hint: str = "") -> Any:
    """Reads JSON from a file that a user may have written. what: 'calibration table', … Raises TesseraError with the
    position of an error."""
    path = require_file(path, what)
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except RecursionError as error:
        raise TesseraError(
            f"failed to read {what} {path}: its lists or objects are nested too deep", hint=hint
        ) from error
    except UnicodeDecodeError as error:
        raise TesseraError(f"failed to read {what} {path}: byte {error.start} is not UTF-8", hint=hint) from error
    except (ValueError, OSError) as error:
        raise TesseraError(f"failed to read {what} {path}: it is not JSON: {error}", hint=hint) from error


def load_json_object(path: str | Path, what: str) -> dict[str, Any]:
    """Reads a JSON object as load_json() does."""
    found = load_json(path, what)
    if not isinstance(found, dict):
        raise TesseraError(f"failed to read {what} {path}: it is not a JSON object")
    return found


def load_npz(path: str | Path, what: str = "tensor file") -> dict[str, np.ndarray]:
    """Reads all arrays of an .npz file by name. Raises TesseraError for anything unreadable in it."""
    require_file(path, what)
    try:
        with np.load(path, allow_pickle=False) as archive:
            if not isinstance(archive, np.lib.npyio.NpzFile):
                raise ValueError("it is not an .npz archive")
            return {name: archive[name] for name in archive.files}
    except MemoryError:
        raise
    except Exception as error:  # from zipfile, zlib or numpy: in any case the file is at fault
        raise TesseraError(f"failed to read {what} {path}: not a readable .npz file: {error}") from error


def load_npy(path: str | Path, what: str = "tensor file") -> np.ndarray:
    """Reads the array of an .npy file."""
    require_file(path, what)
    try:
        return np.load(path, allow_pickle=False)
    except MemoryError:
        raise
    except Exception as error:
        raise TesseraError(f"failed to read {what} {path}: not a readable .npy file: {error}") from error
