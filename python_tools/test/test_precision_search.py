# SPDX-License-Identifier: Apache-2.0
"""Tests the search for mixed precision with invented errors; targets, costs and the journal."""
from __future__ import annotations

import math
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Mapping

import pytest

from tessera.cli import model_deploy
from tessera.errors import ExitCode, TesseraError
from tessera.precision import qtable
from tessera.precision.cost import Op, Rates, nanoseconds, share_of_f32, total
from tessera.precision.journal import Journal
from tessera.precision.search import Impossible, Measure, Search, units_of
from tessera.precision.target import Target, Verdict
from tessera.tasks.scale import Scale

RATES = Rates({"INT8": 480, "INT16": 240, "F32": 120}, 20)


def conv(name: str, products: int = 1_000_000) -> Op:
    return Op(name, "top.conv", "INT8", False, products, 1000, 10_000, 10_000)


@dataclass
class FakeEvaluator:
    """Every op adds its error in int8, the part `kept` of it in INT16, none in F32. The score is 1 minus the square
    root of their sum."""

    ops: list[Op]
    errors: Mapping[str, float]
    target: Target
    kept: float = 0.2
    rejected: frozenset[str] = frozenset()
    scores: list[dict[str, str]] = field(default_factory=list)
    measured: int = 0

    def _error(self, types: Mapping[str, str]) -> float:
        if any(type_ == "INT16" and name in self.rejected for name, type_ in types.items()):
            raise Impossible("refused")
        factor = {"INT8": 1.0, "INT16": self.kept, "F32": 0.0}
        return sum(error * factor[types.get(name, "INT8")] for name, error in self.errors.items())

    def cost(self, types: Mapping[str, str]) -> float:
        return total(self.ops, RATES, types)

    def measure(self, types: Mapping[str, str]) -> Measure:
        self.measured += 1
        return Measure(self._error(types), self.cost(types))

    def verdict(self, types: Mapping[str, str]) -> Verdict:
        self.scores.append(dict(types))
        return Verdict(self.target, {"score": 1 - self._error(types) ** 0.5}, "score", 1.0, Scale())


def search(evaluator: FakeEvaluator, *ladder: str):
    return Search(evaluator, ladder or ("F32",), lambda *unused: None).run(units_of(evaluator.ops))


def test_finds_the_few_ops_that_matter_in_few_runs() -> None:
    ops = [conv(f"c{i}") for i in range(120)]
    errors = {op.name: 1e-8 for op in ops} | {"c17": 4e-4, "c90": 1e-3, "c91": 2e-4}
    evaluator = FakeEvaluator(ops, errors, Target("drop", 1.5))
    found = search(evaluator)
    assert found.verdict.met and not found.base_verdict.met
    assert set(found.types) == {"c90", "c17"} and set(found.types.values()) == {"F32"}
    assert evaluator.measured < 50 and len(evaluator.scores) < 25


def test_nothing_changes_where_int8_is_good_enough() -> None:
    evaluator = FakeEvaluator([conv("a"), conv("b")], {"a": 1e-6, "b": 1e-6}, Target("drop", 0.5))
    found = search(evaluator)
    assert found.verdict.met and found.types == {} and evaluator.scores == [{}]


def test_cheap_ops_go_first() -> None:
    ops = [conv("large", 1_000_000_000), conv("small", 1_000)]
    found = search(FakeEvaluator(ops, {"large": 1e-4, "small": 1e-4}, Target("drop", 1.1)))
    assert set(found.types) == {"small"}


def test_lowest_rung_that_does_is_taken() -> None:
    ops = [conv(f"c{i}") for i in range(6)]
    errors = {"c0": 1e-4, "c1": 1e-4} | {f"c{i}": 1e-7 for i in range(2, 6)}
    enough = search(FakeEvaluator(ops, errors, Target("drop", 0.7)), "INT16", "F32")
    assert enough.verdict.met and enough.types == {"c0": "INT16", "c1": "INT16"}
    mixed = search(FakeEvaluator(ops, errors, Target("drop", 0.46)), "INT16", "F32")
    assert mixed.verdict.met and sorted((mixed.types["c0"], mixed.types["c1"])) == ["F32", "INT16"]


def test_a_rung_that_the_compiler_rejects_is_stepped_over() -> None:
    found = search(
        FakeEvaluator([conv("a"), conv("b")], {"a": 1e-4, "b": 1e-9}, Target("drop", 0.5), rejected=frozenset("a")),
        "INT16",
        "F32",
    )
    assert found.verdict.met and found.types["a"] == "F32"


def test_unreachable_gives_the_best_there_is() -> None:
    found = search(FakeEvaluator([conv("a"), conv("b")], {"a": 1e-4, "b": 1e-5}, Target("drop", -1.0)))
    assert not found.verdict.met and found.verdict.value == pytest.approx(0) and set(found.types) == {"a", "b"}


def test_int16_is_for_products_alone() -> None:
    silu = Op("s", "top.silu", "INT8", False, 0, 0, 10, 10)
    found = search(FakeEvaluator([conv("a"), silu], {"a": 1e-4, "s": 1e-12}, Target("drop", 0.6)), "INT16", "F32")
    assert found.types == {"a": "INT16"}


def test_units_leave_moves_and_float_ops_out() -> None:
    silu, move = Op("s", "top.silu", "INT8", False, 0, 0, 10, 10), Op("m", "top.reshape", "INT8", True, 0, 0, 10, 10)
    kept = Op("k", "top.softmax", "F32", False, 0, 0, 10, 10)
    assert [[op.name for op in unit] for unit in units_of([conv("a"), silu, move, kept, conv("b")])] == [
        ["a", "s"],
        ["b"],
    ]


