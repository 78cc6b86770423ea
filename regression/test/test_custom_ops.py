# SPDX-License-Identifier: Apache-2.0
"""Tests operators that a library of the user computes: from the ONNX file to the run. bmruntime/cts/CustomOps_test.cpp
tests the runtime alone, examples/custom-op a network in INT8 on x86 and an NPU."""
from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any, Callable, Sequence

import numpy as np
import pytest
from case_file import REGRESSION
from conftest import check, run_tool

import onnx
from onnx import TensorProto, helper, numpy_helper

INCLUDE = REGRESSION.parent / "bmodel_format" / "include"
F16 = 1  # TESSERA_F16


def build(source: Path, folder: Path, *flags: str, name: str = "ops") -> Path:
    library = folder / f"lib{name}.so"
    command = ["cc", "-O1", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", f"-I{INCLUDE}", *flags, "-o", library]
    check(subprocess.run([*command, source, "-lm"], capture_output=True, text=True))
    return library


def library(folder: Path, *flags: str, name: str = "ops") -> Path:
    return build(REGRESSION / "test" / "custom_ops.c", folder, *flags, name=name)


def network(path: Path, element: int = TensorProto.FLOAT, **attributes: Any) -> Path:
    """Writes a network with test::Describe between a Relu and a convolution."""
    random = np.random.default_rng(1)
    dtype = np.float16 if element == TensorProto.FLOAT16 else np.float32
    weights = numpy_helper.from_array(random.normal(0, 1, (2, 3, 3, 3)).astype(dtype), "w")
    nodes = [
        helper.make_node("Relu", ["x"], ["r"], "first"),
        helper.make_node("Describe", ["r"], ["copy", "shape"], "describer", domain="test", **attributes),
        helper.make_node("Conv", ["copy", "w"], ["y"], "last"),
    ]
    graph = helper.make_graph(
        nodes,
        "net",
        [helper.make_tensor_value_info("x", element, [1, 3, 8, 8])],
        [
            helper.make_tensor_value_info("y", element, [1, 2, 6, 6]),
            helper.make_tensor_value_info("copy", element, [1, 3, 8, 8]),
            helper.make_tensor_value_info("shape", TensorProto.INT64, [4]),
        ],
        [weights],
    )
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("test", 2)]
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=8), path)
    return path


def transform(model: Path, *flags: object) -> "subprocess.CompletedProcess[str]":
    return run_tool("model_transform", "--model_def", model, "--mlir", model.with_name("net_top.mlir"), *flags)


def deploy(folder: Path, *flags: object) -> "subprocess.CompletedProcess[str]":
    return run_tool("model_deploy", "--mlir", folder / "net_top.mlir", "--model", folder / "net.bmodel", *flags)


def runner(folder: Path, *flags: object) -> "subprocess.CompletedProcess[str]":
    words = ("--model", folder / "net.bmodel", "--input", folder / "in.npz", "--output", folder / "out.npz")
    return run_tool("model_runner", *words, *flags)


@pytest.mark.parametrize(
    "element, quantize, chip", [("FLOAT", "F32", "x86"), ("FLOAT", "BF16", "npu-base"), ("FLOAT16", "F32", "x86")]
)
def test_from_onnx_to_the_run(tmp_path: Path, element: str, quantize: str, chip: str) -> None:
    ops = library(tmp_path)
    attributes = {"dtype": F16} if element == "FLOAT16" else {}
    model = network(tmp_path / "net.onnx", getattr(TensorProto, element), **attributes)
    printed = check(transform(model, "--custom_ops", ops))
    assert "not compared with onnxruntime, which does not know the custom operators of this model: test::" in printed
    check(deploy(tmp_path, "--custom_ops", ops, "--chip", chip, "--quantize", quantize))
    dtype = np.float16 if element == "FLOAT16" else np.float32
    x = (np.arange(192).reshape(1, 3, 8, 8) / 64 - 1).astype(dtype)  # exact in 8 bits of mantissa
    np.savez(tmp_path / "in.npz", x=x)
    check(runner(tmp_path, "--custom_ops", ops))
    with np.load(tmp_path / "out.npz") as out:
        assert np.array_equal(out["copy"], np.maximum(x, 0)) and out["copy"].dtype == dtype
        assert out["shape"].tolist() == [1, 3, 8, 8]


