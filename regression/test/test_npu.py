# SPDX-License-Identifier: Apache-2.0
"""Tests quantised models on the NPU simulator: every built-in chip gives the bits of x86, and unsupported ops are
rejected by name."""
from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from case_file import Case, all_cases
from conftest import Builder, calibrate, check, inputs_of, run_tool, samples
from onnx import helper, numpy_helper
from small_models import save, tensor
from test_cases import skip_if_missing

CHIPS = ("npu-edge", "npu-base", "npu-pro")
WHOLE = (
    "mnist",
    "resnet8_cifar10",
    "mobilenetv1_0.25_128",
    "mobilenetv2_1.0_224",
    "ultraface_rfb_320",
    "yolox_nano_416",
    "vittrack",
    "dtln_model_2",
    "deeplabv3_mnv2_dm05_257",
    "ppocrv3_det",
    "stories260k",
    "stories260k_kv",
)

FLOATS = (
    "resnet20_cifar10",
    "mobilenetv1_0.25_128",
    "yolox_nano_416",
    "ultraface_rfb_320",
    "deeplabv3_mnv2_dm05_257",
    "vittrack",
)
# These have scaled channels and learned weights, as run_calibration's default gives. The others use a table that suites
# share.
CHOSEN = ("resnet8_cifar10", "mobilenetv1_0.25_128", "stories260k")
SIXTEEN = ("resnet20_cifar10", "mobilenetv2_1.0_224", "squeezenet1.0_227")


def deploy(top: Path, table: Path, chip: str, output: Path, *more: str, quantize: str = "INT8") -> dict:
    text = check(
        run_tool(
            "tessera-compile",
            "deploy",
            "--mlir",
            top,
            "--chip",
            chip,
            "--quantize",
            quantize,
            "--calibration-table",
            table,
            "--output",
            output,
            *more,
        )
    )
    return json.loads(text.splitlines()[-1])


@pytest.mark.parametrize("case", [case for case in all_cases() if case.name in WHOLE], ids=lambda case: case.name)
def test_chips_give_the_bits_of_x86(case: Case, builder: Builder, tmp_path: Path) -> None:
    import tessera.runtime as runtime

    skip_if_missing(case)
    top = builder.top(case)
    table, specs = (
        calibrate(top, tmp_path, "--methods", "auto") if case.name in CHOSEN else builder.table(case, tmp_path)
    )
    deploy(top, table, "x86", tmp_path / "x86.bmodel")
    inputs = [samples(specs, seed) for seed in range(7, 10)]
    net = runtime.load(str(tmp_path / "x86.bmodel")).net()
    want = [{name: array.copy() for name, array in net(each).items()} for each in inputs]
    for chip in CHIPS:
        info = deploy(top, table, chip, tmp_path / f"{chip}.bmodel")
        assert info["estimate"]["chip"] == chip and info["estimate"]["microseconds"] > 0
        alone = deploy(top, table, chip, tmp_path / "alone.bmodel", "--opt", "0")
        assert info["estimate"]["microseconds"] < alone["estimate"]["microseconds"]
        bytes_between = [each["estimate"]["ddr_bytes"]["intermediate"]["moved"] for each in (info, alone)]
        assert bytes_between[0] < bytes_between[1]
        assert (
            (info["plan"]["whole"] or info["plan"]["groups"])
            and not alone["plan"]["whole"]
            and not alone["plan"]["groups"]
        )
        net = runtime.load(str(tmp_path / f"{chip}.bmodel")).net()
        for given, expected in zip(inputs, want, strict=True):
            for name, array in net(given).items():
                assert np.array_equal(array, expected[name]), f"{chip}: '{name}' differs from x86"


@pytest.mark.parametrize("case", [case for case in all_cases() if case.name in SIXTEEN], ids=lambda case: case.name)
def test_sixteen_bits_are_those_of_x86(case: Case, builder: Builder, tmp_path: Path) -> None:
    """Covers all ops in INT16, and INT8 with some ops in INT16, as in tables of `--cali_method auto`."""
    import tessera.runtime as runtime

    skip_if_missing(case)
    top = builder.top(case)
    table, specs = builder.table(case, tmp_path)
    given = samples(specs, 7)
    info = deploy(top, table, "x86", tmp_path / "x86.bmodel")["quantization"]["ops"]
    products = [op["name"] for op in info if op["products"]]
    some = tmp_path / "some.json"
    some.write_text(
        json.dumps(
            {
                "format": "tessera-quantize-table",
                "version": 1,
                "ops": [{"name": name, "type": "INT16"} for name in products[1::3]],
            }
        )
    )
    for quantize, more in (("INT16", ()), ("INT8", ("--quantize-table", str(some)))):
        wide = deploy(top, table, "x86", tmp_path / "x86.bmodel", *more, quantize=quantize)["quantization"][
            "wide_products"
        ]
        assert wide > 0
        want = {name: array.copy() for name, array in runtime.load(str(tmp_path / "x86.bmodel")).net()(given).items()}
        for chip in CHIPS:
            deploy(top, table, chip, tmp_path / f"{chip}.bmodel", *more, quantize=quantize)
            for name, array in runtime.load(str(tmp_path / f"{chip}.bmodel")).net()(given).items():
                assert np.array_equal(array, want[name]), f"{chip}, {quantize}: '{name}' differs from x86"


