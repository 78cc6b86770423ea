#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints the runtime's figures for one model: size and links of libbmrt, load times, memory after a run.

    build/bin/tessera-python regression/bench/figures.py m.bmodel [--build build] [--runs 20]

Load times are of one process that opens the file again and again; 'cold' asks the kernel to drop the
file from the page cache first, so it measures the disk as well. On a busy machine the processor time
(of up to two threads together) says more than the clock. Memory is that of bmrt_bench, which
has no Python in it.
"""
from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

MIB = 1 << 20
ALLOWANCE_MIB = 10.0  # what a process may hold besides weights and activations


@dataclass(frozen=True)
class Memory:
    """Memory in MiB of a process after runs on one thread, and the need of the model itself."""

    peak: float
    weights: float
    activations: float

    @property
    def allowed(self) -> float:
        return self.weights + self.activations + ALLOWANCE_MIB


def measure_memory(build: Path, bmodel: Path) -> Memory:
    """Measures the peak memory of bmrt_bench, an upper bound of the memory that stays resident."""
    import tessera.runtime as rt

    bench = subprocess.run(
        [build / "bin" / "bmrt_bench", bmodel, "--iters", "2", "--warmup", "0", "--json"],
        check=True,
        capture_output=True,
        text=True,
    )
    net = rt.load(bmodel).net()
    inputs_outputs = sum(t.dtype.itemsize * _elements(t.max_shape) for t in (*net.inputs, *net.outputs))
    return Memory(
        json.loads(bench.stdout)["peak_mib"],
        os.path.getsize(bmodel) / MIB,
        (net.memory["workspace_bytes"] + inputs_outputs) / MIB,
    )


def _elements(shape: tuple[int, ...]) -> int:
    count = 1
    for size in shape:
        count *= size
    return count


def load_times(bmodel: Path, runs: int, trust: bool, cold: bool) -> tuple[list[float], list[float]]:
    """Returns the milliseconds of each opening: elapsed time, and processor time of all threads."""
    import tessera.runtime as rt

    times: list[float] = []
    busy: list[float] = []
    for _ in range(runs):
        if cold:
            _drop_from_page_cache(bmodel)
        begin, busy_begin = time.perf_counter(), time.process_time()
        model = rt.load(bmodel, trust=trust)
        times.append((time.perf_counter() - begin) * 1e3)
        busy.append((time.process_time() - busy_begin) * 1e3)
        del model
    return times, busy


def _drop_from_page_cache(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)  # dirty pages cannot be dropped
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
    finally:
        os.close(descriptor)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("bmodel", type=Path)
    parser.add_argument("--build", type=Path, default=Path(__file__).resolve().parents[2] / "build")
    parser.add_argument("--runs", type=int, default=20)
    args = parser.parse_args()
    check = Path(__file__).resolve().parents[2] / "bmruntime" / "test" / "check_library.sh"
    print(
        subprocess.run(
            [check, args.build / "lib" / "libbmrt.so", "strip", "400", "20"], capture_output=True, text=True
        ).stdout,
        end="",
    )
    for name, trust in (("checked", False), ("trusted", True)):
        for state, cold in (("warm", False), ("cold", True)):
            times, busy = load_times(args.bmodel, args.runs, trust, cold)
            print(
                f"load {name}, {state}: min {min(times):.2f} ms, median {statistics.median(times):.2f} ms; "
                f"processor time {statistics.median(busy):.2f} ms; {len(times)} times"
            )
    memory = measure_memory(args.build, args.bmodel)
    print(
        f"memory: peak {memory.peak:.1f} MiB; weights and code {memory.weights:.1f} + activations "
        f"{memory.activations:.1f} "
        f"+ {ALLOWANCE_MIB:g} = {memory.allowed:.1f} MiB allowed"
    )
    return 0 if memory.peak <= memory.allowed else 1


if __name__ == "__main__":
    sys.exit(main())
