# SPDX-License-Identifier: Apache-2.0
"""Reads and writes safetensors files with numpy only; the format for exchange with tessera-compile.

A file consists of 8 bytes with the little-endian length of the header, the header (JSON: name -> dtype, shape,
data_offsets), and the tensors' bytes, row-major and little-endian.
"""
from __future__ import annotations

import json
import mmap
import struct
import tempfile
from pathlib import Path
from typing import Any, Collection, Iterator, Mapping

import numpy as np

from .errors import TesseraError
from .files import atomic_write

_DTYPES = {
    "F64": "<f8",
    "F32": "<f4",
    "F16": "<f2",
    "I64": "<i8",
    "I32": "<i4",
    "I16": "<i2",
    "I8": "|i1",
    "U64": "<u8",
    "U32": "<u4",
    "U16": "<u2",
    "U8": "|u1",
    "BOOL": "|b1",
}
_CODES = {np.dtype(text): code for code, text in _DTYPES.items()}
_MAX_HEADER = 100 << 20


def to_bfloat16(array: np.ndarray) -> np.ndarray:
    """Returns the bit patterns (uint16) of float32 values rounded to nearest even; NaN stays NaN."""
    values = np.asarray(array, "<f4").reshape(-1)
    bits = values.view("<u4").astype(np.uint64)
    rounded = ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype("<u2")
    return np.where(np.isnan(values), np.uint16(0x7FC0), rounded).astype("<u2").reshape(np.shape(array))


def from_bfloat16(bits: np.ndarray) -> np.ndarray:
    """Returns the float32 values of bit patterns (uint16)."""
    # Shifting a 0-d array by a Python int would give a 64-bit scalar.
    return np.asarray(np.asarray(bits).astype(np.uint32) << np.uint32(16)).view(np.float32)


def round_bfloat16(array: np.ndarray) -> np.ndarray:
    """Returns the nearest bfloat16 numbers, as float32."""
    with np.errstate(over="ignore"):
        return from_bfloat16(to_bfloat16(np.asarray(array, np.float32)))


def save(path: str | Path, tensors: Mapping[str, np.ndarray], bfloat16: Collection[str] = ()) -> None:
    """Writes `tensors` to `path` atomically; tensors named in `bfloat16`, given as float32, are written in that type.

    Raises TesseraError for a dtype that the format lacks.
    """
    header: dict[str, object] = {}
    offset = 0
    for name in tensors:
        array = tensors[name]  # possibly computed on access: twice is cheaper than all at once
        code = _CODES.get(array.dtype.newbyteorder("<")) or _CODES.get(array.dtype)
        size = array.nbytes
        if name in bfloat16:
            size, code = 2 * array.size, "BF16"
        if code is None:
            raise TesseraError(
                f"failed to write tensor '{name}' to {path}: safetensors does not support type {array.dtype}"
            )
        header[name] = {"dtype": code, "shape": list(array.shape), "data_offsets": [offset, offset + size]}
        offset += size
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with atomic_write(path, 8 + len(text) + offset) as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for name in tensors:
            # ascontiguousarray would turn a scalar's shape () into (1,).
            array = to_bfloat16(tensors[name]) if name in bfloat16 else np.asarray(tensors[name], order="C")
            file.write(array.astype(array.dtype.newbyteorder("<"), copy=False).tobytes())


class MappedTensors(Mapping[str, np.ndarray]):
    """The tensors of a file, mapped into memory on access and only as long as the array is held. The file may be
    removed meanwhile. Raises TesseraError if the file is not well-formed."""

    def __init__(self, path: str | Path) -> None:
        checked = load(path)
        self._file = open(path, "rb")
        begin = struct.unpack("<Q", self._file.read(8))[0] + 8
        header = json.loads(self._file.read(begin - 8))
        self._tensors = {
            name: (array.dtype, array.shape, begin + header[name]["data_offsets"][0], header[name]["dtype"])
            for name, array in checked.items()
        }

    def __getitem__(self, name: str) -> np.ndarray:
        dtype, shape, offset, code = self._tensors[name]
        stored = np.dtype("<u2") if code == "BF16" else dtype
        count = int(np.prod(shape, dtype=np.int64))
        if count == 0:
            return np.zeros(shape, dtype)
        first = offset - offset % mmap.ALLOCATIONGRANULARITY
        pages = mmap.mmap(
            self._file.fileno(), offset - first + count * stored.itemsize, access=mmap.ACCESS_READ, offset=first
        )
        array = np.require(np.frombuffer(pages, stored, count, offset - first), requirements="A")
        return (from_bfloat16(array) if code == "BF16" else array).reshape(shape)

    def __iter__(self) -> Iterator[str]:
        return iter(self._tensors)

    def __len__(self) -> int:
        return len(self._tensors)

    def sizes(self) -> dict[str, int]:
        """Returns the bytes of each tensor."""
        return {
            name: int(np.prod(entry[1], dtype=np.int64)) * entry[0].itemsize for name, entry in self._tensors.items()
        }


def load(path: str | Path) -> dict[str, np.ndarray]:
    """Maps `path` into memory; returns read-only arrays by name (bf16 is returned as float32).

    Raises TesseraError if the file is not a well-formed safetensors file.
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
        header = json.loads(bytes(data[8 : 8 + length]))
        return {
            name: _tensor(name, entry, data[8 + length :]) for name, entry in header.items() if name != "__metadata__"
        }
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError) as error:
        raise bad(str(error)) from error


class Spool(Mapping[str, np.ndarray]):
    """Tensors stored in a temporary file, each in memory only while it is used. Has to be closed."""

    def __init__(self) -> None:
        self._file = tempfile.TemporaryFile()
        self._tensors: dict[str, tuple[np.dtype, tuple[int, ...], int]] = {}

    def put(self, name: str, array: np.ndarray) -> None:
        begin = self._file.seek(0, 2)
        np.ascontiguousarray(array).tofile(self._file)
        self._tensors[name] = (array.dtype, array.shape, begin)

    def __getitem__(self, name: str) -> np.ndarray:
        dtype, shape, begin = self._tensors[name]
        self._file.seek(begin)
        return np.fromfile(self._file, dtype, int(np.prod(shape, dtype=np.int64))).reshape(shape)

    def __iter__(self) -> Iterator[str]:
        return iter(self._tensors)

    def __len__(self) -> int:
        return len(self._tensors)

    def close(self) -> None:
        self._file.close()


def _tensor(name: str, entry: Mapping[str, Any], data: memoryview) -> np.ndarray:
    begin, end = entry["data_offsets"]
    shape = tuple(entry["shape"])
    code = entry["dtype"]
    if not 0 <= begin <= end <= len(data):
        raise ValueError(f"tensor '{name}' lies outside the file")
    if code == "BF16":
        return from_bfloat16(np.frombuffer(data[begin:end], "<u2")).reshape(shape)
    if code not in _DTYPES:
        raise ValueError(f"tensor '{name}' has the unknown type {code}")
    # Smaller types before a tensor may leave it at an unaligned address.
    return np.require(np.frombuffer(data[begin:end], _DTYPES[code]), requirements="A").reshape(shape)
