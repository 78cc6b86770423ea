# SPDX-License-Identifier: Apache-2.0
"""Tests of models with states: all commands, quantised models, and silero_vad over a minute of speech."""
from __future__ import annotations

import json
import wave
from pathlib import Path
from typing import Callable, Sequence

import numpy as np
import onnx
import onnx.parser
import onnxruntime
import pytest
from conftest import check, run_tool
from onnx import TensorProto, helper, numpy_helper

SILERO, SPEECH = "data:models/rnn/silero_vad.onnx", "data:audio/test_16k.wav"
NETWORK = """
<ir_version: 8, opset_import: ["" : 17]>
cell (float[1,16] x, float[1,16] h_in) => (float[1,16] y, float[1,16] h_out)
{
  a = MatMul(x, wx)
  b = MatMul(h_in, wh)
  s = Add(a, b)
  h_out = Tanh(s)
  y = MatMul(h_out, wy)
}
"""


@pytest.fixture(scope="module")
def cell(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Returns a folder with cell.onnx, cell_top.mlir with the state h_in, and a sequence of samples."""
    folder = tmp_path_factory.mktemp("cell")
    rng = np.random.default_rng(0)
    model = onnx.parser.parse_model(NETWORK)
    for name in ("wx", "wh", "wy"):
        weight = rng.normal(scale=0.4, size=(16, 16)).astype(np.float32)
        model.graph.initializer.append(numpy_helper.from_array(weight, name))
    onnx.save(model, folder / "cell.onnx")
    np.savez(folder / "samples.npz", x=rng.normal(size=(32, 1, 16)).astype(np.float32))
    text = check(
        run_tool(
            "model_transform",
            *("--model_def", folder / "cell.onnx", "--mlir", folder / "cell_top.mlir", "--state", "h_in=h_out"),
            *("--test_result", folder / "reference.npz"),
        )
    )
    assert "states   'h_in' float32[1, 16] = 'h_out' of the run before" in text
    assert "inputs   'x' float32[1, 16]\noutputs  'y'" in text
    return folder


def deploy(cell: Path, name: str, *flags: object) -> Path:
    path = cell / f"{name}.bmodel"
    check(run_tool("model_deploy", "--mlir", cell / "cell_top.mlir", "--model", path, *flags))
    return path


def test_a_pair_of_names_is_reported(cell: Path) -> None:
    def transform(*flags: str) -> str:
        arguments = ("--model_def", cell / "cell.onnx", "--mlir", cell / "found_top.mlir", "--not_inference", *flags)
        return check(run_tool("model_transform", *arguments))

    assert "to make them states, add --state h_in=h_out, or --state auto" in transform()
    assert "states   'h_in'" in transform("--state", "auto")
    assert "state" not in transform("--state", "none")


@pytest.mark.parametrize("chip", ["x86", "npu-base"])
def test_deployment_compares_the_new_state(cell: Path, chip: str) -> None:
    given = ("--test_input", cell / "cell_in_f32.npz", "--test_reference", cell / "reference.npz")
    path = cell / f"{chip}.bmodel"
    text = check(run_tool("model_deploy", "--mlir", cell / "cell_top.mlir", "--chip", chip, "--model", path, *given))
    assert "h_out" in text


def test_runner_takes_given_states(cell: Path) -> None:
    path = deploy(cell, "f32", "--skip_validation")
    x, h = np.ones((1, 16), np.float32), np.full((1, 16), 0.5, np.float32)
    outputs = []
    for model, arrays in ((path, {"x": x}), (path, {"x": x, "h_in": h}), (cell / "cell_top.mlir", {"x": x, "h_in": h})):
        np.savez(cell / "given.npz", **arrays)
        check(run_tool("model_runner", "--model", model, "--input", cell / "given.npz", "--output", cell / "o.npz"))
        outputs.append(dict(np.load(cell / "o.npz")))
    assert all(set(each) == {"y"} for each in outputs)
    assert np.abs(outputs[0]["y"] - outputs[1]["y"]).max() > 0.01
    assert np.allclose(outputs[1]["y"], outputs[2]["y"], atol=1e-5)
    np.savez(cell / "given.npz", x=x, g_in=h)
    result = run_tool("model_runner", "--model", path, "--input", cell / "given.npz", "--output", cell / "o.npz")
    assert result.returncode == 1 and "'g_in' is not an input of the model" in result.stderr


def test_tessera_run(cell: Path) -> None:
    assert "verdict: PASS" in check(run_tool("tessera", "run", cell / "cell.onnx", "--state", "h_in=h_out"))


def test_a_state_is_updated_in_place_if_it_was_read_before(tmp_path: Path) -> None:
    """In one network the last step reads the old value, in the other one an earlier step."""
    import tessera.runtime as rt

    copies = []
    for name, last in (("reads", "MatMul(h_in, w)"), ("read", "MatMul(m, w)")):
        text = f"""
        <ir_version: 8, opset_import: ["" : 17]>
        cell (float[1,16] x, float[1,16] h_in) => (float[1,16] y, float[1,16] h_out)
        {{
          m = MatMul(h_in, w)
          h_out = {last}
          y = Add(m, x)
        }}
        """
        model = onnx.parser.parse_model(text)
        weight = np.random.default_rng(0).normal(scale=0.2, size=(16, 16)).astype(np.float32)
        model.graph.initializer.append(numpy_helper.from_array(weight, "w"))
        onnx.save(model, tmp_path / f"{name}.onnx")
        mlir, bmodel = tmp_path / f"{name}_top.mlir", tmp_path / f"{name}.bmodel"
        flags = ("--mlir", mlir, "--state", "h_in=h_out", "--not_inference")
        check(run_tool("model_transform", "--model_def", tmp_path / f"{name}.onnx", *flags))
        check(run_tool("model_deploy", "--mlir", mlir, "--model", bmodel))
        steps = rt.load(str(bmodel)).net().profile(runs=1)
        copies.append(sum(step.kind == "copy" for step in steps))
    assert copies == [1, 0]


def test_first_value(cell: Path) -> None:
    import tessera.runtime as rt

    text = (cell / "cell_top.mlir").read_text()
    (cell / "half_top.mlir").write_text(
        text.replace('top.name = "h_in"', 'top.initial = dense<0.5> : tensor<1x16xf32>, top.name = "h_in"')
    )
    (cell / "half_weights.safetensors").write_bytes((cell / "cell_weights.safetensors").read_bytes())
    (cell / "half_top.mlir").write_text(
        (cell / "half_top.mlir").read_text().replace("cell_weights.safetensors", "half_weights.safetensors")
    )
    half, zero = cell / "half.bmodel", deploy(cell, "zero", "--skip_validation")
    check(run_tool("model_deploy", "--mlir", cell / "half_top.mlir", "--model", half))
    x = np.ones((1, 16), np.float32)
    net, other = rt.load(str(half)).net(), rt.load(str(zero)).net()
    assert np.array_equal(net.get_states()["h_in"], np.full((1, 16), 0.5, np.float32))
    first = net({"x": x})["y"]
    other.set_states({"h_in": np.full((1, 16), 0.5, np.float32)})
    assert np.array_equal(other({"x": x})["y"], first)
    net.reset_state()
    assert np.array_equal(net({"x": x})["y"], first)


def test_a_quantised_model_equals_the_one_without_state(cell: Path) -> None:
    """Calibrates on the samples as a sequence; the same table serves the model whose state is fed by hand."""
    import tessera.runtime as rt

    table = cell / "cell_cali.json"
    check(run_tool("run_calibration", cell / "cell_top.mlir", "--dataset", cell / "samples.npz", "-o", table))
    largest = {t["name"]: t["max"] for t in json.loads(table.read_text())["tensors"]}
    assert 0.5 < largest["h_in"] <= 1, "the states of later samples are not zero"
    int8 = ("--quantize", "INT8", "--calibration_table", table)
    kept = rt.load(str(deploy(cell, "int8", *int8))).net()
    plain_mlir = cell / "plain_top.mlir"
    check(run_tool("model_transform", "--model_def", cell / "cell.onnx", "--mlir", plain_mlir, "--state", "none"))
    check(run_tool("model_deploy", "--mlir", plain_mlir, "--model", cell / "plain.bmodel", "--skip_validation", *int8))
    plain, now = rt.load(str(cell / "plain.bmodel")).net(), np.zeros((1, 16), np.float32)
    for x in np.load(cell / "samples.npz")["x"]:
        outputs = plain({"x": x, "h_in": now})
        now = outputs["h_out"]
        assert np.array_equal(kept({"x": x})["y"], outputs["y"])
    assert np.array_equal(kept.get_states()["h_in"], now)


def test_silero_over_a_minute(tmp_path: Path, need: Callable[[str], Path]) -> None:
    """One file reads frames of both rates, whose rate is an input. A length at which the network would leave two steps
    ends the run with an error, as in onnxruntime."""
    import tessera.runtime as rt

    model, mlir = need(SILERO), tmp_path / "silero_top.mlir"
    sizes = ("--dims", "input.0=1,input.1=288..576,state.1=1", "--state", "state=stateN")
    check(run_tool("model_transform", "--model_def", model, "--mlir", mlir, *sizes, "--not_inference"))
    check(run_tool("model_deploy", "--mlir", mlir, "--model", tmp_path / "silero.bmodel", "--skip_validation"))
    net = rt.load(str(tmp_path / "silero.bmodel")).net()
    session = onnxruntime.InferenceSession(str(model), providers=["CPUExecutionProvider"])
    with wave.open(str(need(SPEECH))) as file:
        speech = np.frombuffer(file.readframes(file.getnframes()), np.int16).astype(np.float32) / 32768
    for rate, samples, share in ((16000, speech, 0.774), (8000, speech[::2], 0.778)):
        net.reset_state()
        step, overlap = rate * 512 // 16000, rate * 64 // 16000
        samples, state = np.concatenate([np.zeros(overlap, np.float32), samples]), np.zeros((2, 1, 128), np.float32)
        decisions, worst = [], 0.0
        for begin in range(0, len(samples) - step - overlap + 1, step):
            frame = {"input": samples[None, begin : begin + step + overlap], "sr": np.array(rate)}
            wanted, state = session.run(None, {**frame, "state": state})
            got = net(frame)["output"]
            worst = max(worst, float(np.abs(got - wanted).max()))
            decisions.append(got[0, 0] > 0.5)
        assert len(decisions) == 1875 and worst <= 1e-4
        assert abs(np.mean(decisions) - share) < 0.001
    with pytest.raises(Exception, match="condition of .*decoder/If"):
        net({"input": np.zeros((1, 576), np.float32), "sr": np.array(8000)})


def stories_inputs(tokens: Sequence[int], past: int) -> dict[str, np.ndarray]:
    seq = len(tokens)
    bias = np.triu(np.full((seq, past + seq), -1e9, np.float32), past + 1)
    positions = np.arange(past, past + seq)[None]
    return {"input_ids": np.array([tokens]), "position_ids": positions, "attention_bias": bias[None, None]}


def test_caches_of_a_transformer(tmp_path: Path, need: Callable[[str], Path]) -> None:
    """One file reads prompts of several lengths and continues token by token; the caches are states."""
    import tessera.runtime as rt

    source, mlir, path = need("data:models/llm/stories260k_kv.onnx"), tmp_path / "n_top.mlir", tmp_path / "n.bmodel"
    dims = ("--dims", "batch=1,seq=1..64,past=0..256", "--state", "auto")
    check(run_tool("tessera-compile", "import", "--onnx", source, "--output", mlir, *dims))
    check(run_tool("tessera-compile", "deploy", "--mlir", mlir, "--output", path))
    net = rt.load(str(path)).net()
    golden = json.loads(need("data:golden/stories260k/greedy.json").read_text())["greedy_ids"]
    session = onnxruntime.InferenceSession(str(source), providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    for prompt, count in ((golden[:1], 200), (golden[:5], 8), (golden[:17], 8), (golden[:64], 8)):
        net.reset_state()
        caches = {state.name: np.zeros((1, 4, 0, 8), np.float32) for state in net.states}
        tokens, text = prompt, list(prompt)
        for _ in range(count):
            inputs = stories_inputs(tokens, len(text) - len(tokens))
            wanted = dict(zip(names, session.run(names, {**inputs, **caches})))
            caches = {name: wanted[name.replace("past_key_values", "present")] for name in caches}
            logits = net(inputs)["logits"]
            np.testing.assert_allclose(logits, wanted["logits"], rtol=1e-4, atol=1e-4)
            tokens = [int(logits[0, -1].argmax())]
            text += tokens
        assert text[: len(golden)] == golden[: len(text)]
    for name, cache in net.get_states().items():
        np.testing.assert_allclose(cache, caches[name], rtol=1e-4, atol=1e-4)


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Returns a folder with a.bmodel and b.bmodel, of a network with the states `past`, of capacity 8, and `sum`."""
    folder = tmp_path_factory.mktemp("cache")
    text = """
    <ir_version: 8, opset_import: ["" : 17]>
    cache (float[2,seq,4] x, float[2,past,4] past, float[2,1,4] sum)
        => (float[2,1,4] y, float[2,total,4] present, float[2,1,4] next)
    {
      present = Concat<axis = 1>(past, x)
      y = ReduceMax<axes = [1], keepdims = 1>(present)
      next = Add(sum, y)
    }
    """
    onnx.save(onnx.parser.parse_model(text), folder / "cache.onnx")
    for name, capacity in (("a", 8), ("b", 9)):
        dims = ("--dims", f"seq=1..5,past=0..{capacity}", "--state", "past=present,sum=next")
        mlir = folder / f"{name}_top.mlir"
        check(run_tool("tessera-compile", "import", "--onnx", folder / "cache.onnx", "--output", mlir, *dims))
        check(run_tool("tessera-compile", "deploy", "--mlir", mlir, "--output", folder / f"{name}.bmodel"))
    return folder


def test_a_cache_beyond_its_capacity(cache: Path) -> None:
    import tessera.runtime as rt

    net = rt.load(str(cache / "a.bmodel")).net()
    x = np.random.default_rng(3).normal(size=(2, 8, 4)).astype(np.float32)
    net({"x": x[:, :5]})
    before = net.get_states()
    with pytest.raises(rt.Error, match="state 'past' holds 5 of at most 8 indices, and 4 more do not fit"):
        net({"x": x[:, :4]})
    after = net.get_states()
    assert all(np.array_equal(before[name], after[name]) for name in ("past", "sum"))
    assert np.array_equal(net({"x": x[:, 5:]})["y"], x.max(1, keepdims=True))
    assert np.array_equal(net.get_states()["past"], x)


def test_saved_caches(cache: Path) -> None:
    import tessera.runtime as rt

    a, other = rt.load(str(cache / "a.bmodel")), rt.load(str(cache / "b.bmodel")).net()
    net, again = a.net(), a.net()
    x = np.random.default_rng(3).normal(size=(2, 5, 4)).astype(np.float32)
    empty = net.save_state()
    net({"x": x})
    saved = net.save_state()
    assert len(saved) == len(empty) + x.nbytes
    again({"x": -x[:, :3]})
    with pytest.raises(rt.Error, match="of another model or stage"):
        other.load_state(saved)
    for length in (-1, 9, 6):  # at the end of the head
        altered = saved[:32] + length.to_bytes(8, "little", signed=True) + saved[40:]
        with pytest.raises(rt.Error, match="the stage's has"):
            again.load_state(altered)
    assert again.state_lengths == {"past": (3, 8)}
    again.load_state(saved)
    assert np.array_equal(again.get_states()["past"], x) and again.state_lengths == {"past": (5, 8)}


def test_shorter_and_longer_caches(cache: Path) -> None:
    import tessera.runtime as rt

    net = rt.load(str(cache / "a.bmodel")).net()
    x = np.random.default_rng(3).normal(size=(2, 5, 4)).astype(np.float32)
    net({"x": x})
    net.set_state_length(2)
    assert np.array_equal(net.get_states()["past"], x[:, :2])
    net.set_state_length(4, "past")
    assert np.array_equal(net.get_states()["past"], np.concatenate([x[:, :2], np.zeros_like(x[:, :2])], 1))
    net.set_states({"past": x[:, 1:4]})
    assert np.array_equal(net({"x": x[:, :1]})["y"], x[:, :4].max(1, keepdims=True))
    with pytest.raises(rt.Error, match="at most 8 indices, not 9"):
        net.set_state_length(9)
    net.reset_state()
    assert net.state_lengths == {"past": (0, 8)} and not net.get_states()["sum"].any()


@pytest.mark.parametrize(
    "dims, message",
    [
        ("seq=1..5,past=1..8", "so the range of past must begin at 0"),
        ("seq=1..5,past=0..4", "has space for 4 indices, the range of past, but a run may append 5"),
    ],
)
def test_ranges_that_are_no_cache(cache: Path, dims: str, message: str) -> None:
    flags = ("--dims", dims, "--state", "past=present", "--output", cache / "c_top.mlir")
    result = run_tool("tessera-compile", "import", "--onnx", cache / "cache.onnx", *flags)
    assert result.returncode == 2 and message in result.stdout + result.stderr


def test_commands_take_caches(cache: Path) -> None:
    flags = ("--dims", "seq=1..5,past=0..8", "--state", "past=present", "sum=next")
    mlir, path = cache / "d_top.mlir", cache / "d.bmodel"
    text = check(run_tool("model_transform", "--model_def", cache / "cache.onnx", "--mlir", mlir, *flags))
    assert "'present' of the run before, grows along dim 1" in text
    check(run_tool("model_deploy", "--mlir", mlir, "--model", path))
    assert "'past' indices of dim 1 are in use" in check(run_tool("model_tool", "info", path))
    assert "verdict: PASS" in check(run_tool("tessera", "run", cache / "cache.onnx", *flags))


def test_chips_without_growing_states(cache: Path) -> None:
    result = run_tool(
        "tessera-compile", "deploy", "--mlir", cache / "a_top.mlir", "--output", "n", "--chip", "npu-base"
    )
    assert result.returncode == 4 and "supports only sizes that are numbers" in result.stdout + result.stderr


def save_graph(path: Path, node: onnx.NodeProto, inputs: dict[str, list[int]], types: dict[str, int]) -> None:
    """Saves a network of one node whose outputs have open shapes."""
    values = [helper.make_tensor_value_info(n, types.get(n, TensorProto.FLOAT), shape) for n, shape in inputs.items()]
    outputs = [helper.make_tensor_value_info(n, TensorProto.FLOAT, None) for n in node.output]
    sum_of = helper.make_node("ReduceSum", [node.output[0]], ["y_sum"], keepdims=0)
    outputs.append(helper.make_tensor_value_info("y_sum", TensorProto.FLOAT, []))
    graph = helper.make_graph([node, sum_of], "g", values, outputs)
    opsets = [helper.make_opsetid("", 24), helper.make_opsetid("com.microsoft", 1)]
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=10), path)


