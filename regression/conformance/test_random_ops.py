# SPDX-License-Identifier: Apache-2.0
"""A fixed share of the random op cases on every instruction set; all of them: random_ops.py."""
from __future__ import annotations

import os
import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))

import random_ops  # noqa: E402


def test_bits_are_equal_everywhere() -> None:
    """Tests five cases of each family; the instruction sets alternate."""
    results = list(random_ops.run_cases(5 * len(random_ops.FAMILIES), os.cpu_count() or 1, rotate=True))
    faults = [fault for _, _, _, found, _ in results for fault in found]
    assert not faults, "\n".join(faults)
    assert sum(cases for _, cases, _, _, _ in results) == 5 * len(random_ops.FAMILIES)
    assert all(elements > 0 for _, _, elements, _, _ in results)


def test_epilogues_are_equal_on_all_chips() -> None:
    """Tests two cases of each op with an epilogue program; the chips alternate."""
    families = tuple(random_ops.EPILOGUE_FAMILIES)
    chips = [chip for chip in random_ops.CHIPS if chip != "cuda"]
    results = list(random_ops.run_cases(2 * len(families), os.cpu_count() or 1, chips, families, rotate=True))
    faults = [fault for _, _, _, found, _ in results for fault in found]
    assert not faults, "\n".join(faults)
    assert all(elements > 0 for _, _, elements, _, _ in results)


def test_one_wrong_bit_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    def altered(*arguments: object) -> dict[str, np.ndarray]:
        outputs = {name: array.copy() for name, array in run(*arguments).items()}
        outputs[max(outputs)].reshape(-1)[-1] ^= 1
        return outputs

    run = random_ops.run_bmodel
    monkeypatch.setattr(random_ops, "run_bmodel", altered)
    faults = random_ops.run_model(("softmax", 0, 2, random_ops.VARIANTS[:1], None))[3]
    assert len(faults) == 1 and "1 of" in faults[0]
