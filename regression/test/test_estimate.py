# SPDX-License-Identifier: Apache-2.0
"""Tests tessera estimate: estimated times without data equal those of the calibrated model, and unsupported ops are
named."""
from __future__ import annotations

import json
from pathlib import Path

import onnx
import pytest
from case_file import all_cases, data_path
from conftest import Builder, calibrate, check, run_tool
from onnx import TensorProto, helper
from test_cases import skip_if_missing
from test_npu import CHIPS, CHOSEN, deploy

from tessera.cli import estimate
from tessera.errors import ExitCode, TesseraError


@pytest.mark.parametrize("name", ["resnet8_cifar10", "mobilenetv2_1.0_224", "yolox_nano_416"])
def test_times_are_those_of_the_calibrated_model(name: str, builder: Builder, tmp_path: Path) -> None:
    case = next(case for case in all_cases() if case.name == name)
    skip_if_missing(case)
    flags = ["--input_shapes", case.input_shapes] if case.input_shapes else []
    info = json.loads(check(run_tool("tessera", "estimate", data_path(case.model), "--json", *flags)))
    assert [each["chip"] for each in info["estimates"]] == list(CHIPS)
    top = builder.top(case)
    table, _ = calibrate(top, tmp_path, "--methods", "auto") if name in CHOSEN else builder.table(case, tmp_path)
    for each in info["estimates"]:
        real = deploy(top, table, each["chip"], tmp_path / "m.bmodel")["estimate"]
        assert each["report"]["cycles"] == pytest.approx(real["cycles"], rel=0.01), each["chip"]


def test_floats_need_no_ranges(builder: Builder, tmp_path: Path) -> None:
    top = builder.top(next(case for case in all_cases() if case.name == "resnet8_cifar10"))
    result = run_tool("tessera", "estimate", top, "--chip", "npu-base", "--quantize", "bf16", "--json")
    estimate = json.loads(check(result))["estimates"][0]["report"]
    info = check(
        run_tool(
            "tessera-compile",
            "deploy",
            "--mlir",
            top,
            "--chip",
            "npu-base",
            "--quantize",
            "BF16",
            "--output",
            tmp_path / "m.bmodel",
        )
    )
    real = json.loads(info.splitlines()[-1])["estimate"]
    assert estimate["cycles"] == real["cycles"] and "placeholders" not in result.stderr


def test_the_table_and_its_files(builder: Builder, tmp_path: Path) -> None:
    top = builder.top(next(case for case in all_cases() if case.name == "resnet8_cifar10"))
    text = check(run_tool("tessera", "estimate", top, "--chip", "npu-pro,npu-edge", "--report", tmp_path / "r"))
    rows = [line.split() for line in text.splitlines() if line.startswith("npu-")]
    assert [row[0] for row in rows] == ["npu-pro", "npu-edge"] and float(rows[0][1]) < float(rows[1][1])
    assert "the ranges are placeholders" in text
    assert (tmp_path / "r" / "npu-pro" / "layers.csv").is_file() and (
        tmp_path / "r" / "npu-edge" / "local.svg"
    ).is_file()
    slow = json.loads(
        check(
            run_tool(
                "tessera",
                "estimate",
                top,
                "--chip",
                "npu-edge",
                "--chip_set",
                "clock_ghz=0.1",
                "--chip_set",
                "memories.ddr.gbps=0.4",
                "--json",
            )
        )
    )["estimates"][0]["report"]
    assert slow["microseconds"] == pytest.approx(10 * float(rows[1][1]), rel=0.01)


def largest_along(tmp_path: Path) -> Path:
    """Finds the position of the largest relu(x) along the last axis, which no NPU supports; x has an open size."""
    nodes = [
        helper.make_node("Relu", ["x"], ["r"], name="relu_1"),
        helper.make_node("ArgMax", ["r"], ["y"], name="largest_2", axis=2),
    ]
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 8, 16])],
        [helper.make_tensor_value_info("y", TensorProto.INT64, ["n", 8, 1])],
    )
    path = tmp_path / "m.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 14)], ir_version=8), path)
    return path


def test_what_the_host_runs_is_named(tmp_path: Path) -> None:
    model = largest_along(tmp_path)
    assert "the batch size open, so it becomes 1" in check(run_tool("tessera", "estimate", model))
    text = check(run_tool("tessera", "estimate", model, "--input_shapes", "x=1x8x16"))
    assert (
        "on the host of npu-edge, npu-base, npu-pro: 'largest_2': is not supported on the NPU" in text
        and "by a rough model" in text
    )
    info = json.loads(check(run_tool("tessera", "estimate", model, "--input_shapes", "x=1x8x16", "--json")))
    for each in info["estimates"]:
        partition, report = each["report"]["partition"], each["report"]
        assert partition["host_microseconds"] > 0 and report["host"]["steps"] == len(partition["host_ops"])
        assert partition["total_microseconds"] == pytest.approx(report["total_microseconds"], abs=0.01)


def test_strictly_it_is_unsupported(tmp_path: Path) -> None:
    model = largest_along(tmp_path)
    result = run_tool("tessera", "estimate", model, "--input_shapes", "x=1x8x16", "--strict")
    assert result.returncode == 4 and "none of the chips can run this model" in result.stderr, result.stderr
    assert (
        "npu-edge, npu-base, npu-pro: --strict: the chip cannot run the whole model" in result.stdout
        and "'largest_2'" in result.stdout
    )
    assert "x86 can run it: measure with tessera run" in result.stderr, result.stderr
    result = run_tool("tessera", "estimate", model, "--input_shapes", "x=1x8x16", "--json", "--strict")
    info = json.loads(result.stdout)
    assert result.returncode == 4 and not any(each["supported"] for each in info["estimates"])
    assert all("'largest_2'" in each["reason"] for each in info["estimates"])


def test_what_x86_rejects_too_is_not_sent_there(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The compiler's rejection is imitated, because x86 runs every small model that the importer accepts."""

    def reject(*_: object, **__: object) -> None:
        raise TesseraError("node 'choice' has no kernel", ExitCode.UNSUPPORTED)

    monkeypatch.setattr(estimate.top_model, "deploy", reject)
    text = estimate._on_host(None, tmp_path, None)  # type: ignore[arg-type]
    assert text == "x86 cannot run it either: node 'choice' has no kernel"


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("--chip", "x86"), 2, "--chip 'x86': expected npu-edge, npu-base, npu-pro"),
        (("--chip", "npu-base,,npu-pro"), 2, "--chip ''"),
        (("--chip", "missing.json"), 1, "cannot read 'missing.json'"),
        (("--chip_set", "lanes=0"), 2, "lanes is 0, allowed are 1 to 1024"),
    ],
)
def test_bad_arguments_say_why(builder: Builder, arguments: tuple[str, ...], code: int, message: str) -> None:
    top = builder.top(next(case for case in all_cases() if case.name == "resnet8_cifar10"))
    result = run_tool("tessera", "estimate", top, *arguments)
    assert result.returncode == code and message in result.stderr, result.stderr
