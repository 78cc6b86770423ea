# SPDX-License-Identifier: Apache-2.0
"""Estimates the time of models on a GPU and prints a Markdown table. A row is a model, precision and batch: launches,
time, time over the sum of the launches' rooflines and over the roofline of the whole model, and DRAM bytes over the
least.

    build/bin/tessera-python regression/cuda/estimates.py m.onnx [m2.onnx ..] [--precision INT8,F16] [--batch 1,8,32]

--batch writes the batch to dim 0 of all inputs; a model with a fixed batch elsewhere is rejected.
"""
from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import onnx

HEADER = ("model", "precision", "batch", "launches", "us", "over launches", "over the whole", "DRAM over least")


def with_batch(path: Path, batch: int | None, folder: Path) -> Path:
    """Returns the model at `path` with that batch size; None: unchanged."""
    if batch is None:
        return path
    model = onnx.load(str(path))
    constants = {each.name for each in model.graph.initializer}
    for given in model.graph.input:
        if given.name not in constants:
            given.type.tensor_type.shape.dim[0].dim_value = batch
    for result in model.graph.output:
        result.type.tensor_type.ClearField("shape")
    del model.graph.value_info[:]
    changed = folder / f"{path.stem}.onnx"
    onnx.save(model, str(changed))
    return changed


def estimate(path: Path, precision: str, chip: str) -> dict[str, Any]:
    """Returns the compiler's report. Raises ValueError with the compiler's message if there is none."""
    command = ["tessera", "estimate", str(path), "--chip", chip, "--quantize", precision, "--json"]
    done = subprocess.run(command, capture_output=True, text=True)
    info = json.loads(done.stdout or "{}")
    if done.returncode or not info["estimates"][0]["supported"]:
        raise ValueError(f"{path.name} in {precision}: {done.stderr.strip().splitlines()[-1]}")
    report: dict[str, Any] = info["estimates"][0]["report"]
    return report


def row(name: str, precision: str, batch: int | None, info: dict[str, Any]) -> str:
    """Returns a row of the table. `batch` None is the batch of the file, which is assumed to be 1."""
    roofline, least = info["roofline"], info["dram_least_bytes"]
    cells = (
        name,
        precision,
        str(batch or 1),
        str(info["launches"]),
        f"{info['microseconds']:.0f}",
        f"{info['microseconds'] / roofline['by_launch_microseconds']:.2f}",
        f"{roofline['ratio']:.2f}",
        f"{info['dram_bytes'] / least:.2f}" if least else "-",
    )
    return f"| {' | '.join(cells)} |"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+", type=Path)
    parser.add_argument("--precision", default="INT8,F16")
    parser.add_argument("--batch", help="e.g. 1,8,32 (default: the batch of the file)")
    parser.add_argument("--chip", default="cuda-sm80")
    args = parser.parse_args()
    batches = [int(batch) for batch in args.batch.split(",")] if args.batch else [None]
    print(f"| {' | '.join(HEADER)} |\n|---|---|{'---:|' * (len(HEADER) - 2)}")
    failed = False
    for path in args.models:
        for precision in args.precision.split(","):
            for batch in batches:
                with tempfile.TemporaryDirectory(prefix="tessera-estimates-") as folder:
                    try:
                        info = estimate(with_batch(path, batch, Path(folder)), precision, args.chip)
                    except ValueError as error:
                        print(error, file=sys.stderr)
                        failed = True
                        continue
                print(row(path.stem, precision, batch, info), flush=True)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
