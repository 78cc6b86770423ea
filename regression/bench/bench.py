#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""./dev bench: Tessera beside onnxruntime and OpenVINO, measured in one run, turn by turn.

Every engine runs in a process of its own, so that peak memory is its own; the parent lets them run
one after another in short rounds, so that a change of the machine's speed meets all of them alike.
Reported: median latency over all rounds, ratio to the faster peer, time from file to first answer,
peak memory. The engines answer the same random input, and the answers are compared.
"""
from __future__ import annotations

import argparse
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from tessera import compare, top_model
from tessera.errors import TesseraError
from tessera.files import load_npz, save_npz
from tessera.inputs import random_inputs
from tessera.progress import Report

DEFAULT_MODELS = (
    "topology/light_resnet50.onnx",
    "cls/mobilenetv2_1.0_224.onnx",
    "det/yolox_nano_416.onnx",
    "transformer/vittrack.onnx",
)
ENGINES = ("tessera", "onnxruntime", "openvino")
WORKER = Path(__file__).with_name("worker.py")
ROUND_SECONDS = 0.25


@dataclass
class Result:
    """One engine on one model and thread count; times in seconds, memory in MiB."""

    engine: str
    prepare: float = float("nan")
    times: list[float] = field(default_factory=list)
    peak_mib: float = float("nan")
    error: str = ""
    outputs: dict[str, np.ndarray] = field(default_factory=dict)

    @property
    def median(self) -> float:
        return float(np.median(self.times)) if self.times else float("nan")


class Worker:
    """An engine in a child process; talks in JSON lines."""

    def __init__(self, result: Result, model: Path, inputs: Path, outputs: Path, threads: int) -> None:
        self.result, self._outputs = result, outputs
        environment = {**os.environ, "OMP_NUM_THREADS": str(threads)}
        self._process = subprocess.Popen(
            [sys.executable, str(WORKER), result.engine, str(model), str(inputs), str(outputs), str(threads)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env=environment,
        )
        answer = self._read()
        if "error" in answer:
            result.error = answer["error"]
        else:
            result.prepare = answer["prepare"]
            result.outputs = load_npz(outputs)

    def _read(self) -> dict:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        return json.loads(line) if line else {"error": f"the process ended with code {self._process.wait()}"}

    def round(self, seconds: float) -> None:
        """Runs for about `seconds`; adds each run's time."""
        if self.result.error:
            return
        assert self._process.stdin is not None
        self._process.stdin.write(f"{seconds}\n")
        self._process.stdin.flush()
        answer = self._read()
        self.result.times += answer.get("times", [])
        self.result.error = answer.get("error", "")

    def close(self) -> None:
        if not self.result.error:
            assert self._process.stdin is not None
            self._process.stdin.close()
            self.result.peak_mib = self._read().get("peak_mib", float("nan"))
        self._process.wait()


def measure(files: dict[str, Path], inputs: Path, folder: Path, threads: int, rounds: int) -> list[Result]:
    """All engines on one model, interleaved."""
    results = [Result(engine) for engine in files]
    workers = [Worker(r, files[r.engine], inputs, folder / f"{r.engine}_{threads}.npz", threads) for r in results]
    for turn in range(rounds):
        # Each round starts with another engine, so that no one always runs on a warmer machine.
        for worker in workers[turn % len(workers) :] + workers[: turn % len(workers)]:
            worker.round(ROUND_SECONDS)
    for worker in workers:
        worker.close()
    return results


def prepare_model(onnx: Path, folder: Path, shapes: str | None, chip: str) -> tuple[Path, Path]:
    """(.bmodel, input .npz) of an ONNX file."""
    quiet = Report(1, sys.stderr, quiet=True)
    model, _ = top_model.import_onnx(
        onnx, folder / f"{onnx.stem}_top.mlir", quiet, model_name=onnx.stem, input_shapes=shapes
    )
    output = folder / f"{onnx.stem}.bmodel"
    top_model.deploy(model, output, quiet, chip=chip, quantize="F32")
    inputs = folder / "in.npz"
    save_npz(inputs, random_inputs(model.inputs))
    return output, inputs


