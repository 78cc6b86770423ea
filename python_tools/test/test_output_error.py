# SPDX-License-Identifier: Apache-2.0
"""Output errors over several samples."""
from __future__ import annotations

import numpy as np
import pytest

from tessera.calibration.output_error import relative, squares


def test_samples_without_an_answer_do_not_count() -> None:
    """The values of an empty map are noise, so its relative error does not count."""
    full, empty = np.full(10, 0.5, np.float32), np.full(10, 1e-9, np.float32)
    found = relative([squares({"y": full}, {"y": full * 1.1}), squares({"y": empty}, {"y": empty * 5})])
    assert found == pytest.approx(0.01, rel=1e-5)


def test_outputs_count_alike_whatever_their_size() -> None:
    golden = {"small": np.full(4, 1e-3, np.float32), "large": np.full(4, 1e3, np.float32), "index": np.array([3])}
    got = {"small": golden["small"] * 1.2, "large": golden["large"], "index": np.array([7])}
    assert relative([squares(golden, got)]) == pytest.approx(0.02, rel=1e-5)


def test_values_that_are_not_finite_are_left_out() -> None:
    golden, got = np.array([1, np.inf, 1, np.nan], np.float32), np.array([2, 1, np.nan, 1], np.float32)
    assert relative([squares({"y": golden}, {"y": got})]) == 1
    assert relative([squares({"y": np.zeros(2, np.float32)}, {"y": np.ones(2, np.float32)})]) == pytest.approx(2)
    assert relative([squares({"i": np.zeros(2, int)}, {"i": np.ones(2, int)})]) == 0


def test_probabilities_count_as_what_made_them() -> None:
    """A class with a probability near 1 counts as much as an uncertain one. Probabilities that f32 cannot distinguish
    do not count."""
    sure, open_ = np.array([0.999, 0.001, 1e-9], np.float32), np.array([0.5, 0.4, 0.1], np.float32)
    lower = relative([squares({"y": sure}, {"y": np.array([0.998, 0.002, 1e-7], np.float32)}, {"y"})])
    assert lower > 1e-3 > relative([squares({"y": sure}, {"y": np.array([0.998, 0.002, 1e-7], np.float32)})])
    assert relative([squares({"y": sure}, {"y": np.array([0.999, 0.001, 1e-12], np.float32)}, {"y"})]) == 0
    assert 0 < relative([squares({"y": open_}, {"y": open_[::-1]}, {"y"})]) < 10


def test_one_sample_gone_astray_does_not_outweigh_the_others() -> None:
    golden = {"y": np.ones(4, np.float32)}
    small, astray = ({"y": golden["y"] * factor} for factor in (1.01, 2.0))
    assert relative([squares(golden, small)] * 9 + [squares(golden, astray)]) == pytest.approx((0.109) ** 2, rel=1e-4)
