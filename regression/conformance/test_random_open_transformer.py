# SPDX-License-Identifier: Apache-2.0
"""Transformers of sizes known at run time compute what files of fixed sizes compute; more seeds:
random_open_transformer.py."""
from __future__ import annotations

import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import random_open_transformer  # noqa: E402

SEEDS = (0, 2)  # INT8 with cached tokens, BF16


def test_random_networks() -> None:
    faults, rejected = random_open_transformer.run_seeds(SEEDS, os.cpu_count() or 1)
    assert not faults and not rejected, "\n".join(faults)
