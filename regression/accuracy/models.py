#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""./dev models: the score, the time and the supported chips of every public model of regression/cases.

    ./dev models [MODEL ..] [--write]

Runs each case through the commands of a user. F32 and INT8 on x86 are scored on real data that was not used for
calibration, and timed in alternation with onnxruntime. INT8 for each NPU is timed by the clock of the simulator. INT8
for GPUs is only compiled. --write updates the rows in docs/generated/models.md and keeps the rows of other models.
"""
from __future__ import annotations

import argparse
import os
import shlex
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Callable, Iterable

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

import builds  # noqa: E402
from accuracy import row_of  # noqa: E402
from case_file import REGRESSION, Case, DataMissing, all_cases, data_path  # noqa: E402
from models_page import Row, parse, render  # noqa: E402

import numpy as np  # noqa: E402

from tessera import onnx_runner, runtime  # noqa: E402
from tessera.errors import TesseraError  # noqa: E402
from tessera.inputs import random_inputs  # noqa: E402
from tessera.progress import Report  # noqa: E402
from tessera.targets import targets  # noqa: E402
from tessera.tasks import TASKS  # noqa: E402

PAGE = REGRESSION.parent / "docs" / "generated" / "models.md"
ROUND_SECONDS = 0.25
NONE, BUSY = "-", "busy"
STEADY = 1.15  # the usual round over the fastest one, up to which the machine is quiet enough to measure


def measured(case: Case, build: builds.Build, column: str, rounds: int) -> tuple[str, str]:
    """Returns, as text, (milliseconds on one thread, ratio to onnxruntime on the float model), the minimum over all
    rounds."""
    arrays = random_inputs(build.inputs)
    net = runtime.load(str(build.deploy(column).bmodel), threads=1).net()
    session = peer(data_path(case.model))
    runs = [lambda: net(arrays)] + ([lambda: session.run(None, arrays)] if session else [])
    fastest(runs[0]), fastest(runs[-1])
    turns = np.array([[fastest(run) for run in runs] for _ in range(rounds)])  # a change of speed meets both
    return shown(turns)


def shown(turns: np.ndarray) -> tuple[str, str]:
    """Returns (milliseconds, ratio) from seconds [rounds, engines]; BUSY if they vary between rounds."""
    least = turns.min(axis=0)
    if (np.median(turns, axis=0) > STEADY * least).any():
        return BUSY, BUSY
    return f"{least[0] * 1e3:.2f}", f"{least[0] / least[1]:.2f}" if len(least) > 1 else NONE


def fastest(run: Callable[[], object]) -> float:
    """Returns the seconds of a round's fastest run."""
    least, end = float("inf"), time.perf_counter() + ROUND_SECONDS
    while True:
        begin = time.perf_counter()
        run()
        least = min(least, time.perf_counter() - begin)
        if time.perf_counter() > end:
            return least


def peer(model: Path) -> Any:
    """Returns an onnxruntime session on one thread; None if onnxruntime is not installed."""
    if not onnx_runner.available():
        return None
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads, options.log_severity_level = 1, 1, 4
    return onnxruntime.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])


def on_chip(build: builds.Build, column: str, chip: str) -> str:
    """Returns the milliseconds of a run and the number of parts on the host; or 'no' with the beginning of the error
    message."""
    try:
        info = build.deploy(column, chip).info["model"]["partition"]
    except RuntimeError as error:
        return f"no: {str(error).splitlines()[0][:60]}".replace("|", "/")
    hosts = sum(subnet["device"] == "host" for subnet in info["subnets"])
    return f"{info['total_microseconds'] / 1e3:.3f}" + (f" h{hosts}" if hosts else "")


def compiles(build: builds.Build, column: str, chip: str) -> str:
    try:
        build.deploy(column, chip)
    except RuntimeError as error:
        return f"no: {str(error).splitlines()[0][:60]}".replace("|", "/")
    return "compiles"


