# SPDX-License-Identifier: Apache-2.0
"""Where a model for an NPU spends its time, by the timing model of the chips' simulator."""
from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Sequence

from . import advice, compare
from .programs import find_program, run_program
from .errors import ExitCode, TesseraError
from .progress import Report

LAYERS_SHOWN = 8
ADVICE_SHOWN = 4
REPORT_VERSION = 1  # bmodel/npu/report.h: kReportVersion
FILES = ("report.json", "layers.csv", "trace.json", "memory.json", "local.svg", "ddr.svg")


def measure(
    model: str | Path, chip_set: Sequence[str] = (), folder: str | Path | None = None, stage: int | None = None
) -> dict[str, Any]:
    """Returns the report on a .bmodel (docs/isa.md); with `folder`, writes FILES there. stage: index among all in the
    file; default: the first for an NPU.

    chip_set: changes of the chip such as 'memories.ddr.gbps=8'. Raises TesseraError, also for a file of another chip.
    """
    command = [] if stage is None else ["--stage", str(stage)]
    for change in chip_set:
        command += ["--chip-set", change]
    if folder:
        try:
            Path(folder).mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise TesseraError(f"--report {folder}: {error.strerror}") from error
        command += ["--report", str(folder)]
    info = json.loads(_run(model, *command))
    if info.get("report_version") != REPORT_VERSION:
        raise TesseraError(
            f"{find_program('npu-perf')} writes reports of version {info.get('report_version', 0)}; this package reads "
            "version "
            f"{REPORT_VERSION}: they belong to different builds",
            hint="build everything with ./dev build, or reinstall the wheel",
        )
    return info


def commands(model: str | Path, stage: int) -> list[str]:
    """Returns the commands of a stage's program, one per line, with the layer (ONNX nodes) after a '#'."""
    return _run(model, "--stage", str(stage), "--commands").splitlines()


def numbered_commands(model: str | Path, stage: int | None = None) -> list[tuple[int, int, int, str]]:
    """Returns the commands with numbers: of the program in the stage, of the layer in the program, of the command in
    the program."""
    lines = _run(model, *([] if stage is None else ["--stage", str(stage)]), "--commands", "--numbered").splitlines()
    split = (line.split("\t", 1) for line in lines)
    return [(*map(int, numbers.split()), text) for numbers, text in split]  # type: ignore[misc]


def _run(model: str | Path, *arguments: str) -> str:
    result = run_program("npu-perf", str(model), *arguments)
    if result.returncode == ExitCode.ERROR:
        text = result.stderr.strip()
        raise TesseraError(
            text if text.startswith("--chip-set") else f"{model}: {text}",
            ExitCode.USAGE if text.startswith("--chip-set") else ExitCode.ERROR,
        )
    if result.returncode != 0:
        raise TesseraError(
            f"npu-perf ended with exit code {result.returncode}",
            ExitCode.INTERNAL,
            details=result.stderr.splitlines()[-5:],
        )
    return result.stdout


def print_report(report: Report, info: dict[str, Any], folder: str | None = None) -> None:
    """Reports the main figures and the most expensive layers."""
    report.say(summary(info))
    shown = sorted(info["layers"], key=lambda layer: -layer["cycles"])[:LAYERS_SHOWN]
    micro = info["microseconds"] / info["cycles"] if info["cycles"] else 0
    rows = [("layer", "us", "share", "bound by", "of MAC peak", "DDR KiB")]
    rows += [
        (
            layer["name"] or f"layer {layer['layer']}",
            f"{layer['cycles'] * micro:.1f}",
            f"{percent(layer['cycles'], info['cycles'])} %",
            layer["bound"],
            f"{100 * layer['mac_utilisation']:.0f} %",
            f"{_moved(layer) / 1024:.1f}",
        )
        for layer in shown
    ]
    if shown:
        report.say(compare.align(rows, right=(1, 2, 4, 5)))
    if len(info["layers"]) > len(shown):
        report.say(f"… and {len(info['layers']) - len(shown)} more layers (--json lists all, --report writes them)")
    for line in advice.lines(advice.of_perf(info))[:ADVICE_SHOWN]:
        report.say(line)
    if folder:
        report.say(f"{folder}: {', '.join(FILES)}")


