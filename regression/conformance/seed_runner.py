# SPDX-License-Identifier: Apache-2.0
"""Runs the networks of many seeds in several processes and reports faults: the command line of all generators."""
from __future__ import annotations

import argparse
import collections
import functools
import os
import tempfile
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Callable, Iterator, Sequence, TypeVar

import onnx
from engines import Compiler, StageError


Result = TypeVar("Result")


def compiler_of_process() -> Compiler:
    """One per process: a worker must not share the pipes of the process it was forked from."""
    return _compiler_of(os.getpid())


@functools.cache
def _compiler_of(process: int) -> Compiler:
    return Compiler()


def shortest_fault(
    fault: StageError,
    check: Callable[..., object],
    make: Callable[..., tuple[onnx.ModelProto, object]],
    seed: int,
    isa: str,
    keep: Path | None,
) -> str:
    """Returns the fault of the shortest failing prefix of the network of a seed; `fault` is that of the whole
    network."""
    for steps in range(1, 9):
        try:
            check(compiler_of_process(), seed, steps, isa, keep and keep / f"seed{seed}")
        except StageError as error:
            nodes = " ".join(
                f"{node.op_type}({','.join(node.input)})"
                for node in make(seed, steps)[0].graph.node
                if "quantize" not in node.op_type.lower()
            )
            return f"seed {seed} on {isa}, {steps} steps: {error.stage}: {error}; {nodes}"
    return f"seed {seed} on {isa}: {fault.stage}: {fault}"


def map_seeds(
    run: Callable[[int, str, Path | None], Result],
    variants: Sequence[str],
    seeds: Sequence[int],
    jobs: int,
    isa: str | None,
    keep: Path | None,
) -> Iterator[Result]:
    """Yields the results of `run` for many seeds. Without `isa` the variants alternate, the last one first."""
    isas = [isa] if isa else list(reversed(variants))
    with ProcessPoolExecutor(jobs) as pool:
        yield from pool.map(run, seeds, [isas[seed % len(isas)] for seed in seeds], [keep] * len(seeds), chunksize=4)


def parse_arguments(description: str | None, variants: Sequence[str]) -> argparse.Namespace:
    """Parses the command line; `seeds` is a range."""

    def seeds(text: str) -> range:
        first, end = map(int, text.split(":"))
        return range(first, end)

    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", default="0:100", type=seeds, metavar="FIRST:END")
    parser.add_argument("--isa", choices=variants)
    parser.add_argument("--keep", type=Path, help="leave the files of networks that fail here")
    parser.add_argument("-j", "--jobs", type=int, default=os.cpu_count() or 1)
    return parser.parse_args()


def run_in_folder(
    check: Callable[[Compiler, int, str, Path], object], name: str, seed: int, isa: str, keep: Path | None
) -> str:
    """Returns the fault that `check` finds in the network of a seed, in a folder `name`_SEED; "" if there is none."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = (keep or Path(temporary)) / f"{name}_{seed}"
        folder.mkdir(parents=True, exist_ok=True)
        try:
            check(compiler_of_process(), seed, isa, folder)
        except StageError as fault:
            return f"seed {seed}, {fault.stage}: {fault}"
    return ""


def report_faults(
    run: Callable[[int, str, Path | None], str], variants: Sequence[str], arguments: argparse.Namespace
) -> int:
    """Prints the results of `run` for the seeds on the command line; returns the exit code."""
    faults = 0
    for fault in map_seeds(run, variants, arguments.seeds, arguments.jobs, arguments.isa, arguments.keep):
        if fault:
            print(fault, flush=True)
        faults += bool(fault)
    print(f"{faults} of {len(arguments.seeds)} networks fail")
    return 1 if faults else 0


def count_operators(make: Callable[[int], tuple[onnx.ModelProto, object]], seeds: Sequence[int]) -> str:
    """Counts how often each operator occurs in the networks, the most frequent first."""
    operators = collections.Counter(node.op_type for seed in seeds for node in make(seed)[0].graph.node)
    return ", ".join(f"{op} {n}" for op, n in operators.most_common())
