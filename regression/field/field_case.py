# SPDX-License-Identifier: Apache-2.0
"""Reads the field cases of TESSERA_DATA and the list of those that are expected to fail (README.md)."""
from __future__ import annotations

import functools
import json
import os
import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx

FOLDER = "field_cases"
LIST = Path(__file__).with_name("expected_failures.txt")
_FLAGS = re.compile(r"npu|int8|tail|refuse|padded|perchannel|i?step=[\d.]+")


@dataclass(frozen=True)
class FieldCase:
    """A model with its input, its expected outputs and how to judge them. flags, arguments: from meta.json."""

    folder: Path
    flags: tuple[str, ...] = ()
    arguments: tuple[str, ...] = ()
    shapes: str = ""
    note: str = ""

    @property
    def name(self) -> str:
        return self.folder.name

    @property
    def model(self) -> Path:
        return self.folder / "model.onnx"

    @property
    def samples(self) -> Path | None:
        """The folder of calibration samples, if there is one."""
        folder = self.folder / "cal"
        return folder if folder.is_dir() else None

    @property
    def must_be_rejected(self) -> bool:
        return "refuse" in self.flags

    @property
    def may_be_unsupported(self) -> bool:
        """True if the case consists of the model only: exit code 4 is as good as correct outputs."""
        return not (self.folder / "input.npz").exists() and not (self.folder / "expected.npz").exists()

    @property
    def situation(self) -> str:
        """The line of the note that describes the model and its use."""
        return next((line for line in self.note.splitlines() if line.startswith("situation:")), "")

    @property
    def needs_equal_bits(self) -> bool:
        """True if INT8 has to give the same bits everywhere, whatever the compiler promises."""
        return "INT8" in self.situation

    @property
    def is_quantised(self) -> bool:
        """True if INT8 is part of the case."""
        return "int8" in self.flags or self.needs_equal_bits or self.samples is not None

    @property
    def narrow_precisions(self) -> tuple[str, ...]:
        """The precisions that the note names in a command: --quantize F16 or BF16."""
        named = re.search(r"--quantize (\w+)(?: or (\w+))?", self.situation)
        return tuple(word for word in (named.groups() if named else ()) if word and word != "INT8")

    @property
    def share_allowed(self) -> float:
        """The relative error that the note allows ("within 1 %"), else 0."""
        found = re.search(r"within ([\d.]+) ?%", self.note)
        return float(found[1]) / 100 if found else 0.0

    def step(self, flag: str) -> float:
        """The number of the flag `step` or `istep`, 0 without it."""
        values = [word.partition("=")[2] for word in self.flags if word.startswith(f"{flag}=")]
        return float(values[0]) if values else 0.0

    def arrays(self, name: str) -> dict[str, np.ndarray] | None:
        """Returns the arrays of input.npz or expected.npz; None if the case does not have the file."""
        path = self.folder / f"{name}.npz"
        if not path.exists():
            return None
        with np.load(path) as file:
            return dict(file)

    @functools.cached_property
    def proto(self) -> onnx.ModelProto:
        """The model without its external data."""
        return onnx.load(str(self.model), load_external_data=False)

    def open_shapes(self) -> str:
        """Returns --input_shapes for a model with open dims, from meta.json or the input's sizes; "" if no dim is
        open."""
        if self.shapes:
            return self.shapes
        constants = {tensor.name for tensor in self.proto.graph.initializer}
        inputs = [value for value in self.proto.graph.input if value.name not in constants]
        if all(dim.HasField("dim_value") for value in inputs for dim in value.type.tensor_type.shape.dim):
            return ""
        arrays = self.arrays("input") or {}
        return ",".join(f"{name}={'x'.join(map(str, array.shape)) or 'scalar'}" for name, array in arrays.items())

    def __hash__(self) -> int:
        return hash(self.folder)


def folder_of_cases() -> Path | None:
    """Returns the folder of all cases; None if TESSERA_DATA has none."""
    root = os.environ.get("TESSERA_DATA", "")
    folder = Path(root) / FOLDER
    return folder if root and folder.is_dir() else None


def read_case(folder: Path) -> FieldCase:
    """Reads a case. Raises ValueError for an unknown flag, because the case would be checked less strictly than
    intended."""
    meta_file, note_file = folder / "meta.json", folder / "note.txt"
    meta = json.loads(meta_file.read_text()) if meta_file.exists() else {}
    unknown = [word for word in meta.get("flags", ()) if not _FLAGS.fullmatch(word)]
    if unknown:
        raise ValueError(f"{meta_file}: unknown flags {unknown}")
    return FieldCase(
        folder,
        tuple(meta.get("flags", ())),
        tuple(meta.get("args", ())),
        ",".join(meta.get("shapes") or ()),
        note_file.read_text() if note_file.exists() else "",
    )


def all_cases() -> list[FieldCase]:
    """Returns every case by name; none without TESSERA_DATA."""
    folder = folder_of_cases()
    return [read_case(path.parent) for path in sorted(folder.glob("*/model.onnx"))] if folder else []


def expected_failures() -> dict[tuple[str, str], str]:
    """Returns (case, check) -> reason, from expected_failures.txt."""
    entries: dict[tuple[str, str], str] = {}
    for number, line in enumerate(LIST.read_text().splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        words = line.split(maxsplit=2)
        if len(words) < 3 or (words[0], words[1]) in entries:
            raise ValueError(f"{LIST.name}:{number}: expected a new NAME CHECK REASON")
        entries[words[0], words[1]] = words[2]
    return entries


def unexpected(case: FieldCase, results: dict[str, str]) -> list[str]:
    """Returns a line for each result that the list of expected failures does not foresee. results: the fault by check,
    or ""."""
    listed, lines = expected_failures(), []
    for check, fault in results.items():
        reason = listed.get((case.name, check))
        if fault and reason is None:
            lines.append(f"{case.name} {check}: {fault}")
        elif not fault and reason is not None:
            lines.append(f"{case.name} {check}: passes now; delete its line from {LIST.name}")
    return lines
