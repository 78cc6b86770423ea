# SPDX-License-Identifier: Apache-2.0
"""Tests of models with states: all commands, quantised models, and silero_vad over a minute of speech."""
from __future__ import annotations

import json
import wave
from pathlib import Path
from typing import Callable

import numpy as np
import onnx
import onnx.parser
import pytest
from conftest import check, run_tool
from onnx import numpy_helper

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
    import onnxruntime
    import tessera.runtime as rt

    model, mlir = need(SILERO), tmp_path / "silero_top.mlir"
    fixed = ("--input_shapes", "input=1x576,state=2x1x128", "--input_values", "sr=16000", "--state", "state=stateN")
    check(run_tool("model_transform", "--model_def", model, "--mlir", mlir, *fixed))
    check(run_tool("model_deploy", "--mlir", mlir, "--model", tmp_path / "silero.bmodel", "--skip_validation"))
    net = rt.load(str(tmp_path / "silero.bmodel")).net()
    session = onnxruntime.InferenceSession(str(model), providers=["CPUExecutionProvider"])
    with wave.open(str(need(SPEECH))) as file:
        samples = np.frombuffer(file.readframes(file.getnframes()), np.int16).astype(np.float32) / 32768
    samples, state = np.concatenate([np.zeros(64, np.float32), samples]), np.zeros((2, 1, 128), np.float32)
    speech, worst = [], 0.0
    for begin in range(0, len(samples) - 575, 512):
        frame = samples[None, begin : begin + 576]
        wanted, state = session.run(None, {"input": frame, "state": state, "sr": np.array(16000)})
        got = net({"input": frame})["output"]
        worst = max(worst, float(np.abs(got - wanted).max()))
        speech.append(got[0, 0] > 0.5)
    assert len(speech) == 1875 and worst <= 1e-4
    assert abs(np.mean(speech) - 0.774) < 0.001
