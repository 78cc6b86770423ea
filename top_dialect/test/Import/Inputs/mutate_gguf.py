# SPDX-License-Identifier: Apache-2.0
"""Writes small GGUF files with altered bytes to a folder: mutate_gguf.py FOLDER COUNT SEED."""
from __future__ import annotations

import random
import struct
import sys
from pathlib import Path


def text(value: str) -> bytes:
    return struct.pack("<Q", len(value)) + value.encode()


def number(value: int | float) -> bytes:
    return struct.pack("<II", 4, value) if isinstance(value, int) else struct.pack("<If", 6, value)


def write(rng: random.Random) -> bytes:
    """Returns a decoder of the architecture llama, with one layer and random formats."""
    hyperparameters = {
        "block_count": 1,
        "context_length": 16,
        "embedding_length": 32,
        "attention.head_count": 2,
        "attention.head_count_kv": rng.choice([1, 2]),
        "attention.layer_norm_rms_epsilon": 1e-5,
        "rope.dimension_count": rng.choice([16, 8]),
    }
    keys = 16 * hyperparameters["attention.head_count_kv"]
    entries = [text("general.architecture") + struct.pack("<I", 8) + text("llama")]
    entries += [text(f"llama.{key}") + number(value) for key, value in hyperparameters.items()]
    tokens = struct.pack("<IIQ", 9, 8, 4) + b"".join(map(text, "abcd"))
    entries.append(text("tokenizer.ggml.tokens") + tokens)
    shapes = {"token_embd": (32, 4), "output_norm": (32,), "blk.0.attn_norm": (32,), "blk.0.ffn_norm": (32,)}
    shapes |= {"blk.0.attn_q": (32, 32), "blk.0.attn_k": (32, keys), "blk.0.attn_v": (32, keys)}
    shapes |= {"blk.0.attn_output": (32, 32), "blk.0.ffn_gate": (32, 64), "blk.0.ffn_up": (32, 64)}
    shapes |= {"blk.0.ffn_down": (64, 32)}
    infos, offset = b"", 0
    for name, shape in shapes.items():
        code, block, size = (
            rng.choice([(0, 1, 4), (2, 32, 18), (3, 32, 20), (8, 32, 34)]) if len(shape) == 2 else (0, 1, 4)
        )
        infos += text(f"{name}.weight") + struct.pack(f"<I{len(shape)}Q", len(shape), *shape)
        infos += struct.pack("<IQ", code, offset)
        count = shape[0] * (shape[1] if len(shape) == 2 else 1)
        offset += -(-count // block * size // 32) * 32
    front = b"GGUF" + struct.pack("<IQQ", 3, len(shapes), len(entries)) + b"".join(entries) + infos
    return front + bytes(-len(front) % 32) + rng.randbytes(offset)


def main() -> None:
    folder, count, rng = Path(sys.argv[1]), int(sys.argv[2]), random.Random(int(sys.argv[3]))
    folder.mkdir(parents=True, exist_ok=True)
    for i in range(count):
        data = bytearray(write(rng))
        for _ in range(rng.choice([0, 1, 1, 3])):
            at = rng.randrange(min(len(data), 1400))
            data[at] = rng.choice([0, 1, 127, 255, rng.randrange(256)])
        if rng.random() < 0.1:
            del data[rng.randrange(len(data)) :]
        (folder / f"{i}.gguf").write_bytes(data)


main()
