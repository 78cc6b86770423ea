# SPDX-License-Identifier: Apache-2.0
"""Tests that wide inputs stay within the allowed range of a network, and that the check with them finds range faults
but reports no rounding."""
from __future__ import annotations

from typing import Callable, Collection, Mapping

import numpy as np
import pytest

from tessera import wide_check
from tessera.inputs import InputSpec, Uses, random_inputs
from tessera.top_model import Cone
from tessera.wide_inputs import are_wide, wide_inputs

Array = np.ndarray


def drawn(dtype: str, uses: Uses | None, shape: tuple[int, ...] = (4000,)) -> Array:
    return wide_inputs([InputSpec("x", shape, dtype, uses=uses)])["x"]


def test_floats_of_elementwise_networks_are_large_tiny_zero_and_special() -> None:
    x = drawn("float32", Uses(reaches=frozenset({"exp", "return"})))
    finite = np.abs(x[np.isfinite(x)])
    assert np.isnan(x).any() and np.isposinf(x).any() and np.isneginf(x).any()
    assert finite.max() > 1e30 and 0 < finite[finite > 0].min() < 1e-30 and (finite == 0).any()
    assert np.isfinite(drawn("float32", Uses(reaches=frozenset({"relu", "return"})))).all()


def test_floats_that_are_summed_are_finite_and_moderate() -> None:
    x = drawn("float32", Uses(reaches=frozenset({"conv", "relu", "return"})))
    assert np.isfinite(x).all() and 100 < np.abs(x).max() < 1e4


def test_integers_keep_what_the_network_needs() -> None:
    spec = InputSpec("x", (4000,), "int64", uses=Uses(is_fixed=True))
    assert not are_wide([spec], wide_inputs([spec]))
    index = drawn("int64", Uses(index_below=7, reaches=frozenset({"gather", "matmul"})))
    assert index.min() == 0 and index.max() == 6
    divisor = drawn("int64", Uses(divides=True, reaches=frozenset({"div", "return"})))
    assert (divisor != 0).all() and np.iinfo(np.int64).min not in divisor and np.abs(divisor).max() > 1e9
    summed = drawn("int8", Uses(reaches=frozenset({"add", "return"})))
    assert {-127, 127, 0} <= set(summed.tolist())
    mask = drawn("int64", Uses(reaches=frozenset({"cast", "softmax"})))
    assert set(mask.tolist()) <= {0, 1}


def test_default_inputs_divide_and_pick_too() -> None:
    specs = [
        InputSpec("divisor", (100,), "int64", uses=Uses(divides=True)),
        InputSpec("one", (100,), "int64", uses=Uses(index_below=1)),
    ]
    arrays = random_inputs(specs)
    assert (arrays["divisor"] > 0).all() and not arrays["one"].any()


def faults(
    op: str, right: Callable[[Array], Array], engine: Callable[[Array], Array], x: Array, also: str = ""
) -> list[wide_check.Fault]:
    """Returns the faults of an engine that computes y from x with one op, or with two."""
    cones = {"y": Cone([op, also] if also else [op], ["x"])}

    def evaluate(tensors: Mapping[str, Array], only: Collection[str]) -> tuple[dict[str, Array], dict[str, Cone]]:
        with np.errstate(all="ignore"):
            return {"y": right(tensors["x"].astype(np.float64)).astype(np.float32)}, cones

    with np.errstate(all="ignore"):
        return wide_check.find_faults({"x": x, "y": engine(x)}, evaluate, formulas=False).faults


WIDE = drawn("float32", Uses(reaches=frozenset({"exp", "return"})))


@pytest.mark.parametrize("function", [np.sin, np.exp, np.sqrt, np.reciprocal, np.tanh, np.abs])
def test_right_functions_pass(function: Callable[[Array], Array]) -> None:
    names = {"absolute": "abs"}
    assert not faults(names.get(function.__name__, function.__name__), function, lambda x: function(x), WIDE)


def test_range_faults_are_found() -> None:
    def clamped(x: Array) -> Array:
        return np.sin(np.clip(x, -1e6, 1e6))

    def flushed(x: Array) -> Array:
        return np.where(np.abs(1 / x) < 1e-20, np.float32(0), 1 / x)

    assert faults("sin", np.sin, clamped, WIDE)
    assert faults("reciprocal", np.reciprocal, flushed, WIDE)
    assert faults("relu", lambda x: np.maximum(x, 0), lambda x: np.maximum(x, 0) * np.float32(1 + 1e-5), WIDE)
    found = faults("neg", np.negative, lambda x: np.where(x > 1e30, np.float32(7), -x), WIDE)
    assert len(found) == 1 and "'y' (neg)" in str(found[0]) and ", 7 at [" in str(found[0])


def test_rounding_that_cancellation_enlarges_is_no_fault() -> None:
    x = np.random.default_rng(0).uniform(1, 2, (64, 256)).astype(np.float32)

    def centred(v: Array) -> Array:
        return (v - v.mean(-1, keepdims=True, dtype=v.dtype)) * v.dtype.type(1e3)

    def in_another_order(v: Array) -> Array:
        return (v - v[:, ::-1].cumsum(-1, dtype=np.float32)[:, -1:] / np.float32(256)) * np.float32(1e3)

    assert not faults("reduce", centred, in_another_order, x, also="sub")
    assert faults("reduce", centred, lambda v: in_another_order(v) * np.float32(1.01), x, also="sub")
