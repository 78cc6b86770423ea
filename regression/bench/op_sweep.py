#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Times single operators beside onnxruntime: some 300 models of one node, in one process, on one thread.

    build/bin/tessera-python regression/bench/op_sweep.py [--only TEXT] [--rounds 15] [--json FILE]

The engines take turns in rounds of about a millisecond, and the medians of all rounds are compared. Both are called as
users call them from Python, so an operator of a microsecond shows what a run costs beside its kernel.
"""
from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Callable

import numpy as np
import onnx
import onnxruntime as ort
import stored
from op_cases import Case, all_cases

from tessera import bmodel, compare

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "conformance"))

from engines import Compiler, StageError, deploy  # noqa: E402

ROUND_SECONDS = 1e-3
TOO_SLOW = 1.1  # a ratio from which an operator counts as slower than onnxruntime's


@dataclass(frozen=True)
class Timed:
    """Medians in microseconds."""

    family: str
    name: str
    ours: float
    peer: float

    @property
    def ratio(self) -> float:
        return self.ours / self.peer


def compiled(compiler: Compiler, case: Case, folder: Path) -> tuple[Path, Path]:
    """Returns the case's .onnx and .bmodel. Raises StageError if it cannot be compiled."""
    folder.mkdir()
    model, top = folder / "op.onnx", folder / "op_top.mlir"
    onnx.save(case.model(), model)
    compiler("import", "import", "--onnx", model, "--output", top)
    return model, deploy(compiler, top, "x86")


def onnxruntime_session(model: Path) -> ort.InferenceSession:
    options = ort.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = 1, 1
    options.log_severity_level = 4
    return ort.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])


def differs(ours: dict[str, np.ndarray], peer: list[np.ndarray]) -> bool:
    """Returns true if the engines' answers differ by more than rounding."""
    for got, wanted in zip(ours.values(), peer):
        if got.shape != wanted.shape:
            return True
        if np.issubdtype(wanted.dtype, np.floating):
            if not np.allclose(got, wanted, rtol=1e-3, atol=1e-3 * float(np.max(np.abs(wanted), initial=1e-3))):
                return True
        elif np.count_nonzero(got != wanted) > max(1, wanted.size // 1000):
            return True
    return False


def seconds_of(run: Callable[[], object], runs: int) -> float:
    start = time.perf_counter()
    for _ in range(runs):
        run()
    return (time.perf_counter() - start) / runs


def medians(engines: list[Callable[[], object]], rounds: int) -> list[float]:
    """Returns the seconds per run of each engine, measured in turns."""
    runs = []
    for run in engines:
        run()
        runs.append(max(1, int(ROUND_SECONDS / min(seconds_of(run, 1) for _ in range(5)))))
    times: list[list[float]] = [[] for _ in engines]
    for _ in range(rounds):
        for taken, run, count in zip(times, engines, runs):
            taken.append(seconds_of(run, count))
    return [statistics.median(taken) for taken in times]


def measure(case: Case, model: Path, compiled_model: Path, rounds: int) -> Timed:
    """Measures one case. Raises StageError if the answers differ."""
    inputs = case.sample(0)
    net, session = bmodel.open_net(compiled_model, 1), onnxruntime_session(model)
    if differs(dict(net.run(inputs)), session.run(None, inputs)):
        raise StageError("compare", "onnxruntime gives another answer")
    ours, peer = medians([net.timed(inputs), lambda: session.run(None, inputs)], rounds)
    return Timed(case.family, case.name, ours * 1e6, peer * 1e6)


def table(results: list[Timed]) -> str:
    """Returns all ratios, the worst first, then the geometric mean of each family and of all."""
    rows = [("family", "operator", "us", "onnxruntime us", "ratio")]
    for each in sorted(results, key=lambda each: -each.ratio):
        rows.append((each.family, each.name, f"{each.ours:.2f}", f"{each.peer:.2f}", f"{each.ratio:.2f}"))
    families: dict[str, list[float]] = {}
    for each in results:
        families.setdefault(each.family, []).append(each.ratio)
    families["all"] = [each.ratio for each in results]
    means = [("geometric mean", "operators", "ratio", f"above {TOO_SLOW}")]
    for family, ratios in families.items():
        mean = stored.geometric_mean(ratios)
        means.append((family, str(len(ratios)), f"{mean:.2f}", str(sum(ratio > TOO_SLOW for ratio in ratios))))
    return compare.align(rows, right=(2, 3, 4)) + "\n\n" + compare.align(means, right=(1, 2, 3))


def sweep(cases: list[Case], rounds: int, jobs: int) -> tuple[list[Timed], list[str]]:
    """Measures the cases. Returns the times, and a message for each case that could not be measured."""
    results, failures = [], []
    with tempfile.TemporaryDirectory(prefix="tessera-ops-") as text:
        compilers = [Compiler() for _ in range(jobs)]

        def compile_share(job: int) -> dict[int, tuple[Path, Path] | StageError]:
            result: dict[int, tuple[Path, Path] | StageError] = {}
            for number in range(job, len(cases), jobs):
                try:
                    result[number] = compiled(compilers[job], cases[number], Path(text) / str(number))
                except StageError as error:
                    result[number] = error
            return result

        with ThreadPoolExecutor(jobs) as pool:
            result = {n: files for share in pool.map(compile_share, range(jobs)) for n, files in share.items()}
        for compiler in compilers:
            compiler.close()
        for number, case in enumerate(cases):
            try:
                files = result[number]
                if isinstance(files, StageError):
                    raise files
                results.append(measure(case, *files, rounds))
            except Exception as error:  # either engine may fail; the other cases are still measured
                failures.append(f"{case.name}: {error}")
    return results, failures


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", help="operators whose name contains this")
    parser.add_argument("--rounds", type=int, default=15, help="turns of each engine (default: %(default)s)")
    parser.add_argument("--jobs", type=int, default=2, help="compilations at a time (default: %(default)s)")
    parser.add_argument("--json", type=Path, help="write all figures here")
    args = parser.parse_args()
    results, failures = sweep([case for case in all_cases() if args.only in case.name], args.rounds, args.jobs)
    if args.json:
        args.json.write_text(json.dumps([vars(each) for each in results], indent=1) + "\n")
    if results:
        print(table(results))
    for line in failures:
        print(f"not measured: {line}", file=sys.stderr)
    return 1 if failures or not results else 0


if __name__ == "__main__":
    sys.exit(main())