def row(case: Case, folder: Path, rounds: int) -> Row:
    """Returns a model's row. Raises RuntimeError if a command fails that must succeed."""
    build = builds.Build(case, folder)
    column = "INT8" if case.quantised else "F16"
    figure, f32, int8 = NONE, NONE, NONE
    if case.quantised:
        info = row_of(build, ["F32", "INT8"], False, Report(0, quiet=True), folder)
        if failed := [cell.error for cell in info if cell.error]:
            raise RuntimeError(failed[0])
        figure = next(iter(info[0].figures))
        f32, int8 = f"{info[0].figures[figure]:.4f}", f"{info[1].figures[figure]:.4f}"
    times = [measured(case, build, "F32", rounds)]
    times.append(measured(case, build, "INT8", rounds) if case.quantised else (NONE, NONE))
    size = [f"{build.deploy(each).bmodel.stat().st_size / 1e6:.2f}" for each in ("F32", column)]
    npus = [on_chip(build, column, chip) for chip in targets().chips_of("npu")]
    gpu = compiles(build, column, targets().chips_of("cuda")[0])
    cells = (case.name, figure, f32, int8, *times[0], *times[1], *size, column, *npus, gpu)
    return Row(cells, commands_of([*build.commands, *scoring(build)], folder))


def scoring(build: builds.Build) -> list[list[str]]:
    """Returns the command that repeats this scoring, for models with a task."""
    info = build.case.quantised or {}
    if info.get("judge") not in TASKS or isinstance(info["data"], list):
        return []
    files = [str(build.deploy(column).bmodel) for column in ("F32", "INT8")]
    return [["tessera", "accuracy", *files, "--task", info["judge"], "--data", str(data_path(info["data"]))]]


def commands_of(commands: Iterable[list[str]], folder: Path) -> tuple[str, ...]:
    """Returns the commands as typed in an empty folder, with the checkout as $REPO."""
    replaced = [(f"{folder}{os.sep}", ""), (str(REGRESSION), "$REPO/regression")]
    if data := os.environ.get("TESSERA_DATA"):
        replaced.append((str(Path(data)), "$TESSERA_DATA"))
    lines = []
    for words in commands:
        typed = [shlex.quote(word) for word in words if word not in ("--not_inference", "--skip_validation")]
        line = " ".join(typed)
        for old, new in replaced:
            line = line.replace(old, new)
        lines.append(line)
    return tuple(dict.fromkeys(lines))


def chosen(names: list[str]) -> list[Case]:
    return [case for case in all_cases() if not names or case.name.startswith(tuple(names))]


def main() -> int:
    parser = argparse.ArgumentParser(prog="./dev models", description=(__doc__ or "").split("\n\n", 1)[0])
    parser.add_argument("models", nargs="*", metavar="MODEL", help="by the beginning of their names (default: all)")
    parser.add_argument("--rounds", type=int, default=8, help="turns of each engine (default: %(default)s)")
    parser.add_argument("--write", action="store_true", help=f"put the rows into {PAGE.relative_to(REGRESSION.parent)}")
    parser.add_argument("--page", type=Path, default=PAGE, help=argparse.SUPPRESS)
    args = parser.parse_args()
    cases = chosen(args.models)
    if not cases:
        parser.error("no case of regression/cases has such a name")
    os.environ["PYTHONPATH"] = os.pathsep.join([str(HERE), os.environ.get("PYTHONPATH", "")])
    rows: list[Row] = []

    def take(result: Row) -> None:
        rows.append(result)
        if args.write:
            write(result, args.page)

    failed = each_case(cases, args.rounds, take)
    return 0 if rows and not failed else 1


def write(result: Row, page: Path) -> None:
    """Writes a row into the page, and removes the rows of models that are no longer cases."""
    there = parse(page.read_text(encoding="utf-8")) if page.exists() else {}
    known = {case.name for case in all_cases()}
    rows = {name: row for name, row in {**there, result.name: result}.items() if name in known}
    page.write_text(render(rows, targets().chips_of("npu")), encoding="utf-8")


def each_case(cases: list[Case], rounds: int, take: Callable[[Row], None]) -> list[str]:
    """Reports each row as soon as it is complete; returns the names of failed cases."""
    failed: list[str] = []
    for case in cases:
        with tempfile.TemporaryDirectory() as scratch:
            try:
                result = row(case, Path(scratch), rounds)
            except DataMissing as missing:
                print(f"{case.name}: skipped: {missing}", flush=True)
                continue
            except (RuntimeError, TesseraError) as error:
                print(f"{case.name}: failed: {error}", flush=True)
                failed.append(case.name)
                continue
        print(" | ".join(result.cells), flush=True)
        take(result)
    return failed


if __name__ == "__main__":
    raise SystemExit(main())
