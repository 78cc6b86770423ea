# SPDX-License-Identifier: Apache-2.0
"""The ONNX backend tests: reads their archive, and compares like ONNX's own runner."""
from __future__ import annotations

import collections
import tarfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Mapping

import numpy as np
import onnx
from engines import StageError
from onnx import numpy_helper

from tessera import safetensors_io

ARCHIVE = "onnx_backend_tests.tar.gz"
RTOL, ATOL = 1e-3, 1e-7  # the defaults of onnx.backend.test.runner
SUITES = ("node", "simple", "pytorch-converted", "pytorch-operator")


@dataclass
class BackendTest:
    """One test: a model and its data sets, as the bytes of their files."""

    name: str
    model: bytes = b""
    sets: dict[str, dict[str, bytes]] = field(default_factory=lambda: collections.defaultdict(dict))


def read_tests(archive: Path) -> dict[str, BackendTest]:
    """Returns all tests of the archive by name (the folder's name, unique over the suites)."""
    tests: dict[str, BackendTest] = {}
    with tarfile.open(archive) as tar:
        for member in tar:
            parts = Path(member.name).parts
            if not member.isfile() or len(parts) < 4 or parts[1] not in SUITES:
                continue
            test = tests.setdefault(parts[2], BackendTest(parts[2]))
            content = tar.extractfile(member).read()  # type: ignore[union-attr]
            if parts[3] == "model.onnx":
                test.model = content
            elif parts[3].startswith("test_data_set_"):
                test.sets[parts[3]][parts[4]] = content
    return tests


# ONNX element types that onnx 1.12 does not know: bits of an element, dtype of its values, codes of NaN (for floats,
# whose tensors hold codes).
STORAGE_TYPES: dict[int, tuple[int, str, tuple[int, ...]]] = {
    17: (8, "u1", (0x7F, 0xFF)),  # float8e4m3fn
    18: (8, "u1", (0x80,)),  # float8e4m3fnuz
    19: (8, "u1", (0x7D, 0x7E, 0x7F, 0xFD, 0xFE, 0xFF)),  # float8e5m2
    20: (8, "u1", (0x80,)),  # float8e5m2fnuz
    21: (4, "u1", ()),  # uint4
    22: (4, "i1", ()),  # int4
    23: (4, "u1", ()),  # float4e2m1
    24: (8, "u1", (0xFF,)),  # float8e8m0
    25: (2, "u1", ()),  # uint2
    26: (2, "i1", ()),  # int2
}


def _unpack(proto: onnx.TensorProto) -> np.ndarray:
    """Unpacks a tensor of a storage type into one byte per element, as the inputs and outputs of Tessera hold it."""
    bits, dtype, _ = STORAGE_TYPES[proto.data_type]
    packed = np.frombuffer(proto.raw_data, np.uint8) if proto.raw_data else np.array(proto.int32_data, np.uint8)
    numbers = (packed[:, None] >> np.arange(0, 8, bits, dtype=np.uint8)) & ((1 << bits) - 1)
    numbers = numbers.reshape(-1)[: int(np.prod(proto.dims, dtype=np.int64))]
    if dtype == "i1":
        numbers = numbers.astype(np.int8)
        numbers -= (numbers >= 1 << (bits - 1)) * np.int8(1 << bits)
    return numbers.astype(dtype).reshape(list(proto.dims))


def _tensor(content: bytes, element: int, what: str) -> np.ndarray:
    """Reads the array of a .pb file for a value of the ONNX element type `element`; bfloat16 becomes float32."""
    if element in STORAGE_TYPES:
        return _unpack(onnx.TensorProto.FromString(content))
    try:
        array = numpy_helper.to_array(onnx.TensorProto.FromString(content))
    except Exception as error:  # protobuf or onnx fail on sequences, maps and float8
        raise StageError("data", f"{what} is not a tensor that numpy can hold: {error}") from error
    if element == onnx.TensorProto.BFLOAT16 and array.dtype == np.uint16:
        return safetensors_io.from_bfloat16(array)  # some tests store the bits
    return array


