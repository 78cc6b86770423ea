# SPDX-License-Identifier: Apache-2.0
"""Random detectors give the device reference's integers on NPUs; more: random_heads.py."""
from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))

import seed_runner  # noqa: E402
import random_heads  # noqa: E402


@pytest.mark.parametrize("chip", ["npu-edge", "npu-base", "npu-pro"])
def test_integers_are_the_reference_s(chip: str) -> None:
    seeds = range(6)
    assert not [*filter(None, seed_runner.map_seeds(random_heads.run_seed, [], seeds, os.cpu_count() or 1, chip, None))]


def test_results_are_early_and_keep_their_places(tmp_path: Path) -> None:
    early = holding = 0
    for seed in range(16):
        folder = tmp_path / str(seed)
        random_heads.check(seed_runner.compiler_of_process(), seed, None, "npu-base", folder)
        early += any((folder / "ir").glob("*-npu-early-results.mlir"))
        programs = [file.read_text() for file in (folder / "ir").glob("*-npu-program-staged.mlir")]
        holding += any(
            " hold_stores {" in line for text in programs for line in text.splitlines() if "npu.program" in line
        )
    assert early >= 2, f"in {early} of 16 networks results are made earlier"
    assert holding >= 2, f"in {holding} of 16 networks results keep their places while they are stored"