@pytest.mark.parametrize("mode", ["fixed", "tflite"])
@pytest.mark.parametrize("name", ["mnist", "resnet8_cifar10", "mobilenetv1_0.25_128"])
def test_chips_that_requantise_in_integers(name: str, mode: str, builder: Builder, tmp_path: Path) -> None:
    """Uses a chip unlike the built-in ones: 12 lanes, 5 banks, and a DMA that converts nothing."""
    import tessera.runtime as runtime

    case = next(case for case in all_cases() if case.name == name)
    skip_if_missing(case)
    top = builder.top(case)
    table, specs = builder.table(case, tmp_path)
    given = samples(specs, 7)
    chip = json.loads((Path(__file__).resolve().parents[2] / "device_dialect/chips/npu-edge.json").read_text())
    chip |= {"name": "odd", "lanes": 12, "requantise": mode}
    chip["local_memory"] |= {"banks": 5, "port_bytes": 8, "bytes_per_lane": 40000}
    chip["matrix_unit"] |= {"reduction": 5, "pixels": 3, "depthwise_divisor": 3}
    chip["dma"]["casts"] = []
    (tmp_path / "odd.json").write_text(json.dumps(chip))
    deploy(top, table, "x86", tmp_path / "x86.bmodel", "--requantize", mode)
    want = {name: array.copy() for name, array in runtime.load(str(tmp_path / "x86.bmodel")).net()(given).items()}
    info = deploy(top, table, str(tmp_path / "odd.json"), tmp_path / "odd.bmodel")["partition"]
    assert info["npu_products"] >= 0.95 * info["products"]
    for name, array in runtime.load(str(tmp_path / "odd.bmodel")).net()(given).items():
        assert np.array_equal(array, want[name]), f"'{name}' differs from x86"


@pytest.mark.parametrize("quantize", ["BF16", "F16", "F32"])
@pytest.mark.parametrize("case", [case for case in all_cases() if case.name in FLOATS], ids=lambda case: case.name)
def test_floats_are_near_those_of_x86(case: Case, quantize: str, builder: Builder, tmp_path: Path) -> None:
    """Sums are f32 in another order, so a value may be rounded to 16 bits in the other direction now and then."""
    import tessera.runtime as runtime

    skip_if_missing(case)
    top = builder.top(case)
    specs = inputs_of(top)
    given = samples(specs, 7)
    got = {}
    for chip in ("x86", "npu-base", "npu-pro"):
        check(
            run_tool(
                "tessera-compile",
                "deploy",
                "--mlir",
                top,
                "--chip",
                chip,
                "--quantize",
                quantize,
                "--output",
                tmp_path / "m.bmodel",
            )
        )
        got[chip] = {
            name: array.copy() for name, array in runtime.load(str(tmp_path / "m.bmodel")).net()(given).items()
        }
    for name, want in got["x86"].items():
        a, b = got["npu-base"][name].astype(np.float64).ravel(), want.astype(np.float64).ravel()
        least = {"BF16": 0.999, "F16": 0.99999, "F32": 1 - 1e-7}[quantize]
        assert a @ b >= least * np.sqrt((a @ a) * (b @ b)), f"'{name}' is far from x86's"


