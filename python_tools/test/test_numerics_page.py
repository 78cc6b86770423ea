# SPDX-License-Identifier: Apache-2.0
"""Tests that the numbers in docs/numerics.md are those of the code."""
from __future__ import annotations

import ast
import re
from pathlib import Path

from tessera import compare, output_error, tolerances, usability, verdict
from tessera.cli.output_check import RANDOM

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "numerics.md").read_text()
WORDS = " ".join(PAGE.split())
SIMILARITIES = re.compile(r"cos ≥ ([\d.]+), euclid ≥ ([\d.]+)")


def rows() -> list[list[str]]:
    """Returns the cells of the table of tolerances."""
    table = PAGE[PAGE.index("## Tolerances") : PAGE.index("### Rounding")]
    return [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in table.splitlines() if "|" in line]


def test_tolerances_of_every_precision() -> None:
    found: dict[str, set[tuple[float, float]]] = {}
    for precisions, _, bound, where in (row for row in rows() if len(row) == 4):
        if "model_deploy" not in where and "model_transform" not in where:
            continue
        pairs = [(float(cosine), float(euclid)) for cosine, euclid in SIMILARITIES.findall(bound)]
        names = precisions.split(", ")
        assert len(pairs) == len(names), precisions
        for name, pair in zip(names, pairs):
            found.setdefault(name, set()).add(pair)
    assert found == {name: {(one.cosine, one.euclid)} for name, one in tolerances.DEFAULT.items()}


def test_what_is_broken_and_what_is_excused() -> None:
    assert compare.FLOAT32_FLOOR == 2**-22 and "at most 2^-22 (2.4e-7) passes" in WORDS
    assert f"below cosine {tolerances.LEAST_OUTPUT_COSINE:g} with the reference's" in WORDS
    assert usability.FLIPPED == 0.5 and usability.FEW_FLIPPED == 2 and "more than half of its infinite" in WORDS
    assert output_error.SAMPLES == 16 and "16 of the data set, evenly spread" in WORDS
    assert output_error.MOST_BYTES == 128 << 20 and "need more than 128 MiB" in WORDS
    assert output_error.FEW == 16 and "at most 16 sigmoids" in WORDS
    assert RANDOM == 4 and "four such inputs" in WORDS
    assert verdict.UNCOVERED == 0.5 and "most half of those changes' norm" in WORDS
    assert f"at most {verdict.TIMES_NOISE:g} times (integers: once)" in WORDS
    assert (
        verdict.PERTURBATIONS == 3
        and verdict.PERTURBATION == 2**-23
        and "three runs on operands moved by 2^-23" in WORDS
    )


def test_bounds_of_random_networks_in_few_bits() -> None:
    source = (ROOT / "regression" / "conformance" / "random_narrow.py").read_text()
    line = re.search(r"^TOLERANCE = (.*)$", source, re.M)
    assert line
    names, bounds = next((row[0], row[2]) for row in rows() if "random_narrow.py" in row[-1])
    info = [float(share) / 100 for share in re.findall(r"([\d.]+) %", bounds)]
    assert dict(zip(names.split(", "), info)) == ast.literal_eval(line[1])
