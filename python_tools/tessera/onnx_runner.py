# SPDX-License-Identifier: Apache-2.0
"""Runs an .onnx file in onnxruntime, where it is installed: the answer of the framework to compare with."""
from __future__ import annotations

import contextlib
import importlib.util
import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Iterator, Mapping, Sequence

import numpy as np

from . import memory, onnx_deviations, onnx_pieces
from .errors import TesseraError

if TYPE_CHECKING:
    import onnx

# Newer packages of onnxruntime for Linux (1.32, say; its Privacy.md) report sessions and models to their maker over
# the network, and write an identifier into the folder for temporary files, unless this is set before they are
# imported. Who wants that sets it to 0.
os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")

_FIRST_OPSET, _CONVERTED_OPSET = 7, 13  # what onnxruntime reads; what older files are converted to
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
    """True where onnxruntime can be imported."""
    return importlib.util.find_spec("onnxruntime") is not None


def version() -> str:
    import onnxruntime

    return str(onnxruntime.__version__)


class Unreadable(TesseraError):
    """A model that an implementation of ONNX cannot load or run: its limit, which need not be a fault of the model."""


class OnnxModel:
    """An .onnx file in onnxruntime on the CPU. Files of opsets before 7, which it does not read, are converted by the
    `onnx` package.

    every_tensor: make all named float tensors outputs as well (needs the `onnx` package; where it is
    missing, or the model has none, only the model's own outputs are there). ends: tensors to end the network at
    instead of its outputs. shapes: of all tensors; given, nodes that onnxruntime is known to compute otherwise than
    ONNX defines them are replaced (onnx_deviations.py), and `deviations` has a line about each.
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
            if memory.told_in(str(error)):
                raise
            raise TesseraError(
                "running an .onnx file needs onnxruntime, which is not installed",
                hint="pip install onnxruntime, or compile the model and run the .bmodel",
            ) from error
        try:
            model, self._is_changed, own_outputs, self.deviations = _prepare(Path(path), every_tensor, ends, shapes)
        except UnicodeError as error:
            raise Unreadable(f"onnxruntime cannot be asked about {path}: {reason_of(error)}") from error
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
            raise Unreadable(f"onnxruntime cannot be asked about {path}: {reason_of(error)}") from error
        self.input_names = [spec.name for spec in self.inputs]
        self.tensors = frozenset(spec.name for spec in self.outputs)
        self.output_names = [spec.name for spec in self.outputs] if own_outputs is None else own_outputs

    def corrected(self, shapes: Mapping[str, Sequence[int]]) -> "OnnxModel | None":
        """The same model with nodes as ONNX defines them in place of those that onnxruntime is known to compute
        otherwise; None if it has none."""
        model = OnnxModel(self._path, self._threads, self._every_tensor, self._optimises, self._ends, shapes)
        return model if model.deviations else None

    def run(self, inputs: Mapping[str, np.ndarray], names: Sequence[str] | None = None) -> dict[str, np.ndarray]:
        """Outputs by name (all, or those in `names`)."""
        wanted = list(names) if names is not None else [spec.name for spec in self.outputs]
        try:
            values = self._session.run(wanted, dict(inputs))
        except Exception as error:
            raise failure_of(error, f"onnxruntime cannot run {self._path}") from error
        return {name: np.asarray(value) for name, value in zip(wanted, values) if isinstance(value, np.ndarray)}

    def each(self, inputs: Mapping[str, np.ndarray], sizes: Mapping[str, int]) -> Iterator[tuple[str, np.ndarray]]:
        """The tensors named in `sizes`, which has their bytes; one after the other where they are many, so that only
        those that the caller keeps stay in memory."""
        if sum(sizes.values()) > onnx_pieces.BUDGET and not self._optimises and not self._is_changed:
            with contextlib.suppress(onnx_pieces.NotCut):
                yield from onnx_pieces.run(self._path, inputs, sizes, self._threads)
                return
        yield from self.run(inputs, list(sizes)).items()


def make_session(
    model: str | bytes, path: str | Path, threads: int, optimise: bool
) -> "onnxruntime.InferenceSession":  # type: ignore  # noqa: F821
    """onnxruntime's session of a file, or of the bytes of a model made of the one at `path`, beside which its
    external data lie."""
    import onnxruntime as ort

    options = ort.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.log_severity_level = 4
    if not optimise:
        options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    if isinstance(model, bytes):
        options.add_session_config_entry(
            "session.model_external_initializers_file_folder_path", str(Path(path).resolve().parent)
        )
    return ort.InferenceSession(model, options, providers=["CPUExecutionProvider"])


def failure_of(error: Exception, what: str) -> TesseraError:
    """The error of a model that onnxruntime cannot load or run: Unreadable, or of too little memory."""
    text = f"{what}: {reason_of(error)}"
    return memory.error(what=text) if memory.lacks(error) or memory.told_in(str(error)) else Unreadable(text)


_NOISE = (
    r"\[ONNXRuntimeError\] : \d+ : \w+ : ",
    r"Exception during initialization: ",
    r"Non-zero status code returned while running ",
    r"/onnxruntime_src/\S+:\d+ .*?\) (?=\S)",  # file, line and signature of a function
)
_LONGEST = 400


def reason_of(error: Exception) -> str:
    """The first line of an error of onnxruntime or onnx, without codes and places in its sources."""
    line = (str(error).strip().splitlines() or [type(error).__name__])[0]
    for noise in _NOISE:
        line = re.sub(noise, "", line)
    return line if len(line) <= _LONGEST else line[:_LONGEST].rpartition(" ")[0] + " ..."


def _spec(value: object) -> TensorSpec:
    shape = tuple(d if isinstance(d, int) else None for d in (value.shape or []))  # type: ignore[attr-defined]
    return TensorSpec(value.name, shape, _ELEMENT_TYPES.get(value.type, value.type))  # type: ignore[attr-defined]


def _prepare(
    path: Path, every_tensor: bool, ends: Sequence[str], shapes: Mapping[str, Sequence[int]] | None
) -> "tuple[bytes | None, bool, list[str] | None, list[str]]":
    """The model as onnxruntime is to read it, None where it can read the file itself or nothing can be done; whether
    its nodes are other ones than the file's; the outputs that it has of its own, none if they all depend on nodes that
    were left out; and which nodes were corrected. every_tensor: every node output of the top graph is a graph
    output, behind these."""
    model = load_model(path)
    if model is None:
        return None, False, None, []
    if ends:
        onnx_pieces.keep_ancestors(model, ends)
    own_outputs = [value.name for value in model.graph.output]
    model, is_converted = _modern(model, path)
    deviations = onnx_deviations.correct(model, shapes) if shapes else []
    own_outputs = own_outputs if len(model.graph.output) else []
    if every_tensor:
        _add_all_outputs(model)
    is_changed = is_converted or bool(ends) or bool(deviations)
    data = b""
    if every_tensor or is_changed:
        _embed_shapes(model, path.resolve().parent)
        data = model.SerializeToString()
    return (data if 0 < len(data) < (1 << 31) - (1 << 20) else None), is_changed, own_outputs, deviations


def load_model(path: Path) -> "onnx.ModelProto | None":
    """The model as the `onnx` package reads it; None where it is missing or cannot."""
    try:
        import onnx
    except ImportError:
        return None
    try:
        return onnx.load(str(path), load_external_data=False)
    except MemoryError:
        raise
    except Exception:  # the importer tells what is wrong with the file; here the outputs alone will do
        return None


def _modern(model: "onnx.ModelProto", path: str | Path) -> "tuple[onnx.ModelProto, bool]":
    """The model in an opset that onnxruntime reads, and whether it is a converted one."""
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
        del converted.graph.value_info[:]  # of no type, some of them
        return converted, True
    except Exception as error:  # the converter raises whatever it likes
        raise Unreadable(f"{reads}, and onnx.version_converter cannot convert it: {reason_of(error)}") from error


def _add_all_outputs(model: "onnx.ModelProto") -> None:
    """Makes every node output of the top graph a graph output."""
    import onnx

    have = {value.name for value in model.graph.output}
    for node in model.graph.node:
        for name in node.output:
            if name and name not in have:
                have.add(name)
                model.graph.output.append(onnx.ValueInfoProto(name=name))


_EMBEDDED = 1 << 20  # bytes


def _embed_shapes(model: "onnx.ModelProto", folder: Path) -> None:
    """Reads the small integer tensors that lie in other files into the model: without a file of the model
    onnxruntime's shape inference does not find them there."""
    from onnx import TensorProto, external_data_helper

    for tensor in model.graph.initializer:
        is_shape = tensor.data_type in (TensorProto.INT64, TensorProto.INT32) and len(tensor.dims) <= 1
        if is_shape and external_data_helper.uses_external_data(tensor) and 8 * sum(tensor.dims) <= _EMBEDDED:
            with contextlib.suppress(Exception):  # the importer reports what is wrong with the file
                external_data_helper.load_external_data_for_tensor(tensor, str(folder))
                tensor.data_location = TensorProto.DEFAULT
                del tensor.external_data[:]
