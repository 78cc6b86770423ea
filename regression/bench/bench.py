#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""./dev bench: measures Tessera, onnxruntime and OpenVINO in one run, taking turns.

The measurement is in tessera/bench/measure.py, shared with `tessera bench`. Reported are the median latency over all
rounds, the ratio to the faster peer, the time from file to first answer, and the peak memory. All engines answer the
same random input, and their answers are compared. In int8, each peer runs a model that its own tools quantised with the
same samples.
"""
from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, Iterator, Mapping

import networks
import numpy as np
import stored
from networks import Measured
from preparation import ENGINES, Preparation, installed, peers_python

from tessera import compare, tolerances
from tessera.bench import steps
from tessera.bench.measure import Result, Worker, machine, measure
from tessera.cli.model_tool import read_model
from tessera.errors import TesseraError
from tessera.files import load_npz

BUILD = Path(os.environ.get("TESSERA_BUILD_DIR", Path(__file__).resolve().parents[2] / "build"))
HEADER = ("model", "precision", "threads", "engine", "median ms", "vs best peer", "prepare ms", "peak MiB", "")
RIGHT = (2, 4, 5, 6, 7)  # columns of numbers


def answer_in_f32(onnx: Path, inputs: Path, folder: Path) -> dict[str, np.ndarray]:
    """Returns the f32 outputs of the first peer, with which all outputs are compared; {} if no peer is installed."""
    engine = next((engine for engine in ENGINES["f32"][1:] if installed(engine)), "")
    if not engine:
        return {}
    result = Result(engine)
    Worker(result, onnx, inputs, folder / "answer.npz", 2, "f32", python=peers_python()).close()
    return result.outputs


def agreement(result: Result, answer: dict[str, np.ndarray], precision: str) -> str:
    """Returns a text that says whether the outputs of an engine agree with the answer."""
    if not result.outputs or not answer:
        return "not compared"
    comparison = compare.compare(result.outputs, answer, tolerances.DEFAULT[precision.upper()])
    if not comparison.rows:
        return "nothing in common"
    return (
        "same answer" if comparison.passed else "DIFFERENT ANSWER"
    ) + f" (worst cos {comparison.rows[0].cosine:.6f})"


def table_rows(
    name: str, precision: str, threads: int, results: list[Result], info: Mapping[str, str]
) -> list[tuple[str, ...]]:
    peers = [r.median for r in results if r.engine != "tessera" and r.times]
    best = min(peers) if peers else float("nan")
    rows = []
    for r in results:
        if r.error:
            rows.append((name, precision, str(threads), r.engine, "-", "-", "-", "-", r.error[:60]))
            continue
        ratio = f"{r.median / best:.2f}" if peers else "-"
        rows.append(
            (
                name,
                precision,
                str(threads),
                r.engine,
                f"{r.median * 1e3:.3f}",
                ratio,
                f"{r.prepare * 1e3:.0f}",
                f"{r.peak_mib:.0f}",
                info.get(r.engine, ""),
            )
        )
    return rows


def bench_model(
    preparation: Preparation, onnx: Path, precision: str, args: argparse.Namespace
) -> Iterator[tuple[int, list[Result], dict[str, str]]]:
    """Yields, for each thread count, the results of all engines and how far each output agrees with f32. Raises
    TesseraError for a model that cannot be deployed."""
    result = preparation.prepare(precision)
    answer = answer_in_f32(onnx, result.inputs, result.inputs.parent)
    for threads in map(int, args.threads.split(",")):
        folder, pythons = result.inputs.parent, {
            engine: peers_python() for engine in result.files if engine != "tessera"
        }
        # A network that a peer has not quantised stays f32.
        hint = "f32" if precision == "int8" else precision
        results = measure(
            result.files, result.inputs, folder, threads, hint, args.rounds, warm=args.warm, pythons=pythons
        )
        results += [Result(engine, error=reason) for engine, reason in result.info.items()]
        yield threads, results, {r.engine: agreement(r, answer, precision) for r in results}
        if args.ops:
            info = steps.measure(
                result.files["tessera"], read_model(result.files["tessera"]), load_npz(result.inputs), threads
            )
            print(f"{threads} thread(s), the steps that lose most against their bound:\n{steps.table(info)}\n")


def figures_of(model: str, precision: str, threads: int, result: Result) -> dict[str, Any]:
    return {
        "model": model,
        "precision": precision,
        "threads": threads,
        "engine": result.engine,
        "median_ms": result.median * 1e3,
        "runs": len(result.times),
        "prepare_ms": result.prepare * 1e3,
        "peak_mib": result.peak_mib,
        "error": result.error,
    }


def ratio_of(results: list[Result]) -> float | None:
    """Returns Tessera's time divided by that of the best peer; None if either is missing."""
    times = {r.engine: r.median for r in results if r.times}
    peers = [time for engine, time in times.items() if engine != "tessera"]
    return times["tessera"] / min(peers) if peers and "tessera" in times else None


