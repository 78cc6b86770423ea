# SPDX-License-Identifier: Apache-2.0
"""Random networks in BF16, F16, W8 and W4 agree with the reference on every instruction set; more: random_narrow.py."""
from __future__ import annotations

import os
import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))

import random_narrow  # noqa: E402
from engines import supported_isas  # noqa: E402

SEEDS = range(32)


def test_all_precisions_agree_with_the_reference() -> None:
    faults = [fault for fault in random_narrow.run_seeds(SEEDS, os.cpu_count() or 1) if fault]
    assert not faults, "\n".join(faults)
    assert {random_narrow.precision_of(seed) for seed in SEEDS} == set(random_narrow.TOLERANCE)


@pytest.mark.parametrize("chip", ["npu-base", "npu-pro"])
def test_npus_agree_with_the_reference(chip: str) -> None:
    faults = [fault for fault in random_narrow.run_seeds(range(100, 120), os.cpu_count() or 1, chip) if fault]
    assert not faults, "\n".join(faults)


@pytest.mark.parametrize("seed", range(4))
def test_a_value_that_is_off_is_noticed(monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    def altered(*arguments: object) -> dict[str, np.ndarray]:
        outputs = {name: array.copy() for name, array in run(*arguments).items()}
        last = outputs[max(outputs)].reshape(-1)
        last[-1] += 3 * random_narrow.TOLERANCE[random_narrow.precision_of(seed)] * max(np.abs(last).max(), 1e-2)
        return outputs

    run = random_narrow.run_bmodel
    monkeypatch.setattr(random_narrow, "run_bmodel", altered)
    assert "is off by" in random_narrow.run_seed(seed, supported_isas()[-1])
