# SPDX-License-Identifier: Apache-2.0
"""Files of measured results, and their comparison."""
from __future__ import annotations

from pathlib import Path
from typing import Any, Mapping, Sequence

import numpy as np

from ..errors import TesseraError
from ..files import load_json
from . import statistics
from .engines import version
from .measure import Result

VERSION = 1
SETTINGS = ("threads", "streams", "pin", "precision")


def entry(result: Result, engine: str, model: Path, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the record of one engine on one model. Times are in microseconds, one list per round."""
    measured: dict[str, Any] = {} if result.error else statistics.summary(result.times)
    if len(result.rounds) >= statistics.FEWEST_ROUNDS:
        low, high = statistics.interval(result.rounds)
        measured |= {"typical_ms": statistics.typical(statistics.of_rounds(result.rounds)) * 1e3,
                     "typical_ms_between": [low * 1e3, high * 1e3]}  # fmt: skip
    return {
        "name": result.engine,
        "engine": engine,
        "version": version(engine),
        "model": model.name,
        **settings,
        "kind": "measured",
        "error": result.error,
        "prepare_ms": _number(result.prepare * 1e3),
        "peak_mib": _number(result.peak_mib),
        **result.warm,
        **measured,
        "runs_per_second": _number(result.per_second),
        "rounds_us": [[round(time * 1e6, 2) for time in times] for times in result.rounds],
        "flows": [list(each) for each in result.flows],
    }


def _number(value: float) -> float | None:
    return value if np.isfinite(value) else None


def read(path: str | Path) -> dict[str, Any]:
    """Reads a result file of tessera bench. Raises TesseraError for any other file."""
    info = load_json(path, "result file", "make it with tessera bench -o FILE")
    if not isinstance(info, dict) or info.get("bench_version") != VERSION or not isinstance(info.get("results"), list):
        raise TesseraError(f"{path} is not a result file of tessera bench, version {VERSION}")
    for each in info["results"]:
        if not isinstance(each, dict) or not {"name", "kind", *SETTINGS} <= each.keys():
            raise TesseraError(f"{path}: a result lacks its name or its settings")
    return info


def compare(old: Mapping[str, Any], new: Mapping[str, Any], relative_to: str = "") -> list[dict[str, Any]]:
    """Returns the rows of the comparison, for each engine in both files: latency, and throughput if both files have it.
    relative_to: an engine in both files; times are divided by its times in the same round, so that a machine that
    changed between the files does not matter. Raises TesseraError if nothing can be compared."""
    known = {each["name"]: each for each in old["results"] if not each.get("error")}
    rows = []
    for each in new["results"]:
        before = known.get(each["name"])
        if before is None or each.get("error") or each["name"] == relative_to:
            continue
        if different := [key for key in SETTINGS if each[key] != before[key]]:
            raise TesseraError(
                f"'{each['name']}' was measured with {different[0]} {before[different[0]]} in one file and "
                f"{each[different[0]]} in the other"
            )
        rows += _rows(before, each, old, new, relative_to)
    if not rows:
        raise TesseraError("the two files have no engine in common")
    return rows


def _rows(
    before: Mapping[str, Any], after: Mapping[str, Any], old: Mapping[str, Any], new: Mapping[str, Any], base: str
) -> list[dict[str, Any]]:
    if before["kind"] != "measured" or after["kind"] != "measured":
        if before["kind"] != after["kind"]:
            raise TesseraError(f"'{after['name']}' is {before['kind']} in one file and {after['kind']} in the other")
        ratio = after["p50_ms"] / before["p50_ms"]
        verdict = "no difference" if ratio == 1 else "slower" if ratio > 1 else "faster"  # an estimate does not vary
        return [{"name": after["name"], "what": "estimate", "ratio": ratio, "low": ratio, "high": ratio,
                 "verdict": verdict}]  # fmt: skip
    series = [_latencies(before, old, base), _latencies(after, new, base)]
    rows = [{"name": after["name"], "what": "latency", **statistics.difference(*series).as_dict()}]
    if before["flows"] and after["flows"]:
        series = [_seconds_a_run(before, old, base), _seconds_a_run(after, new, base)]
        rows.append({"name": after["name"], "what": "time a run, all streams",
                     **statistics.difference(*series).as_dict()})  # fmt: skip
    return rows


def _latencies(each: Mapping[str, Any], info: Mapping[str, Any], base: str) -> np.ndarray:
    values = statistics.of_rounds(each["rounds_us"])
    return values / statistics.of_rounds(_other(each, info, base, "rounds_us")["rounds_us"]) if base else values


def _seconds_a_run(each: Mapping[str, Any], info: Mapping[str, Any], base: str) -> np.ndarray:
    values = _seconds(each["flows"])
    return values / _seconds(_other(each, info, base, "flows")["flows"]) if base else values


def _seconds(flows: Sequence[Sequence[float]]) -> np.ndarray:
    return np.array([seconds / runs for runs, seconds in flows])


def _other(each: Mapping[str, Any], info: Mapping[str, Any], name: str, key: str) -> Mapping[str, Any]:
    """Returns the result with that name, which was measured in the same rounds. Raises TesseraError if there is
    none."""
    found = next((other for other in info["results"] if other["name"] == name and not other.get("error")), None)
    if found is None or len(found.get(key, [])) != len(each[key]):
        raise TesseraError(f"--relative_to {name}: this engine was not measured in every round of both files")
    return found
