# SPDX-License-Identifier: Apache-2.0
"""Tests that `tessera reduce` makes networks of 60 to 400 nodes small. They have planted failures
(TESSERA_PLANTED_FAULT: codegen/Pipelines/PlantFault.h)."""
from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx
import pytest
from conftest import BUILD, check, run_tool
from onnx import helper, numpy_helper
from small_models import save, tensor

from tessera import reduction
from tessera.errors import TesseraError

pytest.importorskip("onnxruntime")
MOST_NODES, MOST_SECONDS = 5, 120


class Net:
    """A chain of ops on x [1,8,8,8], with random weights."""

    def __init__(self) -> None:
        self.nodes: list = []
        self.weights: list = []
        self.now = "x"
        self._random = np.random.default_rng(0)

    def op(self, kind: str, *inputs: str, **attributes: object) -> str:
        name = f"{kind.lower()}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, list(inputs or [self.now]), [f"{name}_out"], name=name, **attributes))
        self.now = f"{name}_out"
        return self.now

    def conv(self, side: int = 3, channels: int = 8, **attributes: object) -> str:
        weight, now = f"w{len(self.nodes)}", self.now
        array = self._random.standard_normal((channels, 8, side, side)) * (1.5 / (8 * side * side)) ** 0.5
        self.weights.append(numpy_helper.from_array(array.astype(np.float32), weight))
        return self.op("Conv", now, weight, **{"pads": [side // 2] * 4, "kernel_shape": [side, side], **attributes})

    def blocks(self, count: int) -> "Net":
        """Adds residual blocks of five nodes."""
        for _ in range(count):
            begin = self.now
            self.conv()
            self.op("Relu")
            after = self.conv()
            self.op("Add", begin, after)
            self.op("Relu")
        return self

    def file(self, path: Path, shape: list | None = None) -> Path:
        return save(path, self.nodes, [tensor("x", [1, 8, 8, 8])], [tensor(self.now, shape or [1, 8, 8, 8])],
                    self.weights)  # fmt: skip


def with_middle(blocks: int, *middle: tuple[str, dict]) -> Net:
    """Returns ops between residual blocks."""
    net = Net().blocks(blocks // 2)
    for kind, attributes in middle:
        net.conv(**attributes) if kind == "Conv" else net.op(kind, **attributes)
    return net.blocks(blocks - blocks // 2)


@dataclass
class Planted:
    fault: str
    mode: str
    blocks: int
    middle: tuple[tuple[str, dict], ...] = ()
    flags: tuple[str, ...] = ()
    needed: tuple[str, ...] = ()  # kinds of nodes that must stay


POOL = ("MaxPool", {"kernel_shape": [3, 3], "strides": [1, 1], "pads": [1, 1, 1, 1]})
AVERAGE = ("AveragePool", {"kernel_shape": [3, 3], "strides": [1, 1], "pads": [1, 1, 1, 1]})
SOFTMAX = ("Softmax", {"axis": 1})
F16 = ("--quantize", "F16")
SHIFTED = "op=device.conv;contains=arith.addf;do=set pads array<i64: 2, 1, 0, 1>"
FAULTS = {
    "crash-pool": Planted("op=device.pool;do=crash", "deploy-fails", 12, (POOL,), (), ("MaxPool",)),
    "refused-softmax": Planted("op=device.softmax;do=refuse", "deploy-fails", 40, (SOFTMAX,), (), ("Softmax",)),
    "crash-pool-behind-softmax": Planted(
        "op=device.pool;producer=device.softmax;do=crash", "deploy-fails", 79, (SOFTMAX, POOL), (), ("Softmax",)
    ),
    "npu-crash": Planted(
        "op=device.softmax;do=crash", "deploy-fails", 30, (SOFTMAX,), ("--chip", "npu-base", *F16), ("Softmax",)
    ),
    "x86-pool-lost": Planted("op=device.pool;do=bypass", "x86-vs-ort", 20, (AVERAGE,), (), ("AveragePool",)),
    "x86-residual-pads": Planted(SHIFTED, "x86-vs-ort", 60, (), (), ("Conv", "Add")),
    "x86-softmax-lost": Planted("op=device.softmax;do=bypass", "x86-vs-ort", 78, (SOFTMAX,), (), ("Softmax",)),
    "npu-softmax-lost": Planted("op=device.softmax;do=bypass", "npu-vs-reference", 12, (SOFTMAX,), F16, ("Softmax",)),
    "npu-pool-lost": Planted("op=device.pool;do=bypass", "npu-vs-reference", 24, (POOL,), (), ("MaxPool",)),
    "npu-residual-pads": Planted(SHIFTED, "npu-vs-reference", 14, (), F16, ("Conv",)),
}


@pytest.mark.parametrize("name", FAULTS)
def test_planted(name: str, tmp_path: Path) -> None:
    planted = FAULTS[name]
    net = with_middle(planted.blocks, *planted.middle)
    assert 60 <= len(net.nodes) <= 400
    model = net.file(tmp_path / "m.onnx")
    begin = time.monotonic()
    flags = ("--mode", planted.mode, "-o", tmp_path / "s.onnx", "--json", *planted.flags)
    environment = {**os.environ, "TESSERA_PLANTED_FAULT": planted.fault}
    info = check(run_tool("tessera", "reduce", model, *flags, env=environment, cwd=tmp_path))
    seconds = time.monotonic() - begin
    reduced = json.loads(info)["reduced"]
    left = onnx.load(tmp_path / "s.onnx").graph.node
    print(f"{name}: {len(net.nodes)} -> {len(left)} nodes, {reduced['checks']} candidates, {seconds:.1f} s")
    assert len(left) <= MOST_NODES and seconds <= MOST_SECONDS
    assert {node.name for node in left} <= {node.name for node in net.nodes}
    assert set(planted.needed) <= {node.op_type for node in left}
    assert sorted(path.name for path in tmp_path.iterdir()) == ["m.onnx", "s.onnx", "s_inputs.npz"]


def test_a_command_decides(tmp_path: Path) -> None:
    """The command also decides which values of the input stay."""
    script = tmp_path / "mine.py"
    script.write_text(
        "import sys, numpy, onnx\n"
        "kinds = [node.op_type for node in onnx.load(sys.argv[1]).graph.node]\n"
        "values = numpy.load(sys.argv[2])\n"
        "sys.exit('Softmax' in kinds and 'Add' in kinds and any(v.reshape(-1)[5:6].any() for v in values.values()))\n"
    )
    model = with_middle(12, SOFTMAX).file(tmp_path / "m.onnx")
    check(run_tool("tessera", "reduce", model, "--check", f"{sys.executable} {script}", "-o", "s.onnx", cwd=tmp_path))
    left = onnx.load(tmp_path / "s.onnx")
    onnx.checker.check_model(left)
    assert sorted(node.op_type for node in left.graph.node) == ["Add", "Softmax"]
    inputs = np.load(tmp_path / "s_inputs.npz")
    assert sum(int(np.count_nonzero(inputs[name])) for name in inputs) < 2000


HAS = """import sys, onnx
def kinds(graph):
    for node in graph.node:
        yield node.op_type
        for attribute in node.attribute:
            if attribute.type == onnx.AttributeProto.GRAPH:
                yield from kinds(attribute.g)
sys.exit(sys.argv[1] in set(kinds(onnx.load(sys.argv[2]).graph)))
"""


def reduce_to(model: Path, kind: str, folder: Path) -> onnx.ModelProto:
    """Reduces a model to a node of a given kind that shows the failure; the result runs in onnxruntime."""
    import onnxruntime

    script = folder / "has.py"
    script.write_text(HAS)
    command = f"{sys.executable} {script} {kind} {{model}}"
    check(run_tool("tessera", "reduce", model, "--check", command, "-o", folder / "s.onnx", cwd=folder))
    left = onnx.load(folder / "s.onnx")
    onnx.checker.check_model(left)
    with np.load(folder / "s_inputs.npz") as arrays:
        onnxruntime.InferenceSession(str(folder / "s.onnx")).run(None, dict(arrays))
    return left


def test_constants_in_a_file_beside_the_model(tmp_path: Path) -> None:
    whole = onnx.load(with_middle(6, SOFTMAX).file(tmp_path / "whole.onnx"))
    onnx.save(whole, str(tmp_path / "m.onnx"), save_as_external_data=True, location="m.data", size_threshold=0)
    assert [node.op_type for node in reduce_to(tmp_path / "m.onnx", "Softmax", tmp_path).graph.node] == ["Softmax"]


def test_a_branch_that_reads_tensors_of_the_graph(tmp_path: Path) -> None:
    net = Net().blocks(1)
    read = net.now

    def branch(kind: str) -> onnx.GraphProto:
        return helper.make_graph([helper.make_node(kind, [read], ["b"])], kind, [], [tensor("b", [1, 8, 8, 8])])

    net.op("ReduceMax", keepdims=0)
    net.weights.append(numpy_helper.from_array(np.float32(0), "zero"))
    net.op("Greater", net.now, "zero")
    net.op("If", then_branch=branch("Softmax"), else_branch=branch("Neg"))
    left = reduce_to(net.blocks(1).file(tmp_path / "m.onnx"), "Softmax", tmp_path)
    assert [node.op_type for node in left.graph.node] == ["If"] and read in {each.name for each in left.graph.input}


def test_a_check_that_answers_by_chance(tmp_path: Path) -> None:
    """The check fails whenever the whole network is given, and otherwise every second time."""
    script = tmp_path / "mine.py"
    script.write_text(
        "import pathlib, sys, onnx\ncount = pathlib.Path('count')\n"
        "seen = len(count.read_text()) if count.exists() else 0\n"
        "count.write_text('.' * (seen + 1))\nsys.exit(len(onnx.load(sys.argv[1]).graph.node) == 10 or seen % 2)\n"
    )
    model = Net().blocks(2).file(tmp_path / "m.onnx")
    command = f"{sys.executable} {script}"
    info = check(run_tool("tessera", "reduce", model, "--check", command, "-o", "s.onnx", "--json", cwd=tmp_path))
    assert any("it is not deterministic" in warning for warning in json.loads(info)["warnings"])


def test_interrupted_it_leaves_nothing(tmp_path: Path) -> None:
    model = Net().blocks(2).file(tmp_path / "m.onnx")
    command = [BUILD / "bin" / "tessera", "reduce", model, "--check", "sh -c 'touch begun; sleep 60; exit 1'"]
    process = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    while not (tmp_path / "begun").exists() and process.poll() is None:
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    assert "interrupted" in process.communicate(timeout=30)[1] and process.returncode == 130
    assert sorted(path.name for path in tmp_path.iterdir()) == ["begun", "m.onnx"]


def test_more_constants_than_a_file_holds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reduction, "LARGEST_FILE", 4000)
    with pytest.raises(TesseraError, match="which cannot hold more"):
        reduction.Network.open(Net().blocks(1).file(tmp_path / "m.onnx"), {})


def test_what_it_rejects(tmp_path: Path) -> None:
    model = Net().blocks(1).file(tmp_path / "m.onnx")

    def failed(code: int, *flags: object) -> str:
        result = run_tool("tessera", "reduce", model, *flags, cwd=tmp_path)
        assert result.returncode == code, result.stderr
        return result.stderr

    assert "does not show the failure" in failed(1, "--mode", "x86-vs-ort")
    assert "does not show the failure" in failed(1, "--mode", "npu-vs-reference")
    assert "does not show the failure" in failed(1, "--check", "true")
    assert "No such file" in failed(2, "--check", "/no/such/command")
    assert "is not an NPU" in failed(2, "--mode", "npu-vs-reference", "--chip", "x86")
    assert "the command is empty" in failed(2, "--check", " ")
    assert "No closing quotation" in failed(2, "--check", "echo 'open")
    assert "more than 0" in failed(2, "--check", "false", "--seconds", "0")
    assert "not a finite number" in failed(2, "--check", "false", "--seconds", "nan")
    assert "did not end within 1 seconds" in failed(1, "--check", "sh -c 'sleep 60'", "--seconds", "1")
    for mode in ("deploy-fails", "x86-vs-ort"):  # an unknown chip would make every part fail
        assert "--chip 'tpu'" in failed(2, "--mode", mode, "--chip", "tpu")
        assert "no such file" in failed(1, "--mode", mode, "--chip", "tpu.json")
    assert "the inputs are x, not 'y'" in failed(2, "--check", "false", "--input_shapes", "y=1x8")
    failed(2)
    failed(2, "--mode", "deploy-fails", "--check", "true")
    assert [path.name for path in tmp_path.iterdir()] == ["m.onnx"]
