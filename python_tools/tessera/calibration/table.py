# SPDX-License-Identifier: Apache-2.0
"""The calibration table NAME_cali.json: written, read, and checked after manual edits.

    {"format": "tessera-calibration", "version": 1, "model": "m", "model_hash": "...", "method": "auto",
     "samples": 100, "sample_hash": "...", "tool": "tessera 0.1.0",
     "tensors": [
      {"name": "x", "threshold": 2.6, "min": -2.1, "max": 2.6, "symmetric": true, "scale": 0.02, "zero_point": 0, ...},

threshold is the magnitude that symmetric quantisation keeps (scale = threshold / 127); [min, max] is the range that
asymmetric quantisation keeps (scale = (max - min) / 255). To change one of them, delete scale and zero_point in its
line; they are derived. largest is the largest magnitude seen, which int16 keeps. error, if measured, is the relative
error of the outputs with only this tensor in int8: deploy gives int16 to tensors with a large error, and not to tensors
whose error was deleted. dtype int16 requests 16 bits whatever the error; float32 keeps the tensor, and the contractions
that read it, in f32. weight_terms 2 requests a second integer contraction for the rounding error of the weights of the
convolution or matmul that computes the tensor.
"""
from __future__ import annotations

import difflib
import hashlib
import json
import math
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Collection, Mapping, Sequence

import numpy as np

from .. import __version__
from ..errors import TesseraError
from ..files import atomic_write, load_json
from .thresholds import asymmetric_quant, symmetric_quant

if TYPE_CHECKING:
    from tessera import _calibration

    from .choose import Choice
    from .observed import Observed

FORMAT, VERSION = "tessera-calibration", 1
DTYPES = ("int8", "int16", "float32")
DIGEST_LENGTH = 8
_MAY_MISS = (
    "sample_digests",
    "weights_hash",
    "network",
    "tensors_hash",
    "max_error",
    "output_error",
    "same_answers",
    "decides_types",
)
_DERIVED = ("scale", "zero_point")
_OPTIONAL = ("largest", "error", "weight_terms")
_TOLERANCE = 1e-3


@dataclass(frozen=True)
class Entry:
    """One tensor's line. scale and zero_point: real = scale * (q - zero_point)."""

    name: str
    threshold: float
    min: float
    max: float
    symmetric: bool
    scale: float
    zero_point: int
    method: str
    dtype: str = "int8"
    largest: float | None = None
    error: float | None = None
    weight_terms: int | None = None

    @staticmethod
    def make(
        name: str,
        threshold: float,
        low: float,
        high: float,
        symmetric: bool,
        method: str,
        error: float | None = None,
        largest: float | None = None,
    ) -> "Entry":
        """Returns an entry with derived scale and zero point. Numbers are rounded to float32, as the quantised model
        uses them."""
        threshold, low, high = _single(threshold), _single(low), _single(high)
        scale, zero_point = symmetric_quant(threshold) if symmetric else asymmetric_quant(low, high)
        return Entry(
            name,
            threshold,
            low,
            high,
            symmetric,
            _single(scale),
            zero_point,
            method,
            largest=None if largest is None else _single(largest),
            error=None if error is None else float(f"{error:.4g}"),
        )


@dataclass(frozen=True)
class Table:
    """A calibration table.

    model_hash, sample_hash: of the Top module and of the samples, so that a table is not used for another model.
    network: hash of the network independent of its input shapes, all of which the table serves; "" if unknown.
    sample_digests: shortened digest of each sample, which shows whether a model is scored on its calibration samples;
    may be missing. tensors_hash: of the lines as written, which reveals manual edits. weights_hash: SHA-256 of the file
    beside the table (its name with .safetensors) with weights learned from samples; "" without one. max_error: output
    error up to which no warning is given. output_error: error of the INT8 model made with this table, on the samples,
    if known. same_answers: outputs with the same answer on most samples. decides_types: the lines say
    which tensors get 16 bits or f32; the compiler adds none for their measured errors.
    """

    model: str
    model_hash: str
    method: str
    samples: int
    sample_hash: str
    tensors: tuple[Entry, ...]
    tool: str = field(default=f"tessera {__version__}")
    sample_digests: tuple[str, ...] = ()
    weights_hash: str = ""
    network: str = ""
    tensors_hash: str = field(default="", compare=False)
    max_error: float | None = None
    output_error: float | None = None
    same_answers: tuple[str, ...] = ()
    decides_types: bool = False

    def decided(self, wide: Collection[str]) -> "Table":
        """Returns the table that decides all types, with 16 bits for the tensors `wide` besides those that have
        them."""
        lines = (replace(e, dtype="int16") if e.name in wide and e.dtype == "int8" else e for e in self.tensors)
        return replace(self, tensors=tuple(lines), decides_types=True)

    def in_float(self, names: Collection[str]) -> "Table":
        """Returns the table with f32 for the tensors `names`."""
        lines = (replace(e, dtype="float32") if e.name in names else e for e in self.tensors)
        return replace(self, tensors=tuple(lines))

    def save(self, path: str | Path) -> None:
        """Writes one tensor per line, so that tables can be compared with diff."""
        head = {
            "format": FORMAT,
            "version": VERSION,
            "tensors_hash": _hash_of(self.tensors),
            **{
                f.name: getattr(self, f.name)
                for f in fields(self)
                if f.name not in ("tensors", "sample_digests", "tensors_hash")
                and (getattr(self, f.name) or f.name not in _MAY_MISS)
            },
        }
        text = json.dumps(head, indent=1)[:-2]
        text += ',\n "sample_digests": ' + json.dumps(self.sample_digests) if self.sample_digests else ""
        text += ',\n "tensors": [\n'
        text += ",\n".join("  " + _line(entry) for entry in self.tensors) + "\n ]\n}\n"
        with atomic_write(path) as file:
            file.write(text.encode())


