# SPDX-License-Identifier: Apache-2.0
"""Tests attention on a GPU: random shapes, heads, groups and masks in every precision, in the layouts of the
neighbouring ops. TESSERA_CUDA=all tests more of them."""
from __future__ import annotations

import os
import re
import sys
from pathlib import Path

import pytest
from test_cuda import MACHINE, has_machine

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "conformance"))
import random_attention  # noqa: E402
from seed_runner import compiler_of_process  # noqa: E402

FOUND = (1086, 1568)  # kernels with wide rows of v and narrow rows of k left their shared memory
COUNT = 400 if os.environ.get("TESSERA_CUDA") == "all" else 48


@pytest.fixture(autouse=True)
def machine(monkeypatch: pytest.MonkeyPatch) -> None:
    if not has_machine():
        pytest.skip("the PTX machine is not built or this processor lacks AVX2, FMA or F16C")
    monkeypatch.setenv("BMRT_LIBCUDA", os.environ.get("BMRT_LIBCUDA") or str(MACHINE))


def test_random_attention(tmp_path: Path) -> None:
    tiles, warps = 0, set()
    for seed in (*range(COUNT), *FOUND):
        folder = tmp_path / str(seed)
        folder.mkdir()
        random_attention.check_network(compiler_of_process(), seed, "cuda", folder)
        last = sorted((folder / "ir").glob("*.mlir"))[-1].read_text()
        assert "device.attention" in last, f"seed {seed}: no attention was found"
        # Inputs by heads that are passed on unchanged need a copy of q, k or v only if the network itself contains one,
        # or computes on it.
        assert "device.copy" not in last or "device.norm" in last, f"seed {seed}: a copy beside attention is left"
        found = re.findall(r"cuda.attention = #cuda.attention<warps = (\d), keys = (\d+)>", last)
        tiles += len(found)
        warps |= set(found)
    assert tiles > COUNT / 8, f"tensor cores had {tiles} of {COUNT} attentions"
    assert len(warps) >= 4, f"of the tiles only {sorted(warps)} were tried"
