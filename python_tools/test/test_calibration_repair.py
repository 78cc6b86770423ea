# SPDX-License-Identifier: Apache-2.0
"""Tests which tensors get 16 bits and which ops get residual weights if the error of int8 exceeds the allowed error."""
from __future__ import annotations

from dataclasses import dataclass, field, replace
from types import SimpleNamespace

import numpy as np
import pytest

from tessera.calibration import repair
from tessera.calibration.contractions import Contraction
from tessera.calibration.speed import Speed
from tessera.calibration.table import Entry, Table
from tessera.calibration.trial import Tried, Way


def table_of(errors: dict[str, float], same_answers: tuple[str, ...] = ()) -> Table:
    entries = tuple(Entry.make(name, 1.0, -1.0, 1.0, True, "mse", error) for name, error in errors.items())
    return Table("m", "", "auto", 4, "", entries, same_answers=same_answers)


@dataclass(frozen=True)
class Model:
    """A trial of a model in which the squared errors of tensors and of weights (by result) add up."""

    weights: dict[str, float]
    precision: str = "INT8"
    groups: dict[str, int] | None = None
    stubborn: dict[str, float] = field(default_factory=dict)
    attention: dict[str, tuple[str, float]] = field(default_factory=dict)
    widened: tuple[str, ...] = ()
    """Tensors that the compiler widens while the table does not decide types and has no other int16."""

    def run(self, job, dataset, numbers, ways) -> list[Tried]:
        table = ways[0].table
        if not table.decides_types and all(e.dtype == "int8" for e in table.tensors):
            table = table.decided(self.widened)
        fixed = [e for e in table.tensors if e.dtype == "int16" and e.name in self.attention]
        left = [e for e in table.tensors if e.dtype == "int8" and e.error] + fixed if self.precision == "INT8" else []
        whole = {e.name for e in table.tensors if e.weight_terms == 2}
        squares = [error**2 for name, error in self.weights.items() if name not in whole]
        narrow = {e.name for e in left}
        wider = ("int16",) if self.precision == "INT8" else ("int8", "int16")
        wide = [e.name for e in table.tensors if e.dtype in wider and e.name not in narrow]
        squares += [self.stubborn[name] ** 2 for name in wide if name in self.stubborn]
        error = sum([*squares, *(e.error**2 for e in left)]) ** 0.5
        groups = self.groups or {}
        forms = {e.name: (float(groups.get(e.name, i)), 0) for i, e in enumerate(left, 100)}
        return [Tried(error, forms, {name: (float(i), 32767) for i, name in enumerate(wide)}, self.attention)]


@pytest.fixture
def repaired(monkeypatch: pytest.MonkeyPatch):
    def repaired(
        weights: float | dict[str, float],
        table: Table,
        sizes: dict[str, int],
        max_error: float = 0.03,
        groups: dict[str, int] | None = None,
        stored: dict[str, int] = {},
        at_any_price: bool = False,
        stubborn: dict[str, float] = {},
        attention: dict[str, tuple[str, float]] = {},
        widened: tuple[str, ...] = (),
        speed: Speed | None = None,
    ) -> repair.Repaired:
        """Repairs a model. weights: errors of the weights by result; some are names without another remedy. sizes:
        multiplications of an op that reads each tensor, which has one element, and computes the tensor of its name with
        a prime; stored: weights of that op. stubborn: errors of tensors in 16 bits."""
        shapes = {name: (1,) for name in sizes} | {f"{name}'": (1,) for name in sizes}
        observed = SimpleNamespace(shape_of=shapes, job=lambda: None)
        contractions = [
            SimpleNamespace(name=f"{name}'", input=name, depth=size, weight=np.zeros(stored.get(name, 0)))
            for name, size in sizes.items()
        ]
        errors = weights if isinstance(weights, dict) else {"elsewhere": weights}
        monkeypatch.setattr(repair.TableTrials, "weight_squares", {name: e**2 for name, e in errors.items()})
        squares_wide = {name: error**2 for name, error in stubborn.items()}
        monkeypatch.setattr(repair.TableTrials, "wide_squares", lambda bench, wide: squares_wide)
        model, way = Model(errors, "INT8", groups, stubborn, attention, widened), Way(table, {}, {})
        return repair.repair(model, observed, None, [0], contractions, way, max_error, at_any_price, speed=speed)

    return repaired


