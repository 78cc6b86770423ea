# SPDX-License-Identifier: Apache-2.0
"""Tests networks whose sizes are known at run time: one compile, then runs at several sizes against onnxruntime (f32)
or against the file that was compiled for this size alone (integers).
"""
from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Callable, Mapping, Sequence

import numpy as np
import onnx
import onnxruntime
import pytest
from conftest import check, run_tool
from onnx import TensorProto, helper, numpy_helper

Nodes = tuple[list[onnx.NodeProto], dict[str, np.ndarray]]
RNG = np.random.default_rng(7)


def weights(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(np.float32) / np.sqrt(np.prod(shape[1:]))


def save(
    path: Path, nodes: Nodes, shapes: Sequence[int | str] | Mapping[str, Sequence[int | str]], output_rank: int
) -> None:
    """Saves a network of f32 inputs; the shape of a network with one input stands for that of `x`."""
    inputs = shapes if isinstance(shapes, Mapping) else {"x": shapes}
    graph = helper.make_graph(
        nodes[0],
        path.stem,
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in inputs.items()],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [f"y{d}" for d in range(output_rank)])],
        [numpy_helper.from_array(array, name) for name, array in nodes[1].items()],
    )
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)


def relu_add() -> Nodes:
    return [helper.make_node("Relu", ["x"], ["r"]), helper.make_node("Add", ["r", "x"], ["y"])], {}


def convolutions() -> Nodes:
    nodes = [
        helper.make_node("Conv", ["x", "w0", "b0"], ["a"], kernel_shape=[3, 3], pads=[1, 1, 1, 1], name="first"),
        helper.make_node("Relu", ["a"], ["r"]),
        helper.make_node("Conv", ["r", "w1"], ["c"], kernel_shape=[3, 3], pads=[1, 1, 1, 1], name="second"),
        helper.make_node("Add", ["c", "r"], ["s"]),
        helper.make_node("Conv", ["s", "w2"], ["d"], kernel_shape=[3, 3], strides=[2, 2], group=32, name="depthwise"),
        helper.make_node("MaxPool", ["d"], ["p"], kernel_shape=[2, 2], strides=[2, 2]),
        helper.make_node("GlobalAveragePool", ["p"], ["g"]),
        helper.make_node("Flatten", ["g"], ["f"]),
        helper.make_node("Gemm", ["f", "w3", "b3"], ["l"]),
        helper.make_node("Softmax", ["l"], ["y"], axis=1),
    ]
    return nodes, {
        "w0": weights(32, 3, 3, 3),
        "b0": weights(32, 1).reshape(32),
        "w1": weights(32, 32, 3, 3),
        "w2": weights(32, 1, 3, 3),
        "w3": weights(32, 10),
        "b3": weights(10, 1).reshape(10),
    }


def concatenation() -> Nodes:
    """Copies with symbolic sizes and offsets."""
    nodes = [
        helper.make_node("Transpose", ["x"], ["t"], perm=[0, 2, 1]),
        helper.make_node("Transpose", ["t"], ["u"], perm=[0, 2, 1]),
        helper.make_node("Exp", ["u"], ["e"]),
        helper.make_node("Concat", ["x", "e", "x"], ["c"], axis=0),
        helper.make_node("Pad", ["c", "pads"], ["p"]),
        helper.make_node("Slice", ["p", "starts", "ends", "axes"], ["s"]),
        helper.make_node("Tanh", ["s"], ["y"]),
    ]
    return nodes, {
        "pads": np.array([1, 0, 0, 2, 0, 1], np.int64),
        "starts": np.array([1], np.int64),
        "ends": np.array([2**40], np.int64),
        "axes": np.array([0], np.int64),
    }


