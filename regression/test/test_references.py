# SPDX-License-Identifier: Apache-2.0
"""Tests models that onnxruntime cannot load or run: the commands report this in one line and continue."""
from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import onnx
import pytest
from conftest import check, run_tool
from onnx import TensorProto, helper, numpy_helper

pytest.importorskip("onnxruntime")


def save(path: Path, nodes: list, inputs: dict, outputs: list, constants: dict, opset: int = 17) -> Path:
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in inputs.items()],
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in outputs],
        [numpy_helper.from_array(np.asarray(array), name) for name, array in constants.items()],
    )
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8), str(path))
    return path


def batch_first(path: Path) -> Path:
    """Writes an LSTM of layout 1, which onnxruntime cannot load."""
    node = helper.make_node("LSTM", ["x", "w", "r"], ["", "y"], hidden_size=3, layout=1)
    rng = np.random.default_rng(0)
    weights = {name: rng.standard_normal((1, 12, size)).astype(np.float32) for name, size in (("w", 4), ("r", 3))}
    return save(path, [node], {"x": [2, 5, 4]}, ["y"], weights)


def dilated(path: Path) -> Path:
    """Writes a convolution that onnxruntime loads, but cannot run."""
    node = helper.make_node("Conv", ["x", "w"], ["y"], auto_pad="SAME_UPPER", dilations=[2, 1])
    return save(path, [node], {"x": [1, 2, 8, 7]}, ["y"], {"w": np.ones((3, 2, 3, 2), np.float32)})


def transform(model: Path, *flags: object) -> tuple[str, dict]:
    """Returns the warnings and the JSON document of model_transform, which must succeed."""
    arguments = ("--model_def", model, "--mlir", model.with_name("m_top.mlir"), "--json", *flags)
    document = json.loads(check(run_tool("model_transform", *arguments, cwd=model.parent)))
    return "\n".join(document["warnings"]), document


@pytest.mark.parametrize("make, reason", [(batch_first, "layout == 1"), (dilated, "Dilation not supported")])
def test_a_limit_of_onnxruntime_is_a_warning(make, reason: str, tmp_path: Path) -> None:
    model = make(tmp_path / "m.onnx")
    warnings, _ = transform(model)
    assert warnings.count("\n") == 0 and "onnxruntime cannot" in warnings and reason in warnings, warnings
    assert "onnxruntime_src" not in warnings and "[ONNXRuntimeError]" not in warnings
    text = check(run_tool("tessera", "run", model, cwd=tmp_path))
    assert "verdict: PASS" in text and reason in text


def test_shapes_in_external_data_are_compared(tmp_path: Path) -> None:
    path = save(
        tmp_path / "m.onnx",
        [helper.make_node("MatMul", ["x", "w"], ["p"]), helper.make_node("Reshape", ["p", "shape"], ["y"])],
        {"x": [2, 6]},
        ["y"],
        {"w": np.ones((6, 5), np.float32), "shape": np.int64([5, 2])},
    )
    onnx.save(onnx.load(str(path)), str(path), save_as_external_data=True, location="w.bin", size_threshold=0)
    warnings, document = transform(path)
    assert not warnings and document["comparison"]["passed"], document


def test_an_output_of_a_very_long_name(tmp_path: Path) -> None:
    """The importer shortens the name; the check finds the output by its position."""
    name = "y" * 40000
    path = save(tmp_path / "m.onnx", [helper.make_node("Relu", ["x"], [name])], {"x": [3]}, [name], {})
    _, document = transform(path)
    assert document["comparison"]["passed"] and len(document["comparison"]["tensors"]) == 1


@pytest.mark.parametrize(
    "odd, compared", [(b"a\0b", True), (b"a\xffb", False), (b"a,=", True), ("\u96ea".encode(), True)]
)
def test_odd_names(odd: bytes, compared: bool, tmp_path: Path) -> None:
    """Inputs and outputs whose names the importer changes are found by their position; a name that is not UTF-8 is a
    limit of onnxruntime's Python package."""
    path = save(tmp_path / "m.onnx", [helper.make_node("Relu", ["i???"], ["o???"])], {"i???": [3]}, ["o???"], {})
    path.write_bytes(path.read_bytes().replace(b"???", odd))
    warnings, document = transform(path)
    assert bool(document["comparison"]) == compared == (not warnings), warnings
    assert "verdict: PASS" in check(run_tool("tessera", "run", path, cwd=tmp_path))


