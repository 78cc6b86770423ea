# SPDX-License-Identifier: Apache-2.0
"""Tests the statistics of measured times: percentiles, which differences are detected and which are not, and which
files are rejected."""
from __future__ import annotations

import copy
import itertools
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tessera.bench import results, statistics, steps, worker
from tessera.bench.measure import Result
from tessera.errors import TesseraError

SETTINGS = {"threads": 1, "streams": 0, "pin": [], "precision": "f32"}


def series(seed: int, factor: float = 1.0, rounds: int = 20) -> list[list[float]]:
    """Returns rounds of runs that take a millisecond on a busy machine: with jitter in each run, slow rounds, and a few
    outliers."""
    random = np.random.default_rng(seed)
    phase, result = 0.0, []
    for _ in range(rounds):
        phase = 0.7 * phase + abs(random.normal(0, 0.002))
        times = factor * 1e-3 * (1 + phase + random.exponential(0.01, 50))
        times[random.integers(0, 50, 2)] *= 3
        result.append(list(times))
    return result


def bench_report(rounds: list[list[float]], **more: Any) -> dict[str, Any]:
    entry = results.entry(Result("tessera", rounds=rounds), "tessera", Path("m.bmodel"), SETTINGS)
    return {"bench_version": 1, "machine": {"processor": ""}, "results": [{**entry, **more}]}


def verdict(old: list[list[float]], new: list[list[float]]) -> str:
    (row,) = results.compare(bench_report(old), bench_report(new))
    return str(row["verdict"])


def test_a_summary_has_percentiles() -> None:
    result = statistics.summary([each * 1e-3 for each in range(1, 101)])
    assert result["runs"] == 100 and result["min_ms"] == pytest.approx(1) and result["mean_ms"] == pytest.approx(50.5)
    assert result["p50_ms"] == pytest.approx(50.5) and result["p99_ms"] == pytest.approx(99.01)
    assert statistics.summary([]) == {}


def test_two_runs_of_one_thing_do_not_differ() -> None:
    assert [verdict(series(seed), series(seed + 100)) for seed in range(20)] == ["no difference"] * 20


@pytest.mark.parametrize("factor, what", [(1.03, "slower"), (1 / 1.03, "faster")])
def test_three_per_cent_are_found(factor: float, what: str) -> None:
    found = [verdict(series(seed), series(seed + 100, factor)) for seed in range(20)]
    assert found == [what] * 20


def test_too_few_rounds_say_nothing() -> None:
    assert verdict(series(1, rounds=3), series(2, 9.0)).startswith("not decided")


def test_relative_to_another_engine_the_machine_does_not_matter() -> None:
    slow = np.linspace(1, 2, 20)[:, None]
    files = []
    for factor, machine in ((1.0, np.ones((20, 1))), (1.03, slow)):
        result = bench_report(list(np.array(series(3, factor)) * machine))
        result["results"] += bench_report(list(np.array(series(4)) * machine), name="openvino")["results"]
        files.append(result)
    (row,) = results.compare(*files, relative_to="openvino")
    assert row["verdict"] == "slower" and row["ratio"] == pytest.approx(1.03, abs=0.005)
    assert results.compare(*files)[0]["ratio"] > 1.1
    with pytest.raises(TesseraError, match="--relative_to other: this engine was not measured"):
        results.compare(*files, relative_to="other")


def test_estimates_are_compared_as_they_are() -> None:
    def file(ms: float) -> dict[str, Any]:
        each = {"name": "tessera", "kind": "estimated for npu-base", "error": "", "p50_ms": ms, **SETTINGS}
        return {"results": [each]}

    assert [results.compare(file(1.0), file(ms))[0]["verdict"] for ms in (1.0, 1.001, 0.9)] == [
        "no difference", "slower", "faster",
    ]  # fmt: skip
    with pytest.raises(TesseraError, match="'tessera' is measured in one file and estimated"):
        results.compare(bench_report(series(1)), file(1.0))


def test_what_cannot_be_compared_is_rejected(tmp_path: Path) -> None:
    good = bench_report(series(1))
    with pytest.raises(TesseraError, match="threads 1 in one file and 2"):
        results.compare(good, bench_report(series(1), threads=2))
    with pytest.raises(TesseraError, match="no engine in common"):
        results.compare(good, bench_report(series(1), name="other"))
    path = tmp_path / "r.json"
    path.write_text(json.dumps(good))
    assert results.read(path)["results"][0]["rounds_us"] == good["results"][0]["rounds_us"]
    bad = copy.deepcopy(good)
    del bad["results"][0]["threads"]
    for wrong in ([], {"bench_version": 2}, bad):
        path.write_text(json.dumps(wrong))
        with pytest.raises(TesseraError):
            results.read(path)


def test_warming_up_ends_where_times_are_steady(monkeypatch: pytest.MonkeyPatch) -> None:
    windows = iter([[9.0], [5.0], [1.0], [1.01], [1.02], [7.0]])
    monkeypatch.setattr(worker, "timed", lambda run, seconds: next(windows))
    result = worker.warm(lambda: None, 60)
    assert (result["steady"], result["warm_runs"]) == (True, 5)
    windows = ([float(n % 2 + 1)] for n in itertools.count())
    assert not worker.warm(lambda: None, 1e-3)["steady"]


def test_runs_of_streams_are_counted_while_all_work() -> None:
    result = worker.flow([lambda: None, lambda: None], 0.01)
    # Only runs until the first stream ends count; on a busy machine the other stream may hardly have started.
    assert result["runs"] >= worker.FEWEST_RUNS and 0 < result["seconds"] < 5


def test_a_step_is_bound_by_what_takes_longer() -> None:
    machine = steps.Machine({"f32": 1e9, "int8": 4e9}, ((1000, 1e9), (10**6, 1e8)))
    assert machine.bound(1000, 10, "F32") == (1e-6, "products of f32")
    assert machine.bound(1000, 10, "I8") == (0.25e-6, "products of int8")
    assert machine.bound(1000, 10, "I16") == (0.5e-6, "products of int8")
    assert machine.bound(1000, 10, "BF16") == (1e-6, "products of f32")  # the machine has no bf16 instruction
    assert machine.bound(1000, 10**4, "F32") == (1e-4, "bytes")
    assert machine.bound(1000, 10, "I8", amx=True) == (0.25e-6, "products of int8")  # the machine has no tiles
    tiles = steps.Machine({**machine.products, "amx_int8": 1e11}, machine.reads)
    assert tiles.bound(1000, 10, "I8") == (0.25e-6, "products of int8")  # the code was compiled for another chip
    assert tiles.bound(1000, 1, "I8", amx=True)[1] == "products of amx_int8"
    assert tiles.bound(1000, 10, "F32", amx=True) == (1e-6, "products of f32")
