# SPDX-License-Identifier: Apache-2.0
"""Tests which deviations beyond the tolerance the verdict excuses, on networks of a few numpy ops with and without an
injected fault."""
from __future__ import annotations

from typing import Callable, Mapping

import numpy as np
import pytest

from tessera import tolerances, usability, verdict
from tessera.compare import compare
from tessera.onnx_facts import Freedom

Tensors = Mapping[str, np.ndarray]
Op = tuple[str, str, Callable[[np.ndarray], np.ndarray]]  # result, operand, and the function in double precision


def normalise(x: np.ndarray) -> np.ndarray:
    return (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-12)


def steps(x: np.ndarray) -> np.ndarray:
    return np.rint(x / 0.2) * 0.2


MATRIX = np.random.default_rng(5).normal(0, 0.2, (64, 64))
# Both norms have inputs that are nearly equal, so the rounding of float32 becomes visible.
NETWORK: tuple[Op, ...] = (
    ("shifted", "x", lambda x: x * 1e-4 + 8),
    ("norm", "shifted", normalise),
    ("product", "norm", lambda x: x @ MATRIX),
    ("y", "product", lambda x: 5 + 0.01 * x),
)
QUANTISED: tuple[Op, ...] = tuple(
    (f"t{i + 1}", f"t{i}", (lambda x: steps(x @ MATRIX)) if i % 2 == 0 else np.tanh) for i in range(12)
)


def run(
    network: tuple[Op, ...], x: np.ndarray, operands: Tensors = {}, rounding: float = 0, fault: str = ""
) -> dict[str, np.ndarray]:
    """Returns every op's result in float32, with its operand from `operands` if given. rounding: relative error added
    to every result."""
    tensors, seen = {network[0][1]: x}, {network[0][1]: x}
    generator = np.random.default_rng(1)
    for name, operand, function in network:
        exact = function(np.asarray(seen[operand], np.float64))
        exact = exact * (1 + rounding * generator.uniform(-1, 1, exact.shape))
        if name == fault:
            exact = exact * np.where(np.arange(exact.shape[-1]) == 3, 1.4, 1)
        tensors[name] = exact.astype(np.float32)
        seen[name] = operands.get(name, tensors[name])
    return tensors


def judged(network: tuple[Op, ...], quantises: bool, fault: str = "", rounding: float = 6e-8):
    x = np.random.default_rng(2).normal(0, 1, (16, 64)).astype(np.float32)
    right, engine = run(network, x), run(network, x, rounding=rounding, fault=fault)
    comparison = compare(engine, right, tolerances.DEFAULT["F32"])
    judge = verdict.Judge(lambda operands, only: run(network, x, operands), {network[-1][0]}, quantises)
    return comparison, judge.excuse(comparison, [engine])


def test_rounding_that_a_norm_enlarges_is_excused_and_a_fault_is_not() -> None:
    comparison, why = judged(NETWORK, False)
    assert comparison.passed and not why and {"norm", "product"} == {row.name for row in comparison.excused}
    for name, _, _ in NETWORK[1:]:
        comparison, why = judged(NETWORK, False, fault=name)
        assert not comparison.passed and not comparison.excused and f"'{name}' is wrong, computed" in why, name


def test_outputs_are_excused_only_where_the_model_rounds_to_integers() -> None:
    comparison, why = judged(QUANTISED, False, rounding=1e-4)
    assert "output 't12' is outside" in why and not comparison.passed
    comparison, why = judged(QUANTISED, True, rounding=1e-4)
    assert comparison.excused and comparison.passed and not why
    for fault in ("t1", "t6", "t9", "t12"):
        comparison, why = judged(QUANTISED, True, fault=fault, rounding=1e-4)
        assert not comparison.passed and f"'{fault}' is wrong, computed" in why and not comparison.excused


@pytest.mark.parametrize("changed, step, right", [(3, 1, True), (3, 2, False), (300, 1, False)])
def test_one_step_of_a_few_elements(changed: int, step: int, right: bool) -> None:
    q = np.random.default_rng(0).integers(-100, 100, 1000).astype(np.int8)
    other = q.copy()
    other[:changed] += np.int8(step)
    assert verdict.one_step(other, q) is right
    scale = np.float32(0.0371)
    assert verdict.one_step(other * scale, q * scale) is right


def test_an_offset_is_found_where_half_of_all_roundings_are_ties() -> None:
    """The sums are halves of steps, so rounding decides half of all elements. An offset of all elements by one step is
    still a fault."""
    x = np.random.default_rng(4).integers(-60, 60, (64, 64)).astype(np.float32) * np.float32(0.1)
    half: tuple[Op, ...] = (("sum", "x", lambda v: v * 0.5 + 0.0), ("y", "sum", lambda v: np.rint(v / 0.1) * 0.1))
    # As in a fused sum, the evaluator knows the rounding of the engine's operand, but not the rounding inside.
    fused: tuple[Op, ...] = (("y", "x", lambda v: half[1][2](half[0][2](v))),)
    noise = [run(fused, verdict.Perturbed({"x": x}, seed)["x"])["y"] for seed in range(verdict.PERTURBATIONS)]
    right, other = run(fused, x), run(fused, verdict.Perturbed({"x": x}, 9)["x"])
    assert np.mean(other["y"] != right["y"]) > 0.2
    assert verdict._below_noise(other["y"], right["y"], noise)
    assert not verdict._below_noise(other["y"] + np.float32(0.1), right["y"], noise)


