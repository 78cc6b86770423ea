# SPDX-License-Identifier: Apache-2.0
"""Random quantised networks give the device reference's integers on every instruction set; more:
random_quantized.py."""
from __future__ import annotations

import os
import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))

import random_quantized  # noqa: E402
from engines import supported_isas  # noqa: E402

SEEDS = range(24)


def test_integers_are_equal_everywhere() -> None:
    results = list(random_quantized.run_seeds(SEEDS, os.cpu_count() or 1))
    assert not [fault for fault, _, _ in results if fault], "\n".join(fault for fault, _, _ in results)
    elements, far = (sum(result[i] for result in results) for i in (1, 2))
    assert elements > 10_000
    # The simulation sums in float and divides where integers multiply; roundings may differ, answers must not.
    assert far <= random_quantized.MAX_FAR * elements


def test_npus_and_their_hosts_give_the_same() -> None:
    results = list(random_quantized.run_seeds(range(100, 130), os.cpu_count() or 1, variants=random_quantized.NPUS))
    assert not [fault for fault, _, _ in results if fault], "\n".join(fault for fault, _, _ in results)
    assert sum(compared for _, compared, _ in results) > 10_000


def test_products_of_activations_are_equal_everywhere() -> None:
    seeds = range(301, 385, 6)  # seeds with activation products
    variants = (*random_quantized.VARIANTS, "npu-base", "npu-pro")
    results = list(random_quantized.run_seeds(seeds, os.cpu_count() or 1, variants=variants))
    assert not [fault for fault, _, _ in results if fault], "\n".join(fault for fault, _, _ in results)
    assert sum(compared for _, compared, _ in results) > 10_000


@pytest.mark.parametrize("seed", [69, 443])
def test_fixed_point_of_channel_tails(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests 64-bit multiplications in vectors with only some lanes used for channels; LLVM 22 crashed on them."""
    monkeypatch.setattr(random_quantized, "MODES", ("fixed",))
    fault, compared, _ = random_quantized.run_seed(seed, "x86")
    assert not fault and compared > 1000, fault


def test_one_wrong_step_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    def altered(*arguments: object) -> dict[str, np.ndarray]:
        outputs = {name: array.copy() for name, array in run(*arguments).items()}
        last = outputs[max(outputs)].reshape(-1)
        last[-1] ^= 1
        return outputs

    run = random_quantized.run_bmodel
    monkeypatch.setattr(random_quantized, "run_bmodel", altered)
    assert "1 integers differ" in random_quantized.run_seed(1, supported_isas()[-1])[0]
