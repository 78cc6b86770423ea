# SPDX-License-Identifier: Apache-2.0
"""Tests that --chip_set accepts one change or several, and may be repeated."""
from __future__ import annotations

import argparse

from tessera.cli.common import add_chip_set


def parsed(*words: str) -> list[str]:
    parser = argparse.ArgumentParser()
    add_chip_set(parser, "what if")
    return parser.parse_args(words).chip_set


def test_changes_add_up() -> None:
    assert parsed() == []
    assert parsed("--chip_set", "lanes=16,memories.ddr.gbps=8", "--chip_set", "clock_ghz=0.5") == [
        "lanes=16",
        "memories.ddr.gbps=8",
        "clock_ghz=0.5",
    ]
    assert parsed("--chip-set", "dma.casts=f32-bf16,bf16-f32,lanes=16") == ["dma.casts=f32-bf16,bf16-f32", "lanes=16"]
