#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""./dev accuracy: what each precision costs on real tasks, beside what peers' quantisation costs.

    ./dev accuracy [MODEL ..] [--columns F32,INT8,BF16] [--no_peers] [--json FILE] [--markdown FILE]

Takes every case of regression/cases that says how it is calibrated and judged ([quantised]), or those whose name
begins as given. Everything in a row is judged on the same samples, none of which calibrated.
"""
from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Callable, Mapping

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

import builds  # noqa: E402
import peers  # noqa: E402
from case_file import Case, DataMissing, all_cases, data_path  # noqa: E402
from judges import JUDGES  # noqa: E402

from tessera import any_model, compare  # noqa: E402
from tessera.any_model import AnyModel  # noqa: E402
from tessera.calibration.dataset import open_dataset  # noqa: E402
from tessera.errors import TesseraError  # noqa: E402
from tessera.progress import Report  # noqa: E402
from tessera.tasks import TASKS  # noqa: E402
from tessera.tasks.scale import Scale  # noqa: E402


@dataclass
class Cell:
    """One model in one precision. figures: by name, the first is decisive. drop: in points against the float model."""

    column: str
    figures: dict[str, float] = field(default_factory=dict)
    drop: float = float("nan")
    seconds: float = 0
    bytes: int = 0
    note: str = ""
    error: str = ""

    def __str__(self) -> str:
        if self.error:
            return "-"
        return f"{next(iter(self.figures.values())):.4f} ({0.0 - self.drop:+.2f})"


def judge_of(case: Case, like: AnyModel, scratch: Path) -> tuple[Callable[[AnyModel], Mapping[str, float]], Scale]:
    """Returns a function that computes the scores of a model, the main one first, and the scale of the main score."""
    info = case.quantised
    data = (
        together([data_path(path) for path in info["data"]], scratch)
        if isinstance(info["data"], list)
        else data_path(info["data"])
    )
    if info["judge"] in JUDGES:
        return lambda model: JUDGES[info["judge"]](model, like, data), Scale()
    task = TASKS[info["judge"]]

    def figures(model: AnyModel) -> Mapping[str, float]:
        found = task.score(model, data)
        return {task.figure: found.pop(task.figure), **found}

    return figures, task.scale


def together(files: list[Path], scratch: Path) -> Path:
    """Returns a folder with links to these files."""
    folder = scratch / "data"
    folder.mkdir()
    for file in files:
        (folder / file.name).symlink_to(file)
    return folder


def row_of(build: builds.Build, columns: list[str], with_peers: bool, report: Report, scratch: Path) -> list[Cell]:
    """Measures one model in all precisions."""
    case = build.case
    like = any_model.open_model(build.deploy("F32").bmodel, report, 2)
    figures, scale = judge_of(case, like, scratch)
    cells = [cell_of("F32", lambda: (like, build.deploy("F32")), figures)]
    for column in columns:
        if column != "F32":

            def made(column: str = column):
                built = build.deploy(column)
                return any_model.open_model(built.bmodel, report, 2), built

            cells.append(cell_of(column, made, figures))
    if with_peers:
        cells += peer_cells(case, build, like, figures, report, scratch)
    wanted = next(iter(cells[0].figures.values()))
    for cell in cells:
        if cell.figures:
            cell.drop = scale.loss(wanted, next(iter(cell.figures.values()))).points
    return cells


def cell_of(column: str, make: Callable[[], tuple], figures: Callable[[AnyModel], Mapping[str, float]]) -> Cell:
    """Builds and scores; records the failure if a step fails."""
    cell, start = Cell(column), time.monotonic()
    try:
        model, built = make()
        cell.seconds = time.monotonic() - start
        if built is not None:
            cell.bytes, cell.note = built.bmodel.stat().st_size, built.note
        cell.figures = {name: float(value) for name, value in figures(model).items()}
    except Exception as error:  # a peer may fail in any way; the table continues
        cell.error = f"{type(error).__name__}: {str(error).strip().splitlines()[-1] if str(error).strip() else ''}"[
            :300
        ]
    return cell


def peer_cells(
    case: Case, build: builds.Build, like: AnyModel, figures: Callable, report: Report, scratch: Path
) -> list[Cell]:
    dataset = open_dataset(str(build.samples), like.inputs, build.count)
    arrays = [sample.load(like.inputs) for sample in dataset.samples()]
    source, missing = data_path(case.model), peers.available()
    makers = {
        f"ort {m}": lambda m=m: (peers.onnxruntime_static(source, like, arrays, m, scratch, report), None)
        for m in peers.ORT_METHODS
    }
    makers[peers.NNCF] = lambda: (peers.nncf_default(source, like, arrays), None)
    return [
        Cell(name, error=missing[name]) if missing[name] else cell_of(name, make, figures)
        for name, make in makers.items()
    ]


def main() -> int:
    parser = argparse.ArgumentParser(prog="./dev accuracy", description=__doc__.split("\n\n", 1)[0], allow_abbrev=False)
    parser.add_argument(
        "models", nargs="*", metavar="MODEL", help="cases by the beginning of their name (default: all)"
    )
    parser.add_argument("--columns", default=",".join(builds.COLUMNS), help="precisions (default: %(default)s)")
    parser.add_argument("--no_peers", action="store_true", help="only Tessera")
    parser.add_argument("--json", metavar="FILE", help="also write every figure")
    parser.add_argument("--markdown", metavar="FILE", help="also write the table")
    args = parser.parse_args()
    columns = args.columns.split(",")
    if unknown := [column for column in columns if column not in builds.COLUMNS]:
        parser.error(f"--columns: no {unknown[0]}; there are {', '.join(builds.COLUMNS)}")
    cases = [
        case for case in all_cases() if case.quantised and (not args.models or case.name.startswith(tuple(args.models)))
    ]
    if not cases:
        parser.error("no case of that name says how it is quantised")
    os.environ["PYTHONPATH"] = os.pathsep.join([str(HERE), os.environ.get("PYTHONPATH", "")])
    rows: dict[str, list[Cell]] = {}
    failed: list[str] = []
    for case in cases:
        with tempfile.TemporaryDirectory() as scratch:
            try:
                data_path(case.model)
                build, quiet = builds.Build(case, Path(scratch)), Report(0, quiet=True)
                rows[case.name] = row_of(build, columns, not args.no_peers, quiet, Path(scratch))
            except DataMissing as missing:
                print(f"{case.name}: skipped: {missing}", flush=True)
                continue
            except (RuntimeError, TesseraError) as error:
                print(f"{case.name}: failed: {error}", flush=True)
                failed.append(case.name)
                continue
        print_report(case, rows[case.name])
        if args.json:
            Path(args.json).write_text(
                json.dumps({name: [asdict(cell) for cell in row] for name, row in rows.items()}, indent=1)
            )
    table = table_of(rows)
    print("\n" + compare.align(table))
    if args.markdown:
        lines = ["| " + " | ".join(line) + " |" for line in table]
        Path(args.markdown).write_text("\n".join([lines[0], "|---" * len(table[0]) + "|", *lines[1:]]) + "\n")
    return 0 if rows and not failed else 1


def print_report(case: Case, row: list[Cell]) -> None:
    """Prints one line per precision when a model is finished."""
    print(f"\n{case.name}: {case.quantised['judge']}", flush=True)
    for cell in row:
        what = cell.error or f"{cell} {cell.bytes / 1e6:6.2f} MB  {cell.note}"
        print(f"  {cell.column:15} {cell.seconds:6.1f} s  {what}", flush=True)


def table_of(rows: Mapping[str, list[Cell]]) -> list[tuple[str, ...]]:
    """Returns one line per model: the score and, in brackets, its change in points."""
    columns = list(dict.fromkeys(cell.column for row in rows.values() for cell in row))
    lines = [("model", "figure", *columns)]
    for name, row in rows.items():
        by_column = {cell.column: cell for cell in row}
        lines.append((name, next(iter(row[0].figures), "-"), *(str(by_column.get(column, "-")) for column in columns)))
    return lines


if __name__ == "__main__":
    raise SystemExit(main())
