# SPDX-License-Identifier: Apache-2.0
"""The checks of model_transform and model_deploy pass right networks in which rounding decides.

It decides what a mask hides, which entries are largest, to which side a tie is rounded, in which order unsorted entries
come. A fault at the same place is still found.
"""
from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import onnx
import pytest
from conftest import check, run_tool
from onnx import TensorProto, helper, numpy_helper
from small_models import save, tensor

CHIPS = ("x86", "npu-base")
node = helper.make_node


def network(path: Path, nodes: list, shape: list[int], outputs: list, weights: dict[str, np.ndarray]) -> None:
    kind = TensorProto.FLOAT16 if weights.get("w", np.float32(0)).dtype == np.float16 else TensorProto.FLOAT
    constants = [numpy_helper.from_array(np.asarray(array), name) for name, array in weights.items()]
    save(path, nodes, [tensor("x", shape, kind)], outputs, constants, opset=17)


def almost_equal_columns(rows: int) -> np.ndarray:
    """Groups of eight columns that are equal but for rounding."""
    generator = np.random.default_rng(0)
    groups = np.repeat(generator.normal(size=(rows, 16)).astype(np.float32), 8, 1)
    return groups * (1 + 1e-7 * generator.normal(size=groups.shape).astype(np.float32))


def flipping_mask(path: Path) -> None:
    """One product computed in two ways and compared with itself."""
    generator = np.random.default_rng(0)
    first, second = (generator.normal(size=shape).astype(np.float32) for shape in ((16, 32), (32, 128)))
    nodes = [
        node("MatMul", ["x", "w"], ["s"]),
        node("MatMul", ["x", "first"], ["t"]),
        node("MatMul", ["t", "second"], ["u"]),
        node("Less", ["u", "s"], ["low"]),
        node("Where", ["low", "hidden", "s"], ["y"]),
    ]
    weights = {"w": first @ second, "first": first, "second": second, "hidden": np.float32(-np.inf)}
    network(path, nodes, [64, 16], [tensor("y", [64, 128])], weights)


def ties(path: Path) -> None:
    """Means of four integers, of which every fourth lies in the middle of two."""
    nodes = [
        node("QuantizeLinear", ["x", "scale", "zero"], ["q"]),
        node("DequantizeLinear", ["q", "scale", "zero"], ["d"]),
        node("AveragePool", ["d"], ["mean"], kernel_shape=[2, 2], strides=[2, 2]),
        node("QuantizeLinear", ["mean", "scale", "zero"], ["q2"]),
        node("DequantizeLinear", ["q2", "scale", "zero"], ["y"]),
    ]
    outputs = [tensor("y", [1, 8, 12, 12]), tensor("q2", [1, 8, 12, 12], TensorProto.UINT8)]
    network(path, nodes, [1, 8, 24, 24], outputs, {"scale": np.float32(0.0078), "zero": np.uint8(128)})


def ill_conditioned_top(path: Path) -> None:
    nodes = [
        node("MatMul", ["x", "w"], ["s"]),
        node("TopK", ["s", "k"], ["v", "i"], axis=1),
        node("GatherElements", ["e", "i"], ["y"], axis=1),
    ]
    entries = np.random.default_rng(1).normal(size=(16, 128)).astype(np.float32)
    weights = {"w": almost_equal_columns(64), "k": np.int64([10]), "e": entries}
    network(path, nodes, [16, 64], [tensor("y", [16, 10]), tensor("v", [16, 10])], weights)


def unsorted_top(path: Path) -> None:
    nodes = [node("MatMul", ["x", "w"], ["s"]), node("TopK", ["s", "k"], ["v", "i"], axis=1, sorted=0)]
    weights = {"w": np.random.default_rng(0).normal(size=(16, 200)).astype(np.float32), "k": np.int64([20])}
    outputs = [tensor("v", [4, 20]), tensor("i", [4, 20], TensorProto.INT64)]
    network(path, nodes, [4, 16], outputs, weights)


def halves(path: Path) -> None:
    """Twelve layers in float16, whose cosine is 0.999999 and whose relative error is above 0.001."""
    generator, nodes, weights = np.random.default_rng(0), [], {}
    for i, read in enumerate(["x", *(f"y{i}" for i in range(11))]):
        weights["w" if i == 0 else f"w{i}"] = (generator.normal(size=(64, 64)) / 8).astype(np.float16)
        nodes += [
            node("MatMul", [read, "w" if i == 0 else f"w{i}"], [f"m{i}"]),
            node("Add", [f"m{i}", read], [f"a{i}"]),
            node("LayerNormalization", [f"a{i}", "gain"], [f"n{i}"], axis=-1),
            node("Sigmoid", [f"n{i}"], [f"s{i}"]),
            node("Mul", [f"n{i}", f"s{i}"], [f"y{i}"]),
        ]
    outputs = [tensor("y11", [8, 64], TensorProto.FLOAT16)]
    network(path, nodes, [8, 64], outputs, {**weights, "gain": np.ones(64, np.float16)})


NETWORKS = (flipping_mask, ties, ill_conditioned_top, unsorted_top, halves)


def transformed(folder: Path, name: str, *flags: str) -> dict:
    command = ("--model_def", f"{name}.onnx", "--mlir", f"{name}_top.mlir", "--json", *flags)
    return json.loads(check(run_tool("model_transform", *command, cwd=folder)))


@pytest.mark.parametrize("build", NETWORKS, ids=lambda build: build.__name__)
def test_right_networks_pass(tmp_path: Path, build) -> None:
    build(tmp_path / "m.onnx")
    assert transformed(tmp_path, "m")["comparison"]["failed"] == 0
    for chip in CHIPS:
        flags = ("--mlir", "m_top.mlir", "--chip", chip, "--model", "m.bmodel", "--json")
        document = json.loads(check(run_tool("model_deploy", *flags, cwd=tmp_path)))
        assert document["comparison"]["failed"] == 0


def change(model: onnx.ModelProto) -> None:
    """Moves the mask's scores, or the zero point of the second quantisation, by a little."""
    for each in model.graph.node:
        if each.op_type == "Less":
            model.graph.initializer.append(numpy_helper.from_array(np.float32(0.5), "more"))
            model.graph.node.insert(3, node("Add", ["u", "more"], ["moved"]))
            each.input[0] = "moved"
            return
        if each.op_type == "QuantizeLinear" and each.output[0] == "q2":
            model.graph.initializer.append(numpy_helper.from_array(np.uint8(129), "other"))
            each.input[2] = "other"
            return


@pytest.mark.parametrize("chip", CHIPS)
@pytest.mark.parametrize("build", (flipping_mask, ties), ids=lambda build: build.__name__)
def test_a_fault_at_the_same_place_is_found(tmp_path: Path, build, chip: str) -> None:
    """The reference is of the right network, what is deployed of the other one."""
    build(tmp_path / "m.onnx")
    transformed(tmp_path, "m", "--test_result", "ref.npz")
    model = onnx.load(str(tmp_path / "m.onnx"))
    change(model)
    onnx.save(model, str(tmp_path / "wrong.onnx"))
    transformed(tmp_path, "wrong", "--not_inference")
    flags = ("--mlir", "wrong_top.mlir", "--chip", chip, "--test_input", "m_in_f32.npz", "--test_reference", "ref.npz")
    result = run_tool("model_deploy", *flags, "--model", "wrong.bmodel", cwd=tmp_path)
    assert result.returncode == 3, result.stdout[-2000:]