def resizes() -> Nodes:
    """Resizes of pictures of one size, in every mode: their number alone is open."""
    nodes = [
        helper.make_node("Resize", ["x", "", "twice"], ["a"], mode="linear"),
        helper.make_node("Conv", ["a", "w0"], ["b"], kernel_shape=[3, 3], pads=[1, 1, 1, 1]),
        helper.make_node("Resize", ["b", "", "more"], ["c"], mode="nearest"),
        helper.make_node("Resize", ["c", "", "half"], ["d"], mode="cubic"),
        helper.make_node("Conv", ["d", "w1"], ["e"], kernel_shape=[1, 1]),
        helper.make_node("Resize", ["e", "", "twice"], ["y"], mode="linear"),
    ]
    factors = {"twice": 2, "more": 1.5, "half": 0.5}
    constants = {name: np.array([1, 1, factor, factor], np.float32) for name, factor in factors.items()}
    return nodes, {"w0": weights(16, 3, 3, 3), "w1": weights(5, 16, 1, 1), **constants}


def pyramid() -> Nodes:
    """Levels of an image that are resized, pooled and added."""

    def resize(x: str, y: str, scales: str, coordinates: str, rounding: str) -> onnx.NodeProto:
        modes = {"coordinate_transformation_mode": coordinates, "nearest_mode": rounding}
        return helper.make_node("Resize", [x, "", scales], [y], mode="nearest", **modes)

    half = {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 1, 1, 1]}
    nodes = [
        helper.make_node("Conv", ["x", "w0"], ["a"], **half),
        helper.make_node("Conv", ["a", "w1"], ["b"], **half),
        resize("b", "u", "twice", "asymmetric", "floor"),
        helper.make_node("Add", ["a", "u"], ["s"]),
        helper.make_node("GlobalAveragePool", ["s"], ["g"]),
        helper.make_node("Mul", ["s", "g"], ["m"]),
        helper.make_node("ConvTranspose", ["m", "w2"], ["tiles"], kernel_shape=[2, 2], strides=[2, 2]),
        helper.make_node("ConvTranspose", ["m", "w3"], ["phases"], output_padding=[1, 1], **half),
        helper.make_node("ConvTranspose", ["phases", "w3"], ["spread"], kernel_shape=[3, 3], pads=[1, 1, 1, 1]),
        helper.make_node("Add", ["tiles", "spread"], ["r"]),
        helper.make_node("ReduceMean", ["r"], ["mean"], axes=[3], keepdims=1),
        helper.make_node("Sub", ["r", "mean"], ["centred"]),
        resize("centred", "y", "thrice", "half_pixel", "round_prefer_floor"),
    ]
    return nodes, {
        "w0": weights(12, 3, 3, 3),
        "w1": weights(12, 12, 3, 3),
        "w2": weights(12, 12, 2, 2),
        "w3": weights(12, 12, 3, 3),
        "twice": np.array([1, 1, 2, 2], np.float32),
        "thrice": np.array([1, 1, 3, 3], np.float32),
    }


NETWORKS: dict[str, tuple[Callable[[], Nodes], list[int | str], int]] = {
    "relu_add": (relu_add, ["batch", 3, 8, 8], 4),
    "convolutions": (convolutions, ["batch", 3, 18, 18], 2),
    "concatenation": (concatenation, ["batch", 5, 3], 3),
    "resizes": (resizes, ["batch", 3, 8, 8], 4),
}


def import_at(folder: Path, name: str, *flags: object) -> Path:
    """Imports folder/NAME.onnx."""
    mlir = folder / f"{name}_top.mlir"
    check(run_tool("tessera-compile", "import", "--onnx", folder / f"{name}.onnx", "--output", mlir, *flags))
    return mlir


def compile_at(folder: Path, name: str, *flags: object) -> Path:
    """Compiles folder/NAME.onnx for this machine."""
    mlir, model = import_at(folder, name, *flags), folder / f"{name}.bmodel"
    check(run_tool("tessera-compile", "deploy", "--mlir", mlir, "--output", model))
    return model


