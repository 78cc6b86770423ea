# SPDX-License-Identifier: Apache-2.0
"""Decoders from ONNX files in the layout of onnxruntime-genai: the same logits as onnxruntime for a prompt and token by
token, with weights of 4 and 8 bits, and clear errors."""
from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, Callable

import genai_files
import numpy as np
import onnx
import onnxruntime
import pytest
from conftest import check, run_tool
from genai_files import Form, Shape
from test_cuda import MACHINE, has_machine

from tessera.llm import load
from tessera.llm.tokenizer import make_tokenizer
from tessera.llm.tokenizer_files import read_tokenizer

SHAPE = Shape(layers=2, width=64, heads=4, key_heads=2)
VOCABULARY, HIDDEN = 96, 80
TOKENS = np.random.default_rng(3).integers(0, VOCABULARY, 24).tolist()
FORMS = {
    "F32": (Form(), 1e-4),
    "separate rotary": (Form(fused=False), 1e-4),
    "4 bits": (Form(4, 32, asymmetric=True, quantised_embedding=True), 1e-4),
    "4 bits, int8 rows": (Form(4, 32, accuracy_level=4), 1e-4),
    "8 bits": (Form(8, 64, quantised_embedding=True), 1e-4),
    "8 bits, int8 rows": (Form(8, 32, accuracy_level=4, asymmetric=True), 1e-4),
}


def save(folder: Path, form: Form = Form(), shape: Shape = SHAPE, hidden: int = HIDDEN) -> Path:
    path = folder / "m.onnx"
    genai_files.write(path, shape, form, genai_files.random_weights(shape, VOCABULARY, hidden))
    return path


def compile_llm(path: Path, *flags: object) -> Path:
    output = path.with_suffix(".bmodel")
    check(run_tool("tessera", "llm", path, "-o", output, "--context", "64", "--chunk", "16", *flags))
    return output


def reference(path: Path, tokens: list[int], shape: Shape = SHAPE) -> np.ndarray:
    """Returns the logits of all tokens from onnxruntime."""
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    known: dict[str, np.ndarray] = {
        "input_ids": np.array([tokens]),
        "attention_mask": np.ones((1, len(tokens)), np.int64),
        "position_ids": np.arange(len(tokens))[None],
    }
    empty = np.zeros((1, shape.key_heads, 0, shape.size), np.float32)
    return session.run(["logits"], {i.name: known.get(i.name, empty) for i in session.get_inputs()})[0][0]


@pytest.mark.parametrize("name", FORMS)
def test_logits(tmp_path: Path, name: str) -> None:
    form, tolerance = FORMS[name]
    path = save(tmp_path, form)
    wanted = reference(path, TOKENS)
    model = load(compile_llm(path))
    assert model.context == 64
    np.testing.assert_allclose(model.feed(TOKENS[:20])[-1], wanted[19], rtol=tolerance, atol=tolerance)
    for i in range(20, 24):
        np.testing.assert_allclose(model.feed(TOKENS[i : i + 1])[-1], wanted[i], rtol=tolerance, atol=tolerance)


def test_weights_keep_their_bits(tmp_path: Path) -> None:
    """The file has the weights in 4 bits unless they are to be dequantised."""
    shape = Shape(layers=1, width=256, heads=4, key_heads=2)
    path = save(tmp_path, Form(4, 32, asymmetric=True, quantised_embedding=True), shape, 1024)
    wanted, sizes = reference(path, TOKENS, shape)[-1], []
    for precision in ("FILE", "F32"):
        output = compile_llm(path, "--quantize", precision, "--all_logits")
        logits = load(output).feed(TOKENS)
        np.testing.assert_allclose(logits[-1], wanted, rtol=1e-4, atol=1e-4)
        assert len(logits) == len(TOKENS) % 16
        sizes.append(output.stat().st_size)
    assert sizes[0] < 0.3 * sizes[1]


