# SPDX-License-Identifier: Apache-2.0
"""Tests decoders compiled once for all numbers of new and earlier tokens, in the forms in which exporters write them,
against onnxruntime.
"""
from __future__ import annotations

from pathlib import Path
from typing import Callable, Mapping

import numpy as np
import onnx
import onnxruntime
import pytest
from conftest import check, run_tool
from onnx import TensorProto, helper, numpy_helper

Arrays = dict[str, np.ndarray]
WIDTH = 8
RNG = np.random.default_rng(11)


class Graph:
    """A network under construction."""

    def __init__(self) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.constants: Arrays = {}

    def add(self, kind: str, *inputs: object, **attributes: object) -> str:
        """Adds a node and returns the name of its result. Inputs that are not names become constants."""
        names = []
        for value in inputs:
            if not isinstance(value, str):
                array = np.asarray(value)
                value = f"c{len(self.constants)}"
                self.constants[value] = array
            names.append(value)
        output = f"{kind}{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, names, [output], name=output, **attributes))
        return output

    def size(self, value: str, axis: int) -> str:
        """Returns dim `axis` of `value` as a scalar."""
        return self.add("Squeeze", self.add("Shape", value, start=axis, end=axis + 1))

    def save(self, path: Path, inputs: Mapping[str, list[int | str]], outputs: Mapping[str, str]) -> None:
        self.nodes += [helper.make_node("Identity", [value], [name]) for name, value in outputs.items()]
        types = dict.fromkeys(("attention_mask", "tokens", "positions"), TensorProto.INT64)
        graph = helper.make_graph(
            self.nodes,
            "decoder",
            [helper.make_tensor_value_info(n, types.get(n, TensorProto.FLOAT), s) for n, s in inputs.items()],
            [helper.make_tensor_value_info(n, TensorProto.FLOAT, None) for n in outputs],
            [numpy_helper.from_array(array, name) for name, array in self.constants.items()],
        )
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8), path)


def positions(g: Graph) -> tuple[str, str]:
    """Returns the positions of the new tokens and those of all tokens."""
    past, seq = g.size("past", 1), g.size("x", 1)
    queries = g.add("Add", g.add("Range", np.int64(0), seq, np.int64(1)), past)
    return queries, g.add("Range", np.int64(0), g.add("Add", past, seq), np.int64(1))


def causal(g: Graph, queries: str, keys: str) -> str:
    return g.add("LessOrEqual", g.add("Unsqueeze", keys, [0, 1]), g.add("Unsqueeze", queries, [0, 2]))


def of_tuples(g: Graph) -> str:
    """The mask as torch's newer exporter writes it: pairs of sequence and key select elements of attention_mask."""
    queries, keys = positions(g)
    rows = g.add("Unsqueeze", g.add("Range", np.int64(0), g.size("x", 0), np.int64(1)), [1, 2])
    columns = g.add("Unsqueeze", keys, [0, 1])
    shape = g.add("Shape", g.add("Max", rows, columns))
    pair = [g.add("Unsqueeze", g.add("Expand", index, shape), [-1]) for index in (rows, columns)]
    kept = g.add("GatherND", g.add("Cast", "attention_mask", to=TensorProto.BOOL), g.add("Concat", *pair, axis=-1))
    return g.add("And", causal(g, queries, keys), kept)


def of_flat_indices(g: Graph) -> str:
    """The mask as torch's older exporter writes it: a gather from the elements of attention_mask."""
    queries, keys = positions(g)
    rows = g.add("Unsqueeze", g.add("Range", np.int64(0), g.size("x", 0), np.int64(1)), [1, 2])
    flat = g.add("Reshape", g.add("Cast", "attention_mask", to=TensorProto.BOOL), np.array([-1]))
    indices = g.add("Add", g.add("Unsqueeze", keys, [0, 1]), g.add("Mul", rows, g.size("attention_mask", 1)))
    return g.add("And", causal(g, queries, keys), g.add("Gather", flat, indices))


def of_comparison(g: Graph) -> str:
    """The mask as optimum writes it: attention_mask meets the causal mask, so that total is past + seq."""
    queries, keys = positions(g)
    kept = g.add("Unsqueeze", g.add("Cast", "attention_mask", to=TensorProto.BOOL), [1])
    return g.add("And", causal(g, queries, keys), kept)


def save_decoder(path: Path, mask: Callable[[Graph], str]) -> None:
    """Saves attention of one head over the earlier tokens `past` and the new ones `x`."""
    g = Graph()
    weights = [RNG.standard_normal([WIDTH, WIDTH]).astype(np.float32) for _ in range(2)]
    allowed = mask(g)
    bias = g.add("Where", allowed, np.float32(0), np.float32(-1e9))
    present = g.add("Concat", "past", g.add("MatMul", "x", weights[0]), axis=1)
    scores = g.add("MatMul", g.add("MatMul", "x", weights[1]), g.add("Transpose", present, perm=[0, 2, 1]))
    powers = g.add("Softmax", g.add("Add", scores, bias), axis=-1)
    outputs = {"y": g.add("MatMul", powers, present), "present": present}
    shapes: dict[str, list[int | str]] = {
        "x": ["batch", "seq", WIDTH],
        "past": ["batch", "past", WIDTH],
        "attention_mask": ["batch", "total"],
    }
    g.save(path, shapes, outputs)


