# SPDX-License-Identifier: Apache-2.0
"""Ops that compare and move elements give what numpy does; more: random_order.py."""
from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))

import random_order  # noqa: E402


def test_instruction_sets_give_what_numpy_does() -> None:
    faults = random_order.run_seeds(range(48))
    assert not faults, "\n".join(faults)


def test_one_wrong_element_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    def altered(*arguments: object) -> dict[str, np.ndarray]:
        outputs = {name: array.copy() for name, array in run(*arguments).items()}
        next(iter(outputs.values())).reshape(-1)[-1] = 17
        return outputs

    run = random_order.run_bmodel
    monkeypatch.setattr(random_order, "run_bmodel", altered)
    faults = random_order.run_seeds(range(4))
    assert len(faults) == 4 * len(random_order.VARIANTS) and all("1 of" in fault for fault in faults)
