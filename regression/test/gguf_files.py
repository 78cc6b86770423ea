# SPDX-License-Identifier: Apache-2.0
"""Writes small GGUF files: any metadata, tensors in F32, F16 and the formats with groups of 32."""
from __future__ import annotations

import struct
from pathlib import Path
from typing import Any, Mapping

import numpy as np
import onnx
from onnx import numpy_helper

ALIGNMENT = 32
CODES = {"F32": 0, "F16": 1, "Q4_0": 2, "Q4_1": 3, "Q8_0": 8}


def _text(text: str) -> bytes:
    return struct.pack("<Q", len(text.encode())) + text.encode()


def _value(value: Any) -> bytes:
    """Returns the type and the bytes of a value."""
    if isinstance(value, bool):
        return struct.pack("<IB", 7, value)
    if isinstance(value, int):
        return struct.pack("<II", 4, value)
    if isinstance(value, float):
        return struct.pack("<If", 6, value)
    if isinstance(value, str):
        return struct.pack("<I", 8) + _text(value)
    elements = [_value(element) for element in value]
    return struct.pack("<I", 9) + elements[0][:4] + struct.pack("<Q", len(value)) + b"".join(e[4:] for e in elements)


def encode(array: np.ndarray, form: str) -> bytes:
    """Returns the bytes of an array in a format."""
    if form in ("F32", "F16"):
        return array.astype({"F32": "<f4", "F16": "<f2"}[form]).tobytes()
    x = array.astype(np.float32).reshape(-1, 32)
    low, high, most = x.min(1), x.max(1), np.abs(x).max(1)
    if form == "Q8_0":
        scale = (most / 127).astype(np.float16)
        q = np.rint(x / np.where(scale == 0, 1, scale).astype(np.float32)[:, None]).astype(np.int8)
        return np.concatenate([scale[:, None].view(np.uint8), q.view(np.uint8)], 1).tobytes()
    scale = ((high - low) / 15 if form == "Q4_1" else most / 8).astype(np.float16)
    start = low.astype(np.float16) if form == "Q4_1" else -8 * scale
    steps = np.where(scale == 0, 1, scale).astype(np.float32)
    q = np.clip(np.rint((x - start.astype(np.float32)[:, None]) / steps[:, None]), 0, 15).astype(np.uint8)
    head = [scale[:, None].view(np.uint8)] + ([start[:, None].view(np.uint8)] if form == "Q4_1" else [])
    return np.concatenate([*head, q[:, :16] | q[:, 16:] << 4], 1).tobytes()


