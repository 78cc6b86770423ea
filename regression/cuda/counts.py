# SPDX-License-Identifier: Apache-2.0
"""Counts the work of models on the PTX machine and prints a Markdown table. A row is a model, precision and batch:
launches, issued over needed multiply-adds of tensor cores, DRAM sectors over the least of each launch, and bank
conflicts over passes of shared memory.

    build/bin/tessera-python regression/cuda/counts.py m.onnx [m2.onnx ..] [--precision INT8,F16] [--batch 1,8]

The machine executes the whole model, which takes minutes for a large one. Its checks are off unless --checks is given.
"""
from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from estimates import with_batch
from make_cases import SAMPLES, Failed, noise, tool

BUILD = Path(os.environ.get("TESSERA_BUILD_DIR", Path(__file__).resolve().parents[2] / "build"))
HEADER = ("model", "precision", "batch", "launches", "tensor issued", "DRAM over bound", "bank conflicts")


def counted(model: Path, precision: str, chip: str, checks: bool, folder: Path) -> dict[str, Any]:
    """Returns the report of model_tool perf with the counts. Raises Failed."""
    top, table, bmodel = folder / "m_top.mlir", folder / "m_cali.json", folder / "m.bmodel"
    tool(*("model_transform", "--model_name", "m", "--model_def", model, "--mlir", top, "--not_inference"))
    flags = ["--quantize", precision]
    if precision == "INT8":
        (folder / "data").mkdir()
        for seed in range(SAMPLES):
            np.savez(folder / "data" / f"{seed}.npz", **noise(top, seed))
        data = ("--dataset", folder / "data", "--cali_method", "max", "--methods", "none", "--workers", "1")
        tool("run_calibration", top, *data, "-o", table)
        flags += ["--calibration-table", str(table)]
    tool("tessera-compile", "deploy", "--mlir", top, "--chip", chip, *flags, "--output", bmodel, "--jobs", "1")
    np.savez(folder / "in.npz", **noise(top, SAMPLES))
    variables = {
        "BMRT_LIBCUDA": str(BUILD / "ptx_machine" / "libcuda.so.1"),
        "PTX_MACHINE_CHECKS": str(int(checks)),
        "PTX_MACHINE_COUNTS": str(folder / "counts.json"),
    }
    command = ("model_runner", "--model", bmodel, "--input", folder / "in.npz", "--output", folder / "out.npz")
    done = subprocess.run(command, env=os.environ | variables, capture_output=True, text=True, check=False)
    if done.returncode:
        raise Failed(done.stderr[-2000:])
    info = tool("model_tool", "perf", bmodel, "--counts", folder / "counts.json", "--json")
    report: dict[str, Any] = json.loads(info)["report"]
    return report


def row(name: str, precision: str, batch: int | None, report: dict[str, Any]) -> str:
    counts = report["counted"]
    issued = counts["tensor_products_ratio"]
    cells = (
        name,
        precision,
        str(batch or 1),
        str(counts["launches"]),
        f"{issued:.2f}" if issued else "-",
        f"{counts['dram_ratio']:.2f}",
        f"{counts['bank_conflicts'] / max(1, counts['shared_passes']):.1%}",
    )
    return f"| {' | '.join(cells)} |"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+", type=Path)
    parser.add_argument("--precision", default="INT8,F16")
    parser.add_argument("--batch", help="e.g. 1,8 (default: the batch of the file)")
    parser.add_argument("--chip", default="cuda-sm80")
    parser.add_argument("--checks", action="store_true", help="enable all checks of the machine")
    parser.add_argument("--json", type=Path, metavar="FOLDER", help="write every report to this folder")
    args = parser.parse_args()
    batches = [int(batch) for batch in args.batch.split(",")] if args.batch else [None]
    print(f"| {' | '.join(HEADER)} |\n|---|---|{'---:|' * (len(HEADER) - 2)}")
    failed = False
    for path in args.models:
        for precision in args.precision.split(","):
            for batch in batches:
                with tempfile.TemporaryDirectory(prefix="tessera-counts-") as folder:
                    model = with_batch(path, batch, Path(folder))
                    try:
                        report = counted(model, precision, args.chip, args.checks, Path(folder))
                    except Failed as error:
                        print(error, file=sys.stderr)
                        failed = True
                        continue
                if args.json:
                    args.json.mkdir(parents=True, exist_ok=True)
                    name = f"{path.stem}_{precision.lower()}_{batch or 1}.json"
                    (args.json / name).write_text(json.dumps(report, indent=1) + "\n")
                print(row(path.stem, precision, batch, report), flush=True)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
