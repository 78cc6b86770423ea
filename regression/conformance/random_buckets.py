# SPDX-License-Identifier: Apache-2.0
"""Random networks with open dims on NPUs and GPUs: compiled in buckets, sometimes with x86 for larger sizes, then run
at several sizes against the x86 file with open sizes.

    build/bin/tessera-python regression/conformance/random_buckets.py --seeds 0:500 [--isa npu-edge] [--keep FOLDER]

The networks and modes are those of random_sizes.py. Sizes are both ends of each range, the sizes of the buckets, one
more and one less than these, and others. Floats within a tolerance; integers bit by bit unless an op stays float.
Networks that the compiler rejects are counted. Chip 'cuda' runs where BMRT_LIBCUDA names a driver or the PTX machine.
"""
from __future__ import annotations

import math
import os
import random
import re
import subprocess
import sys
from pathlib import Path
from typing import Sequence

import random_graphs
import seed_runner
from engines import BUILD, Compiler, StageError
from open_networks import OpenNetwork
from random_sizes import NETWORKS, REJECTED, TABLES, Network, compare, main, mode_of, run_at_sizes

CHIPS = ("npu-base", "npu-edge", "npu-pro", *(("cuda",) if os.environ.get("BMRT_LIBCUDA") else ()))
MOST_STAGES = 4


class BucketNetwork(Network):
    """An open network that is also compiled in buckets."""

    def __init__(self, compiler: Compiler, seed: int, chip: str, folder: Path, mode: str, network: OpenNetwork) -> None:
        super().__init__(compiler, seed, "x86", folder, mode, network)
        self.chip, self.random, self.requantise = chip, random.Random(seed), "float"
        self.more = random.Random(seed + 1)  # what was added later, so that a seed keeps its network
        self.buckets: dict[str, list[int]] = {}
        self.has_beyond = False  # x86 runs sizes beyond the buckets

    def draw_buckets(self) -> None:
        """Draws one to three sizes of each open dim, of which the last is the largest unless x86 runs larger ones."""
        self.buckets = self._draw_buckets()
        longer = [name for name, sizes in self.buckets.items() if len(sizes) > 1]
        if longer and self.more.random() < 0.3:
            self.buckets[self.more.choice(longer)].pop()
            self.has_beyond = True

    def _draw_buckets(self) -> dict[str, list[int]]:
        buckets, stages = {}, 1
        for name, each in self.open.symbols.items():
            most = 3 if stages * 3 <= MOST_STAGES else max(1, MOST_STAGES // stages)
            between = [size for size in each.sizes() if 0 < size < each.most]
            count = min(self.random.randint(0, most - 1), len(between))
            buckets[name] = [*sorted(self.random.sample(between, count)), each.most]
            stages *= len(buckets[name])
        return buckets

    def draw_sizes(self) -> list[dict[str, int]]:
        """Returns sizes at and beside the limits of buckets, and those of random_sizes.py."""
        sizes = self.open.draw_sizes()
        for _ in range(4):
            drawn = {}
            for name, each in self.open.symbols.items():
                near = self.random.choice(self.buckets.get(name, [each.own]))
                near += each.step * self.random.choice([-1, 0, 1])
                drawn[name] = min(max(near, each.least), each.most)
            sizes.append(drawn)
        return [each for i, each in enumerate(sizes) if each not in sizes[:i]]

    def compile_buckets(self, beyond: Path) -> Path:
        """Compiles all buckets to one file, sometimes with the stage of the file `beyond` as the last. Open dims that
        turned out to be others have no buckets of their own."""
        while True:
            try:
                return self._compile_buckets([beyond] if self.has_beyond else [])
            except StageError as fault:
                unknown = re.search("the model has no open dim '([^']*)'", str(fault))
                if not unknown:
                    raise
                del self.buckets[unknown[1]]

    def _compile_buckets(self, beyond: Sequence[Path]) -> Path:
        text = ",".join(f"{name}={','.join(map(str, sizes))}" for name, sizes in self.buckets.items())
        files = []
        self.isa = self.chip
        for index in range(math.prod(map(len, self.buckets.values()))):
            self.flags = ("--buckets", text, "--bucket", str(index))
            files.append(self.compile("open", "--dims", self.open.ranges()).rename(self.folder / f"{index}.bmodel"))
        files += beyond
        if len(files) == 1:
            return files[0]
        combined = self.folder / "buckets.bmodel"
        result = subprocess.run([BUILD / "bin" / "bmodel-combine", combined, *files], capture_output=True, text=True)
        if result.returncode:
            raise StageError("combine", result.stderr)
        return combined


def check(compiler: Compiler, seed: int, chip: str, folder: Path) -> None:
    mode = mode_of(seed)
    model, inputs = NETWORKS.get(mode, random_graphs.make_network)(seed, None)
    check_network(BucketNetwork(compiler, seed, chip, folder, mode, OpenNetwork(model, inputs, seed)))


def check_network(network: BucketNetwork) -> None:
    if not network.open.symbols:
        raise StageError(REJECTED, "no open dim")
    if network.mode in TABLES:
        network.calibrate()
    x86 = network.compile_open()
    tolerance = network.tolerance()
    network.draw_buckets()
    try:
        buckets = network.compile_buckets(x86)
    except StageError as fault:
        if fault.rejected:
            raise StageError(REJECTED, str(fault)) from fault
        raise
    drawn = network.draw_sizes()
    given = [network.open.inputs_at(sizes) for sizes in drawn]
    wanted, got = (run_at_sizes(file, given, network.outside()) for file in (x86, buckets))
    for sizes, expected, outputs in zip(drawn, wanted, got):
        if bool(outputs) != bool(expected):
            raise StageError("compare", f"only one file accepts {sizes}")
        compare(f"x86 at {sizes}", outputs, expected, tolerance)


def run_seed(seed: int, chip: str, keep: Path | None = None) -> str:
    """Returns the fault of the network of a seed, or ""."""
    fault = seed_runner.run_in_folder(check, "buckets", seed, chip, keep)
    return fault and f"{mode_of(seed)} on {chip}, {fault}"


def run_seeds(
    seeds: Sequence[int], jobs: int, chip: str | None = None, keep: Path | None = None
) -> tuple[list[str], int]:
    """Returns the faults of many seeds, and how many networks were rejected."""
    texts = list(filter(None, seed_runner.map_seeds(run_seed, CHIPS, seeds, jobs, chip, keep)))
    faults = [text for text in texts if f", {REJECTED}:" not in text]
    return faults, len(texts) - len(faults)


if __name__ == "__main__":
    sys.exit(main(__doc__, run_seeds, CHIPS))
