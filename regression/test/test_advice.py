# SPDX-License-Identifier: Apache-2.0
"""Each code of advice, told of a real model that is odd in that way."""
from __future__ import annotations

import json
from pathlib import Path

import pytest
from case_file import all_cases
from conftest import Builder, check, run_tool
from tessera import advice
from test_cases import skip_if_missing

PROVOKED = [
    (advice.TRAFFIC, "dtln_model_2", "npu-pro", "F32"),  # interleaved values, shorter than a burst
    (advice.HOST, "dtln_model_1", "npu-base", "F32"),  # recurrent cells
    (advice.INPUT, "ultraface_rfb_320", "npu-edge", "INT8"),
    (advice.SMALL, "resnet8_cifar10", "npu-pro", "INT8"),
    (advice.WIDE, "resnet8_cifar10", "npu-base", "INT16"),
    (advice.SAMPLES, "resnet8_cifar10", "npu-base", "INT8"),
]


def test_all_are_provoked() -> None:
    assert [code for code, *_ in PROVOKED] == list(advice.CODES)


@pytest.mark.parametrize("code, name, chip, precision", PROVOKED, ids=[row[0] for row in PROVOKED])
def test_told_of(code: str, name: str, chip: str, precision: str, builder: Builder, tmp_path: Path) -> None:
    case = next(case for case in all_cases() if case.name == name)
    skip_if_missing(case)
    words = ["--mlir", builder.top(case), "--chip", chip, "--quantize", precision, "--model", tmp_path / "m.bmodel"]
    if precision.startswith("INT"):
        words += ["--calibration_table", builder.table(case, tmp_path)[0]]
    told = json.loads(check(run_tool("model_deploy", *words, "--skip_validation", "--json")))
    (found,) = [each for each in told["advice"] if each["code"] == code]
    assert found["command"] and (found["microseconds"] is None or 0 < found["microseconds"] < 1e6)
    (tmp_path / "told.json").write_text(json.dumps(told))
    words = ["--accuracy", tmp_path / "told.json", "-o", tmp_path / "r.html"]
    if precision.startswith("INT"):
        words += ["--calibration_table", builder.table(case, tmp_path)[0]]
    report = json.loads(check(run_tool("tessera", "report", tmp_path / "m.bmodel", *words, "--json")))
    assert code in [each["code"] for each in report["report"]["advice"][0]]
