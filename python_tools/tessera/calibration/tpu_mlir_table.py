# SPDX-License-Identifier: Apache-2.0
"""tpu-mlir's calibration table: text with `name threshold min max` per line and comments that begin with #."""
from __future__ import annotations

import math
from pathlib import Path
from typing import Sequence

from ..errors import TesseraError
from ..files import atomic_write, require_file
from .table import Entry, Table

_ASYMMETRIC, _OTHER_SECTIONS = "#asym_op", ("#int4_th", "#weight_scale", "#smoothquant", "#fp8_th")
UNKNOWN_SAMPLES = ""


def export_text(table: Table, path: str | Path) -> None:
    """Writes `table`. Raises TesseraError for a name with white space, which the format cannot represent."""
    lines = [
        f"# work_mode:{table.method} of {table.tool}",
        f"# sample number: {table.samples}",
        "###",
        "# op_name    threshold    min    max",
    ]
    for entry in table.tensors:
        if len(entry.name.split()) != 1 or entry.name.startswith("#"):
            raise TesseraError(
                f"tensor '{entry.name}': tpu-mlir's table cannot hold a name with white space or a leading #",
                hint="rename the tensor in the ONNX file",
            )
        lines.append(f"{entry.name} {entry.threshold:.7g} {entry.min:.7g} {entry.max:.7g}")
    asymmetric = [entry.name for entry in table.tensors if not entry.symmetric]
    lines += [_ASYMMETRIC, *asymmetric] if asymmetric else []
    with atomic_write(path) as file:
        file.write(("\n".join(lines) + "\n").encode())


def import_text(path: str | Path, model: str, model_hash: str, tensors: Sequence[str]) -> tuple[Table, list[str]]:
    """Reads a table for the model; returns it and notes about ignored parts, one sentence each.

    tpu-mlir names a tensor after its ONNX name, with or without "_OpType" appended ("conv1_Relu"); both are accepted.
    Raises TesseraError for an unreadable line and if a tensor of the model does not have a line.
    """
    path = require_file(path, "tpu-mlir calibration table")
    known, found, notes = set(tensors), {}, []
    asymmetric: set[str] = set()
    section = ""
    unknown: list[str] = []
    for number, raw in enumerate(path.read_text(encoding="utf-8", errors="replace").splitlines(), 1):
        line = raw.strip()
        if line.startswith("#"):
            section = next((s for s in (_ASYMMETRIC, *_OTHER_SECTIONS) if line.startswith(s)), section)
            continue
        if not line:
            continue
        if section in _OTHER_SECTIONS:
            notes.append(f"{path}: section {section} was ignored")
            continue
        words = line.split()
        name = _match(words[0], known)
        if section == _ASYMMETRIC and len(words) == 1:
            asymmetric.add(name or "")
            continue
        threshold, low, high = _numbers(words, path, number)
        if name is None:
            unknown.append(words[0])
        else:
            found[name] = (threshold, low, high)
    missing = [name for name in tensors if name not in found]
    if missing:
        raise TesseraError(
            f"{path}: lines are missing for {len(missing)} of the model's {len(tensors)} tensors: "
            + ", ".join(f"'{name}'" for name in missing[:5]),
            details=[f"the table has {len(unknown)} unknown names, e.g. '{unknown[0]}'"] if unknown else [],
        )
    if unknown:
        notes.append(f"{path}: ignored {len(unknown)} name(s) that are not in the model, e.g. '{unknown[0]}'")
    entries = tuple(Entry.make(name, *found[name], name not in asymmetric, "imported") for name in tensors)
    return Table(model, model_hash, "tpu-mlir", 0, UNKNOWN_SAMPLES, entries), list(dict.fromkeys(notes))


def _match(word: str, known: set[str]) -> str | None:
    if word in known:
        return word
    stem = word.rpartition("_")[0]
    return stem if stem in known else None


def _numbers(words: list[str], path: Path, number: int) -> tuple[float, float, float]:
    try:
        threshold, low, high = map(float, words[1:])
    except ValueError:
        raise TesseraError(f"{path}:{number}: expected 'name threshold min max', got '{' '.join(words)}'") from None
    if not all(map(math.isfinite, (threshold, low, high))) or threshold <= 0 or low > high:
        raise TesseraError(
            f"{path}:{number}: '{words[0]}': threshold {threshold:g}, min {low:g}, max {high:g}: "
            "the threshold must be positive, and min must not exceed max"
        )
    return threshold, low, high
