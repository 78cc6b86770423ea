# SPDX-License-Identifier: Apache-2.0
"""Tests every case end to end: transform, deploy, run with each thread count, compare.

Compiling takes most of the time, so by default each case has the widest instruction set of this machine and, in turn,
one narrower one; TESSERA_EXACT=all takes each case to all of them.
"""
from __future__ import annotations

import json
import os
from typing import Any

import numpy as np
import pytest
from case_file import Case, all_cases, data_path, load_array, machine_isas
from conftest import Builder

from tessera import compare
from tessera.bmodel import Net, open_net
from tessera.inputs import InputSpec, random_inputs
from tessera.tasks import TASKS as KINDS
from tessera.tasks import language

CASES = all_cases()
ISAS = machine_isas()
IS_WHOLE = os.environ.get("TESSERA_EXACT") == "all"


def case_and_isa(turn: int, case: Case, isa: str) -> Any:
    """Returns the parameters of test_golden for the case at position `turn`."""
    if isa not in ISAS:
        reason = f"this machine cannot execute {isa}"
    elif isa not in case.isa:
        reason = f"the case is not for {isa}"
    elif not IS_WHOLE and isa not in (ISAS[-1], ISAS[turn % len(ISAS)]):
        reason = "two instruction sets for each case, in turn; set TESSERA_EXACT=all"
    else:
        reason = ""
    return pytest.param(case, isa, marks=pytest.mark.skip(reason=reason) if reason else ())


def case_inputs(case: Case, specs: list[InputSpec]) -> dict[str, np.ndarray]:
    random = random_inputs(specs)
    return {name: random[name] if file == "random" else load_array(file) for name, file in case.inputs.items()}


def run_case(case: Case, net: Net) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    """Returns the actual and the expected outputs by tensor name."""
    given = case_inputs(case, net.inputs)
    expected = {name: load_array(file) for name, file in case.outputs.items()}
    if case.sequence is None:
        return net.run(given), expected
    state = {
        spec.name: np.zeros(spec.shape, spec.dtype)
        for spec in net.inputs
        if spec.name in case.sequence.feedback.values()
    }
    frames: dict[str, list[np.ndarray]] = {name: [] for name in expected}
    for t in range(case.sequence.frames):
        out = net.run({**{n: a[t] for n, a in given.items()}, **state})
        state = {target: out[source] for source, target in case.sequence.feedback.items()}
        for name in frames:
            frames[name].append(out[name])
    got = {name: np.stack(values) for name, values in frames.items()}
    for name, file in case.sequence.final.items():
        expected[name], got[name] = load_array(file), out[name]
    return got, expected


def skip_if_missing(case: Case) -> None:
    if case.needs_data:
        from case_file import DataMissing

        try:
            data_path(case.model)
        except DataMissing as missing:
            pytest.skip(str(missing))


@pytest.mark.parametrize(
    "case, isa",
    [case_and_isa(turn, case, isa) for turn, case in enumerate(CASES) for isa in ("x86-v2", "x86-avx2", "x86-avx512")],
    ids=lambda value: value if isinstance(value, str) else value.name,
)
def test_golden(case: Case, isa: str, builder: Builder) -> None:
    skip_if_missing(case)
    bmodel = builder.bmodel(case, isa)
    first: dict[str, np.ndarray] = {}
    for threads in case.threads:
        got, expected = run_case(case, open_net(bmodel, threads))
        result = compare.compare(got, expected, case.tolerance)
        assert result.missing == []
        assert result.passed, f"{threads} threads\n{compare.format_table(result)}"
        for name, value in got.items():
            # The split over threads must not change a single bit.
            assert np.array_equal(first.setdefault(name, np.array(value)), value, equal_nan=True), name


TASKS = [(case, task) for case in CASES for task in case.tasks]


@pytest.mark.parametrize("case, task", TASKS, ids=[f"{c.name}-{t['kind']}" for c, t in TASKS])
def test_task(case: Case, task: dict, builder: Builder, need) -> None:
    where = need(task.get("pictures") or task["golden"])
    skip_if_missing(case)
    net = open_net(builder.bmodel(case, ISAS[-1]), 2)
    if task["kind"] == "greedy":
        spec, output = net.inputs[0], net.outputs[0].name
        golden = json.loads(where.read_text())["greedy_ids"]
        ids = language.greedy(lambda array: net.run({spec.name: array})[output], spec.shape[1], golden[:1], len(golden))
        assert ids == golden
        return
    result = KINDS[task["kind"]].score(net, where)
    allowed = task.get("allowed_difference", {})
    for name, value in task["expect"].items():
        assert abs(result[name] - value) <= allowed.get(name, 0), f"{name} {result[name]}, expected {value}"