def test_outputs_named_by_the_user_end_the_network(tmp_path: Path) -> None:
    """Nodes after the named outputs are neither imported nor run in onnxruntime."""
    path = save(
        tmp_path / "m.onnx",
        [
            helper.make_node("Conv", ["x", "w"], ["c"]),
            helper.make_node("Bernoulli", ["c"], ["b"]),
            helper.make_node("NoSuchOperator", ["b"], ["y"]),
        ],
        {"x": [1, 2, 5, 5]},
        ["y"],
        {"w": np.ones((3, 2, 3, 3), np.float32)},
    )
    arguments = ("--model_def", path, "--mlir", tmp_path / "m_top.mlir")
    rejected = run_tool("model_transform", *arguments, cwd=tmp_path)
    assert rejected.returncode == 4 and "NoSuchOperator" in rejected.stderr
    warnings, document = transform(path, "--output_names", "c")
    assert (
        not warnings
        and document["comparison"]["passed"]
        and document["model"]["outputs"] == ["'c' float32[1, 3, 3, 3]"]
    )


def test_an_open_batch_is_one(tmp_path: Path) -> None:
    nodes = [helper.make_node("Add", ["x", "z"], ["y"])]
    model = save(tmp_path / "m.onnx", nodes, {"x": ["n", 3], "z": ["n", 3]}, ["y"], {})
    text = check(run_tool("model_transform", "--model_def", model, "--mlir", tmp_path / "m_top.mlir", cwd=tmp_path))
    assert "the batch size open" in text and "x=1x3,z=1x3" in text
    _, document = transform(model)
    assert document["model"]["assumed_shapes"] == {"x": [1, 3], "z": [1, 3]}
    _, document = transform(model, "--input_shapes", "x=2x3")
    assert document["model"]["assumed_shapes"] == {} and "[2, 3]" in document["model"]["outputs"][0]


def test_known_deviations_of_onnxruntime(tmp_path: Path) -> None:
    """onnxruntime is off by one in a nearest Resize by these sizes, does not crop a dim that keeps its size, copies the
    input of a Resize that keeps its shape, and takes an end of INT_MAX for the beginning of a slice with a negative
    step. The other tensors are compared as usual."""
    nodes = [
        helper.make_node(
            "Resize",
            ["x", "", "", "sizes"],
            ["r"],
            mode="nearest",
            nearest_mode="floor",
            coordinate_transformation_mode="asymmetric",
            name="small",
        ),
        helper.make_node("MatMul", ["r", "w"], ["y"]),
        helper.make_node(
            "Resize", ["x", "roi", "scales"], ["c"], coordinate_transformation_mode="tf_crop_and_resize", name="crop"
        ),
        helper.make_node("Slice", ["x", "start", "end", "axis", "step"], ["s"], name="back"),
        helper.make_node(
            "Resize",
            ["x", "", "near"],
            ["k"],
            mode="nearest",
            nearest_mode="floor",
            coordinate_transformation_mode="asymmetric",
            name="still",
        ),
    ]
    constants = {
        "sizes": np.int64([1, 1, 5, 4]),
        "w": np.random.default_rng(0).standard_normal((4, 3)).astype(np.float32),
        "roi": np.float32([0, 0, 0.25, 0.25, 1, 1, 0.75, 1.25]),
        "scales": np.float32([1, 1, 0.5, 1]),
        "near": np.float32([1, 1, 1.001, 1.001]),
        "start": np.int64([-1]),
        "end": np.int64([2**31 - 1]),
        "axis": np.int64([3]),
        "step": np.int64([-2]),
    }
    model = save(tmp_path / "m.onnx", nodes, {"x": [1, 1, 160, 120]}, ["y", "c", "s", "k"], constants, opset=18)
    warnings, document = transform(model)
    assert document["comparison"]["passed"] and document["comparison"]["compared"] == 3
    assert warnings.count("it is compared as ONNX defines it") == 2 and all(
        f"output '{name}' is not compared" in warnings for name in "ck"
    )
    for name in ("small", "crop", "back", "still"):
        assert f"node '{name}'" in warnings
    text = check(run_tool("tessera", "run", model, cwd=tmp_path))
    assert "verdict: PASS" in text and "node 'small'" in text
