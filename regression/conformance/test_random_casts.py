# SPDX-License-Identifier: Apache-2.0
"""Chains of casts give the bits of the reference in numpy on every chip; more: random_casts.py."""
from __future__ import annotations

import os
import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))

import random_casts  # noqa: E402
from engines import BUILD  # noqa: E402

SEEDS = range(50)
MACHINE = BUILD / "ptx_machine" / "libcuda.so.1"


def test_chips_round_as_the_reference() -> None:
    faults = [fault for fault in random_casts.run_seeds(SEEDS, os.cpu_count() or 1) if fault]
    assert not faults, "\n".join(faults)


def test_cuda_rounds_as_the_reference(monkeypatch: pytest.MonkeyPatch) -> None:
    if not MACHINE.exists():
        pytest.skip("the PTX machine is not built")
    monkeypatch.setenv("BMRT_LIBCUDA", os.environ.get("BMRT_LIBCUDA", str(MACHINE)))
    faults = [fault for fault in random_casts.run_seeds(range(100, 114), os.cpu_count() or 1, "cuda") if fault]
    assert not faults, "\n".join(faults)


def test_chains_cast_every_type_to_and_from_narrow_ones() -> None:
    pairs = set()
    for seed in range(300):
        steps = random_casts.describe(random_casts.make_network(seed).model).split()
        types = [step for step in steps if step in random_casts.TYPES]
        pairs |= set(zip(types, types[1:]))
    others = [name for name in random_casts.TYPES if name not in random_casts.NARROW]
    for narrow in random_casts.NARROW:
        assert {(name, narrow) for name in others} <= pairs
        assert {(narrow, name) for name in others} <= pairs


def test_bf16_of_doubles_rounds_once() -> None:
    """Tests a number just above the middle of two bf16 numbers that f32 rounds to the middle."""
    assert random_casts.round_bf16(np.array([1 + 2**-8 + 2**-40, 1 + 2**-8])).tolist() == [1 + 2**-7, 1]


@pytest.mark.parametrize("seed", range(3))
def test_a_cast_that_does_not_round_is_noticed(monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    def altered(*arguments: object) -> dict[str, np.ndarray]:
        outputs = {name: array.copy() for name, array in run(*arguments).items()}
        last = outputs[max(outputs)]
        last.reshape(-1)[0] = 1 if last.reshape(-1)[0] != 1 else 0
        return outputs

    run = random_casts.run_bmodel
    monkeypatch.setattr(random_casts, "run_bmodel", altered)
    assert "differs in 1 of" in random_casts.run_seed(seed, "x86-v2")
