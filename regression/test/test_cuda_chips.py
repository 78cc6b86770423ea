# SPDX-License-Identifier: Apache-2.0
"""Tests GPU descriptions: what --chip_set changes, and what it rejects."""
from __future__ import annotations

import json
from pathlib import Path

import pytest
from case_file import Case, all_cases
from conftest import Builder, check, run_tool
from test_cases import skip_if_missing


@pytest.fixture(scope="module")
def case() -> Case:
    small = next(case for case in all_cases() if case.name == "resnet8_cifar10")
    skip_if_missing(small)
    return small


def microseconds(top: Path, output: Path, *flags: str) -> float:
    """Returns the estimated time of the whole model, as the partition reports it."""
    info = check(run_tool("tessera-compile", "deploy", "--mlir", top, "--chip", "cuda", "--output", output, *flags))
    return float(json.loads(info.splitlines()[-1])["partition"]["total_microseconds"])


def test_another_card_takes_another_time(case: Case, builder: Builder, tmp_path: Path) -> None:
    top, output = builder.top(case), tmp_path / "m.bmodel"
    usual = microseconds(top, output)
    assert microseconds(top, output, "--chip-set", "launch.microseconds=5") > usual
    assert microseconds(top, output, "--chip-set", "sms=1", "--chip-set", "clock_ghz=0.1") > 2 * usual
    assert microseconds(top, output, "--chip-set", "dram.gbps=1") > 2 * usual


@pytest.mark.parametrize(
    "change, message",
    [
        ("lanes=8", "'lanes' is not a field of the chip; the fields are compute_capability, "),
        ("sms", "'sms': expected FIELD=VALUE"),
        ("sms=0", "cuda-sm86: sms is 0, allowed are 1 to 1024"),
        ("clock_ghz=fast", 'cuda-sm86: clock_ghz is "fast", expected a number'),
        ("sm.shared_bytes=65536", "sm.shared_bytes_per_block is 101376, more than sm.shared_bytes = 65536"),
    ],
)
def test_what_is_no_card_is_rejected(change: str, message: str, case: Case, builder: Builder, tmp_path: Path) -> None:
    arguments = ("--mlir", builder.top(case), "--chip", "cuda-sm86", "--model", tmp_path / "m.bmodel")
    result = run_tool("model_deploy", *arguments, "--chip_set", change)
    assert result.returncode == 2 and message in result.stderr, result.stderr
    assert not (tmp_path / "m.bmodel").exists()


def described(path: Path, **changes: object) -> Path:
    chips = Path(__file__).resolve().parents[2] / "device_dialect" / "chips"
    path.write_text(json.dumps({**json.loads((chips / "cuda-sm86.json").read_text()), **changes}))
    return path


def test_a_card_of_the_users_own(case: Case, builder: Builder, tmp_path: Path) -> None:
    top, model = builder.top(case), tmp_path / "m.bmodel"
    mine = described(tmp_path / "mine.json", name="my-card", sms=20)
    words = ("model_deploy", "--mlir", top, "--model", model, "--quantize", "F16", "--skip_validation")
    check(run_tool(*words, "--chip", mine))
    own = json.loads(check(run_tool("model_tool", "perf", model, "--json")))["report"]
    check(run_tool(*words, "--chip", "cuda-sm86", "--chip_set", "sms=20"))
    usual = json.loads(check(run_tool("model_tool", "perf", model, "--json")))["report"]
    assert own.pop("chip") == "my-card" and usual.pop("chip") == "cuda-sm86" and own == usual
    check(run_tool(*words, "--chip", mine, "--chip_set", "sms=10"))
    check(run_tool("tessera", "estimate", top, "--chip", mine))


@pytest.mark.parametrize(
    "changes, code, message",
    [
        ({"family": "tpu"}, 1, 'bad.json: family is "tpu", allowed are npu, cuda'),
        ({"sms": 0}, 1, "bad.json: sms is 0, allowed are 1 to 1024"),
        ({"compute_capability": 75}, 1, "bad.json: compute_capability is 75, allowed are 80 to"),
        ({"lanes": 8}, 1, "lanes"),
    ],
)
def test_descriptions_are_checked(
    changes: dict, code: int, message: str, case: Case, builder: Builder, tmp_path: Path
) -> None:
    bad = described(tmp_path / "bad.json", **changes)
    words = ("--mlir", builder.top(case), "--chip", bad, "--model", tmp_path / "m.bmodel", "--skip_validation")
    result = run_tool("model_deploy", *words)
    assert result.returncode == code and message in result.stderr, result.stderr
