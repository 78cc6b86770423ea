# SPDX-License-Identifier: Apache-2.0
"""Tests docs/generated/models.md, which ./dev models writes: its rows are those of the cases, and its scores the known
ones."""
from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from case_file import REGRESSION, all_cases
from conftest import BUILD, check

FOLDER = REGRESSION / "accuracy"
sys.path.insert(0, str(FOLDER))

import models_page  # noqa: E402

PAGE = REGRESSION.parent / "docs" / "generated" / "models.md"
COLUMNS = 15


def test_the_page() -> None:
    """For each model with a known score, the page states this score for the float model."""
    rows, cases = models_page.parse(PAGE.read_text(encoding="utf-8")), {case.name: case for case in all_cases()}
    assert len(rows) >= 15 and set(rows) <= set(cases)
    for name, row in rows.items():
        assert len(row.cells) == COLUMNS and row.commands[0].startswith("model_transform "), name
        known = {key: value for task in cases[name].tasks for key, value in task.get("expect", {}).items()}
        if row.cells[1] in known:
            assert float(row.cells[2]) == pytest.approx(known[row.cells[1]], abs=2e-4), name
    assert sum(row.cells[1] != "-" for row in rows.values()) >= 8
    npus = PAGE.read_text(encoding="utf-8").count("| npu-edge | npu-base | npu-pro | cuda |")
    assert npus == 1


def test_what_is_written_is_read() -> None:
    row = models_page.Row(("a_0.25", *map(str, range(COLUMNS - 1))), ("model_transform --mlir m", "model_deploy"))
    other = models_page.Row(("b", *["-"] * (COLUMNS - 1)), ("model_transform",))
    page = models_page.render({"b": other, "a_0.25": row}, ["npu-edge", "npu-base", "npu-pro"])
    assert models_page.parse(page) == {"a_0.25": row, "b": other} and "(#a_025)" in page


def test_a_row(tmp_path: Path) -> None:
    """Writes the row of a model without calibration data, twice. The row of another model stays."""
    page = tmp_path / "models.md"
    page.write_text(
        models_page.render({"vittrack": models_page.Row(("vittrack", *["9"] * 14), ("x",))}, ["a", "b", "c"])
    )
    command = [
        BUILD / "bin" / "tessera-python",
        FOLDER / "models.py",
        "mnist",
        "--rounds",
        "1",
        "--write",
        "--page",
        page,
    ]
    check(subprocess.run(command, capture_output=True, text=True))
    rows = models_page.parse(page.read_text())
    mnist = rows["mnist"]
    assert set(rows) == {"mnist", "vittrack"} and rows["vittrack"].cells[1] == "9"
    assert mnist.cells[10] == "F16" and float(mnist.cells[12]) > 0 and mnist.cells[-1] == "compiles"
    assert "$REPO/regression/models/mnist" in mnist.commands[0] and len(mnist.commands) == 7


def test_a_busy_machine_gives_no_times() -> None:
    import models

    steady = np.array([[1.0, 2.0], [1.1, 2.0], [1.0, 2.2]])
    assert models.shown(steady) == ("1000.00", "0.50") and models.shown(steady[:, :1]) == ("1000.00", "-")
    assert models.shown(np.array([[1.0, 2.0], [1.0, 3.0], [1.0, 3.0]])) == ("busy", "busy")


def test_no_such_model() -> None:
    command = [BUILD / "bin" / "tessera-python", FOLDER / "models.py", "none"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 2 and "no case" in done.stderr
