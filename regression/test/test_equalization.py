# SPDX-License-Identifier: Apache-2.0
"""Tests cross-layer equalisation and SmoothQuant on real networks whose channels were scaled by different factors: the
function is the same, but int8 loses most of its accuracy."""
from __future__ import annotations

import json
from pathlib import Path
from typing import Callable

import numpy as np
import onnx
import pytest
from case_file import REGRESSION
from conftest import check, run_tool
from onnx import TensorProto, helper, numpy_helper
from test_calibration import calibrate

from tessera import bmodel, safetensors_io, top_model
from tessera.calibration import equalization
from tessera.calibration.observed import Observed
from tessera.calibration.worker import Worker
from tessera.files import save_npz
from tessera.progress import Report

MODEL = REGRESSION / "models" / "resnet8_cifar10" / "resnet8_cifar10.onnx"
SAMPLES = """
import numpy as np

def samples():
    generator = np.random.default_rng(5)
    for i in range(40):
        yield {{name: generator.uniform(-1, 1, shape).astype(np.float32) for name, shape in {shapes!r}.items()}}
"""


class Scaler:
    """Divides channels of tensors by powers of 2 and multiplies the weights that read them, so outputs stay the
    same."""

    def __init__(self, model: onnx.ModelProto) -> None:
        self.graph = model.graph
        self._weights = {i.name: i for i in model.graph.initializer}
        self._generator = np.random.default_rng(1)
        self.scaled = 0

    def readers(self, tensor: str) -> list[onnx.NodeProto]:
        return [node for node in self.graph.node if tensor in node.input]

    def factors(self, count: int) -> np.ndarray:
        self.scaled += 1
        return np.exp2(self._generator.integers(-4, 5, count)).astype(np.float32)

    def multiply(self, name: str, factors: np.ndarray, axis: int) -> None:
        old = self._weights[name]
        array = numpy_helper.to_array(old)
        shape = [1] * array.ndim
        shape[axis] = -1
        old.CopyFrom(numpy_helper.from_array(array * factors.reshape(shape), name))

    def scale_convolutions(self) -> None:
        """Scales the channels between a convolution, with or without Relu, and a second convolution that is its only
        reader."""
        for conv in [node for node in self.graph.node if node.op_type == "Conv"]:
            after = self.readers(conv.output[0])
            if len(after) == 1 and after[0].op_type == "Relu":
                after = self.readers(after[0].output[0])
            if len(after) == 1 and after[0].op_type == "Conv" and after[0].input[1] not in conv.input:
                factors = self.factors(self._weights[conv.input[1]].dims[0])
                for name in conv.input[1:]:
                    self.multiply(name, 1 / factors, 0)
                self.multiply(after[0].input[1], factors, 1)

    def scale_norms(self) -> None:
        """Scales the channels between the scale and shift of a norm and the matmuls that alone read it, as in trained
        language models."""
        for shift in [node for node in self.graph.node if node.op_type == "Add"]:
            result = {output: node for node in self.graph.node for output in node.output}
            scale = next((result[i] for i in shift.input if i in result and result[i].op_type == "Mul"), None)
            constants = [next((i for i in node.input if i in self._weights), "") for node in (scale, shift) if node]
            after = self.readers(shift.output[0])
            if (
                len(constants) == 2
                and all(constants)
                and after
                and all(node.op_type == "MatMul" and node.input[1] in self._weights for node in after)
            ):
                factors = self.factors(self._weights[constants[0]].dims[0])
                for name in constants:
                    self.multiply(name, 1 / factors, 0)
                for name in {node.input[1] for node in after}:
                    self.multiply(name, factors, 0)


def transformed(model: onnx.ModelProto, folder: Path) -> Path:
    onnx.save(model, folder / "m.onnx")
    check(
        run_tool(
            "model_transform",
            "--model_def",
            folder / "m.onnx",
            "--model_name",
            "m",
            "--not_inference",
            "--mlir",
            "m_top.mlir",
            cwd=folder,
        )
    )
    return folder / "m_top.mlir"


def samples_for(top: Path, path: Path) -> Path:
    shapes = {spec.name: spec.shape for spec in top_model.open_top(top, Report(1, quiet=True)).inputs}
    path.write_text(SAMPLES.format(shapes=shapes))
    return path


