# SPDX-License-Identifier: Apache-2.0
"""Tests the agreement of two models without labels: signal to noise, equal answers, and when a cosine is meaningful."""
from __future__ import annotations

from dataclasses import dataclass
from typing import Mapping

import numpy as np
import pytest

from tessera.inputs import InputSpec
from tessera.output_error import Meter
from tessera.precision.target import why_cosine_misleads
from tessera.tasks import agreement
from tessera.tasks.answers import class_axis, count_same

Arrays = Mapping[str, np.ndarray]


@dataclass
class Table:
    """A model that returns stored outputs: one dict for each sample."""

    rows: list[Arrays]
    inputs: tuple[InputSpec, ...] = (InputSpec("x", (1,), "float32"),)
    outputs: tuple[InputSpec, ...] = ()

    def run(self, arrays: Arrays) -> Arrays:
        return self.rows[int(arrays["x"][0])]


def compare(golden: list[Arrays], got: list[Arrays]) -> dict[str, float]:
    numbers = range(len(golden))
    return agreement.score(Table(got), Table(golden), ((i, {"x": np.array([i])}) for i in numbers), Meter({}), numbers)


def test_the_worst_output_counts() -> None:
    wanted = {"a": np.float32([[1, 2, 3]]), "b": np.float32([[3, 4]])}
    got = {
        "a": wanted["a"],
        "b": np.float32([[3.5, 3]]),
    }  # |e|^2 is 1.25 of 25: 13 dB; the largest entry is another one
    figures = compare([wanted, wanted], [got, wanted])
    assert figures["sqnr"] == pytest.approx(10 * np.log10(50 / 1.25)) and figures["agree"] == 50
    assert figures["cos_others"] == pytest.approx(1) and figures["same_top"] == 0.75
    assert compare([wanted], [wanted])["sqnr"] == agreement.MOST_SQNR


def test_cosines_of_outputs_that_are_all_alike() -> None:
    """All samples share a large mean, so that even the answer for another sample has a cosine of 0.9999."""
    generator = np.random.default_rng(0)
    rows = [{"y": (100 + generator.normal(size=(1, 50))).astype(np.float32)} for _ in range(6)]
    figures = compare(rows, rows[1:] + rows[:1])
    assert figures["cos"] > 0.9998 and "hardly distinguishes" in why_cosine_misleads(figures, 0.9998)
    apart = [{"y": generator.normal(size=(1, 50)).astype(np.float32)} for _ in range(6)]
    assert why_cosine_misleads(compare(apart, apart), 0.999) == ""
    assert "answers differ" in why_cosine_misleads({"cos": 0.9999, "cos_others": 0.1, "agree": 90.0}, 0.999)


@pytest.mark.parametrize(
    "shape, axis",
    [
        ((1, 10), 1),
        ((1, 7, 10), 2),
        ((1, 21, 65, 64), 1),
        ((1, 65, 64, 21), 3),
        ((1, 1000, 1, 1), 1),
        ((1, 1, 1, 10), 3),
        ((1, 1, 64, 64), None),
        ((1, 64, 64, 1), None),
        ((1, 1), None),
        ((5,), None),
    ],
)
def test_where_the_classes_are(shape: tuple[int, ...], axis: int | None) -> None:
    assert class_axis(shape) == axis


def test_places_found_count_and_the_empty_rest_does_not() -> None:
    wanted, got = np.zeros((1, 1, 8, 8), np.float32), np.zeros((1, 1, 8, 8), np.float32)
    wanted[..., :4], got[..., 2:4] = 0.9, 0.8
    assert count_same({"map": wanted}, {"map": got}, (8, 8)) == {"map": (32, 48)}
    assert count_same({"image": wanted * 200}, {"image": got * 200}, (8, 8)) == {}


def test_boxes_of_a_class_that_overlap_are_the_same() -> None:
    boxes = np.float32([[0.1, 0.1, 0.4, 0.4], [0.5, 0.5, 0.9, 0.9], [0.0, 0.6, 0.3, 0.9]])[None]
    scores = np.float32([[0.1, 0.9], [0.2, 0.8], [0.95, 0.05]])[None]  # the first column is the background
    moved, other = boxes + np.float32(0.02), scores.copy()
    other[0, 1] = 0.9, 0.1
    wanted = {"boxes": boxes, "scores": scores}
    assert count_same(wanted, {"boxes": moved, "scores": scores}, (100, 100)) == {"boxes": (4, 4)}
    assert count_same(wanted, {"boxes": moved, "scores": other}, (100, 100)) == {"boxes": (2, 3)}
    assert count_same(wanted, {"boxes": boxes + np.float32(0.3), "scores": scores}, (100, 100))["boxes"][0] == 0
