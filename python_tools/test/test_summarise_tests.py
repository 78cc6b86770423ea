# SPDX-License-Identifier: Apache-2.0
"""Tests the closing line of ./dev test: it counts what ran, and never reports a failing or empty run as a success."""
from __future__ import annotations

import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).resolve().parents[1] / "dev" / "summarise_tests.py"


def run(folder: Path, ctest: dict[str, str], suites: dict[str, str]) -> tuple[int, str]:
    entries = "".join(f'<testcase name="{n}" status="{s}"/>' for n, s in ctest.items())
    (folder / "ctest.junit").write_text(f"<testsuite>{entries}</testsuite>")
    for name, text in suites.items():
        (folder / f"{name}.xml").write_text(text)
    result = subprocess.run([sys.executable, str(SCRIPT), str(folder)], text=True, capture_output=True)
    return result.returncode, result.stdout.strip().splitlines()[-1]


def test_counts_single_tests(tmp_path: Path) -> None:
    suite = (
        '<testsuites><testsuite><testcase name="a"/><testcase name="b"/>'
        '<testcase name="c"><skipped message="needs avx512"/></testcase></testsuite></testsuites>'
    )
    assert run(tmp_path, {"check-top": "run", "plain": "run"}, {"check-top": suite}) == (
        0,
        "3 passed, 0 failed, 1 skipped",
    )


def test_failure_and_crash(tmp_path: Path) -> None:
    failing = '<testsuite><testcase name="a"/><testcase name="b"><failure/></testcase></testsuite>'
    passing = '<testsuite><testcase name="a"/></testsuite>'
    assert run(tmp_path, {"x": "fail", "y": "fail", "z": "fail"}, {"x": failing, "y": passing}) == (
        1,
        "2 passed, 3 failed, 0 skipped",
    )


def test_a_suite_that_ran_nothing_fails(tmp_path: Path) -> None:
    assert run(tmp_path, {"x": "run", "y": "run"}, {"x": "<testsuite/>"}) == (1, "1 passed, 1 failed, 0 skipped")
    assert run(tmp_path, {}, {})[0] == 1
