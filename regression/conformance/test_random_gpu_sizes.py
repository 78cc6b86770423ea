# SPDX-License-Identifier: Apache-2.0
"""Random networks of open sizes compute on GPUs what the x86 file computes; more seeds: random_gpu_sizes.py."""
from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))

import numpy as np  # noqa: E402
import random_data_sizes  # noqa: E402
import random_gpu_sizes  # noqa: E402
from engines import BUILD  # noqa: E402

MACHINE = BUILD / "ptx_machine" / "libcuda.so.1"
SEEDS = (1, 4, 7)


@pytest.fixture(autouse=True)
def machine(monkeypatch: pytest.MonkeyPatch) -> None:
    if not MACHINE.exists():
        pytest.skip("the PTX machine is not built")
    monkeypatch.setenv("BMRT_LIBCUDA", os.environ.get("BMRT_LIBCUDA", str(MACHINE)))


def test_random_networks() -> None:
    faults, rejected = random_gpu_sizes.run_seeds(SEEDS, os.cpu_count() or 1)
    assert not faults, "\n".join(faults)
    assert rejected < len(SEEDS) / 2


def test_sizes_that_a_run_computes() -> None:
    """Ops with such sizes run on the host, behind the op that reads the size."""
    assert [random_data_sizes.run_seed(seed, "cuda") for seed in (1, 2, 4)] == ["", "", ""]


def test_a_wrong_element_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    def altered(*arguments: object) -> list[dict[str, np.ndarray]]:
        results = run(*arguments)
        if arguments[0].name == "gpu.bmodel":  # type: ignore[attr-defined]
            results[-1][max(results[-1])].reshape(-1)[-1] += 1
        return results

    run = random_gpu_sizes.run_at_sizes
    monkeypatch.setattr(random_gpu_sizes, "run_at_sizes", altered)
    assert "compare" in random_gpu_sizes.run_seed(1, "cuda")