def _hash_of(entries: Sequence[Entry]) -> str:
    return hashlib.blake2b("\n".join(map(_line, entries)).encode(errors="backslashreplace"), digest_size=8).hexdigest()


def may_be_edited(path: str | Path) -> bool:
    """Returns true if the file exists and is not a table exactly as written by run_calibration."""
    try:
        table = load(path)
    except TesseraError:
        return Path(path).exists()
    return table.tensors_hash != _hash_of(table.tensors)


def entries_of(
    observed: "Observed", histograms: Mapping[str, "_calibration.Histogram"], choices: Mapping[str, "Choice"]
) -> tuple[Entry, ...]:
    """Returns a line for every tensor of the model whose source has a range. histograms: by source."""
    entries = []
    for tensor in observed.info["tensors"]:
        if (choice := choices.get(tensor["source"])) is not None:
            r, seen = choice.asymmetric_range, histograms[tensor["source"]].summary()
            entries.append(
                Entry.make(
                    tensor["name"],
                    choice.symmetric_range.threshold,
                    r.low,
                    r.high,
                    choice.symmetric,
                    choice.method,
                    choice.error,
                    largest=max(-seen["min"], seen["max"], 0.0),
                )
            )
    return tuple(entries)


def _single(value: float) -> float:
    """Returns the shortest decimal that is the same float32; infinity for values that overflow."""
    with np.errstate(over="ignore"):
        return float(str(np.float32(value)))


def _line(entry: Entry) -> str:
    record = {f.name: getattr(entry, f.name) for f in fields(entry)}
    return json.dumps({key: value for key, value in record.items() if value is not None}, ensure_ascii=False)


def load(path: str | Path) -> Table:
    """Reads and checks a table. Raises TesseraError with the tensor's name, the value and the allowed values."""
    path = Path(path)
    document = load_json(path, "calibration table", _REDO)
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise TesseraError(f'{path} is not a calibration table: its "format" is not "{FORMAT}"', hint=_REDO)
    if document.get("version") != VERSION:
        raise TesseraError(
            f"{path}: format version {document.get('version')!r} is not supported (expected {VERSION})", hint=_REDO
        )
    allowed = {f.name: f.type for f in fields(Table)}
    _check_keys(document, {"format", "version", *allowed}, set(allowed) - set(_MAY_MISS), f"{path}")
    for key in ("model", "model_hash", "method", "sample_hash", "tool", "weights_hash", "network", "tensors_hash"):
        document.setdefault(key, "")
        if not isinstance(document[key], str):
            raise TesseraError(f'{path}: "{key}" is {document[key]!r}, expected a string')
    if not _is_integer(document["samples"]) or document["samples"] < 0:
        raise TesseraError(f"{path}: \"samples\" is {document['samples']!r}, expected a number that is at least 0")
    digests = document.setdefault("sample_digests", [])
    if not isinstance(digests, list) or not all(isinstance(text, str) for text in digests):
        raise TesseraError(f'{path}: "sample_digests" is not a list of strings')
    document["sample_digests"] = tuple(digests)
    _check_document(document, path)
    if not isinstance(document["tensors"], list):
        raise TesseraError(f'{path}: "tensors" is not a list')
    entries = tuple(_entry(record, i, path) for i, record in enumerate(document["tensors"]))
    seen: set[str] = set()
    for entry in entries:
        if entry.name in seen:
            raise TesseraError(f"{path}: tensor '{entry.name}' is listed twice")
        seen.add(entry.name)
    return Table(**{key: document[key] for key in allowed if key in document and key != "tensors"}, tensors=entries)


def _check_document(document: dict[str, Any], path: Path) -> None:
    for key in ("max_error", "output_error"):
        value = document.get(key, 0.0)
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value < math.inf:
            raise TesseraError(f'{path}: "{key}" is {value!r}, expected a number that is at least 0')
    names = document.get("same_answers", [])
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise TesseraError(f'{path}: "same_answers" is not a list of strings')
    document["same_answers"] = tuple(names)
    if not isinstance(document.setdefault("decides_types", False), bool):
        raise TesseraError(f'{path}: "decides_types" is {document["decides_types"]!r}, expected true or false')


