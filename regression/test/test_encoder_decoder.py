# SPDX-License-Identifier: Apache-2.0
"""Networks in the shape of Whisper and T5: the tokens that PyTorch and onnxruntime choose, the spectra of transformers,
timestamps, and clear errors."""
from __future__ import annotations

import json
import shutil
import wave
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from conftest import check, run_tool
from onnx import helper

from tessera.errors import TesseraError
from tessera.llm.audio import log_mel, read_wav
from tessera.llm.encoder_decoder import EncoderDecoder
from tessera.llm.transcribe import TimestampRules, Transcriber, split_at_times

MODELS = Path(__file__).resolve().parents[1] / "models/seq2seq"
RATE = 16000


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("pairs")
    for kind in ("whisper", "t5"):
        check(run_tool("tessera", "llm", MODELS / kind, "-o", folder / kind, "--chunk", "64"))
    return folder


def expected(kind: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((MODELS / kind / "expected.json").read_text())
    return found


def test_tokens_of_whisper(compiled: Path) -> None:
    model, wanted = EncoderDecoder(compiled / "whisper"), expected("whisper")
    rng = np.random.default_rng(wanted["source"])
    rng.integers(3, 60, 11)
    x = rng.standard_normal(model.input_shape).astype(np.float32)
    assert list(model.generate(model.encode(x), wanted["prompt"], 24)) == wanted["tokens"]
    everything = list(model.generate(model.encode(x), wanted["prompt"]))
    assert everything[:24] == wanted["tokens"] and len(everything) == model.context - 3 == 29


def test_translate(compiled: Path) -> None:
    wanted = expected("t5")
    tokens = ",".join(map(str, wanted["source"]))
    run = ("tessera", "translate", "--model", compiled / "t5", "--tokens", tokens, "--max_tokens", "24", "--json")
    assert json.loads(check(run_tool(*run)))["tokens"] == wanted["tokens"]
    result = run_tool("tessera", "translate", "--model", compiled / "t5", "--tokens", ",".join(["5"] * 65))
    assert result.returncode == 1 and "the text has 65 tokens; the model takes 1 to 64" in result.stderr


def merge(folder: Path) -> None:
    """Joins the decoders of T5 in an If, as optimum does: the branch for later tokens returns empty keys and values of
    the encoder."""
    first, later = (onnx.load(folder / f"decoder{name}_model.onnx").graph for name in ("", "_with_past"))
    inputs = {value.name: value for graph in (first, later) for value in graph.input}
    inputs["input_ids"] = first.input[0]
    flag = helper.make_tensor_value_info("use_cache_branch", onnx.TensorProto.BOOL, [1])
    names = [value.name for value in first.output]
    kept = {value.name: value for value in later.output}
    empty = helper.make_tensor("", onnx.TensorProto.FLOAT, [1, 2, 0, 8], [])
    branches = {}
    for key, graph in (("then_branch", later), ("else_branch", first)):
        for value in (*graph.node, *graph.initializer):
            value.name = f"{key}/{value.name}" if isinstance(value, onnx.NodeProto) else value.name
        missing = [name for name in names if key == "then_branch" and name not in kept]
        nodes = [helper.make_node("Constant", [], [name], value=empty) for name in missing]
        outputs = [helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, None) for name in names]
        branches[key] = helper.make_graph([*graph.node, *nodes], key, [], outputs, graph.initializer)
    node = helper.make_node("If", ["use_cache_branch"], names, **branches)
    for name, value in inputs.items():
        size = "seq" if name == "input_ids" else "past" if ".decoder." in name else "source"
        for dim in value.type.tensor_type.shape.dim:
            if dim.dim_param:
                dim.dim_param = size
    outputs = [helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, None) for name in names]
    graph = helper.make_graph([node], "merged", [*inputs.values(), flag], outputs)
    opset = [helper.make_opsetid("", 18)]
    onnx.save(helper.make_model(graph, opset_imports=opset, ir_version=8), folder / "decoder_model_merged.onnx")


def test_merged_decoder(tmp_path: Path) -> None:
    shutil.copytree(MODELS / "t5", tmp_path / "t5")
    merge(tmp_path / "t5")
    check(run_tool("tessera", "llm", tmp_path / "t5", "-o", tmp_path / "out", "--context", "64", "--chunk", "64"))
    assert not (tmp_path / "out/decoder_with_past.bmodel").exists()
    model, wanted = EncoderDecoder(tmp_path / "out"), expected("t5")
    x = np.array([wanted["source"]])
    assert list(model.generate(model.encode(x), wanted["prompt"], 24)) == wanted["tokens"]


def noise(count: int) -> np.ndarray:
    samples = (0.1 * np.random.default_rng(5).standard_normal(count)).astype(np.float32)
    samples[4000:] *= 0.01
    return samples


def write_wav(path: Path, samples: np.ndarray, rate: int = RATE) -> Path:
    with wave.open(str(path), "wb") as file:
        file.setparams((1, 2, rate, 0, "NONE", ""))
        file.writeframes(np.rint(samples * 32767).astype("<i2").tobytes())
    return path


