# SPDX-License-Identifier: Apache-2.0
"""A model in any of its forms: .bmodel (runtime), NAME_top.mlir (Top reference) or .onnx (onnxruntime)."""
from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Callable, Mapping, Sequence

import numpy as np

from . import bmodel, onnx_runner, top_model
from .errors import usage_error
from .files import require_file
from .inputs import InputSpec
from .preprocess import Preprocess
from .progress import Report
from .sizes import inputs_at, smallest_batch

Runner = Callable[[Mapping[str, np.ndarray]], Mapping[str, np.ndarray]]


@dataclass(frozen=True)
class AnyModel:
    """A model that can run. run: returns the outputs by name, or every named tensor if that was requested. assumed:
    inputs whose open dims are taken to be 1. stage: description of the selected stage of a .bmodel with several.
    origins: what computes some of the outputs (output_error.py), as far as the file says; an .onnx does not. states:
    tensors that a run takes as further inputs if they are given, else at their initial values."""

    path: Path
    inputs: tuple[InputSpec, ...]
    outputs: tuple[InputSpec, ...]
    run: Runner
    assumed: tuple[str, ...] = ()
    stage: str = ""
    origins: Mapping[str, str] = field(default_factory=dict)
    states: tuple[InputSpec, ...] = ()

    def preprocessed_like(self, other: "AnyModel") -> "AnyModel":
        """Returns the model with missing pre-processing taken from another model; an .onnx never carries its own."""
        known: dict[str, Preprocess | None] = {spec.name: spec.preprocess for spec in other.inputs}
        return replace(
            self,
            inputs=tuple(
                spec if spec.preprocess else replace(spec, preprocess=known.get(spec.name)) for spec in self.inputs
            ),
        )


def open_model(
    path: str | Path,
    report: Report,
    threads: int = 1,
    every_tensor: bool = False,
    shapes: Mapping[str, Sequence[int]] | None = None,
    chip: str | None = None,
    at: str | None = None,
) -> AnyModel:
    """Opens a model file. shapes: by input; fixes the dims that an .onnx leaves open (default 1), or selects the stage
    of a .bmodel with several (default: the first). chip: selects a .bmodel's stage by chip. at: fixes the sizes that
    a .bmodel leaves open, as --at does; "": the smallest batch, and the largest of all others. Raises TesseraError if
    the file cannot be used."""
    path = require_file(path, "model")
    if path.suffix == ".bmodel":
        net = bmodel.open_net(path, threads, chip)
        if shapes and {spec.name for spec in net.inputs} == set(shapes):
            net.use(shapes)
        run: Runner = net.run
        if every_tensor:
            run = net.run_every_tensor
        given = net.inputs
        if at is not None and (at or any(spec.open_dims for spec in given)):
            stage = net.described()
            given = inputs_at(given, stage, at) if at else smallest_batch(given, stage)
        return AnyModel(path, tuple(given), tuple(net.outputs), run, (), net.stage, net.origins, tuple(net.states))
    if path.suffix == ".mlir":
        top = top_model.open_top(path, report)
        return AnyModel(
            path,
            top.inputs,
            top.outputs,
            lambda arrays: _without_states(top, top_model.evaluate(top, arrays, report, every_tensor), every_tensor),
            origins=top.origins,
            states=tuple(state.input for state in top.states),
        )
    if path.suffix == ".onnx":
        model = onnx_runner.OnnxModel(path, threads, every_tensor=every_tensor)
        inputs, outputs = (
            tuple(_fix(spec, (shapes or {}).get(spec.name, ())) for spec in specs)
            for specs in (model.inputs, model.outputs)
        )
        assumed = tuple(str(spec) for spec in model.inputs if None in spec.shape and spec.name not in (shapes or {}))
        return AnyModel(path, inputs, outputs, model.run, assumed)
    raise usage_error(f"{path}: expected .bmodel, .mlir or .onnx")


def _without_states(
    top: top_model.TopModel, tensors: Mapping[str, np.ndarray], every_tensor: bool
) -> Mapping[str, np.ndarray]:
    return tensors if every_tensor or not top.states else {spec.name: tensors[spec.name] for spec in top.outputs}


def _fix(spec: onnx_runner.TensorSpec, have: Sequence[int]) -> InputSpec:
    dims = have if len(have) == len(spec.shape) else [1] * len(spec.shape)
    return InputSpec(spec.name, tuple(h if d is None else d for d, h in zip(spec.shape, dims)), spec.dtype)
