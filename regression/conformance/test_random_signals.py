# SPDX-License-Identifier: Apache-2.0
"""Networks of signals and volumes of sizes known at run time; more seeds: random_signals.py."""
from __future__ import annotations

import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import random_signals  # noqa: E402

SEEDS = (0, 1, 9, 11)  # F32 and INT8; 9: volumes


def test_random_networks() -> None:
    faults, rejected = random_signals.run_seeds(SEEDS, os.cpu_count() or 1)
    assert not faults and not rejected, "\n".join(faults)