@pytest.mark.parametrize(
    "text, metric, limit",
    [
        ("cos>=0.999", "cos", 0.999),
        (" drop <= 0.5 ", "drop", 0.5),
        ("drop<=-1", "drop", -1),
        ("sqnr>=25", "sqnr", 25),
        ("agree >= 99.5", "agree", 99.5),
    ],
)
def test_targets(text: str, metric: str, limit: float) -> None:
    assert Target.parse(text) == Target(metric, limit) and Target.parse(str(Target.parse(text))) == Target(
        metric, limit
    )


@pytest.mark.parametrize(
    "text, words",
    [
        ("cos", "expected one of"),
        ("", "expected one of"),
        ("cos>=0.9 drop<=1", "expected one of"),
        ("cosine>=0.9", "unknown metric 'cosine'; did you mean 'cos'?"),
        ("top1>=0.9", "unknown metric"),
        ("cos<=0.9", "compared with >="),
        ("drop>=0.5", "compared with <="),
        ("drop<0.5", "compared with <="),
        ("cos>=much", "'much' is not a number"),
        ("drop<=nan", "not a number"),
        ("cos>=1.2", "at most 1"),
        ("cos>=0", "above 0"),
        ("agree>=101", "at most 100"),
        ("agree>=0", "above 0"),
        ("sqnr<=20", "compared with >="),
    ],
)
def test_bad_targets(text: str, words: str) -> None:
    with pytest.raises(TesseraError) as caught:
        Target.parse(text)
    assert caught.value.code == ExitCode.USAGE and words in caught.value.message


def test_nan_meets_no_target() -> None:
    for target in (Target("cos", 0.5), Target("sqnr", 5), Target("agree", 50), Target("drop", 5)):
        assert not Verdict(target, {"s": float("nan")}, "s", 0.9, Scale()).met


def test_an_op_costs_its_arithmetic_or_its_traffic() -> None:
    rates = Rates({"INT8": 100, "INT16": 50, "F32": 25}, 20)
    multiplies, moves = conv("c", 10_000_000), Op("a", "top.add", "INT8", False, 0, 0, 1000, 1000)
    assert nanoseconds(multiplies, "INT8", rates) == 1e5 and nanoseconds(multiplies, "INT16", rates) == 2e5
    assert nanoseconds(moves, "INT8", rates) == 100 and nanoseconds(moves, "F32", rates) == 400
    assert nanoseconds(multiplies, "BF16", rates) == nanoseconds(multiplies, "F32", rates) == 4e5


def test_time_is_relative_to_f32() -> None:
    """Residual weights have a cost, too. A type without a rate of its own is no faster than F32."""
    op = {"name": "c", "op": "top.conv", "moves": False, "products": 1000, "weights": 0, "reads": 0, "writes": 0}

    def share(of_type: str, second: int = 0) -> float:
        rates = {"products": {"INT8": 400, "INT16": 200, "BF16": 80, "F32": 100}, "bytes": 20}
        return share_of_f32({"ops": [{**op, "type": of_type}], "rates": rates, "second_products": second})

    assert [share(each) for each in ("INT8", "INT16", "F32", "BF16")] == [0.25, 0.5, 1.0, 1.25]
    assert share("INT16", 1000) == 1.0 and share("W8") >= 1.0
    assert math.isnan(share_of_f32({"ops": [], "rates": {"products": {"F32": 1}, "bytes": 1}, "second_products": 0}))


@pytest.mark.parametrize(
    "quantize, share, warns",
    [("INT8", 0.4, 0), ("INT8", 1.0, 1), ("W8", 1.0, 0), ("BF16", 1.09, 1), ("F32", math.nan, 0)],
)
def test_deploying_what_saves_no_time_is_warned_of(quantize: str, share: float, warns: int) -> None:
    said, warned, args = list[str](), list[str](), SimpleNamespace(quantize=quantize, chip="x")
    report = SimpleNamespace(say=said.append, warn=warned.append)
    model_deploy._tell_speed(SimpleNamespace(args=args, report=report, result={}), share)
    assert len(warned) == warns and len(said) == (not math.isnan(share))


def test_journal_goes_on_and_rejects_what_is_of_another(tmp_path: Path) -> None:
    path = tmp_path / "t.partial"
    with Journal(path, "one") as journal:
        journal.put("error", {"a": "F32"}, [0.5, 1.0])
    path.write_text(path.read_text() + '{"key": "half')  # like a process that is killed while it writes
    with Journal(path, "one") as journal:
        assert (
            journal.resumed == 1
            and journal.get("error", {"a": "F32"}) == [0.5, 1.0]
            and journal.get("score", {"a": "F32"}) is None
        )
        journal.put("score", {}, 3)
    with Journal(path, "one") as journal:
        assert journal.resumed == 2
    with Journal(path, "two") as journal:
        assert journal.resumed == 0 and journal.get("error", {"a": "F32"}) is None


def test_qtable_reads_what_it_wrote(tmp_path: Path) -> None:
    lines = [qtable.Line("Conv_3", "F32", "because"), qtable.Line("ä", "INT8")]
    qtable.save(tmp_path / "q.json", "m", lines)
    assert qtable.load(tmp_path / "q.json") == lines
    qtable.save(tmp_path / "e.json", "m", [])
    assert qtable.load(tmp_path / "e.json") == []
    (tmp_path / "bad.json").write_text("[]")
    with pytest.raises(TesseraError, match="not a quantise table"):
        qtable.load(tmp_path / "bad.json")
