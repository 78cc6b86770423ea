# SPDX-License-Identifier: Apache-2.0
"""Random small networks in 16-bit floats and with integer weights: x86 code against the Top reference of the same
precision.

The reference evaluates the casts and dequantised weights as they stand on Top. Sums are taken in another order, so a
value near a tie may be rounded the other way, which later layers carry on: the tolerance is a few steps of the type.
    build/bin/tessera-python regression/conformance/random_narrow.py --seeds 0:500 [--isa x86-v2] [--keep FOLDER]
"""
from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Iterator, Sequence

import numpy as np
import random_graphs
import seed_runner
from engines import GPUS, Compiler, StageError, run_bmodel, supported_isas

from tessera import safetensors_io

VARIANTS = supported_isas("x86-avx512bf16", "x86-amx")

# Largest difference relative to the largest absolute value of an output.
TOLERANCE = {"BF16": 4e-2, "F16": 5e-3, "W8": 1e-3, "W4": 1e-3}


def precision_of(seed: int) -> str:
    return list(TOLERANCE)[seed % len(TOLERANCE)]


def _check(compiler: Compiler, seed: int, steps: int | None, isa: str, keep: Path | None) -> None:
    model, inputs = random_graphs.make_network(seed, steps)
    precision = precision_of(seed)
    with tempfile.TemporaryDirectory() as temporary:
        folder = keep or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        path, mlir, bmodel = folder / "model.onnx", folder / "model_top.mlir", folder / f"{isa}.bmodel"
        given, results = folder / "in.safetensors", folder / "out.safetensors"
        path.write_bytes(model.SerializeToString())
        compiler("import", "import", "--onnx", path, "--output", mlir)
        safetensors_io.save(given, inputs)
        compiler(
            "reference", "reference", "--mlir", mlir, "--quantize", precision, "--input", given, "--output", results
        )
        want = safetensors_io.load(results)
        compiler(
            "deploy",
            "deploy",
            "--mlir",
            mlir,
            "--chip",
            isa,
            "--quantize",
            precision,
            "--cache-dir",
            "none",
            "--jobs",
            "1",
            "--output",
            bmodel,
        )
        got = run_bmodel(bmodel, inputs)
    for name, expected in want.items():
        finite = np.isfinite(expected)
        scale = max(float(np.abs(expected[finite]).max(initial=0.0)), 1e-2)
        difference = np.abs(got[name].astype(np.float64) - expected)[finite]
        if (
            not np.array_equal(finite, np.isfinite(got[name]))
            or difference.max(initial=0.0) > TOLERANCE[precision] * scale
        ):
            raise StageError(
                "compare",
                f"{precision}: '{name}' {expected.shape} is off by {difference.max(initial=0.0):.4g}, "
                f"largest value {scale:.4g}",
            )


def run_seed(seed: int, isa: str, keep: Path | None = None) -> str:
    """Returns the fault of the network of a seed, or ""."""
    try:
        _check(seed_runner.compiler_of_process(), seed, None, isa, None)
    except StageError as fault:
        return seed_runner.shortest_fault(fault, _check, random_graphs.make_network, seed, isa, keep)
    return ""


def run_seeds(seeds: Sequence[int], jobs: int, isa: str | None = None, keep: Path | None = None) -> Iterator[str]:
    """Returns run_seed's results for many seeds. Without `isa` the instruction sets alternate."""
    return seed_runner.map_seeds(run_seed, VARIANTS, seeds, jobs, isa, keep)


def main() -> int:
    arguments = seed_runner.parse_arguments(__doc__, (*VARIANTS, *GPUS))
    return seed_runner.report_faults(run_seed, VARIANTS, arguments)


if __name__ == "__main__":
    sys.exit(main())
