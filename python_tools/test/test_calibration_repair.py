# SPDX-License-Identifier: Apache-2.0
"""Which tensors get 16 bits, where int8 leaves more error than is allowed."""
from __future__ import annotations

from dataclasses import dataclass
from types import SimpleNamespace

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

    def run(self, job, dataset, numbers, ways) -> list[Tried]:
        left = [e for e in ways[0].table.tensors if e.dtype == "int8"] if self.precision == "INT8" else []
        error = (self.weights**2 + sum(e.error**2 for e in left)) ** 0.5
        return [Tried(error, frozenset(e.name for e in left))]


def repaired(weights: float, table: Table, sizes: dict[str, int], max_error: float = 0.03) -> repair.Repaired:
    observed = SimpleNamespace(shape_of={name: (size,) for name, size in sizes.items()}, job=lambda: None)
    return repair.repair(Model(weights), observed, None, [0], [], Way(table, {}, {}), max_error)


def test_what_is_exact_enough_stays() -> None:
    table = table_of({"a": 0.02, "b": 0.01})
    assert repaired(0.0, table, {"a": 1, "b": 1}).table == table


@pytest.mark.parametrize("size", [1, 1000])
def test_one_tensor_that_carries_the_error_gets_16_bits_whatever_it_costs(size: int) -> None:
    found = repaired(0.01, table_of({"a": 0.005, "b": 0.2, "c": 0.005}), {"a": 500, "b": size, "c": 500})
    assert found.tensors == ("b",) and found.before > 0.2 and found.after < 0.03


def test_error_that_lies_everywhere_alike_is_bought_off_only_where_samples_say_nothing() -> None:
    errors, sizes = {str(i): 0.02 for i in range(25)}, {str(i): 10 for i in range(25)}
    assert not repaired(0.0, table_of(errors), sizes).tensors
    found = repaired(0.0, table_of(errors, ("out",)), sizes)
    assert found.after <= 0.03 and len(found.tensors) in (23, 24)


def test_the_weights_part_cannot_be_undercut() -> None:
    found = repaired(0.1, table_of({"a": 0.2, "b": 0.01}), {"a": 1, "b": 99})
    assert found.floor == pytest.approx(0.1) and found.tensors == ("a",)


def test_told_as_int16_in_the_table(tmp_path) -> None:
    from tessera.calibration.table import load

    table = repaired(0.0, table_of({"a": 0.2, "b": 0.01}), {"a": 1, "b": 9}).table
    table.save(tmp_path / "t.json")
    assert [e.dtype for e in load(tmp_path / "t.json").tensors] == ["int16", "int8"]
