# SPDX-License-Identifier: Apache-2.0
"""Random TensorFlow Lite networks give LiteRT's integers; more: random_tflite.py."""
from __future__ import annotations

import os
import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))

import random_tflite  # noqa: E402


def test_networks_give_the_integers_of_the_model() -> None:
    faults = [fault for fault in random_tflite.run_seeds(range(56), os.cpu_count() or 1) if fault]
    assert not faults, "\n".join(faults)


@pytest.mark.parametrize("chip", random_tflite.NPUS)
def test_npus_give_the_same_integers(chip: str) -> None:
    faults = [fault for fault in random_tflite.run_seeds(range(204, 218), os.cpu_count() or 1, chip) if fault]
    assert not faults, "\n".join(faults)


def test_every_operator_is_drawn() -> None:
    drawn = {code for seed in range(300) for code in random_tflite.make_network(seed)[0].operators}
    assert len(drawn) >= 30


@pytest.mark.parametrize("seed", range(2))
def test_another_integer_is_noticed(monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    def altered(*arguments: object) -> dict[str, np.ndarray]:
        outputs = {name: array.copy() for name, array in run(*arguments).items()}
        last = outputs[max(outputs)].reshape(-1)
        last[0] = last[0] + 1 if last[0] < 100 else last[0] - 1
        return outputs

    run = random_tflite.run_bmodel
    monkeypatch.setattr(random_tflite, "run_bmodel", altered)
    assert "1 elements differ" in random_tflite.run_seed(seed, "x86-v2")
