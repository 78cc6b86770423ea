# SPDX-License-Identifier: Apache-2.0
"""Runs a .tflite file in LiteRT, the interpreter of TensorFlow Lite, to compare with it."""
from __future__ import annotations

from pathlib import Path
from typing import Iterator, Mapping

import numpy as np

from .onnx_runner import Unreadable, reason_of


def is_tflite(path: str | Path) -> bool:
    return Path(path).suffix.lower() == ".tflite"


_NARROW = (np.int8, np.uint8, np.int16)


class TfliteModel:
    """A .tflite file in ai-edge-litert. The kernels are those of the interpreter itself, without XNNPACK; for quantised
    models they are the reference kernels, because each kernel rounds integers in its own way."""

    def __init__(self, path: str | Path) -> None:
        try:
            from ai_edge_litert import interpreter
        except ImportError as error:
            raise Unreadable("LiteRT is not installed (pip install ai-edge-litert)") from error
        self.name = "LiteRT"
        kinds = interpreter.OpResolverType
        try:
            self._interpreter = interpreter.Interpreter(
                str(path), experimental_op_resolver_type=kinds.BUILTIN_WITHOUT_DEFAULT_DELEGATES
            )
            self.rounds_activations = self._rounds_activations()
            if self._quantised():
                self._interpreter = interpreter.Interpreter(
                    str(path), experimental_op_resolver_type=kinds.BUILTIN_REF, experimental_preserve_all_tensors=True
                )
        except (ValueError, RuntimeError) as error:
            raise Unreadable(f"LiteRT cannot load the model: {reason_of(error)}") from error
        self._inputs = self._interpreter.get_input_details()
        self._outputs = self._interpreter.get_output_details()
        self.input_names: list[str] = [entry["name"] for entry in self._inputs]
        self.output_names: list[str] = [entry["name"] for entry in self._outputs]
        self.tensors = frozenset(self.output_names)

    def _quantised(self) -> set[int]:
        """Returns the tensors whose integers have a scale."""
        return {
            entry["index"]
            for entry in self._interpreter.get_tensor_details()
            if entry["dtype"] in _NARROW and len(entry["quantization_parameters"]["scales"])
        }

    def _rounds_activations(self) -> bool:
        """Returns true if LiteRT rounds floats to 8 bits to multiply them by quantised weights; Tessera does not."""
        quantised = self._quantised()
        floats = {entry["index"] for entry in self._interpreter.get_tensor_details() if entry["dtype"] == np.float32}
        return any(
            floats & set(op["inputs"]) and quantised & set(op["inputs"]) and floats & set(op["outputs"])
            for op in self._interpreter._get_ops_details()
        )

    def run(self, inputs: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Returns the outputs by name."""
        return dict(self.each(inputs, dict.fromkeys(self.output_names, 0)))

    def each(self, inputs: Mapping[str, np.ndarray], sizes: Mapping[str, int]) -> Iterator[tuple[str, np.ndarray]]:
        """Yields the outputs named in `sizes`."""
        try:
            for entry in self._inputs:
                self._interpreter.resize_tensor_input(entry["index"], inputs[entry["name"]].shape)
            self._interpreter.allocate_tensors()
            for entry in self._inputs:
                self._interpreter.set_tensor(entry["index"], inputs[entry["name"]])
            self._interpreter.invoke()
        except (ValueError, RuntimeError) as error:
            raise Unreadable(f"LiteRT cannot run the model: {reason_of(error)}") from error
        for entry in self._outputs:
            if entry["name"] in sizes:
                yield entry["name"], self._interpreter.get_tensor(entry["index"])
