#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures time and memory of `tessera llm` for a model in the shape of TinyLlama with 1.1 billion random weights.

    build/bin/tessera-python regression/bench/llm_import.py [--form Q4_0,Q8_0,F16,BF16] [--precision FILE,W4A8,W4,W8]

Q4_0, Q8_0 and F16 are .gguf files; BF16 is a Hugging Face folder. The table lists the size of the weights' file, the
time by the clock and of the processor, and the peak memory of all processes together: anonymous memory, and all memory
with the mapped pages of files, which the system can take back at any time. `--layers 2` measures a small model.
"""
from __future__ import annotations

import argparse
import json
import math
import os
import resource
import struct
import sys
import tempfile
from pathlib import Path
from typing import IO, Any, Iterator

import numpy as np

sys.path[:0] = [str(Path(__file__).parents[1]), str(Path(__file__).parents[1] / "test")]
import gguf_files
from llama_shaped import Shape
from peak_memory import peak_memory

POOL = 1 << 22  # random numbers, from which all tensors are cut
_BF16 = "BF16"
Tensors = dict[str, tuple[int, ...]]


def tensors(shape: Shape) -> Tensors:
    """Returns the shapes of the tensors by GGUF's names."""
    keys = shape.kv_heads * shape.head
    found: Tensors = {"token_embd.weight": (shape.vocab, shape.hidden)}
    for layer in range(shape.layers):
        parts = {"attn_norm": (shape.hidden,), "attn_q": (shape.hidden, shape.hidden), "attn_k": (keys, shape.hidden)}
        parts |= {"attn_v": (keys, shape.hidden), "attn_output": (shape.hidden, shape.hidden)}
        parts |= {"ffn_norm": (shape.hidden,), "ffn_gate": (shape.ffn, shape.hidden)}
        parts |= {"ffn_up": (shape.ffn, shape.hidden), "ffn_down": (shape.hidden, shape.ffn)}
        found |= {f"blk.{layer}.{name}.weight": dims for name, dims in parts.items()}
    return found | {"output_norm.weight": (shape.hidden,), "output.weight": (shape.vocab, shape.hidden)}