@pytest.mark.parametrize("name", NETWORKS)
def test_batches(tmp_path: Path, name: str) -> None:
    nodes, shape, rank = NETWORKS[name]
    save(tmp_path / f"{name}.onnx", nodes(), shape, rank)
    model = compile_at(tmp_path, name, "--dims", "batch=1..8")
    import tessera.runtime as runtime

    net = runtime.load(str(model), threads=2).net()
    session = onnxruntime.InferenceSession(str(tmp_path / f"{name}.onnx"), providers=["CPUExecutionProvider"])
    for batch in (1, 3, 8, 7, 1):
        x = RNG.standard_normal([batch, *shape[1:]]).astype(np.float32)
        got, wanted = net({"x": x})["y"], session.run(None, {"x": x})[0]
        assert got.shape == wanted.shape
        np.testing.assert_allclose(got, wanted, rtol=2e-5, atol=2e-6)
    for wrong in (0, 9):
        with pytest.raises(ValueError):
            net({"x": np.zeros([wrong, *shape[1:]], np.float32)})


def check_pictures(model: Path, onnx_file: Path, shapes: Sequence[Sequence[int]]) -> None:
    """Compares runs of one compiled file at several shapes with onnxruntime."""
    import tessera.runtime as runtime

    net = runtime.load(str(model), threads=2).net()
    session = onnxruntime.InferenceSession(str(onnx_file), providers=["CPUExecutionProvider"])
    for shape in shapes:
        x = RNG.standard_normal(shape).astype(np.float32)
        (got,), (wanted,) = net({"x": x}).values(), session.run(None, {"x": x})
        assert got.shape == wanted.shape
        np.testing.assert_allclose(got, wanted, rtol=1e-4, atol=2e-5 * np.abs(wanted).max())


def test_height_and_width(tmp_path: Path) -> None:
    save(tmp_path / "pyramid.onnx", pyramid(), ["batch", 3, "h", "w"], 4)
    model = compile_at(tmp_path, "pyramid", "--dims", "batch=1..3,h=4..64:4,w=4..64:4")
    shapes = [(1, 3, 4, 4), (2, 3, 64, 64), (3, 3, 12, 52), (1, 3, 36, 8)]
    check_pictures(model, tmp_path / "pyramid.onnx", shapes)


COORDINATES = ("half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric", "half_pixel_symmetric")


def quantised_resizes() -> Nodes:
    """Linear resizes of bytes in all coordinates, by whole and broken factors."""
    constants = {"scale": np.array(0.037, np.float32), "zero": np.array(5, np.int8)}
    nodes = [helper.make_node("QuantizeLinear", ["x", "scale", "zero"], ["q"])]
    for i, mode in enumerate(COORDINATES):
        constants[f"by{i}"] = np.array([1, 1, (2, 3, 1.5, 2.5, 0.5)[i], (3, 0.75, 2, 0.5, 1.25)[i]], np.float32)
        nodes += [
            helper.make_node("DequantizeLinear", ["q", "scale", "zero"], [f"d{i}"]),
            helper.make_node(
                "Resize", [f"d{i}", "", f"by{i}"], [f"r{i}"], mode="linear", coordinate_transformation_mode=mode
            ),
            helper.make_node("QuantizeLinear", [f"r{i}", "scale", "zero"], [f"s{i}"]),
            helper.make_node("DequantizeLinear", [f"s{i}", "scale", "zero"], [f"t{i}"]),
            helper.make_node("Flatten", [f"t{i}"], [f"f{i}"]),
        ]
    nodes.append(helper.make_node("Concat", [f"f{i}" for i in range(len(COORDINATES))], ["y"], axis=1))
    return nodes, constants