def test_what_is_exact_enough_stays(repaired) -> None:
    table = table_of({"a": 0.02, "b": 0.01})
    assert repaired(0.0, table, {"a": 1, "b": 1}).table == table


@pytest.mark.parametrize("size", [1, 1000])
def test_one_tensor_that_carries_the_error_gets_16_bits_whatever_it_costs(repaired, size: int) -> None:
    found = repaired(0.01, table_of({"a": 0.005, "b": 0.2, "c": 0.005}), {"a": 500, "b": size, "c": 500})
    assert found.tensors == ("b",) and found.before > 0.2 and found.after < 0.03


def test_error_that_lies_everywhere_alike_is_bought_off_only_where_samples_say_nothing(repaired) -> None:
    """Otherwise it is repaired for at most a twentieth of the multiplications, in any number of rounds."""
    errors, sizes = {str(i): 0.02 for i in range(100)}, {str(i): 10 for i in range(100)}
    assert len(repaired(0.0, table_of(errors), sizes).tensors) == 5
    found = repaired(0.0, table_of(errors, ("out",)), sizes)
    assert found.after <= 0.03 * repair.UNSEEN and len(found.tensors) in (99, 100)


def test_an_error_that_samples_do_not_show_is_repaired_though_it_is_small(repaired) -> None:
    """Samples without a face hardly show what int8 costs where there is one. An error that the user states is taken
    literally."""
    errors, sizes = {"a": 0.01, "b": 0.001}, {"a": 10, "b": 10}
    assert not repaired(0.0, table_of(errors), sizes).tensors
    assert repaired(0.0, table_of(errors, ("out",)), sizes).tensors == ("a",)
    assert not repaired(0.0, table_of(errors, ("out",)), sizes, at_any_price=True).tensors


def test_what_the_compiler_widens_stays_wide_whatever_is_repaired(repaired) -> None:
    """The compiler's budget depends on the other tensors: without the fix, 'b' falls back to 8 bits as soon as 'a' has
    16."""
    found = repaired(0.0, table_of({"a": 0.2, "b": 0.1, "c": 0.001}), {"a": 1, "b": 1, "c": 98}, widened=("b",))
    assert found.table.decides_types and set(found.tensors) == {"a", "b"} and found.after < 0.03


def test_attention_has_no_16_bits_and_is_computed_in_f32(repaired) -> None:
    """q, k and v are one remedy, which costs three times the multiplications of the attention."""
    table, sizes = table_of({"q": 0.05, "v": 0.1, "c": 0.01}), {"q": 0, "v": 0, "c": 1000}
    found = repaired(0.0, table, sizes, attention={"q": ("q", 10.0), "v": ("q", 10.0)})
    assert set(found.floats) == {"q", "v"} and found.tensors == () and found.after < 0.03
    alike = {name: (name, 30.0) for name in "qrs"}
    found = repaired(0.0, table_of(dict.fromkeys("qrs", 0.1)), {**dict.fromkeys("qrs", 0), "c": 1000}, attention=alike)
    assert found.floats == () == found.tensors


def test_where_repairs_leave_no_gain_all_is_f32(repaired) -> None:
    table, sizes = table_of({"a": 0.1, "b": 0.1}, ("out",)), {"a": 10, "b": 10}
    rates = {"INT8": 4.0, "INT16": 1.04, "F32": 1.0}
    contractions = [Contraction(f"{name}'", name, "matmul", np.zeros((10, 1), np.float32)) for name in sizes]
    speed = Speed("chip", rates, contractions, {"a'": 1.0, "b'": 1.0})
    found = repaired(0.0, table, sizes, speed=speed)
    assert set(found.floats) == {"a", "b"} and found.after == 0.0 and found.time == 1.0
    speed = replace(speed, rates={**rates, "INT16": 2.0})
    assert repaired(0.0, table, sizes, speed=speed).tensors == ("a", "b")


def test_what_somebody_asks_for_is_bought_at_any_price(repaired) -> None:
    errors, sizes = {str(i): 0.02 for i in range(100)}, {str(i): 10 for i in range(100)}
    assert repaired(0.0, table_of(errors), sizes, at_any_price=True).after <= 0.03


def test_files_do_not_grow_by_more_than_a_twentieth_of_the_weights(repaired) -> None:
    table = table_of({name: 0.1 for name in "abcdef"})
    stored = {"a": 0, "b": 4, "c": 60, "d": 4, "e": 30, "f": 2}
    assert repaired(0.0, table, {name: 0 for name in stored}, stored=stored).tensors == ("a", "b")


