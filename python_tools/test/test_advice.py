# SPDX-License-Identifier: Apache-2.0
"""Each code of advice is provoked, and has its place in docs/advice.md."""
from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

from tessera import advice

LAYER = {
    "name": "deconv", "time_cycles": {"ddr": 400.0, "multiply": 100.0}, "ddr_least_bytes": 1000,
    "ddr_bytes": {"weights": {"moved": 2000}, "input": {"moved": 0}},
}  # fmt: skip
GOOD: dict[str, Any] = {
    "cycles": 1000.0, "microseconds": 10.0, "ddr_moved_bytes": 2000, "layers": [LAYER],
    "time_cycles": {"multiply": 600.0, "ddr": 400.0}, "ddr_bytes": {"input": {"moved": 100}},
}  # fmt: skip


def codes(told: dict[str, Any]) -> list[str]:
    return [each.code for each in advice.of_perf(told)]


def test_nothing_is_odd() -> None:
    assert codes(GOOD) == [] and advice.of_quantization({}) == [] and advice.of_table(100) == []
    assert codes({"cycles": 0}) == []


def test_traffic() -> None:
    told = copy.deepcopy(GOOD)
    told["layers"][0]["ddr_bytes"]["weights"]["moved"] = 8000
    (found,) = advice.of_perf(told)
    assert found.code == advice.TRAFFIC and found.layer == "deconv" and "8.0 times" in found.text
    assert found.microseconds is not None and abs(found.microseconds - 4.0 * 7 / 8) < 1e-9
    told["layers"][0]["time_cycles"]["ddr"] = 10.0
    assert codes(told) == []


def test_host_input_and_small_tiles() -> None:
    host = {"steps": 3, "subnets": 2, "microseconds": 5.0, "hand_over_microseconds": 1.0}
    assert codes({**GOOD, "host": host}) == [advice.HOST]
    assert codes({**GOOD, "ddr_bytes": {"input": {"moved": 1500}}}) == [advice.INPUT]
    assert codes({**GOOD, "time_cycles": {"latency": 500.0, "ddr": 1.0}}) == [advice.SMALL]


def test_wide_and_samples() -> None:
    assert [each.code for each in advice.of_quantization({"products": 10, "wide_products": 5})] == [advice.WIDE]
    assert [each.code for each in advice.of_table(4)] == [advice.SAMPLES]
    assert "TA106" in advice.lines(advice.of_table(4))[0]


def test_every_code_has_its_page() -> None:
    page = (Path(__file__).resolve().parents[2] / "docs" / "advice.md").read_text()
    assert [code for code in advice.CODES if f"## {code}\n" not in page] == []
