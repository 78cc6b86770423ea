# SPDX-License-Identifier: Apache-2.0
"""Tests networks with sizes that a run computes: outputs have their true size, and wrong sizes are reported."""
from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Mapping, Sequence

import numpy as np
import onnx
import onnxruntime
import pytest
from conftest import check, run_tool
from onnx import TensorProto, helper, numpy_helper

RNG = np.random.default_rng(11)
Inputs = Mapping[str, tuple[int, Sequence[int]]]


def save(
    path: Path, nodes: list[onnx.NodeProto], inputs: Inputs, outputs: list[str], constants: dict[str, Any]
) -> None:
    graph = helper.make_graph(
        nodes,
        path.stem,
        [helper.make_tensor_value_info(name, kind, shape) for name, (kind, shape) in inputs.items()],
        [onnx.ValueInfoProto(name=name) for name in outputs],
        [numpy_helper.from_array(np.asarray(value), name) for name, value in constants.items()],
    )
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)


def compile_open(folder: Path, dims: str) -> Any:
    """Returns the net of folder/n.onnx, compiled with `dims`."""
    import tessera.runtime as runtime

    mlir, model = folder / "n_top.mlir", folder / "n.bmodel"
    check(run_tool("tessera-compile", "import", "--onnx", folder / "n.onnx", "--dims", dims, "--output", mlir))
    check(run_tool("tessera-compile", "deploy", "--mlir", mlir, "--output", model))
    return runtime.load(str(model), threads=2).net()


def detector(path: Path) -> None:
    """A convolutional head, whose boxes go through NonMaxSuppression; returns the boxes and scores that remain."""
    nodes = [
        helper.make_node("Conv", ["image", "w"], ["features"], kernel_shape=[3, 3], strides=[4, 4]),
        helper.make_node("Relu", ["features"], ["active"]),
        helper.make_node("Conv", ["active", "wb"], ["corners"], kernel_shape=[1, 1]),
        helper.make_node("Reshape", ["corners", "four"], ["columns"]),
        helper.make_node("Transpose", ["columns"], ["boxes"], perm=[0, 2, 1]),
        helper.make_node("Conv", ["active", "ws"], ["logits"], kernel_shape=[1, 1]),
        helper.make_node("Reshape", ["logits", "two"], ["flat"]),
        helper.make_node("Sigmoid", ["flat"], ["scores"]),
        helper.make_node("NonMaxSuppression", ["boxes", "scores", "most", "iou", "least"], ["selected"]),
        helper.make_node("Gather", ["selected", "last"], ["numbers"], axis=1),
        helper.make_node("Squeeze", ["boxes", "zero"], ["all_boxes"]),
        helper.make_node("Gather", ["all_boxes", "numbers"], ["kept_boxes"], axis=0),
        helper.make_node("GatherND", ["scores", "selected"], ["kept_scores"]),
    ]
    constants = {
        "w": RNG.standard_normal((16, 3, 3, 3)).astype(np.float32),
        "wb": RNG.standard_normal((4, 16, 1, 1)).astype(np.float32),
        "ws": 0.3 * RNG.standard_normal((2, 16, 1, 1)).astype(np.float32),
        "four": np.array([1, 4, -1]),
        "two": np.array([1, 2, -1]),
        "most": np.array([20]),
        "iou": np.array([0.3], np.float32),
        "least": np.array([0.6], np.float32),
        "last": np.array(2),
        "zero": np.array([0]),
    }
    outputs = ["selected", "kept_boxes", "kept_scores"]
    save(path, nodes, {"image": (TensorProto.FLOAT, (1, 3, 34, 34))}, outputs, constants)