def deploy_in_place(path: Path, scatters: int, states: str) -> object:
    """Compiles with states and checks that so many scatters write into them."""
    import tessera.runtime as rt

    mlir, device = path.with_suffix(".mlir"), path.with_suffix(".device.mlir")
    check(run_tool("tessera-compile", "import", "--onnx", path, "--output", mlir, "--state", states))
    output = ("--output", path.with_suffix(".bmodel"), "--device-mlir", device)
    check(run_tool("tessera-compile", "deploy", "--mlir", mlir, *output))
    assert device.read_text().count("inPlace") == scatters
    return rt.load(str(path.with_suffix(".bmodel"))).net()


@pytest.mark.parametrize("mode", ["linear", "circular"])
def test_tensor_scatter_writes_into_a_state(tmp_path: Path, mode: str) -> None:
    node = helper.make_node("TensorScatter", ["past", "x", "at"], ["present"], axis=-2, mode=mode)
    shapes = {"x": [2, 3, 2, 4], "at": [2], "past": [2, 3, 8, 4]}
    save_graph(tmp_path / "n.onnx", node, shapes, {"at": TensorProto.INT64})
    net = deploy_in_place(tmp_path / "n.onnx", 1, "past=present")
    rng, now = np.random.default_rng(0), np.zeros(shapes["past"], np.float32)
    for _ in range(9):
        x = rng.normal(size=shapes["x"]).astype(np.float32)
        at = rng.integers(0, 8 if mode == "circular" else 7, 2)
        for batch in range(2):
            now[batch][:, (at[batch] + np.arange(2)) % 8] = x[batch]
        net({"x": x, "at": at})
        assert np.array_equal(net.get_states()["past"], now)


