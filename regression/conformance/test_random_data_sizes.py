# SPDX-License-Identifier: Apache-2.0
"""Random networks of sizes that a run computes give onnxruntime's results; more seeds: random_data_sizes.py."""
from __future__ import annotations

import os
import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))

import random_data_sizes  # noqa: E402
import random_sizes  # noqa: E402


def test_random_networks() -> None:
    faults, rejected = random_data_sizes.run_seeds(range(12), os.cpu_count() or 1)
    assert not faults, "\n".join(faults)
    assert not rejected


def test_a_wrong_size_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    def altered(*arguments: object) -> list[dict[str, np.ndarray]]:
        results = run(*arguments)
        return [{name: array[..., :0] for name, array in result.items()} for result in results]

    run = random_data_sizes.run_all
    monkeypatch.setattr(random_data_sizes, "run_all", altered)
    assert "compare" in random_data_sizes.run_seed(0, random_sizes.VARIANTS[-1])