def test_detections_have_their_true_number(tmp_path: Path) -> None:
    detector(tmp_path / "n.onnx")
    net = compile_open(tmp_path, "auto")
    session = onnxruntime.InferenceSession(str(tmp_path / "n.onnx"), providers=["CPUExecutionProvider"])
    counts = set()
    for size in (0.0, 0.3, 1.0, 0.1, 3.0):
        image = (size * RNG.standard_normal((1, 3, 34, 34))).astype(np.float32)
        got = net({"image": image})
        for output, wanted in zip(session.get_outputs(), session.run(None, {"image": image})):
            assert got[output.name].shape == wanted.shape
            np.testing.assert_allclose(got[output.name], wanted, rtol=1e-4, atol=1e-5)
        counts.add(len(got["selected"]))
    assert len(counts) > 2


def test_each_op_is_checked_on_wide_inputs(tmp_path: Path) -> None:
    """The check of single ops takes operands of open sizes from onnxruntime, and keeps the ops that bind sizes."""
    detector(tmp_path / "n.onnx")
    np.savez(tmp_path / "in.npz", image=RNG.standard_normal((1, 3, 34, 34)).astype(np.float32))
    flags = ("--model_name", "n", "--model_def", tmp_path / "n.onnx", "--dims", "auto", "--json")
    paths = ("--test_input", tmp_path / "in.npz", "--mlir", tmp_path / "n_top.mlir")
    document = json.loads(check(run_tool("model_transform", *flags, *paths)))
    assert document["wide"]["checked"] > 10 and not document["wide"]["wrong"], document["wide"]


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Any]:
    """A tensor whose shape is an input."""
    folder = tmp_path_factory.mktemp("filled")
    nodes = [helper.make_node("Expand", ["one", "shape"], ["y"])]
    save(folder / "n.onnx", nodes, {"shape": (TensorProto.INT64, (2,))}, ["y"], {"one": np.float32(1)})
    return folder, compile_open(folder, "shape[0]=0..6,shape[1]=2..5")


def test_sizes_that_are_inputs(filled: tuple[Path, Any]) -> None:
    _, net = filled
    for shape in ((1, 2), (6, 5), (0, 3), (2, 4)):
        np.testing.assert_array_equal(net({"shape": np.array(shape)})["y"], np.ones(shape, np.float32))


@pytest.mark.parametrize("shape, name", [((7, 3), "shape[0]"), ((-1, 3), "shape[0]"), ((1, 1), "shape[1]")])
def test_sizes_outside_their_range(filled: tuple[Path, Any], shape: Sequence[int], name: str) -> None:
    _, net = filled
    with pytest.raises(ValueError) as error:
        net({"shape": np.array(shape)})
    assert f"dimension '{name}' of the net becomes" in str(error.value) and "give other inputs" in str(error.value)
    assert net({"shape": np.array((3, 4))})["y"].shape == (3, 4)


def test_names_of_no_size(filled: tuple[Path, Any]) -> None:
    folder, _ = filled
    arguments = ("import", "--onnx", folder / "n.onnx", "--output", folder / "other.mlir", "--dims", "shape[2]=1..4")
    result = run_tool("tessera-compile", *arguments)
    assert result.returncode != 0
    assert "--dims names 'shape[2]', which is not the name of an open dim" in result.stdout + result.stderr


def test_sizes_that_must_agree(tmp_path: Path) -> None:
    """A shape with another number of elements than the tensor ends the run."""
    nodes = [helper.make_node("Reshape", ["x", "shape"], ["y"], name="form")]
    inputs = {"x": (TensorProto.FLOAT, (2, 6)), "shape": (TensorProto.INT64, (2,))}
    save(tmp_path / "n.onnx", nodes, inputs, ["y"], {})
    net = compile_open(tmp_path, "auto")
    x = RNG.standard_normal((2, 6)).astype(np.float32)
    for shape in ((3, 4), (12, 1), (-1, 6), (0, 6), (4, -1)):
        wanted = x.reshape([2 if size == 0 else size for size in shape])
        np.testing.assert_array_equal(net({"x": x, "shape": np.array(shape)})["y"], wanted)
    with pytest.raises(ValueError, match="difference of element counts of form"):
        net({"x": x, "shape": np.array((3, 3))})
