# SPDX-License-Identifier: Apache-2.0
"""Random networks on every instruction set of this machine agree with the reference; more seeds: random_graphs.py."""
from __future__ import annotations

import os
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))

import random_graphs  # noqa: E402
import seed_runner  # noqa: E402
from engines import deploy, supported_isas  # noqa: E402

SEEDS = range(48)


def test_random_networks() -> None:
    faults = list(random_graphs.run_seeds(SEEDS, os.cpu_count() or 1))
    assert not faults, "\n".join(faults)


def test_a_seed_gives_one_network() -> None:
    for seed in SEEDS[:5]:
        (model, inputs), (again, more) = random_graphs.make_network(seed), random_graphs.make_network(seed)
        assert model.SerializeToString(deterministic=True) == again.SerializeToString(deterministic=True)
        assert all(np.array_equal(inputs[name], more[name]) for name in inputs)


def test_a_wrong_element_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    def altered(*arguments: object) -> dict[str, np.ndarray]:
        outputs = {name: array.copy() for name, array in run(*arguments).items()}
        last = outputs[max(outputs)].reshape(-1)
        last[-1] += 0.01 * max(1.0, float(np.abs(last).max()))
        return outputs

    run = random_graphs.run_bmodel
    monkeypatch.setattr(random_graphs, "run_bmodel", altered)
    assert "compare" in random_graphs.run_seed(1, supported_isas()[-1])


def is_rewritten(node: onnx.NodeProto, constants: set[str]) -> bool:
    """Returns true if x86 computes a node with other ops: a 3-D window, or a convolution with computed weights."""
    kernel = next((each.ints for each in node.attribute if each.name == "kernel_shape"), ())
    return len(kernel) == 3 or (node.op_type == "Conv" and node.input[1] not in constants)


def lost_tensors(folder: Path, model: onnx.ModelProto) -> list[str]:
    """Returns the float tensors of a network that a compilation for calibration cannot observe."""
    path, mlir = folder / "model.onnx", folder / "model_top.mlir"
    path.write_bytes(model.SerializeToString())
    compiler = seed_runner.compiler_of_process()
    compiler("import", "import", "--onnx", path, "--output", mlir)
    deploy(compiler, mlir, supported_isas()[-1], "--observe")
    return [each["name"] for each in compiler.info["tensors"] if not each["source"] and not each["constant"]]


def test_calibration_sees_every_tensor(tmp_path: Path) -> None:
    models = {}
    for seed in range(200):
        model, _ = random_graphs.make_network(seed)
        constants = {tensor.name for tensor in model.graph.initializer}
        if len(models) < 12 and any(is_rewritten(node, constants) for node in model.graph.node):
            models[seed] = model
    lost = {seed: lost_tensors(tmp_path, model) for seed, model in models.items()}
    assert len(lost) == 12 and not any(lost.values()), lost
