# SPDX-License-Identifier: Apache-2.0
"""The family cuda: the cost of a model by the compiler's cost model, and by what its kernels executed on the PTX
machine."""
from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any, Callable, Iterable, Mapping, Sequence

import numpy as np

from .. import compare
from ..bmodel import Net, can_run
from ..compare import percent
from ..errors import ExitCode, TesseraError, usage_error
from ..files import load_json, scratch_folder
from ..programs import dump, read_model
from ..progress import Report
from . import Deploy, Estimate, Family, cuda_tune

LAYERS_SHOWN = 8
REPORT_VERSION = 1  # codegen/Cuda/CostReport.h: kReportVersion
BLOB = "cuda estimate"  # and kReportBlob
FILES = ("report.json", "layers.csv")
SECTOR = 32  # bytes of DRAM moved at once


class Cuda(Family):
    name = "cuda"
    chip = "GPU"
    is_estimated = True
    files = FILES

    def covers(self, model: Mapping[str, Any], subnet: Mapping[str, Any]) -> bool:
        return bool(model["chips"][subnet["chip"]].get("family") == self.name)  # also its calls of other subnets

    def measure(
        self,
        model: str | Path,
        folder: str | Path | None = None,
        stage: int | None = None,
        chip_set: Sequence[str] = (),
        counts: str | None = None,
    ) -> dict[str, Any]:
        """Returns the compiler's report in a .bmodel (docs/cuda.md). counts: a file that the PTX machine wrote for runs
        of this model, joined to the report as "counted"."""
        if chip_set:
            raise usage_error("--chip_set: model_deploy computes the estimate of a GPU; pass the flag there")
        view = read_model(model)
        known = list(self.stages(view))
        blobs = [blob["segment"] for blob in view.get("blobs", []) if blob["name"] == BLOB]
        if not known or len(blobs) != len(known):
            raise TesseraError(
                f"{model}: does not contain an estimate for a GPU", hint="compile it again with model_deploy"
            )
        if counts and len(known) > 1:
            raise usage_error(f"--counts: {model} has {len(known)} stages, and their kernels are counted together")
        number = known[0] if stage is None else stage
        if number not in known:
            raise TesseraError(f"{model}: stage {number} is not for a GPU", ExitCode.USAGE)
        with scratch_folder() as temporary:
            dump("--segment", str(blobs[known.index(number)]), str(model), str(temporary / "report.json"))
            info: dict[str, Any] = json.loads((temporary / "report.json").read_bytes())
        if info.get("report_version") != REPORT_VERSION:
            raise TesseraError(
                f"{model}: its estimate has version {info.get('report_version', 0)}, expected {REPORT_VERSION}"
            )
        if counts is not None:
            chip = json.loads(next(chip["description"] for chip in view["chips"] if chip["name"] == info["chip"]))
            info["counted"] = count(info, read_counts(counts), chip)
        if folder:
            _write(Path(folder), info)
        return info

    def print_report(self, report: Report, info: dict[str, Any], folder: str | None = None) -> None:
        report.say(summary(info))
        shown = sorted(info["layers"], key=lambda layer: -layer["microseconds"])[:LAYERS_SHOWN]
        rows = [("layer", "us", "share", "bound by", "unit", "products", "DRAM KiB")]
        rows += [
            (
                layer["name"] or f"layer {layer['layer']}",
                f"{layer['microseconds']:.1f}",
                f"{percent(layer['microseconds'], info['microseconds'])} %",
                layer["bound"],
                layer["unit"],
                str(layer["products"]),
                f"{layer['dram_bytes'] / 1024:.1f}",
            )
            for layer in shown
        ]
        report.say(compare.align(rows, right=(1, 2, 5, 6)))
        if len(info["layers"]) > len(shown):
            report.say(f"… and {len(info['layers']) - len(shown)} more layers (--json lists all, --report writes them)")
        if "counted" in info:
            report.say(_counted(info["counted"]))
        if folder:
            report.say(f"{folder}: {', '.join(FILES)}")

    def row(self, info: Mapping[str, Any]) -> tuple[str, ...]:
        shares = sorted(info["time_microseconds"].items(), key=lambda share: -share[1])[:2]
        least = info["dram_least_bytes"]
        return (
            "-",
            f"{info['roofline']['ratio']:.2f}",
            f"{info['dram_bytes'] / 1e6:.2f}",
            f"{info['dram_bytes'] / least:.2f}" if least else "-",
            "-",
            ", ".join(f"{bound} {percent(time, info['microseconds'])} %" for bound, time in shares) or "-",
        )

    def estimate(self, path: Path, stage: int) -> Estimate:
        info = self.measure(path, stage=stage)
        shares = {name: us / info["microseconds"] for name, us in info["time_microseconds"].items()}
        layers = [
            {"name": layer["name"] or f"launch {layer['layer']}", "nodes": layer["name"].split("+") if layer["name"]
             else [], "on": info["chip"], "op": f"{layer['op']}, {layer['unit']}", "us": layer["microseconds"],
             "bound": layer["bound"], "mac_utilisation": None, "products": layer["products"],
             "moved": layer["dram_bytes"], "least": None}
            for layer in info["layers"]
        ]  # fmt: skip
        return Estimate(info, layers, {"how": "estimated", "us": info["microseconds"], "shares": shares})

    def tune(
        self,
        deploy: Deploy,
        inputs: Callable[[Net], Mapping[str, np.ndarray]],
        candidates: int,
        chip: str,
        report: Report,
        folder: Path,
    ) -> dict[str, Any]:
        if not can_run(chip):
            raise cuda_tune.no_device()
        return cuda_tune.tuned_plan(deploy, inputs, candidates, report, folder)


