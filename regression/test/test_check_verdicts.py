# SPDX-License-Identifier: Apache-2.0
"""Tests the checks of model_transform and model_deploy: they warn if ops amplify rounding. A fault, or a broken
quantised model, is an error."""
from __future__ import annotations

import json
import subprocess
from pathlib import Path

import numpy as np
import onnx
import pytest
from case_file import REGRESSION
from conftest import check, run_tool
from onnx import helper, numpy_helper
from small_models import save, tensor

from tessera.files import load_npz, save_npz

WIDTH = 64


def matrices(count: int, spread: float = 0.2) -> list[np.ndarray]:
    generator = np.random.default_rng(3)
    return [generator.normal(0, spread, (WIDTH, WIDTH)).astype(np.float32) for _ in range(count)]


def cancelling_norms(path: Path) -> Path:
    """Writes normalised products of a matrix and nearly equal rows far from zero. The result is small beside the tensor
    that it is added to."""
    generator = np.random.default_rng(1)
    first, second = matrices(2)
    wide = (8 + 1e-4 * generator.normal(size=(1, WIDTH))).astype(np.float32)
    values = {
        "w": first * np.float32(1e-4),
        "wide": wide,
        "gain": np.ones(WIDTH, np.float32),
        "zero": np.zeros(WIDTH, np.float32),
        "m": second * np.float32(0.01),
        "five": np.full(1, 5, np.float32),
    }
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["p"], "product"),
        helper.make_node("Add", ["p", "wide"], ["s"], "shift"),
        helper.make_node("LayerNormalization", ["s", "gain", "zero"], ["n"], "norm", axis=-1, epsilon=1e-12),
        helper.make_node("MatMul", ["n", "m"], ["q"], "after"),
        helper.make_node("Add", ["q", "five"], ["y"], "out"),
    ]
    return save(
        path,
        nodes,
        [tensor("x", [32, WIDTH])],
        [tensor("y", [32, WIDTH])],
        [numpy_helper.from_array(v, name) for name, v in values.items()],
        opset=17,
    )


def rounding_chain(path: Path, layers: int = 8) -> Path:
    """Writes products with halves, each rounded to u8 and back. Half of the sums lie in the middle between two steps,
    except for the rounding of float32."""
    generator = np.random.default_rng(3)
    values: dict[str, object] = {"scale": np.float32(0.15), "point": np.uint8(128)}
    nodes, last = [], "x"
    for i in range(layers):
        values[f"w{i}"] = generator.choice(np.float32([-0.5, 0, 0.5]), (WIDTH, WIDTH), p=[0.04, 0.92, 0.04])
        nodes += [
            helper.make_node("MatMul", [last, f"w{i}"], [f"p{i}"], f"product{i}"),
            helper.make_node("QuantizeLinear", [f"p{i}", "scale", "point"], [f"q{i}"], f"quantise{i}"),
            helper.make_node("DequantizeLinear", [f"q{i}", "scale", "point"], [f"d{i}"], f"dequantise{i}"),
        ]
        last = f"d{i}"
    return save(
        path,
        nodes,
        [tensor("x", [32, WIDTH])],
        [tensor(last, [32, WIDTH])],
        [numpy_helper.from_array(np.asarray(v), name) for name, v in values.items()],
        opset=17,
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("verdicts")
    cancelling_norms(folder / "norms.onnx")
    rounding_chain(folder / "chain.onnx")
    x = np.random.default_rng(8).normal(size=(32, WIDTH)).astype(np.float32)
    save_npz(folder / "x.npz", {"x": x})
    return folder


def transform(folder: Path, name: str, *flags: object) -> subprocess.CompletedProcess[str]:
    return run_tool(
        "model_transform",
        "--model_def",
        f"{name}.onnx",
        "--mlir",
        f"{name}_top.mlir",
        "--test_input",
        "x.npz",
        "--test_result",
        f"{name}_ref.npz",
        *flags,
        cwd=folder,
    )


def deploy(folder: Path, name: str, *flags: object) -> subprocess.CompletedProcess[str]:
    return run_tool(
        "model_deploy",
        "--mlir",
        f"{name}_top.mlir",
        "--test_input",
        "x.npz",
        "--model",
        f"{name}.bmodel",
        *flags,
        cwd=folder,
    )


@pytest.mark.parametrize("name", ["norms", "chain"])
def test_enlarged_rounding_is_a_warning(folder: Path, name: str) -> None:
    """It becomes an error if a tolerance is given."""
    outcomes = []
    for command, flags in ((transform, ()), (deploy, ("--test_reference", f"{name}_ref.npz"))):
        document = json.loads(check(command(folder, name, *flags, "--json")))
        assert document["comparison"]["failed"] == 0
        asked = command(folder, name, *flags, "--tolerance", "F32").returncode
        warned = any("every single op is correct" in text for text in document["warnings"])
        assert bool(document["comparison"]["excused"]) == warned == (asked == 3), (command, asked)
        outcomes.append(asked)
    assert 3 in outcomes, "the network does not show what is tested"


def faulty(path: Path) -> Path:
    """Returns the network with one attribute or constant slightly off."""
    model = onnx.load(str(path))
    for node in model.graph.node:
        if node.name == "norm":
            next(a for a in node.attribute if a.name == "epsilon").f = 1e-9
        if node.name == "quantise4":
            model.graph.initializer.append(numpy_helper.from_array(np.uint8(129), "other"))
            node.input[2] = "other"
    onnx.save(model, str(path.with_name(f"{path.stem}_wrong.onnx")))
    return path.with_name(f"{path.stem}_wrong.onnx")


@pytest.mark.parametrize("name, where", [("norms", "'n'"), ("chain", "4'")])
def test_a_small_fault_beside_onnxruntime_is_found(
    folder: Path,
    tmp_path: Path,
    name: str,
    where: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    from tessera import onnx_runner
    from tessera.cli import model_transform

    wrong, load = faulty(folder / f"{name}.onnx"), onnx_runner.OnnxModel.__init__
    monkeypatch.setattr(
        onnx_runner.OnnxModel, "__init__", lambda self, path, *rest, **named: load(self, wrong, *rest, **named)
    )
    monkeypatch.chdir(tmp_path)
    code = model_transform.main(
        ["--model_def", str(folder / f"{name}.onnx"), "--mlir", "m_top.mlir", "--test_input", str(folder / "x.npz")]
    )
    text = capsys.readouterr()
    assert code == 3 and f"{where} is wrong, computed" in text.out, text.out


@pytest.mark.parametrize("name, where", [("norms", "'n'"), ("chain", "4'")])
def test_a_small_fault_of_the_model_is_found(folder: Path, tmp_path: Path, name: str, where: str) -> None:
    """The reference uses the correct network, the deployed model the faulty one."""
    check(transform(folder, name))
    check(
        run_tool(
            "model_transform",
            "--model_def",
            faulty(folder / f"{name}.onnx"),
            "--mlir",
            "m_top.mlir",
            "--not_inference",
            cwd=tmp_path,
        )
    )
    result = run_tool(
        "model_deploy",
        "--mlir",
        "m_top.mlir",
        "--test_input",
        folder / "x.npz",
        "--test_reference",
        folder / f"{name}_ref.npz",
        "--model",
        "m.bmodel",
        cwd=tmp_path,
    )
    assert (
        result.returncode == 3 and "is wrong, computed" in result.stdout and where in result.stderr + result.stdout
    ), (result.stdout + result.stderr)