def test_what_is_widened_together_is_paid_together(repaired) -> None:
    """A tensor without multiplications has a cost if it is joined with an expensive tensor."""
    table, sizes = table_of({n: 0.02 for n in "abcd"}), {"a": 0, "b": 30, "c": 30, "d": 30}
    assert repaired(0.0, table, sizes).tensors == ("a",)
    assert not repaired(0.0, table, sizes, groups={"a": 1, "b": 1}).tensors


def test_what_weights_leave_over_gets_second_products(repaired) -> None:
    """16 bits would not help: only the op whose weights cause the error gets a second matmul, which costs as many
    multiplications as the first."""
    table = table_of({"a": 0.001, "b": 0.001, "a'": 0.0, "b'": 0.0})
    found = repaired({"a'": 0.1, "b'": 0.001}, table, {"a": 400, "b": 600})
    assert (found.tensors, found.split) == ((), ("a'",)) and found.floor > 0.1 > 0.03 > found.after
    assert [e.weight_terms for e in found.table.tensors] == [None, None, 2, None]
    assert repair.describe_repair(found, "relative error").startswith("1 ops with residual weights: relative error 1")


def test_where_16_bits_are_enough_there_is_no_second_product(repaired) -> None:
    table = table_of({"b": 0.1, "a'": 0.0})
    found = repaired({"a'": 0.1}, table, {"a": 50, "b": 200}, max_error=0.11, at_any_price=True)
    assert (found.tensors, found.split) == (("b",), ())
    found = repaired({"a'": 0.1}, table, {"a": 50, "b": 200}, max_error=0.09, at_any_price=True)
    assert (found.tensors, found.split) == (("b",), ("a'",))


def test_the_better_remedies_are_kept_where_none_is_enough(repaired) -> None:
    """Both remedies are within the budget, but 16 bits reduce the error less than a second matmul."""
    table = table_of({"a": 0.02, "b": 0.1, "a'": 0.0, "b'": 0.0})
    found = repaired({"a'": 0.1}, table, {"a": 100, "b": 9900}, max_error=0.01)
    assert found.split == ("a'",) and found.after < found.before


def test_weights_without_a_remedy_of_their_own_cannot_be_undercut(repaired) -> None:
    found = repaired(0.1, table_of({"a": 0.2, "b": 0.01}), {"a": 1, "b": 99})
    assert found.floor == pytest.approx(0.1) and found.tensors == ("a",)


def test_told_as_int16_in_the_table(repaired, tmp_path) -> None:
    from tessera.calibration.table import load

    table = repaired(0.0, table_of({"a": 0.2, "b": 0.01}), {"a": 1, "b": 9}).table
    table.save(tmp_path / "t.json")
    assert [e.dtype for e in load(tmp_path / "t.json").tensors] == ["int16", "int8"]


def test_where_16_bits_are_not_enough_f32_that_costs_little_is_bought(repaired) -> None:
    """Tensors that no product reads cost no multiplications; a small product is within a twentieth of them."""
    table = table_of({"a": 0.9, "b": 0.5, "c": 0.01})
    found = repaired(0.001, table, {"a": 0, "b": 15, "c": 985}, stubborn={"a": 0.8, "b": 0.3})
    assert set(found.floats) == {"a", "b"} and found.tensors == () and found.after < 0.03 and found.floor > 0.8
    assert "2 tensors in f32" in repair.describe_repair(found, "relative error")


def test_f32_is_bought_for_what_has_16_bits_already(repaired) -> None:
    table = table_of({"a": 0.9, "b": 0.001})
    table = replace(table, tensors=tuple(replace(e, dtype="int16" if e.name == "a" else "int8") for e in table.tensors))
    found = repaired(0.001, table, {"a": 0, "b": 1000}, stubborn={"a": 0.8})
    assert found.floats == ("a",) and found.after < 0.03


def test_f32_of_much_of_the_network_is_beyond_the_budget(repaired) -> None:
    """The cost is three times the multiplications of each product. It exceeds the budget although it would halve the
    error."""
    table = table_of({"a": 0.1, "b": 0.1, "c": 0.1})
    found = repaired(0.001, table, {"a": 300, "b": 300, "c": 400}, stubborn={"a": 0.1, "b": 0.1, "c": 0.1})
    assert found.floats == ()