def test_a_filter_computes_what_numpy_does(tmp_path: Path) -> None:
    example = REGRESSION.parent / "examples" / "custom-op"
    ops = build(example / "bilateral.c", tmp_path)
    check(run_tool("tessera-python", example / "network.py", cwd=tmp_path))
    flags = ("--custom_ops", ops, "--test_result", tmp_path / "all.npz")
    check(transform(tmp_path / "net.onnx", *flags))
    with np.load(tmp_path / "all.npz") as tensors:
        features, smooth = tensors["features"].astype(np.float64), tensors["smooth"]
    total, weights = np.zeros_like(features), np.zeros_like(features)
    padded = np.pad(features, ((0, 0), (0, 0), (2, 2), (2, 2)), constant_values=np.nan)
    for v in range(5):
        for u in range(5):
            other = padded[:, :, v : v + 16, u : u + 16]
            space = ((v - 2) ** 2 + (u - 2) ** 2) / (2 * 1.5**2)
            weight = np.where(np.isnan(other), 0, np.exp(-space - (other - features) ** 2 / (2 * 0.5**2)))
            total, weights = total + weight * np.nan_to_num(other), weights + weight
    np.testing.assert_allclose(smooth, total / weights, rtol=1e-5, atol=1e-6)


def test_an_unknown_operator_is_named(tmp_path: Path) -> None:
    result = transform(network(tmp_path / "net.onnx"))
    assert result.returncode == 4
    for part in ("Describe (domain test, opset 2)", "'describer'", "--custom_ops", "docs/custom-operators.md"):
        assert part in result.stderr


def test_a_rejected_node_is_named(tmp_path: Path) -> None:
    result = transform(network(tmp_path / "net.onnx", dtype=F16), "--custom_ops", library(tmp_path))
    assert result.returncode == 1 and "describer" in result.stderr
    assert "'test::Describe' does not take its inputs: x has type 0" in result.stderr


def test_an_attribute_that_json_cannot_hold_is_named(tmp_path: Path) -> None:
    tensor = numpy_helper.from_array(np.zeros(2, np.float32), "t")
    result = transform(network(tmp_path / "net.onnx", table=tensor), "--custom_ops", library(tmp_path))
    assert result.returncode == 4 and "attribute 'table'" in result.stderr and "pass tensors as inputs" in result.stderr


def test_open_sizes_of_a_rule_for_numbers_are_rejected_with_advice(tmp_path: Path) -> None:
    model = onnx.load(network(tmp_path / "net.onnx"))
    model.graph.input[0].type.tensor_type.shape.dim[0].dim_param = "batch"
    onnx.save(model, tmp_path / "net.onnx")
    result = transform(tmp_path / "net.onnx", "--custom_ops", library(tmp_path), "--dims", "batch=1..4")
    assert result.returncode == 4
    for part in ("describer", "input 0, tensor 'r'", "--input_shapes", "TESSERA_CUSTOM_OP_OPEN_SIZES"):
        assert part in result.stderr


def framing(path: Path, **attributes: Any) -> Path:
    """Writes a network with test::Frames between a Relu and a sum over each frame; its sizes are open."""
    nodes = [
        helper.make_node("Relu", ["x"], ["r"], "first"),
        helper.make_node("Frames", ["r"], ["frames", "at"], "framer", domain="test", **attributes),
        helper.make_node("ReduceSum", ["frames", "axis"], ["y"], "last", keepdims=0),
    ]
    graph = helper.make_graph(
        nodes,
        "net",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", "n"])],
        [
            helper.make_tensor_value_info("y", TensorProto.FLOAT, None),
            helper.make_tensor_value_info("frames", TensorProto.FLOAT, None),
            helper.make_tensor_value_info("at", TensorProto.INT64, None),
        ],
        [numpy_helper.from_array(np.array([2]), "axis")],
    )
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("test", 2)]
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=8), path)
    return path


Array = np.ndarray[Any, Any]
Computed = Callable[[Array], dict[str, Array]]


