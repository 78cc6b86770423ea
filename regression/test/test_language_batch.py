# SPDX-License-Identifier: Apache-2.0
"""Several sequences in one model, speculation, saved caches, grammars and cancellation: nothing changes the tokens that
a sequence has alone."""
from __future__ import annotations

import json
import subprocess
import threading
from pathlib import Path

import gguf_files
import numpy as np
import pytest
from case_file import data_path
from conftest import check, run_tool
from llama_shaped import Shape
from random_checkpoint import write_gguf

from tessera.errors import TesseraError
from tessera.llm import LanguageModel, Sampling, load
from tessera.llm.model import _DRAFT

SLOTS, LENGTH = 3, 12
PROMPTS = [[1, *map(int, np.random.default_rng(n).integers(3, 512, n))] for n in (0, 5, 30, 20, 9)]


def compile_stories(folder: Path, form: str, *flags: object, heads: int = 8) -> Path:
    """Compiles stories260k; with another number of heads, the text makes no sense."""
    metadata, tensors = gguf_files.stories(
        data_path("data:models/llm/stories260k_kv.onnx"), data_path("data:models/llm/tok512.bin")
    )
    metadata["llama.attention.head_count"], metadata["llama.attention.head_count_kv"] = heads, heads // 2
    metadata["llama.rope.dimension_count"] = 64 // heads
    path = folder / "s.gguf"
    gguf_files.write(path, metadata, tensors, {n: form for n in tensors if tensors[n].ndim == 2 and "down" not in n})
    flags = ("--context", "96", "--chunk", "16", *flags)
    check(run_tool("tessera", "llm", path, "-o", folder / "s.bmodel", *flags))
    return folder / "s.bmodel"