def dilated_depthwise() -> Nodes:
    """Dilated depthwise convolutions of bytes; rows of open width end in tiles that begin at any even column."""
    constants = {"scale": np.array(0.037, np.float32), "zero": np.array(5, np.int8), "one": np.array(0.01, np.float32)}
    nodes = [helper.make_node("QuantizeLinear", ["x", "scale", "zero"], ["q"])]
    for i, (dilation, stride) in enumerate(((2, 1), (3, 1), (2, 2), (5, 1))):
        constants[f"w{i}"] = RNG.integers(-127, 128, (3, 1, 3, 3)).astype(np.int8)
        window = {"dilations": [dilation] * 2, "strides": [stride] * 2, "pads": [dilation] * 4, "group": 3}
        nodes += [
            helper.make_node("DequantizeLinear", ["q", "scale", "zero"], [f"d{i}"]),
            helper.make_node("DequantizeLinear", [f"w{i}", "one"], [f"v{i}"]),
            helper.make_node("Conv", [f"d{i}", f"v{i}"], [f"c{i}"], **window),
            helper.make_node("QuantizeLinear", [f"c{i}", "scale", "zero"], [f"s{i}"]),
            helper.make_node("DequantizeLinear", [f"s{i}", "scale", "zero"], [f"t{i}"]),
            helper.make_node("Flatten", [f"t{i}"], [f"f{i}"]),
        ]
    nodes.append(helper.make_node("Concat", [f"f{i}" for i in range(4)], ["y"], axis=1))
    return nodes, constants


@pytest.mark.parametrize("network", [quantised_resizes, dilated_depthwise])
def test_integers_of_open_pictures(tmp_path: Path, network: Callable[[], Nodes]) -> None:
    """One file has the bits of files for one size."""
    import tessera.runtime as runtime

    save(tmp_path / "n.onnx", network(), ["batch", 3, "h", "w"], 2)
    net = runtime.load(str(compile_at(tmp_path, "n", "--dims", "batch=1..3,h=2..40,w=4..40")), threads=2).net()
    session = onnxruntime.InferenceSession(str(tmp_path / "n.onnx"), providers=["CPUExecutionProvider"])
    for batch, h, w in ((1, 2, 4), (2, 40, 40), (3, 7, 13), (1, 16, 33)):
        x = (RNG.standard_normal([batch, 3, h, w]) * 2).astype(np.float32)
        fixed = compile_at(tmp_path, "n", "--input-shapes", f"x={batch}x3x{h}x{w}")
        got, wanted = net({"x": x})["y"], runtime.load(str(fixed)).net()({"x": x})["y"]
        assert np.array_equal(got, wanted), f"{(got != wanted).sum()} of {got.size} differ at {batch} x {h} x {w}"
        assert np.abs(got - session.run(None, {"x": x})[0]).max() < 0.038  # at most a step


def test_text_detection(need: Callable[[str], Path], tmp_path: Path) -> None:
    """The real network's results before its last sigmoid, which would hide differences."""
    network = onnx.load(need("data:models/seg/ppocrv3_det.onnx"))
    del network.graph.output[:]
    network.graph.output.append(helper.make_tensor_value_info("p2o.Add.77", TensorProto.FLOAT, None))
    onnx.save(network, tmp_path / "det.onnx")
    model = compile_at(tmp_path, "det", "--dims", "x.2=32..1280:32,x.3=32..1280:32")
    sizes = [(64, 64), (96, 320), (320, 480), (640, 640), (32, 1280)]
    check_pictures(model, tmp_path / "det.onnx", [(1, 3, h, w) for h, w in sizes])
    text = check(run_tool("model_tool", "info", model))
    assert "1x3xx.2xx.3" in text and "size x.2 from 32 to 1280, a multiple of 32" in text


def attention() -> Nodes:
    """Attention with fewer queries than keys, whose batch and lengths are open, and a mask."""
    nodes = [
        helper.make_node("Transpose", ["k"], ["t"], perm=[0, 1, 3, 2]),
        helper.make_node("MatMul", ["x", "t"], ["scores"]),
        helper.make_node("Mul", ["scores", "scale"], ["scaled"]),
        helper.make_node("Add", ["scaled", "mask"], ["masked"]),
        helper.make_node("Softmax", ["masked"], ["powers"], axis=-1),
        helper.make_node("MatMul", ["powers", "v"], ["y"], name="last"),
    ]
    return nodes, {"scale": np.array(0.3, np.float32)}


