# SPDX-License-Identifier: Apache-2.0
"""Random networks in buckets of NPUs compute what the x86 file of any size computes; more seeds: random_buckets.py."""
from __future__ import annotations

import os
import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))

import random_buckets  # noqa: E402

SEEDS = (
    4,
    5,
    6,
    7,
    9,
    11,
    14,
    54,
)  # 14: windows over padding whose zero point is negative; 54: dims that must be equal


def test_random_networks() -> None:
    faults, rejected = random_buckets.run_seeds(SEEDS, os.cpu_count() or 1)
    assert not faults, "\n".join(faults)
    assert rejected < len(SEEDS) / 2


def test_a_wrong_element_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    def altered(*arguments: object) -> list[dict[str, np.ndarray]]:
        results = run(*arguments)
        if arguments[0].name == "buckets.bmodel":  # type: ignore[attr-defined]
            results[-1][max(results[-1])].reshape(-1)[-1] += 1
        return results

    run = random_buckets.run_at_sizes
    monkeypatch.setattr(random_buckets, "run_at_sizes", altered)
    assert "compare" in random_buckets.run_seed(14, "npu-base")
