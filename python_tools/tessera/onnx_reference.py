# SPDX-License-Identifier: Apache-2.0
"""Runs an .onnx file in the reference implementation of the `onnx` package, for models that onnxruntime cannot run."""
from __future__ import annotations

from pathlib import Path
from typing import Iterator, Mapping

import numpy as np

from . import memory
from .onnx_runner import Unreadable, reason_of


class ReferenceModel:
    """An .onnx file in onnx.reference, which exists since onnx 1.13. It is slow, and all tensors of a run are in memory
    at once."""

    def __init__(self, path: str | Path) -> None:
        try:
            import onnx
            from onnx.reference import ReferenceEvaluator
        except ImportError as error:
            raise Unreadable("the reference implementation of onnx (1.13 or newer) is not installed") from error
        self.name = f"onnx's reference implementation {onnx.__version__}"
        try:
            self._evaluator = ReferenceEvaluator(str(path))
        except Exception as error:  # the package raises arbitrary exceptions
            raise _unreadable(error, "load") from error
        self.input_names: list[str] = list(self._evaluator.input_names)
        self.output_names: list[str] = list(self._evaluator.output_names)
        self.tensors = frozenset(
            [*self.output_names, *(name for node in self._evaluator.rt_nodes_ for name in node.output if name)]
        )

    def run(self, inputs: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Returns the outputs by name."""
        return dict(self.each(inputs, dict.fromkeys(self.output_names, 0)))

    def each(self, inputs: Mapping[str, np.ndarray], sizes: Mapping[str, int]) -> Iterator[tuple[str, np.ndarray]]:
        """Yields the tensors named in `sizes`; types that numpy lacks are returned as float32."""
        try:
            with np.errstate(all="ignore"):
                values = self._evaluator.run(None, dict(inputs), intermediate=True)
        except Exception as error:
            raise _unreadable(error, "run") from error
        for name in sizes:
            if isinstance(values.get(name), (np.ndarray, np.generic)):
                value = np.asarray(values[name])
                yield name, value if value.dtype.isbuiltin == 1 else value.astype(np.float32)


def _unreadable(error: Exception, doing: str) -> Exception:
    if memory.lacks(error):
        return error
    return Unreadable(f"onnx's reference implementation cannot {doing} the model: {reason_of(error)}")
