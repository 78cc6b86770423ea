# SPDX-License-Identifier: Apache-2.0
"""Quantisation of an exported file by onnxruntime.quantization: (float file, quantised file, samples by input name)."""
from __future__ import annotations

from pathlib import Path
from typing import Any, Iterable, Mapping

import numpy as np
from onnxruntime import quantization as ort

Samples = Iterable[Mapping[str, np.ndarray]]


class _Reader(ort.CalibrationDataReader):
    def __init__(self, samples: Samples) -> None:
        self._samples = iter(samples)

    def get_next(self) -> Any:
        return next(self._samples, None)


def _static(source: Path, target: Path, samples: Samples, form: Any, activation: Any, **more: Any) -> None:
    prepared = source.with_name("prepared.onnx")
    ort.quant_pre_process(str(source), str(prepared), skip_symbolic_shape=True)
    ort.quantize_static(
        str(prepared),
        str(target),
        _Reader(samples),
        quant_format=form,
        activation_type=activation,
        weight_type=ort.QuantType.QInt8,
        **more,
    )


def qdq(source: Path, target: Path, samples: Samples) -> None:
    """Pairs of QuantizeLinear and DequantizeLinear, u8 activations, weights per channel."""
    _static(source, target, samples, ort.QuantFormat.QDQ, ort.QuantType.QUInt8, per_channel=True)


def qdq_u16(source: Path, target: Path, samples: Samples) -> None:
    """QuantizeLinear and DequantizeLinear pairs with u16 activations, for accelerators that compute in 16 bits."""
    _static(source, target, samples, ort.QuantFormat.QDQ, ort.QuantType.QUInt16)


def qlinear(source: Path, target: Path, samples: Samples) -> None:
    """QLinearConv and similar operators; weights have 7 bits, because onnxruntime saturates sums of u8 x s8 products in
    16 bits on machines without VNNI."""
    _static(source, target, samples, ort.QuantFormat.QOperator, ort.QuantType.QUInt8, reduce_range=True)


def dynamic(source: Path, target: Path, samples: Samples) -> None:
    """Weights in 8 bits, activations by ranges found at run time."""
    ort.quantize_dynamic(str(source), str(target), weight_type=ort.QuantType.QInt8)
