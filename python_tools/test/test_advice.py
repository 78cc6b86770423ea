# SPDX-License-Identifier: Apache-2.0
"""Tests that each advice code is produced for a suitable model and is listed in docs/advice.md."""
from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

from tessera import advice

DOCS = Path(__file__).resolve().parents[2] / "docs"
LAYER = {
    "name": "deconv", "time_cycles": {"ddr": 400.0, "multiply": 100.0}, "ddr_least_bytes": 1000,
    "ddr_bytes": {"weights": {"moved": 2000}, "input": {"moved": 0}},
}  # fmt: skip
GOOD: dict[str, Any] = {
    "cycles": 1000.0, "microseconds": 10.0, "ddr_moved_bytes": 2000, "layers": [LAYER],
    "time_cycles": {"multiply": 600.0, "ddr": 400.0}, "ddr_bytes": {"input": {"moved": 100}},
}  # fmt: skip


def codes(info: dict[str, Any]) -> list[str]:
    return [each.code for each in advice.of_perf(info)]


def test_nothing_is_odd() -> None:
    assert codes(GOOD) == [] and advice.of_quantization({}) == [] and advice.of_table(100) == []
    assert codes({"cycles": 0}) == []


def test_traffic() -> None:
    info = copy.deepcopy(GOOD)
    info["layers"][0]["ddr_bytes"]["weights"]["moved"] = 8000
    (found,) = (each for each in advice.of_perf(info) if each.code == advice.TRAFFIC)
    assert found.layer == "deconv" and "8.0 times" in found.text
    assert found.microseconds is not None and abs(found.microseconds - 4.0 * 7 / 8) < 1e-9
    info["layers"][0]["time_cycles"]["ddr"] = 10.0
    assert codes(info) == []


def test_host_input_and_small_tiles() -> None:
    host = {"steps": 3, "subnets": 2, "microseconds": 5.0, "hand_over_microseconds": 1.0}
    assert codes({**GOOD, "host": host}) == [advice.HOST]
    assert codes({**GOOD, "ddr_bytes": {"input": {"moved": 1500}}}) == [advice.INPUT]
    assert codes({**GOOD, "time_cycles": {"latency": 500.0, "ddr": 1.0}}) == [advice.SMALL]


def test_wide_and_samples() -> None:
    assert [each.code for each in advice.of_quantization({"products": 10, "wide_products": 5})] == [advice.WIDE]
    assert [each.code for each in advice.of_table(4)] == [advice.SAMPLES]
    assert "TA106" in advice.lines(advice.of_table(4))[0]


def test_parts_of_one_op_are_told_of_once() -> None:
    info = copy.deepcopy(GOOD)
    info["layers"] = [copy.deepcopy(LAYER), copy.deepcopy(LAYER)]
    info["layers"][0]["ddr_bytes"]["weights"]["moved"] = 9000
    assert [each.text for each in advice.of_perf(info)] == ["moves 11000 bytes to and from DDR, 5.5 times the least"]
    info["layers"][0]["name"] = info["layers"][1]["name"] = ""  # each layer without a name counts as one op
    assert [each.text for each in advice.of_perf(info)] == ["moves 9000 bytes to and from DDR, 9.0 times the least"]


def test_waiting_for_weights_and_for_results() -> None:
    ddr = {"weights": {"moved": 1500}, "input": {"moved": 100}}
    (found,) = advice.of_perf({**GOOD, "ddr_bytes": ddr})
    assert found.code == advice.WEIGHTS and found.microseconds is not None
    assert abs(found.microseconds - 10.0 * 0.4 * 1500 / 2000) < 1e-9
    (found,) = advice.of_perf({**GOOD, "ddr_bytes": {"intermediate": {"moved": 600}}})
    assert found.code == advice.SPILLED and found.microseconds is not None
    assert abs(found.microseconds - 10.0 * 0.4 * 600 / 2000) < 1e-9
    assert codes({**GOOD, "ddr_bytes": {"weights": {"moved": 900}, "intermediate": {"moved": 400}}}) == []


def test_idle_lanes() -> None:
    info = copy.deepcopy(GOOD)
    info["layers"][0]["time_cycles"]["multiply"] = 500.0
    info["layers"][0]["matrix_least_cycles"] = 100.0
    (found,) = advice.of_perf(info)
    assert (found.code, found.layer) == (advice.LANES, "deconv") and "5.0 times" in found.text
    assert found.microseconds is not None and abs(found.microseconds - 4.0) < 1e-9
    info["layers"][0]["matrix_least_cycles"] = 200.0
    assert codes(info) == []


def test_a_line_a_code() -> None:
    info = copy.deepcopy(GOOD)
    info["layers"] = [{**copy.deepcopy(LAYER), "name": name, "matrix_least_cycles": 10.0} for name in "abc"]
    for number, layer in enumerate(info["layers"]):
        layer["time_cycles"]["multiply"] = 210.0 + 100 * number
    assert len(advice.of_perf(info)) == 3
    (line,) = advice.lines(advice.of_perf(info))
    assert line.startswith("TA109: c: ") and "(about 4.0 us; 5.0 us more in 2 other layers)" in line


def test_float_among_integers() -> None:
    kept = [{"name": "deconv", "op": "top.conv", "products": 2, "reason": "no range"},
            {"name": "softmax", "op": "top.softmax", "products": 0, "reason": "is exact in f32"}]  # fmt: skip
    info = {"products": 10, "integer_products": 8, "float_ops": kept}
    (found,) = advice.of_quantization(info)
    assert (
        found.code == advice.FLOAT and found.microseconds is None and "20 %" in found.text and "no range" in found.text
    )
    perf = {
        **GOOD,
        "layers": [{**LAYER, "name": "deconv+relu", "cycles": 300.0}, {**LAYER, "cycles": 1.0, "name": "x"}],
    }
    assert [each.microseconds for each in advice.of_quantization(info, perf)] == [3.0]
    assert advice.of_quantization({**info, "integer_products": 0}) == []  # a float model
    wide = {"products": 10, "wide_products": 5, "wide_ops": [{"name": "deconv+relu"}, {"name": ""}]}
    assert [each.microseconds for each in advice.of_quantization(wide, perf)] == [0.5]  # half of its 100 cycles


def test_a_model_that_its_host_runs_alone() -> None:
    host = {"steps": 3, "subnets": 1, "microseconds": 5.0, "hand_over_microseconds": 1.0}
    assert codes({"cycles": 0, "host": host}) == [advice.HOST]


def test_every_code_has_its_page() -> None:
    """Every code has a page and every page a code. The index and the site link to each page, and all pages have the
    same sections."""
    pages = {page.stem: page.read_text() for page in (DOCS / "advice").glob("*.md")}
    assert sorted(pages) == sorted(advice.CODES)
    index, site = (DOCS / "advice.md").read_text(), (DOCS / "site" / "mkdocs.yml").read_text()
    for code, text in pages.items():
        assert text.startswith(f"# {code}: ") and f"](advice/{code}.md)" in index, code
        title = text.partition("\n")[0].partition(": ")[2]
        assert title in index, f"{code}: {title}"
        assert f"docs/advice/{code}.md" in site, code
        titles = [line[3:] for line in text.splitlines() if line.startswith("## ")]
        assert titles == ["Why it costs", "How the cost is worked out", "What to try", "Example"], code
        assert "```\n$ " in text, f"{code}: no example is run"
    (found,) = advice.of_table(4)
    assert found.page == "docs/advice/TA106.md" and found.as_dict()["page"] == found.page
