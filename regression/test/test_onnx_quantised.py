# SPDX-License-Identifier: Apache-2.0
"""Tests models that were already quantised: Tessera computes the same integers as onnxruntime, op by op.

`models/quantised`: models of onnxruntime's quantiser, cut at their 8-bit tensors (conformance/onnx_quantised.py),
with inputs and onnxruntime's results; docs/quantised-import.md explains every difference that is allowed here.
"""
from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import onnx
import pytest
from case_file import REGRESSION

sys.path.insert(0, str(REGRESSION / "conformance"))
import onnx_quantised as quantised  # noqa: E402
from engines import Compiler, supported_isas  # noqa: E402

FOLDER = REGRESSION / "models" / "quantised"
ENGINES = ("top", "device", *supported_isas("x86-avx512vnni"), "x86")
# Integers that may differ by one, by the op that computes them: onnxruntime's softmax works in fixed point.
OFF_BY_ONE = {"mnist_qoperator": {}, "resnet8_qdq": {"Softmax": 1}, "resnet8_qoperator": {}, "mnist_dynamic": {}}


@pytest.fixture(scope="module")
def compiler() -> Compiler:
    return Compiler()


def golden(name: str, key: str) -> dict[str, np.ndarray]:
    with np.load(FOLDER / f"{name}.npz") as arrays:
        return {k.removeprefix(key): arrays[k] for k in arrays.files if k.startswith(key)}


@pytest.mark.parametrize("name", OFF_BY_ONE)
def test_golden_integers(name: str, compiler: Compiler, tmp_path: Path) -> None:
    path = tmp_path / f"{name}.onnx"
    path.write_bytes((FOLDER / path.name).read_bytes())
    pieces = quantised.CutModel(onnx.load(str(path)), golden(name, "in:"))
    want = golden(name, "out:")
    device: dict[str, np.ndarray] = {}
    for engine in ENGINES:
        got = quantised.run_tessera(compiler, path, pieces.inputs, engine)
        compared = quantised.differences(pieces, got, want)
        assert sum(count for count, _, _ in compared.values()) > 1000
        for operator, (count, wrong, most) in compared.items():
            assert (
                wrong <= OFF_BY_ONE[name].get(operator, 0) and most <= 1
            ), f"{engine}: {wrong} of {count} of {operator} differ by {most}"
        for output, expected in want.items():
            if expected.dtype == np.float32:
                assert np.abs(got[output] - expected).max() <= 1e-4 * np.abs(expected).max(), (engine, output)
        if engine == "device":
            device = got
        elif engine != "top" and name != "mnist_dynamic":  # its last product is float
            for output, expected in device.items():
                assert np.array_equal(
                    got[output], expected
                ), f"{engine} differs from the device reference in '{output}'"


def test_every_form_of_onnxruntimes_quantiser(compiler: Compiler, tmp_path: Path) -> None:
    """The quantiser runs in this test. It needs a newer onnx than the other tests."""
    pytest.importorskip("onnxruntime.quantization")
    model = REGRESSION / "models" / "resnet8_cifar10" / "resnet8_cifar10.onnx"
    total = forms = 0
    for form, quantised_model in quantised.forms(model, tmp_path):
        folder = tmp_path / form.replace(" ", "_")
        folder.mkdir()
        pieces = quantised.cut(quantised_model, quantised.feeds_of(onnx.load(str(model)), 0))
        (folder / "cut.onnx").write_bytes(pieces.model.SerializeToString())
        want = quantised.run_onnxruntime(pieces.model, pieces.inputs, optimised=True)
        for engine in ("device", "x86"):
            got = quantised.run_tessera(compiler, folder / "cut.onnx", pieces.inputs, engine)
            for operator, (count, wrong, most) in quantised.differences(pieces, got, want).items():
                bound = 0.3 * count if operator == "Softmax" else 1e-4 * count
                assert (
                    wrong <= bound and most <= 1
                ), f"{form}, {engine}: {wrong} of {count} of {operator} differ by {most}"
                total += count
        forms += 1
    assert forms >= 10 and total > 1_000_000