def _element(value: onnx.ValueInfoProto) -> int:
    return value.type.tensor_type.elem_type


@dataclass
class DataSet:
    """Inputs and expected outputs by tensor name; bfloat16 tensors are float32 here."""

    inputs: dict[str, np.ndarray]
    outputs: dict[str, np.ndarray]
    bfloat16: list[str]  # the inputs of that type
    nan_codes: dict[str, tuple[int, ...]] = field(default_factory=dict)  # of outputs that hold codes of floats


def read_set(model: onnx.ModelProto, files: Mapping[str, bytes]) -> DataSet:
    """Reads a data set. Raises StageError if numpy cannot hold a tensor."""
    initializers = {tensor.name for tensor in model.graph.initializer}
    values = [value for value in model.graph.input if value.name not in initializers]
    inputs = {
        value.name: _tensor(files[f"input_{i}.pb"], _element(value), f"input {i}")
        for i, value in enumerate(values)
        if f"input_{i}.pb" in files
    }
    outputs = {
        value.name: _tensor(files[f"output_{i}.pb"], _element(value), f"output {i}")
        for i, value in enumerate(model.graph.output)
        if f"output_{i}.pb" in files
    }
    nan_codes = {v.name: STORAGE_TYPES[_element(v)][2] for v in model.graph.output if _element(v) in STORAGE_TYPES}
    bfloat16 = [v.name for v in values if _element(v) == onnx.TensorProto.BFLOAT16]
    return DataSet(inputs, outputs, bfloat16, nan_codes)


def freeze(model: onnx.ModelProto, name: str, value: np.ndarray) -> onnx.ModelProto:
    """Returns the model with an input replaced by a constant."""
    frozen = onnx.ModelProto()
    frozen.CopyFrom(model)
    for i, declared in enumerate(frozen.graph.input):
        if declared.name == name:
            del frozen.graph.input[i]
            break
    frozen.graph.initializer.append(numpy_helper.from_array(np.asarray(value), name))
    return frozen


def compare(
    actual: Mapping[str, np.ndarray],
    expected: Mapping[str, np.ndarray],
    nan_codes: Mapping[str, tuple[int, ...]] | None = None,
) -> None:
    """Compares outputs. Raises StageError if one is missing, has another type or shape, or differs. Codes of one output
    that are among its `nan_codes` count as equal."""
    if not expected:
        raise StageError("compare", "the test has no expected output")
    for name, want in expected.items():
        if name not in actual:
            raise StageError("compare", f"output '{name}' is missing")
        got = actual[name]
        if got.shape != want.shape:
            raise StageError("compare", f"output '{name}' has shape {got.shape}, expected {want.shape}")
        if got.dtype != want.dtype:
            raise StageError("compare", f"output '{name}' has type {got.dtype}, expected {want.dtype}")
        if want.dtype == bool or np.issubdtype(want.dtype, np.integer):
            codes = (nan_codes or {}).get(name, ())
            same = np.array_equal(np.where(np.isin(got, codes), 0, got), np.where(np.isin(want, codes), 0, want))
            same &= np.array_equal(np.isin(got, codes), np.isin(want, codes))
        else:
            same = np.allclose(got, want, rtol=RTOL, atol=ATOL, equal_nan=True)
        if not same:
            raise StageError("compare", f"output '{name}' differs: {_difference(got, want)}")


def _difference(got: np.ndarray, want: np.ndarray) -> str:
    with np.errstate(all="ignore"):
        error = np.abs(got.astype(np.float64) - want.astype(np.float64))
        error -= RTOL * np.abs(want.astype(np.float64))
    error[np.isnan(error)] = np.inf
    error[np.isnan(got.astype(np.float64)) & np.isnan(want.astype(np.float64))] = 0
    worst = int(np.argmax(error))
    return f"element {worst} is {got.ravel()[worst]}, expected {want.ravel()[worst]}"
