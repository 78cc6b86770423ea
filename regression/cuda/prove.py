#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs every model of regression/cases in every precision on the cuda back end and on x86, and compares the outputs.

    build/bin/tessera-python regression/cuda/prove.py [--models 'mobile*'] [--precisions F32,INT8] [--write]

The driver is the PTX machine with all of its checks, or the one that BMRT_LIBCUDA names. A row passes if the outputs of
the GPU code are those of x86: bit-equal in INT8, unless the compiler reports that parts of the model stay float;
otherwise within the tolerance of the precision (docs/numerics.md). --json stores the rows and supplies those of other
models and precisions; --write creates docs/generated/cuda-models.md from them if all pass. Exit code 1 if a row does
not pass.
"""
from __future__ import annotations

import argparse
import fnmatch
import json
import os
import subprocess
import sys
import tempfile
import textwrap
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Iterator, Mapping, Sequence

import numpy as np
from make_cases import SAMPLES, Failed, noise, tool

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from case_file import Case, DataMissing, all_cases, data_path  # noqa: E402

from tessera.compare import Tolerance, compare  # noqa: E402
from tessera.tolerances import DEFAULT  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "generated" / "cuda-models.md"
BUILD = Path(os.environ.get("TESSERA_BUILD_DIR", ROOT / "build"))
MACHINE = BUILD / "ptx_machine" / "libcuda.so.1"
PRECISIONS = ("F32", "BF16", "F16", "INT8", "DYNAMIC_INT8", "W8", "W4")
EQUAL, WITHIN, OUTSIDE = "equal", "within", "outside"
RIGHT = (EQUAL, WITHIN)
Row = dict[str, Any]
EXPLANATION = (
    "Every model of `regression/cases` was deployed for `--chip cuda` and for `x86`, and both were run on the same "
    "random inputs. The GPU code ran on the [PTX machine](../../bmruntime/ptx_machine/README.md) with all of its "
    "checks, which reported nothing. `equal`: every output is bit-equal to that of x86. A number is the largest "
    "difference relative to the largest value of the output; it is within the tolerance of the precision "
    "([numerics](../numerics.md)). INT8 must be equal, unless convolutions or recurrent ops of the model stay float "
    "(marked *). `launches`: kernels of a run in F32 and in INT8. `host`: number of ops that run on the host."
)


def tolerance_of(case: Case, precision: str, bit_equal_except: list[str]) -> Tolerance | None:
    """Returns the tolerance against x86's outputs; None: bit-equal. F32: the tolerance of x86 against onnxruntime."""
    if precision == "INT8":
        return case.tolerance if bit_equal_except else None
    return case.tolerance if precision == "F32" else DEFAULT[precision]


def judge(
    got: Mapping[str, np.ndarray], want: Mapping[str, np.ndarray], tolerance: Tolerance | None
) -> tuple[str, float]:
    """Returns the verdict on all outputs and the worst difference relative to an output's largest value."""
    if not want or set(got) != set(want):
        return f"other outputs: {sorted(got)}, expected {sorted(want)}", float("nan")
    worst, is_equal = 0.0, True
    for name, expected in want.items():
        if got[name].shape != expected.shape or got[name].dtype != expected.dtype:
            return f"'{name}' is {got[name].dtype}{got[name].shape}", float("nan")
        is_equal &= np.array_equal(got[name], expected, equal_nan=expected.dtype.kind == "f")
        scale = float(np.nan_to_num(np.abs(expected.astype(np.float64))).max(initial=0)) or 1.0
        error = np.abs(got[name].astype(np.float64) - expected.astype(np.float64))
        worst = max(worst, float(np.nan_to_num(error, nan=0.0).max(initial=0)) / scale)
    if is_equal:
        return EQUAL, worst
    return WITHIN if tolerance and compare(got, want, tolerance).passed else OUTSIDE, worst


