# SPDX-License-Identifier: Apache-2.0
"""The family npu: where a model spends its time, by the timing model of the chips' simulator."""
from __future__ import annotations

import bisect
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, Mapping, Sequence

import numpy as np

from .. import advice, compare
from ..bmodel import Net
from ..compare import percent
from ..errors import TesseraError, usage_error
from ..files import scratch_folder
from ..programs import find_program
from ..progress import Report
from ..top_model import TopModel
from . import EXAMPLE, Estimate, Family, Reduction, npu_layers

if TYPE_CHECKING:
    from ..cli.common import Context

LAYERS_SHOWN = 8
ADVICE_SHOWN = 4
REPORT_VERSION = 1  # bmodel/npu/report.h: kReportVersion
FILES = ("report.json", "layers.csv", "trace.json", "memory.json", "local.svg", "ddr.svg")


class Npu(Family):
    name = "npu"
    chip = "NPU"
    is_simulated = is_estimated = True
    files = FILES
    reduction = Reduction(
        "npu-vs-reference",
        "a layer differs from the reference on the same operands",
        EXAMPLE,
        "INT8",
        npu_layers.against_reference,
    )

    def is_estimated_by(self, model: Mapping[str, Any], subnet: Mapping[str, Any]) -> bool:
        return subnet["kind"] in ("Npu", "Host")  # also if the host runs all of it

    def measure(
        self,
        model: str | Path,
        folder: str | Path | None = None,
        stage: int | None = None,
        chip_set: Sequence[str] = (),
        counts: str | None = None,
    ) -> dict[str, Any]:
        """Returns the report on a .bmodel (docs/isa.md)."""
        if counts:
            raise usage_error(f"--counts is for GPUs; {model} does not have a stage for a GPU")
        command = [] if stage is None else ["--stage", str(stage)]
        for change in chip_set:
            command += ["--chip-set", change]
        if folder:
            try:
                Path(folder).mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise TesseraError(f"--report {folder}: {error.strerror}") from error
            command += ["--report", str(folder)]
        info: dict[str, Any] = json.loads(npu_layers.npu_perf(model, *command))
        if info.get("report_version") != REPORT_VERSION:
            raise TesseraError(
                f"{find_program('npu-perf')} writes reports of version {info.get('report_version', 0)}; this package "
                f"reads version {REPORT_VERSION}: they belong to different builds",
                hint="build everything with ./dev build, or reinstall the wheel",
            )
        return info

    def print_report(self, report: Report, info: dict[str, Any], folder: str | None = None) -> None:
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
                f"{advice.moved(layer) / 1024:.1f}",
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

    def print_estimate(self, report: Report, name: str, info: dict[str, Any]) -> None:
        for line in advice.lines(advice.of_perf(info))[:ADVICE_SHOWN]:
            report.say(f"advice for {name}: {line}")

    def row(self, info: Mapping[str, Any]) -> tuple[str, ...]:
        shares = sorted(info.get("time_cycles", {}).items(), key=lambda share: -share[1])[:2]
        least, local = info["ddr_lower_bound_bytes"], info["local_memory"]
        return (
            f"{100 * info['mac_utilisation']:.0f} %",
            f"{info['roofline']['ratio']:.2f}",
            f"{info['ddr_moved_bytes'] / 1e6:.2f}",
            f"{info['ddr_moved_bytes'] / least:.2f}" if least else "-",
            f"{percent(local['peak_bytes'], local['bytes_per_lane'])} %",
            ", ".join(f"{bound} {percent(cycles, info['cycles'])} %" for bound, cycles in shares) or "-",
        )

    def estimate(self, path: Path, stage: int) -> Estimate:
        with scratch_folder() as folder:
            info = self.measure(path, folder, stage)
            events = json.loads((folder / "trace.json").read_text())["traceEvents"]
            memory = json.loads((folder / "memory.json").read_text())
        shares = {name: cycles / info["cycles"] for name, cycles in info["time_cycles"].items() if info["cycles"]}
        how = "estimated" if info["cycles"] else "estimated, by a rough model of the host"
        time = {"how": how, "us": self.microseconds(info), "shares": shares}
        drawn = {"trace": _slices(events), "memory": memory}
        return Estimate(info, _layers(info), time, drawn, shows_perf=True)

    def commands(self, path: Path, stage: int) -> list[str]:
        return npu_layers.npu_perf(path, "--stage", str(stage), "--commands").splitlines()

    def disassemble(self, context: "Context", path: Path, model: Mapping[str, Any], text: str) -> int:
        known = self.stages(model)
        found = context.result["commands"] = []
        for number, title in known.items():
            lines = [line for line in self.commands(path, number) if text in line]
            found += lines
            if lines:
                context.report.say("\n".join([title, *lines] if len(known) > 1 else lines))
        return len(found)

    def check_layers(
        self,
        context: "Context",
        model: TopModel,
        net: Net,
        given: Mapping[str, np.ndarray],
        flags: Sequence[str],
        tolerance: compare.Tolerance | None,
    ) -> None:
        npu_layers.check(context, model, net, given, flags, tolerance)

    def look_at(self, report: Report, folder: Path) -> dict[str, Any]:
        looked = npu_layers.look(folder, report)
        npu_layers.print_report(report, looked)
        npu_layers.require_right(looked, str(folder / npu_layers.MODEL))
        return looked.as_dict()


FAMILY = Npu()


def _layers(info: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Returns the rows of a report."""
    micro = info["microseconds"] / info["cycles"] if info["cycles"] else 0.0
    return [
        {
            "name": layer["name"] or f"layer {layer['layer']}",
            "nodes": layer["name"].split("+") if layer["name"] else [],
            "on": info["chip"],
            "op": f"{layer['compute']['commands']} compute, {layer['dma']['commands']} dma commands",
            "us": layer["cycles"] * micro,
            "bound": layer["bound"],
            "mac_utilisation": layer["mac_utilisation"],
            "products": layer["products"],
            "moved": advice.moved(layer),
            "least": layer.get("ddr_least_bytes"),
        }
        for layer in info["layers"]
    ]


def _slices(events: Sequence[Mapping[str, Any]]) -> list[list[Any]]:
    """Returns for each slice of a queue's track: queue, command, layer, begin, duration, number, the row that it waited
    for or -1, and its bound."""
    slices = [event for event in events if event["ph"] == "X" and "id" in event["args"]]
    tracks = sorted({event["tid"] for event in slices})
    starts: dict[int, list[tuple[float, int]]] = {track: [] for track in tracks}
    for row, event in enumerate(slices):
        starts[event["tid"]].append((event["ts"], row))
    sources = {event["id"]: event for event in events if event["ph"] == "s"}
    waits = {}
    for event in events:
        if event["ph"] == "f":
            source = sources[event["id"]]
            before = bisect.bisect_right(starts[source["tid"]], (source["ts"], len(slices))) - 1
            waits[(event["tid"], event["ts"])] = starts[source["tid"]][before][1]
    return [
        [tracks.index(event["tid"]), event["name"].split(" ")[0], event["args"]["layer"], event["ts"], event["dur"],
         event["args"]["id"], waits.get((event["tid"], event["ts"]), -1), event["args"]["bound"]]
        for event in slices
    ]  # fmt: skip


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
