# SPDX-License-Identifier: Apache-2.0
"""Tests the cost of the multiplications of a table, and which ops are not slower in f32."""
from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tessera.calibration.contractions import Contraction
from tessera.calibration.speed import Forms, Speed
from tessera.calibration.table import Entry, Table
from tessera.calibration.trial import Tried

RATES = {"INT8": 4.0, "INT16": 2.0, "F32": 1.0, "WINOGRAD": 3.0}


def table_of(split: tuple[str, ...] = ()) -> Table:
    entries = [Entry.make(name, 1.0, -1.0, 1.0, True, "mse", 0.1) for name in ("x", "moved", "a", "y")]
    return Table("m", "", "auto", 4, "", tuple(replace(e, weight_terms=2) if e.name in split else e for e in entries))


def matmul(name: str, read: str) -> Contraction:
    return Contraction(name, read, "matmul", np.zeros((10, 10), np.float32))


def conv(name: str, read: str, kernel: int = 3) -> Contraction:
    weight = np.zeros((32, 32, kernel, kernel), np.float32)
    return Contraction(name, read, "conv", weight, 1, (1, 1), (1, 1, 1, 1), (1, 1))


def speed_of(*contractions: Contraction) -> Speed:
    return Speed.of("chip", RATES, contractions, {"x": (10,), "moved": (10,), "a": (10,), "y": (10,)})


def floats(table: Table) -> set[str]:
    return {entry.name for entry in table.tensors if entry.dtype == "float32"}


def test_a_second_product_of_int16_is_no_faster_than_f32() -> None:
    speed, wide = speed_of(matmul("a", "x")), {"x": (0.1, 32767), "moved": (0.1, 32767)}
    assert floats(speed.prefer_float(table_of(), Tried(0.0, {}, wide))) == set()
    assert floats(speed.prefer_float(table_of(("a",)), Tried(0.0, {}, wide))) == {"x", "moved"}
    assert floats(speed.prefer_float(table_of(("a",)), Tried(0.0, {"x": (0.1, 0)}))) == set()


def test_f32_multiplies_less_by_winograds_algorithm() -> None:
    tried = Tried(0.0, {}, {"x": (0.1, 32767)})
    assert floats(speed_of(conv("a", "x")).prefer_float(table_of(), tried)) == {"x"}
    assert floats(speed_of(conv("a", "x", kernel=1)).prefer_float(table_of(), tried)) == set()
    assert floats(speed_of(conv("a", "x")).prefer_float(table_of(), Tried(0.0, {"x": (0.1, 0)}))) == set()


def test_all_readers_of_a_tensor_count_together() -> None:
    tried = Tried(0.0, {}, {"x": (0.1, 32767)})
    speed = speed_of(matmul("a", "x"), matmul("y", "x"))
    assert floats(speed.prefer_float(table_of(("a",)), tried)) == set()
    assert floats(speed.prefer_float(table_of(("a", "y")), tried)) == {"x"}


def test_each_kind_of_repair_states_its_cost() -> None:
    speed = speed_of(matmul("a", "x"), matmul("y", "a"), matmul("moved", "y"))
    before = Forms({name: (0.1, 0) for name in "xay"}, {}, frozenset())
    assert speed.added(before, before) == {}
    after = Forms({}, {"x": (0.1, 32767), "a": (0.1, 32767)}, frozenset({"y"}))
    assert speed.added(before, after) == pytest.approx({"16 bits": 1 / 12, "residual weights": 0.25, "f32": 0.25})


def test_time_is_relative_to_f32() -> None:
    speed = speed_of(matmul("a", "x"), matmul("y", "a"))
    tried = Tried(0.0, {"x": (0.1, 0)}, {"a": (0.1, 32767)})
    assert speed.share_of_float(table_of(), tried) == pytest.approx((0.25 + 0.5) / 2)
    assert speed.share_of_float(table_of(("y",)), tried) == pytest.approx((0.25 + 1.0) / 2)
