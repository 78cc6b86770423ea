#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes a checkpoint of architecture llama with random weights: a .gguf file, or with --form BF16 a Hugging Face
folder.

    build/bin/tessera-python regression/random_checkpoint.py tiny.gguf --form Q4_0    # the shape of TinyLlama-1.1B

The tokens make no sense; the model serves to measure speed and memory. Weights are written piece by piece, so that a
few MB of memory are enough for any size. The same arguments give the same bytes.
"""
from __future__ import annotations

import argparse
import json
import math
import struct
import sys
from pathlib import Path
from typing import IO, Any

import numpy as np

sys.path.append(str(Path(__file__).parent / "test"))
import gguf_files
from llama_shaped import Shape

FOLDER = "BF16"
"""The format of Hugging Face folders."""
FORMS = ("F32", "F16", "Q4_0", "Q4_1", "Q8_0", FOLDER)
_POOL = 1 << 22  # random numbers, from which all matrices are cut
_EPSILON = 1e-5
Tensors = dict[str, tuple[int, ...]]


def _tensors(shape: Shape) -> Tensors:
    """Returns the shapes of the tensors by GGUF's names."""
    keys = shape.kv_heads * shape.head
    found: Tensors = {"token_embd.weight": (shape.vocab, shape.hidden)}
    for layer in range(shape.layers):
        parts: Tensors = {"attn_norm": (shape.hidden,), "attn_q": (shape.hidden, shape.hidden)}
        parts |= {"attn_k": (keys, shape.hidden), "attn_v": (keys, shape.hidden)}
        parts |= {"attn_output": (shape.hidden, shape.hidden), "ffn_norm": (shape.hidden,)}
        parts |= {"ffn_gate": (shape.ffn, shape.hidden), "ffn_up": (shape.ffn, shape.hidden)}
        parts["ffn_down"] = (shape.hidden, shape.ffn)
        found |= {f"blk.{layer}.{name}.weight": dims for name, dims in parts.items()}
    return found | {"output_norm.weight": (shape.hidden,), "output.weight": (shape.vocab, shape.hidden)}


