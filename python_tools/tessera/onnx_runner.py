# SPDX-License-Identifier: Apache-2.0
"""Runs an .onnx file in onnxruntime, if it is installed, as the framework to compare with."""
from __future__ import annotations

import contextlib
import importlib.util
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Iterator, Mapping, Sequence

import numpy as np

from . import memory, onnx_deviations, onnx_pieces
from .errors import TesseraError
from .onnx_session import Unreadable, failure_of, make_session, reason_of

if TYPE_CHECKING:
    import onnx

_FIRST_OPSET, _CONVERTED_OPSET = 7, 13  # the oldest opset that onnxruntime reads; the target for converting older files
_ELEMENT_TYPES = {
    "tensor(float)": "float32",
    "tensor(double)": "float64",
    "tensor(float16)": "float16",
    "tensor(bfloat16)": "bfloat16",
    "tensor(int64)": "int64",
    "tensor(int32)": "int32",
    "tensor(int16)": "int16",
    "tensor(int8)": "int8",
    "tensor(uint64)": "uint64",
    "tensor(uint32)": "uint32",
    "tensor(uint16)": "uint16",
    "tensor(uint8)": "uint8",
    "tensor(bool)": "bool",
}


@dataclass(frozen=True)
class TensorSpec:
    """Name, shape (None: not fixed) and numpy type name of a model's input or output."""

    name: str
    shape: tuple[int | None, ...]
    dtype: str

    def __str__(self) -> str:
        dims = ",".join("?" if d is None else str(d) for d in self.shape)
        return f"{self.name} {self.dtype}[{dims}]"


def available() -> bool:
    """Returns true if onnxruntime can be imported."""
    return importlib.util.find_spec("onnxruntime") is not None


def version() -> str:
    import onnxruntime

    return str(onnxruntime.__version__)


class OnnxModel:
    """An .onnx file in onnxruntime on the CPU. Files with opsets before 7, which onnxruntime does not read, are
    converted by the `onnx` package.

    every_tensor: make all named float tensors outputs as well; without the `onnx` package, or for a model without such
    tensors, only the model's own outputs are available. ends: tensors at which the network ends instead of its outputs.
    shapes: of all tensors; if given, nodes that onnxruntime is known to compute differently from the ONNX specification
    are replaced (onnx_deviations.py), and `deviations` has a line about each.
    """

    def __init__(
        self,
        path: str | Path,
        threads: int = 1,
        every_tensor: bool = False,
        optimise: bool = True,
        ends: Sequence[str] = (),
        shapes: Mapping[str, Sequence[int]] | None = None,
    ) -> None:
        try:
            import onnxruntime  # noqa: F401
        except ImportError as error:
            if memory.mentions_lack(str(error)):
                raise
            raise TesseraError(
                "running an .onnx file needs onnxruntime, which is not installed",
                hint="pip install onnxruntime, or compile the model and run the .bmodel",
            ) from error
        try:
            model, self._is_changed, own_outputs, self.deviations = _prepare(Path(path), every_tensor, ends, shapes)
        except UnicodeError as error:
            raise Unreadable(f"onnxruntime cannot describe {path}: {reason_of(error)}") from error
        if self.deviations and not own_outputs:
            raise Unreadable("; ".join(self.deviations))
        try:
            self._session = make_session(model or str(path), path, threads, optimise)
        except Exception as error:  # onnxruntime raises its own unrelated classes
            raise failure_of(error, f"onnxruntime cannot load {path}") from error
        self._threads, self._optimises, self._every_tensor, self._ends = threads, optimise, every_tensor, ends
        self._path = path
        self.name = f"onnxruntime {version()}"
        try:
            self.inputs = [_spec(value) for value in self._session.get_inputs()]
            self.outputs = [_spec(value) for value in self._session.get_outputs()]
        except UnicodeError as error:
            raise Unreadable(f"onnxruntime cannot describe {path}: {reason_of(error)}") from error
        self.input_names = [spec.name for spec in self.inputs]
        self.tensors = frozenset(spec.name for spec in self.outputs)
        self.output_names = [spec.name for spec in self.outputs] if own_outputs is None else own_outputs

    def corrected(self, shapes: Mapping[str, Sequence[int]]) -> "OnnxModel | None":
        """Returns the model with replacements for the nodes that onnxruntime is known to compute differently from ONNX;
        None if it has none."""
        model = OnnxModel(self._path, self._threads, self._every_tensor, self._optimises, self._ends, shapes)
        return model if model.deviations else None

    def run(self, inputs: Mapping[str, np.ndarray], names: Sequence[str] | None = None) -> dict[str, np.ndarray]:
        """Returns outputs by name (all, or those in `names`)."""
        wanted = list(names) if names is not None else [spec.name for spec in self.outputs]
        try:
            values = self._session.run(wanted, dict(inputs))
        except Exception as error:
            raise failure_of(error, f"onnxruntime cannot run {self._path}") from error
        return {name: np.asarray(value) for name, value in zip(wanted, values) if isinstance(value, np.ndarray)}

    def each(self, inputs: Mapping[str, np.ndarray], sizes: Mapping[str, int]) -> Iterator[tuple[str, np.ndarray]]:
        """Yields the tensors named in `sizes`, whose values are bytes. Large sets are computed one after the other, so
        that only tensors kept by the caller stay in memory."""
        if sum(sizes.values()) > onnx_pieces.BUDGET and not self._optimises and not self._is_changed:
            with contextlib.suppress(onnx_pieces.NotCut):
                yield from onnx_pieces.run(self._path, inputs, sizes, self._threads)
                return
        yield from self.run(inputs, list(sizes)).items()