def test_off_the_grid_is_no_step() -> None:
    generator = np.random.default_rng(0)
    values = generator.normal(size=1000).astype(np.float32)
    wrong = values.copy()
    wrong[7] += np.float32(0.05)
    assert not verdict.one_step(wrong, values)
    wrong[7] = np.nan
    assert not verdict.one_step(wrong, values)


def with_cosine(cosine: float) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    """Returns a sample whose output has the given cosine with the reference's."""
    return {"y": np.float32([1, 0])}, {"y": np.float32([cosine, np.sqrt(1 - cosine * cosine)])}


def test_a_quantised_model_is_broken_by_a_low_output() -> None:
    assert usability.unusable([with_cosine(0.49)]).startswith("output 'y' has cos 0.4900 with the reference, below")
    assert not usability.unusable([with_cosine(0.6)]) and not usability.unusable([])


def test_the_verdict_is_that_of_all_samples_together() -> None:
    low, high = with_cosine(0.2), with_cosine(0.9)
    assert not usability.unusable([low, high, high])
    assert "cos 0.4333 with the reference over 3 samples" in usability.unusable([low, low, high])


def test_labels_and_what_is_not_finite_have_no_cosine() -> None:
    labels = {"label": np.array([0, 3])}, {"label": np.array([3, 0])}
    assert not usability.unusable([labels])
    masked = {"y": np.float32([1, -np.inf])}, {"y": np.float32([1, -np.inf])}
    assert usability.output_cosines([masked]) == {"y": 1.0}


def test_perturbed_tensors_differ_by_little_and_keep_what_is_not_finite() -> None:
    array = np.array([1, -4, 0, np.inf, np.nan], np.float32)
    moved = verdict.Perturbed({"a": array})["a"]
    assert np.array_equal(moved[2:], array[2:], equal_nan=True)
    assert np.all(np.abs(moved[:2] / array[:2] - 1) <= 2**-19) and np.all(moved[:2] != array[:2])


def test_a_mask_that_rounding_flips_is_excused_and_another_one_is_not() -> None:
    """Elements that are equal except for rounding are compared, and a mask is made of the result."""
    x = np.random.default_rng(6).normal(0, 1, (64, 64)).astype(np.float32)
    network: tuple[Op, ...] = (
        ("tripled", "x", lambda v: v / 3 * 3),
        ("y", "tripled", lambda v: np.where(np.round(v * 4e6) % 2 > 0, -np.inf, v)),
    )
    right, engine = run(network, x), run(network, x, rounding=2e-7)
    judge = verdict.Judge(lambda operands, only: run(network, x, operands), set(), False)
    comparison = compare(engine, right, tolerances.DEFAULT["F32"])
    assert comparison.failed and not judge.excuse(comparison, [engine]) and comparison.passed
    engine["y"] = np.where(np.isinf(engine["y"]), np.float32(0), -np.inf).astype(np.float32)
    comparison = compare(engine, right, tolerances.DEFAULT["F32"])
    assert "'y' is wrong, computed" in judge.excuse(comparison, [engine]) and not comparison.passed


def test_an_ill_conditioned_output_is_excused_only_if_the_engine_moves_as_far() -> None:
    x = np.random.default_rng(2).normal(0, 1, (16, 64)).astype(np.float32)
    network = NETWORK[:2]  # the output is the norm of values that nearly cancel
    right, engine = run(network, x), run(network, x, rounding=6e-8)

    def excused(far: float) -> str:
        moved = right["norm"] + np.float32(far) * (engine["norm"] - right["norm"])
        rerun = lambda: [{"norm": (right["norm"], moved)}]  # noqa: E731
        comparison = compare(engine, right, tolerances.DEFAULT["F32"])
        judge = verdict.Judge(lambda operands, only: run(network, x, operands), {"norm"}, False, rerun=rerun)
        return judge.excuse(comparison, [engine])

    assert not excused(0.5)
    assert "output 'norm' is outside" in excused(0.1)


def test_an_order_that_is_left_open_is_excused_and_other_elements_are_not() -> None:
    values = np.arange(32, dtype=np.float32).reshape(4, 8)
    ref = {"top": values, "y": values.sum(-1)}
    judge = verdict.Judge(lambda operands, only: ref, {"y"}, False, Freedom(unordered={"top": -1}))
    for top, passes in ((values[:, ::-1], True), (values + 1, False)):
        comparison = compare({**ref, "top": top}, ref, tolerances.DEFAULT["F32"])
        assert (not judge.excuse(comparison, [{**ref, "top": top}])) is passes
        assert comparison.passed is passes
