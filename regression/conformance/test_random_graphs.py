# SPDX-License-Identifier: Apache-2.0
"""Random networks on every instruction set of this machine agree with the reference; more seeds: random_graphs.py."""
from __future__ import annotations

import os
import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))

import random_graphs  # noqa: E402
from engines import supported_isas  # noqa: E402

SEEDS = range(48)


def test_random_networks() -> None:
    faults = list(random_graphs.run_seeds(SEEDS, os.cpu_count() or 1))
    assert not faults, "\n".join(faults)


def test_a_seed_gives_one_network() -> None:
    for seed in SEEDS[:5]:
        (model, inputs), (again, more) = random_graphs.make_network(seed), random_graphs.make_network(seed)
        assert model.SerializeToString(deterministic=True) == again.SerializeToString(deterministic=True)
        assert all(np.array_equal(inputs[name], more[name]) for name in inputs)


def test_a_wrong_element_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    def altered(*arguments: object) -> dict[str, np.ndarray]:
        outputs = {name: array.copy() for name, array in run(*arguments).items()}
        last = outputs[max(outputs)].reshape(-1)
        last[-1] += 0.01 * max(1.0, float(np.abs(last).max()))
        return outputs

    run = random_graphs.run_bmodel
    monkeypatch.setattr(random_graphs, "run_bmodel", altered)
    assert "compare" in random_graphs.run_seed(1, supported_isas()[-1])