class Bench:
    """Measures all requested models, one by one, and keeps the results."""

    def __init__(self, args: argparse.Namespace) -> None:
        self._args = args
        self.rows: list[tuple[str, ...]] = []
        self.figures: list[dict[str, Any]] = []
        self.ratios: dict[str, dict[str, dict[str, float]]] = {}
        self.failed = False

    def run(self, model: Measured) -> None:
        with tempfile.TemporaryDirectory(prefix="tessera-bench-") as folder:
            preparation = Preparation(
                model, Path(folder), self._args.cache / "quantised", self._args.chip, self._args.samples
            )
            for precision in self._args.precision:
                try:
                    for measured in bench_model(preparation, model.onnx, precision, self._args):
                        self._add(model.name, precision, *measured)
                except TesseraError as error:
                    print(f"{model.onnx}, {precision}: {error.message}", file=sys.stderr)
                    self.failed = True

    def _add(self, name: str, precision: str, threads: int, results: list[Result], info: dict[str, str]) -> None:
        new = table_rows(name, precision, threads, results, info)
        print(compare.align([HEADER, *new], right=RIGHT) + "\n", flush=True)
        self.rows += new
        self.figures += [figures_of(name, precision, threads, r) for r in results]
        # With random weights, the distance between integers and floats says nothing; ./dev accuracy measures it.
        wrong = precision != "int8" and "DIFFERENT" in info["tessera"]
        self.failed |= wrong or any(r.error for r in results if r.engine == "tessera")
        if (ratio := ratio_of(results)) is not None:
            self.ratios.setdefault(precision, {}).setdefault(str(threads), {})[name] = ratio

    def summary(self) -> str:
        """Returns the ratios to the best peer, a row per model, and their geometric means."""
        columns = [(p, t) for p in self.ratios for t in self.ratios[p]]
        names = list(dict.fromkeys(name for p, t in columns for name in self.ratios[p][t]))
        rows = [("ratio to the best peer", *(f"{p} {t}T" for p, t in columns))]
        for name in names:
            found = (self.ratios[p][t].get(name) for p, t in columns)
            rows.append((name, *("-" if ratio is None else f"{ratio:.2f}" for ratio in found)))
        means = (stored.geometric_mean(list(self.ratios[p][t].values())) for p, t in columns)
        rows.append(("geometric mean", *(f"{mean:.2f}" for mean in means)))
        return compare.align(rows, right=tuple(range(1, len(columns) + 1)))


def peer_versions() -> str:
    code = "import importlib.metadata as m; print(', '.join(f'{n} {m.version(n)}' for n in %r))"
    names = [name for name in ("onnxruntime", "openvino", "nncf") if installed(name)]
    return subprocess.run([peers_python(), "-c", code % names], capture_output=True, text=True).stdout.strip()


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="./dev bench", description=__doc__.splitlines()[0])
    parser.add_argument(
        "files",
        nargs="*",
        help="ONNX files, each with :SHAPES where dims are dynamic, e.g. "
        "m.onnx:x=1x3x320x320 (default: the four of the shared data)",
    )
    parser.add_argument(
        "--models",
        help="zoo: ten networks at full size, exported with torch; or a folder with a model in each of its folders",
    )
    parser.add_argument(
        "--precision", default="f32", help="of f32, bf16 and int8 those to measure (default: %(default)s)"
    )
    parser.add_argument("--threads", default="1,2", help="thread counts (default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=12, help="turns of each engine (default: %(default)s)")
    parser.add_argument("--samples", type=int, default=8, help="to calibrate int8 with (default: %(default)s)")
    parser.add_argument("--chip", default="x86", help="default: %(default)s")
    parser.add_argument("--warm", type=float, default=1.0, help="seconds at most until times are steady")
    parser.add_argument("--ops", action="store_true", help="tell how near each step comes to the machine's peak")
    parser.add_argument("--cache", type=Path, default=BUILD / "bench", help="for what is exported and quantised")
    parser.add_argument("--json", metavar="FILE", help="write all figures here")
    parser.add_argument("--store", action="store_true", help="write the ratios into regression/bench/ratios.json")
    parser.add_argument("--against-stored", action="store_true", help="fail where a ratio is worse than the stored one")
    args = parser.parse_args()
    args.precision = args.precision.split(",")
    if unknown := [p for p in args.precision if p not in ENGINES]:
        parser.error(f"--precision {unknown[0]}: allowed are {', '.join(ENGINES)}")
    return args


def main() -> int:
    args = parse()
    for engine in dict.fromkeys(e for p in args.precision for e in ENGINES[p][1:]):
        if not installed(engine):
            print(f"not measured: {engine} is not installed")
    bench = Bench(args)
    try:
        for model in networks.choose(args.files, args.models, args.cache / "zoo"):
            bench.run(model)
        before = stored.load() if args.against_stored else {}
    except TesseraError as error:
        print(error.message, file=sys.stderr)
        return 1
    if args.json:
        Path(args.json).write_text(json.dumps(bench.figures, indent=1) + "\n")
    if len(bench.rows) > len(ENGINES[args.precision[0]]):
        print(compare.align([HEADER, *bench.rows], right=RIGHT) + "\n\n" + bench.summary())
    if args.store:
        stored.store(
            bench.ratios, f"{(info := machine())['processor']}, {info['processors']} processors", peer_versions()
        )
    worse = stored.worse(bench.ratios, before)
    for line in worse:
        print(f"worse than stored: {line}", file=sys.stderr)
    return 1 if bench.failed or worse or not bench.rows else 0


if __name__ == "__main__":
    sys.exit(main())