def _spec(value: object) -> TensorSpec:
    shape = tuple(d if isinstance(d, int) else None for d in (value.shape or []))  # type: ignore[attr-defined]
    return TensorSpec(value.name, shape, _ELEMENT_TYPES.get(value.type, value.type))  # type: ignore[attr-defined]


def _prepare(
    path: Path, every_tensor: bool, ends: Sequence[str], shapes: Mapping[str, Sequence[int]] | None
) -> "tuple[bytes | None, bool, list[str] | None, list[str]]":
    """Prepares a model for onnxruntime. Returns the model to read (None if onnxruntime can read the file itself, or if
    nothing can be done), whether its nodes differ from the file's, its own outputs (empty if all depend on nodes that
    were left out), and a line for each corrected node. every_tensor: every node output of the top graph becomes a graph
    output after these."""
    model = load_model(path)
    if model is None:
        return None, False, None, []
    if ends:
        onnx_pieces.keep_ancestors(model, ends)
    is_random = onnx_pieces.make_random_results_inputs(model)
    own_outputs = [value.name for value in model.graph.output]
    model, is_converted = _modern(model, path)
    deviations = onnx_deviations.correct(model, shapes) if shapes else []
    own_outputs = own_outputs if len(model.graph.output) else []
    if every_tensor:
        _add_all_outputs(model)
    is_changed = is_converted or is_random or bool(ends) or bool(deviations)
    data = b""
    if every_tensor or is_changed:
        _embed_shapes(model, path.resolve().parent)
        data = model.SerializeToString()
    return (data if 0 < len(data) < (1 << 31) - (1 << 20) else None), is_changed, own_outputs, deviations


def load_model(path: Path) -> "onnx.ModelProto | None":
    """Returns the model as read by the `onnx` package; None if the package is missing or cannot read it."""
    try:
        import onnx
    except ImportError:
        return None
    try:
        return onnx.load(str(path), load_external_data=False)
    except MemoryError:
        raise
    except Exception:  # the importer reports what is wrong with the file; here the outputs suffice
        return None


def _modern(model: "onnx.ModelProto", path: str | Path) -> "tuple[onnx.ModelProto, bool]":
    """Returns the model in an opset that onnxruntime reads, and whether it was converted."""
    opsets = [entry.version for entry in model.opset_import if entry.domain in ("", "ai.onnx")] or [1]
    if opsets[0] >= _FIRST_OPSET or not any(node.domain in ("", "ai.onnx") for node in model.graph.node):
        return model, False
    from onnx import version_converter

    reads = f"onnxruntime reads opset {_FIRST_OPSET} and newer, {path} is of opset {opsets[0]}"
    if any({"axis", "broadcast"} <= {attribute.name for attribute in node.attribute} for node in model.graph.node):
        # The converter aligns such operands wrongly (seen in onnx 1.12).
        raise Unreadable(f"{reads}, and onnx.version_converter cannot be relied on for operands aligned by 'axis'")
    try:
        if not model.opset_import:  # files of IR version 1 and 2
            model.ir_version = 3
            model.opset_import.add(domain="", version=1)
        converted = version_converter.convert_version(model, _CONVERTED_OPSET)
        del converted.graph.value_info[:]  # some of them have no type
        return converted, True
    except Exception as error:  # the converter raises arbitrary exceptions
        raise Unreadable(f"{reads}, and onnx.version_converter cannot convert it: {reason_of(error)}") from error


def _blocked_tensors(model: "onnx.ModelProto") -> set[str]:
    """Returns the tensors between operators of com.microsoft.nchwc. onnxruntime stores them with blocks of channels,
    Tessera does not, so they cannot be compared."""
    blocked: set[str] = set()
    for node in model.graph.node:
        is_own = node.domain == "com.microsoft.nchwc"
        if (is_own or blocked.intersection(node.input)) and not (is_own and node.op_type == "ReorderOutput"):
            blocked.update(node.output)
    return blocked


def _add_all_outputs(model: "onnx.ModelProto") -> None:
    """Makes every node output of the top graph a graph output, except tensors in another layout than Tessera's."""
    import onnx

    have = {value.name for value in model.graph.output} | _blocked_tensors(model)
    for node in model.graph.node:
        for name in node.output:
            if name and name not in have:
                have.add(name)
                model.graph.output.append(onnx.ValueInfoProto(name=name))


_EMBEDDED = 1 << 20  # bytes


def _embed_shapes(model: "onnx.ModelProto", folder: Path) -> None:
    """Reads small integer tensors from external files into the model, because onnxruntime's shape inference does not
    find them for a model without a file."""
    from onnx import TensorProto, external_data_helper

    for tensor in model.graph.initializer:
        is_shape = tensor.data_type in (TensorProto.INT64, TensorProto.INT32) and len(tensor.dims) <= 1
        if is_shape and external_data_helper.uses_external_data(tensor) and 8 * sum(tensor.dims) <= _EMBEDDED:
            with contextlib.suppress(Exception):  # the importer reports what is wrong with the file
                external_data_helper.load_external_data_for_tensor(tensor, str(folder))
                tensor.data_location = TensorProto.DEFAULT
                del tensor.external_data[:]
