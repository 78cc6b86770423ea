# SPDX-License-Identifier: Apache-2.0
"""Runs an .onnx file in onnxruntime, where it is installed: the answer of the framework to compare with."""
from __future__ import annotations

import contextlib
import importlib.util
from dataclasses import dataclass
from pathlib import Path
from typing import Iterator, Mapping, Sequence

import numpy as np

from . import onnx_pieces
from .errors import TesseraError

_ELEMENT_TYPES = {
    "tensor(float)": "float32", "tensor(double)": "float64", "tensor(float16)": "float16",
    "tensor(int64)": "int64", "tensor(int32)": "int32", "tensor(int16)": "int16", "tensor(int8)": "int8",
    "tensor(uint64)": "uint64", "tensor(uint32)": "uint32", "tensor(uint16)": "uint16",
    "tensor(uint8)": "uint8", "tensor(bool)": "bool",
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


class OnnxModel:
    """An .onnx file in onnxruntime on the CPU.

    every_tensor: make all named float tensors outputs as well (needs the `onnx` package; where it is
    missing, or the model has none, only the model's own outputs are there).
    """

    def __init__(self, path: str | Path, threads: int = 1, every_tensor: bool = False, optimise: bool = True) -> None:
        try:
            import onnxruntime  # noqa: F401
        except ImportError as error:
            raise TesseraError("running an .onnx file needs onnxruntime, which is not installed",
                               hint="pip install onnxruntime, or compile the model and run the .bmodel") from error
        model = (_with_all_outputs(Path(path)) if every_tensor else None) or str(path)
        try:
            self._session = make_session(model, path, threads, optimise)
        except Exception as error:  # onnxruntime raises its own unrelated classes
            raise TesseraError(f"onnxruntime failed to load {path}: {reason_of(error)}") from error
        self._threads, self._optimises = threads, optimise
        self._path = path
        self.inputs = [_spec(value) for value in self._session.get_inputs()]
        self.outputs = [_spec(value) for value in self._session.get_outputs()]

    def run(self, inputs: Mapping[str, np.ndarray], names: Sequence[str] | None = None) -> dict[str, np.ndarray]:
        """Outputs by name (all, or those in `names`)."""
        wanted = list(names) if names is not None else [spec.name for spec in self.outputs]
        try:
            values = self._session.run(wanted, dict(inputs))
        except Exception as error:
            raise TesseraError(f"onnxruntime failed to run {self._path}: {reason_of(error)}") from error
        return {name: np.asarray(value) for name, value in zip(wanted, values) if isinstance(value, np.ndarray)}

    def each(self, inputs: Mapping[str, np.ndarray], sizes: Mapping[str, int]) -> Iterator[tuple[str, np.ndarray]]:
        """The tensors named in `sizes`, which has their bytes; one after the other where they are many, so that only those that the caller
        keeps stay in memory."""
        if sum(sizes.values()) > onnx_pieces.BUDGET and not self._optimises:
            with contextlib.suppress(onnx_pieces.NotCut):
                yield from onnx_pieces.run(self._path, inputs, sizes, self._threads)
                return
        yield from self.run(inputs, list(sizes)).items()


def make_session(model: str | bytes, path: str | Path, threads: int, optimise: bool) -> "onnxruntime.InferenceSession":  # type: ignore[name-defined]  # noqa: F821
    """onnxruntime's session of a file, or of the bytes of a model made of the one at `path`, beside which its external data lie."""
    import onnxruntime as ort

    options = ort.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.log_severity_level = 4
    if not optimise:
        options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    if isinstance(model, bytes):
        options.add_session_config_entry("session.model_external_initializers_file_folder_path", str(Path(path).resolve().parent))
    return ort.InferenceSession(model, options, providers=["CPUExecutionProvider"])


def reason_of(error: Exception) -> str:
    """The first line of what onnxruntime says."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:300]


def _spec(value: object) -> TensorSpec:
    shape = tuple(d if isinstance(d, int) else None for d in (value.shape or []))  # type: ignore[attr-defined]
    return TensorSpec(value.name, shape, _ELEMENT_TYPES.get(value.type, value.type))  # type: ignore[attr-defined]


def _with_all_outputs(path: Path) -> bytes | None:
    """The model with every node output of the top graph as a graph output; None where that cannot be done."""
    try:
        import onnx
    except ImportError:
        return None
    try:
        model = onnx.load(str(path), load_external_data=False)
    except Exception:  # the importer tells what is wrong with the file; here the outputs alone will do
        return None
    have = {value.name for value in model.graph.output}
    for node in model.graph.node:
        for name in node.output:
            if name and name not in have:
                have.add(name)
                model.graph.output.append(onnx.ValueInfoProto(name=name))
    data = model.SerializeToString()
    return data if len(data) < (1 << 31) - (1 << 20) else None