def agreement(results: list[Result]) -> str:
    """How far Tessera's outputs are from the first peer's, in words."""
    ours = next((r for r in results if r.engine == "tessera" and r.outputs), None)
    peer = next((r for r in results if r.engine != "tessera" and r.outputs), None)
    if ours is None or peer is None:
        return "not compared"
    comparison = compare.compare(
        ours.outputs, peer.outputs, compare.Tolerance(0.9999, 0.999, floor=compare.FLOAT32_FLOOR)
    )
    if not comparison.rows:
        return "nothing in common"
    return (
        "same answer" if comparison.passed else "DIFFERENT ANSWER"
    ) + f" (worst cos {comparison.rows[0].cosine:.6f})"


def table_rows(name: str, threads: int, results: list[Result]) -> list[tuple[str, ...]]:
    peers = [r.median for r in results if r.engine != "tessera" and r.times]
    best = min(peers) if peers else float("nan")
    rows = []
    for r in results:
        if r.error:
            rows.append((name, str(threads), r.engine, "-", "-", "-", "-", r.error[:60]))
            continue
        ratio = f"{r.median / best:.2f}" if peers else "-"
        rows.append(
            (
                name,
                str(threads),
                r.engine,
                f"{r.median * 1e3:.3f}",
                ratio,
                f"{r.prepare * 1e3:.0f}",
                f"{r.peak_mib:.0f}",
                agreement(results) if r.engine == "tessera" else "",
            )
        )
    return rows


def find_models(given: list[str]) -> list[Path]:
    if given:
        return [Path(g) for g in given]
    root = os.environ.get("TESSERA_DATA", "")
    models = [Path(root) / "models" / m for m in DEFAULT_MODELS] if root else []
    if not any(m.is_file() for m in models):
        return [Path(__file__).resolve().parents[1] / "models/mobilenetv1_0.25_128/mobilenetv1_0.25_128.onnx"]
    return [m for m in models if m.is_file()]


def main() -> int:
    parser = argparse.ArgumentParser(prog="./dev bench", description=__doc__.splitlines()[0])
    parser.add_argument(
        "models",
        nargs="*",
        help="ONNX files, each with :SHAPES where dims are dynamic, e.g. "
        "m.onnx:x=1x3x320x320 (default: the four of the shared data)",
    )
    parser.add_argument("--threads", default="1,2", help="thread counts (default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=12, help="turns of each engine (default: %(default)s)")
    parser.add_argument("--chip", default="x86", help="default: %(default)s")
    parser.add_argument("--json", metavar="FILE", help="write all figures here")
    args = parser.parse_args()
    absent = [e for e in ENGINES[1:] if importlib.util.find_spec(e) is None]
    for engine in absent:
        print(f"not measured: {engine} is not installed")
    header = ("model", "threads", "engine", "median ms", "vs best peer", "prepare ms", "peak MiB", "")
    rows, figures, failed = [], [], False
    for path in find_models(args.models):
        name, _, shapes = str(path).partition(":")
        onnx = Path(name)
        with tempfile.TemporaryDirectory(prefix="tessera-bench-") as folder:
            try:
                output, inputs = prepare_model(onnx, Path(folder), shapes or None, args.chip)
            except TesseraError as error:
                print(f"{onnx.stem}: {error.message}", file=sys.stderr)
                failed = True
                continue
            files = {"tessera": output, **{e: onnx for e in ENGINES[1:] if e not in absent}}
            for threads in map(int, args.threads.split(",")):
                results = measure(files, inputs, Path(folder), threads, args.rounds)
                rows += table_rows(onnx.stem, threads, results)
                figures += [
                    {
                        "model": onnx.stem,
                        "threads": threads,
                        "engine": r.engine,
                        "median_ms": r.median * 1e3,
                        "runs": len(r.times),
                        "prepare_ms": r.prepare * 1e3,
                        "peak_mib": r.peak_mib,
                        "error": r.error,
                    }
                    for r in results
                ]
                failed |= any(r.error for r in results) or "DIFFERENT" in agreement(results)
                print(
                    compare.align([header, *table_rows(onnx.stem, threads, results)], right=(1, 3, 4, 5, 6)) + "\n",
                    flush=True,
                )
    if args.json:
        Path(args.json).write_text(json.dumps(figures, indent=1) + "\n")
    if len(rows) > len(ENGINES):
        print(compare.align([header, *rows], right=(1, 3, 4, 5, 6)))
    return 1 if failed or not rows else 0


if __name__ == "__main__":
    sys.exit(main())
