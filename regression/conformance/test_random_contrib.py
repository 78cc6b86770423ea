# SPDX-License-Identifier: Apache-2.0
"""Compares operators with random attributes and inputs with onnxruntime (random_contrib.py), and tests rejections."""
from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
from onnx import TensorProto, helper

sys.path.insert(0, str(Path(__file__).resolve().parent))

import random_contrib  # noqa: E402
from contrib_case import ML, MS, Case, floats  # noqa: E402
from engines import Compiler, StageError, supported_isas  # noqa: E402

RNG = np.random.default_rng(0)


@pytest.fixture(scope="module")
def compiler() -> Compiler:
    return Compiler()


@pytest.mark.parametrize("name", sorted(random_contrib.FAMILIES))
def test_onnxruntime_gives_the_same(name: str, compiler: Compiler) -> None:
    make = random_contrib.FAMILIES[name]
    for seed in range(12):
        chip = supported_isas()[-1] if seed == 0 else None
        outcome, message = random_contrib.run_case(compiler, make(np.random.default_rng(seed)), chip)
        assert outcome in ("passed", "rejected", "skipped"), f"seed {seed}: {message}"


def _case(op: str, inputs: dict[str, np.ndarray | None], domain: str = MS, **attributes: object) -> Case:
    case = Case(op, domain=domain, attributes=attributes)
    for name, array in inputs.items():
        case.skip() if array is None else case.add(name, array)
    return case


def _heads(**more: np.ndarray | None) -> dict[str, np.ndarray | None]:
    return {"q": floats(RNG, 1, 2, 8), "k": floats(RNG, 1, 2, 8), "v": floats(RNG, 1, 2, 8), **more}


def _gqa(**attributes: object) -> Case:
    lengths = {"seqlens": np.array([1], np.int32), "total": np.array(2, np.int32)}
    return _case("GroupQueryAttention", _heads(pk=None, pv=None, **lengths), num_heads=1, kv_num_heads=1, **attributes)


def _experts(**attributes: object) -> Case:
    weights = {"fc1": floats(RNG, 2, 3, 4), "b1": None, "fc2": floats(RNG, 2, 4, 3)}
    return _case("MoE", {"x": floats(RNG, 1, 4), "router": floats(RNG, 1, 2), **weights}, **attributes)


X = floats(RNG, 2, 3)
REJECTED = {
    "mha_beams": (
        _case(
            "MultiHeadAttention",
            {**_heads(b=None, m=None, a=None, pk=None, pv=None), "p": np.array([1], np.int32)},
            num_heads=2,
        ),
        "input 8, tensor 'p', is not supported",
    ),
    "mha_unknown": (_case("MultiHeadAttention", _heads(), num_heads=2, extra=1), "attribute 'extra' is not supported"),
    "attention_rotary": (
        _case("Attention", {"x": floats(RNG, 1, 2, 4), "w": floats(RNG, 4, 12)}, num_heads=1, do_rotary=1),
        "attribute 'do_rotary' is 1; supported is 0",
    ),
    "gqa_total": (_gqa(), "total_sequence_length (input 6, tensor 'total') is computed at run time"),
    "gqa_window_cache": (_gqa(sliding_window_cache=1), "attribute 'sliding_window_cache' is 1; supported is 0"),
    "gqa_quantised": (_gqa(k_quant_type="PER_TENSOR"), "attribute 'k_quant_type' is 'PER_TENSOR'; supported is NONE"),
    "experts_activation": (
        _experts(activation_type="tanh"),
        "attribute 'activation_type' is 'tanh'; supported are relu",
    ),
    "experts_count": (_experts(k=3), "k is 3 for 2 experts"),
    "experts_fusion": (
        _experts(activation_type="swiglu"),
        "attribute 'swiglu_fusion' is 0 with 3 outputs of fc1 and no",
    ),
    "experts_mixer": (_experts(use_sparse_mixer=1), "attribute 'use_sparse_mixer' is not 0"),
    "label_strings": (
        _case("LabelEncoder", {"x": X}, ML, keys_floats=[1.0], values_strings=["a"]),
        "attribute 'values_strings': strings are not supported",
    ),
    "scaler_columns": (
        _case("Scaler", {"x": X}, ML, offset=[1.0, 2.0], scale=[1.0]),
        "attribute 'offset' has 2 entries for 3 columns; allowed are 1 and 3",
    ),
    "tfidf_strings": (
        _case("TfIdfVectorizer", {"x": np.array([1])}, "", pool_strings=["a"], mode="TF"),
        "attribute 'pool_strings': strings are not supported",
    ),
}


@pytest.mark.parametrize("name", sorted(REJECTED))
def test_is_rejected_by_name(name: str, compiler: Compiler, tmp_path: Path) -> None:
    case, message = REJECTED[name]
    (tmp_path / "m.onnx").write_bytes(case.model().SerializeToString())
    with pytest.raises(StageError) as error:
        compiler("import", "import", "--onnx", tmp_path / "m.onnx", "--output", tmp_path / "m_top.mlir")
    assert message in str(error.value)


def test_arithmetic_on_stored_types_is_rejected(compiler: Compiler, tmp_path: Path) -> None:
    inputs = [helper.make_tensor_value_info(n, TensorProto.FLOAT, [3]) for n in ("x", "y")]
    for value in inputs:
        value.type.tensor_type.elem_type = 17  # float8e4m3fn
    graph = helper.make_graph(
        [helper.make_node("Add", ["x", "y"], ["z"], name="sum")],
        "g",
        inputs,
        [helper.make_empty_tensor_value_info("z")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    (tmp_path / "m.onnx").write_bytes(model.SerializeToString())
    with pytest.raises(StageError) as error:
        compiler("import", "import", "--onnx", tmp_path / "m.onnx", "--output", tmp_path / "m_top.mlir")
    assert error.value.rejected
    assert "node 'sum' (Add): its input 0, tensor 'x', is float8e4m3fn, which only Cast" in str(error.value)