def test_attention(tmp_path: Path) -> None:
    """Also without queries, and without keys, where the result is zero."""
    shapes: dict[str, list[int | str]] = {
        "x": ["batch", 3, "queries", 12],
        "k": ["batch", 3, "keys", 12],
        "v": ["batch", 3, "keys", 20],
        "mask": ["batch", 1, "queries", "keys"],
    }
    save(tmp_path / "n.onnx", attention(), shapes, 4)
    model = compile_at(tmp_path, "n", "--dims", "batch=1..4,queries=0..40,keys=0..70")
    import tessera.runtime as runtime

    net = runtime.load(str(model), threads=2).net()
    session = onnxruntime.InferenceSession(str(tmp_path / "n.onnx"), providers=["CPUExecutionProvider"])
    for batch, queries, keys in ((1, 1, 1), (2, 1, 33), (4, 40, 70), (2, 3, 0), (2, 0, 3), (3, 17, 5), (1, 40, 64)):
        sizes = {"batch": batch, "queries": queries, "keys": keys}
        inputs = {
            name: RNG.standard_normal([sizes[d] if isinstance(d, str) else d for d in shape]).astype(np.float32)
            for name, shape in shapes.items()
        }
        inputs["mask"][..., 1:][inputs["mask"][..., 1:] > 0.5] = -1e9
        got, wanted = net(inputs)["y"], session.run(None, inputs)[0]
        np.testing.assert_allclose(got, wanted, rtol=2e-5, atol=5e-6, err_msg=str(sizes))


def open_language_model(tmp_path: Path, source: Path, dims: str) -> tuple[Any, onnxruntime.InferenceSession]:
    """Returns the net of `source` compiled once for all sizes of `dims`, and onnxruntime's session."""
    (tmp_path / "n.onnx").symlink_to(source)
    model = compile_at(tmp_path, "n", "--dims", dims)
    import tessera.runtime as runtime

    net = runtime.load(str(model), threads=2).net()
    return net, onnxruntime.InferenceSession(str(source), providers=["CPUExecutionProvider"])


def test_language_model(tmp_path: Path, need: Callable[[str], Path]) -> None:
    """One compile of a transformer runs at every number of tokens."""
    source = need("data:models/llm/stories260k.onnx")
    net, session = open_language_model(tmp_path, source, "batch=1..1,seq=1..128")
    for tokens in (1, 2, 3, 17, 64, 127, 128, 1):
        inputs = {"input_ids": RNG.integers(0, 512, [1, tokens])}
        got, wanted = net(inputs)["logits"], session.run(None, inputs)[0]
        np.testing.assert_allclose(got, wanted, rtol=1e-4, atol=1e-4)
        assert np.array_equal(got.argmax(-1), wanted.argmax(-1))


def test_structure_of_language_model(tmp_path: Path, need: Callable[[str], Path]) -> None:
    """Open sizes do not hide rotary embeddings and grouped heads: both are recovered, and no table needs a gather."""
    (tmp_path / "n.onnx").symlink_to(need("data:models/llm/stories260k.onnx"))

    def count(dims: str) -> dict[str, int]:
        text = import_at(tmp_path, "n", "--dims", dims).read_text()
        return {op: text.count(f"top.{op} ") for op in ("rope", "attention", "gather", "expand")}

    assert (
        count("batch=1..1,seq=1..128") == count("batch=1..1,seq=17") == dict(rope=10, attention=5, gather=1, expand=0)
    )


