# SPDX-License-Identifier: Apache-2.0
"""Tests reports on models for NPUs: the parts add up, tools can read the files, and other files are refused by name."""
from __future__ import annotations

import copy
import csv
import json
import xml.etree.ElementTree as xml
from pathlib import Path
from typing import Callable

import numpy as np
import pytest
import trace_reader
from case_file import all_cases, data_path
from conftest import Builder, check, run_tool

from tessera import programs
from tessera.errors import TesseraError
from tessera.families import npu
from tessera.families.npu import beyond

ROOT = Path(__file__).resolve().parents[2]
FILES = ("report.json", "layers.csv", "trace.json", "memory.json", "local.svg", "ddr.svg")


@pytest.fixture(scope="module")
def deployed(builder: Builder, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict, str]:
    """Returns ResNet-8 for npu-edge: the model, its --json output, and the folder of its report."""
    folder = tmp_path_factory.mktemp("npu_report")
    case = next(case for case in all_cases() if case.name == "resnet8_cifar10")
    top = builder.top(case)
    table, _ = builder.table(case, folder)
    model = folder / "m.bmodel"
    text = check(
        run_tool(
            "model_deploy",
            "--mlir",
            top,
            "--chip",
            "npu-edge",
            "--quantize",
            "INT8",
            "--calibration_table",
            table,
            "--model",
            model,
            "--report",
            folder / "new" / "report",
            "--skip_validation",
            "--json",
        )
    )
    return model, json.loads(text), str(folder / "new" / "report")


def test_the_parts_add_up(deployed: tuple[Path, dict, str]) -> None:
    _, info, _ = deployed
    report = info["perf"]
    assert report["chip"] == "npu-edge" and report["cycles"] == pytest.approx(info["model"]["estimate"]["cycles"])
    assert sum(report["time_cycles"].values()) == pytest.approx(report["cycles"], abs=0.1)
    layers = sum(layer["cycles"] for layer in report["layers"]) + report["time_cycles"].get("idle", 0)
    assert layers == pytest.approx(report["cycles"], abs=0.1)
    moved = sum(traffic["moved"] for traffic in report["ddr_bytes"].values())
    assert moved == report["ddr_moved_bytes"] >= report["ddr_lower_bound_bytes"] > 0
    assert (
        0
        < report["local_memory"]["peak_bytes"]
        <= report["local_memory"]["top_bytes"]
        <= report["local_memory"]["bytes_per_lane"]
    )
    assert any(layer["name"] for layer in report["layers"])
    for layer in report["layers"]:
        assert isinstance(layer["time_cycles"], dict) and isinstance(layer["bound_cycles"], dict), layer["name"]
        assert layer["ddr_least_bytes"] <= sum(traffic["moved"] for traffic in layer["ddr_bytes"].values())
    roofline = report["roofline"]
    assert (
        roofline["ratio"]
        == pytest.approx(report["cycles"] / max(roofline["compute_cycles"], roofline["ddr_cycles"]), abs=1e-3)
        and roofline["ratio"] > 1
    )
    assert sum(roofline[part] for part in ("dense_cycles", "depthwise_cycles", "vector_cycles")) == pytest.approx(
        roofline["compute_cycles"], abs=0.01
    )


NAMES = """bound_cycles chip compute cycles ddr_bytes ddr_lower_bound_bytes ddr_moved_bytes dma layers local_memory
mac_utilisation
    microseconds products report_version roofline runs_per_second time_cycles workspace roofline.compute_cycles
roofline.ddr_cycles
    roofline.dense_cycles roofline.depthwise_cycles roofline.ratio roofline.vector_cycles local_memory.bytes_per_lane
    local_memory.peak_bytes local_memory.top_bytes"""


def test_the_names_are_those_of_the_version(deployed: tuple[Path, dict, str]) -> None:
    """If a name is removed, raise kReportVersion and REPORT_VERSION. Otherwise an older npu-perf does not notice it."""
    report = deployed[1]["perf"]
    names = {*report, *(f"{part}.{name}" for part in ("roofline", "local_memory") for name in report[part])}
    assert (report["report_version"], names) == (1, set(NAMES.split()))


def test_a_tool_of_another_build_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    old = tmp_path / "npu-perf"
    old.write_text('#!/bin/sh\necho \'{"chip": "npu-edge", "cycles": 1}\'\n')
    old.chmod(0o755)
    monkeypatch.setattr(programs, "find_program", lambda name: str(old))
    monkeypatch.setattr(npu, "find_program", lambda name: str(old))
    with pytest.raises(
        TesseraError,
        match="npu-perf writes reports of version 0; this package reads version 1: they belong to different builds",
    ):
        npu.FAMILY.measure("m.bmodel")


