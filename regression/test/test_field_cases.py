# SPDX-License-Identifier: Apache-2.0
"""Tests that every field case is right, or rejected as its note states. Those listed in field/expected_failures.txt
must fail."""
from __future__ import annotations

import sys
from pathlib import Path
from typing import Iterator

import pytest
from conftest import run_tool

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "field"))
from checks import Checker, Compiler  # noqa: E402
from field_case import FOLDER, FieldCase, all_cases, expected_failures, unexpected  # noqa: E402

CASES = {case.name: case for case in all_cases()}
needs_data = pytest.mark.skipif(not CASES, reason=f"{FOLDER} is not in TESSERA_DATA")


def calibrate(top: Path, samples: Path, thoroughly: bool) -> str:
    flags = [] if thoroughly else ["--cali_method", "max", "--methods", "none"]
    table = top.with_name("table.json")
    arguments = (top, "--dataset", samples, "-o", table, "--workers", 1, *flags)
    ended = run_tool("run_calibration", *arguments, cwd=top.parent)
    return "" if ended.returncode == 0 else f"exit code {ended.returncode}: {ended.stderr[-300:]}"


@pytest.fixture(scope="module")
def compiler() -> Iterator[Compiler]:
    one = Compiler()
    yield one
    one.close()


@needs_data
@pytest.mark.parametrize("name", sorted(CASES) or ["none"])
def test_case(name: str, compiler: Compiler, tmp_path: Path) -> None:
    case: FieldCase = CASES[name]
    results = Checker(case, compiler, tmp_path, calibrate).run()
    lines = unexpected(case, results)
    assert not lines, "\n" + case.note + "\n".join(lines)


@needs_data
def test_the_list_names_real_cases() -> None:
    assert not {name for name, _ in expected_failures()} - set(CASES)