class _Writer:
    """Writes tensors in one format: norms of ones in F32 (BF16 in a folder), and matrices of random numbers."""

    def __init__(self, form: str, shape: Shape, seed: int) -> None:
        self._random = np.random.default_rng(seed)
        count = min(_POOL, 32 * shape.vocab * shape.hidden)
        numbers = self._random.standard_normal(count, np.float32) * np.float32(shape.hidden**-0.5)
        self._form, encoded = form, self._encode(numbers, form)
        self._matrices, self._block = memoryview(encoded), 32 if form.startswith("Q") else 1
        self._block_bytes = len(encoded) * self._block // count

    @staticmethod
    def _encode(numbers: np.ndarray, form: str) -> bytes:
        return numbers.view(np.uint16)[1::2].tobytes() if form == FOLDER else gguf_files.encode(numbers, form)

    def size(self, dims: tuple[int, ...]) -> int:
        """Returns the number of bytes of a tensor."""
        if len(dims) == 1:
            return dims[0] * (2 if self._form == FOLDER else 4)
        return math.prod(dims) // self._block * self._block_bytes

    def write(self, file: IO[bytes], dims: tuple[int, ...]) -> None:
        """Writes a tensor. Matrices begin at random places of the pool, so that no two are equal."""
        if len(dims) == 1:
            file.write(self._encode(np.ones(dims, np.float32), FOLDER if self._form == FOLDER else "F32"))
            return
        left = self.size(dims)
        at = int(self._random.integers(len(self._matrices) // self._block_bytes)) * self._block_bytes
        while left:
            part = self._matrices[at : at + left]
            file.write(part)
            left, at = left - len(part), 0


def _vocabulary(count: int) -> dict[str, Any]:
    """Returns the metadata of a tokenizer with bytes and words without meaning."""
    words = [f"w{i}" for i in range(count - 259)]
    return {
        "tokenizer.ggml.model": "llama",
        "tokenizer.ggml.tokens": ["<unk>", "<s>", "</s>", *(f"<0x{i:02X}>" for i in range(256)), *words],
        "tokenizer.ggml.scores": [0.0] * count,
        "tokenizer.ggml.token_type": [2, 3, 3, *[6] * 256, *[1] * len(words)],
        "tokenizer.ggml.bos_token_id": 1,
        "tokenizer.ggml.eos_token_id": 2,
        "tokenizer.ggml.unknown_token_id": 0,
    }


def write_gguf(path: Path, form: str, shape: Shape, context: int, seed: int = 0) -> None:
    """Writes a .gguf file with matrices in a format of gguf_files, and a tokenizer."""
    writer, given = _Writer(form, shape, seed), _tensors(shape)
    code = lambda dims: gguf_files.CODES[form if len(dims) == 2 else "F32"]
    infos = {name: (code(dims), dims, writer.size(dims)) for name, dims in given.items()}
    metadata: dict[str, Any] = {
        "general.architecture": "llama",
        "llama.block_count": shape.layers,
        "llama.context_length": context,
        "llama.embedding_length": shape.hidden,
        "llama.feed_forward_length": shape.ffn,
        "llama.attention.head_count": shape.heads,
        "llama.attention.head_count_kv": shape.kv_heads,
        "llama.attention.layer_norm_rms_epsilon": _EPSILON,
        "llama.rope.dimension_count": shape.head,
    }
    with open(path, "wb") as file:
        file.write(gguf_files.header(metadata | _vocabulary(shape.vocab), infos))
        for dims in given.values():
            writer.write(file, dims)
            file.write(bytes(-file.tell() % gguf_files.ALIGNMENT))


def write_folder(folder: Path, shape: Shape, context: int, seed: int = 0) -> None:
    """Writes a Hugging Face folder in BF16, without a tokenizer."""
    names = {"attn_q": "self_attn.q_proj", "attn_k": "self_attn.k_proj", "attn_v": "self_attn.v_proj"}
    names |= {"attn_output": "self_attn.o_proj", "ffn_gate": "mlp.gate_proj", "ffn_up": "mlp.up_proj"}
    names |= {"ffn_down": "mlp.down_proj", "attn_norm": "input_layernorm", "ffn_norm": "post_attention_layernorm"}
    names |= {"token_embd": "model.embed_tokens", "output_norm": "model.norm", "output": "lm_head"}
    header, offset, writer, given = {}, 0, _Writer(FOLDER, shape, seed), _tensors(shape)
    for name, dims in given.items():
        *block, part, _ = name.split(".")
        layer = f"model.layers.{block[1]}." if block else ""
        end = offset + writer.size(dims)
        header[f"{layer}{names[part]}.weight"] = {"dtype": "BF16", "shape": dims, "data_offsets": [offset, end]}
        offset = end
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    folder.mkdir(exist_ok=True)
    with open(folder / "model.safetensors", "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for dims in given.values():
            writer.write(file, dims)
    config = {"model_type": "llama", "hidden_size": shape.hidden, "intermediate_size": shape.ffn}
    config |= {"num_hidden_layers": shape.layers, "num_attention_heads": shape.heads, "rms_norm_eps": _EPSILON}
    config |= {"num_key_value_heads": shape.kv_heads, "max_position_embeddings": context, "vocab_size": shape.vocab}
    (folder / "config.json").write_text(json.dumps({**config, "tie_word_embeddings": False}))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("output", type=Path)
    parser.add_argument("--form", default="Q4_0", choices=FORMS)
    parser.add_argument("--context", type=int, default=2304)
    sizes = {name: size for name, size in vars(Shape()).items() if name != "sequence"}
    for name, size in sizes.items():
        parser.add_argument(f"--{name}", type=int, default=size, help="default: %(default)s")
    args = parser.parse_args()
    shape = Shape(**{name: getattr(args, name) for name in sizes})
    if args.form == FOLDER:
        write_folder(args.output, shape, args.context)
    else:
        write_gguf(args.output, args.form, shape, args.context)


if __name__ == "__main__":
    main()
