# SPDX-License-Identifier: Apache-2.0
"""Quantises a model with onnxruntime's static quantisation and with NNCF, each as its documentation recommends.

onnxruntime: quant_pre_process, then quantize_static to QDQ, weights int8 per channel, activations of 8 bits, other
settings at their defaults, calibrated by MinMax, Entropy or Percentile. NNCF: quantize() of the OpenVINO model with
its defaults, bias correction included, run by OpenVINO on the CPU. Both get the same calibration arrays.
"""
from __future__ import annotations

import contextlib
import importlib.util
import io
import logging
from pathlib import Path
from typing import Any, Callable, Iterator, Mapping, Sequence

import numpy as np

from tessera import any_model
from tessera.any_model import AnyModel
from tessera.progress import Report

ORT_METHODS = ("MinMax", "Entropy", "Percentile")
NNCF = "NNCF"
QDQ_OPSET = 13
Arrays = Sequence[Mapping[str, np.ndarray]]
Shapes = Mapping[str, Sequence[int]]


def available() -> dict[str, str]:
    """Returns for each column why it is left out, or "" if it is available."""
    has = {name: importlib.util.find_spec(name) is not None for name in ("onnxruntime", "onnx", "nncf", "openvino")}
    ort = "" if has["onnxruntime"] and has["onnx"] else "onnxruntime is not installed"
    nncf = "" if has["nncf"] and has["openvino"] else "nncf is not installed: .venv/bin/python -m pip install nncf"
    return {**{f"ort {method}": ort for method in ORT_METHODS}, NNCF: nncf}


def quietly(make: Callable[..., Any]) -> Callable[..., Any]:
    """Wraps `make` so that the peers do not print their progress."""

    def made(*arguments: object) -> Any:
        logging.disable(logging.WARNING)
        try:
            with contextlib.redirect_stdout(io.StringIO()):
                return make(*arguments)
        finally:
            logging.disable(logging.NOTSET)

    return made


@quietly
def onnxruntime_static(
    onnx_file: Path, like: AnyModel, arrays: Arrays, method: str, folder: Path, report: Report
) -> AnyModel:
    """Quantises and opens a model. `like` gives the sizes that the file leaves open."""
    output = onnxruntime_file(onnx_file, _shapes(like), arrays, method, folder)
    return any_model.open_model(output, report, 2).preprocessed_like(like)


def _shapes(like: AnyModel) -> Shapes:
    return {spec.name: spec.shape for spec in like.inputs}


@quietly
def onnxruntime_file(onnx_file: Path, shapes: Shapes, arrays: Arrays, method: str, folder: Path) -> Path:
    """Quantises a model to a file in `folder`. shapes: of the inputs."""
    from onnxruntime.quantization import CalibrationDataReader, CalibrationMethod, QuantFormat, quantize_static
    from onnxruntime.quantization.shape_inference import quant_pre_process

    class Reader(CalibrationDataReader):
        def __init__(self) -> None:
            self._left: Iterator[Mapping[str, np.ndarray]] = iter(arrays)

        def get_next(self):
            return dict(found) if (found := next(self._left, None)) is not None else None

    fixed, prepared, output = (folder / f"ort_{name}.onnx" for name in ("fixed", "prepared", method))
    _prepare(onnx_file, shapes, fixed)
    try:
        quant_pre_process(str(fixed), str(prepared), skip_symbolic_shape=True)
    except Exception:  # its shape inference fails on some models, which quantize_static accepts without it
        prepared = fixed
    quantize_static(
        str(prepared),
        str(output),
        Reader(),
        quant_format=QuantFormat.QDQ,
        per_channel=True,
        calibrate_method=CalibrationMethod[method],
    )
    return output


def _prepare(source: Path, shapes: Shapes, target: Path) -> None:
    """Writes the model with inputs of these shapes and at least opset 13, which QDQ per channel requires."""
    import onnx
    from onnx import version_converter

    model = onnx.load(str(source))
    for value in model.graph.input:
        for dim, size in zip(value.type.tensor_type.shape.dim, shapes.get(value.name, ())):
            dim.dim_value = size
    opset = max(entry.version for entry in model.opset_import if entry.domain in ("", "ai.onnx"))
    others = [entry for entry in model.opset_import if entry.domain not in ("", "ai.onnx")]
    del model.opset_import[:]  # the quantiser rejects models that name the standard operators twice
    model.opset_import.extend([onnx.helper.make_opsetid("", opset), *others])
    onnx.save(model if opset >= QDQ_OPSET else version_converter.convert_version(model, QDQ_OPSET), str(target))


@quietly
def nncf_default(onnx_file: Path, like: AnyModel, arrays: Arrays) -> AnyModel:
    """Quantises a model and compiles it in memory."""
    import openvino as ov

    quantised = nncf_network(onnx_file, _shapes(like), arrays)
    compiled = ov.Core().compile_model(
        quantised, "CPU", {"INFERENCE_PRECISION_HINT": "f32", "INFERENCE_NUM_THREADS": 2}
    )

    def run(inputs: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        return {name: np.array(value) for port, value in compiled(dict(inputs)).items() for name in port.get_names()}

    return AnyModel(onnx_file, like.inputs, like.outputs, run)


@quietly
def nncf_network(onnx_file: Path, shapes: Shapes, arrays: Arrays) -> Any:
    """Returns the quantised network of OpenVINO."""
    import nncf
    import openvino as ov

    model = ov.Core().read_model(str(onnx_file))
    model.reshape({name: ov.PartialShape(list(shape)) for name, shape in shapes.items()})
    data = nncf.Dataset([dict(a) for a in arrays])
    try:
        return nncf.quantize(model, data, subset_size=len(arrays))
    except KeyError:  # its default setting does not support tables indexed by constants, such as BERT's positions
        return nncf.quantize(model, data, subset_size=len(arrays), model_type=nncf.ModelType.TRANSFORMER)
