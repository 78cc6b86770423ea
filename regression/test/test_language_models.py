# SPDX-License-Identifier: Apache-2.0
"""Language models from GGUF files: the same tokens as their references, and clear errors for wrong files."""
from __future__ import annotations

import json
import struct
import subprocess
from pathlib import Path
from typing import Any, Callable

import gguf_files
import numpy as np
import onnxruntime
import pytest
from case_file import data_path
from conftest import check, run_tool

from tessera.errors import TesseraError
from tessera.llm import LanguageModel, load
from tessera.llm.chat import render
from tessera.llm.sampling import Sampler, Sampling
from tessera.safetensors_io import MappedTensors

Story = tuple[dict[str, Any], dict[str, np.ndarray]]


@pytest.fixture(scope="module")
def story() -> Story:
    return gguf_files.stories(data_path("data:models/llm/stories260k_kv.onnx"), data_path("data:models/llm/tok512.bin"))


@pytest.fixture(scope="module")
def model(story: Story, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Returns stories260k in F32, as compiled by the command."""
    folder = tmp_path_factory.mktemp("stories")
    gguf_files.write(folder / "s.gguf", *story, {})
    check(run_tool("tessera", "llm", folder / "s.gguf", "-o", folder / "s.bmodel", "--context", "256", "--chunk", "64"))
    return folder / "s.bmodel"


def test_greedy_tokens(model: Path, need: Callable[[str], Path]) -> None:
    """200 tokens equal the golden ones, and those of onnxruntime beyond."""
    golden = json.loads(need("data:golden/stories260k/greedy.json").read_text())
    session = onnxruntime.InferenceSession(str(need("data:models/llm/stories260k.onnx")))
    net = load(model)
    made = list(net.generate_tokens([1], 200))
    assert [1, *made][:64] == golden["greedy_ids"]
    assert net.tokenizer.decode(made[:63]).strip() == golden["text"].strip()
    logits = session.run(None, {"input_ids": np.array([[1, *made]])})[0][0]
    assert logits[:-1].argmax(1).tolist() == made
    net.reset()
    prompt = [1, *made[:150]]  # longer than two runs
    assert net.feed(prompt)[-1] == pytest.approx(logits[150], abs=2e-4)
    assert list(net.generate_tokens([*prompt, made[150]], 49)) == made[151:]
    assert net.last.cached == 151 and net.last.prompt_tokens == 152


@pytest.mark.parametrize("form", ["Q4_0", "Q4_1", "Q8_0"])
def test_formats(story: Story, tmp_path: Path, form: str) -> None:
    """Weights in groups of 32 give the logits of their dequantised numbers, and the file keeps their bits."""
    metadata, tensors = story
    forms = {name: form for name in tensors if tensors[name].ndim == 2 and "ffn_down" not in name}
    dequantised = {name: gguf_files.decode(array, forms.get(name, "F32")) for name, array in tensors.items()}
    logits, sizes = [], []
    for name, arrays, used in (("integers", tensors, forms), ("floats", dequantised, {})):
        gguf_files.write(tmp_path / f"{name}.gguf", metadata, arrays, used)
        output = tmp_path / f"{name}.bmodel"
        check(run_tool("tessera", "llm", tmp_path / f"{name}.gguf", "-o", output, "--context", "64", "--all_logits"))
        logits.append(load(output).feed([1, 403, 407, 261, 378]))
        sizes.append(output.stat().st_size)
    np.testing.assert_allclose(logits[0], logits[1], rtol=1e-4, atol=1e-4)
    assert len(logits[0]) == 5 and sizes[0] < 0.7 * sizes[1]
    blocks = tmp_path / "blocks.bmodel"
    flags = ("--context", "64", "--all_logits", "--quantize", "W8A8")
    check(run_tool("tessera", "llm", tmp_path / "integers.gguf", "-o", blocks, *flags))
    error = load(blocks).feed([1, 403, 407, 261, 378]) - logits[0]
    assert 0 < np.linalg.norm(error) < 0.02 * np.linalg.norm(logits[0])
    assert blocks.stat().st_size < 0.75 * sizes[0]  # 0.84 if groups of 4 bits were not kept


def test_generation(model: Path) -> None:
    """Text, stops, seeds and the end of the context, by the commands and from Python."""
    run = ("tessera", "generate", model, "--prompt", "Once upon a time", "--max_tokens", "40", "--json")
    answer = json.loads(check(run_tool(*run)))
    assert answer["text"].startswith(", there was a little girl named Lily.") and answer["ended_by"] == "max_tokens"
    stopped = json.loads(check(run_tool(*run, "--stop", "named Li", "--stop", "zzz")))
    assert stopped["text"] == ", there was a little girl " and stopped["ended_by"] == "stop"
    net = load(model)
    texts = ["".join(net.generate("One day", 20, temperature=1.0, top_k=40, seed=seed)) for seed in (1, 1, 2)]
    assert texts[0] == texts[1] != texts[2]
    assert len(list(net.generate_tokens([1] * 250))) == 7 and net.last.ended_by == "context"
    net.reset()
    with pytest.raises(TesseraError, match="257 tokens do not fit into the model's context of 256"):
        net.feed([1] * 257)
    with pytest.raises(TesseraError, match="tokens are from 0 to 511"):
        net.feed([512])


def test_full_context(model: Path) -> None:
    """The message says what to do, whether the prompt or the answer does not fit."""
    run = ("tessera", "generate", model, "--prompt")
    result = run_tool(*run, "Once upon a time. " * 16)
    assert "is full; compile it with a larger --context" in result.stdout and result.returncode == 0
    result = run_tool(*run, "Once upon a time. " * 80)
    assert result.returncode == 1 and "do not fit into the model's context of 256" in result.stderr
    assert "shorten the prompt, or compile the model with a larger --context" in result.stderr


@pytest.mark.parametrize("template", ["{% for m in messages %}{{", "{{ raise_exception('no system') }}", "{{ 1 / 0 }}"])
def test_broken_template(story: Story, tmp_path: Path, template: str) -> None:
    pytest.importorskip("jinja2")
    metadata, tensors = story
    gguf_files.write(tmp_path / "m.gguf", {**metadata, "tokenizer.chat_template": template}, tensors, {})
    check(run_tool("tessera", "llm", tmp_path / "m.gguf", "-o", tmp_path / "m.bmodel", "--context", "32"))
    result = run_tool("tessera", "chat", tmp_path / "m.bmodel")
    assert result.returncode == 1 and "the model's chat template failed" in result.stderr
    assert "Traceback" not in result.stderr
    check(run_tool("tessera", "generate", tmp_path / "m.bmodel", "--prompt", "a", "--max_tokens", "2"))


def test_chat(model: Path) -> None:
    pytest.importorskip("jinja2")
    given = "Hello\nAgain\n/exit\nnot read\n"
    run = [*map(str, ("tessera", "chat", model, "--max_tokens", "8", "--json"))]
    done = subprocess.run(run, input=given, capture_output=True, text=True, check=True)
    messages = json.loads(done.stdout)["messages"]
    assert [m["role"] for m in messages] == ["user", "assistant"] * 2 and messages[2]["content"] == "Again"
    net = load(model)
    text = net.chat_text(messages[:1])
    assert text == "user: Hello\n" and "".join(net.generate(text, 8)) == messages[1]["content"]


def test_sampling() -> None:
    logits = np.log(np.array([0.1, 0.5, 0.25, 0.15], np.float32))
    draw = lambda **how: {Sampler(Sampling(seed=s, **how)).choose(logits, [1]) for s in range(60)}
    assert draw() == {1} and draw(temperature=1.0) == {0, 1, 2, 3}
    assert draw(temperature=1.0, top_k=2) == {1, 2} == draw(temperature=1.0, top_p=0.6)
    assert draw(temperature=1.0, min_p=0.4) == {1, 2} and draw(repetition_penalty=5.0) == {2}
    for wrong in (dict(top_p=0), dict(temperature=-1), dict(min_p=2), dict(repetition_penalty=0)):
        with pytest.raises(TesseraError, match="must be"):
            Sampler(Sampling(**wrong))


def test_chat_templates_are_confined() -> None:
    pytest.importorskip("jinja2")
    assert render("{{ bos_token }}{{ messages[0].content }}", [{"content": "x"}], bos_token="<s>") == "<s>x"
    # Published templates use tools, JSON without escapes, loops that end early, marks for training, and dates.
    tools = "{% if tools is not none %}{{ tools }}{% endif %}{{ {'a': '<é>'} | tojson }}"
    assert render(tools, []) == '{"a": "<é>"}'
    loop = "{% for m in messages %}{% generation %}{{ m.content }}{% endgeneration %}{% break %}{% endfor %}"
    assert render(loop + "{{ strftime_now('%%') }}", [{"content": "x"}, {"content": "y"}]) == "x%"
    for wrong in (
        "{% for %}",
        "{{ ''.__class__.__mro__[1].__subclasses__() }}",
        "{{ raise_exception('no') }}",
        "{{ 1/0 }}",
    ):
        with pytest.raises(TesseraError, match="chat template failed"):
            render(wrong, [])


def rejected(path: Path, *flags: object) -> str:
    result = run_tool("tessera", "llm", path, "-o", path.with_suffix(".bmodel"), *flags)
    assert result.returncode in (1, 2, 4) and not path.with_suffix(".bmodel").exists(), result.stderr
    return result.stderr


def test_wrong_files(story: Story, tmp_path: Path) -> None:
    metadata, tensors = story
    path = tmp_path / "m.gguf"

    def change(meta: dict[str, Any] = {}, more: dict[str, np.ndarray] = {}, without: str = "") -> str:
        kept = {name: array for name, array in {**tensors, **more}.items() if name != without}
        gguf_files.write(path, {**metadata, **meta}, kept, {})
        return rejected(path)

    assert "architecture 'mamba' is not supported; supported are llama, qwen2" in change(
        {"general.architecture": "mamba"}
    )
    assert "'llama.new_trick' is not supported" in change({"llama.new_trick": 1})
    assert "the tensor 'blk.0.attn_q.weight' is missing" in change(without="blk.0.attn_q.weight")
    assert "does not use 1 tensors of the model: extra.weight" in change(
        more={"extra.weight": np.zeros((2, 2), np.float32)}
    )
    assert "has the shape [32, 64], but the hyperparameters" in change({"llama.attention.head_count_kv": 8})
    assert "trained for 512 positions" in rejected_context(path, story)
    whole = path.read_bytes()
    for size in (0, 3, 20, 40, 500, 5000, len(whole) - 100):
        path.write_bytes(whole[:size])
        text = rejected(path)
        assert any(word in text for word in ("not a GGUF file", "incomplete", "empty")), (size, text)
    path.write_bytes(b"GGUF" + struct.pack("<IQQ", 3, 1 << 60, 1 << 60) + bytes(64))
    assert "do not fit" in rejected(path)


def test_file_too_small_to_be_mapped(tmp_path: Path) -> None:
    """The importer gives memory of weights back to the system. It must not do so with those of a file that was read."""
    rng = np.random.default_rng(3)
    metadata: dict[str, Any] = {
        "general.architecture": "llama",
        "llama.block_count": 1,
        "llama.context_length": 8,
        "llama.embedding_length": 32,
        "llama.attention.head_count": 1,
        "llama.attention.key_length": 4,
        "llama.attention.layer_norm_rms_epsilon": 1e-5,
    }
    shapes = {"attn_q": (4, 32), "attn_k": (4, 32), "attn_v": (4, 32), "attn_output": (32, 4)}
    shapes |= {"ffn_gate": (4, 32), "ffn_up": (4, 32), "ffn_down": (32, 4), "attn_norm": (32,), "ffn_norm": (32,)}
    arrays = {f"blk.0.{name}.weight": rng.normal(size=shape).astype(np.float32) for name, shape in shapes.items()}
    numbers = rng.integers(-127, 128, (256, 32)).astype(np.float32)  # two pages of Q8_0, so one of them is whole
    numbers[:, 0] = 127
    arrays |= {"token_embd.weight": numbers}
    arrays |= {"output_norm.weight": np.ones(32, np.float32)}
    gguf_files.write(tmp_path / "m.gguf", metadata, arrays, {"token_embd.weight": "Q8_0"})
    assert (tmp_path / "m.gguf").stat().st_size < 1 << 14
    run = ("tessera-compile", "import-decoder", "--model", tmp_path / "m.gguf", "--output", tmp_path / "m_top.mlir")
    check(run_tool(*run))
    found = MappedTensors(tmp_path / "m_weights.safetensors")
    tables = [array for array in found.values() if array.dtype == np.int8]
    assert tables and all(np.array_equal(table.reshape(256, 32), numbers) for table in tables)


def rejected_context(path: Path, story: Story) -> str:
    gguf_files.write(path, *story, {})
    return rejected(path, "--context", "513")


def test_tokenizer_of_another_model(story: Story, tmp_path: Path) -> None:
    metadata, tensors = story
    tokens = metadata["tokenizer.ggml.tokens"] + ["more"]
    other = {
        "tokenizer.ggml.tokens": tokens,
        "tokenizer.ggml.scores": [0.0] * 513,
        "tokenizer.ggml.token_type": [1] * 513,
    }
    gguf_files.write(tmp_path / "m.gguf", {**metadata, **other}, tensors, {})
    check(run_tool("tessera", "llm", tmp_path / "m.gguf", "-o", tmp_path / "m.bmodel", "--context", "32"))
    result = run_tool("tessera", "generate", tmp_path / "m.bmodel", "--prompt", "a")
    assert result.returncode == 1 and "it belongs to another model" in result.stderr
    assert len(list(LanguageModel(tmp_path / "m.bmodel").generate_tokens([1], 3))) == 3
    # Networks may have logits for more tokens than their tokenizer; those have no text.
    fewer = {key: value[:300] if isinstance(value, list) else value for key, value in metadata.items()}
    gguf_files.write(tmp_path / "m.gguf", fewer, tensors, {})
    check(run_tool("tessera", "llm", tmp_path / "m.gguf", "-o", tmp_path / "m.bmodel", "--context", "32"))
    net = LanguageModel(tmp_path / "m.bmodel")
    made = list(net.generate_tokens([1], 20))
    assert max(made) >= 300 and "".join(net.tokenizer.stream(iter(made))) is not None