def test_what_is_beyond_the_roofline_adds_up() -> None:
    info = {
        "microseconds": 100.0,
        "cycles": 1000,
        "time_cycles": {"multiply": 600, "output": 100, "vector": 150, "ddr": 90, "idle": 60},
        "roofline": {
            "compute_cycles": 500,
            "dense_cycles": 300,
            "depthwise_cycles": 100,
            "vector_cycles": 100,
            "ddr_cycles": 200,
        },
    }
    assert beyond(info) == (
        "roofline: 50.0 us of computation (dense 30.0, depthwise 10.0, vector 10.0), 20.0 us of DDR; "
        "beyond it: matrix unit 30.0, ddr 9.0, idle 6.0, vector unit 5.0\n"
    )
    info["roofline"]["ddr_cycles"] = 700
    assert "beyond it: matrix unit 70.0, vector unit 15.0, idle 6.0\n" in beyond(info)


def test_the_files_can_be_read(deployed: tuple[Path, dict, str]) -> None:
    _, info, folder = deployed
    report = info["perf"]
    assert sorted(path.name for path in Path(folder).iterdir()) == sorted(FILES)
    assert json.loads((Path(folder) / "report.json").read_text()) == report
    rows = list(csv.DictReader((Path(folder) / "layers.csv").open()))
    assert sorted(row["name"] for row in rows) == sorted(layer["name"] for layer in report["layers"])
    assert sum(float(row["microseconds"]) for row in rows) <= report["microseconds"] + 0.1
    assert sum(int(row["products"]) for row in rows) == report["products"]
    memory = json.loads((Path(folder) / "memory.json").read_text())["local"]
    assert memory["peak_bytes"] == report["local_memory"]["peak_bytes"] and len(memory["rectangles"]) > 5
    for layer, begin, end, low, high in memory["rectangles"]:
        assert layer < len(report["layers"]) and 0 <= begin <= end <= report["microseconds"] + 1e-3
        assert low < high <= report["local_memory"]["top_bytes"]
    for name in ("local.svg", "ddr.svg"):
        picture = xml.parse(Path(folder) / name).getroot()
        assert picture.tag.endswith("svg") and (name == "ddr.svg" or len(picture.findall(".//{*}title")) > 5)


def test_the_trace_is_clean(deployed: tuple[Path, dict, str]) -> None:
    """The trace contains commands, arrows for their waits, layers and counters; trace_reader.py refuses everything that
    Perfetto repairs silently."""
    _, info, folder = deployed
    report, trace = info["perf"], trace_reader.read(Path(folder) / "trace.json")
    commands = {name: trace.tracks[name] for name in ("dma", "compute")}
    assert {name: len(each) for name, each in commands.items()} == {name: report[name]["commands"] for name in commands}
    assert len(trace.flows) == sum(each.args["wait"] > 0 for queue in commands.values() for each in queue) > 10
    for source, target in trace.flows:
        assert source.args["id"] == target.args["wait"]
    end = max(each.end for queue in commands.values() for each in queue)
    assert end == pytest.approx(report["microseconds"] * 1000, abs=1)
    layers = [each for name, track in trace.tracks.items() if name.startswith("layers ") for each in track]
    assert sorted(each.args["layer"] for each in layers) == sorted(each["layer"] for each in report["layers"])
    assert {each.name for each in layers} >= {each["name"] for each in report["layers"] if each["name"]}
    rate = trace.counters["DDR, GB/s"]
    moved = sum(value * (after - begin) for (begin, value), (after, _) in zip(rate, rate[1:]))
    assert moved == pytest.approx(report["ddr_moved_bytes"], rel=0.01) and rate[-1][1] == 0
    held = trace.counters["local memory of a lane, bytes"]
    assert max(value for _, value in held) == report["local_memory"]["peak_bytes"] and held[-1][1] == 0


