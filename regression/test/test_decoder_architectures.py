# SPDX-License-Identifier: Apache-2.0
"""The templates of language models against transformers: small random networks of each architecture, written as GGUF.
Formats of tensors against the package gguf. Both are optional."""
from __future__ import annotations

from pathlib import Path
from typing import Any

import gguf_files
import numpy as np
import pytest
from conftest import check, run_tool
from transformers_networks import check_logits, random_decoder

from tessera.llm import load
from tessera.safetensors_io import MappedTensors

BLOCKS, WIDTH, HEADS, KEY_HEADS, SIZE, VOCABULARY, CONTEXT = 2, 64, 4, 2, 16, 96, 64
COMMON = {
    "block_count": BLOCKS,
    "context_length": CONTEXT,
    "embedding_length": WIDTH,
    "attention.head_count": HEADS,
    "attention.head_count_kv": KEY_HEADS,
    "rope.freq_base": 10000.0,
}
RMS = {"attention.layer_norm_rms_epsilon": 1e-6}
NAMES = {
    "model.embed_tokens": "token_embd",
    "model.norm": "output_norm",
    "lm_head": "output",
    "input_layernorm": "attn_norm",
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.qkv_proj": "attn_qkv",
    "self_attn.o_proj": "attn_output",
    "self_attn.q_norm": "attn_q_norm",
    "self_attn.k_norm": "attn_k_norm",
    "mlp.gate_proj": "ffn_gate",
    "mlp.gate_up_proj": "ffn_up",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
    "post_attention_layernorm": "ffn_norm",
}
GEMMA = {
    **NAMES,
    "post_attention_layernorm": "post_attention_norm",
    "pre_feedforward_layernorm": "ffn_norm",
    "post_feedforward_layernorm": "post_ffw_norm",
}
GPT2 = {
    "transformer.wte": "token_embd",
    "transformer.wpe": "position_embd",
    "transformer.ln_f": "output_norm",
    "ln_1": "attn_norm",
    "ln_2": "ffn_norm",
    "attn.c_attn": "attn_qkv",
    "attn.c_proj": "attn_output",
    "mlp.c_fc": "ffn_up",
    "mlp.c_proj": "ffn_down",
}
SIZES = {
    "hidden_size": WIDTH,
    "intermediate_size": 96,
    "num_hidden_layers": BLOCKS,
    "num_attention_heads": HEADS,
    "num_key_value_heads": KEY_HEADS,
    "vocab_size": VOCABULARY,
    "max_position_embeddings": CONTEXT,
    "rms_norm_eps": 1e-6,
    "pad_token_id": 0,
    "attn_implementation": "eager",
}
CASES: dict[str, tuple[str, dict[str, Any], dict[str, Any], dict[str, str]]] = {
    "llama": ("Llama", {**SIZES, "tie_word_embeddings": False}, RMS, NAMES),
    "qwen2": ("Qwen2", SIZES, RMS, NAMES),
    "qwen3": ("Qwen3", {**SIZES, "head_dim": 32}, {**RMS, "attention.key_length": 32}, NAMES),
    "phi3": ("Phi3", {**SIZES, "sliding_window": 9}, {**RMS, "attention.sliding_window": 9}, NAMES),
    "gemma3": (
        "Gemma3",
        {**SIZES, "head_dim": SIZE, "sliding_window": 7, "num_hidden_layers": 7, "query_pre_attn_scalar": SIZE},
        {**RMS, "attention.sliding_window": 7, "block_count": 7, "attention.key_length": SIZE, "rope.freq_base": 1e6},
        GEMMA,
    ),
    "gpt2": (
        "GPT2",
        {"n_embd": WIDTH, "n_layer": BLOCKS, "n_head": HEADS, "n_positions": CONTEXT, "vocab_size": VOCABULARY},
        {"attention.layer_norm_epsilon": 1e-5, "attention.head_count_kv": HEADS},
        GPT2,
    ),
}


def rename(name: str, names: dict[str, str]) -> str:
    """Returns GGUF's name of a tensor of transformers."""
    stem, _, kind = name.rpartition(".")
    if stem in names:
        return f"{names[stem]}.{kind}"
    _, _, rest = stem.partition(".layers." if ".layers." in stem else ".h.")
    layer, _, part = rest.partition(".")
    return f"blk.{layer}.{names[part]}.{kind}"


