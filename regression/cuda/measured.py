#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Summarises results of on_device.py and peers.py in one small file, and writes its tables into docs/cuda.md.

    measured.py --add models.json peers.json checks.json --notes '{"date": "..", "driver": ".."}' results/h200.json
    measured.py --write results/h200.json

Names of cases are those of make_cases.py, MODEL-bBATCH_PRECISION or gemm_MxNxK_PRECISION. A later --add replaces rows
of the same name.
"""
from __future__ import annotations

import argparse
import json
import re
from pathlib import Path
from typing import Any, Mapping, Sequence

PAGE = Path(__file__).resolve().parents[2] / "docs" / "cuda.md"
BEGIN, END = "<!-- Made by regression/cuda/measured.py; do not edit. -->", "<!-- End of the measured tables. -->"
# The names of PyTorch's networks.
NETWORKS = {"vit_small": "vit_small_patch16_224", "mobilenetv2_1.0_224": "mobilenetv2_100"}
TORCH = ("eager_us", "graph_us", "compile_graph_us")


def split_name(case: str) -> tuple[str, int, str]:
    """Returns the model, batch and precision of a case's name."""
    name, _, precision = case.rpartition("_")
    found = re.fullmatch(r"(.*)-b(\d+)", name)
    return (found[1], int(found[2]), precision.upper()) if found else (name, 1, precision.upper())


def row_of(case: Mapping[str, Any]) -> dict[str, Any]:
    row = {key: case.get(key) for key in ("estimate_us", "passed")}
    row.update(us=case["gpu_us"]["p50"], call_us=case["wall_us"]["p50"], launches=len(case["launches"]))
    if case.get("cublas"):
        row.update(launch_us=max(launch["us"] for launch in case["launches"]), cublas_us=case["cublas"]["us"])
        row["launch_estimate_us"] = max(launch["estimate_us"] for launch in case["launches"])
    return row


def add(summary: dict[str, Any], result: Mapping[str, Any]) -> None:
    """Adds the results of one file to the summary."""
    if "ceilings" in result or "torch" in result:
        summary.setdefault("torch", {}).update(
            {f"{row['network']}:{row['precision']}:{row['batch']}": row for row in result["cases"]}
        )
        summary["ceilings"] = result.get("ceilings") or summary.get("ceilings")
        return
    for case in result["cases"]:
        if case.get("model") == "cuda-sm90.bmodel" and "error" not in case and case["wall_us"]["runs"] > 1:
            summary.setdefault("rows", {})[case["case"]] = row_of(case)


def number(value: float | None) -> str:
    return "-" if value is None else f"{value:.0f}" if value >= 100 else f"{value:.1f}"


def lines_of(header: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    ruler = f"|---|---|{'---:|' * (len(header) - 2)}"
    return [f"| {' | '.join(header)} |", ruler, *(f"| {' | '.join(cells)} |" for cells in rows)]


def tables(summary: Mapping[str, Any]) -> list[str]:
    """Returns the lines of both tables."""
    models, matmuls = [], []
    for case, row in sorted(summary["rows"].items()):
        name, batch, precision = split_name(case)
        ratio = f"{row['us'] / row['estimate_us']:.2f}"
        if name.startswith("gemm_"):
            times = [number(row[key]) for key in ("launch_us", "launch_estimate_us", "cublas_us")]
            share = f"{row['cublas_us'] / row['launch_us']:.2f}" if row["cublas_us"] else "-"
            matmuls.append([name[5:], precision, *times, share])
            continue
        torch = summary["torch"].get(f"{NETWORKS.get(name, name)}:{precision}:{batch}", {})
        times = [number(row[key]) for key in ("us", "estimate_us")]
        peers = [number(torch.get(key)) for key in TORCH]
        models.append(
            [name, precision, str(batch), str(row["launches"]), *times, ratio, number(row["call_us"]), *peers]
        )
    first = ("model", "precision", "batch", "launches", "us", "estimate", "ratio", "call", "eager", "graph", "compiled")
    second = ("matmul", "precision", "us", "estimate", "cuBLAS", "of cuBLAS")
    return [*lines_of(first, models), "", *lines_of(second, matmuls)]


def page_with(text: str, lines: Sequence[str]) -> str:
    before, rest = text.split(BEGIN)
    return f"{before}{BEGIN}\n\n" + "\n".join(lines) + f"\n\n{END}{rest.split(END)[1]}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("summary", type=Path)
    parser.add_argument("--add", nargs="*", type=Path, default=[], metavar="FILE")
    parser.add_argument("--notes", type=json.loads, default={}, metavar="JSON", help="fields of the summary itself")
    parser.add_argument("--write", action="store_true", help="write the tables into docs/cuda.md")
    args = parser.parse_args()
    summary: dict[str, Any] = json.loads(args.summary.read_text()) if args.summary.exists() else {}
    summary.update(args.notes)
    for path in args.add:
        add(summary, json.loads(path.read_text()))
    args.summary.write_text(json.dumps(summary, indent=1, sort_keys=True) + "\n")
    if args.write:
        PAGE.write_text(page_with(PAGE.read_text(encoding="utf-8"), tables(summary)), encoding="utf-8")


if __name__ == "__main__":
    main()
