# SPDX-License-Identifier: Apache-2.0
"""Imports convolutions in the blocked layout that onnxruntime writes with ORT_ENABLE_ALL (com.microsoft.nchwc)."""
from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from engines import Compiler, StageError, run_reference
from onnx import TensorProto, helper, numpy_helper

DOMAIN = "com.microsoft.nchwc"
X = np.random.default_rng(1).standard_normal((1, 3, 16, 16)).astype(np.float32)


def weights(name: str, *shape: int) -> TensorProto:
    values = np.random.default_rng(len(name) + sum(shape)).standard_normal(shape) * 0.3
    return numpy_helper.from_array(values.astype(np.float32), name)


def model(nodes: list, tensors: list, outputs: list[str], blocked: bool = False) -> onnx.ModelProto:
    given = [helper.make_tensor_value_info("x", TensorProto.FLOAT, X.shape)]
    graph = helper.make_graph(nodes, "g", given, [onnx.ValueInfoProto(name=name) for name in outputs], tensors)
    opsets = [helper.make_opsetid("", 17)] + ([helper.make_opsetid(DOMAIN, 1)] if blocked else [])
    return helper.make_model(graph, opset_imports=opsets, ir_version=8)


def every_kind() -> onnx.ModelProto:
    """Returns a network that onnxruntime turns into all operators of the domain: 3 channels are read unblocked, 24 are
    padded to blocks of 16."""
    make = helper.make_node
    nodes = [
        make("Conv", ["x", "w1", "b1"], ["c1"], strides=[2, 2], pads=[1, 1, 1, 1]),
        make("Relu", ["c1"], ["r1"]),
        make("Conv", ["r1", "w2"], ["c2"], group=24, pads=[1, 1, 1, 1]),
        make("Sigmoid", ["c2"], ["s2"]),
        make("Mul", ["c2", "s2"], ["m2"]),
        make("Conv", ["m2", "w3", "b3"], ["c3"]),
        make("Conv", ["r1", "w4"], ["c4"]),
        make("Add", ["c3", "c4"], ["a4"]),
        make("MaxPool", ["a4"], ["p4"], kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1]),
        make("AveragePool", ["p4"], ["q4"], kernel_shape=[2, 2], pads=[0, 0, 1, 1], count_include_pad=1),
        make("Conv", ["q4", "w5", "b5"], ["c5"], pads=[1, 1, 1, 1], group=2),
        make("Resize", ["c5", "", "twice"], ["u5"], coordinate_transformation_mode="asymmetric", nearest_mode="floor"),
        make("Conv", ["u5", "w6"], ["c6"]),
        make("Resize", ["c6", "", "twice"], ["u6"], mode="linear"),
        make("Conv", ["u6", "w7"], ["y"]),
        make("GlobalAveragePool", ["c5"], ["mean"]),
        make("GlobalMaxPool", ["u5"], ["most"]),
    ]
    tensors = [weights("w1", 24, 3, 3, 3), weights("b1", 24), weights("w2", 24, 1, 3, 3), weights("w3", 64, 24, 1, 1)]
    tensors += [weights("b3", 64), weights("w4", 64, 24, 1, 1), weights("w5", 64, 32, 3, 3), weights("b5", 64)]
    tensors += [weights("w6", 32, 64, 1, 1), weights("w7", 20, 32, 1, 1)]
    tensors.append(numpy_helper.from_array(np.float32([1, 1, 2, 2]), "twice"))
    return model(nodes, tensors, ["y", "mean", "most"])


def imported(source: onnx.ModelProto, folder: Path, compiler: Compiler) -> dict[str, np.ndarray]:
    onnx.save(source, str(folder / "m.onnx"))
    compiler("import", "import", "--onnx", folder / "m.onnx", "--output", folder / "m_top.mlir")
    return run_reference(compiler, folder / "m_top.mlir", {"x": X})


