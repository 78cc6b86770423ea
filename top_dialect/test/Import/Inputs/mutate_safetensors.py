# SPDX-License-Identifier: Apache-2.0
"""Writes small Hugging Face folders with altered bytes, each as one file: mutate_safetensors.py FOLDER COUNT SEED.

A file has config.json, model.safetensors.index.json, model.safetensors and model-2.safetensors, each behind its size
as a u32."""
from __future__ import annotations

import json
import random
import struct
import sys
from pathlib import Path
from typing import Any

_SIZES = {"F32": 4, "F16": 2, "BF16": 2}
_SCALING: list[Any] = [
    None,
    {"rope_type": "linear", "factor": 2.0},
    {"rope_type": "llama3", "factor": 4.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0},
    {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 16},
    {"type": "longrope", "short_factor": [1.0] * 8, "long_factor": [2.0] * 8},
]


def config(rng: random.Random) -> dict[str, Any]:
    found: dict[str, Any] = {"model_type": rng.choice(["llama", "qwen2", "qwen3", "phi3", "gemma3_text"])}
    found |= {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 1, "num_attention_heads": 2}
    found |= {"num_key_value_heads": rng.choice([1, 2]), "head_dim": 16, "vocab_size": 5, "rms_norm_eps": 1e-5}
    found |= {"max_position_embeddings": 32, "tie_word_embeddings": rng.random() < 0.5}
    found["rope_scaling"] = rng.choice(_SCALING)
    if found["rope_scaling"] and found["rope_scaling"].get("rope_type") == "llama3":
        found["rope_scaling"]["original_max_position_embeddings"] = 16
    if rng.random() < 0.3:
        found |= {"sliding_window": 4, "layer_types": ["sliding_attention"], "use_sliding_window": True}
    return found


def shapes(settings: dict[str, Any]) -> dict[str, tuple[int, ...]]:
    keys = 16 * settings["num_key_value_heads"]
    layer: dict[str, tuple[int, ...]] = {"input_layernorm": (32,), "post_attention_layernorm": (32,)}
    layer |= {"self_attn.o_proj": (32, 32), "mlp.down_proj": (32, 48)}
    if settings["model_type"] == "phi3":
        layer |= {"self_attn.qkv_proj": (32 + 2 * keys, 32), "mlp.gate_up_proj": (96, 32)}
    else:
        layer |= {"self_attn.q_proj": (32, 32), "self_attn.k_proj": (keys, 32), "self_attn.v_proj": (keys, 32)}
        layer |= {"mlp.gate_proj": (48, 32), "mlp.up_proj": (48, 32)}
    if settings["model_type"] == "gemma3_text":
        layer |= {"pre_feedforward_layernorm": (32,), "post_feedforward_layernorm": (32,)}
    found: dict[str, tuple[int, ...]] = {"model.embed_tokens.weight": (5, 32), "model.norm.weight": (32,)}
    found |= {f"model.layers.0.{name}.weight": shape for name, shape in layer.items()}
    return found if settings["tie_word_embeddings"] else {**found, "lm_head.weight": (5, 32)}


def safetensors(rng: random.Random, tensors: dict[str, tuple[int, ...]]) -> bytes:
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}} if rng.random() < 0.5 else {}
    offset = 0
    for name, shape in tensors.items():
        kind = rng.choice(list(_SIZES))
        end = offset + shape[0] * (shape[1] if len(shape) == 2 else 1) * _SIZES[kind]
        header[name] = {"dtype": kind, "shape": shape, "data_offsets": [offset, end]}
        offset = end
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + rng.randbytes(offset)


def alter(rng: random.Random, data: bytes, most: int) -> bytes:
    """Changes bytes at the beginning of a file, or cuts it off."""
    altered = bytearray(data)
    for _ in range(rng.choice([1, 1, 3])):
        at = rng.randrange(min(len(altered), most))
        altered[at] = rng.choice([0, 1, 34, 44, 48, 57, 91, 123, 127, 255, rng.randrange(256)])
    return bytes(altered[: rng.randrange(len(altered))] if rng.random() < 0.1 else altered)


def write(rng: random.Random) -> bytes:
    settings = config(rng)
    tensors = shapes(settings)
    first, second = dict(list(tensors.items())[::2]), dict(list(tensors.items())[1::2])
    index = b""
    if rng.random() < 0.5:
        files = {name: "model.safetensors" for name in first} | {name: "model-2.safetensors" for name in second}
        index = json.dumps({"metadata": {"total_size": 1}, "weight_map": files}).encode()
    else:
        first, second = tensors, {}
    files = [json.dumps(settings).encode(), index, safetensors(rng, first), safetensors(rng, second)]
    if rng.random() < 0.9:
        at = rng.choice([i for i, file in enumerate(files) if file])
        files[at] = alter(rng, files[at], 2000)
    return b"".join(struct.pack("<I", len(file)) + file for file in files)


def main() -> None:
    folder, count, rng = Path(sys.argv[1]), int(sys.argv[2]), random.Random(int(sys.argv[3]))
    folder.mkdir(parents=True, exist_ok=True)
    for i in range(count):
        (folder / f"{i}.bin").write_bytes(write(rng))


main()
