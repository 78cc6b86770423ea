# SPDX-License-Identifier: Apache-2.0
"""Reads and writes safetensors files with numpy alone; the exchange format with tessera-compile.

A file is: 8 bytes little-endian length of the header, the header (JSON: name -> dtype, shape,
data_offsets), then the tensors' bytes, row-major, little-endian.
"""
from __future__ import annotations

import json
import mmap
import struct
from pathlib import Path
from typing import Collection, Mapping

import numpy as np

from .errors import TesseraError
from .files import atomic_write

_DTYPES = {
    "F64": "<f8", "F32": "<f4", "F16": "<f2", "I64": "<i8", "I32": "<i4", "I16": "<i2", "I8": "|i1",
    "U64": "<u8", "U32": "<u4", "U16": "<u2", "U8": "|u1", "BOOL": "|b1",
}
_CODES = {np.dtype(text): code for code, text in _DTYPES.items()}
_MAX_HEADER = 100 << 20


def to_bfloat16(array: np.ndarray) -> np.ndarray:
    """The bit patterns (uint16) of float32 values rounded to nearest even; NaN stays NaN."""
    bits = np.ascontiguousarray(array, "<f4").view("<u4").astype(np.uint64).reshape(np.shape(array))
    rounded = ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype("<u2")
    return np.where(np.isnan(array), np.uint16(0x7FC0), rounded).astype("<u2")


def from_bfloat16(bits: np.ndarray) -> np.ndarray:
    """The float32 values of bit patterns (uint16)."""
    return (np.asarray(bits).astype(np.uint32) << 16).view(np.float32)


def save(path: str | Path, tensors: Mapping[str, np.ndarray], bfloat16: Collection[str] = ()) -> None:
    """Writes `tensors` to `path`, all or nothing; those named in `bfloat16`, given as float32, as that type.

    Raises TesseraError for a dtype the format lacks.
    """
    header: dict[str, object] = {}
    arrays, offset = [], 0
    for name, tensor in tensors.items():
        # ascontiguousarray would turn a scalar's shape () into (1,).
        array = np.asarray(tensor, order="C")
        code = _CODES.get(array.dtype.newbyteorder("<")) or _CODES.get(array.dtype)
        if name in bfloat16:
            array, code = to_bfloat16(array), "BF16"
        if code is None:
            raise TesseraError(f"failed to write tensor '{name}' to {path}: safetensors has no type {array.dtype}")
        header[name] = {"dtype": code, "shape": list(array.shape), "data_offsets": [offset, offset + array.nbytes]}
        arrays.append(array)
        offset += array.nbytes
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with atomic_write(path) as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for array in arrays:
            file.write(array.astype(array.dtype.newbyteorder("<"), copy=False).tobytes())


def load(path: str | Path) -> dict[str, np.ndarray]:
    """Maps `path` into memory; returns read-only arrays by name (bf16 comes as float32).

    Raises TesseraError where the file is not a well-formed safetensors file.
    """
    def bad(why: str) -> TesseraError:
        return TesseraError(f"failed to read {path}: not a safetensors file: {why}")

    try:
        with open(path, "rb") as file:
            size = file.seek(0, 2)
            if size < 8:
                raise bad(f"it has {size} bytes")
            data = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
    except OSError as error:
        raise TesseraError(f"failed to read {path}: {error.strerror}") from error
    length = struct.unpack("<Q", data[:8])[0]
    if length > min(size - 8, _MAX_HEADER):
        raise bad(f"its header claims {length} bytes, the file has {size}")
    try:
        header = json.loads(bytes(data[8:8 + length]))
        return {name: _tensor(name, entry, data[8 + length:]) for name, entry in header.items()
                if name != "__metadata__"}
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise bad(str(error)) from error


def _tensor(name: str, entry: Mapping[str, object], data: memoryview) -> np.ndarray:
    begin, end = entry["data_offsets"]  # type: ignore[misc]
    shape = tuple(entry["shape"])  # type: ignore[arg-type]
    code = entry["dtype"]
    if not 0 <= begin <= end <= len(data):
        raise ValueError(f"tensor '{name}' lies outside the file")
    if code == "BF16":
        return from_bfloat16(np.frombuffer(data[begin:end], "<u2")).reshape(shape)
    if code not in _DTYPES:
        raise ValueError(f"tensor '{name}' has the unknown type {code}")
    return np.frombuffer(data[begin:end], _DTYPES[code]).reshape(shape)  # type: ignore[index]
