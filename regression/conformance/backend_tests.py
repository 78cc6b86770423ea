# SPDX-License-Identifier: Apache-2.0
"""The ONNX backend tests: reading their archive, and comparing as ONNX's own runner does."""
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
    """All tests of the archive by name (their folder's; unique over the suites)."""
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


def _tensor(content: bytes, element: int, what: str) -> np.ndarray:
    """The array of a .pb file for a value of ONNX element type `element` (bfloat16 comes as float32)."""
    try:
        array = numpy_helper.to_array(onnx.TensorProto.FromString(content))
    except Exception as error:  # whatever protobuf or onnx make of a sequence, a map, a float8
        raise StageError("data", f"{what} is no tensor that numpy can hold: {error}") from error
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


def read_set(model: onnx.ModelProto, files: Mapping[str, bytes]) -> DataSet:
    """Raises StageError where numpy cannot hold a tensor."""
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
    return DataSet(inputs, outputs, [v.name for v in values if _element(v) == onnx.TensorProto.BFLOAT16])


def freeze(model: onnx.ModelProto, name: str, value: np.ndarray) -> onnx.ModelProto:
    """The model with an input made a constant."""
    frozen = onnx.ModelProto()
    frozen.CopyFrom(model)
    for i, declared in enumerate(frozen.graph.input):
        if declared.name == name:
            del frozen.graph.input[i]
            break
    frozen.graph.initializer.append(numpy_helper.from_array(np.asarray(value), name))
    return frozen


def compare(actual: Mapping[str, np.ndarray], expected: Mapping[str, np.ndarray]) -> None:
    """Raises StageError where an output is missing, of another type or shape, or differs."""
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
            same = np.array_equal(got, want)
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
