# SPDX-License-Identifier: Apache-2.0
"""Random networks of windows give the device reference's bits on NPUs; more: random_windows.py."""
from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))

import random_transformer  # noqa: E402
import random_windows  # noqa: E402
from seed_runner import compiler_of_process  # noqa: E402


@pytest.mark.parametrize("chip", ["npu-base", "npu-pro"])
def test_bits_are_the_reference_s(chip: str, tmp_path: Path) -> None:
    merged = folded = 0
    for seed in range(8) if chip == "npu-base" else range(8, 16):
        folder = tmp_path / str(seed)
        folder.mkdir()
        random_transformer.check(compiler_of_process(), seed, chip, folder, random_windows.WindowNet)
        files = sorted((folder / "ir").glob("*.mlir"))
        merged += any("npu.fused<readers>" in file.read_text() for file in files)
        folded += any("fold-space-to-depth" in file.name for file in files)  # a pass that changes something is dumped
    assert merged >= 2, f"in {merged} of 8 networks copies are left to what reads them"
    assert folded >= 2, f"in {folded} of 8 networks convolutions see the pixels of blocks"
