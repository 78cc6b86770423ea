# SPDX-License-Identifier: Apache-2.0
"""Tests single layers of NPU models, and models that are broken on purpose: the tool names the layer and its
command."""
from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from case_file import all_cases
from conftest import Builder, calibrate, check, run_tool
from onnx import helper
from small_models import save, tensor
from test_npu_host import mixed, weights

DESCRIPTOR_BYTES = 256
ZERO_POINT = 224 + 28  # the zero point of a conv's output stage in f32 (docs/generated/npu-isa.md)
SIGN, EXPONENT = 0x80, 0x40


class Model:
    def __init__(self, top: Path, table: Path, folder: Path) -> None:
        self.top, self.table, self.folder = top, table, folder

    def deploy(self, quantize: str, *flags: object, chip: str = "npu-base") -> Any:
        table = ("--calibration_table", self.table) if quantize == "INT8" else ()
        command = ("model_deploy", "--mlir", self.top, "--chip", chip, "--quantize", quantize, *table)
        return run_tool(*command, "--accept_loss" if quantize != "F32" else "--json", "--model", "m.bmodel", *flags,
                        cwd=self.folder)  # fmt: skip

    def layers(self, quantize: str, *flags: object) -> Path:
        """Returns the folder that model_deploy --layers writes."""
        folder = self.folder / f"layers-{quantize}"
        if not folder.exists():
            check(self.deploy(quantize, "--layers", folder, *flags))
        return folder


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Model:
    folder = tmp_path_factory.mktemp("layers")
    case = next(case for case in all_cases() if case.name == "resnet8_cifar10")
    builder = Builder(folder)
    return Model(builder.top(case), builder.table(case, folder)[0], folder)


@pytest.fixture(scope="module")
def in_parts(tmp_path_factory: pytest.TempPathFactory) -> Model:
    """Deploys a model that runs in three parts: NPU, host, NPU."""
    folder = tmp_path_factory.mktemp("parts")
    check(run_tool("model_transform", "--model_def", mixed(folder / "m.onnx"), "--mlir", folder / "m_top.mlir"))
    return Model(folder / "m_top.mlir", calibrate(folder / "m_top.mlir", folder)[0], folder)


def look(folder: Path) -> Any:
    return run_tool("model_tool", "layers", folder)


def flip(folder: Path, copy: Path, place: tuple[int, int], bits: int) -> Path:
    """Copies the folder and flips bits in one byte of a segment of its model; the hashes stay valid."""
    shutil.copytree(folder, copy)
    flags = ("--segment", place[0], "--flip", place[1], "--bits", bits, "--output", copy / "layers.bmodel")
    check(run_tool("bmrt_reseal", folder / "layers.bmodel", *flags))
    check(run_tool("model_tool", "info", copy / "layers.bmodel"))
    return copy


def file_of(folder: Path) -> dict:
    return json.loads(check(run_tool("bmodel-dump", folder / "layers.bmodel")))


def constants_of(folder: Path, node: str, more: int = 0) -> tuple[int, int]:
    """Returns the place of the weights of a layer, i.e. of its largest constant: segment, and offset in it."""
    tensors = file_of(folder)["nets"][0]["stages"][0]["tensors"]
    mine = [tensor for tensor in tensors if re.fullmatch(rf"constant \d+ of {re.escape(node)}", tensor["name"])]
    found = max(mine, key=lambda tensor: tensor["bytes"])
    return found["place_index"], found["offset"] + more


@pytest.mark.parametrize("quantize", ["F32", "BF16", "F16", "INT8", "W8", "W4", "DYNAMIC_INT8"])
def test_layers_are_right(model: Model, quantize: str) -> None:
    info = json.loads(check(self_json(model, quantize)))["layers"]
    assert info["first_wrong"] is None and len(info["layers"]) >= 11
    names = "+".join(node for layer in info["layers"] for node in layer["nodes"])
    for node in ("Conv_0", "Add_5", "Conv_16", "GlobalAveragePool_19", "Gemm_21", "Softmax_22"):
        assert node in names.split("+")
    if quantize == "INT8":
        assert all(layer["equal"] for layer in info["layers"])


def self_json(model: Model, quantize: str) -> Any:
    model.layers(quantize)
    return run_tool("model_tool", "layers", model.layers(quantize), "--json")


@pytest.mark.parametrize("quantize", ["INT8", "F32", "W8"])
def test_a_wrong_weight_is_named_with_its_command(model: Model, quantize: str, tmp_path: Path) -> None:
    folder = model.layers(quantize)
    place = constants_of(folder, "Conv_9", 3 if quantize == "F32" else 0)
    broken = flip(folder, tmp_path / "broken", place, EXPONENT)
    result = look(broken)
    assert result.returncode == 3, result.stdout + result.stderr
    assert "the first wrong layer is 'Conv_9' (layer 0." in result.stderr
    assert re.search(r"command \d+: conv id=\d+ .*# Conv_9", result.stderr)
    assert result.stdout.count("wrong") == 2, "one row and the sum: layers behind it are right for what they were given"


