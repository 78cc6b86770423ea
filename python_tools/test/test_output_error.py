# SPDX-License-Identifier: Apache-2.0
"""Tests output errors over several samples."""
from __future__ import annotations

import numpy as np
import pytest

from tessera.inputs import InputSpec
from tessera.output_error import DIFFERENT, LOG_ODDS, RELATIVE, Meter, OutputError, pick_samples, relative, squares


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
    assert relative([squares({"y": np.zeros(2, np.float32)}, {"y": np.ones(2, np.float32)})]) == pytest.approx(1)


def test_probabilities_count_as_what_made_them() -> None:
    """A class with a probability near 1 counts as much as an uncertain one. Probabilities that f32 cannot distinguish
    do not count."""
    sure, open_ = np.array([0.999, 0.001, 1e-9], np.float32), np.array([0.5, 0.4, 0.1], np.float32)
    lower = relative([squares({"y": sure}, {"y": np.array([0.998, 0.002, 1e-7], np.float32)}, {"y": "softmax"})])
    assert lower > 1e-3 > relative([squares({"y": sure}, {"y": np.array([0.998, 0.002, 1e-7], np.float32)})])
    assert relative([squares({"y": sure}, {"y": np.array([0.999, 0.001, 1e-12], np.float32)}, {"y": "softmax"})]) == 0
    assert 0 < relative([squares({"y": open_}, {"y": open_[::-1]}, {"y": "softmax"})]) < 10


def test_one_sample_gone_astray_does_not_outweigh_the_others() -> None:
    golden = {"y": np.ones(4, np.float32)}
    small, astray = ({"y": golden["y"] * factor} for factor in (1.01, 2.0))
    assert relative([squares(golden, small)] * 9 + [squares(golden, astray)]) == pytest.approx((0.109) ** 2, rel=1e-4)


def sigmoid(logits: object) -> np.ndarray:
    return np.float32(1 / (1 + np.exp(-np.asarray(logits, np.float64))))


def test_one_probability_for_each_sample() -> None:
    """Nothing varies within a sample: the error is that of the log-odds themselves, whether samples differ or not."""
    for logits in ((-4, 3, -2, 5), (4, 4, 4, 4)):
        samples = [squares({"p": sigmoid([each])}, {"p": sigmoid([1.02 * each])}, {"p": "sigmoid"}) for each in logits]
        assert relative(samples) ** 0.5 == pytest.approx(0.02, rel=1e-3)
        assert relative(samples[:1]) ** 0.5 == pytest.approx(0.02, rel=1e-3)


def test_labels_that_agree_within_a_sample() -> None:
    """Three labels, all present in one sample and all absent in the next."""
    samples = [
        squares({"p": sigmoid([x, x, x])}, {"p": sigmoid([1.01 * x] * 3)}, {"p": "sigmoid"}) for x in (-4.0, 4.0)
    ]
    assert relative(samples) ** 0.5 == pytest.approx(0.01, rel=1e-3)


def test_each_kind_of_output_has_an_error_with_a_name() -> None:
    meter = Meter({"p": "sigmoid"})
    y, ids = np.float32([3, 4]), np.arange(4)
    for x in (-2.0, 2.0):
        golden = {"y": y, "p": sigmoid([x]), "ids": ids, "gone": y, "other": y}
        meter.add(golden, {"y": y * 1.1, "p": sigmoid([1.2 * x]), "ids": ids ^ np.int64([1, 0, 0, 0]), "other": y[:1]})
    found = meter.result()
    assert {name: kind for name, (kind, _) in found.outputs.items()} == {"y": RELATIVE, "p": LOG_ODDS, "ids": DIFFERENT}
    assert [error for _, error in found.outputs.values()] == pytest.approx([0.1, 0.2, 0.25], rel=1e-4)
    assert found.error == pytest.approx((0.05 / 2) ** 0.5, rel=1e-4) and found.name == "output error"
    assert str(found) == (
        "output error 15.81% on 2 samples (share of different integers of 'ids' 25.00%, log-odds error of 'p' 20.00%, "
        "relative error of 'y' 10.00%)"
    )
    assert found.as_dict()["outputs"]["p"]["name"] == LOG_ODDS  # type: ignore[index]


def test_integers_count_where_there_is_nothing_else() -> None:
    meter = Meter({})
    meter.add({"label": np.array([1, 2, 3, 4])}, {"label": np.array([1, 2, 3, 5])})
    assert str(meter.result()) == "share of different integers 25.00% on 1 sample"
    nothing = OutputError(1, {})
    assert str(nothing) == "no output can be compared" and nothing.as_dict()["error"] is None


def test_samples_that_are_measured() -> None:
    """All commands measure the same 16 samples, or fewer if they are large."""
    assert pick_samples(range(100), []) == [i * 100 // 16 for i in range(16)]
    assert pick_samples({7, 3, 5}, []) == [3, 5, 7]
    assert pick_samples(range(100), [InputSpec("x", (16 << 20,), "float32")]) == [0, 50]
    assert pick_samples(range(100), [InputSpec("x", (64 << 20,), "float32")]) == [0]


def test_an_engine_that_gives_0_for_small_probabilities() -> None:
    """onnxruntime's sigmoid is exact to 2^-24 absolutely: below that only the other engine has digits."""
    golden, got = np.float32([0, 0.25]), np.float32([1e-20, 0.25])
    assert relative([squares({"p": golden}, {"p": got}, {"p": "sigmoid"})]) == 0
    assert relative([squares({"p": golden}, {"p": np.float32([1e-3, 0.25])}, {"p": "sigmoid"})]) > 0.1
