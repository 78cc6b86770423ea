# SPDX-License-Identifier: Apache-2.0
"""Operators on tensors with open dims give onnxruntime's results; more seeds: random_open_ops.py."""
from __future__ import annotations

import os
import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))

import random_data_sizes  # noqa: E402
import random_open_ops  # noqa: E402
import random_sizes  # noqa: E402


def test_random_operators() -> None:
    seeds = (*range(len(random_open_ops.OPERATORS)), 223)  # 223: no elements beside an open dim
    faults, rejected = random_open_ops.run_seeds(seeds, os.cpu_count() or 1)
    assert not faults, "\n".join(faults)
    assert not rejected


def test_a_wrong_result_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    def altered(*arguments: object) -> list[dict[str, np.ndarray]]:
        return [{name: array + array.dtype.type(1) for name, array in result.items()} for result in run(*arguments)]

    run = random_data_sizes.run_all
    monkeypatch.setattr(random_data_sizes, "run_all", altered)
    assert "compare" in random_open_ops.run_seed(0, random_sizes.VARIANTS[-1])
