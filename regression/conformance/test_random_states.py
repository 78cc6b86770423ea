# SPDX-License-Identifier: Apache-2.0
"""Random networks with states and with caches that grow compute what a loop over onnxruntime computes; more seeds:
random_states.py, random_caches.py.
"""
from __future__ import annotations

import os
import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))

import random_caches  # noqa: E402
import random_states  # noqa: E402


def test_random_networks() -> None:
    assert not random_states.run_seeds(range(8), os.cpu_count() or 1)


@pytest.mark.parametrize("run", [1, 19])
def test_a_wrong_element_is_noticed(run: int, monkeypatch: pytest.MonkeyPatch) -> None:
    def altered(*arguments: object) -> list[dict[str, np.ndarray]]:
        results = with_states(*arguments)
        results[run]["y"].reshape(-1)[-1] += np.float32(0.01)
        return results

    with_states = random_states.run_with_states
    monkeypatch.setattr(random_states, "run_with_states", altered)
    assert f"run {run}: 'y' differs" in random_states.run_seed(2, "x86-avx2")


def test_a_lost_state_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    import tessera.runtime as rt

    monkeypatch.setattr(rt.Net, "load_state", lambda net, saved: net.reset_state())
    assert "the restored states give other outputs" in random_states.run_seed(3, "x86-avx2")


def test_random_caches() -> None:
    assert not random_caches.run_seeds(range(6), os.cpu_count() or 1)


def test_a_cache_that_keeps_its_length_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    import tessera.runtime as rt

    monkeypatch.setattr(rt.Net, "set_state_length", lambda net, length, name=None: None)
    assert "more do not fit" in random_caches.run_seed(2, "x86-avx2")