def test_matmuls_quantised_at_run_time(tmp_path: Path, need: Callable[[str], Path]) -> None:
    """The file of all sizes gives the bits of files for one size; rows are quantised one by one."""
    (tmp_path / "n.onnx").symlink_to(need("data:models/llm/stories260k.onnx"))
    import tessera.runtime as runtime

    def compiled(*flags: object) -> Callable[[dict[str, np.ndarray]], Mapping[str, np.ndarray]]:
        model = tmp_path / f"{len(list(tmp_path.glob('*.bmodel')))}.bmodel"
        deploy = ("deploy", "--mlir", import_at(tmp_path, "n", *flags), "--output", model, "--quantize", "DYNAMIC_INT8")
        check(run_tool("tessera-compile", *deploy))
        return runtime.load(str(model), threads=2).net()

    net = compiled("--dims", "batch=1..1,seq=1..128")
    for tokens in (1, 17, 64):
        inputs = {"input_ids": RNG.integers(0, 512, [1, tokens])}
        got, wanted = net(inputs), compiled("--dims", f"batch=1..1,seq={tokens}")(inputs)
        assert np.array_equal(got["logits"], wanted["logits"])


def empty_caches() -> dict[str, np.ndarray]:
    return {f"{i}.{kind}": np.zeros((1, 4, 0, 8), np.float32) for i in range(5) for kind in ("key", "value")}