def output_error(top: Path, table: Path, folder: Path) -> float:
    """Returns the relative output error of int8 on an input that is not one of the samples."""
    outputs = []
    for flags in (["F32"], ["INT8", "--calibration_table", table]):
        check(
            run_tool(
                "model_deploy",
                "--mlir",
                top,
                "--quantize",
                *flags,
                "--model",
                folder / "m.bmodel",
                "--skip_validation",
                cwd=folder,
            )
        )
        net = bmodel.open_net(folder / "m.bmodel", 1)
        generator = np.random.default_rng(9)
        outputs.append(
            net.run({spec.name: generator.uniform(-1, 1, spec.shape).astype(np.float32) for spec in net.inputs})
        )
    golden, got = outputs
    return max(float(np.linalg.norm(golden[name] - got[name]) / np.linalg.norm(golden[name])) for name in golden)


def without_errors(table: Path) -> Path:
    """Removes the errors from a table, so that no op is repaired with 16 bits instead."""
    document = json.loads(table.read_text())
    for line in document["tensors"]:
        line.pop("error", None)
    table.write_text(json.dumps(document))
    return table


@pytest.fixture(scope="module")
def apart(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("apart")
    scaler = Scaler(model := onnx.load(MODEL))
    scaler.scale_convolutions()
    assert scaler.scaled >= 3
    top = transformed(model, folder)
    return top, samples_for(top, folder / "make.py")


def test_cross_layer_equalization_repairs_channels_that_are_apart(apart: tuple[Path, Path], tmp_path: Path) -> None:
    top, samples = apart
    errors = {}
    for methods in ("none", "cross_layer_equalization"):
        check(calibrate(top, samples, tmp_path / f"{methods}.json", "--methods", methods))
        errors[methods] = output_error(top, without_errors(tmp_path / f"{methods}.json"), tmp_path)
    assert errors["cross_layer_equalization"] < 0.4 * errors["none"], errors


def test_auto_equalises_only_where_it_pays(apart: tuple[Path, Path], tmp_path: Path) -> None:
    top, samples = apart
    info = json.loads(check(calibrate(top, samples, tmp_path / "a.json", "--json")))["equalization"]
    assert info["tensors"] >= 3 and info["error_with"] < 0.7 * info["error_without"], info
    plain = transformed(onnx.load(MODEL), tmp_path)
    info = json.loads(check(calibrate(plain, samples, tmp_path / "b.json", "--json")))["equalization"]
    assert info["tensors"] == 0, info


def test_scaled_tensors_are_compared_with_the_models(apart: tuple[Path, Path], tmp_path: Path) -> None:
    """Tensors that hold their values divided by factors are multiplied by these factors before they are compared,
    both against the float model and op by op."""
    top, samples = apart
    check(calibrate(top, samples, tmp_path / "a.json", "--methods", "cross_layer_equalization"))
    assert any(name.endswith(":factors") for name in safetensors_io.load(tmp_path / "a.safetensors"))
    spec = top_model.open_top(top, Report(1, quiet=True)).inputs[0]
    save_npz(tmp_path / "in.npz", {spec.name: np.random.default_rng(9).uniform(-1, 1, spec.shape).astype(np.float32)})
    info = check(
        run_tool(
            "model_deploy",
            "--mlir",
            top,
            "--quantize",
            "INT8",
            "--calibration_table",
            tmp_path / "a.json",
            "--model",
            tmp_path / "a.bmodel",
            "--test_input",
            tmp_path / "in.npz",
            "--json",
            cwd=tmp_path,
        )
    )
    rows = json.loads(info)["comparison"]["tensors"]
    assert len(rows) >= 12 and min(row["cosine"] for row in rows) > 0.95  # 0.4 without factors
    own = [row["own_rel_l2"] for row in rows if row["own_rel_l2"] is not None]
    assert len(own) >= 12 and max(own) < 0.15, own


def test_engines_agree_on_scaled_models(apart: tuple[Path, Path], tmp_path: Path) -> None:
    """Every engine gives the device reference's integers for every variant."""
    top, samples = apart
    check(calibrate(top, samples, tmp_path / "a.json", "--methods", "cross_layer_equalization"))
    generator, outputs = np.random.default_rng(9), []
    for chip in ("x86", "x86-avx2", "x86-v2"):
        if bmodel.can_run(chip):
            check(
                run_tool(
                    "model_deploy",
                    "--mlir",
                    top,
                    "--chip",
                    chip,
                    "--quantize",
                    "INT8",
                    "--calibration_table",
                    tmp_path / "a.json",
                    "--model",
                    tmp_path / "a.bmodel",
                    "--skip_validation",
                    cwd=tmp_path,
                )
            )
            net = bmodel.open_net(tmp_path / "a.bmodel", 1)
            if not outputs:
                inputs = {spec.name: generator.uniform(-1, 1, spec.shape).astype(np.float32) for spec in net.inputs}
            outputs.append(net.run(inputs))
    for other in outputs[1:]:
        for name, array in outputs[0].items():
            assert array.tobytes() == other[name].tobytes(), name


def test_smooth_quant_repairs_a_transformer(need: Callable[[str], Path], tmp_path: Path) -> None:
    scaler = Scaler(model := onnx.load(need("data:models/transformer/vittrack.onnx")))
    scaler.scale_norms()
    assert scaler.scaled >= 3
    top = transformed(model, tmp_path)
    samples = samples_for(top, tmp_path / "make.py")
    errors = {}
    for methods in ("none", "smooth_quant"):
        check(calibrate(top, samples, tmp_path / f"{methods}.json", "--methods", methods, "--cali_method", "mse"))
        errors[methods] = output_error(top, tmp_path / f"{methods}.json", tmp_path)
    assert errors["smooth_quant"] < 0.5 * errors["none"], errors


def random_chain(seed: int) -> onnx.ModelProto:
    """Builds grouped convolutions and transposed convolutions in a chain, then a matmul. Their channels differ in
    magnitude."""
    random = np.random.default_rng(seed)
    nodes, constants, channels, size = [], [], 8, 4

    def weight(shape: tuple[int, ...], axis: int) -> str:
        """Adds a weight whose output channels differ in size by powers of two."""
        apart = np.exp2(random.integers(-4, 5, shape[axis])).reshape(
            [-1 if d == axis else 1 for d in range(len(shape))]
        )
        name = f"w{len(constants)}"
        constants.append(numpy_helper.from_array((random.normal(size=shape) * apart).astype(np.float32), name))
        return name

    for i in range(5):
        groups, result = int(random.choice([1, 2, 4, 8])), int(random.choice([8, 16]))
        if random.random() < 0.5:
            nodes.append(helper.make_node("Conv", [f"x{i}", ""], [f"c{i}"], group=groups, pads=[1] * 4))
            nodes[-1].input[1] = weight((result, channels // groups, 3, 3), 0)
        else:
            nodes.append(helper.make_node("ConvTranspose", [f"x{i}", ""], [f"c{i}"], group=groups, strides=[2, 2]))
            nodes[-1].input[1] = weight((channels, result // groups, 2, 2), 1)
            size *= 2
        nodes.append(helper.make_node("Relu", [f"c{i}"], [f"x{i + 1}"]))
        channels = result
    nodes.append(helper.make_node("Transpose", ["x5"], ["t"], perm=[0, 2, 3, 1]))
    nodes.append(helper.make_node("MatMul", ["t", weight((channels, 8), 1)], ["y"]))
    x, y = (
        helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)
        for name, shape in (("x0", [1, 8, 4, 4]), ("y", [1, size, size, 8]))
    )
    graph = helper.make_graph(nodes, "g", [x], [y], constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])


@pytest.mark.parametrize("seed", range(6))
def test_factors_leave_the_function(seed: int, tmp_path: Path) -> None:
    """Covers grouped weights, and weights whose first dim is the input channel."""
    report = Report(1, quiet=True)
    onnx.save(random_chain(seed), tmp_path / "m.onnx")
    model, _ = top_model.import_onnx(tmp_path / "m.onnx", tmp_path / "m_top.mlir", report, model_name="m")
    plain = Observed.compile(model, tmp_path / "plain", report, [])
    arrays = {"x0": np.random.default_rng(seed).normal(size=(1, 8, 4, 4)).astype(np.float32)}
    worker, channels = Worker(plain.job()), equalization.Channels(plain)
    worker.run(arrays)
    channels.add(worker)
    scaled = equalization._compile(plain, channels.found(), ["conv", "matmul"], [], tmp_path)
    info = scaled.info["equalization"]
    assert len(scaled.factors) >= 3 and info["noise_after"] < info["noise_before"]
    other = Worker(scaled.job())
    other.run(arrays)
    wanted, got = worker.outputs()["y"], other.outputs()["y"]
    assert np.linalg.norm(got - wanted) < 1e-4 * np.linalg.norm(wanted)
