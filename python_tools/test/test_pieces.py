# SPDX-License-Identifier: Apache-2.0
"""Tests single tensors: onnxruntime in pieces gives the same results as the whole graph, and files and spools return
the stored tensors."""
from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tessera import onnx_pieces, onnx_runner, safetensors_io

onnx = pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")


def network(path: Path) -> Path:
    """Writes a chain of matmuls with a long skip connection, an If that reads tensors of the outer graph, and a
    constant that two pieces read."""
    from onnx import TensorProto, helper, numpy_helper

    def value(name: str, shape: list) -> object:
        return helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)

    then = helper.make_graph([helper.make_node("Add", ["t1", "w"], ["inner"])], "then", [], [value("inner", [4, 4])])
    other = helper.make_graph([helper.make_node("Identity", ["t2"], ["outer"])], "else", [], [value("outer", [4, 4])])
    nodes = [helper.make_node("Relu", ["x"], ["t0"])]
    nodes += [helper.make_node("MatMul", [f"t{i}", "w"], [f"t{i + 1}"]) for i in range(6)]
    nodes += [
        helper.make_node("ReduceSum", ["x"], ["sum"], keepdims=0),
        helper.make_node("Greater", ["sum", "zero"], ["flag"]),
        helper.make_node("If", ["flag"], ["chosen"], then_branch=then, else_branch=other),
        helper.make_node("Add", ["t6", "t0"], ["skip"]),
        helper.make_node("Add", ["skip", "chosen"], ["y"]),
    ]
    weight = np.random.default_rng(0).normal(0, 0.5, (4, 4)).astype(np.float32)
    graph = helper.make_graph(
        nodes,
        "g",
        [value("x", [4, 4])],
        [value("y", [4, 4])],
        [numpy_helper.from_array(weight, "w"), numpy_helper.from_array(np.float32(0), "zero")],
    )
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), str(path))
    return path


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("budget", [1, 150, 10_000])
def test_pieces_give_what_the_whole_gives(tmp_path: Path, budget: int, sign: int) -> None:
    path = network(tmp_path / "m.onnx")
    x = sign * np.abs(np.random.default_rng(1).normal(size=(4, 4))).astype(np.float32)
    whole = onnx_runner.OnnxModel(path, every_tensor=True, optimise=False)
    want = whole.run({"x": x})
    sizes = {name: array.nbytes for name, array in want.items()}
    got = dict(onnx_pieces.run(path, {"x": x}, sizes, budget=budget))
    assert got.keys() == want.keys() and len(got) == 12
    assert all(got[name].dtype == want[name].dtype and np.array_equal(got[name], want[name]) for name in want)
    some = dict(onnx_pieces.run(path, {"x": x}, {"t3": 64, "y": 64}, budget=64))
    assert set(some) == {"t3", "y"} and np.array_equal(some["y"], want["y"])


def test_a_large_check_goes_by_pieces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = network(tmp_path / "m.onnx")
    x = np.ones((4, 4), np.float32)
    model = onnx_runner.OnnxModel(path, every_tensor=True, optimise=False)
    want = model.run({"x": x})
    monkeypatch.setattr(onnx_pieces, "BUDGET", 100)
    monkeypatch.setattr(onnx_runner.OnnxModel, "run", lambda *_: pytest.fail("it ran as a whole"))
    got = dict(model.each({"x": x}, {name: array.nbytes for name, array in want.items()}))
    assert all(np.array_equal(got[name], want[name]) for name in want)


def test_files_and_spools_give_back_what_was_put_in(tmp_path: Path) -> None:
    tensors = {
        "a/b": np.arange(5000, dtype=np.float32).reshape(50, 100),
        "scalar": np.array(7, np.int64),
        "none": np.zeros((0, 3), np.uint8),
        "flags": np.array([True, False]),
    }
    safetensors_io.save(tmp_path / "t.safetensors", {**tensors, "half": np.float32([1.5, -2])}, bfloat16=["half"])
    file, spool = safetensors_io.MappedTensors(tmp_path / "t.safetensors"), safetensors_io.Spool()
    (tmp_path / "t.safetensors").unlink()
    for name, array in tensors.items():
        spool.put(name, array)
    for name, array in tensors.items():
        for side in (file, spool):
            assert (
                side[name].dtype == array.dtype
                and side[name].shape == array.shape
                and np.array_equal(side[name], array)
            )
    assert file["half"].tolist() == [1.5, -2] and file.sizes()["a/b"] == 20000 and list(spool) == list(tensors)
    spool.close()
