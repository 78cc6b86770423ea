# SPDX-License-Identifier: Apache-2.0
"""Errors of tensors that are measured some way behind them, where all of the error has to pass."""
from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper, save

from tessera.calibration import gates
from tessera.calibration.choose import Choice
from tessera.calibration.observed import Observed
from tessera.calibration.output_error import relative
from tessera.calibration.thresholds import Range
from tessera.calibration.worker import Worker
from tessera.progress import Report
from tessera.top_model import import_onnx

CHANNELS, BLOCKS = 8, 24


def network(path: Path) -> Path:
    """Residual blocks one behind the other; what the first one makes is read by the last op too."""
    rng = np.random.default_rng(0)
    nodes, constants = [], []
    shape = (CHANNELS, CHANNELS, 1, 1)
    for i in range(BLOCKS):
        constants.append(numpy_helper.from_array(rng.normal(0, 0.3, shape).astype(np.float32), f"w{i}"))
        nodes += [
            helper.make_node("Conv", [f"x{i}", f"w{i}"], [f"c{i}"]),
            helper.make_node("Relu", [f"c{i}"], [f"r{i}"]),
            helper.make_node("Add", [f"x{i}", f"r{i}"], [f"x{i + 1}"]),
        ]
    nodes.append(helper.make_node("Concat", ["r0", f"x{BLOCKS}"], ["y"], axis=1))
    sizes = [1, CHANNELS, 6, 6]
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x0", TensorProto.FLOAT, sizes)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 2 * CHANNELS, 6, 6])],
        constants,
    )
    save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]), path)
    return path


@pytest.fixture(scope="module")
def observed(tmp_path_factory: pytest.TempPathFactory) -> Observed:
    folder, report = tmp_path_factory.mktemp("gates"), Report(1, quiet=True)
    model, _ = import_onnx(network(folder / "m.onnx"), folder / "m_top.mlir", report, model_name="m")
    return Observed.compile(model, folder / "observed", report, [])


def choices(observed: Observed) -> dict[str, Choice]:
    ranges = Range(-4.0, 4.0)
    return {source: Choice("max", ranges, ranges, True) for source in observed.integers}


def test_a_gate_is_what_all_of_a_tensor_passes(observed: Observed) -> None:
    gate_of = {tensor["name"]: tensor["gate"] for tensor in observed.info["tensors"]}
    assert gate_of["x1"] == "x2" and gate_of["r1"] == "x2"
    assert gate_of["x0"] == "y", "what the first block makes is read at the end too"
    assert gate_of["r0"] == "y" and gate_of["y"] == ""


def test_gates_lie_ahead_of_what_they_tell_of(observed: Observed) -> None:
    place = {tensor["source"]: i for i, tensor in enumerate(observed.info["tensors"])}
    found = gates.stretches(observed, choices(observed))
    assert len(found) > 1
    for stretch in found:
        assert all(place[source] + gates.LEAST <= place[stretch.gate] for source, _ in stretch.members)
        assert not stretch.beyond or place[stretch.gate] < place[stretch.beyond]
    assert {bool(stretch.beyond) for stretch in found} == {False, True}
    told = {source for stretch in found for source, _ in stretch.members}
    assert not told & {"x0", "r0"}, "these have their whole error at the outputs alone"


def test_errors_told_by_gates_are_those_of_the_outputs(observed: Observed) -> None:
    """And what is left in memory is the float run's."""
    defaults = choices(observed)
    question = [(source, [choice.candidate()]) for source, choice in defaults.items()]
    stretches = gates.stretches(observed, defaults)
    worker = Worker(observed.job())
    arrays = {"x0": np.random.default_rng(1).normal(size=(1, CHANNELS, 6, 6)).astype(np.float32)}
    whole = worker.measure(arrays, question)
    for _ in range(2):  # measured, and known
        told = worker.measure(arrays, question, stretches, number=3)
        ratios = {s: (relative(told[s]) / relative(whole[s])) ** 0.5 for s in defaults}
        gated = {source for stretch in stretches for source, _ in stretch.members}
        assert all(ratios[s] == 1 for s in defaults if s not in gated)
        assert all(0.5 < ratios[s] < 2 for s in gated), ratios
        assert 0.9 < np.median([ratios[s] for s in gated]) < 1.1
