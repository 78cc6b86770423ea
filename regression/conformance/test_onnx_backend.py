# SPDX-License-Identifier: Apache-2.0
"""Runs every ONNX backend test on the reference and on x86 and, with TESSERA_NPU_SURVEY=all, on an NPU and its host. A
test passes, or is rejected as refused.txt lists.

A refusal that is not in the table fails, and so does one in the table that passes: the table stays true.
"""
from __future__ import annotations

import os
import re
import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))

import conformance  # noqa: E402
from backend_tests import ARCHIVE, compare, read_tests  # noqa: E402
from engines import Compiler, StageError, in_child, supported_isas  # noqa: E402

DATA = Path(os.environ.get("TESSERA_DATA", "")) / ARCHIVE
TESTS = read_tests(DATA) if DATA.is_file() else {}
ENGINES = ["reference", supported_isas()[-1]]
if os.environ.get("TESSERA_NPU_SURVEY") == "all":  # two minutes more
    ENGINES.append("npu-base")
needs_data = pytest.mark.skipif(not TESTS, reason=f"{ARCHIVE} is not in TESSERA_DATA")


@pytest.fixture(scope="session")
def outcomes() -> dict[str, dict[str, conformance.Outcome]]:
    return conformance.run_all(TESTS.values(), ENGINES, os.cpu_count() or 1)


@needs_data
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", sorted(TESTS))
def test_backend(name: str, engine: str, outcomes: dict[str, dict[str, conformance.Outcome]]) -> None:
    outcome = outcomes[name][engine]
    judged = supported_isas()[-1] if engine.startswith("npu") else engine  # the host only runs what x86 runs
    rejection = conformance.expected(conformance.read_table(conformance.REJECTED), name, judged)
    deviation = conformance.expected(conformance.read_table(conformance.DEVIATIONS), name, judged)
    if outcome.kind == conformance.REJECTION:
        assert conformance.reason(outcome) == rejection, f"an unexpected refusal: {outcome.message}"
    elif outcome.kind == conformance.FAILED:
        assert deviation and outcome.stage == "compare", f"failed at {outcome.stage}: {outcome.message}"
        pytest.xfail(deviation)
    else:
        assert not rejection and not deviation, "passes now: run conformance.py --update (or edit deviations.txt)"


@needs_data
def test_tables_name_real_tests() -> None:
    for table in (conformance.REJECTED, conformance.DEVIATIONS):
        assert not set(conformance.read_table(table)) - set(TESTS), f"{table.name} names tests that do not exist"


@needs_data
def test_the_readme_tells_how_many() -> None:
    """The README's numbers follow from the tables, with which test_backend compares every test."""
    text = (Path(__file__).with_name("README.md")).read_text(encoding="utf-8")
    total, least = (
        int(re.search(pattern, text)[1].replace(",", ""))
        for pattern in (r"\(([\d,]+) models", r"At least ([\d,]+) of them pass on x86")
    )
    tables = [conformance.read_table(table) for table in (conformance.REJECTED, conformance.DEVIATIONS)]
    passing = [name for name in TESTS if not any(conformance.expected(table, name, ENGINES[1]) for table in tables)]
    assert (
        len(TESTS) == total and least <= len(passing) < least + 150
    ), f"{len(passing)} of {len(TESTS)} pass: say so in README.md"
    front = " ".join((Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8").split())
    assert f"At least {least:,} of the ONNX project's {total:,} operator tests pass on x86" in front


@needs_data
def test_the_readme_tells_how_many_pass_as_they_are(outcomes: dict[str, dict[str, conformance.Outcome]]) -> None:
    text = (Path(__file__).with_name("README.md")).read_text(encoding="utf-8")
    least = int(re.search(r"At least ([\d,]+) pass as they are", text)[1].replace(",", ""))
    assert least <= conformance.passed_as_they_are(outcomes, ENGINES[1]) < least + 50


def test_compare_notices_a_wrong_answer() -> None:
    want = {"y": np.array([1.0, 2.0], np.float32)}
    compare(want, want)
    for wrong in (
        {},
        {"y": want["y"][:1]},
        {"y": want["y"].astype(np.float64)},
        {"y": want["y"] + 0.01},
        {"y": want["y"] * np.float32(np.nan)},
    ):
        with pytest.raises(StageError):
            compare(wrong, want)
    with pytest.raises(StageError):
        compare(want, {})


def test_faults_are_no_rejections(tmp_path: Path) -> None:
    compiler = Compiler()
    (tmp_path / "m.onnx").write_bytes(b"no model")
    for arguments in (["import", "--onnx", tmp_path / "m.onnx", "--output", tmp_path / "m_top.mlir"], ["nonsense"]):
        with pytest.raises(StageError) as fault:
            compiler("import", *arguments)
        assert not fault.value.rejected
    with pytest.raises(StageError, match="status -6"):
        in_child("run", os.abort)
    compiler.close()
