#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""./dev zoo: tests whether networks outside the developed cases work. Rebuilds, exports, compiles, runs and compares
them.

    ./dev zoo [--only PART[,PART ..]] [--family FAMILY ..] [--exporters torchscript,dynamo,..] [--columns f32,int8,npu]
              [--open] [--jobs N] [--write]

Columns on request: npu_f32 (F32 on npu-base), x86-v2, x86-avx2, x86-avx512, x86-avx512vnni (INT8 on these variants).

Results are stored in build/zoo and reused while neither the network's file nor the build has changed; --fresh repeats
them.
"""
from __future__ import annotations

import argparse
import hashlib
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path
from typing import Iterable

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(HERE))

import table  # noqa: E402
from judge import CALIBRATED, COLUMNS, MORE_COLUMNS, TRIED, Result, Tools, judge  # noqa: E402
from registry import EXPORTERS, OPEN, OPTIMISED, Network, all_networks  # noqa: E402

BUILD = Path(os.environ.get("TESSERA_BUILD_DIR", ROOT / "build"))
PAGE = ROOT / "docs" / "generated" / "zoo.md"
LIBRARIES = ("torch", "torchvision", "timm", "transformers", "onnx", "onnxscript", "onnxruntime")
BATCH = 12
"""Number of networks per exporting process; importing torch takes seconds."""


def parse(argv: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="./dev zoo", description=__doc__.split("\n\n", 1)[0], allow_abbrev=False)
    parser.add_argument("--only", default="", metavar="PART,..", help="networks whose names contain one of these")
    parser.add_argument("--family", default="", metavar="FAMILY,..", help="networks of these families")
    parser.add_argument("--exporters", default=",".join(EXPORTERS), help="(default: %(default)s)")
    parser.add_argument(
        "--columns",
        default=",".join(COLUMNS),
        help="what is compiled: f32 on x86, int8 on x86, npu for int8 on npu-base (default: %(default)s)",
    )
    parser.add_argument(
        "--open", action="store_true", help=f"files with dynamic shapes: --exporters {','.join(OPEN)} --columns f32"
    )
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="networks at once (default: %(default)s)")
    parser.add_argument(
        "--limit", type=float, default=300, metavar="SECONDS", help="for each command (default: %(default)s)"
    )
    parser.add_argument("--fresh", action="store_true", help="take nothing from earlier runs but exported files")
    parser.add_argument("--export_again", action="store_true", help="export anew")
    parser.add_argument("--keep", metavar="DIR", help="leave everything that the commands make there")
    parser.add_argument("--list", action="store_true", help="only names and families")
    parser.add_argument(
        "--write", action="store_true", help=f"write {PAGE.relative_to(ROOT)} from all results there are"
    )
    args = parser.parse_args(argv)
    if args.open:
        args.columns, args.exporters = "f32", ",".join(OPEN)
    args.columns, args.exporters = args.columns.split(","), args.exporters.split(",")
    for flag, given, there in (
        ("--columns", args.columns, COLUMNS + MORE_COLUMNS),
        ("--exporters", args.exporters, (*EXPORTERS, *OPEN)),
    ):
        if unknown := [word for word in given if word not in there]:
            parser.error(f"{flag}: no {unknown[0]}; there are {', '.join(there)}")
    return args


def chosen(args: argparse.Namespace) -> list[tuple[Network, str]]:
    """Returns the selected networks and exporters, all of the first exporter first."""
    parts, families = (list(filter(None, text.split(","))) for text in (args.only, args.family))
    networks = [
        n
        for n in all_networks()
        if (not parts or any(part in n.name for part in parts)) and (not families or n.family in families)
    ]
    return [
        (network, exporter)
        for exporter in args.exporters
        for network in networks
        if OPEN.get(exporter, exporter) in network.exporters and not (exporter in OPEN and network.after)
    ]


def folder_of(network: Network, exporter: str) -> Path:
    return BUILD / "zoo" / "onnx" / f"{network.name}.{exporter}"


def export_all(pairs: Iterable[tuple[Network, str]], again: bool, jobs: int) -> None:
    """Creates the missing files, some networks per process."""
    todo = [
        f"{n.name}:{e}"
        for n, e in pairs
        if again or not ((folder_of(n, e) / "inputs.json").exists() or (folder_of(n, e) / "error.txt").exists())
    ]
    batches = [todo[i : i + BATCH] for i in range(0, len(todo), BATCH)]

    def one(batch: list[str]) -> None:
        process = subprocess.Popen(
            [sys.executable, str(HERE / "export.py"), str(BUILD / "zoo" / "onnx"), *batch],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env={**os.environ, "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1"},
        )
        assert process.stdout
        for line in process.stdout:
            if line.startswith(tuple(batch)):
                print(f"export {line.strip()}", flush=True)
        process.wait()

    with ThreadPoolExecutor(max(1, jobs)) as pool:
        list(pool.map(one, batches))


def fingerprint() -> str:
    """Returns a hash of the programs under test."""
    digest = hashlib.sha256()
    python = sorted((ROOT / "python_tools" / "tessera").rglob("*.py"))
    for path in [
        BUILD / "bin" / "tessera-compile",
        *sorted((BUILD / "python").rglob("*.so*")),
        *python,
        *sorted(HERE.glob("[jo]u*.py")),
    ]:
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def result_file(network: Network, exporter: str) -> Path:
    return BUILD / "zoo" / "results" / f"{network.name}.{exporter}.json"


def judged(network: Network, exporter: str, tools_print: str, args: argparse.Namespace) -> tuple[Result, bool]:
    """Judges a network, unless a result of the same programs is stored. Returns the result, and whether it was
    stored."""
    source, file = folder_of(network, exporter), result_file(network, exporter)
    model = source / "model.onnx"
    key = f"{hashlib.sha256(model.read_bytes()).hexdigest()[:16]} {tools_print} {','.join(args.columns)}"
    if file.exists() and not args.fresh:
        known = Result(**json.loads(file.read_text()))
        if known.key == key:
            return known, True
    result = Result(network.name, exporter, network.family, key=key)
    tools, inputs = Tools(BUILD, args.limit), json.loads((source / "inputs.json").read_text())
    sizes = json.loads((source / "open.json").read_text()) if exporter in OPEN else None
    if args.keep:
        folder = Path(args.keep).resolve() / f"{network.name}.{exporter}"
        folder.mkdir(parents=True, exist_ok=True)
        judge(result, model, inputs, folder, tools, args.columns, open_dims=sizes)
    else:
        with tempfile.TemporaryDirectory(prefix="tessera-zoo-") as scratch:
            judge(result, model, inputs, Path(scratch), tools, args.columns, open_dims=sizes)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(asdict(result), indent=1))
    return result, False


def write_page() -> None:
    """Writes the page of all stored results. Files without a result keep the line that the page has."""
    old_rows, old_missing, _ = table.parse(PAGE.read_text())
    kept = {(row.cells[0], row.cells[2]): row for row in old_rows}
    rows, missing, older, tools_print = [], [], 0, fingerprint()
    for network in all_networks():
        for exporter in network.exporters:
            error, title = folder_of(network, exporter) / "error.txt", f"{network.name} ({exporter}): "
            if result_file(network, exporter).exists():
                result = Result(**json.loads(result_file(network, exporter).read_text()))
                rows.append(table.row_of(result))
                older += tools_print not in result.key
            elif exporter in OPTIMISED and (folder_of(network, "dynamo") / "error.txt").exists():
                continue  # there is no file to optimise
            elif error.exists():
                last = [line for line in error.read_text().splitlines() if line and not line.startswith(" ")]
                missing.append(title + table.short(last[-1] if last else "no message"))
            elif row := kept.get((network.name, exporter)):
                rows.append(row)
                older += 1
            else:
                missing += [line for line in old_missing if line.startswith(title)]
    PAGE.write_text(table.render(rows, missing, older, TRIED, CALIBRATED))


def main() -> int:
    args = parse()
    pairs = chosen(args)
    if args.list:
        print("\n".join(f"{name:45} {family}" for name, family in dict.fromkeys((n.name, n.family) for n, _ in pairs)))
        return 0
    if not pairs:
        print("zoo: no network of that name", file=sys.stderr)
        return 2
    missing = [name for name in LIBRARIES if importlib.util.find_spec(name) is None]
    if missing:
        print(f"zoo: skipped: not installed: {', '.join(missing)} (regression/zoo/requirements.txt)")
        return 0
    export_all(pairs, args.export_again, args.jobs)
    tools_print, lock, rows = fingerprint(), threading.Lock(), []

    def one(pair: tuple[Network, str]) -> None:
        if not (folder_of(*pair) / "model.onnx").exists():
            return
        result, known = judged(*pair, tools_print, args)
        with lock:
            rows.append(table.row_of(result))
            print(
                f"{len(rows)}/{len(pairs)} {result.network} {result.exporter} "
                f"{'(known) ' if known else ''}{result.seconds:.0f} s "
                f"{table.EQUAL[result.equal]} {result.verdict} {table.short(result.reason)}",
                flush=True,
            )

    with ThreadPoolExecutor(max(1, args.jobs)) as pool:
        list(pool.map(one, pairs))
    print("\n".join(table.totals(rows)))
    if args.write:
        write_page()
    return 0 if all(row.verdict == "right" and row.cells[5] != table.EQUAL["differs"] for row in rows) else 1


if __name__ == "__main__":
    raise SystemExit(main())
