# SPDX-License-Identifier: Apache-2.0
"""The networks of random_control.py in INT8, with the ranges that a probe sees in branches and loops: the bits are the
same on every x86 variant and, without open sizes, on an NPU with its host.

    build/bin/tessera-python regression/conformance/random_control_integers.py --seeds 0:500 [--keep FOLDER]

The ranges are those of the values in all passes of all runs, some of them cut. Every matmul that some run reaches must
become integer.
"""
from __future__ import annotations

import collections
import sys
from pathlib import Path
from typing import Sequence

import numpy as np
import seed_runner
from engines import Compiler, StageError, deploy, in_child, supported_isas
from random_attention import write_table
from random_control import Arrays, Network, run_all

ISAS = supported_isas("x86-avx512vnni")
NPU = "npu-base"


def observe(bmodel: Path, runs: Sequence[Arrays]) -> dict[str, np.ndarray]:
    """Returns all values that the tensors of a file made for observation have in the runs, by name."""

    def work() -> dict[str, np.ndarray]:
        import tessera.runtime as rt

        probe, found = rt.load(str(bmodel)).net().probe(), dict[str, list[np.ndarray]]()
        for inputs in runs:
            probe.run(inputs, lambda name, array: found.setdefault(name, []).append(array.ravel()))
            for name in ("x", "z", "t"):
                if name in inputs:
                    found.setdefault(name, []).append(inputs[name].ravel())
        return {name: np.concatenate(arrays) for name, arrays in found.items()}

    return in_child("observe", work)  # type: ignore[return-value]


def check_inside(compiler: Compiler, seen: Arrays) -> None:
    """Raises StageError if a matmul that some run reached stays float, in or outside of branches and loops."""
    ops = compiler.info["quantization"]["ops"]
    names = collections.Counter(op["name"] for op in ops)  # ops behind a branch of two ranks are compiled twice
    for op in ops:
        if op["op"] == "top.matmul" and op["type"] != "INT8" and op["name"] in seen and names[op["name"]] == 1:
            reasons = [r for r in compiler.info["quantization"]["float_ops"] if r["name"] == op["name"]]
            if any("tensor ''" in reason["reason"] for reason in reasons):
                continue  # it reads a tensor without a name
            raise StageError("deploy", f"'{op['name']}' has the type {op['type']}: {reasons}")


def check(compiler: Compiler, seed: int, _: str, folder: Path) -> None:
    chips = [*ISAS, *([NPU] if seed % 2 else [])]
    network = Network(seed, allows_open_sizes=NPU not in chips, precision="INT8")
    path, mlir, table, runs = folder / "model.onnx", folder / "model_top.mlir", folder / "t.json", network.runs(seed)
    path.write_bytes(network.model.SerializeToString())
    dims = ["--dims", "auto,rows=0..6"] if network.is_sized else []
    compiler("import", "import", "--onnx", path, "--output", mlir, *dims)
    seen = observe(deploy(compiler, mlir, "x86", "--observe"), runs)
    named = {tensor["source"]: tensor["name"] for tensor in compiler.info["tensors"] if tensor["source"]}
    write_table(table, str(compiler.info["model_hash"]), {n: seen[s] for s, n in named.items() if s in seen}, seed)
    wanted: list[dict[str, np.ndarray]] = []
    for chip in chips:
        bmodel = deploy(compiler, mlir, chip, "--quantize", "INT8", "--calibration-table", str(table))
        if not compiler.info.get("quantization", {}).get("integer_ops"):
            return  # no matmul, or none that a run reached
        check_inside(compiler, {n: seen[s] for s, n in named.items() if s in seen})
        if compiler.info["bit_equal_except"] != []:
            raise StageError("deploy", f"bits may differ: {compiler.info['bit_equal_except']}")
        results = run_all(bmodel, runs)
        wanted = wanted or results
        for number, (got, want) in enumerate(zip(results, wanted)):
            for name, array in want.items():
                if got[name].tobytes() != array.tobytes():
                    raise StageError("compare", f"run {number} on {chip}: '{name}' has other bits than on {chips[0]}")


def run_seed(seed: int, isa: str, keep: Path | None = None) -> str:
    """Returns the fault of the network of a seed, or ""."""
    return seed_runner.run_in_folder(check, "integers", seed, isa, keep)


def run_seeds(seeds: Sequence[int], jobs: int, keep: Path | None = None) -> list[str]:
    return list(filter(None, seed_runner.map_seeds(run_seed, ("all",), seeds, jobs, "all", keep)))


def main() -> int:
    arguments = seed_runner.parse_arguments(__doc__, ("all",))
    faults = run_seeds(arguments.seeds, arguments.jobs, arguments.keep)
    print("\n".join(faults))
    print(f"{len(faults)} of {len(arguments.seeds)} networks fail")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