def test_transform(tmp_path: Path) -> None:
    """The general commands keep the attention mask as an input, and reject runs in which it hides tokens."""
    path = save(tmp_path)
    dims = "batch_size=1,sequence_length=1..16,past_sequence_length=0..48"
    mlir = tmp_path / "m_top.mlir"
    flags = ("--model_name", "m", "--model_def", path, "--mlir", mlir, "--dims", dims, "--state", "auto")
    assert "compare with onnxruntime" in check(run_tool("model_transform", *flags))
    check(run_tool("tessera-compile", "deploy", "--mlir", mlir, "--output", tmp_path / "m.bmodel"))
    import tessera.runtime as runtime

    net, wanted = runtime.load(str(tmp_path / "m.bmodel")).net(), reference(path, TOKENS)
    for begin, end in ((0, 16), (16, 20), (20, 21)):
        inputs = {"input_ids": np.array([TOKENS[begin:end]]), "attention_mask": np.ones((1, end), np.int64)}
        np.testing.assert_allclose(net(inputs)["logits"][0], wanted[begin:end], rtol=1e-4, atol=1e-4)
    inputs = {"input_ids": np.array([TOKENS[21:22]]), "attention_mask": np.ones((1, 22), np.int64)}
    hidden = inputs["attention_mask"].copy()
    hidden[0, 0] = 0
    with pytest.raises(Exception, match="seqlens_k"):
        net({**inputs, "attention_mask": hidden})
    np.testing.assert_allclose(net(inputs)["logits"][0], wanted[21:22], rtol=1e-4, atol=1e-4)


def test_length_that_follows(tmp_path: Path) -> None:
    """With one new token, the length of the mask follows from that of the caches."""
    path = save(tmp_path)
    dims = "batch_size=1,sequence_length=1,past_sequence_length=1..48"
    command = ("tessera-compile", "import", "--onnx", path, "--output", tmp_path / "m.mlir", "--dims", dims)
    check(run_tool(*command))
    assert re.search(r"past_sequence_length\[1:48[^]]*\] \+ 1", (tmp_path / "m.mlir").read_text())


def rejected(path: Path, *flags: object) -> str:
    output = path.with_suffix(".rejected")
    result = run_tool("tessera", "llm", path, "-o", output, *flags)
    assert result.returncode in (1, 2, 4) and not output.exists(), result.stderr
    return result.stderr


def test_wrong_files(tmp_path: Path) -> None:
    path = save(tmp_path)
    assert "rotary angles for 256 positions" in rejected(path, "--context", "257")
    model = onnx.load(path)
    model.graph.input[1].name = "mask"
    onnx.save(model, path)
    assert "'mask' is not one of a decoder" in rejected(path)
    model = onnx.load(save(tmp_path))
    del model.graph.output[1:]
    onnx.save(model, path)
    assert "only 0 of the 4 caches have an output" in rejected(path)
    del model.graph.input[2:]
    onnx.save(model, path)
    assert "not a decoder with caches" in rejected(path)
    (tmp_path / "m.gguf").write_bytes(b"GGUF")
    assert "--tokenizer is for .onnx files" in rejected(tmp_path / "m.gguf", "--tokenizer", tmp_path)


def tokenizer_json(folder: Path, **changes: Any) -> Path:
    vocabulary = ["<unk>", "<s>", "</s>", "\u0120", "a", "b", "c", "1", "2", "ab", "\u0120ab", "abc"]
    found: dict[str, Any] = {
        "model": {
            "type": "BPE",
            "vocab": {token: i for i, token in enumerate(vocabulary)},
            "merges": ["a b", ["\u0120", "ab"], "ab c"],
        },
        "added_tokens": [{"id": i, "content": vocabulary[i], "special": True} for i in range(3)],
        "pre_tokenizer": {
            "type": "Sequence",
            "pretokenizers": [{"type": "Digits", "individual_digits": True}, {"type": "ByteLevel"}],
        },
    }
    path = folder / "tokenizer.json"
    path.write_text(json.dumps({**found, **changes}))
    config = {"bos_token": "<s>", "eos_token": {"content": "</s>"}, "chat_template": "{{ messages[0].content }}"}
    (folder / "tokenizer_config.json").write_text(json.dumps(config))
    return path


