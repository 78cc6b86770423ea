# SPDX-License-Identifier: Apache-2.0
"""How close each step of a model comes to the machine's limit: the time of its multiplications at the measured rate of
their type, or of its bytes at the measured rate of the smallest memory level that holds them, whichever is longer."""
from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Mapping, Sequence

import numpy as np

from .. import bmodel, compare
from ..errors import TesseraError
from ..programs import run_program

RUNS = 20
SHOWN = 20
# The best possible rate for operands of a stored type. F16 is widened before it is multiplied, and int16 operands reach
# at most half the rate of int8.
PRODUCTS = {"I8": ("int8", 1.0), "U8": ("int8", 1.0), "I16": ("int8", 0.5), "U16": ("int8", 0.5), "BF16": ("bf16", 1.0)}

AMX_TILE = 24  # the bit in bmodel/cpu_features.inc


@dataclass(frozen=True)
class Machine:
    """Measured rates. products: operations per second by type. reads: (largest buffer, bytes per second), smallest
    first."""

    products: Mapping[str, float]
    reads: tuple[tuple[int, float], ...]

    @staticmethod
    def measured(threads: int) -> "Machine":
        """Measures this machine. Raises TesseraError if this build cannot."""
        result = run_program("bmrt_peak", str(threads))
        if result.returncode != 0:
            raise TesseraError(f"bmrt_peak: {result.stderr.strip()}")
        info = json.loads(result.stdout)
        reads = tuple(sorted((int(size), float(rate)) for size, rate in info.pop("reads").items()))
        return Machine(info, reads)

    def bound(self, flops: int, moved: int, dtype: str, amx: bool = False) -> tuple[float, str]:
        """Returns the bound in seconds and what determines it. dtype: the type in which the operands are stored. amx:
        the code may use AMX tiles."""
        name, share = PRODUCTS.get(dtype, ("f32", 1.0))
        if amx and f"amx_{name}" in self.products:
            name = f"amx_{name}"
        if name not in self.products:  # without such an instruction f32 is used
            name, share = "f32", 1.0
        rate = share * self.products[name] if name in self.products else float("inf")
        read = next((rate for size, rate in self.reads if moved <= size), self.reads[-1][1]) if self.reads else 0
        products, bytes_read = flops / rate, moved / read if read else 0.0
        return max(products, bytes_read), f"products of {name}" if products >= bytes_read else "bytes"


def measure(
    path: Path, dump: Mapping[str, Any], inputs: Mapping[str, np.ndarray], threads: int, runs: int = RUNS
) -> dict[str, Any]:
    """Returns the machine's rates, and for each step the best time over `runs` in microseconds, the bound, and their
    ratio. Products and bytes of a file with open sizes are those of the largest sizes, so at others the bounds are
    unknown: None. dump: the file as printed by bmodel-dump."""
    net, machine = bmodel.open_net(path, threads), Machine.measured(threads)
    net.use({name: array.shape for name, array in inputs.items()})
    stage = dump["nets"][0]["stages"][net.number]
    types, amx = _types(stage), _uses_amx(stage)
    largest = all(inputs[spec.name].shape == spec.shape for spec in net.inputs)
    steps = []
    for step in net.profile(inputs, runs):
        seconds = step.min_ns / 1e9
        bound, by = machine.bound(step.flops, step.bytes, types[step.index] if step.index < len(types) else "", amx)
        steps.append(
            {
                "step": step.index,
                "nodes": step.onnx_nodes,
                "device_op": step.device_op or step.top_op or step.kind,
                "flops": step.flops,
                "bytes": step.bytes,
                "us": seconds * 1e6,
                "bound_us": bound * 1e6 if largest else None,
                "of_bound": bound / seconds if largest and seconds else None,
                "bound": by if largest else "",
            }
        )
    return {"products_per_second": dict(machine.products), "bytes_per_second": dict(machine.reads), "steps": steps}


def _uses_amx(stage: Mapping[str, Any]) -> bool:
    return any(subnet.get("cpu_features", 0) >> AMX_TILE & 1 for subnet in stage.get("subnets", []))


def _types(stage: Mapping[str, Any]) -> list[str]:
    """Returns the type of each step's first operand; "" if the step has no operands."""
    tensors = stage.get("tensors", [])
    plan = [step for subnet in stage.get("subnets", []) for step in subnet.get("plan", [])]
    reads = [[slot for slot in step["op"].get("args", []) if slot not in step.get("writes", [])] for step in plan]
    return [tensors[slots[0]]["dtype"] if slots else "" for slots in reads]


def table(info: Mapping[str, Any]) -> str:
    """Formats the steps that lose most time against their bound, or take most if it is unknown; the last row is the sum
    over all steps."""
    steps: Sequence[Mapping[str, Any]] = info["steps"]
    first = sorted(steps, key=lambda step: (step["bound_us"] or 0.0) - step["us"])[:SHOWN]
    rows = [("step", "op", "us", "bound us", "% of bound", "by", "node")]
    rows += [
        (str(s["step"]), s["device_op"][:32], f"{s['us']:.1f}", _microseconds(s["bound_us"]), _percent(s["of_bound"]),
         s["bound"], (s["nodes"] or [""])[0][:40])
        for s in first
    ]  # fmt: skip
    time = sum(step["us"] for step in steps)
    known = all(step["bound_us"] is not None for step in steps)
    least = sum(step["bound_us"] for step in steps) if known else None
    share = _percent(least / time if least is not None and time else None)
    rows.append((f"all {len(steps)}", "", f"{time:.1f}", _microseconds(least), share, "", ""))
    return compare.align(rows, right=(2, 3, 4))


def _microseconds(value: float | None) -> str:
    return "-" if value is None else f"{value:.1f}"


def _percent(share: float | None) -> str:
    return "-" if share is None else f"{100 * share:.0f}"
