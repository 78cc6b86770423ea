# SPDX-License-Identifier: Apache-2.0
"""Random networks with branches and loops decided at run time; more seeds: random_control.py."""
from __future__ import annotations

import os
import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))

import random_control  # noqa: E402
from engines import BUILD  # noqa: E402

MACHINE = BUILD / "ptx_machine" / "libcuda.so.1"
# 10: carried values that change places; 39 and 49: networks of control flow alone


def test_random_networks() -> None:
    faults = random_control.run_seeds((*range(5), 10, 39, 49), os.cpu_count() or 1)
    # A branch in a loop reads the loop's condition, which is always true, in each pass.
    faults += random_control.run_seeds((72054,), 1, "npu-base")
    assert not faults, "\n".join(faults)


def test_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    if not MACHINE.is_file():
        pytest.skip("the PTX machine is not built")
    monkeypatch.setenv("BMRT_LIBCUDA", os.environ.get("BMRT_LIBCUDA", str(MACHINE)))
    # 477: results of a loop that go back to the chip; 132: the same in BF16
    faults = random_control.run_seeds((132, 477), os.cpu_count() or 1, "cuda")
    assert not faults, "\n".join(faults)


def test_a_wrong_element_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    def altered(*arguments: object) -> list[dict[str, np.ndarray]]:
        results = run(*arguments)
        results[-1][max(results[-1])].reshape(-1)[-1] += 1
        return results

    run = random_control.run_all
    monkeypatch.setattr(random_control, "run_all", altered)
    assert "compare" in random_control.run_seed(3, random_control.ISAS[-1])