def summary(info: dict[str, Any]) -> str:
    """Returns four lines: time and what bounds it, the excess over the roofline, and the contents of the memories."""
    shares = sorted(info.get("time_cycles", {}).items(), key=lambda share: -share[1])
    bound = ", ".join(f"{name} {percent(cycles, info['cycles'])} %" for name, cycles in shares)
    if not info["layers"] and not info.get("host"):
        return f"{info['chip']}: no commands; the outputs are inputs or constants"
    if not info["layers"]:
        return f"{info['chip']}: no commands; the host runs all ops{_host(info)}"
    least, local = info["ddr_lower_bound_bytes"], info["local_memory"]
    ratio = f", {info['ddr_moved_bytes'] / least:.2f} times the least" if least else ""
    return (
        f"{info['chip']}: {info['microseconds']:.1f} us a run, {info['runs_per_second']:.0f} runs a second, "
        f"{100 * info['mac_utilisation']:.1f} % of the peak of multiplications, {info['roofline']['ratio']:.2f} "
        "times the roofline\n"
        f"time: {bound or 'none'}\n{beyond(info)}"
        f"DDR: {info['ddr_moved_bytes'] / 1e6:.2f} MB moved{ratio}; "
        f"local memory: {local['peak_bytes']} of {local['bytes_per_lane']} bytes of a lane at once{_host(info)}"
    )


def beyond(info: dict[str, Any]) -> str:
    """Returns a line with the roofline and the causes of the time beyond it: for the unit that sets the roofline the
    time above the minimum, for all others their whole time."""
    roofline, spent = info["roofline"], dict.fromkeys(("matrix unit", "vector unit", "ddr"), 0.0)
    for name, cycles in info.get("time_cycles", {}).items():
        part = {"multiply": "matrix unit", "output": "matrix unit", "vector": "vector unit"}.get(name, name)
        spent[part] = spent.get(part, 0.0) + cycles
    if roofline["compute_cycles"] >= roofline["ddr_cycles"]:
        spent["matrix unit"] -= roofline["dense_cycles"] + roofline["depthwise_cycles"]
        spent["vector unit"] -= roofline["vector_cycles"]
    else:
        spent["ddr"] -= roofline["ddr_cycles"]
    micro = info["microseconds"] / info["cycles"] if info["cycles"] else 0
    more = ", ".join(
        f"{name} {cycles * micro:.1f}"
        for name, cycles in sorted(spent.items(), key=lambda part: -part[1])
        if cycles * micro >= 0.05
    )
    parts = ", ".join(f"{name} {roofline[name + '_cycles'] * micro:.1f}" for name in ("dense", "depthwise", "vector"))
    return (
        f"roofline: {roofline['compute_cycles'] * micro:.1f} us of computation ({parts}), "
        f"{roofline['ddr_cycles'] * micro:.1f} us of DDR; "
        f"beyond it: {more or 'nothing'}\n"
    )


def _host(info: dict[str, Any]) -> str:
    """Describes the host's part, if there is one; its times come from a cost model, not from cycles."""
    host = info.get("host")
    return (
        (
            f"\nthe host runs {host['steps']} ops in {host['subnets']} subnets: about {host['microseconds']:.0f} us, "
            f"and {host['hand_over_microseconds']:.0f} "
            f"us for hand-overs, by a rough model; together {info['total_microseconds']:.0f} us"
        )
        if host
        else ""
    )


def percent(part: float, whole: float) -> str:
    return f"{100 * part / whole:.1f}" if whole else "0"


def _moved(layer: dict[str, Any]) -> int:
    return sum(traffic["moved"] for traffic in layer["ddr_bytes"].values())
