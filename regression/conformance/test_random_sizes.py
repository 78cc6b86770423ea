# SPDX-License-Identifier: Apache-2.0
"""Random networks of sizes known at run time compute what files of fixed sizes compute; more seeds: random_sizes.py."""
from __future__ import annotations

import os
import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))

import random_sizes  # noqa: E402

# 138: a tile count with a negative bound; 194: batches that must be equal; 597, 1662: copies to open sizes in the
# device reference; 1394: windows whose number is a quotient; 1702: a mean in fixed point; 1730: a range cut to no
# multiple of its divisor; 1792: InstanceNormalization of open channels
SEEDS = (*range(16), 138, 194, 597, 1394, 1662, 1702, 1730, 1792)


def test_random_networks() -> None:
    faults, rejected = random_sizes.run_seeds(SEEDS, os.cpu_count() or 1)
    assert not faults, "\n".join(faults)
    assert rejected < len(SEEDS) / 2


@pytest.mark.parametrize("seed", [5, 6])
def test_a_wrong_element_is_noticed(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    def altered(*arguments: object) -> list[dict[str, np.ndarray]]:
        results = run(*arguments)
        last = results[-1][max(results[-1])].reshape(-1)
        last[-1] += 1
        return results

    run = random_sizes.run_at_sizes
    monkeypatch.setattr(random_sizes, "run_at_sizes", altered)
    assert "compare" in random_sizes.run_seed(seed, random_sizes.VARIANTS[-1])
