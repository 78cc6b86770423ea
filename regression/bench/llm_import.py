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
import os
import resource
import sys
import tempfile
from pathlib import Path
from typing import Iterator

sys.path.insert(0, str(Path(__file__).parents[1]))
from llama_shaped import Shape
from peak_memory import peak_memory
from random_checkpoint import FOLDER, write_folder, write_gguf

CONTEXT = 2048


def write(folder: Path, form: str, shape: Shape) -> tuple[Path, int]:
    """Returns the model in a format, and the size of its weights' file. A file from an earlier run is used again."""
    is_folder = form == FOLDER
    path = folder / (f"{form}_{shape.layers}" if is_folder else f"{form}_{shape.layers}.gguf")
    if not path.exists():
        write_folder(path, shape, CONTEXT) if is_folder else write_gguf(path, form, shape, CONTEXT)
    return path, (path / "model.safetensors" if is_folder else path).stat().st_size


def rows(args: argparse.Namespace, folder: Path) -> Iterator[str]:
    yield "| weights | precision | file, MB | output, MB | clock, s | processor, s | anonymous / file | all / file |"
    yield "|---|---|---|---|---|---|---|---|"
    for form in args.form.split(","):
        model, size = write(folder, form, Shape(layers=args.layers))
        for precision in args.precision.split(","):
            output = folder / "m.bmodel"
            cpu = lambda: sum(resource.getrusage(resource.RUSAGE_CHILDREN)[:2])
            before = cpu()
            peak = peak_memory(
                ["tessera", "llm", model, "-o", output, "--quantize", precision, "--context", str(CONTEXT)]
            )
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
