# SPDX-License-Identifier: Apache-2.0
"""Formulas that nearly match a recovery, on x86 against onnxruntime; more: near_misses.py."""
from __future__ import annotations

import os
import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))

import near_misses  # noqa: E402
from near_miss_case import PATTERNS, Case  # noqa: E402
from near_miss_changes import model_of  # noqa: E402
from seed_runner import compiler_of_process  # noqa: E402

pytest.importorskip("onnxruntime")


def test_results_are_onnxruntimes() -> None:
    """TESSERA_NEAR_MISSES sets the number of cases."""
    count = int(os.environ.get("TESSERA_NEAR_MISSES", 6 * len(PATTERNS)))
    which = near_misses.cases_of(PATTERNS, 0, count)
    faults = list(near_misses.run_cases(which, os.cpu_count() or 1))
    assert not faults, "\n".join(faults)


@pytest.mark.parametrize("name", [name for name, (_, op) in PATTERNS.items() if op])
def test_a_pattern_itself_is_recovered(name: str, tmp_path: Path) -> None:
    build, op = PATTERNS[name]
    cases = {}
    for seed in range(8):
        case = cases[f"k{seed}_"] = Case(seed)
        case.outputs = list(build(case))
    path, mlir = tmp_path / "model.onnx", tmp_path / "model_top.mlir"
    path.write_bytes(model_of(cases)[0].SerializeToString())
    compiler_of_process()("import", "import", "--onnx", path, "--output", mlir)
    assert mlir.read_text().count(f"top.{op} ") == len(cases)


def test_a_wrong_axis_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    def altered(*arguments: object, **options: object) -> dict[str, np.ndarray]:
        return {name: array[::-1] for name, array in run(*arguments, **options).items()}

    run = near_misses.run_bmodel
    monkeypatch.setattr(near_misses, "run_bmodel", altered)
    assert any("wrong" in fault for fault in near_misses.run_group([("softmax", 0), ("gelu", 0)], "x86-v2", None))