@pytest.mark.parametrize("new", [1, 3])
def test_group_query_attention_shares_past_and_present(tmp_path: Path, new: int) -> None:
    names = ["q", "k", "v", "past_key", "past_value", "seqlens", "total"]
    outputs = ["y", "present_key", "present_value"]
    heads = {"num_heads": 4, "kv_num_heads": 2}
    node = helper.make_node("GroupQueryAttention", names, outputs, domain="com.microsoft", **heads)
    shapes = dict(zip(names, ([1, new, 64], [1, new, 32], [1, new, 32], [1, 2, 12, 16], [1, 2, 12, 16], [1], [1])))
    save_graph(tmp_path / "n.onnx", node, shapes, {"seqlens": TensorProto.INT32, "total": TensorProto.INT32})
    net = deploy_in_place(tmp_path / "n.onnx", 2, "past_key=present_key,past_value=present_value")
    session = onnxruntime.InferenceSession(str(tmp_path / "n.onnx"), providers=["CPUExecutionProvider"])
    rng, past = np.random.default_rng(0), {n: np.zeros(shapes[n], np.float32) for n in ("past_key", "past_value")}
    for total in range(new, 13, new):
        inputs = {n: rng.normal(size=shapes[n]).astype(np.float32) for n in "qkv"}
        inputs["seqlens"], inputs["total"] = np.array([total - 1], np.int32), np.array([total], np.int32)
        y, *present = session.run(outputs, {**inputs, **past})
        past = dict(zip(past, present))
        np.testing.assert_allclose(net(inputs)["y"], y, rtol=1e-5, atol=1e-5)
        for name, state in net.get_states().items():
            np.testing.assert_allclose(state[:, :, :total], past[name][:, :, :total], rtol=1e-6, atol=1e-6)