class Pool:
    """Random weights in one format."""

    def __init__(self, form: str, seed: int = 0) -> None:
        self._random = np.random.default_rng(seed)
        numbers = self._random.standard_normal(POOL, np.float32) * np.float32(0.02)
        encoded = numbers.view(np.uint16)[1::2].tobytes() if form == _BF16 else gguf_files.encode(numbers, form)
        self._bytes, self._block = memoryview(encoded), 1 if form in ("F32", "F16", _BF16) else 32
        self._of_block = len(encoded) * self._block // POOL

    def size(self, count: int) -> int:
        return count // self._block * self._of_block

    def write(self, file: IO[bytes], count: int) -> None:
        """Writes `count` numbers from a random place on, so that no two tensors are equal."""
        left, at = self.size(count), int(self._random.integers(POOL // self._block)) * self._of_block
        while left:
            part = self._bytes[at : at + left]
            file.write(part)
            left, at = left - len(part), 0


def write_gguf(path: Path, form: str, shape: Shape) -> None:
    pools = {1: Pool("F32"), 2: Pool(form)}
    given = tensors(shape)
    code = lambda dims: gguf_files.CODES[form if len(dims) == 2 else "F32"]
    infos = {name: (code(dims), dims, pools[len(dims)].size(math.prod(dims))) for name, dims in given.items()}
    metadata: dict[str, Any] = {
        "general.architecture": "llama",
        "llama.block_count": shape.layers,
        "llama.context_length": 2048,
        "llama.embedding_length": shape.hidden,
        "llama.feed_forward_length": shape.ffn,
        "llama.attention.head_count": shape.heads,
        "llama.attention.head_count_kv": shape.kv_heads,
        "llama.attention.layer_norm_rms_epsilon": 1e-5,
    }
    with open(path, "wb") as file:
        file.write(gguf_files.header(metadata, infos))
        for dims in given.values():
            pools[len(dims)].write(file, math.prod(dims))
            file.write(bytes(-file.tell() % gguf_files.ALIGNMENT))


def write_folder(folder: Path, shape: Shape) -> None:
    names = {"attn_q": "self_attn.q_proj", "attn_k": "self_attn.k_proj", "attn_v": "self_attn.v_proj"}
    names |= {"attn_output": "self_attn.o_proj", "ffn_gate": "mlp.gate_proj", "ffn_up": "mlp.up_proj"}
    names |= {"ffn_down": "mlp.down_proj", "attn_norm": "input_layernorm", "ffn_norm": "post_attention_layernorm"}
    names |= {"token_embd": "model.embed_tokens", "output_norm": "model.norm", "output": "lm_head"}
    header, offset, pool = {}, 0, Pool(_BF16)
    given = tensors(shape)
    for name, dims in given.items():
        *block, part, _ = name.split(".")
        layer = f"model.layers.{block[1]}." if block else ""
        end = offset + pool.size(math.prod(dims))
        header[f"{layer}{names[part]}.weight"] = {"dtype": "BF16", "shape": dims, "data_offsets": [offset, end]}
        offset = end
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    folder.mkdir(exist_ok=True)
    with open(folder / "model.safetensors", "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for dims in given.values():
            pool.write(file, math.prod(dims))
    config = {"model_type": "llama", "hidden_size": shape.hidden, "intermediate_size": shape.ffn}
    config |= {"num_hidden_layers": shape.layers, "num_attention_heads": shape.heads, "rms_norm_eps": 1e-5}
    config |= {"num_key_value_heads": shape.kv_heads, "max_position_embeddings": 2048, "vocab_size": shape.vocab}
    (folder / "config.json").write_text(json.dumps({**config, "tie_word_embeddings": False}))


def write(folder: Path, form: str, shape: Shape) -> tuple[Path, int]:
    """Returns the model in a format, and the size of its weights' file. A file from an earlier run is used again."""
    path = folder / (f"{form}_{shape.layers}" if form == _BF16 else f"{form}_{shape.layers}.gguf")
    if not path.exists():
        write_folder(path, shape) if form == _BF16 else write_gguf(path, form, shape)
    return path, (path / "model.safetensors" if form == _BF16 else path).stat().st_size


def rows(args: argparse.Namespace, folder: Path) -> Iterator[str]:
    yield "| weights | precision | file, MB | output, MB | clock, s | processor, s | anonymous / file | all / file |"
    yield "|---|---|---|---|---|---|---|---|"
    for form in args.form.split(","):
        model, size = write(folder, form, Shape(layers=args.layers))
        for precision in args.precision.split(","):
            output = folder / "m.bmodel"
            cpu = lambda: sum(resource.getrusage(resource.RUSAGE_CHILDREN)[:2])
            before = cpu()
            peak = peak_memory(["tessera", "llm", model, "-o", output, "--quantize", precision, "--context", "2048"])
            if peak.code:
                sys.exit(peak.output)
            yield (
                f"| {form} | {precision} | {size / 1e6:.0f} | {output.stat().st_size / 1e6:.0f} | {peak.seconds:.1f} | "
                f"{cpu() - before:.1f} | {peak.anonymous / size:.2f} | {peak.bytes / size:.2f} |"
            )
            output.unlink()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--form", default="Q4_0,Q8_0,F16,BF16")
    parser.add_argument("--precision", default="FILE,W4A8,W4,W8")
    parser.add_argument("--layers", type=int, default=Shape().layers)
    parser.add_argument("--keep", type=Path, help="folder for the models, which the next run uses again")
    args = parser.parse_args()
    os.environ["PATH"] = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    with tempfile.TemporaryDirectory(prefix="tessera-bench-") as folder:
        for row in rows(args, args.keep or Path(folder)):
            print(row, flush=True)


if __name__ == "__main__":
    main()
