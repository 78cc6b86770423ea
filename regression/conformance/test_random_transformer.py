# SPDX-License-Identifier: Apache-2.0
"""Random transformers give the device reference's bits on NPUs; more: random_transformer.py."""
from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))

import random_transformer  # noqa: E402
from engines import StageError  # noqa: E402
from seed_runner import compiler_of_process  # noqa: E402


@pytest.mark.parametrize("chip", ["npu-base", "npu-pro"])
def test_bits_are_the_reference_s(chip: str, tmp_path: Path) -> None:
    rows = resident = 0
    for seed in range(8) if chip == "npu-base" else range(8, 16):
        folder = tmp_path / str(seed)
        folder.mkdir()
        random_transformer.check(compiler_of_process(), seed, chip, folder)
        dumped = [file.read_text() for file in sorted((folder / "ir").glob("*.mlir"))]
        rows += any("npu.row_lanes" in text for text in dumped)
        resident += any("npu.row_lanes" in text and "npu.resident" in text for text in dumped)
    assert rows >= 4, f"of 8 networks {rows} have rows over lanes"
    assert resident >= 4, f"in {resident} of 8 networks values stay"


def test_one_wrong_element_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def altered(*arguments: object) -> dict[str, np.ndarray]:
        outputs = {name: array.copy() for name, array in run(*arguments).items()}
        next(iter(outputs.values())).reshape(-1)[-1] += 1
        return outputs

    run = random_transformer.run_bmodel
    monkeypatch.setattr(random_transformer, "run_bmodel", altered)
    with pytest.raises(StageError, match="1 of"):
        random_transformer.check(compiler_of_process(), 3, "npu-base", tmp_path)