def test_a_trace_that_is_not_clean_is_rejected(deployed: tuple[Path, dict, str], tmp_path: Path) -> None:
    good = json.loads((Path(deployed[2]) / "trace.json").read_text())

    def rejected(change: Callable[[list[dict]], object]) -> None:
        bad = copy.deepcopy(good)
        change(bad["traceEvents"])
        (tmp_path / "bad.json").write_text(json.dumps(bad))
        with pytest.raises((AssertionError, KeyError)):
            trace_reader.read(tmp_path / "bad.json")

    def first(events: list[dict], kind: str) -> dict:
        return next(event for event in events if event["ph"] == kind)

    trace_reader.read(Path(deployed[2]) / "trace.json")
    rejected(lambda events: first(events, "X").update(dur=1e6))
    rejected(lambda events: first(events, "X").update(ts=0.0001))
    rejected(lambda events: first(events, "X").update(tid=99))
    rejected(lambda events: events.remove(first(events, "f")))
    rejected(lambda events: first(events, "s").update(ts=1e6))
    rejected(lambda events: first(events, "C").update(ts=1e6))


def test_perf_of_a_file_is_that_of_its_deployment(deployed: tuple[Path, dict, str], tmp_path: Path) -> None:
    model, info, _ = deployed
    again = json.loads(check(run_tool("model_tool", "perf", model, "--json")))
    assert again["report"] == info["perf"]
    text = check(run_tool("model_tool", "perf", model, "--report", tmp_path / "r"))
    assert "us a run" in text and "of a lane at once" in text and "times the least" in text
    assert (tmp_path / "r" / "trace.json").is_file()
    slow = json.loads(check(run_tool("model_tool", "perf", model, "--json", "--chip_set", "memories.ddr.gbps=0.1")))[
        "report"
    ]
    assert slow["cycles"] > 2 * info["perf"]["cycles"] and slow["ddr_bytes"] == info["perf"]["ddr_bytes"]


def test_commands_are_told_with_their_layers(deployed: tuple[Path, dict, str]) -> None:
    model, info, _ = deployed
    lines = json.loads(check(run_tool("model_tool", "disasm", model, "--json")))["commands"]
    assert len(lines) == info["model"]["commands"]
    layer = next(
        layer["name"]
        for layer in info["perf"]["layers"]
        if layer["compute"]["commands"] and layer["name"].startswith("Conv")
    )
    only = check(run_tool("model_tool", "disasm", model, f"# {layer}")).splitlines()
    assert only and set(only) < set(lines) and any(line.startswith("conv id=") for line in only)
    result = run_tool("model_tool", "disasm", model, "no such thing")
    assert result.returncode == 1 and "does not contain a command whose line contains 'no such thing'" in result.stderr


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("lanes=16", "lanes=16 makes it a chip that the program does not fit"),
        ("speed=3", "'speed' is not a field of the chip"),
        ("clock_ghz=0", "clock_ghz is 0, allowed are"),
    ],
)
def test_changes_that_are_none_are_rejected(deployed: tuple[Path, dict, str], change: str, message: str) -> None:
    result = run_tool("model_tool", "perf", deployed[0], "--chip_set", change)
    assert result.returncode == 2 and message in result.stderr, result.stderr


def test_a_chip_of_ones_own(builder: Builder, tmp_path: Path) -> None:
    """Covers a description in a file with changed fields: the model runs on it and gives x86's bits."""
    case = next(case for case in all_cases() if case.name == "resnet8_cifar10")
    top, (table, _) = builder.top(case), builder.table(case, tmp_path)
    chip = json.loads((ROOT / "device_dialect" / "chips" / "npu-edge.json").read_text())
    chip["name"], chip["lanes"] = "npu-mine", 12
    (tmp_path / "mine.json").write_text(json.dumps(chip))
    model, answers = tmp_path / "m.bmodel", tmp_path / "out.npz"
    deploy = ("model_deploy", "--mlir", top, "--quantize", "INT8", "--calibration_table", table, "--model", model)
    outputs = []
    for flags in (
        ("--chip", "x86"),
        ("--chip", tmp_path / "mine.json"),
        ("--chip", tmp_path / "mine.json", "--chip_set", "lanes=24"),
    ):
        info = json.loads(check(run_tool(*deploy, "--skip_validation", "--json", *flags)))
        assert info.get("perf", {"chip": "npu-mine"})["chip"] == "npu-mine"
        check(run_tool("model_runner", "--model", model, "--input", tmp_path / "data" / "0.npz", "--output", answers))
        outputs.append({name: array.tobytes() for name, array in np.load(answers).items()})
    assert outputs[0] == outputs[1] == outputs[2]
    for flags, message in (
        (("--chip", "x86", "--chip_set", "lanes=4"), "--chip_set is for NPUs and GPUs"),
        (("--chip", tmp_path / "mine.json", "--chip_set", "lanes=0"), "lanes is 0"),
    ):
        result = run_tool(*deploy, *flags)
        assert result.returncode == 2 and message in result.stderr, result.stderr


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda chip: chip.update(turbo=3), "turbo is not a field of a chip"),
        (lambda chip: chip["vector_unit"].update(colour=3), "vector_unit.colour is not a field of a chip"),
        (lambda chip: chip.pop("vector_unit"), "vector_unit.bytes is missing"),
        (
            lambda chip: chip["local_memory"].update(bytes_per_lane=7),
            "local_memory.bytes_per_lane is 7, allowed are 1024 to",
        ),
        (lambda chip: chip["local_memory"].update(banks=3), "not a multiple of banks * port_bytes = 48"),
        (lambda chip: chip.update(lanes="many"), 'lanes is "many", expected a whole number'),
        (lambda chip: chip.update(types=["int8", "int3"]), "types has 'int3'; allowed, each at most once, are"),
    ],
)
def test_bad_chip_files_are_rejected(
    builder: Builder, tmp_path: Path, change: Callable[[dict], object], message: str
) -> None:
    top = builder.top(next(case for case in all_cases() if case.name == "resnet8_cifar10"))
    chip = json.loads((ROOT / "device_dialect" / "chips" / "npu-edge.json").read_text())
    change(chip)
    (tmp_path / "bad.json").write_text(json.dumps(chip))
    result = run_tool("tessera", "estimate", top, "--chip", tmp_path / "bad.json")
    assert result.returncode == 1 and message in result.stderr and "bad.json" in result.stderr, result.stderr


