# SPDX-License-Identifier: Apache-2.0
"""Tests that Python contains no list of chips or precisions: the compiler has them."""
from __future__ import annotations

import re
from pathlib import Path

import pytest

from tessera.errors import ExitCode, TesseraError
from tessera.targets import Names, targets

PACKAGE = Path(__file__).resolve().parents[1] / "tessera"


def test_families() -> None:
    known = targets()
    assert known.family("x86-avx2") == "x86" and known.family("npu-base") == known.family("mine.json") == "npu"
    assert known.family("npu") == known.family("") == known.family("mine.bmodel") == ""
    assert known.chips_of("npu") == ["npu-edge", "npu-base", "npu-pro"]
    assert str(Names()).startswith("x86, x86-v2, ")
    assert known.runs_here["x86"] and known.runs_here["x86-v2"] and known.runs_here["npu-pro"]


def test_precisions() -> None:
    known = targets()
    assert known.precision("w8f32") is known.precision("W8") and known.precision("W8").activations == "F32"
    assert [entry.name for entry in known.precisions if entry.needs_table] == ["INT8", "INT16"]
    bits = {name: (entry.activation_bits, entry.weight_bits) for name, entry in known.spellings.items()}
    assert bits["INT8"] == (8, 8) and bits["INT16"] == (16, 8) and bits["BF16"] == bits["F16"] == (16, 16)
    assert bits["F32"] == (32, 32) and bits["DYNAMIC_INT8"] == bits["W8"] == (32, 8) and bits["W4F32"] == (32, 4)


@pytest.mark.parametrize(
    "ask, code",
    [
        (lambda known: known.require_chip("tpu"), ExitCode.USAGE),
        (lambda known: known.precision("INT4"), ExitCode.UNSUPPORTED),
        (lambda known: known.precision("INT3"), ExitCode.USAGE),
    ],
)
def test_rejections(ask, code: ExitCode) -> None:
    with pytest.raises(TesseraError) as caught:
        ask(targets())
    assert caught.value.code == code


def test_no_list_of_chips_in_python() -> None:
    """Examples in help texts and documentation name one chip at a time; rates of kernels are in precision/cost.py."""
    lists = re.compile(r"[\"']((x86|npu)-\w+)[\"']\s*[,:].*[\"'](x86|npu)-\w+[\"']")
    found = [path.name for path in PACKAGE.rglob("*.py") if lists.search(path.read_text())]
    assert not found
