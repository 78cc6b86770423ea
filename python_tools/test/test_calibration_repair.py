# SPDX-License-Identifier: Apache-2.0
"""Which tensors get 16 bits, where int8 leaves more error than is allowed."""
from __future__ import annotations

from dataclasses import dataclass
from types import SimpleNamespace

import numpy as np
import pytest

from tessera.calibration import repair
from tessera.calibration.table import Entry, Table
from tessera.calibration.trial import Tried, Way


def table_of(errors: dict[str, float], same_answers: tuple[str, ...] = ()) -> Table:
    entries = tuple(Entry.make(name, 1.0, -1.0, 1.0, True, "mse", error) for name, error in errors.items())
    return Table("m", "", "auto", 4, "", entries, same_answers=same_answers)


@dataclass(frozen=True)
class Model:
    """A trial of a model whose tensors' errors add up as squares with that of the weights."""

    weights: float
    precision: str = "INT8"
    groups: dict[str, int] | None = None

    def run(self, job, dataset, numbers, ways) -> list[Tried]:
        left = [e for e in ways[0].table.tensors if e.dtype == "int8"] if self.precision == "INT8" else []
        error = (self.weights**2 + sum(e.error**2 for e in left)) ** 0.5
        groups = self.groups or {}
        return [Tried(error, {e.name: (float(groups.get(e.name, i)), 0) for i, e in enumerate(left, 100)})]


def repaired(
    weights: float,
    table: Table,
    sizes: dict[str, int],
    max_error: float = 0.03,
    groups: dict[str, int] | None = None,
    stored: dict[str, int] = {},
) -> repair.Repaired:
    """sizes: multiplications that read each tensor, of one element; stored: weights that do."""
    shapes = {name: (1,) for name in sizes} | {f"{name}'": (1,) for name in sizes}
    observed = SimpleNamespace(shape_of=shapes, job=lambda: None)
    products = [
        SimpleNamespace(name=f"{name}'", input=name, depth=size, weight=np.zeros(stored.get(name, 0)))
        for name, size in sizes.items()
    ]
    return repair.repair(Model(weights, groups=groups), observed, None, [0], products, Way(table, {}, {}), max_error)


def test_what_is_exact_enough_stays() -> None:
    table = table_of({"a": 0.02, "b": 0.01})
    assert repaired(0.0, table, {"a": 1, "b": 1}).table == table


@pytest.mark.parametrize("size", [1, 1000])
def test_one_tensor_that_carries_the_error_gets_16_bits_whatever_it_costs(size: int) -> None:
    found = repaired(0.01, table_of({"a": 0.005, "b": 0.2, "c": 0.005}), {"a": 500, "b": size, "c": 500})
    assert found.tensors == ("b",) and found.before > 0.2 and found.after < 0.03


def test_error_that_lies_everywhere_alike_is_bought_off_only_where_samples_say_nothing() -> None:
    """Else for a twentieth of the multiplications, in however many rounds."""
    errors, sizes = {str(i): 0.02 for i in range(100)}, {str(i): 10 for i in range(100)}
    assert len(repaired(0.0, table_of(errors), sizes).tensors) == 5
    found = repaired(0.0, table_of(errors, ("out",)), sizes)
    assert found.after <= 0.03 and len(found.tensors) in (97, 98)


def test_files_do_not_grow_by_more_than_a_twentieth_of_the_weights() -> None:
    table = table_of({name: 0.1 for name in "abcdef"})
    stored = {"a": 0, "b": 4, "c": 60, "d": 4, "e": 30, "f": 2}
    assert repaired(0.0, table, {name: 0 for name in stored}, stored=stored).tensors == ("a", "b")


def test_what_is_widened_together_is_paid_together() -> None:
    """A tensor that nothing multiplies, but that is joined with one that costs much, is not for free."""
    table, sizes = table_of({n: 0.02 for n in "abcd"}), {"a": 0, "b": 30, "c": 30, "d": 30}
    assert repaired(0.0, table, sizes).tensors == ("a",)
    assert not repaired(0.0, table, sizes, groups={"a": 1, "b": 1}).tensors


def test_the_weights_part_cannot_be_undercut() -> None:
    found = repaired(0.1, table_of({"a": 0.2, "b": 0.01}), {"a": 1, "b": 99})
    assert found.floor == pytest.approx(0.1) and found.tensors == ("a",)


def test_told_as_int16_in_the_table(tmp_path) -> None:
    from tessera.calibration.table import load

    table = repaired(0.0, table_of({"a": 0.2, "b": 0.01}), {"a": 1, "b": 9}).table
    table.save(tmp_path / "t.json")
    assert [e.dtype for e in load(tmp_path / "t.json").tensors] == ["int16", "int8"]