def test_what_onnxruntime_writes_here(tmp_path: Path) -> None:
    options = ort.SessionOptions()
    options.log_severity_level = 4
    options.optimized_model_filepath = str(tmp_path / "all.onnx")
    session = ort.InferenceSession(every_kind().SerializeToString(), options, providers=["CPUExecutionProvider"])
    written = onnx.load(str(tmp_path / "all.onnx"))
    kinds = {node.op_type for node in written.graph.node if node.domain == DOMAIN}
    assert {"Conv", "MaxPool", "AveragePool", "Upsample", "ReorderOutput", "GlobalAveragePool"} <= kinds
    found = imported(written, tmp_path, Compiler())
    for name, wanted in zip(["y", "mean", "most"], session.run(None, {"x": X})):
        np.testing.assert_allclose(found[name], wanted, rtol=2e-4, atol=2e-4)


def blocks(filters: np.ndarray, block: int, both: bool) -> TensorProto:
    """Returns filters, whose dims are padded to whole blocks, in the order of the blocked layout."""
    o, i, h, w = filters.shape
    if both:
        split = filters.reshape(o // block, block, i // block, block, h, w).transpose(0, 2, 4, 5, 3, 1)
    else:
        split = filters.reshape(o // block, block, i, h, w).transpose(0, 2, 3, 4, 1)
    return numpy_helper.from_array(np.ascontiguousarray(split).reshape(filters.shape), "")


def padded(array: np.ndarray, *dims: int) -> np.ndarray:
    return np.pad(array, [(0, dim - have) for dim, have in zip(dims, array.shape)])


def two_convolutions(block: int, channels: int, activation: str = "Relu") -> tuple[onnx.ModelProto, onnx.ModelProto]:
    """Returns two convolutions over `channels` channels: as usual, and in blocks with an activation."""
    make, stored = helper.make_node, -(-channels // block) * block
    first, second = (
        numpy_helper.to_array(weights(name, channels, inner, 3, 3)) for name, inner in (("w1", 3), ("w2", channels))
    )
    tensors = [numpy_helper.from_array(first, "w1"), numpy_helper.from_array(second, "w2")]
    usual = model(
        [make("Conv", ["x", "w1"], ["h"], kernel_shape=[3, 3]), make("Conv", ["h", "w2"], ["y"], kernel_shape=[3, 3])],
        tensors,
        ["y"],
    )
    changed = [
        blocks(padded(first, stored, 3, 3, 3), block, False),
        blocks(padded(second, *[stored] * 2, 3, 3), block, True),
    ]
    for tensor, name in zip(changed, ("w1", "w2")):
        tensor.name = name
    nodes = [
        make("Conv", ["x", "w1"], ["h"], domain=DOMAIN, kernel_shape=[3, 3]),
        make("Conv", ["h", "w2"], ["b"], domain=DOMAIN, kernel_shape=[3, 3], activation=activation),
        make("ReorderOutput", ["b"], ["y"], domain=DOMAIN, channels=channels),
    ]
    return usual, model(nodes, changed, ["y"], blocked=True)


@pytest.mark.parametrize("block, channels", [(8, 24), (8, 20), (16, 20), (16, 40)])
def test_the_block_size_that_the_channels_prove(block: int, channels: int, tmp_path: Path) -> None:
    usual, changed = two_convolutions(block, channels)
    compiler = Compiler()
    wanted = np.maximum(imported(usual, tmp_path, compiler)["y"], 0)
    np.testing.assert_allclose(imported(changed, tmp_path, compiler)["y"], wanted, rtol=1e-4, atol=1e-4)


def test_a_fused_hard_swish(tmp_path: Path) -> None:
    """onnxruntime 1.32 fuses it into a convolution, without parameters."""
    usual, changed = two_convolutions(16, 20, "HardSwish")
    compiler = Compiler()
    plain = imported(usual, tmp_path, compiler)["y"]
    wanted = plain * np.clip(plain / 6 + 0.5, 0, 1)
    np.testing.assert_allclose(imported(changed, tmp_path, compiler)["y"], wanted, rtol=1e-4, atol=1e-4)


def test_a_filter_that_is_not_whole_blocks(tmp_path: Path) -> None:
    _, changed = two_convolutions(8, 24)
    changed.graph.initializer[1].CopyFrom(weights("w2", 20, 24, 3, 3))
    with pytest.raises(StageError, match="not a constant of rank 4 with a multiple of 8 rows"):
        imported(changed, tmp_path, Compiler())
