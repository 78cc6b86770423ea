# SPDX-License-Identifier: Apache-2.0
"""Random networks with open dims on GPUs: one compile, then runs at several sizes against the x86 file of any size, and
at one of these sizes against the GPU file compiled for this size alone.

    BMRT_LIBCUDA=build/ptx_machine/libcuda.so.1 \\
        build/bin/tessera-python regression/conformance/random_gpu_sizes.py --seeds 0:500 [--keep FOLDER]

The networks are those of random_sizes.py and, for odd seeds, of random_open_transformer.py. Sizes are both ends of each
range, 0 or 1, primes, and sizes at and beside the edges of tiles. Floats within a tolerance; INT8 bit by bit unless an
op stays float. Networks that the compiler rejects are counted.
"""
from __future__ import annotations

import sys
from pathlib import Path
from typing import Sequence

import random_graphs
import seed_runner
import random_open_transformer
from engines import GPUS, Compiler, StageError, run_bmodel
from open_networks import OpenNetwork
from random_sizes import NETWORKS, REJECTED, TABLES, Network, compare, faults_of, main, mode_of, run_at_sizes


class GpuNetwork(Network):
    """An open network that is compiled for x86 and for a GPU."""

    def compile_both(self, chip: str) -> tuple[Path, Path]:
        x86 = self.compile_open().rename(self.folder / "x86.bmodel")
        has_floats, self.isa = self.has_floats, chip
        gpu = self.compile_open().rename(self.folder / "gpu.bmodel")
        self.has_floats = has_floats or self.has_floats
        return x86, gpu

    def tolerance(self) -> float:
        return 0.0 if self.mode == "DYNAMIC_INT8" and self.seed % 2 else super().tolerance()

    def check_fixed(self, given: dict, outputs: dict) -> None:
        """Compares outputs with those of the file of fixed sizes. Some networks hold at open sizes only."""
        try:
            fixed = self.compile_at("fixed", given)
        except StageError as fault:
            if fault.stage == "import":
                return
            raise
        compare("the file of fixed sizes", outputs, run_bmodel(fixed, given, threads=(1,)), self.tolerance())


def make_network(compiler: Compiler, seed: int, folder: Path) -> GpuNetwork:
    if seed % 2:
        mode = random_open_transformer.MODES[seed // 2 % len(random_open_transformer.MODES)]
        opened = random_open_transformer.OpenTransformer(seed, mode.endswith("INT8"))
        return GpuNetwork(compiler, seed, "x86", folder, mode, opened)
    mode = mode_of(seed // 2)
    model, inputs = NETWORKS.get(mode, random_graphs.make_network)(seed, None)
    network = GpuNetwork(compiler, seed, "x86", folder, mode, OpenNetwork(model, inputs, seed))
    network.requantise = "float"
    return network


def check(compiler: Compiler, seed: int, chip: str, folder: Path) -> None:
    network = make_network(compiler, seed, folder)
    if not network.open.symbols:
        raise StageError(REJECTED, "no open dim")
    if network.mode in TABLES:
        network.calibrate()
    files = network.compile_both(chip)
    drawn = network.open.draw_sizes()
    given = [network.open.inputs_at(sizes) for sizes in drawn]
    wanted, got = (run_at_sizes(file, given, network.outside()) for file in files)
    for sizes, expected, outputs in zip(drawn, wanted, got):
        if bool(outputs) != bool(expected):
            raise StageError("compare", f"only one file accepts {sizes}")
        compare(f"x86 at {sizes}", outputs, expected, network.tolerance())
    last = max((i for i, outputs in enumerate(got) if outputs), default=-1)
    if last >= 0:
        network.check_fixed(given[last], got[last])


def run_seed(seed: int, chip: str, keep: Path | None = None) -> str:
    """Returns the fault of the network of a seed, or ""."""
    fault = seed_runner.run_in_folder(check, "gpu", seed, chip, keep)
    return fault and f"on {chip}, {fault}"


def run_seeds(
    seeds: Sequence[int], jobs: int, chip: str | None = None, keep: Path | None = None
) -> tuple[list[str], int]:
    """Returns the faults of many seeds, and how many networks were rejected."""
    return faults_of(run_seed, seeds, jobs, chip or GPUS[0], keep)


if __name__ == "__main__":
    sys.exit(main(__doc__, run_seeds, GPUS))
