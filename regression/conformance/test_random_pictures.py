# SPDX-License-Identifier: Apache-2.0
"""Random first layers give the device reference's integers on NPUs; more: random_pictures.py."""
from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))

import seed_runner  # noqa: E402
import random_pictures  # noqa: E402


@pytest.mark.parametrize("chip", ["npu-edge", "npu-base", "npu-pro"])
def test_integers_are_the_reference_s(chip: str) -> None:
    seeds = range(12)
    assert not [
        *filter(None, seed_runner.map_seeds(random_pictures.run_seed, [], seeds, os.cpu_count() or 1, chip, None))
    ]


def test_maps_are_left_to_convolutions(tmp_path: Path) -> None:
    mapped = 0
    for seed in range(16):
        folder = tmp_path / str(seed)
        random_pictures.check(seed_runner.compiler_of_process(), seed, None, "npu-base", folder)
        mapped += any("npu.fused<readers>" in file.read_text() for file in (folder / "ir").glob("*.mlir"))
    assert mapped >= 2, f"in {mapped} of 16 networks a convolution quantises its picture"
