# SPDX-License-Identifier: Apache-2.0
"""Compares random networks in onnxruntime's blocked layout with onnxruntime (random_blocked.py)."""
from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))

import random_blocked  # noqa: E402
from engines import Compiler, supported_isas  # noqa: E402


@pytest.fixture(scope="module")
def compiler() -> Compiler:
    return Compiler()


@pytest.mark.parametrize("seed", range(6))
def test_onnxruntime_gives_the_same(seed: int, compiler: Compiler) -> None:
    problem, kinds = random_blocked.run_case(compiler, seed, [supported_isas()[-1], "npu-base"])
    assert not problem
    assert kinds["Conv"] > 0, "onnxruntime wrote no blocked convolution: the case tests nothing"
