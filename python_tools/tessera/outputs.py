# SPDX-License-Identifier: Apache-2.0
"""The files that a command is asked for: written aside, they appear together when it has ended well, or none of them
does."""
from __future__ import annotations

import contextlib
import filecmp
import os
from pathlib import Path

from . import interrupts
from .errors import TesseraError
from .files import require_writable_folder
from .scratch import Scratch


class Outputs:
    """Of one command. Files are written to the paths that `path` and `folder` give, and read there by whoever needs
    them before the end; `publish` is the end."""

    def __init__(self) -> None:
        self._folders: dict[Path, Scratch] = {}  # where outputs go -> where they are until then
        self._files: dict[Path, Path] = {}  # the same of files, in the order in which they appear
        self._whole_folders: dict[Path, Path] = {}  # of which all files are outputs
        self._kept: dict[Path, Path] = {}  # files that others made -> their new names
        self._obsolete: list[Path] = []
        self._made: list[Path] = []  # folders for outputs that were not there, the outer one first

    def __enter__(self) -> "Outputs":
        return self

    def __exit__(self, *exception: object) -> None:
        """To be called where interrupts wait."""
        for scratch in self._folders.values():
            scratch.remove()
        for folder in reversed(self._made):
            with contextlib.suppress(OSError):  # that something is in
                folder.rmdir()

    def path(self, wanted: str | Path) -> Path:
        """Where to write what becomes the file `wanted`. Raises TesseraError where it cannot become one."""
        final = Path(wanted).absolute()
        if final not in self._files:
            self._note_folders(final.parent)
            require_writable_file(wanted)
            self._files[final] = self._aside(final.parent) / final.name
        return self._files[final]

    def folder(self, wanted: str | Path) -> Path:
        """Where to write files of any names that come into the folder `wanted`."""
        final = Path(wanted).absolute()
        self._note_folders(final)
        require_writable_folder(final / "x", shown=wanted)
        if final not in self._whole_folders:
            self._whole_folders[final] = self._aside(final) / "files"
            self._whole_folders[final].mkdir()
        return self._whole_folders[final]

    def keep_other(self, wanted: str | Path) -> str:
        """For an output that may not replace what is there, once it is written: where another file has that name, it
        keeps its contents under a new one. Returns what to warn of, "" for nothing."""
        final = Path(wanted).absolute()
        if not final.exists() or filecmp.cmp(final, self._files[final], shallow=False):
            return ""
        number = 1
        while (kept := final.with_name(f"{final.name}.{number}")).exists():
            number += 1
        self._kept[final] = kept
        return f"{wanted} was there and is another one: it is now {Path(wanted).with_name(kept.name)}"

    def remove(self, path: str | Path) -> None:
        """A file that is not needed once the outputs are there."""
        self._obsolete.append(Path(path).absolute())

    def publish(self) -> None:
        """All of them appear; to be called where interrupts wait. Raises TesseraError where one cannot."""
        moves = dict(self._files)
        for final, staged in self._whole_folders.items():
            moves.update(
                (final / file.relative_to(staged), file) for file in sorted(staged.rglob("*")) if file.is_file()
            )
        for final, staged in moves.items():
            if not staged.exists():
                continue
            try:
                final.parent.mkdir(parents=True, exist_ok=True)
                if final in self._kept:
                    os.rename(final, self._kept[final])
                os.replace(staged, final)
            except OSError as error:
                raise TesseraError(
                    f"failed to write {final}: {error.strerror}", hint="choose another output path"
                ) from error

        for path in self._obsolete:
            path.unlink(missing_ok=True)

    def _note_folders(self, folder: Path) -> None:
        """Those that are made for an output: where nothing comes into them they go again."""
        missing = [each for each in (folder, *folder.parents) if not os.path.lexists(each)]
        self._made += [each for each in reversed(missing) if each not in self._made]

    def _aside(self, folder: Path) -> Path:
        if folder not in self._folders:
            with interrupts.held():
                self._folders[folder] = Scratch(folder)
        return self._folders[folder].path


def require_writable_file(path: str | Path) -> None:
    """Raises TesseraError where `path` is a folder, or in one that cannot be written."""
    if os.path.isdir(path):
        raise TesseraError(f"failed to write {path}: it is a folder", hint=f"name a file in it: {Path(path) / 'NAME'}")
    require_writable_folder(path)