_REDO = "make a new one with run_calibration"


def check_model(table: Table, path: str | Path, info: Mapping[str, Any]) -> None:
    """Checks that the table belongs to this model (info: see top_model.describe) and names only its tensors; tensors
    without a line stay float. A table of the same network with other input shapes may name more. Raises
    TesseraError."""
    model_hash, tensors = str(info["model_hash"]), [str(name) for name in info["tensors"]]
    if table.model_hash != model_hash and table.network and table.network == info.get("network"):
        return
    if table.model_hash != model_hash:
        raise TesseraError(
            f"{path} is of another model: its model_hash is {table.model_hash} ('{table.model}'), "
            f"the model's is {model_hash}",
            hint="run run_calibration for this model",
        )
    known = set(tensors)
    for entry in table.tensors:
        if entry.name not in known:
            near = difflib.get_close_matches(entry.name, tensors, 1)
            raise TesseraError(
                f"{path}: the model has no tensor '{entry.name}'" + (f"; did you mean '{near[0]}'?" if near else ""),
                hint="use the names of the ONNX file; see tessera-compile info --tensors",
            )


def _check_keys(record: Mapping[str, Any], allowed: set[str], required: set[str], where: str) -> None:
    for key in record:
        if key not in allowed:
            raise TesseraError(f"{where}: unknown key \"{key}\"; allowed are {', '.join(sorted(allowed))}")
    for key in sorted(required - set(record)):
        raise TesseraError(f'{where}: "{key}" is missing')


def _entry(record: Any, index: int, path: Path) -> Entry:
    if not isinstance(record, dict) or not isinstance(record.get("name"), str):
        raise TesseraError(f'{path}: entry {index} of "tensors" has no name')
    where = f"{path}: tensor '{record['name']}'"
    names = {f.name for f in fields(Entry)}
    _check_keys(record, names, names - set(_DERIVED) - set(_OPTIONAL), where)
    for key in ("threshold", "min", "max", "scale", "largest", "error"):
        value = record.get(key, 1.0)
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
            raise TesseraError(f"{where}: {key} is {value!r}, expected a finite number")
    if record["threshold"] <= 0:
        raise TesseraError(f"{where}: threshold {record['threshold']} is not positive")
    if record.get("error", 0.0) < 0:
        raise TesseraError(f"{where}: error {record['error']} is negative")
    if record.get("largest", 0.0) < 0:
        raise TesseraError(f"{where}: largest {record['largest']} is negative")
    if record["min"] > record["max"]:
        raise TesseraError(f"{where}: min {record['min']} is above max {record['max']}")
    if not isinstance(record["symmetric"], bool):
        raise TesseraError(f"{where}: symmetric is {record['symmetric']!r}, expected true or false")
    if not isinstance(record["method"], str):
        raise TesseraError(f"{where}: method is {record['method']!r}, expected a string")
    if record["dtype"] not in DTYPES:
        raise TesseraError(f"{where}: dtype {record['dtype']!r}; allowed: {', '.join(DTYPES)}")
    if record.get("weight_terms", 1) not in (1, 2) or isinstance(record.get("weight_terms"), bool):
        raise TesseraError(f"{where}: weight_terms is {record['weight_terms']!r}; allowed: 1, 2")
    return _with_quant(record, where)


def _with_quant(record: dict[str, Any], where: str) -> Entry:
    """Derives scale and zero point if they were deleted, and rejects values that contradict the range."""
    derived = Entry.make(
        record["name"],
        record["threshold"],
        record["min"],
        record["max"],
        record["symmetric"],
        record["method"],
        record.get("error"),
        record.get("largest"),
    )
    zero_point = record.get("zero_point", derived.zero_point)
    if not _is_integer(zero_point) or not -128 <= zero_point <= 127:
        raise TesseraError(f"{where}: zero_point is {zero_point!r}, expected a whole number from -128 to 127")
    scale = record.get("scale", derived.scale)
    rule = "threshold / 127" if record["symmetric"] else "(max - min) / 255"
    if abs(scale - derived.scale) > _TOLERANCE * derived.scale:
        raise TesseraError(
            f"{where}: scale {scale} is not {rule} = {derived.scale}",
            hint="after changing threshold, min or max, delete scale and zero_point in that line; they are derived",
        )
    if abs(zero_point - derived.zero_point) > (0 if record["symmetric"] else 1):
        raise TesseraError(
            f"{where}: zero_point is {zero_point}, but the range gives {derived.zero_point}",
            hint="after changing threshold, min or max, delete scale and zero_point in that line; they are derived",
        )
    return replace(
        derived, scale=scale, zero_point=zero_point, dtype=record["dtype"], weight_terms=record.get("weight_terms")
    )


def _is_integer(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)