def framed(x: Array) -> dict[str, Array]:
    batch, n = x.shape
    starts = np.arange(0, n - 3, 3)
    frames = np.stack([np.maximum(x, 0)[:, s : s + 4] for s in starts], 1) if len(starts) else np.zeros((batch, 0, 4))
    at = (np.arange(batch)[:, None] * n + starts).reshape(-1)
    return {"y": frames.sum(2), "frames": frames, "at": at}


# Operators stay registered until a process ends, so each library has its own. Prints one error per line, "" for none.
RUN_ALL = """
import sys
import numpy as np
import tessera.runtime as rt
folder, library = sys.argv[1:]
net = rt.load(folder + "/net.bmodel", custom_ops=[library]).net()
results = {}
for key, x in np.load(folder + "/in.npz").items():
    try:
        results.update({f"{key} {name}": np.array(y) for name, y in net({"x": x}).items()})
        print()
    except rt.Error as error:
        print(error)
np.savez(folder + "/out.npz", **results)
"""


def check_runs(
    folder: Path, ops: Path, shapes: Sequence[Sequence[int]], errors: Sequence[str], computed: Computed = framed
) -> None:
    """Runs a network with inputs of these shapes in one context. Each error is part of a message; "" if the results
    must be those of |computed|."""
    random = np.random.default_rng(1)
    inputs = {str(i): random.integers(-8, 8, shape).astype(np.float32) for i, shape in enumerate(shapes)}
    np.savez(folder / "in.npz", **inputs)
    lines = check(run_tool("tessera-python", "-c", RUN_ALL, folder, ops)).splitlines()
    with np.load(folder / "out.npz") as out:
        for (key, x), line, error in zip(inputs.items(), lines, errors, strict=True):
            assert error in line and bool(error) == bool(line), line
            for name, expected in computed(x).items():
                assert error or np.array_equal(out[f"{key} {name}"], expected), (x.shape, name)


SIZES = [(1, 4), (3, 17), (4, 40), (2, 6), (3, 17), (1, 3)]


@pytest.mark.parametrize("chip, flags", [("x86", ()), ("npu-base", ("--buckets", "n=16,40,batch=4"))])
def test_open_sizes(tmp_path: Path, chip: str, flags: Sequence[str]) -> None:
    ops = library(tmp_path)
    check(transform(framing(tmp_path / "net.onnx"), "--custom_ops", ops, "--dims", "batch=1..4,n=3..40"))
    check(deploy(tmp_path, "--custom_ops", ops, "--chip", chip, *flags))
    check_runs(tmp_path, ops, SIZES, [""] * len(SIZES))
    check(run_tool("tessera-opt", tmp_path / "net_top.mlir", "--top-bind-dims=dims=batch=2,n=10"))


def test_known_sizes_of_a_rule_with_expressions(tmp_path: Path) -> None:
    ops = library(tmp_path)
    check(transform(framing(tmp_path / "net.onnx"), "--custom_ops", ops, "--input_shapes", "[[2,10]]"))
    check(deploy(tmp_path, "--custom_ops", ops))
    check_runs(tmp_path, ops, [(2, 10)], [""])


def test_a_rule_that_disagrees_at_a_size(tmp_path: Path) -> None:
    ops = library(tmp_path, "-DODD=17")
    check(transform(framing(tmp_path / "net.onnx"), "--custom_ops", ops, "--dims", "batch=1..4,n=3..40"))
    check(deploy(tmp_path, "--custom_ops", ops))
    error = "'framer': the shape rule of custom operator 'test::Frames' does not give output 0"
    check_runs(tmp_path, ops, [(2, 16), (2, 17), (2, 17), (2, 18)], ["", error, error, ""])


@pytest.mark.parametrize("operation", ["+ 1", "/ 3"])
def test_a_rule_that_computes_with_open_sizes_itself(tmp_path: Path, operation: str) -> None:
    ops = library(tmp_path, f"-DBY_HAND={operation}")
    result = transform(framing(tmp_path / "net.onnx"), "--custom_ops", ops, "--dims", "batch=1..4,n=3..40")
    assert result.returncode == 1 and "framer" in result.stderr and "tessera_size_add" in result.stderr