def step_inputs(tokens: Sequence[int], caches: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Returns the inputs of a step that reads `tokens` after those in the caches."""
    past, seq = caches["0.key"].shape[2], len(tokens)
    bias = np.triu(np.full((seq, past + seq), -1e9, np.float32), past + 1)
    inputs = {"input_ids": np.array([tokens], np.int64), "position_ids": np.arange(past, past + seq)[None]}
    inputs["attention_bias"] = bias[None, None]
    return {**inputs, **{f"past_key_values.{name}": cache for name, cache in caches.items()}}


def test_growing_caches(tmp_path: Path, need: Callable[[str], Path]) -> None:
    """A transformer reads prompts of several lengths and continues token by token, from one file."""
    source = need("data:models/llm/stories260k_kv.onnx")
    net, session = open_language_model(tmp_path, source, "batch=1..1,seq=1..64,past=0..128,total=1..192")
    names = [output.name for output in session.get_outputs()]
    for length in (1, 5, 17, 64):
        tokens, caches = [1, *RNG.integers(3, 512, length - 1)], empty_caches()
        for _ in range(6):
            inputs = step_inputs(tokens, caches)
            got, wanted = net(inputs), dict(zip(names, session.run(names, inputs)))
            np.testing.assert_allclose(got["logits"], wanted["logits"], rtol=1e-4, atol=1e-4)
            tokens = [int(wanted["logits"][0, -1].argmax())]
            assert got["logits"][0, -1].argmax() == tokens[0]
            caches = {name: got[f"present.{name}"] for name in caches}


def test_chips_without_symbolic_sizes(tmp_path: Path) -> None:
    save(tmp_path / "n.onnx", relu_add(), ["batch", 3, 8, 8], 4)
    mlir = import_at(tmp_path, "n", "--dims", "batch=1..8")
    result = run_tool(
        "tessera-compile", "deploy", "--mlir", mlir, "--output", tmp_path / "n.bmodel", "--chip", "npu-edge"
    )
    assert result.returncode == 4
    text = result.stdout + result.stderr
    assert "chip 'npu-edge' supports only sizes that are numbers, but dim 0 of input 'x' is batch" in text


def test_info(tmp_path: Path) -> None:
    save(tmp_path / "n.onnx", relu_add(), ["batch", 3, 8, 8], 4)
    model = compile_at(tmp_path, "n", "--dims", "batch=1..8")
    text = check(run_tool("model_tool", "info", model))
    assert "batchx3x8x8" in text and "size batch from 1 to 8" in text
    assert "inputs and outputs: 1.50 KiB for the smallest sizes, 12.00 KiB usually, 12.00 KiB at most" in text
    out = tmp_path / "o.npz"
    run = ("model_runner", "--model", model, "--input", "random", "--output", out, "--json")
    shapes = json.loads(check(run_tool(*run, "--input_shapes", "x=3x3x8x8")))["outputs"]
    assert shapes["y"]["shape"] == [3, 3, 8, 8]
    np.zeros((3, 3, 8, 8), np.float32).tofile(tmp_path / "x.bin")
    bench = ("bmrt_bench", model, "--shape", "x=3x3x8x8", "--input", f"x={tmp_path / 'x.bin'}", "--iters", "1")
    check(run_tool(*bench))


def test_run_at(tmp_path: Path) -> None:
    """tessera run compares at the sizes in --at."""
    save(tmp_path / "n.onnx", relu_add(), ["batch", 3, "h", 8], 4)
    run = ("tessera", "run", tmp_path / "n.onnx", "--dims", "batch=1..8,h=2..64:2")
    result = json.loads(check(run_tool(*run, "--at", "batch=3,h=10", "batch=1", "--json")))
    assert [row["inputs"] for row in result["sizes"]] == [{"x": [3, 3, 10, 8]}, {"x": [1, 3, 64, 8]}]
    assert all(row["comparison"]["passed"] for row in result["sizes"]) and result["verdict"] == "PASS"
    both = run_tool(*run, "--at", "batch=1", "--input", "x.npz")
    assert both.returncode == 2 and "--at is for random input" in both.stdout + both.stderr
    fixed = run_tool(*run[:3], "--input_shapes", "[[1,3,8,8]]", "--at", "batch=1")
    assert fixed.returncode == 1 and "--dims keeps sizes open" in fixed.stdout + fixed.stderr


def test_tools_at(tmp_path: Path) -> None:
    """accuracy, bench, estimate and report take several sizes; a picture task takes the smallest batch by default."""
    path = tmp_path / "n.onnx"
    save(path, relu_add(), ["batch", 3, "h", 8], 4)
    bmodel = compile_at(tmp_path, "n", "--dims", "batch=2..8,h=2..64:2")
    (tmp_path / "s.py").write_text(
        "import math\n\ndef score(model, data):\n    return math.prod(model.inputs[0].shape)\n"
    )

    def told(*arguments: object) -> Any:
        return json.loads(check(run_tool("tessera", *arguments, "--json")))

    at = ("--at", "batch=3,h=10", "batch=2")
    scorer = ("--scorer", tmp_path / "s.py", "--data", "x")
    rows = told("accuracy", bmodel, *scorer, *at)["models"]
    assert [row["at"] for row in rows] == [*at[1:]]
    assert [next(iter(row["figures"].values())) for row in rows] == [3 * 3 * 10 * 8, 2 * 3 * 64 * 8]
    assert next(iter(told("accuracy", bmodel, *scorer)["models"][0]["figures"].values())) == 2 * 3 * 64 * 8

    bench = told("bench", bmodel, *at, "--seconds", 0.1, "--warm", 0.1, "--ops")["bench"]
    assert [(row["name"], row["at"]) for row in bench["results"]] == [(f"tessera at {each}", each) for each in at[1:]]
    assert [step["of_bound"] for step in bench["ops"]["tessera at batch=2"]["steps"]] == [None]

    estimates = told("estimate", path, "--chip", "npu-base", "--quantize", "F32", *at, "--dims", "h=64")["estimates"]
    times = [row["report"]["microseconds"] for row in estimates]
    assert [row["at"] for row in estimates] == [*at[1:]] and times[0] < times[1]
    late = run_tool("tessera", "estimate", next(tmp_path.glob("*.mlir")), *at)
    assert late.returncode == 2 and "the sizes of a NAME_top.mlir were chosen" in late.stdout + late.stderr

    check(run_tool("tessera", "report", bmodel, *at, "--measure", 1, "-o", tmp_path / "r.html"))
    page = (tmp_path / "r.html").read_text()
    assert all(f"{bmodel.name} at {each}" in page for each in at[1:]) and "3,3,10,8" in page.replace(" ", "")
    outside = run_tool("tessera", "report", bmodel, "--at", "batch=1", "-o", tmp_path / "r.html")
    assert outside.returncode == 1 and "batch=1 is not possible" in outside.stdout + outside.stderr
