# SPDX-License-Identifier: Apache-2.0
"""Language models from Hugging Face folders: stories260k against its golden tokens, small random networks of each
architecture against transformers (optional), and clear errors for wrong folders."""
from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Callable

import gguf_files
import numpy as np
import pytest
from case_file import data_path
from conftest import check, run_tool
from transformers_networks import check_logits, random_decoder

from tessera.llm import load
from tessera.llm.tokenizer import make_tokenizer
from tessera.safetensors_io import save

NAMES = {
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
    "attn_norm": "input_layernorm",
    "ffn_norm": "post_attention_layernorm",
    "token_embd": "model.embed_tokens",
    "output_norm": "model.norm",
}
CONFIG: dict[str, Any] = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "hidden_size": 64,
    "intermediate_size": 172,
    "num_hidden_layers": 5,
    "num_attention_heads": 8,
    "num_key_value_heads": 4,
    "max_position_embeddings": 512,
    "rms_norm_eps": 1e-5,
    "hidden_act": "silu",
    "tie_word_embeddings": True,
    "rope_scaling": None,
    "unk_token_id": 0,
    "vocab_size": 512,
}


def theirs(name: str, array: np.ndarray) -> tuple[str, np.ndarray]:
    """Returns the name and the rows of a tensor as transformers stores them: pairs that rotate together are half a head
    apart."""
    *block, part, kind = name.split(".")
    if part in ("attn_q", "attn_k"):
        array = array.reshape(len(array) // 8, 4, 2, 64).swapaxes(1, 2).reshape(array.shape)
    layer = f"model.layers.{block[1]}." if block else ""
    return f"{layer}{NAMES[part]}.{kind}", array


def write_story(folder: Path) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """Writes stories260k as a folder with two files of weights. Returns the tensors and the metadata of GGUF."""
    vocabulary = data_path("data:models/llm/tok512.bin")
    metadata, tensors = gguf_files.stories(data_path("data:models/llm/stories260k_kv.onnx"), vocabulary)
    arrays = dict(theirs(name, array) for name, array in tensors.items())
    folder.mkdir()
    files = {}
    for i, part in enumerate((sorted(arrays)[:20], sorted(arrays)[20:]), 1):
        save(folder / f"model-{i}.safetensors", {name: arrays[name] for name in part})
        files.update(dict.fromkeys(part, f"model-{i}.safetensors"))
    (folder / "model.safetensors.index.json").write_text(json.dumps({"metadata": {}, "weight_map": files}))
    (folder / "config.json").write_text(json.dumps(CONFIG))
    write_tokenizers(folder, metadata)
    return arrays, metadata


def write_tokenizers(folder: Path, metadata: dict[str, Any]) -> None:
    """Writes the vocabulary as tokenizer.json."""
    tokens = metadata["tokenizer.ggml.tokens"]
    scores = metadata["tokenizer.ggml.scores"]
    ids = {token: i for i, token in enumerate(tokens)}
    pairs = [
        (-scores[i], i, f"{token[:at]} {token[at:]}")
        for token, i in ids.items()
        for at in range(1, len(token))
        if i >= 259 and token[:at] in ids and token[at:] in ids
    ]
    model = {"type": "BPE", "vocab": ids, "merges": [text for *_, text in sorted(pairs)], "unk_token": "<unk>"}
    replace = {"type": "Replace", "pattern": {"String": " "}, "content": "\u2581"}
    normalizer = {"type": "Sequence", "normalizers": [{"type": "Prepend", "prepend": "\u2581"}, replace]}
    added = [{"id": i, "content": tokens[i], "special": True} for i in range(3)]
    whole = {"model": {**model, "byte_fallback": True}, "normalizer": normalizer, "added_tokens": added}
    (folder / "tokenizer.json").write_text(json.dumps(whole))
    special = {"bos_token": {"content": tokens[1]}, "eos_token": tokens[2], "add_bos_token": True}
    (folder / "tokenizer_config.json").write_text(json.dumps(special))
    (folder / "chat_template.jinja").write_text(metadata["tokenizer.chat_template"])


def compile_folder(folder: Path, *flags: object) -> Path:
    output = folder.parent / "m.bmodel"
    check(run_tool("tessera", "llm", folder, "-o", output, "--context", "128", "--chunk", "64", *flags))
    return output


def test_story(tmp_path: Path, need: Callable[[str], Path]) -> None:
    """The golden's tokens and text, and logits of quantised weights near those of floats."""
    _, metadata = write_story(tmp_path / "story")
    golden = json.loads(need("data:golden/stories260k/greedy.json").read_text())
    net = load(compile_folder(tmp_path / "story"))
    assert [1, *net.generate_tokens([1], 63)] == golden["greedy_ids"][:64]
    prompt = "Once upon a time, there was a girl"
    assert net.tokenizer.encode(prompt) == make_tokenizer(metadata, 512).encode(prompt)
    assert net.tokenizer.decode(golden["greedy_ids"][1:64]).strip() == golden["text"].strip()
    assert net.chat_text([{"role": "user", "content": "Hi"}]) == "user: Hi\n"
    net.reset()
    wanted = net.feed(net.tokenizer.encode(prompt))
    for flag, most in (("BF16", 0.03), ("W8A8", 0.03), ("W4", 0.4)):
        got = load(compile_folder(tmp_path / "story", "--quantize", flag)).feed(net.tokenizer.encode(prompt))
        assert 0 < np.linalg.norm(got - wanted) < most * np.linalg.norm(wanted), flag


def test_wrong_folders(tmp_path: Path) -> None:
    folder = tmp_path / "story"
    arrays, _ = write_story(folder)

    def rejected() -> str:
        run = ("tessera-compile", "import-decoder", "--model", folder, "--output", tmp_path / "m_top.mlir")
        result = run_tool(*run)
        assert result.returncode in (1, 2, 4) and not (tmp_path / "m_top.mlir").exists(), result.stderr
        return result.stdout + result.stderr

    def with_config(**changes: object) -> str:
        (folder / "config.json").write_text(json.dumps({**CONFIG, **changes}))
        return rejected()

    assert "the model type 'mamba' is not supported; supported are llama, mistral" in with_config(model_type="mamba")
    assert "'num_new_tricks' is not supported" in with_config(num_new_tricks=2)
    assert "the scaling 'dynamic'" in with_config(rope_scaling={"type": "dynamic", "factor": 2.0})
    assert "the tensor 'lm_head.weight' is missing" in with_config(tie_word_embeddings=False)
    assert "activation 'relu'" in with_config(hidden_act="relu")
    assert "'num_hidden_layers' is missing" in with_config(num_hidden_layers=None)
    assert "hyperparameters of the model imply" in with_config(num_attention_heads=4)
    (folder / "config.json").write_text(json.dumps(CONFIG))
    index = json.loads((folder / "model.safetensors.index.json").read_text())
    for name, file, text in (
        ("a", "../m.safetensors", "not in the folder itself"),
        ("a", "none.safetensors", "cannot read 'none.safetensors'"),
        ("a", "model-1.safetensors", "the tensor 'a' is missing"),
    ):
        changed = {"weight_map": {**index["weight_map"], name: file}}
        (folder / "model.safetensors.index.json").write_text(json.dumps(changed))
        assert text in rejected()
    (folder / "model.safetensors.index.json").unlink()
    save(folder / "model.safetensors", {**arrays, "model.extra": np.zeros(3, np.float32)})
    assert "does not use 1 tensors of the model: model.extra" in rejected()
    whole = (folder / "model.safetensors").read_bytes()
    for size in (0, 7, 100, len(whole) - 8):
        (folder / "model.safetensors").write_bytes(whole[:size])
        assert "model.safetensors" in rejected()
    (folder / "config.json").unlink()
    assert "has no config.json" in rejected()


SIZES: dict[str, Any] = {
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "vocab_size": 96,
    "max_position_embeddings": 64,
    "pad_token_id": 0,
    "attn_implementation": "eager",
}
LLAMA3 = {"rope_type": "llama3", "factor": 4.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0}
LLAMA3["original_max_position_embeddings"] = 16
YARN = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 16}
LONG = {"type": "longrope", "short_factor": [1.0, 1.1, 1.2, 1.3, 1.4, 1.5, 1.6, 1.7], "long_factor": [2.0] * 8}
CASES: dict[str, tuple[str, dict[str, Any]]] = {
    "llama": ("Llama", {**SIZES, "rope_scaling": LLAMA3}),
    "llama-linear": (
        "Llama",
        {**SIZES, "rope_scaling": {"rope_type": "linear", "factor": 2.0}, "attention_bias": True},
    ),
    "llama-tied": ("Llama", {**SIZES, "rope_scaling": YARN, "tie_word_embeddings": True}),
    "mistral": ("Mistral", {**SIZES, "sliding_window": 9, "head_dim": 16}),
    "qwen2": ("Qwen2", {**SIZES, "use_sliding_window": True, "sliding_window": 9, "max_window_layers": 0}),
    "qwen2-mixed": ("Qwen2", {**SIZES, "use_sliding_window": True, "sliding_window": 9, "max_window_layers": 1}),
    "qwen3": ("Qwen3", {**SIZES, "head_dim": 32}),
    "phi3": ("Phi3", {**SIZES, "sliding_window": 9, "rope_scaling": LONG, "original_max_position_embeddings": 48}),
    "gemma3": (
        "Gemma3",
        {**SIZES, "head_dim": 16, "sliding_window": 7, "num_hidden_layers": 7, "query_pre_attn_scalar": 20},
    ),
    "gpt2": ("GPT2", {"n_embd": 64, "n_layer": 2, "n_head": 4, "n_positions": 64, "vocab_size": 96}),
}


@pytest.mark.parametrize("case", CASES)
def test_architecture(case: str, tmp_path: Path) -> None:
    network, tokens, wanted = random_decoder(*CASES[case], 96)
    network.save_pretrained(tmp_path / "m")
    flags = ("--all_logits", "--chunk", "16")
    check(run_tool("tessera", "llm", tmp_path / "m", "-o", tmp_path / "m.bmodel", *flags))
    check_logits(load(tmp_path / "m.bmodel"), tokens, wanted)