def test_tokenizer(tmp_path: Path) -> None:
    path = tokenizer_json(tmp_path)
    tokenizer = make_tokenizer(read_tokenizer(tmp_path), VOCABULARY)
    assert tokenizer.encode("abc ab12</s>b") == [11, 10, 7, 8, 2, 5]
    assert (tokenizer.bos, tokenizer.eos) == (1, 2) and tokenizer.decode([11, 10, 2, 7]) == "abc ab1"
    save(tmp_path)
    model = load(compile_llm(tmp_path / "m.onnx"))  # the tokenizer beside the model
    assert model.tokenizer.encode("ab") == [9] and model.chat_text([{"role": "user", "content": "hi"}]) == "hi"
    tokenizer_json(tmp_path, pre_tokenizer={"type": "Metaspace", "split": False})
    assert read_tokenizer(path)["tokenizer.ggml.scores"][9:] == [0.0, -1.0, -2.0]
    tokenizer_json(tmp_path, model={"type": "WordPiece", "vocab": {}})
    assert "its model is WordPiece; supported are BPE and Unigram" in rejected(save(tmp_path), "--tokenizer", path)
    scores = {
        "<unk>": 0,
        "<s>": 0,
        "</s>": 0,
        "\u2581": -2,
        "a": -3,
        "b": -3,
        "\u2581a": -4,
        "ab": -3.5,
        "\u2581ab": -6,
    }
    unigram = {"type": "Unigram", "unk_id": 0, "vocab": list(scores.items())}
    tokenizer_json(
        tmp_path,
        model=unigram,
        pre_tokenizer={"type": "Sequence", "pretokenizers": [{"type": "WhitespaceSplit"}, {"type": "Metaspace"}]},
        added_tokens=[{"id": i, "content": t, "special": True} for i, t in enumerate(list(scores)[:3])],
    )
    tokenizer = make_tokenizer(read_tokenizer(path), VOCABULARY)
    assert tokenizer.encode("ab  a zzb") == [3, 7, 6, 3, 0, 5, 2] and tokenizer.decode([3, 7, 6, 2]) == "ab a"


@pytest.mark.skipif(not has_machine(), reason="the PTX machine is not built or cannot run here")
def test_decode_on_devices(tmp_path: Path, need: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch) -> None:
    """A token at any length of the caches: the NPU, in buckets, and the GPU run all ops. Norms and
    attention add their sums in another order than x86."""
    import tessera.runtime as runtime

    monkeypatch.setenv("BMRT_LIBCUDA", str(MACHINE))
    mlir = tmp_path / "s_top.mlir"
    model = ("--model_name", "s", "--model_def", need("data:models/llm/stories260k_kv.onnx"), "--mlir", mlir)
    flags = ("--dims", "batch=1,seq=1,past=1..40", "--state", "none", "--not_inference")
    check(run_tool("model_transform", *model, *flags))
    nets = {}
    for chip, buckets in (("x86", ()), ("npu-base", ("--buckets", "past=15,40")), ("cuda", ())):
        path = tmp_path / f"{chip}.bmodel"
        how = ("--chip", chip, "--quantize", "W4A8", *buckets, "--skip_validation")
        printed = check(run_tool("model_deploy", "--mlir", mlir, "--model", path, *how))
        assert chip != "cuda" or "none run on the host" in printed
        assert chip != "npu-base" or printed.count("npu-base runs all") == 2, printed
        nets[chip] = runtime.load(str(path)).net()
    for past in (3, 15, 40):
        rng = np.random.default_rng(past)
        inputs = {"input_ids": np.array([[7]]), "position_ids": np.array([[past]])}
        inputs["attention_bias"] = np.zeros((1, 1, 1, past + 1), np.float32)
        for tensor in nets["x86"].inputs:
            if tensor.name.startswith("past"):
                inputs[tensor.name] = rng.standard_normal((1, 4, past, 8)).astype(np.float32)
        wanted = nets["x86"](inputs)["logits"]
        for chip in ("npu-base", "cuda"):
            np.testing.assert_allclose(nets[chip](inputs)["logits"], wanted, rtol=1e-4, atol=1e-4)
