# SPDX-License-Identifier: Apache-2.0
"""Reads a trace as strictly as Perfetto's importer, but rejects events that the importer would drop or repair
silently."""
from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

KEYS = {
    "M": {"name", "ph", "pid", "args"},
    "X": {"name", "ph", "pid", "tid", "ts", "dur"},
    "C": {"name", "ph", "pid", "ts", "args"},
    "s": {"name", "cat", "ph", "pid", "tid", "ts", "id"},
    "f": {"name", "cat", "ph", "pid", "tid", "ts", "id", "bp"},
}
NAMES = {"process_name", "thread_name", "thread_sort_index"}


@dataclass
class Slice:
    """A slice of a track: [begin, end) in nanoseconds."""

    name: str
    begin: int
    end: int
    args: dict[str, Any]


@dataclass
class Trace:
    tracks: dict[str, list[Slice]] = field(default_factory=dict)  # by name, sorted by time
    flows: list[tuple[Slice, Slice]] = field(default_factory=list)
    counters: dict[str, list[tuple[int, float]]] = field(default_factory=dict)


def nanoseconds(microseconds: float) -> int:
    """Raises AssertionError if the time is not a whole number of nanoseconds."""
    whole = round(microseconds * 1000)
    assert abs(microseconds * 1000 - whole) < 1e-4 and whole >= 0, f"{microseconds} us is not in whole nanoseconds"
    return whole


def read(path: Path) -> Trace:
    """Reads a trace. Raises AssertionError if it is not valid."""
    info = json.loads(path.read_text())
    assert info["displayTimeUnit"] in ("ns", "ms")
    names: dict[tuple[int, int], str] = {}
    slices: dict[tuple[int, int], list[Slice]] = {}
    ends: dict[str, dict[Any, tuple[tuple[int, int], int]]] = {"s": {}, "f": {}}
    trace = Trace()
    for event in info["traceEvents"]:
        kind = event["ph"]
        assert KEYS[kind] <= event.keys(), event
        where = (event["pid"], event.get("tid", -1))
        if kind == "M":
            assert event["name"] in NAMES, event
            if event["name"] == "thread_name":
                assert where not in names, f"{where} is named twice"
                names[where] = event["args"]["name"]
            continue
        time = nanoseconds(event["ts"])
        if kind == "X":
            end = time + nanoseconds(event["dur"])
            slices.setdefault(where, []).append(Slice(event["name"], time, end, event.get("args", {})))
        elif kind == "C":
            (value,) = event["args"].values()
            assert isinstance(value, (int, float)) and value >= 0, event
            trace.counters.setdefault(event["name"], []).append((time, value))
        else:
            assert kind == "s" or event["bp"] == "e"
            assert event["id"] not in ends[kind], f"flow {event['id']} has two ends of one kind"
            ends[kind][event["id"]] = (where, time)
    for where, each in slices.items():
        assert where in names, f"track {where} has no name"
        each.sort(key=lambda slice: (slice.begin, slice.end))
        for before, after in zip(each, each[1:]):
            assert before.end <= after.begin, f"{before} and {after} overlap on {names[where]}"
        assert names[where] not in trace.tracks, f"two tracks are called {names[where]}"
        trace.tracks[names[where]] = each
    for name, values in trace.counters.items():
        assert all(a[0] < b[0] for a, b in zip(values, values[1:])), f"{name} goes back in time"
    _resolve(trace, slices, ends)
    return trace


def _resolve(trace: Trace, slices: dict, ends: dict) -> None:
    """Checks that each flow starts inside one slice and ends at the begin of a later slice."""
    assert ends["s"].keys() == ends["f"].keys(), "a flow lacks an end"
    for flow, (where, time) in ends["s"].items():
        there, begin = ends["f"][flow]
        source = [slice for slice in slices.get(where, []) if slice.begin <= time < slice.end]
        target = [slice for slice in slices.get(there, []) if slice.begin == begin < slice.end]
        assert len(source) == len(target) == 1, f"flow {flow} is bound to no slice"
        assert source[0].end <= target[0].begin, f"{target[0]} does not wait for {source[0]}"
        trace.flows.append((source[0], target[0]))