@pytest.mark.parametrize("quantize", ["INT8", "DYNAMIC_INT8"])
def test_products_whose_columns_are_taken_apart(quantize: str, tmp_path: Path) -> None:
    """Attention computes its queries, keys and values like this. The chip may split the product into one for each of
    them, with the same bits."""
    import tessera.runtime as runtime

    rng = np.random.default_rng(8)
    weights, bias = rng.standard_normal((16, 24)).astype(np.float32), rng.standard_normal(24).astype(np.float32)
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["m"], name="qkv"),
        helper.make_node("Add", ["m", "b"], ["s"], name="bias"),
        helper.make_node("Split", ["s", "sizes"], ["q", "k", "v"], name="split", axis=2),
        helper.make_node("Transpose", ["k"], ["t"], name="turned", perm=[0, 2, 1]),
    ]
    constants = [
        numpy_helper.from_array(weights, "w"),
        numpy_helper.from_array(bias, "b"),
        numpy_helper.from_array(np.array([4, 12, 8]), "sizes"),
    ]
    model = save(
        tmp_path / "m.onnx",
        nodes,
        [tensor("x", [1, 40, 16])],
        [tensor("q", [1, 40, 4]), tensor("t", [1, 12, 40]), tensor("v", [1, 40, 8])],
        constants,
    )
    top = tmp_path / "m_top.mlir"
    check(run_tool("model_transform", "--model_name", "m", "--model_def", model, "--mlir", top, "--not_inference"))
    table, specs = calibrate(top, tmp_path)
    given = samples(specs, 7)
    deploy(top, table, "x86", tmp_path / "x86.bmodel", quantize=quantize)
    want = {name: array.copy() for name, array in runtime.load(str(tmp_path / "x86.bmodel")).net()(given).items()}
    for chip in CHIPS:
        deploy(top, table, chip, tmp_path / "m.bmodel", "--strict", quantize=quantize)
        listing = check(run_tool("model_tool", "disasm", tmp_path / "m.bmodel"))
        assert listing.count("\nconv ") + listing.count("\nmatmul ") >= 3, listing
        for name, array in runtime.load(str(tmp_path / "m.bmodel")).net()(given).items():
            assert np.array_equal(array, want[name]), f"{chip}: '{name}' differs from x86"


@pytest.fixture(scope="module")
def small(builder: Builder, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """ResNet-8's Top module and its table, with weights that were learned from samples."""
    case = next(case for case in all_cases() if case.name == "resnet8_cifar10")
    top = builder.top(case)
    return top, calibrate(top, tmp_path_factory.mktemp("npu"), "--methods", "auto")[0]


def test_what_if_changes_the_estimate(small: tuple[Path, Path], tmp_path: Path) -> None:
    top, table = small
    slow, fast = (
        deploy(top, table, "npu-base", tmp_path / "m.bmodel", "--chip-set", f"memories.ddr.gbps={gbps}")["estimate"]
        for gbps in (2, 64)
    )
    assert slow["microseconds"] > 2 * fast["microseconds"]
    assert slow["ddr_bytes"]["weights"] == fast["ddr_bytes"]["weights"]  # plans for other tensors depend on the speed


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("--chip", "npu-base", "--chip-set", "lanes=0"), 2, "lanes is 0, allowed are 1 to 1024"),
        (("--chip", "npu-base", "--chip-set", "speed=3"), 2, "'speed' is not a field of the chip"),
        (
            ("--chip", "x86", "--chip-set", "lanes=4"),
            2,
            "--chip-set changes a chip description, and 'x86' does not have one",
        ),
        (("--chip", "npu-huge"), 2, "unknown chip 'npu-huge'"),
        (("--chip", "missing.json"), 1, "cannot read 'missing.json'"),
        (("--chip", "npu-edge", "--requantize", "fixed"), 4, "npu-edge requantises in float"),
        (
            ("--chip", "npu-edge", "--strict", "--chip-set", 'types=["int8"]'),
            4,
            "computes with f32, which the chip does not",
        ),
        (
            (
                "--chip",
                "npu-edge",
                "--strict",
                "--chip-set",
                "local_memory.bytes_per_lane=1024",
                "--chip-set",
                "lanes=1",
            ),
            4,
            "needs more than the 1024 bytes of a lane",
        ),
        (("--chip", "x86", "--strict"), 2, "--strict is for chips that need a host"),
        (("--chip", "x86-v2", "--host-chip", "x86-v2"), 2, "--host-chip is for chips that need a host"),
        (("--chip", "npu-edge", "--host-chip", "z80"), 2, "--host-chip: unknown chip 'z80'"),
    ],
)
def test_rejections_say_why(
    small: tuple[Path, Path], tmp_path: Path, arguments: tuple[str, ...], code: int, message: str
) -> None:
    top, table = small
    result = run_tool(
        "tessera-compile",
        "deploy",
        "--mlir",
        top,
        "--quantize",
        "INT8",
        "--calibration-table",
        table,
        "--output",
        tmp_path / "m.bmodel",
        *arguments,
    )
    assert result.returncode == code and message in result.stdout, result.stdout
    assert not (tmp_path / "m.bmodel").exists()