def decode(array: np.ndarray, form: str) -> np.ndarray:
    """Returns the numbers that a reader finds for `array` in a format."""
    data = encode(array, form)
    if form in ("F32", "F16"):
        return np.frombuffer(data, {"F32": "<f4", "F16": "<f2"}[form]).astype(np.float32).reshape(array.shape)
    blocks = np.frombuffer(data, np.uint8).reshape(array.size // 32, -1)
    half = lambda at: blocks[:, at : at + 2].copy().view(np.float16).astype(np.float32)
    if form == "Q8_0":
        return (half(0) * blocks[:, 2:].view(np.int8)).reshape(array.shape)
    packed = blocks[:, -16:]
    q = np.concatenate([packed & 15, packed >> 4], 1).astype(np.float32)
    return (half(0) * q + half(2) if form == "Q4_1" else half(0) * (q - 8)).reshape(array.shape)


def write(
    path: Path,
    metadata: Mapping[str, Any],
    tensors: Mapping[str, np.ndarray],
    forms: Mapping[str, str],
    raw: Mapping[str, tuple[int, tuple[int, ...], bytes]] = {},
) -> None:
    """Writes a file. forms: the formats of tensors by name; others are F32. raw: more tensors, as ggml's number of the
    type, the shape, and the bytes."""
    encoded = dict(raw)
    for name, array in tensors.items():
        form = forms.get(name, "F32")
        encoded[name] = (CODES[form], array.shape, encode(array, form))
    infos = {name: (code, shape, len(content)) for name, (code, shape, content) in encoded.items()}
    with open(path, "wb") as file:
        file.write(header(metadata, infos))
        for *_, content in encoded.values():
            file.write(content + bytes(-len(content) % ALIGNMENT))


def header(metadata: Mapping[str, Any], infos: Mapping[str, tuple[int, tuple[int, ...], int]]) -> bytes:
    """Returns what precedes the tensors, whose bytes follow in this order, each up to a multiple of ALIGNMENT. infos:
    ggml's number of the type, the shape, and the number of bytes, by name."""
    texts, offset = [], 0
    for name, (code, shape, size) in infos.items():
        texts.append(_text(name) + struct.pack(f"<I{len(shape)}Q", len(shape), *shape[::-1]))
        texts.append(struct.pack("<IQ", code, offset))
        offset += size + -size % ALIGNMENT
    entries = [_text(key) + _value(value) for key, value in metadata.items()]
    front = b"GGUF" + struct.pack("<IQQ", 3, len(infos), len(metadata)) + b"".join(entries + texts)
    return front + bytes(-len(front) % ALIGNMENT)


def read_llama2c_vocabulary(path: Path) -> tuple[list[str], list[float]]:
    """Returns the tokens and scores of a tokenizer of llama2.c."""
    data, at = path.read_bytes(), 4
    tokens, scores = [], []
    while at < len(data):
        score, size = struct.unpack_from("<fi", data, at)
        tokens.append(data[at + 8 : at + 8 + size].decode())
        scores.append(score)
        at += 8 + size
    return tokens, scores


def stories(source: Path, vocabulary: Path) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Returns the metadata and the tensors of stories260k from its ONNX file and its tokenizer."""
    given = {i.name: numpy_helper.to_array(i) for i in onnx.load(source).graph.initializer}
    products = [array.T for name, array in given.items() if name.startswith("onnx::MatMul")]
    tensors = {"token_embd.weight": given["embed_tokens.weight"], "output_norm.weight": given["norm.weight"]}
    parts = ("attn_q", "attn_k", "attn_v", "attn_output", "ffn_gate", "ffn_up", "ffn_down")
    for layer in range(5):
        for i, part in enumerate(parts):
            tensors[f"blk.{layer}.{part}.weight"] = np.ascontiguousarray(products[7 * layer + i])
        for ours, theirs in (("attn_norm", "input_layernorm"), ("ffn_norm", "post_attention_layernorm")):
            tensors[f"blk.{layer}.{ours}.weight"] = given[f"layers.{layer}.{theirs}.weight"]
    tokens, scores = read_llama2c_vocabulary(vocabulary)
    tokens = [f"<0x{i - 3:02X}>" if 3 <= i < 259 else t.replace(" ", "\u2581") for i, t in enumerate(tokens)]
    types = [2, 3, 3] + [6] * 256 + [1] * (len(tokens) - 259)
    metadata: dict[str, Any] = {
        "general.architecture": "llama",
        "llama.block_count": 5,
        "llama.context_length": 512,
        "llama.embedding_length": 64,
        "llama.feed_forward_length": 172,
        "llama.attention.head_count": 8,
        "llama.attention.head_count_kv": 4,
        "llama.attention.layer_norm_rms_epsilon": 1e-5,
        "llama.rope.dimension_count": 8,
        "tokenizer.ggml.model": "llama",
        "tokenizer.ggml.tokens": tokens,
        "tokenizer.ggml.scores": scores,
        "tokenizer.ggml.token_type": types,
        "tokenizer.ggml.bos_token_id": 1,
        "tokenizer.ggml.eos_token_id": 2,
        "tokenizer.ggml.unknown_token_id": 0,
        "tokenizer.chat_template": "{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}",
    }
    return metadata, tensors
