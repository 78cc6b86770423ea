# SPDX-License-Identifier: Apache-2.0
"""Random networks with branches and loops in INT8; more seeds: random_control_integers.py."""
from __future__ import annotations

import os
import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))

import random_control_integers as integers  # noqa: E402


def test_random_networks() -> None:
    faults = integers.run_seeds(range(8), os.cpu_count() or 1)
    assert not faults, "\n".join(faults)


def test_other_bits_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    runs = iter(range(99))

    def altered(*arguments: object) -> list[dict[str, np.ndarray]]:
        results = run(*arguments)
        results[-1][max(results[-1])].reshape(-1)[-1:] += np.float32(next(runs))
        return results

    run = integers.run_all
    monkeypatch.setattr(integers, "run_all", altered)
    assert "has other bits" in integers.run_seed(3, "all")