def test_a_wrong_command_is_named(model: Model, tmp_path: Path) -> None:
    folder = model.layers("INT8")
    lines = check(run_tool("npu-perf", folder / "layers.bmodel", "--commands", "--numbered")).splitlines()
    number = next(int(line.split()[2]) for line in lines if "\tconv" in line and line.endswith("# Conv_13+Relu_14"))
    code = next(index for index, segment in enumerate(file_of(folder)["segments"]) if segment["kind"] == "Code")
    broken = flip(folder, tmp_path / "broken", (code, number * DESCRIPTOR_BYTES + ZERO_POINT + 2), 0x08)
    result = look(broken)
    assert result.returncode == 3, result.stdout + result.stderr
    assert "the first wrong layer is 'Conv_13+Relu_14'" in result.stderr
    assert re.search(rf"command {number}: conv ", result.stderr), result.stderr


def test_parts_on_chip_and_host(in_parts: Model, tmp_path: Path) -> None:
    folder = in_parts.layers("INT8")
    right = check(look(folder))
    assert " 0 wrong" in right and re.search(r"^host +turned", right, re.M)
    assert re.search(r"^1\.\d+ +second", right, re.M)
    result = look(flip(folder, tmp_path / "broken", constants_of(folder, "second"), SIGN))
    assert result.returncode == 3 and "the first wrong layer is 'second' (layer 1." in result.stderr
    assert re.search(r"command \d+: conv .*# second", result.stderr)


def test_a_plan_of_parts_is_followed(in_parts: Model) -> None:
    check(in_parts.deploy("INT8", "--skip_validation", "--plan_out", "plan.json"))
    first = (in_parts.folder / "m.bmodel").read_bytes()
    check(in_parts.deploy("INT8", "--skip_validation", "--plan", "plan.json"))
    assert (in_parts.folder / "m.bmodel").read_bytes() == first


def test_compare_all_shows_layers(model: Model) -> None:
    shown = check(model.deploy("INT8", "--compare_all", chip="npu-edge"))
    assert re.search(r"^0\.\d+ +Conv_9 +device\.conv .* equal$", shown, re.M), shown[-3000:]


def test_every_stage_is_looked_at(tmp_path: Path) -> None:
    tops = []
    for size in (8, 16):
        nodes = [helper.make_node("Conv", ["x", "w"], ["c"], name="conv"), helper.make_node("Relu", ["c"], ["y"])]
        path = save(tmp_path / f"{size}.onnx", nodes, [tensor("x", [1, 3, size, size])],
                    [tensor("y", [1, 4, size - 2, size - 2])], [weights("w", 4, 3, 3, 3)])  # fmt: skip
        tops.append(tmp_path / f"{size}_top.mlir")
        check(run_tool("model_transform", "--model_def", path, "--model_name", "m", "--mlir", tops[-1]))
    flags = ("--chip", "npu-base", "--quantize", "W8", "--model", tmp_path / "m.bmodel")
    check(run_tool("model_deploy", "--mlir", *tops, *flags, "--layers", tmp_path / "layers"))
    for stage in range(2):
        assert "conv" in check(look(tmp_path / "layers" / f"stage-{stage}"))


def test_all_tensors_are_dumped(model: Model) -> None:
    flags = ("--input", "random", "--output", "o.npz", "--dump_all_tensors")
    shown = check(run_tool("model_runner", "--model", model.layers("INT8") / "layers.bmodel", *flags, cwd=model.folder))
    assert re.search(r"^t10 +float32", shown, re.M) and "stay on the NPU" not in shown
    check(model.deploy("INT8", "--skip_validation"))
    hidden = run_tool("model_runner", "--model", "m.bmodel", *flags, cwd=model.folder)
    assert "'model_deploy --layers DIR' writes layers.bmodel" in check(hidden) + hidden.stderr


def test_what_is_rejected(model: Model, tmp_path: Path) -> None:
    result = model.deploy("F32", "--layers", "l", chip="x86")
    assert result.returncode == 2 and "--layers is for NPUs" in result.stderr + result.stdout
    result = model.deploy("F32", "--layers", "l", "--skip_validation")
    assert result.returncode == 2 and "contradicts" in result.stderr + result.stdout
    result = look(tmp_path)
    assert result.returncode == 1 and "layers.bmodel" in result.stderr, result.stderr