def selecting(path: Path, rows: "int | str", columns: "int | str", **attributes: Any) -> Path:
    """Writes a network with test::Positives, which finds sizes, between a Neg and a sum over each row."""
    nodes = [
        helper.make_node("Neg", ["x"], ["r"], "first"),
        helper.make_node("Positives", ["r"], ["found", "at", "twice"], "selector", domain="test", **attributes),
        helper.make_node("ReduceSum", ["found", "axis"], ["y"], "last", keepdims=0),
    ]
    graph = helper.make_graph(
        nodes,
        "net",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [rows, columns])],
        [
            *(helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in ("y", "found")),
            *(helper.make_tensor_value_info(name, TensorProto.INT64, None) for name in ("at", "twice")),
        ],
        [numpy_helper.from_array(np.array([1]), "axis")],
    )
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("test", 2)]
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=8), path)
    return path


def selected(x: Array) -> dict[str, Array]:
    at = np.nonzero(-x[0] > 0)[0]
    return {"y": -x[:, at].sum(1), "found": -x[:, at], "at": at, "twice": np.repeat(at, 2)}


@pytest.mark.parametrize("chip", ["x86", "npu-base"])
def test_sizes_that_a_run_finds(tmp_path: Path, chip: str) -> None:
    ops = library(tmp_path)
    check(transform(selecting(tmp_path / "net.onnx", 3, 8), "--custom_ops", ops, "--dims", "auto"))
    check(deploy(tmp_path, "--custom_ops", ops, "--chip", chip))
    check_runs(tmp_path, ops, [(3, 8)] * 6, [""] * 6, selected)


def test_sizes_that_a_run_finds_in_open_ones(tmp_path: Path) -> None:
    ops = library(tmp_path)
    check(
        transform(selecting(tmp_path / "net.onnx", "batch", "n"), "--custom_ops", ops, "--dims", "batch=1..4,n=0..40")
    )
    check(deploy(tmp_path, "--custom_ops", ops))
    shapes = [(1, 4), (4, 40), (3, 17), (2, 0), (1, 1)]
    check_runs(tmp_path, ops, shapes, [""] * len(shapes), selected)


def test_found_sizes_outside_their_range(tmp_path: Path) -> None:
    ops = library(tmp_path)
    net = selecting(tmp_path / "net.onnx", 1, 8, more=1000)
    check(transform(net, "--custom_ops", ops, "--dims", "found.1=0..5", "--not_inference"))
    check(deploy(tmp_path, "--custom_ops", ops, "--skip_validation"))
    check_runs(tmp_path, ops, [(1, 8)], ["found.1"], selected)


def test_found_sizes_that_are_not_described(tmp_path: Path) -> None:
    net = selecting(tmp_path / "net.onnx", 1, 8)
    result = transform(net, "--custom_ops", library(tmp_path))
    assert result.returncode == 4 and "selector" in result.stderr and "--dims found.1=0..100" in result.stderr
    result = transform(net, "--custom_ops", library(tmp_path, "-DCOUNTS=TESSERA_F32", name="floats"), "--dims", "auto")
    assert result.returncode == 1 and "selector" in result.stderr and "TESSERA_CUSTOM_OP_FINDS_SIZES" in result.stderr


def test_errors_at_load_and_in_a_run(tmp_path: Path) -> None:
    ops = library(tmp_path)
    check(transform(network(tmp_path / "net.onnx", fails=1), "--custom_ops", ops, "--not_inference"))
    check(deploy(tmp_path, "--skip_validation"))  # compiles without the library
    np.savez(tmp_path / "in.npz", x=np.zeros((1, 3, 8, 8), np.float32))
    for flags, text in (
        ((), "node 'describer' calls the custom operator 'test::Describe', which is not registered"),
        (("--custom_ops", ops), "node 'describer': custom operator 'test::Describe' failed: the node asks for it"),
        (("--custom_ops", library(tmp_path, "-DRANK=2", name="other")), "does not give output 1 the type and shape"),
        (("--custom_ops", library(tmp_path, "-DABI=9", name="abi")), "version 9 of tessera_custom_op.h"),
        (("--custom_ops", tmp_path / "absent.so"), "absent.so"),
        (("--custom_ops", tmp_path / "in.npz"), "cannot load custom operators"),
    ):
        result = runner(tmp_path, *flags)
        assert result.returncode == 1 and text in result.stderr, result.stderr
