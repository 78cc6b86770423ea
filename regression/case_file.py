# SPDX-License-Identifier: Apache-2.0
"""Reads the cases of regression/cases; the format is described in the README there."""
from __future__ import annotations

import os
import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from tessera.compare import Tolerance

REGRESSION = Path(__file__).resolve().parent
_KEYS = {
    "model",
    "input_shapes",
    "transform",
    "isa",
    "threads",
    "validate",
    "inputs",
    "outputs",
    "sequence",
    "tolerance",
    "tasks",
    "quantised",
}


class DataMissing(Exception):
    """The case needs data that is not on this machine; the test is skipped with this text."""


def data_path(text: str) -> Path:
    """Returns the file named by 'repo:PATH' or 'data:PATH'. Raises DataMissing without $TESSERA_DATA."""
    where, _, path = text.partition(":")
    if where == "repo":
        return REGRESSION / path
    if where != "data":
        raise ValueError(f"'{text}': a path starts with repo: or data:")
    root = os.environ.get("TESSERA_DATA", "")
    if not root:
        raise DataMissing("TESSERA_DATA is not set")
    full = Path(root) / path
    if not full.exists():
        raise DataMissing(f"{path} is not in TESSERA_DATA")
    return full


def load_array(text: str) -> np.ndarray:
    """Returns the array of a .npy file or an ONNX TensorProto (.pb)."""
    path = data_path(text)
    if path.suffix == ".pb":
        import onnx
        from onnx import numpy_helper

        return numpy_helper.to_array(onnx.load_tensor_from_string(path.read_bytes()))
    return np.load(path, allow_pickle=False)


@dataclass(frozen=True)
class Sequence:
    """Steps along the first axis of the case's files, run one after another."""

    frames: int
    feedback: dict[str, str]
    final: dict[str, str]


@dataclass(frozen=True)
class Case:
    """One model and its expected outputs."""

    name: str
    model: str
    inputs: dict[str, str]
    outputs: dict[str, str]
    input_shapes: str | None = None
    transform: tuple[str, ...] = ()
    isa: tuple[str, ...] = ("x86-v2", "x86-avx2", "x86-avx512")
    threads: tuple[int, ...] = (1, 2)
    validate: bool = False
    sequence: Sequence | None = None
    tolerance: Tolerance = Tolerance(0.99999, None, 1e-3)
    tasks: tuple[dict[str, Any], ...] = field(default=())
    quantised: dict[str, Any] | None = None

    @property
    def needs_data(self) -> bool:
        return self.model.startswith("data:")


def read_case(path: Path) -> Case:
    """Reads a case. Raises ValueError for unknown keys, because a misspelt one would check less than intended."""
    with open(path, "rb") as file:
        fields = tomllib.load(file)
    unknown = set(fields) - _KEYS
    if unknown:
        raise ValueError(f"{path.name}: unknown keys {sorted(unknown)}")
    if "sequence" in fields:
        s = fields["sequence"]
        fields["sequence"] = Sequence(s["frames"], s.get("feedback", {}), s.get("final", {}))
    if "tolerance" in fields:
        t = fields["tolerance"]
        fields["tolerance"] = Tolerance(
            t.get("cosine", 0.99999), None, t.get("max_of_range", 1e-3), t.get("floor", 0.0)
        )
    for key in ("transform", "isa", "threads", "tasks"):
        if key in fields:
            fields[key] = tuple(fields[key])
    return Case(name=path.stem, **fields)


def all_cases() -> list[Case]:
    """Returns every case, by name."""
    return [read_case(path) for path in sorted((REGRESSION / "cases").glob("*.toml"))]


def machine_isas() -> list[str]:
    """Returns the x86 variants that this machine can execute."""
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        flags = set(next((line for line in file if line.startswith("flags")), "").split())
    isas = ["x86-v2"]
    if {"avx2", "fma", "bmi2", "f16c"} <= flags:
        isas.append("x86-avx2")
    if {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"} <= flags:
        isas.append("x86-avx512")
    return isas
