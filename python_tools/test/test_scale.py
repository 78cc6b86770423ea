# SPDX-License-Identifier: Apache-2.0
"""Tests points: one unit for all drops, whatever a score's scale is."""
from __future__ import annotations

import math

import pytest

from tessera.errors import TesseraError
from tessera.tasks.scale import Scale, assumed, declared, serious_warning


def test_a_share_and_a_percentage_lose_the_same_points() -> None:
    share, percent = Scale(1).loss(0.964, 0.307), Scale(100).loss(96.4, 30.7)
    assert share.points == pytest.approx(percent.points) == pytest.approx(65.7)
    assert str(share) == "0.964 -> 0.307, 65.7 points"


def test_perplexity_is_counted_in_percent_of_f32() -> None:
    loss = Scale(None, lower_is_better=True).loss(3.5, 3.57)
    assert loss.points == pytest.approx(2) and str(loss) == "3.5 -> 3.57, 2 points"
    assert "gained" in str(Scale(None, lower_is_better=True).loss(3.5, 3.43))


@pytest.mark.parametrize("golden, full", [(0.964, 1), (1.0, 1), (96.4, 100), (29.7, 100), (-35.0, 100), (0.0, 100)])
def test_an_undeclared_scale_is_assumed_and_reported(golden: float, full: float) -> None:
    scale = assumed(golden)
    assert scale.full == full and f"SCALE = {full}" in scale.note


@pytest.mark.parametrize("value", ["1", True, None, 0, -1, math.nan, math.inf])
def test_a_bad_declaration_is_an_error(value: object) -> None:
    with pytest.raises(TesseraError, match="SCALE is .*; expected a positive number"):
        declared(value, "--scorer s.py")


def test_more_than_a_third_of_the_score_is_serious() -> None:
    assert not Scale(1).loss(0.9, 0.61).is_serious and Scale(1).loss(0.9, 0.59).is_serious
    assert not Scale(1).loss(0.3, 0.9).is_serious and Scale(1).loss(0.03, 0.01).is_serious
    assert Scale(1).loss(0.9, math.nan).is_serious and Scale(None, True).loss(3.0, 4.1).is_serious
    text = serious_warning("m.bmodel", Scale(1).loss(0.964, 0.307), "right")
    assert text == "m.bmodel loses more than a third of the f32 model's right: 0.964 -> 0.307, 65.7 points"