def whisper_tokens(spectra: np.ndarray, prompt: list[int], count: int) -> list[int]:
    """Returns the tokens that onnxruntime chooses greedily, without caches."""
    encoder, decoder = (
        onnxruntime.InferenceSession(str(MODELS / f"whisper/{name}_model.onnx")) for name in ("encoder", "decoder")
    )
    hidden = encoder.run(None, {"input_features": spectra})[0]
    tokens = list(prompt)
    while len(tokens) < len(prompt) + count:
        logits = decoder.run(["logits"], {"input_ids": np.array([tokens]), "encoder_hidden_states": hidden})[0]
        token = int(logits[0, -1].argmax())
        if token == 2:
            break
        tokens.append(token)
    return tokens[len(prompt) :]


def test_transcribe(compiled: Path, tmp_path: Path) -> None:
    """The windows of a recording give the tokens of onnxruntime, and those with timestamps cover the recording."""
    write_wav(tmp_path / "a.wav", noise(RATE * 3 // 2))
    run = ("tessera", "transcribe", tmp_path / "a.wav", "--model", compiled / "whisper", "--json")
    segments = json.loads(check(run_tool(*run)))["segments"]
    assert [(s["start"], s["end"]) for s in segments] == [(0, 1), (1, 1.5)]
    samples = read_wav(tmp_path / "a.wav")
    for segment in segments:
        part = samples[int(segment["start"] * RATE) :][:RATE]
        assert segment["tokens"] == whisper_tokens(log_mel(part, 80, 100), [1, 5, 6, 12], 28)
    timed = json.loads(check(run_tool(*run, "--timestamps")))["segments"]
    assert timed and all(0 <= s["start"] <= s["end"] <= 2.5 for s in timed)
    assert all(token < 13 for s in timed for token in s["tokens"])


def test_log_mel() -> None:
    """The spectra of transformers 5.24 for the same samples: WhisperFeatureExtractor(80, chunk_length=1)."""
    found = log_mel(noise(12000), 80, 100)
    wanted = [
        [0.79927, 0.66097, -0.4719, -1.12208],
        [0.5397, 0.496, -0.52939, -1.12208],
        [0.71145, 0.58974, -0.27329, -1.12208],
        [0.66078, 0.57356, -0.34765, -1.12208],
    ]
    assert found.shape == (1, 80, 100)
    np.testing.assert_allclose(found[0][np.ix_((0, 13, 40, 79), (0, 20, 60, 90))], wanted, atol=1e-4)


def test_log_mel_of_transformers() -> None:
    extractor = pytest.importorskip("transformers").WhisperFeatureExtractor(feature_size=80)
    wanted = extractor(noise(50000), sampling_rate=RATE, return_tensors="np").input_features
    np.testing.assert_allclose(log_mel(noise(50000), 80, 3000), wanted, atol=1e-4)


def test_timestamps() -> None:
    """Text stands between timestamps that do not decrease; silence after the last segment ends a window."""
    first, eos = 20, 10
    rules = TimestampRules(first, eos, [3])
    favour = lambda *tokens: np.array([5.0 if i in tokens else 0 for i in range(90)], np.float32)
    assert rules.choose(favour(4), []) == first and rules.choose(favour(80), []) != 80
    assert rules.choose(favour(30, 4), [25]) == 4  # text after the first timestamp
    assert rules.choose(favour(3, 19, 4), [25]) == 4  # 3 and the token for no timestamps are never chosen
    assert rules.choose(favour(25, 26), [25, 4]) == 26  # a segment ends after its start
    assert rules.choose(favour(24, 28), [25, 4, 27]) == 28  # text does not follow the end of a segment
    assert rules.choose(favour(24, 4), [25, 4, 30, 30]) == 4
    assert split_at_times([20, 5, 6, 45, 45, 7, 70], first, 30) == ([(0.0, 0.5, (5, 6)), (0.5, 1.0, (7,))], 30)
    assert split_at_times([20, 5, 45, 45, 7], first, 30) == ([(0.0, 0.5, (5,))], 0.5)
    assert split_at_times([20, 5], first, 30) == ([(0.0, 30, (5,))], 30)
    assert split_at_times([], first, 30) == ([], 30)


def test_wrong_files(compiled: Path, tmp_path: Path) -> None:
    slow = write_wav(tmp_path / "slow.wav", noise(800), rate=8000)
    with pytest.raises(TesseraError, match="supported are 16000"):
        read_wav(slow)
    slow.write_bytes(b"RIFF")
    with pytest.raises(TesseraError, match="failed to read"):
        read_wav(slow)
    with pytest.raises(TesseraError, match="not a compiled encoder and decoder"):
        EncoderDecoder(tmp_path)
    with pytest.raises(TesseraError, match="does not know the language 'fr'"):
        Transcriber(EncoderDecoder(compiled / "whisper"), language="fr")
    with pytest.raises(TesseraError, match="does not take spectra"):
        Transcriber(EncoderDecoder(compiled / "t5"))
    shutil.copytree(MODELS / "t5", tmp_path / "t5")
    (tmp_path / "t5/decoder_with_past_model.onnx").unlink()
    result = run_tool("tessera", "llm", tmp_path / "t5", "-o", tmp_path / "out")
    assert result.returncode == 1 and "decoder_with_past_model.onnx" in result.stderr
    assert not (tmp_path / "out/encoder.bmodel").exists()
