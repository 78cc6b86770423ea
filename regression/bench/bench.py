#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""./dev bench: Tessera beside onnxruntime and OpenVINO, measured in one run, turn by turn.

How they are measured stands in tessera/bench/measure.py, which `tessera bench` shares. Reported: median latency over
all rounds, ratio to the faster peer, time from file to first answer, peak memory. The engines answer the same random
input, and the answers are compared.
"""
from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Any, Iterator, Mapping

import numpy as np

from tessera import compare, tolerances, top_model
from tessera.bench.engines import installed
from tessera.bench.measure import Result, Worker, measure
from tessera.errors import TesseraError
from tessera.files import save_npz
from tessera.inputs import random_inputs
from tessera.progress import Report

DEFAULT_MODELS = (
    "topology/light_resnet50.onnx",
    "cls/mobilenetv2_1.0_224.onnx",
    "det/yolox_nano_416.onnx",
    "transformer/vittrack.onnx",
)
# Those that multiply in a precision; onnxruntime has no kernels of bf16 on CPUs.
ENGINES = {"f32": ("tessera", "onnxruntime", "openvino"), "bf16": ("tessera", "openvino")}
HEADER = ("model", "precision", "threads", "engine", "median ms", "vs best peer", "prepare ms", "peak MiB", "")
RIGHT = (2, 4, 5, 6, 7)  # columns of numbers


def prepare_model(onnx: Path, folder: Path, shapes: str | None, chip: str, precision: str) -> tuple[Path, Path]:
    """(.bmodel, input .npz) of an ONNX file."""
    quiet = Report(1, sys.stderr, quiet=True)
    model, _ = top_model.import_onnx(
        onnx, folder / f"{onnx.stem}_top.mlir", quiet, model_name=onnx.stem, input_shapes=shapes
    )
    output = folder / f"{onnx.stem}.bmodel"
    top_model.deploy(model, output, quiet, chip=chip, quantize=precision.upper())
    inputs = folder / "in.npz"
    save_npz(inputs, random_inputs(model.inputs))
    return output, inputs


def answer_in_f32(onnx: Path, inputs: Path, folder: Path) -> dict[str, np.ndarray]:
    """The first peer's outputs in f32, what everyone's are compared with; {} without a peer."""
    engine = next((engine for engine in ENGINES["f32"][1:] if installed(engine)), "")
    if not engine:
        return {}
    result = Result(engine)
    Worker(result, onnx, inputs, folder / "answer.npz", 2, "f32").close()
    return result.outputs


def agreement(result: Result, answer: dict[str, np.ndarray], precision: str) -> str:
    """How far an engine's outputs are from the answer, in words."""
    if not result.outputs or not answer:
        return "not compared"
    comparison = compare.compare(result.outputs, answer, tolerances.DEFAULT[precision.upper()])
    if not comparison.rows:
        return "nothing in common"
    return (
        "same answer" if comparison.passed else "DIFFERENT ANSWER"
    ) + f" (worst cos {comparison.rows[0].cosine:.6f})"


def table_rows(
    name: str, precision: str, threads: int, results: list[Result], told: Mapping[str, str]
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
                told.get(r.engine, ""),
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


def bench_model(
    path: Path, precision: str, args: argparse.Namespace
) -> Iterator[tuple[int, list[Result], dict[str, str]]]:
    """What is measured at each thread count, and how each engine's answer is. path: FILE or FILE:SHAPES. Raises
    TesseraError for a model that cannot be deployed."""
    name, _, shapes = str(path).partition(":")
    onnx = Path(name)
    with tempfile.TemporaryDirectory(prefix="tessera-bench-") as folder:
        output, inputs = prepare_model(onnx, Path(folder), shapes or None, args.chip, precision)
        peers = [e for e in ENGINES[precision][1:] if installed(e)]
        files = {"tessera": output, **{e: onnx for e in peers}}
        answer = answer_in_f32(onnx, inputs, Path(folder))
        for threads in map(int, args.threads.split(",")):
            results = measure(files, inputs, Path(folder), threads, precision, args.rounds)
            yield threads, results, {r.engine: agreement(r, answer, precision) for r in results}


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


def main() -> int:
    parser = argparse.ArgumentParser(prog="./dev bench", description=__doc__.splitlines()[0])
    parser.add_argument(
        "models",
        nargs="*",
        help="ONNX files, each with :SHAPES where dims are dynamic, e.g. "
        "m.onnx:x=1x3x320x320 (default: the four of the shared data)",
    )
    parser.add_argument("--precision", default="f32", help="of f32 and bf16 those to measure (default: %(default)s)")
    parser.add_argument("--threads", default="1,2", help="thread counts (default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=12, help="turns of each engine (default: %(default)s)")
    parser.add_argument("--chip", default="x86", help="default: %(default)s")
    parser.add_argument("--json", metavar="FILE", help="write all figures here")
    args = parser.parse_args()
    precisions = args.precision.split(",")
    if unknown := [p for p in precisions if p not in ENGINES]:
        parser.error(f"--precision {unknown[0]}: allowed are {', '.join(ENGINES)}")
    for engine in dict.fromkeys(e for p in precisions for e in ENGINES[p][1:]):
        if not installed(engine):
            print(f"not measured: {engine} is not installed")
    rows, figures, failed = [], [], False
    for path in find_models(args.models):
        for precision in precisions:
            try:
                for threads, results, told in bench_model(path, precision, args):
                    name = Path(str(path).partition(":")[0]).stem
                    new = table_rows(name, precision, threads, results, told)
                    print(compare.align([HEADER, *new], right=RIGHT) + "\n", flush=True)
                    rows += new
                    figures += [figures_of(name, precision, threads, r) for r in results]
                    failed |= any(r.error for r in results) or "DIFFERENT" in told["tessera"]
            except TesseraError as error:
                print(f"{path}: {error.message}", file=sys.stderr)
                failed = True
    if args.json:
        Path(args.json).write_text(json.dumps(figures, indent=1) + "\n")
    if len(rows) > len(ENGINES[precisions[0]]):
        print(compare.align([HEADER, *rows], right=RIGHT))
    return 1 if failed or not rows else 0


if __name__ == "__main__":
    sys.exit(main())
