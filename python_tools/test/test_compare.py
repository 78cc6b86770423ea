# SPDX-License-Identifier: Apache-2.0
"""Compares metrics with numbers computed by hand, and tests comparisons that must not pass."""
from __future__ import annotations

import math

import numpy as np
import pytest

from tessera.compare import Tolerance, add_own_errors, compare, compare_tensor, format_table, row_dict, to_csv
from tessera.errors import ExitCode, TesseraError

STRICT = Tolerance(0.9999, 0.999)


def row(got: list, ref: list, tolerance: Tolerance = STRICT):
    return compare_tensor("t", np.asarray(got, np.float32), np.asarray(ref, np.float32), tolerance)


def test_metrics_by_hand() -> None:
    r = row([3, 4, 0], [3, 0, 4])
    assert math.isclose(r.cosine, 9 / 25)
    assert math.isclose(r.rel_l2, math.sqrt(32) / 5)
    assert math.isclose(r.sqnr_db, 10 * math.log10(25 / 32))
    assert r.max_abs == 4 and r.max_of_range == 1 and not r.passed


def test_equal_and_all_zero() -> None:
    assert row([1, 2], [1, 2]).passed and row([1, 2], [1, 2]).sqnr_db == math.inf
    assert row([0, 0], [0, 0]).passed
    assert not row([0, 1e-3], [0, 0]).passed and not row([0, 0], [0, 1]).passed


def test_scaled_result_has_cosine_1_but_fails_on_euclid() -> None:
    r = row([2, 4], [1, 2])
    assert math.isclose(r.cosine, 1.0) and not r.passed


def test_floor_lets_tiny_errors_pass_and_says_so() -> None:
    tolerance = Tolerance(0.9999, 0.999, floor=2.0**-22)
    r = row([3e-8, 1e-7], [1e-8, 2e-7], tolerance)
    assert r.passed and "below" in r.note and not row([3e-8, 1e-7], [1e-8, 2e-7]).passed
    assert not row([3e-7, 0], [0, 0], tolerance).passed
    assert not row([np.nan, 0], [0, 0], tolerance).passed


def test_chunks_add_up() -> None:
    generator = np.random.default_rng(1)
    ref = generator.normal(size=(3 << 20) + 7).astype(np.float32)
    got = ref + generator.normal(size=ref.size).astype(np.float32) * 1e-3
    r = compare_tensor("t", got, ref, STRICT)
    e = got.astype(np.float64) - ref
    assert math.isclose(r.rel_l2, float(np.linalg.norm(e) / np.linalg.norm(ref.astype(np.float64))), rel_tol=1e-9)
    assert r.max_abs == np.abs(e).max()


@pytest.mark.parametrize(
    "got, ref, passed",
    [
        ([np.nan, 1], [2, 1], False),
        ([2, 1], [np.nan, 1], False),
        ([np.inf, 1], [-np.inf, 1], False),
        ([np.nan, 1], [np.nan, 1], True),
        ([-np.inf, 1], [-np.inf, 1], True),
    ],
)
def test_nan_is_reported_and_must_agree(got: list, ref: list, passed: bool) -> None:
    r = row(got, ref)
    assert r.passed is passed and r.non_finite == 1 and "NaN/inf" in r.note


def test_shape_and_type() -> None:
    r = compare_tensor("t", np.zeros((1, 4), np.float32), np.zeros(4, np.float32), STRICT)
    assert not r.passed and "shape [1, 4] instead of [4]" in r.note
    assert "type float64" in compare_tensor("t", np.ones(2), np.ones(2, np.float32), STRICT).note


def test_nothing_compared_is_a_failure() -> None:
    result = compare({"a": np.ones(2)}, {"b": np.ones(2)}, STRICT)
    assert not result.passed and result.missing == ["b"] and result.extra == ["a"]
    with pytest.raises(TesseraError, match="nothing was compared"):
        result.require_passed("x")
    empty = compare({"a": np.ones(2)}, {"a": np.ones(2)}, STRICT, excepts=["a"])
    assert not empty.passed


def test_failure_has_exit_code_3_and_names_the_worst() -> None:
    result = compare({"a": np.ones(2), "b": np.array([1.0, 0])}, {"a": np.ones(2), "b": np.array([0.0, 1])}, STRICT)
    with pytest.raises(TesseraError, match="1 of 2 tensors .* the worst is 'b'") as caught:
        result.require_passed("x")
    assert caught.value.code == ExitCode.ACCURACY
    assert [r.name for r in result.rows] == ["b", "a"]
    assert format_table(result).splitlines()[2].startswith("b ")
    assert to_csv(result).splitlines()[1].startswith("b,")


def test_broken_rows_are_those_no_rounding_explains() -> None:
    ones = np.ones(4, np.float32)
    got = {
        "coarse": ones * np.float32([1, 1, 1, -1]),
        "nan": ones * np.float32(np.nan),
        "shape": np.ones(5, np.float32),
    }
    comparison = compare(got, {name: ones for name in got}, Tolerance(0.99, 0.99))
    assert len(comparison.failed) == 3
    assert "below" in format_table(comparison, below="below") and "FAIL" not in format_table(comparison, below="below")


def test_misspelt_exception_is_an_error() -> None:
    with pytest.raises(TesseraError, match="'c'"):
        compare({"a": np.ones(2)}, {"a": np.ones(2)}, STRICT, excepts=["c"])


def test_json_has_no_nan() -> None:
    values = row_dict(compare_tensor("t", np.zeros(3), np.zeros(4), STRICT))
    assert values["cosine"] is None


@pytest.mark.parametrize("text", ["", "a", "0.9,0.9,0.9", "1.1", "nan"])
def test_bad_tolerance(text: str) -> None:
    with pytest.raises(TesseraError) as caught:
        Tolerance.parse(text)
    assert caught.value.code == ExitCode.USAGE


def test_own_error_has_its_share_of_the_squares() -> None:
    ref = {"a": np.array([3, 4], np.float32), "b": np.array([5, 0], np.float32)}
    result = compare({"a": np.array([3, 5], np.float32), "b": np.array([5, 0], np.float32)}, ref, STRICT)
    assert "own" not in format_table(result)
    add_own_errors(result, {"a": np.array([3.0, 4.5], np.float32), "b": np.array([5, 1], np.float32)}, ref)
    a, b = result.rows
    assert math.isclose(a.own_rel_l2, 0.1) and math.isclose(a.own_share, 0.25) and math.isnan(b.own_share)
    assert "1.00e-01 =  25 %" in format_table(result) and "2.00e-01 = -" in format_table(result)


def test_the_first_bad_tensor_is_named() -> None:
    """The table begins with the worst tensor, whose error often comes from an earlier one."""
    ref = {name: np.float32([1, 2, 3]) for name in "abcd"}
    got = {"a": ref["a"], "b": np.float32([1, 2, 3.1]), "c": np.float32([3, 2, 1]), "d": np.float32([3, 2, 0])}
    assert "the first outside, in the order of computation, is 'b'" in format_table(compare(got, ref, STRICT), limit=1)
    assert "the first outside" not in format_table(compare({**ref, "c": got["c"]}, ref, STRICT))
