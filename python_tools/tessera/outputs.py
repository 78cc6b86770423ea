# SPDX-License-Identifier: Apache-2.0
"""The output files of a command: written to temporary folders, they appear together after success, or not at all."""
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
    """The outputs of one command. Files are written to, and read from, the paths returned by `path` and `folder` until
    `publish` moves them into place."""

    def __init__(self) -> None:
        self._folders: dict[Path, Scratch] = {}  # final folder -> temporary folder
        self._files: dict[Path, Path] = {}  # final file -> temporary file, in the order in which they appear
        self._whole_folders: dict[Path, Path] = {}  # folders whose files are all outputs
        self._kept: dict[Path, Path] = {}  # existing files of others -> their new names
        self._obsolete: list[Path] = []
        self._made: list[Path] = []  # folders created for outputs, the outermost first

    def __enter__(self) -> "Outputs":
        return self

    def __exit__(self, *exception: object) -> None:
        """Removes the temporary folders. Call with interrupts held."""
        for scratch in self._folders.values():
            scratch.remove()
        for folder in reversed(self._made):
            with contextlib.suppress(OSError):  # if it is not empty
                folder.rmdir()

    def path(self, wanted: str | Path) -> Path:
        """Returns where to write the file that becomes `wanted`. Raises TesseraError if it cannot become one."""
        final = Path(wanted).absolute()
        if final not in self._files:
            self._note_folders(final.parent)
            require_writable_file(wanted)
            self._files[final] = self._aside(final.parent) / final.name
        return self._files[final]

    def folder(self, wanted: str | Path) -> Path:
        """Returns where to write files of any names that will appear in the folder `wanted`."""
        final = Path(wanted).absolute()
        self._note_folders(final)
        require_writable_folder(final / "x", shown=wanted)
        if final not in self._whole_folders:
            self._whole_folders[final] = self._aside(final) / "files"
            self._whole_folders[final].mkdir()
        return self._whole_folders[final]

    def keep_other(self, wanted: str | Path) -> str:
        """Protects an existing file from an output whose name the user did not choose; call after writing the output. A
        different existing file is renamed. Returns the warning, "" for none."""
        final = Path(wanted).absolute()
        if not final.exists() or filecmp.cmp(final, self._files[final], shallow=False):
            return ""
        number = 1
        while (kept := final.with_name(f"{final.name}.{number}")).exists():
            number += 1
        self._kept[final] = kept
        return f"{wanted} already existed with other contents; it was renamed to {Path(wanted).with_name(kept.name)}"

    def remove(self, path: str | Path) -> None:
        """Removes a file that is not needed once the outputs are published."""
        self._obsolete.append(Path(path).absolute())

    def publish(self) -> None:
        """Moves all outputs into place. Call with interrupts held. Raises TesseraError if one cannot appear."""
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
        """Records the folders created for an output; they are removed if they stay empty."""
        missing = [each for each in (folder, *folder.parents) if not os.path.lexists(each)]
        self._made += [each for each in reversed(missing) if each not in self._made]

    def _aside(self, folder: Path) -> Path:
        if folder not in self._folders:
            with interrupts.held():
                self._folders[folder] = Scratch(folder)
        return self._folders[folder].path


def require_writable_file(path: str | Path) -> None:
    """Raises TesseraError if `path` is a folder or lies in a folder that cannot be written."""
    if os.path.isdir(path):
        raise TesseraError(f"failed to write {path}: it is a folder", hint=f"pass a file in it: {Path(path) / 'NAME'}")
    require_writable_folder(path)