def test_other_files_are_rejected(builder: Builder, tmp_path: Path) -> None:
    top = builder.top(next(case for case in all_cases() if case.name == "resnet8_cifar10"))
    model = tmp_path / "x86.bmodel"
    result = run_tool("model_deploy", "--mlir", top, "--model", model, "--skip_validation", "--report", tmp_path / "r")
    assert result.returncode == 2 and "--report is for NPUs" in result.stderr, result.stderr
    check(run_tool("model_deploy", "--mlir", top, "--model", model, "--skip_validation"))
    result = run_tool("model_tool", "perf", model)
    assert result.returncode == 1 and "no program for an NPU" in result.stderr, result.stderr
    result = run_tool("model_tool", "perf", model, "--chip_set", "lanes=4")
    assert result.returncode == 1 and "no program for an NPU" in result.stderr, result.stderr
    (tmp_path / "half.bmodel").write_bytes(model.read_bytes()[:1000])
    result = run_tool("model_tool", "perf", tmp_path / "half.bmodel")
    assert result.returncode == 1 and str(tmp_path / "half.bmodel") in result.stderr, result.stderr


def test_the_simulators_time_is_no_latency(builder: Builder, tmp_path: Path) -> None:
    """bmrt_bench and tessera run show the estimate first, and label the measured time of the simulator differently."""
    top = builder.top(next(case for case in all_cases() if case.name == "resnet8_cifar10"))
    model = tmp_path / "m.bmodel"
    check(
        run_tool(
            "model_deploy",
            "--mlir",
            top,
            "--chip",
            "npu-base",
            "--quantize",
            "BF16",
            "--skip_validation",
            "--model",
            model,
        )
    )
    info = json.loads(check(run_tool("npu-perf", model)))
    bench = json.loads(check(run_tool("bmrt_bench", model, "--iters", "1", "--warmup", "0", "--json", "--profile")))
    assert bench["estimated_ms"] == pytest.approx(info.get("total_microseconds", info["microseconds"]) / 1e3, abs=1e-5)
    assert bench["simulator_median_ms"] > 0 and "median_ms" not in bench and "simulator_min_us" in bench["steps"][0]
    text = check(run_tool("bmrt_bench", model, "--iters", "1", "--warmup", "0"))
    assert (
        text.split(": ")[1].startswith(f"estimated {bench['estimated_ms']:.3f} ms per run")
        and "not a latency of the chip" in text
    )
    run = json.loads(
        check(
            run_tool(
                "tessera",
                "run",
                data_path("repo:models/resnet8_cifar10/resnet8_cifar10.onnx"),
                "--chip",
                "npu-base",
                "--json",
            )
        )
    )
    assert "tessera" not in run["latency_ms"] and 0 < run["estimated_ms"]["tessera"] < run["simulator_ms"]
    step = next(step for step in run["steps"] if step["name"] == "estimate")
    assert "ms per run on npu-base" in step["note"] and "not a latency" in step["note"]
