# SPDX-License-Identifier: Apache-2.0
"""Describes which part of a model runs on an accelerator and which on its host, and why."""
from __future__ import annotations

from typing import Any

from . import compare, families
from .compare import percent
from .progress import Report

OPS_SHOWN = 12


def print_report(report: Report, info: dict[str, Any], chip: str) -> None:
    """Prints the subnets as a table, and a reason for every op on the host, from "partition" of the compiler's
    result."""
    subnets, ops = info["subnets"], info["host_ops"]
    if not ops:
        on_chip = sum(subnet["ops"] for subnet in subnets if subnet["device"] != "host")
        pads = any(subnet["device"] == "host" for subnet in subnets)
        rest = "the host pads inputs to the bucket and cuts outputs" if pads else "none run on the host"
        report.say(f"partition: {chip} runs all {on_chip} ops; {rest}")
        return
    rows = [("subnet", "runs on", "ops", "MACs", "reads KiB", "writes KiB", "us")]
    rows += [
        (
            subnet["name"],
            chip if subnet["device"] != "host" else "host",
            str(subnet["ops"]),
            f"{percent(subnet['products'], info['products'])} %",
            f"{subnet['input_bytes'] / 1024:.1f}",
            f"{subnet['output_bytes'] / 1024:.1f}",
            f"{subnet['microseconds']:.1f}{'' if families.of(subnet['device']).is_simulated else ' *'}",
        )
        for subnet in subnets
    ]
    report.say(compare.align(rows, right=(2, 3, 4, 5)))
    report.say(summary(info, chip))
    first = sorted(ops, key=lambda op: (not op["refused"], -op["products"]))[:OPS_SHOWN]
    report.say(
        compare.align(
            [("on the host", "op", "because"), *((op["name"] or op["op"], op["op"], op["reason"]) for op in first)]
        )
    )
    if len(ops) > len(first):
        report.say(f"… and {len(ops) - len(first)} more (--json lists all)")


def summary(info: dict[str, Any], chip: str) -> str:
    """Returns shares and times in two lines."""
    family = next((subnet["device"] for subnet in info["subnets"] if subnet["device"] != "host"), None)
    products, microseconds = (info[f"{family}_{what}"] if family else 0 for what in ("products", "microseconds"))
    return (
        f"{percent(products, info['products'])} % of the multiplications run on {chip}; "
        f"{info['transferred_bytes'] / 1024:.1f} KiB are transferred between chip and host\n"
        f"{info['total_microseconds']:.0f} us a run: {chip} {microseconds:.0f}, host "
        f"{info['host_microseconds']:.0f} *, "
        f"hand-overs {info['hand_over_microseconds']:.0f} *   (* by a rough model of a small host: docs/partition.md)"
    )
