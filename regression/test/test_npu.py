# SPDX-License-Identifier: Apache-2.0
"""Quantised models on the NPU's simulator: every built-in chip gives x86's bits; what it cannot run is refused by name."""
from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from case_file import Case, all_cases
from conftest import Builder, check, run_tool
from test_cases import skip_if_missing
from test_exact_models import samples

from tessera.files import save_npz

CHIPS = ("npu-edge", "npu-base", "npu-pro")
WHOLE = ("mnist", "resnet8_cifar10", "mobilenetv1_0.25_128", "mobilenetv2_1.0_224", "ultraface_rfb_320", "yolox_nano_416")


def calibrated(top: Path, tmp_path: Path) -> tuple[Path, list[dict]]:
    """A table of ranges over random inputs, and what the inputs are."""
    specs = json.loads(check(run_tool("tessera-compile", "info", "--mlir", top)).splitlines()[-1])["inputs"]
    (tmp_path / "data").mkdir()
    for seed in range(2):
        save_npz(tmp_path / "data" / f"{seed}.npz", samples(specs, seed))
    table = tmp_path / "table.json"
    check(run_tool("run_calibration", top, "--dataset", tmp_path / "data", "--cali_method", "max", "-o", table))
    return table, specs


def deploy(top: Path, table: Path, chip: str, output: Path, *more: str) -> dict:
    text = check(run_tool("tessera-compile", "deploy", "--mlir", top, "--chip", chip, "--quantize", "INT8", "--calibration-table", table,
                          "--output", output, *more))
    return json.loads(text.splitlines()[-1])


@pytest.mark.parametrize("case", [case for case in all_cases() if case.name in WHOLE], ids=lambda case: case.name)
def test_chips_give_the_bits_of_x86(case: Case, builder: Builder, tmp_path: Path) -> None:
    import tessera.runtime as runtime

    skip_if_missing(case)
    top = builder.top(case)
    table, specs = calibrated(top, tmp_path)
    deploy(top, table, "x86", tmp_path / "x86.bmodel")
    inputs = [samples(specs, seed) for seed in range(7, 10)]
    net = runtime.load(str(tmp_path / "x86.bmodel")).net()
    want = [{name: array.copy() for name, array in net(each).items()} for each in inputs]
    for chip in CHIPS:
        told = deploy(top, table, chip, tmp_path / f"{chip}.bmodel")
        assert told["estimate"]["chip"] == chip and told["estimate"]["microseconds"] > 0
        net = runtime.load(str(tmp_path / f"{chip}.bmodel")).net()
        for given, expected in zip(inputs, want, strict=True):
            for name, array in net(given).items():
                assert np.array_equal(array, expected[name]), f"{chip}: '{name}' differs from x86"


@pytest.fixture(scope="module")
def small(builder: Builder, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """ResNet-8's Top module and its table."""
    case = next(case for case in all_cases() if case.name == "resnet8_cifar10")
    top = builder.top(case)
    return top, calibrated(top, tmp_path_factory.mktemp("npu"))[0]


def test_what_if_changes_the_estimate(small: tuple[Path, Path], tmp_path: Path) -> None:
    top, table = small
    slow, fast = (deploy(top, table, "npu-base", tmp_path / "m.bmodel", "--chip-set", f"memories.ddr.gbps={gbps}")["estimate"]
                  for gbps in (2, 64))
    assert slow["microseconds"] > 2 * fast["microseconds"]
    assert slow["ddr_bytes"] == fast["ddr_bytes"]


@pytest.mark.parametrize(("arguments", "code", "message"), [
    (("--chip", "npu-base", "--chip-set", "lanes=0"), 2, "lanes is 0, allowed are 1 to 1024"),
    (("--chip", "npu-base", "--chip-set", "speed=3"), 2, "'speed' is no field of the chip"),
    (("--chip", "x86", "--chip-set", "lanes=4"), 2, "--chip-set is for NPUs"),
    (("--chip", "npu-huge"), 2, "unknown chip 'npu-huge'"),
    (("--chip", "missing.json"), 1, "cannot read 'missing.json'"),
    (("--chip", "npu-edge", "--requantize", "fixed"), 4, "only INT8, requantised in float"),
    (("--chip", "npu-edge", "--chip-set", "local_memory.bytes_per_lane=1024", "--chip-set", "lanes=1"), 4,
     "needs more than the 1024 bytes of a lane"),
])
def test_refusals_say_why(small: tuple[Path, Path], tmp_path: Path, arguments: tuple[str, ...], code: int, message: str) -> None:
    top, table = small
    result = run_tool("tessera-compile", "deploy", "--mlir", top, "--quantize", "INT8", "--calibration-table", table,
                      "--output", tmp_path / "m.bmodel", *arguments)
    assert result.returncode == code and message in result.stdout, result.stdout
    assert not (tmp_path / "m.bmodel").exists()


def test_model_deploy_checks_and_estimates(small: tuple[Path, Path], tmp_path: Path) -> None:
    top, table = small
    model = tmp_path / "m.bmodel"
    text = check(run_tool("model_deploy", "--mlir", top, "--chip", "npu-pro", "--quantize", "INT8", "--calibration_table", table, "--model", model))
    assert "commands, estimated" in text and "run m.bmodel" in text.replace(str(tmp_path) + "/", "")
    for quantize in ("F32", "BF16"):
        refused = run_tool("model_deploy", "--mlir", top, "--chip", "npu-pro", "--quantize", quantize, "--model", tmp_path / "other.bmodel")
        assert refused.returncode == 4 and "not supported on npu-pro yet" in refused.stderr, refused.stderr
