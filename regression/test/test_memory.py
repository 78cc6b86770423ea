# SPDX-License-Identifier: Apache-2.0
"""Tests that a run holds the weights, the activations and little else."""
from __future__ import annotations

import sys

import pytest
from case_file import REGRESSION, Case, all_cases
from conftest import BUILD, Builder

sys.path.insert(0, str(REGRESSION / "bench"))

from figures import measure_memory  # noqa: E402

CASES = [case for case in all_cases() if case.name in ("mobilenetv1_0.25_128", "light_resnet50")]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_memory(case: Case, builder: Builder, need) -> None:
    need(case.model)
    memory = measure_memory(BUILD, builder.bmodel(case, "x86"))
    assert memory.peak <= memory.allowed, memory