def deploy(top: Path, chip: str, output: Path, precision: str, table: Path) -> dict[str, Any]:
    """Compiles the model and returns the compiler's report."""
    flags = ["--quantize", precision, *(["--calibration-table", table] if precision == "INT8" else [])]
    info = tool("tessera-compile", "deploy", "--mlir", top, "--chip", chip, *flags, "--output", output, "--jobs", "1")
    result: dict[str, Any] = json.loads(info.splitlines()[-1])
    return result


def run(model: Path, inputs: Path) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """Runs a model; returns its outputs and the PTX machine's counts by kernel. A finding fails the run."""
    output, counts = model.with_suffix(".npz"), model.with_suffix(".counts.json")
    variables = {"BMRT_LIBCUDA": os.environ.get("BMRT_LIBCUDA", str(MACHINE)), "PTX_MACHINE_COUNTS": str(counts)}
    command = ["model_runner", "--model", model, "--input", inputs, "--output", output]
    done = subprocess.run(command, env=os.environ | variables, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise Failed(f"model_runner: {done.stderr.strip()[-1500:]}")
    with np.load(output) as arrays:
        return dict(arrays), json.loads(counts.read_text()) if counts.exists() else {}


def prove_precision(case: Case, precision: str, top: Path, folder: Path) -> Row:
    """Returns one row; raises Failed with the message of a command that fails."""
    gpu, host = folder / "cuda.bmodel", folder / "x86.bmodel"
    info = deploy(top, "cuda", gpu, precision, folder / "table.json")
    deploy(top, "x86", host, precision, folder / "table.json")
    begin = time.monotonic()
    got, counts = run(gpu, folder / "in.npz")
    seconds = time.monotonic() - begin
    want, _ = run(host, folder / "in.npz")
    verdict, worst = judge(got, want, tolerance_of(case, precision, info["bit_equal_except"]))
    launches = sum(kernel["launches"] for kernel in counts.values())
    row = {"verdict": verdict, "worst": worst, "launches": launches, "seconds": round(seconds, 2)}
    row["bit_equal_except"] = info["bit_equal_except"]
    row["host_ops"] = [f"{op['name']}: {op['reason']}" for op in info["partition"]["host_ops"]]
    return row


def prepare(case: Case, has_table: bool, folder: Path) -> Path:
    """Creates the case's Top module, in.npz and, if wanted, a calibration table in `folder`. Raises Failed."""
    top = folder / f"{case.name}_top.mlir"
    shapes = ["--input_shapes", case.input_shapes] if case.input_shapes else []
    flags = ("--model_name", case.name, "--model_def", data_path(case.model), "--not_inference")
    tool("model_transform", *flags, "--mlir", top, *case.transform, *shapes)
    np.savez(folder / "in.npz", **noise(top, 5))
    if has_table:
        (folder / "data").mkdir()
        for seed in range(SAMPLES):
            np.savez(folder / "data" / f"{seed}.npz", **noise(top, seed))
        data = ("--dataset", folder / "data", "--cali_method", "max", "--methods", "none", "--workers", "1")
        tool("run_calibration", top, *data, "-o", folder / "table.json")
    return top


def prove_model(case: Case, precisions: Sequence[str]) -> Iterator[tuple[str, Row]]:
    """Yields the rows of a model with their precisions, each as soon as it is known."""
    if not precisions:
        return
    with tempfile.TemporaryDirectory(prefix="tessera-prove-") as name:
        try:
            top = prepare(case, "INT8" in precisions, Path(name))
        except Failed as error:
            yield from ((precision, {"verdict": str(error)}) for precision in precisions)
            return
        for precision in precisions:
            try:
                yield precision, prove_precision(case, precision, top, Path(name))
            except Failed as error:
                yield precision, {"verdict": str(error)}


def print_report(name: str, precision: str, row: Row) -> str:
    mark = "ok  " if row["verdict"] in RIGHT else "FAIL"
    if "worst" not in row:
        return f"{mark}  {name} {precision}: {row['verdict']}"
    host = f", {len(row['host_ops'])} ops on the host" if row["host_ops"] else ""
    return (
        f"{mark}  {name} {precision}: {row['verdict']}, worst {row['worst']:.1e}, {row['launches']} launches, "
        f"{row['seconds']} s{host}"
    )


def cell(row: Row | None) -> str:
    if not row:
        return "-"
    return ("equal" if row["verdict"] == EQUAL else f"{row['worst']:.0e}") + "*" * bool(row["bit_equal_except"])


def page(rows: Mapping[str, Mapping[str, Row]]) -> str:
    """Returns the page of docs/generated for rows that pass."""
    names = [case.name for case in all_cases()]
    run = sum(len(rows.get(name, {})) for name in names)
    lines = [
        "# Models on the PTX machine",
        "",
        "<!-- Made by regression/cuda/prove.py --write; do not edit. -->",
        "",
        *textwrap.wrap(EXPLANATION, 120, break_on_hyphens=False),
        "",
        f"{run} of {len(names) * len(PRECISIONS)} rows have been run, and all pass.",
        "",
        f"| model | {' | '.join(PRECISIONS)} | launches | host |",
        f"|---|{'---:|' * (len(PRECISIONS) + 2)}",
    ]
    for name in names:
        model = rows.get(name, {})
        launches = ", ".join(str(model[each]["launches"]) if each in model else "-" for each in ("F32", "INT8"))
        hosts = max((len(row["host_ops"]) for row in model.values()), default=0)
        lines.append(f"| {name} | {' | '.join(cell(model.get(each)) for each in PRECISIONS)} | {launches} | {hosts} |")
    reasons = sorted({f"- {name}: {op}" for name in rows for row in rows[name].values() for op in row["host_ops"]})
    return "\n".join([*lines, *(["", "Ops that run on the host:", "", *reasons] if reasons else [])]) + "\n"


def write_page(rows: Mapping[str, Mapping[str, Row]]) -> None:
    """Writes the page. Raises Failed if a row does not pass."""
    for name, model in rows.items():
        for precision, row in model.items():
            if row["verdict"] not in RIGHT:
                raise Failed(f"no page: {name} {precision} is {row['verdict']}")
    PAGE.write_text(page(rows), encoding="utf-8")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", default="*", metavar="GLOB")
    parser.add_argument("--precisions", default=",".join(PRECISIONS), metavar="A,B")
    parser.add_argument("--json", type=Path, default=BUILD / "cuda_proof.json", metavar="FILE")
    parser.add_argument("--missing", action="store_true", help="run only rows that the file of --json does not have")
    parser.add_argument("--write", action="store_true", help="write docs/generated/cuda-models.md")
    parser.add_argument("-j", "--jobs", type=int, default=1)
    args = parser.parse_args()
    precisions = args.precisions.upper().split(",")
    if unknown := [each for each in precisions if each not in PRECISIONS]:
        parser.error(f"--precisions '{unknown[0]}': expected some of {', '.join(PRECISIONS)}")
    cases = [case for case in all_cases() if fnmatch.fnmatch(case.name, args.models)]
    rows: dict[str, dict[str, Row]] = json.loads(args.json.read_text()) if args.json.exists() else {}
    lock = threading.Lock()

    def wanted(case: Case) -> list[str]:
        return [each for each in precisions if not (args.missing and each in rows.get(case.name, {}))]

    def run_case(case: Case) -> bool:
        right = True
        for precision, row in prove_model(case, wanted(case)):
            with lock:
                print(print_report(case.name, precision, row), flush=True)
                rows.setdefault(case.name, {})[precision] = row
                args.json.write_text(json.dumps(rows, indent=1) + "\n")
            right &= row["verdict"] in RIGHT
        return right

    try:
        with ThreadPoolExecutor(args.jobs) as pool:
            is_right = bool(cases) and all(list(pool.map(run_case, cases)))
    except DataMissing as error:
        print(f"prove: {error}", file=sys.stderr)
        return 1
    if args.write:
        try:
            write_page(rows)
        except Failed as error:
            print(f"prove: {error}", file=sys.stderr)
            return 1
    return 0 if is_right else 1


if __name__ == "__main__":
    sys.exit(main())
