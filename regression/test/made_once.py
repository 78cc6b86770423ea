# SPDX-License-Identifier: Apache-2.0
"""Caches files that several suites need and that one command makes. They are made once in a build, stored in
build/test-models and copied from there."""
from __future__ import annotations

import fcntl
import functools
import hashlib
import os
import shutil
from pathlib import Path
from typing import Callable

BUILD = Path(os.environ.get("TESSERA_BUILD_DIR", Path(__file__).resolve().parents[2] / "build"))
FOLDER = BUILD / "test-models"


def _state(path: Path) -> str:
    """Returns a text that changes whenever the file changes."""
    found = path.stat()
    return f"{path} {found.st_size} {found.st_mtime_ns}"


@functools.cache
def _tools() -> str:
    """Returns the state of all files that the commands of this build depend on."""
    files = [
        *(BUILD / "python").rglob("*.py"),
        *(BUILD / "python").rglob("*.so"),
        *(BUILD / "bin").iterdir(),
        *(BUILD / "lib").glob("*.so*"),
    ]
    return "\n".join(sorted(_state(path) for path in files if path.is_file()))


def made_once(folder: Path, sources: list[Path], arguments: object, make: Callable[[Path], None]) -> None:
    """Fills the existing `folder` with the files that `make` writes into an empty folder; other runs reuse them. The
    files must depend only on the contents of `sources`, on repr(`arguments`) and on the build."""
    text = "\n".join(
        [_tools(), *(_state(path.resolve()) for path in sources), repr(arguments), os.environ.get("TESSERA_DATA", "")]
    )
    kept = FOLDER / hashlib.sha256(text.encode()).hexdigest()[:32]
    FOLDER.mkdir(parents=True, exist_ok=True)
    with open(kept.with_suffix(".lock"), "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # a second process waits for the first one here
        if not kept.is_dir():
            begun = kept.with_suffix(".begun")
            shutil.rmtree(begun, ignore_errors=True)
            begun.mkdir()
            make(begun)
            begun.rename(kept)
    shutil.copytree(kept, folder, dirs_exist_ok=True)