def adjacent_pairs(weight: np.ndarray, heads: int) -> np.ndarray:
    """Reorders the rows of queries or keys as converters do for "llama": pairs that rotate together are adjacent."""
    shape = (heads, 2, len(weight) // heads // 2, weight.shape[1])
    return weight.reshape(shape).swapaxes(1, 2).reshape(weight.shape)


def tensors_of(network: Any, architecture: str, names: dict[str, str]) -> dict[str, np.ndarray]:
    found = {}
    for name, tensor in network.state_dict().items():
        ours, array = rename(name, names), tensor.detach().numpy()
        if architecture == "gpt2" and array.ndim == 2 and "embd" not in ours:
            array = np.ascontiguousarray(array.T)
        if architecture == "gemma3" and "norm" in ours:
            array = array + 1
        if architecture == "llama" and (".attn_q." in ours or ".attn_k." in ours):
            array = adjacent_pairs(array, HEADS if ".attn_q." in ours else KEY_HEADS)
        found[ours] = array
    if "output.weight" in found and np.array_equal(found["output.weight"], found["token_embd.weight"]):
        del found["output.weight"]
    if architecture == "gpt2":
        found.pop("output.weight", None)
    return found


@pytest.mark.parametrize("architecture", CASES)
def test_architecture(architecture: str, tmp_path: Path) -> None:
    prefix, sizes, more, names = CASES[architecture]
    names = {**names, "lm_head": "output"}
    network, tokens, wanted = random_decoder(prefix, sizes, VOCABULARY)
    metadata = {f"{architecture}.{key}": value for key, value in {**COMMON, **more}.items()}
    arrays = tensors_of(network, architecture, names)
    gguf_files.write(tmp_path / "m.gguf", {"general.architecture": architecture, **metadata}, arrays, {})
    check(run_tool("tessera", "llm", tmp_path / "m.gguf", "-o", tmp_path / "m.bmodel", "--all_logits", "--chunk", "16"))
    check_logits(load(tmp_path / "m.bmodel"), tokens, wanted)


@pytest.mark.parametrize(
    "form", ["Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0", "Q2_K", "Q3_K", "Q4_K", "Q5_K", "Q6_K", "BF16"]
)
def test_format(form: str, tmp_path: Path) -> None:
    """Random blocks become the numbers that the package gguf finds in them."""
    gguf = pytest.importorskip("gguf")
    kind = gguf.GGMLQuantizationType[form]
    block, size = gguf.GGML_QUANT_SIZES[kind]
    rng = np.random.default_rng(4)
    blocks = rng.integers(0, 256, (64 * 256 // block, size), np.uint8)
    halves = rng.normal(size=(len(blocks), 2)).astype(np.float16).view(np.uint8)
    places = {"Q2_K": (80, 82), "Q3_K": (108,), "Q6_K": (208,), "BF16": ()}
    for i, at in enumerate(places.get(form, (0, 2) if form[-2:] in ("_1", "_K") else (0,))):
        blocks[:, at : at + 2] = halves[:, 2 * i : 2 * i + 2]
    if form == "BF16":
        blocks = rng.normal(size=64 * 256).astype(np.float32).view(np.uint8).reshape(-1, 4)[:, 2:].copy()
    wanted = gguf.dequantize(blocks.reshape(64, -1), kind).reshape(64, 256)
    metadata = {
        "general.architecture": "gpt2",
        "gpt2.block_count": 1,
        "gpt2.context_length": 8,
        "gpt2.embedding_length": 256,
        "gpt2.attention.head_count": 4,
        "gpt2.attention.layer_norm_epsilon": 1e-5,
    }
    sizes = {"attn_qkv": (768, 256), "attn_output": (256, 256), "ffn_up": (8, 256), "ffn_down": (256, 8)}
    tensors = {f"blk.0.{name}.weight": np.zeros(dims, np.float32) for name, dims in sizes.items()}
    for name in ("output_norm", "blk.0.attn_norm", "blk.0.ffn_norm"):
        tensors |= {f"{name}.{part}": np.ones(256, np.float32) for part in ("weight", "bias")}
    raw = {"token_embd.weight": (int(kind), (64, 256), blocks.tobytes())}
    gguf_files.write(tmp_path / "m.gguf", metadata, tensors, {}, raw)
    run = ("tessera-compile", "import-decoder", "--dequantise", "--model", tmp_path / "m.gguf")
    check(run_tool(*run, "--output", tmp_path / "m_top.mlir"))
    got = MappedTensors(tmp_path / "m_weights.safetensors")["token_embd.weight"]
    np.testing.assert_allclose(got, wanted, rtol=1e-6, atol=1e-6)