@pytest.fixture(scope="module")
def paths(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Returns stories260k for one sequence and for several."""
    make = lambda name, *flags: compile_stories(tmp_path_factory.mktemp(name), "F32", *flags)
    return {"one": make("one"), "several": make("several", "--sequences", SLOTS)}


def alone(model: LanguageModel, prompt: list[int]) -> list[int]:
    model.reset()
    return list(model.generate_tokens(prompt, LENGTH))


def test_sequences_join_and_leave(paths: dict[str, Path]) -> None:
    """More sequences than slots, with prompts of several runs; one leaves between two steps, one joins."""
    one = load(paths["one"])
    expected = [alone(one, prompt) for prompt in PROMPTS]
    batch = load(paths["several"]).batch()
    made: dict[int, list[int]] = {}
    leaving = batch.add([1, 300], 90)
    numbers = [batch.add(prompt, LENGTH) for prompt in PROMPTS[:-1]]
    for steps in range(100):
        if steps == 5:
            batch.remove(leaving)
            numbers.append(batch.add(PROMPTS[-1], LENGTH))
        step = batch.step()
        assert len(step.tokens) <= batch.slots
        for number, token in step.tokens.items():
            made.setdefault(number, []).append(token)
        if not len(batch):
            break
    assert [made[number] for number in numbers] == expected and len(made[leaving]) == 5
    with pytest.raises(TesseraError, match="the batch has no sequence"):
        batch.remove(leaving)
    with pytest.raises(TesseraError, match="97 tokens do not fit into the model's context of 96"):
        batch.add([1] * 97)
    full = batch.add([1] * 95)
    ends = [batch.step().ended for _ in range(7)]
    assert ends == [{}] * 6 + [{full: "context"}]  # 6 runs read the prompt


@pytest.mark.parametrize("precision", ["FILE", "W8A8"])
def test_logits_do_not_depend_on_other_sequences(tmp_path: Path, precision: str) -> None:
    """Each sequence has the bits that it has alone."""
    path = compile_stories(tmp_path, "Q8_0", "--sequences", SLOTS, "--quantize", precision, heads=4)
    caches = load(path)._caches
    parts = {0: [1, 403, 407], 1: [1], 2: list(range(100, 116))}
    expected = {}
    for slot, tokens in parts.items():
        caches.reset()
        expected[slot] = [caches.run({slot: tokens})[slot], caches.run({slot: [7]})[slot]]
    caches.reset()
    first, second = caches.run(parts), caches.run({slot: [7] for slot in parts})
    for slot in parts:
        np.testing.assert_array_equal(first[slot], expected[slot][0])
        np.testing.assert_array_equal(second[slot], expected[slot][1])


# Heads, heads of keys, features of a head (in place if they are a multiple of 16), type of the caches.
_CACHED = [(4, 2, 16, "f32"), (3, 1, 64, "f32"), (5, 5, 16, "bf16"), (7, 1, 32, "bf16"), (8, 1, 16, "int8")]
_CACHED += [(6, 2, 48, "int8"), (6, 3, 20, "f32"), (6, 3, 12, "bf16"), (10, 2, 8, "int8"), (1, 1, 128, "bf16")]


@pytest.mark.parametrize("heads, key_heads, size, kv", _CACHED)
def test_few_tokens_have_the_bits_of_single_tokens(
    tmp_path: Path, heads: int, key_heads: int, size: int, kv: str
) -> None:
    """Checked guesses and the tokens of several sequences, behind caches of any length up to the context."""
    context, rng = 41, np.random.default_rng(heads)
    shape = Shape(layers=2, hidden=heads * size, ffn=32, heads=heads, kv_heads=key_heads, vocab=300)
    write_gguf(tmp_path / "m.gguf", "F32", shape, context)
    flags = ("--context", context, "--chunk", 16, "--sequences", 2, "--kv", kv)
    check(run_tool("tessera", "llm", tmp_path / "m.gguf", "-o", tmp_path / "m.bmodel", *flags))
    caches = load(tmp_path / "m.bmodel")._caches

    def after_prompts(prompts: dict[int, list[int]], parts: list[dict[int, list[int]]]) -> np.ndarray:
        """Returns the logits of slot 0."""
        caches.reset()
        for slot, prompt in prompts.items():
            for begin in range(0, len(prompt), caches.chunk):
                caches.run({slot: prompt[begin : begin + caches.chunk]})
        return np.concatenate([caches.run(part, len(part[0]))[0] for part in parts])

    draw = lambda count: [int(token) for token in rng.integers(3, 300, count)]
    for length in (0, 1, 13, context - 1 - _DRAFT):
        prompt, guesses, other = draw(length), draw(1 + _DRAFT), draw(int(rng.integers(1, 30)))
        expected = after_prompts({0: prompt}, [{0: [token]} for token in guesses])
        np.testing.assert_array_equal(after_prompts({0: prompt}, [{0: guesses}]), expected)
        together = [{0: [token], 1: draw(1 + i % 3)} for i, token in enumerate(guesses)]
        np.testing.assert_array_equal(after_prompts({0: prompt, 1: other}, together), expected)


def test_speculation_keeps_the_tokens(paths: dict[str, Path], tmp_path: Path) -> None:
    """Guesses from the text and from a draft model, greedy and sampled."""
    one, several = load(paths["one"]), load(paths["several"])
    with pytest.raises(TesseraError, match="guesses cannot be checked together"):
        one.drafter()
    sampled = Sampling(temperature=1.0, top_k=40, seed=3)
    for how in (Sampling(), sampled):
        for prompt in ([1, *[403, 407] * 4], *PROMPTS):
            one.reset()
            expected = list(one.generate_tokens(prompt, 20, how))
            for drafter in (several.drafter(), several.drafter(load(paths["one"]))):
                assert list(several.generate_tokens(prompt, 20, how, drafter=drafter)) == expected
                assert several.last.accepted <= several.last.drafted
    list(several.generate_tokens([1], 20, drafter=several.drafter(load(paths["one"]))))
    assert several.last.accepted == several.last.drafted == 14  # the same model guesses all
    assert len(list(several.generate_tokens([1] * 90, drafter=several.drafter()))) == 7
    metadata, tensors = gguf_files.stories(
        data_path("data:models/llm/stories260k_kv.onnx"), data_path("data:models/llm/tok512.bin")
    )
    metadata["tokenizer.ggml.tokens"] = [*metadata["tokenizer.ggml.tokens"][:-1], "other"]
    gguf_files.write(tmp_path / "m.gguf", metadata, tensors, {})
    check(run_tool("tessera", "llm", tmp_path / "m.gguf", "-o", tmp_path / "m.bmodel", "--context", "32"))
    with pytest.raises(TesseraError, match="the draft model has a tokenizer of another vocabulary"):
        several.drafter(load(tmp_path / "m.bmodel"))


def test_saved_caches(paths: dict[str, Path]) -> None:
    for path in paths.values():
        model, other = load(path), load(path)
        expected = alone(model, PROMPTS[2])
        model.prefill(PROMPTS[2][:20])
        other.restore(model.save())
        assert list(other.generate_tokens(PROMPTS[2], LENGTH)) == expected and other.last.cached == 20
        saved = model.save()
        for wrong in (b"", b"[[1]]\n", b"7 0\n", saved[:-1]):
            with pytest.raises(TesseraError, match="the saved caches do not fit the model"):
                other.restore(wrong)
        # A list of tokens that somebody changed would give later tokens wrong positions or wrong beginnings.
        for changed in (b"[[1, 1, ", b"[[512, ", b"[[2, "):
            with pytest.raises(TesseraError, match="their checksum is wrong"):
                other.restore(saved.replace(b"[[1, ", changed, 1))
        assert alone(other, PROMPTS[2]) == expected
    with pytest.raises(TesseraError, match="they have 3 sequences, and the model 1"):
        load(paths["one"]).restore(load(paths["several"]).save())


def test_chat_state(paths: dict[str, Path], tmp_path: Path) -> None:
    pytest.importorskip("jinja2")
    state = tmp_path / "state"
    run = [*map(str, ("tessera", "chat", paths["one"], "--max_tokens", "4", "--system", "Be kind.", "--json"))]
    talk = lambda *flags: subprocess.run(
        [*run, *map(str, flags)], input="Hello\n", capture_output=True, text=True, check=True
    ).stdout
    answers = [json.loads(talk(*flags))["messages"] for flags in ((), ("--state", state), ("--state", state))]
    assert answers[0] == answers[1] == answers[2] and state.exists()
    state.write_bytes(b"[[]]\n")
    result = subprocess.run([*run, "--state", str(state)], input="", capture_output=True, text=True)
    assert result.returncode == 1 and "the saved caches do not fit the model" in result.stderr


def test_commands(paths: dict[str, Path]) -> None:
    run = ("tessera", "generate", paths["several"], "--max_tokens", "8", "--json", "--prompt", "Once upon a time")
    plain = json.loads(check(run_tool(*run)))
    guessed = json.loads(check(run_tool(*run, "--draft", paths["one"])))
    assert guessed["text"] == plain["text"] and guessed["accepted"] == guessed["drafted"] > 0
    assert json.loads(check(run_tool(*run, "--prompt", "One day")))["texts"][0] == plain["text"]
    result = run_tool(*run, "--prompt", "One day", "--lookup")
    assert result.returncode == 2 and "--lookup needs a single --prompt" in result.stderr
    result = run_tool("tessera", "generate", paths["one"], "--prompt", "a", "--lookup")
    assert result.returncode == 1 and "compile it with --sequences 1" in result.stderr
    flags = ("-o", paths["one"].with_name("o.bmodel"), "--sequences", 2)
    result = run_tool("tessera", "llm", data_path("data:models/llm/stories260k_kv.onnx"), *flags)
    assert result.returncode == 2 and "--sequences needs a .gguf file" in result.stderr


@pytest.mark.parametrize("kv, bytes_per_number", [("bf16", 2), ("int8", 1.5)])  # heads of 8 numbers and a scale
def test_cache_types(paths: dict[str, Path], tmp_path: Path, kv: str, bytes_per_number: float) -> None:
    """Smaller caches change the logits a little; nothing else does."""
    path = compile_stories(tmp_path, "F32", "--kv", kv)
    model, exact = load(path), load(paths["one"])
    tokens = alone(exact, [1]) + PROMPTS[2]
    exact.reset()
    expected, found = exact.feed(tokens)[-1], model.feed(tokens)[-1]
    error = np.linalg.norm(found - expected) / np.linalg.norm(expected)
    assert 0 < error < 0.02, error
    used = [len(net._caches._net.save_state()) for net in (model, exact)]
    assert used[0] / used[1] == pytest.approx(bytes_per_number / 4, rel=0.05)
    assert alone(model, [1]) == alone(exact, [1])
    model.reset()
    first = model.feed(tokens)[-1]
    np.testing.assert_array_equal(first, found)


def test_cancel(paths: dict[str, Path]) -> None:
    """A cancelled generation ends with an error; the model goes on as if the token had never begun."""
    model = load(paths["one"])
    expected = alone(model, [1])
    model.reset()
    stop = threading.Event()

    def cancel() -> None:
        while not stop.is_set():
            model.cancel()

    made: list[int] = []
    tokens = model.generate_tokens([1], 90)
    made.append(next(tokens))
    thread = threading.Thread(target=cancel)
    thread.start()
    try:
        with pytest.raises(TesseraError, match="cancelled"):
            for _ in range(100):
                made += tokens
                tokens = model.generate_tokens([1], 90)
    finally:
        stop.set()
        thread.join()
    assert list(model.generate_tokens([1], LENGTH)) == expected


def test_grammars(paths: dict[str, Path], tmp_path: Path) -> None:
    pytest.importorskip("llguidance")
    model = load(paths["several"])
    schema = {"type": "object", "properties": {"name": {"enum": ["Lily", "Tim"]}}, "required": ["name"]}
    schema["additionalProperties"] = False
    schema["x-guidance"] = {"whitespace_flexible": False}  # a model this small would add spaces without end
    text = "".join(model.generate("Once", 40, constraint=model.grammar("json_schema", json.dumps(schema))))
    assert json.loads(text)["name"] in ("Lily", "Tim") and model.last.ended_by == "end"
    guided = lambda **how: "".join(model.generate("Once", 40, constraint=model.grammar("regex", "[0-9]{4}"), **how))
    assert guided().isdigit() and guided() == guided(drafter=model.drafter())
    for form, wrong in (("gbnf", "root ::= ("), ("json_schema", "{"), ("regex", "(")):
        with pytest.raises(TesseraError, match="the grammar is wrong"):
            model.grammar(form, wrong)
    (tmp_path / "wrong.gbnf").write_text("root ::= (")
    result = run_tool("tessera", "generate", paths["one"], "--prompt", "a", "--gbnf", tmp_path / "wrong.gbnf")
    assert result.returncode == 1 and "the grammar is wrong" in result.stderr
