#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes a GGUF file of architecture llama with random weights; by default of the shape of TinyLlama-1.1B.

    build/bin/tessera-python regression/bench/random_gguf.py tiny.gguf --form Q4_0

The tokens make no sense; the file serves to measure speed and memory.
"""
from __future__ import annotations

import argparse
import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1] / "test"))
import gguf_files  # noqa: E402

_TINY_LLAMA = dict(layers=22, width=2048, hidden=5632, heads=32, key_heads=4, vocabulary=32000, context=2304)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("output", type=Path)
    parser.add_argument("--form", default="Q4_0", choices=["Q4_0", "Q4_1", "Q8_0", "F16"])
    for name, size in _TINY_LLAMA.items():
        parser.add_argument(f"--{name}", type=int, default=size)
    args = parser.parse_args()
    metadata, tensors = gguf_files.random_llama(**{name: getattr(args, name) for name in _TINY_LLAMA})
    gguf_files.write(args.output, metadata, tensors, {n: args.form for n in tensors if tensors[n].ndim == 2})


if __name__ == "__main__":
    main()