def decoder_inputs(batch: int, seq: int, past: int) -> Arrays:
    mask = np.ones([batch, past + seq], np.int64)
    mask[1:, 0] = 0
    shapes = {"x": [batch, seq, WIDTH], "past": [batch, past, WIDTH]}
    arrays = {name: RNG.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()}
    return {**arrays, "attention_mask": mask}


def compile_open(path: Path, dims: str) -> Callable[[Arrays], Mapping[str, np.ndarray]]:
    mlir, model = path.with_suffix(".mlir"), path.with_suffix(".bmodel")
    check(run_tool("tessera-compile", "import", "--onnx", path, "--output", mlir, "--dims", dims))
    check(run_tool("tessera-compile", "deploy", "--mlir", mlir, "--output", model))
    import tessera.runtime as runtime

    return runtime.load(str(model), threads=2).net()


def compare(net: Callable[[Arrays], Mapping[str, np.ndarray]], path: Path, inputs: Arrays, tolerance: float) -> None:
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    got = net(inputs)
    for name, wanted in zip(names, session.run(names, inputs)):
        np.testing.assert_allclose(got[name], wanted, rtol=tolerance, atol=tolerance, err_msg=name)


@pytest.mark.parametrize("mask", (of_tuples, of_flat_indices, of_comparison))
def test_masks(tmp_path: Path, mask: Callable[[Graph], str]) -> None:
    path = tmp_path / "n.onnx"
    save_decoder(path, mask)
    net = compile_open(path, "batch=1..3,seq=1..24,past=0..40,total=1..64")
    for batch, seq, past in ((1, 1, 0), (1, 24, 0), (1, 1, 40), (3, 24, 40), (2, 7, 3)):
        compare(net, path, decoder_inputs(batch, seq, past), 1e-5)
    wrong = decoder_inputs(1, 4, 3)
    wrong["past"] = wrong["past"][:, :, 1:]
    with pytest.raises(ValueError):
        net(wrong)


def test_masks_of_wrong_length(tmp_path: Path) -> None:
    path = tmp_path / "n.onnx"
    save_decoder(path, of_comparison)
    net = compile_open(path, "batch=1..1,seq=1..8,past=0..8,total=1..16")
    for length in (1, 6, 8):
        inputs = {**decoder_inputs(1, 4, 3), "attention_mask": np.ones([1, length], np.int64)}
        with pytest.raises(ValueError, match=r"'past \+ seq'\) of input 'attention_mask' is \d, .* require 7"):
            net(inputs)


def test_sizes_as_positions(tmp_path: Path) -> None:
    """A constant table is read at a position that is a size, and a size is added to data."""
    g = Graph()
    table = RNG.standard_normal([40, WIDTH]).astype(np.float32)
    past = g.add("Shape", "past", start=1, end=2)
    row = g.add("Slice", table, past, g.add("Add", past, np.array([1])), np.array([0]))
    number = g.add("Cast", g.add("Sub", past, np.array([9])), to=TensorProto.FLOAT)
    shapes: dict[str, list[int | str]] = {"x": [1, 1, WIDTH], "past": [1, "past", WIDTH]}
    g.save(tmp_path / "n.onnx", shapes, {"y": g.add("Add", g.add("Add", "x", row), number), "size": number})
    net = compile_open(tmp_path / "n.onnx", "past=0..39")
    for length in (0, 1, 39, 17):
        inputs = decoder_inputs(1, 1, length)
        del inputs["attention_mask"]
        compare(net, tmp_path / "n.onnx", inputs, 0)


def test_range_of_sum(tmp_path: Path) -> None:
    """A range that --dims leaves out follows from the other sizes; a narrower one limits the runs."""
    path = tmp_path / "n.onnx"
    save_decoder(path, of_comparison)
    compare(compile_open(path, "batch=1..2,seq=1..8,past=0..8"), path, decoder_inputs(2, 8, 8), 1e-5)
    net = compile_open(path, "batch=1..1,seq=1..8,past=0..8,total=2..12")
    compare(net, path, decoder_inputs(1, 4, 8), 1e-5)
    for seq, past in ((1, 0), (8, 5)):
        with pytest.raises(ValueError, match=r"'past \+ seq'\) of input 'attention_mask' .* from 2 to 12"):
            net(decoder_inputs(1, seq, past))
    command = ("tessera-compile", "import", "--onnx", path, "--output", tmp_path / "n.mlir", "--dims", "seq=1..8")
    result = run_tool(*command)
    assert result.returncode != 0
    assert "dims are open without a range" in result.stdout and "past=" in result.stdout
