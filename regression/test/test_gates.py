# SPDX-License-Identifier: Apache-2.0
"""Tests errors of tensors that are measured at a gate: a later tensor through which all of the error must pass."""
from __future__ import annotations

from pathlib import Path
from typing import Callable

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper, save

from tessera.calibration import gates
from tessera.calibration.choose import Choice
from tessera.calibration.observed import Observed
from tessera.output_error import relative
from tessera.calibration.thresholds import Range
from tessera.calibration.worker import Worker
from tessera.progress import Report
from tessera.top_model import import_onnx

CHANNELS, BLOCKS = 8, 24


def network(path: Path) -> Path:
    """Writes a chain of residual blocks; the result of the first block is also read by the last op."""
    nodes, constants = blocks("", BLOCKS)
    nodes.append(helper.make_node("Concat", ["r0", f"x{BLOCKS}"], ["y"], axis=1))
    return saved(path, nodes, constants)


def with_a_branch(path: Path) -> Path:
    """Writes two chains of residual blocks. A branch leaves the first chain in its middle and has its own gate, after
    the gates of that chain."""
    first, second, late = blocks("first", BLOCKS), blocks("second", BLOCKS), blocks("late", 3)
    first[0].insert(14, helper.make_node("Neg", ["firstx4"], ["latex0"]))
    nodes = [
        helper.make_node("Relu", ["x0"], ["firstx0"]),
        *first[0],
        *late[0],
        helper.make_node("Add", ["latex3", f"firstx{BLOCKS}"], ["secondx0"]),
        *second[0],
        helper.make_node("Concat", ["firstr4", f"secondx{BLOCKS}"], ["y"], axis=1),
    ]
    return saved(path, nodes, first[1] + second[1] + late[1])


def blocks(name: str, count: int) -> tuple[list, list]:
    """Returns nodes and weights of a chain whose tensors begin with `name`."""
    rng = np.random.default_rng(len(name))
    nodes, constants = [], []
    shape = (CHANNELS, CHANNELS, 1, 1)
    for i in range(count):
        w, c, r, x = (f"{name}{kind}{i}" for kind in "wcrx")
        constants.append(numpy_helper.from_array(rng.normal(0, 0.3, shape).astype(np.float32), w))
        nodes += [
            helper.make_node("Conv", [x, w], [c]),
            helper.make_node("Relu", [c], [r]),
            helper.make_node("Add", [x, r], [f"{name}x{i + 1}"]),
        ]
    return nodes, constants


def saved(path: Path, nodes: list, constants: list) -> Path:
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
    return compiled(tmp_path_factory.mktemp("gates"), network)


def compiled(folder: Path, make: Callable[[Path], Path]) -> Observed:
    report = Report(1, quiet=True)
    model, _ = import_onnx(make(folder / "m.onnx"), folder / "m_top.mlir", report, model_name="m")
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
    found = gates.segments(observed, choices(observed))
    assert len(found) > 1
    for segment in found:
        assert all(place[source] + gates.LEAST <= place[segment.gate] for source, _ in segment.members)
        assert not segment.beyond or place[segment.gate] < place[segment.beyond]
    assert {bool(segment.beyond) for segment in found} == {False, True}
    info = {source for segment in found for source, _ in segment.members}
    assert not info & {"x0", "r0"}, "these have their whole error at the outputs alone"


def test_errors_told_by_gates_are_those_of_the_outputs(observed: Observed) -> None:
    """Afterwards, the memory holds the tensors of the float run."""
    defaults = choices(observed)
    question = [(source, [choice.candidate()]) for source, choice in defaults.items()]
    segments = gates.segments(observed, defaults)
    worker = Worker(observed.job())
    arrays = {"x0": np.random.default_rng(1).normal(size=(1, CHANNELS, 6, 6)).astype(np.float32)}
    whole = worker.measure(arrays, question)
    for _ in range(2):  # measured, and known
        info = worker.measure(arrays, question, segments, number=3)
        ratios = {s: (relative(info[s]) / relative(whole[s])) ** 0.5 for s in defaults}
        gated = {source for segment in segments for source, _ in segment.members}
        assert all(ratios[s] == 1 for s in defaults if s not in gated)
        assert all(0.5 < ratios[s] < 2 for s in gated), ratios
        assert 0.9 < np.median([ratios[s] for s in gated]) < 1.1


@pytest.mark.parametrize("make", [network, with_a_branch])
def test_what_a_gate_tells_does_not_depend_on_what_else_is_asked(tmp_path: Path, make: Callable) -> None:
    """Each worker measures the shares of only those gates that it needs."""
    observed = compiled(tmp_path, make)
    defaults = choices(observed)
    segments = gates.segments(observed, defaults)
    arrays = {"x0": np.random.default_rng(1).normal(size=(1, CHANNELS, 6, 6)).astype(np.float32)}
    question = [(source, [choice.candidate()]) for source, choice in defaults.items()]
    together = Worker(observed.job()).measure(arrays, question, segments)
    assert len({segment.gate for segment in segments}) > 2
    for some in (question[::3], question[1:2], question[::-1]):
        for source, squares in Worker(observed.job()).measure(arrays, some, segments).items():
            np.testing.assert_array_equal(squares, together[source], err_msg=source)