FAMILY = Cuda()


def read_counts(path: str | Path) -> dict[str, Any]:
    """Reads the counts by kernel that the PTX machine writes if PTX_MACHINE_COUNTS is set."""
    hint = "create them by running on the PTX machine with PTX_MACHINE_COUNTS=FILE"
    counts = load_json(path, "--counts file", hint)
    if not isinstance(counts, dict) or not all(
        isinstance(entry, dict) and {"launches", "kinds"} <= entry.keys() for entry in counts.values()
    ):
        raise TesseraError(f"--counts {path}: does not contain counts of the PTX machine", hint=hint)
    return counts


def count(info: Mapping[str, Any], counts: Mapping[str, Any], chip: Mapping[str, Any]) -> dict[str, Any]:
    """Returns what one run executed and what it needs, in total and by kernel."""
    needed: dict[str, list[dict[str, Any]]] = {}
    for layer in info["layers"]:
        needed.setdefault(layer["kernel"], []).append(layer)
    missing = [kernel for kernel in needed if kernel not in counts]
    if missing:
        raise TesseraError(
            f"the counts do not contain kernel '{missing[0]}' of the model: they belong to another model",
            hint="run this file with PTX_MACHINE_COUNTS=FILE",
        )
    kernels = [_kernel(name, layers, counts[name], chip) for name, layers in needed.items()]
    total = _sum("all", kernels)
    return {**total, **_ratios(total), "by_kernel": kernels}


def _kernel(name: str, layers: Sequence[Mapping[str, Any]], entry: Mapping[str, Any], chip: Mapping[str, Any]) -> dict:
    runs = entry["launches"] / len(layers)
    result = {
        "kernel": name,
        "launches": len(layers),
        "microseconds": sum(layer["microseconds"] for layer in layers),
        "tensor_products": entry["tensor_products"] / runs,
        "tensor_products_needed": sum(layer["products"] for layer in layers if entry["tensor_products"]),
        "dram_bytes": SECTOR * entry["dram_sectors"] / runs,
        "dram_bytes_needed": sum(layer["dram_bytes"] for layer in layers),
        "shared_passes": entry["shared_passes"] / runs,
        "bank_conflicts": entry["bank_conflicts"] / runs,
        "barriers": entry["barriers"] / runs,
        "warp_instructions": {kind: number / runs for kind, number in entry["kinds"].items() if number},
    }
    issued = sum(result["warp_instructions"].values())
    # Every scheduler of the GPU issues in every cycle: no arrangement of these instructions can be faster.
    result["issue_microseconds"] = issued / (chip["sms"] * chip["sm"]["schedulers"] * chip["clock_ghz"] * 1e3)
    return {**result, **_ratios(result)}


