# SPDX-License-Identifier: Apache-2.0
"""Output files that are there whole or not at all, and .npz files with any tensor name."""
from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
import zipfile
from pathlib import Path
from typing import IO, Iterator, Mapping

import numpy as np

from . import interrupts
from .errors import TesseraError

_scratch: set[Path] = set()  # the scratch folders that there are now


def require_file(path: str | Path, what: str) -> Path:
    """`path` as a Path; TesseraError where it is no readable file. what: 'model', 'test input', …"""
    path = Path(path)
    if path.is_dir():
        raise TesseraError(f"failed to open {what} {path}: it is a folder")
    if not path.exists():
        raise TesseraError(f"failed to open {what} {path}: no such file")
    if not path.is_file():  # to read a pipe may never end
        raise TesseraError(f"failed to open {what} {path}: it is no regular file, but a pipe, device or socket")
    if not os.access(path, os.R_OK):
        raise TesseraError(f"failed to open {what} {path}: no permission to read it")
    return path


def require_writable_folder(path: str | Path) -> Path:
    """The folder that file `path` will be written to, made if missing."""
    folder = Path(path).resolve().parent
    try:
        folder.mkdir(parents=True, exist_ok=True)
        # os.access says yes to root on a read-only file system and for any mode: try it.
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise TesseraError(f"failed to write {path}: folder {folder}: {error.strerror}",
                           hint="choose another output path or make the folder writable") from error
    return folder


@contextlib.contextmanager
def atomic_write(path: str | Path) -> Iterator[IO[bytes]]:
    """A binary file that becomes `path` when the block ends well and vanishes when it does not."""
    path = Path(path)
    try:
        with scratch_folder(path.resolve().parent) as folder:
            staged = folder / path.name
            with open(staged, "wb") as file:
                yield file
            staged.replace(path)
    except OSError as error:
        raise TesseraError(f"failed to write {path}: {error.strerror or error}",
                           hint="check the folder's permissions and the free space") from error


@contextlib.contextmanager
def scratch_folder(beside: Path | None = None) -> Iterator[Path]:
    """A folder in `beside` (default: where the system keeps temporary files), removed at the end also by an interrupt."""
    with interrupts.held():
        path = Path(tempfile.mkdtemp(dir=beside, prefix=".tessera-" if beside else "tessera-")).resolve()
        _scratch.add(path)
        try:
            with interrupts.raised():
                yield path
        finally:
            _scratch.discard(path)
            shutil.rmtree(path, ignore_errors=True)


def lasting_folder(path: Path) -> Path:
    """The folder `path`, or the one it is in, if that stays; else the one that holds the scratch folder around it."""
    path = path.resolve()
    around = [folder for folder in (path, *path.parents) if folder in _scratch]
    if around:
        return around[-1].parent
    return path if path.is_dir() else path.parent


@contextlib.contextmanager
def staging_folder(beside: str | Path) -> Iterator[Path]:
    """A folder on the same file system as file `beside` for files to be renamed into place; always removed."""
    with scratch_folder(require_writable_folder(beside)) as path:
        yield path


def save_npz(path: str | Path, tensors: Mapping[str, np.ndarray]) -> None:
    """Writes an uncompressed .npz; unlike numpy.savez any tensor name is allowed ('file', 'a/b', …)."""
    with atomic_write(path) as file, zipfile.ZipFile(file, "w", zipfile.ZIP_STORED, allowZip64=True) as archive:
        for name, tensor in tensors.items():
            # A fixed time stamp: the same tensors give the same bytes.
            entry = zipfile.ZipInfo(f"{name}.npy", date_time=(1980, 1, 1, 0, 0, 0))
            with archive.open(entry, "w", force_zip64=True) as member:
                np.lib.format.write_array(member, np.asanyarray(tensor), allow_pickle=False)


def load_npz(path: str | Path, what: str = "tensor file") -> dict[str, np.ndarray]:
    """All arrays of an .npz file by name. Raises TesseraError for anything unreadable in it."""
    require_file(path, what)
    try:
        with np.load(path, allow_pickle=False) as archive:
            if not isinstance(archive, np.lib.npyio.NpzFile):
                raise ValueError("it is no .npz archive")
            return {name: archive[name] for name in archive.files}
    except (OSError, ValueError, zipfile.BadZipFile, EOFError, KeyError) as error:
        raise TesseraError(f"failed to read {what} {path}: not a readable .npz file: {error}") from error


def load_tensors(path: str | Path, what: str = "tensor file") -> dict[str, np.ndarray]:
    """Arrays by name of an .npz, .safetensors or .npy file (the latter under the file's stem)."""
    from . import safetensors_io

    suffix = Path(path).suffix
    if suffix == ".safetensors":
        require_file(path, what)
        return safetensors_io.load(path)
    if suffix == ".npy":
        return {Path(path).stem: load_npy(path, what)}
    return load_npz(path, what)


def load_npy(path: str | Path, what: str = "tensor file") -> np.ndarray:
    """The array of an .npy file."""
    require_file(path, what)
    try:
        return np.load(path, allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise TesseraError(f"failed to read {what} {path}: not a readable .npy file: {error}") from error
