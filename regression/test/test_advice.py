# SPDX-License-Identifier: Apache-2.0
"""Tests each advice code on a real model that has the reported property."""
from __future__ import annotations

import json
from pathlib import Path

import advice_networks
import pytest
from case_file import all_cases
from conftest import Builder, check, run_tool
from tessera import advice
from test_cases import skip_if_missing

PROVOKED = [
    (advice.TRAFFIC, "dtln_model_2", "npu-pro", "F32"),  # interleaved values in runs shorter than a burst
    (advice.HOST, "dtln_model_1", "npu-base", "F32"),  # recurrent cells
    (advice.INPUT, "ultraface_rfb_320", "npu-edge", "INT8"),
    (advice.SMALL, "resnet8_cifar10", "npu-pro", "INT8"),
    (advice.WIDE, "resnet8_cifar10", "npu-base", "INT16"),
    (advice.SAMPLES, "resnet8_cifar10", "npu-base", "INT8"),
    (advice.FLOAT, "resnet8_cifar10", "npu-base", "INT8"),  # with a quantise table
    (advice.WEIGHTS, "toycar_autoencoder", "npu-base", "F16"),
    (advice.LANES, "mnist", "npu-pro", "F16"),
    (advice.SPILLED, "transposed", "npu-base", "F16"),  # built by advice_networks.py
]


def test_all_are_provoked() -> None:
    assert [code for code, *_ in PROVOKED] == list(advice.CODES)


def transposed(folder: Path) -> Path:
    advice_networks.transposed(folder / "up.onnx")
    words = ("--model_def", folder / "up.onnx", "--mlir", folder / "up_top.mlir", "--not_inference")
    check(run_tool("model_transform", *words))
    return folder / "up_top.mlir"


def test_a_transposed_convolution_moves_many_times_the_least(tmp_path: Path) -> None:
    """The spread input goes through DDR, and each tile reads it again. The slower the DDR is, the more this costs."""
    top, costs = transposed(tmp_path), []
    for change in ([], ["--chip_set", "memories.ddr.gbps=4"]):
        words = ["--mlir", top, "--chip", "npu-base", "--quantize", "F16", "--model", tmp_path / "up.bmodel", *change]
        info = json.loads(check(run_tool("model_deploy", *words, "--skip_validation", "--json")))
        found = {each["code"]: each for each in info["advice"]}
        traffic = found[advice.TRAFFIC]
        assert traffic["layer"] == "up" and traffic["page"] == "docs/advice/TA101.md"
        parts = [layer for layer in info["perf"]["layers"] if layer["name"] == "up"]
        moved = sum(each["moved"] for layer in parts for each in layer["ddr_bytes"].values())
        least = sum(layer["ddr_least_bytes"] for layer in parts)
        assert len(parts) == 2 and moved > 3 * least and f"{moved / least:.1f} times the least" in traffic["text"]
        assert least == pytest.approx(info["perf"]["ddr_lower_bound_bytes"]), "no more than input, weights and output"
        costs.append(traffic["microseconds"])
        assert advice.SPILLED in found
    assert costs[1] > 5 * costs[0] > 0


def test_a_model_that_its_host_runs_alone(tmp_path: Path) -> None:
    """npu-edge does not support f16. The report states this, too, although the model has no NPU command to draw."""
    top = transposed(tmp_path)
    words = ["--mlir", top, "--chip", "npu-edge", "--quantize", "F16", "--model", tmp_path / "m.bmodel"]
    info = json.loads(check(run_tool("model_deploy", *words, "--skip_validation", "--json")))
    assert [each["code"] for each in info["advice"]] == [advice.HOST] and info["perf"]["cycles"] == 0
    words = ["-o", tmp_path / "r.html", "--json"]
    report = json.loads(check(run_tool("tessera", "report", tmp_path / "m.bmodel", *words)))
    (found,) = report["report"]["advice"][0]
    assert found["code"] == advice.HOST and found["microseconds"] == info["advice"][0]["microseconds"]


@pytest.mark.parametrize("code, name, chip, precision", PROVOKED, ids=[row[0] for row in PROVOKED])
def test_told_of(code: str, name: str, chip: str, precision: str, builder: Builder, tmp_path: Path) -> None:
    case = next((case for case in all_cases() if case.name == name), None)
    if case:
        skip_if_missing(case)
    words = [
        "--mlir",
        builder.top(case) if case else transposed(tmp_path),
        "--chip",
        chip,
        "--quantize",
        precision,
        "--model",
        tmp_path / "m.bmodel",
    ]
    if precision.startswith("INT"):
        words += ["--calibration_table", builder.table(case, tmp_path)[0]]
    if code == advice.FLOAT:
        table = {"format": "tessera-quantize-table", "version": 1, "ops": [{"name": "Conv_2", "type": "F32"}]}
        (tmp_path / "qtable.json").write_text(json.dumps(table))
        words += ["--quantize_table", tmp_path / "qtable.json"]
    info = json.loads(check(run_tool("model_deploy", *words, "--skip_validation", "--json")))
    (found,) = [each for each in info["advice"] if each["code"] == code]
    assert found["command"] and (found["microseconds"] is None or 0 < found["microseconds"] < 1e6)
    (tmp_path / "deploy.json").write_text(json.dumps(info))
    words = ["--accuracy", tmp_path / "deploy.json", "-o", tmp_path / "r.html"]
    if precision.startswith("INT"):
        words += ["--calibration_table", builder.table(case, tmp_path)[0]]
    report = json.loads(check(run_tool("tessera", "report", tmp_path / "m.bmodel", *words, "--json")))
    assert code in [each["code"] for each in report["report"]["advice"][0]]