def _sum(name: str, kernels: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    total: dict[str, Any] = {"kernel": name, "warp_instructions": {}}
    for kernel in kernels:
        for key, value in kernel.items():
            if key == "warp_instructions":
                for kind, number in value.items():
                    total[key][kind] = total[key].get(kind, 0) + number
            elif key not in ("kernel", *_RATIOS):
                total[key] = total.get(key, 0) + value
    return total


_RATIOS = ("tensor_products_ratio", "dram_ratio")


def _ratios(result: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the ratios issued over needed; null if nothing is needed."""
    return {
        "tensor_products_ratio": _over(result.get("tensor_products", 0), result.get("tensor_products_needed", 0)),
        "dram_ratio": _over(result.get("dram_bytes", 0), result.get("dram_bytes_needed", 0)),
    }


def _over(part: float, whole: float) -> float | None:
    return round(part / whole, 4) if whole else None


def _write(folder: Path, info: Mapping[str, Any]) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / FILES[0]).write_text(json.dumps(info, indent=1) + "\n", encoding="utf-8")
        with (folder / FILES[1]).open("w", newline="", encoding="utf-8") as file:
            columns = dict.fromkeys(["layer", *(key for layer in info["layers"] for key in layer)])
            rows = csv.DictWriter(file, list(columns))
            rows.writeheader()
            rows.writerows(info["layers"])
    except OSError as error:
        raise TesseraError(f"--report {folder}: {error.strerror}") from error


def summary(info: Mapping[str, Any]) -> str:
    """Returns two lines: time, what bounds it, and its distance from the roofline."""
    shares = sorted(info["time_microseconds"].items(), key=lambda share: -share[1])
    bound = ", ".join(f"{name} {percent(time, info['microseconds'])} %" for name, time in shares)
    least = info["dram_least_bytes"]
    ratio = f", {info['dram_bytes'] / least:.2f} times the minimum" if least else ""
    return (
        f"{info['chip']}: about {info['microseconds']:.1f} us per run, {_over_launches(info):.2f} times the rooflines "
        f"of its launches, {info['roofline']['ratio']:.2f} times that of the whole model; {info['launches']} launches "
        f"of {info['kernels']} kernels\n"
        f"time: {bound or 'none'}; DRAM: {info['dram_bytes'] / 1e6:.2f} MB{ratio}"
    )


def _over_launches(info: Mapping[str, Any]) -> float:
    least = info["roofline"]["by_launch_microseconds"]
    return float(info["microseconds"] / least) if least else 1.0


def _counted(counted: Mapping[str, Any]) -> str:
    kinds = sorted(counted["warp_instructions"].items(), key=lambda kind: -kind[1])
    ratio = counted["tensor_products_ratio"]
    return (
        "counted by the PTX machine, per run:\n"
        f"  warp instructions: {', '.join(f'{kind} {number:.0f}' for kind, number in kinds)}; "
        f"{counted['issue_microseconds']:.1f} us to issue\n"
        f"  tensor core multiplications: {counted['tensor_products']:.0f} issued, "
        + (f"{ratio:.3f} times the needed ones\n" if ratio else "no op uses them\n")
        + f"  DRAM: {counted['dram_bytes'] / 1e6:.2f} MB, "
        f"{counted['dram_ratio'] or 0:.3f} times the minimum of its launches\n"
        f"  bank conflicts: {counted['bank_conflicts']:.0f} of {counted['shared_passes']:.0f} passes; "
        f"barriers: {counted['barriers']:.0f}; launches: {counted['launches']}"
    )
