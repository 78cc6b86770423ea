# SPDX-License-Identifier: Apache-2.0
"""Combines several .bmodel files of one network, for different shapes or chips, to one that stores equal constants
once."""
from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Sequence

from .errors import ExitCode, TesseraError, usage_error
from .files import staging_folder
from .programs import output_of
from .progress import Report

LEAST_SHARED = 0.5  # of the constants, for two stages of one network on one chip


def combine(
    files: Sequence[Path], output: Path, report: Report, names: Sequence[str] | None = None
) -> list[dict[str, Any]]:
    """Writes `output` atomically. Returns for each file its name (default: its path), constant_bytes, and new_bytes,
    which no earlier file contains. Raises TesseraError if the files do not fit together."""
    names = names or [str(path) for path in files]

    def error(message: str, code: ExitCode) -> TesseraError:
        for path, name in zip(files, names or ()):
            message = message.replace(f"'{path}'", f"'{name}'")
        return TesseraError(message, code)

    with staging_folder(output) as staging:
        staged = staging / output.name
        printed = output_of("bmodel-combine", str(staged), *map(str, files), error=error)
        info: list[dict[str, Any]] = [{"file": name, **entry} for name, entry in zip(names, json.loads(printed))]
        staged.replace(output)
    for entry in info:
        if entry.pop("known_chip") and entry["new_bytes"] > (1 - LEAST_SHARED) * entry["constant_bytes"]:
            report.warn(
                f"{entry['file']} has only {entry['constant_bytes'] - entry['new_bytes']} of its "
                f"{entry['constant_bytes']} bytes of "
                "constants in common with the previous files: check that it is the same network, with the same "
                "weights and tables"
            )
    return info


def parse_shapes(text: str, names: Sequence[str]) -> dict[str, tuple[int, ...]]:
    """Parses "x=1x3x224x224,y=1x8" (for a single input also "1x3x224x224") to shapes by name. Raises TesseraError
    unless it names exactly the inputs."""
    shapes: dict[str, tuple[int, ...]] = {}
    for part in text.split(","):
        name, equals, dims = part.rpartition("=")
        name = name.strip() if equals else names[0] if len(names) == 1 else ""
        try:
            shapes[name] = tuple(int(dim) for dim in dims.strip().split("x"))
        except ValueError:
            raise usage_error(f"--input_shapes {text}: expected NAME=1x3x224x224,NAME=..., not '{part}'") from None
    if set(shapes) != set(names):
        raise usage_error(f"--input_shapes {text}: the inputs are {', '.join(names)}")
    return shapes