def test_model_deploy_checks_and_estimates(small: tuple[Path, Path], tmp_path: Path) -> None:
    top, table = small
    model = tmp_path / "m.bmodel"
    text = check(
        run_tool(
            "model_deploy",
            "--mlir",
            top,
            "--chip",
            "npu-pro",
            "--quantize",
            "INT8",
            "--calibration_table",
            table,
            "--model",
            model,
        )
    )
    assert "commands, estimated" in text and "run m.bmodel" in text.replace(str(tmp_path) + "/", "")
    for quantize in ("BF16", "W8", "W4"):
        check(
            run_tool(
                "model_deploy",
                "--mlir",
                top,
                "--chip",
                "npu-pro",
                "--quantize",
                quantize,
                "--strict",
                "--model",
                tmp_path / "narrow.bmodel",
            )
        )
    for chip, quantize, reason in (
        ("npu-edge", "F16", "computes with f16, which the chip does not"),
        ("npu-edge", "F32", "multiplies floats, which the chip's matrix unit does not"),
    ):
        rejected = run_tool(
            "model_deploy",
            "--mlir",
            top,
            "--chip",
            chip,
            "--quantize",
            quantize,
            "--strict",
            "--model",
            tmp_path / "other.bmodel",
        )
        assert rejected.returncode == 4 and reason in rejected.stderr, rejected.stderr


def ghost_bottleneck(path: Path) -> Path:
    """Builds a ghost bottleneck as in GhostNet: twice, half of a result's channels are computed from the other half;
    the input is added."""
    rng, nodes, weights = np.random.default_rng(0), [], []

    def conv(x: str, y: str, shape: tuple[int, ...], relu: bool = True, **more: object) -> str:
        weights.append(
            numpy_helper.from_array(
                (rng.standard_normal(shape) / np.sqrt(np.prod(shape[1:]))).astype(np.float32), f"{y}_w"
            )
        )
        nodes.append(helper.make_node("Conv", [x, f"{y}_w"], [f"{y}_c" if relu else y], y, **more))
        if relu:
            nodes.append(helper.make_node("Relu", [f"{y}_c"], [y]))
        return y

    stem = last = conv("x", "stem", (16, 3, 3, 3), pads=[1, 1, 1, 1], strides=[2, 2])
    for name, relu in (("first", True), ("second", False)):
        half = conv(last, f"{name}_a", (8, 16, 1, 1), relu)
        nodes.append(
            helper.make_node(
                "Concat",
                [half, conv(half, f"{name}_b", (8, 1, 3, 3), relu, pads=[1, 1, 1, 1], group=8)],
                [name],
                axis=1,
            )
        )
        last = name
    nodes.append(helper.make_node("Add", [last, stem], ["y"], "shortcut"))
    return save(path, nodes, [tensor("x", [1, 3, 224, 224])], [tensor("y", [1, 16, 112, 112])], weights)


@pytest.mark.parametrize("chip", ["npu-base", "npu-pro"])
def test_parts_of_a_concatenation_begin_in_other_lanes(tmp_path: Path, chip: str) -> None:
    top = tmp_path / "m_top.mlir"
    check(
        run_tool(
            "model_transform", "--model_def", ghost_bottleneck(tmp_path / "m.onnx"), "--mlir", top, "--not_inference"
        )
    )
    check(
        run_tool("model_deploy", "--mlir", top, "--chip", chip, "--quantize", "BF16", "--model", tmp_path / "m.bmodel")
    )


@pytest.mark.parametrize("chip", CHIPS)
def test_products_of_32_bits_run_on_the_host(chip: str, tmp_path: Path) -> None:
    """The matrix unit cannot multiply integers of 32 bits."""
    top, compiled = tmp_path / "m_top.mlir", tmp_path / "m.bmodel"
    top.write_text(
        """module attributes {top.model_name = "m"} {
  func.func @main(%x: tensor<1x2x5x5xi32> {top.name = "x"}) -> (tensor<1x3x3x3xi32> {top.name = "y"}) {
    %w = top.constant dense<300> : tensor<3x2x3x3xi32> : tensor<3x2x3x3xi32>
    %y = top.conv %x, %w {strides = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>,
        top.outputs = ["y"]} : (tensor<1x2x5x5xi32>, tensor<3x2x3x3xi32>) -> tensor<1x3x3x3xi32>
    return %y : tensor<1x3x3x3xi32>
  }
}
"""
    )
    check(run_tool("model_deploy", "--mlir", top, "--chip", chip, "--model", compiled))
    given = np.random.default_rng(3).integers(-1000, 1000, (1, 2, 5, 5), np.int32)
    np.savez(tmp_path / "in.npz", x=given)
    check(run_tool("model_runner", "--model", compiled, "--input", tmp_path / "in.npz", "--output", tmp_path / "y.npz"))
    sums = np.lib.stride_tricks.sliding_window_view(given[0].sum(0), (3, 3)).sum((2, 3)) * 300
    assert np.array_equal(np.load(tmp_path / "y.npz")["y"][0], np.broadcast_to(sums, (3, 3, 3)))
