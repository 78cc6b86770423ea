# SPDX-License-Identifier: Apache-2.0
"""Compares operators that Tessera builds from several others with onnxruntime, at random sizes: import, x86 code, and
results of a run."""
from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Callable

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "conformance"))

from conftest import check, run_tool  # noqa: E402
from engines import Compiler, deploy, run_bmodel, supported_isas  # noqa: E402

from tessera.top_model import pad  # noqa: E402

ort = pytest.importorskip("onnxruntime")
SEEDS = range(int(os.environ.get("TESSERA_OPERATOR_SEEDS", "2")))  # a larger number gives a longer run
Case = Callable[[np.random.Generator], "tuple[list, dict, dict, int]"]


def node(kind: str, inputs: list[str], outputs: list[str], **attributes: object):
    return helper.make_node(kind, inputs, outputs, name=kind.lower(), **attributes)


def floats(rng: np.random.Generator, *shape: int) -> np.ndarray:
    return rng.standard_normal(shape).astype(np.float32)


# Each function returns nodes, inputs, constants and the opset; the outputs are the tensors that no node reads.


def dft(rng: np.random.Generator):
    pairs, inverse = bool(rng.integers(2)), bool(rng.integers(2))
    shape = (int(rng.integers(1, 3)), int(rng.choice([7, 16, 30, 101])), int(rng.integers(1, 9)))
    axis = int(rng.integers(1, 3))
    constants = (
        {"n": np.int64(rng.integers(4, 60)), "axis": np.int64(axis)} if rng.integers(2) else {"axis": np.int64(axis)}
    )
    onesided = int(not pairs and not inverse and rng.integers(2))
    return (
        [node("DFT", ["x", "n" if "n" in constants else "", "axis"], ["y"], inverse=int(inverse), onesided=onesided)],
        {"x": floats(rng, *shape, 2 if pairs else 1)},
        constants,
        20,
    )


def stft(rng: np.random.Generator):
    length, step = int(rng.choice([16, 25, 400])), int(rng.choice([4, 7, 160]))
    shape = (int(rng.integers(1, 3)), length + int(rng.integers(0, 900)))
    signal = floats(rng, *shape, 1) if rng.integers(2) else floats(rng, *shape)  # the form of PyTorch's exporter
    window = rng.random(length).astype(np.float32)
    constants = {"step": np.int64(step), "window": window, "length": np.int64(length)}
    operands = ["x", "step", "window"] if rng.integers(2) else ["x", "step", "", "length"]
    return [node("STFT", operands, ["y"], onesided=int(rng.integers(2)))], {"x": signal}, constants, 17


def run_time_window(rng: np.random.Generator):
    return (
        [node("STFT", ["x", "step", "w"], ["y"])],
        {"x": floats(rng, 1, 100, 1), "w": floats(rng, 20)},
        {"step": np.int64(10)},
        17,
    )


def suppression(rng: np.random.Generator):
    batch, classes, count = int(rng.integers(1, 3)), int(rng.integers(1, 4)), int(rng.integers(1, 200))
    center = int(rng.integers(2))
    boxes = rng.random((batch, count, 4)).astype(np.float32) * np.float32([1, 1, 0.5, 0.5] if center else 1)
    boxes[:, ::7] = boxes[:, :1]  # some boxes are equal
    scores = np.round(rng.random((batch, classes, count)), 1).astype(np.float32)  # many scores are equal
    limits = {"most": np.int64([rng.integers(1, 30)]), "iou": np.float32([rng.choice([0.0, 0.3, 0.6, 1.0])])}
    if rng.integers(2):
        limits["least"] = np.float32([rng.choice([0.2, 0.7, 2.0])])
    at_run_time = bool(rng.integers(2))
    return (
        [node("NonMaxSuppression", ["boxes", "scores", *limits], ["y"], center_point_box=center)],
        {"boxes": boxes, "scores": scores, **(limits if at_run_time else {})},
        {} if at_run_time else limits,
        13,
    )


def detections(rng: np.random.Generator):
    """Builds the end of a detector, which gathers boxes and scores by the result of NonMaxSuppression."""
    count = 50
    corner = rng.random((1, count, 2)).astype(np.float32)
    boxes = np.concatenate([corner, corner + 0.3 * rng.random((1, count, 2)).astype(np.float32)], 2)
    constants = {
        "most": np.int64([10]),
        "iou": np.float32([0.4]),
        "least": np.float32([0.3]),
        "flat": np.int64([-1]),
        "whole": np.int64([count, 4]),
        "which": np.int64([0, 2, 1]),
    }
    return (
        [
            node("NonMaxSuppression", ["boxes", "scores", "most", "iou", "least"], ["chosen"]),
            helper.make_node("Gather", ["chosen", "last"], ["column"], axis=1),
            helper.make_node("Squeeze", ["column", "one"], ["number"]),
            helper.make_node("Reshape", ["boxes", "whole"], ["flat_boxes"]),
            helper.make_node("Gather", ["flat_boxes", "number"], ["picked"]),
            helper.make_node("Cast", ["number"], ["number_f"], to=TensorProto.FLOAT),
            helper.make_node("Transpose", ["scores"], ["scores_t"], perm=[0, 2, 1]),
            helper.make_node("Gather", ["chosen", "which"], ["tuples"], axis=1),
            helper.make_node("GatherND", ["scores_t", "tuples"], ["score"]),
            helper.make_node("Mul", ["picked", "size"], ["box"]),
            helper.make_node("Identity", ["number_f"], ["label"]),
        ],
        {"boxes": boxes, "scores": rng.random((1, 3, count)).astype(np.float32)},
        {**constants, "last": np.int64([2]), "one": np.int64([1]), "size": np.float32([640, 480, 640, 480])},
        13,
    )


def unique(rng: np.random.Generator):
    kind = [np.float32, np.int64, np.int8][rng.integers(3)]  # the types that onnxruntime supports
    shape = [(int(rng.integers(1, 60)),), (4, int(rng.integers(1, 9))), (5, 2, 3)][rng.integers(3)]
    options = {"sorted": int(rng.integers(2))}
    if len(shape) > 1 and rng.integers(2):
        options["axis"] = int(rng.integers(len(shape)))
        options["sorted"] = 1
    x = rng.integers(0, 3 if "axis" in options else 20, shape).astype(kind)
    return [node("Unique", ["x"], ["y", "first", "inverse", "counts"], **options)], {"x": x}, {}, 13


def non_zero(rng: np.random.Generator):
    shape = tuple(int(d) for d in rng.integers(1, 6, rng.integers(1, 4)))
    return (
        [node("NonZero", ["x"], ["y"])],
        {"x": rng.integers(-1, 2, shape).astype(rng.choice([np.float32, np.int64]))},
        {},
        13,
    )


def compress(rng: np.random.Generator):
    x = floats(rng, 4, 6, 3)
    options = {"axis": int(rng.integers(3))} if rng.integers(2) else {}
    size = x.shape[options["axis"]] if options else x.size
    return [node("Compress", ["x", "flags"], ["y"], **options)], {"x": x, "flags": rng.random(size) > 0.5}, {}, 13


def batch_norm(rng: np.random.Generator):
    channels = int(rng.integers(1, 20))
    constants = {name: rng.random(channels).astype(np.float32) + 0.5 for name in ("scale", "bias", "mean", "variance")}
    shape = (int(rng.integers(1, 4)), channels, *(int(d) for d in rng.integers(2, 7, rng.integers(0, 3))))
    return (
        [node("BatchNormalization", ["x", *constants], ["y", "m", "v"], training_mode=1, momentum=0.7)],
        {"x": floats(rng, *(max(2, d) if i == 0 and len(shape) == 2 else d for i, d in enumerate(shape)))},
        constants,
        15,
    )


def losses(rng: np.random.Generator):
    shape = (3, 5, *(int(d) for d in rng.integers(1, 5, rng.integers(0, 3))))
    target = rng.integers(0, 5, (3, *shape[2:]))
    target.reshape(-1)[0] = 1
    options = {
        "reduction": str(rng.choice(["none", "mean", "sum"])),
        **({"ignore_index": 2} if rng.integers(2) else {}),
    }
    operands = ["x", "target", "w"] if rng.integers(2) else ["x", "target"]
    return (
        [node("SoftmaxCrossEntropyLoss", operands, ["y", "log"], **options)],
        {"x": floats(rng, *shape), "target": target},
        {"w": rng.random(5).astype(np.float32) + 0.5},
        13,
    )


def region_means(rng: np.random.Generator):
    """Builds means of regions of any size, also with swapped corners and far outside, whose number of points depends on
    their size."""
    images, channels, height, width, count = (int(n) for n in rng.integers([1, 1, 1, 1, 1], [3, 5, 20, 20, 9]))
    corners = rng.uniform(-10, 30, (count, 2)) * rng.choice([0.2, 1, 5])
    sizes = rng.uniform(-1, 30, (count, 2)) * rng.choice([0.05, 1, 4], (count, 1))
    regions = np.concatenate([corners, corners + sizes], 1).astype(np.float32)
    regions[0, 2:] = regions[0, :2]
    options = {
        "output_height": int(rng.integers(1, 8)),
        "output_width": int(rng.integers(1, 8)),
        "spatial_scale": float(rng.choice([1.0, 0.25])),
        "coordinate_transformation_mode": str(rng.choice(["half_pixel", "output_half_pixel"])),
    }
    return (
        [node("RoiAlign", ["x", "regions", "image"], ["y"], **options)],
        {
            "x": floats(rng, images, channels, height, width),
            "regions": regions,
            "image": rng.integers(0, images, count),
        },
        {},
        16,
    )


def broadcast_sum(rng: np.random.Generator):
    """Builds sums over dims of 1, of any letter and of the ellipsis, with larger dims."""
    sizes = dict(zip("ABijk", (int(n) for n in rng.integers(1, 5, 5))))

    def operand(letters: str) -> np.ndarray:
        return floats(rng, *(sizes[letter] if rng.integers(2) else 1 for letter in letters))

    x, z = operand("ABij"), operand("ABjk")
    equation = str(rng.choice(["...ij,...jk->...ik", "...ij,...jk", "...ij,...jk->i...", "abij,abjk->bik"]))
    return [node("Einsum", ["x", "z"], ["y"], equation=equation)], {"x": x, "z": z}, {}, 13


def lp_norm(rng: np.random.Generator):
    """Builds norms with rows of zeros, whose norm is 0, so their result is 0, too."""
    axis, shape = int(rng.integers(3)), tuple(int(size) for size in rng.integers(2, 20, 3))
    x = floats(rng, *shape)
    np.moveaxis(x, axis, -1)[::2, 0] = 0
    return [node("LpNormalization", ["x"], ["y"], axis=axis, p=int(rng.integers(1, 3)))], {"x": x}, {}, 22


CASES = [
    dft,
    stft,
    run_time_window,
    suppression,
    detections,
    unique,
    non_zero,
    compress,
    batch_norm,
    losses,
    region_means,
    broadcast_sum,
    lp_norm,
]


def build(nodes: list, inputs: dict, constants: dict, opset: int, path: Path) -> Path:
    kinds = {name: numpy_helper.from_array(array).data_type for name, array in inputs.items()}
    read = {name for n in nodes for name in n.input}
    outputs = [
        helper.make_empty_tensor_value_info(name) for n in nodes for name in n.output if name and name not in read
    ]
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info(n, kinds[n], a.shape) for n, a in inputs.items()],
        outputs,
        [numpy_helper.from_array(np.asarray(a), n) for n, a in constants.items()],
    )
    model = helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", opset), helper.make_opsetid("com.microsoft", 1)], ir_version=9
    )
    path.write_bytes(model.SerializeToString())
    return path


def golden(path: Path, inputs: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    options = ort.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = 1, 4
    session = ort.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    return dict(zip([o.name for o in session.get_outputs()], session.run(None, inputs)))


@pytest.fixture(scope="module")
def compiler():
    result = Compiler()
    yield result
    result.close()


def agree(got: dict, want: dict, padded: dict[str, int], tolerance: float) -> None:
    for name, array in want.items():
        array = pad(array, padded[name], got[name].shape[padded[name]]) if name in padded else array
        assert got[name].shape == array.shape and got[name].dtype == array.dtype, (name, got[name].shape, array.shape)
        scale = max(1.0, float(np.abs(array).max(initial=0)))
        np.testing.assert_allclose(got[name], array, rtol=tolerance, atol=tolerance * scale, err_msg=name)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_beside_onnxruntime(case: Case, seed: int, compiler: Compiler, tmp_path: Path) -> None:
    rng = np.random.default_rng([seed, CASES.index(case)])
    nodes, inputs, constants, opset = case(rng)
    path, mlir = build(nodes, inputs, constants, opset, tmp_path / "m.onnx"), tmp_path / "m_top.mlir"
    want = golden(path, inputs)
    result = compiler("import", "import", "--onnx", path, "--output", mlir)
    padded = {output["name"]: output["padded_axis"] for output in result["outputs"] if "padded_axis" in output}
    isas = supported_isas()
    got = run_bmodel(deploy(compiler, mlir, isas[seed % len(isas)]), inputs)
    # onnxruntime's transforms have this error if the length is not a power of 2
    agree(got, want, padded, 5e-4 if case in (dft, stft, run_time_window) else 2e-5)


@pytest.mark.parametrize("length", [1200, 1999, 4096])
def test_long_transform(length: int, compiler: Compiler, tmp_path: Path) -> None:
    """Compares with numpy in double: the error must not exceed onnxruntime's."""
    inputs, mlir = {"x": floats(np.random.default_rng(length), 1, length, 1)}, tmp_path / "m_top.mlir"
    path = build([node("DFT", ["x"], ["y"], axis=1, onesided=1)], inputs, {}, 17, tmp_path / "m.onnx")
    exact = np.fft.rfft(inputs["x"][..., 0].astype(np.float64), axis=1)
    want = {"y": np.stack([exact.real, exact.imag], -1).astype(np.float32)}
    compiler("import", "import", "--onnx", path, "--output", mlir)
    got = run_bmodel(deploy(compiler, mlir, supported_isas()[-1]), inputs)
    agree(got, want, {}, 2e-6)
    assert np.abs(got["y"] - want["y"]).max() <= np.abs(golden(path, inputs)["y"] - want["y"]).max() + 1e-5


def quantised_lstm(rng: np.random.Generator) -> tuple[list, dict, dict, dict]:
    """Returns nodes of a DynamicQuantizeLSTM and of the float LSTM with the same weights, and the constants of both."""
    directions, hidden, width = int(rng.integers(1, 3)), 8, 6
    per_channel, signed = bool(rng.integers(2)), bool(rng.integers(2))
    constants, plain = {}, {}
    for name, rows in (("w", width), ("r", hidden)):
        bytes_ = rng.integers(-127, 128, (directions, rows, 4 * hidden)) + (0 if signed else 128)
        scale = rng.random((directions, 4 * hidden) if per_channel else directions).astype(np.float32) * 0.004 + 0.002
        constants[name] = bytes_.astype(np.int8 if signed else np.uint8)
        constants[f"{name}_scale"] = scale
        constants[f"{name}_zero"] = np.zeros(scale.shape, np.int8) if signed else np.full(scale.shape, 128, np.uint8)
        wide = scale.reshape(directions, 1, -1)
        plain[name] = ((bytes_ - (0 if signed else 128)) * wide).transpose(0, 2, 1).astype(np.float32)
    constants["b"] = plain["b"] = floats(rng, directions, 8 * hidden) * np.float32(0.1)
    attributes = dict(hidden_size=hidden, direction="bidirectional" if directions == 2 else "forward")
    nodes = [
        node(
            "DynamicQuantizeLSTM",
            ["x", "w", "r", "b", "", "", "", "", "w_scale", "w_zero", "r_scale", "r_zero"],
            ["y", "h", "c"],
            domain="com.microsoft",
            **attributes,
        )
    ]
    floating = [node("LSTM", ["x", "w", "r", "b"], ["y", "h", "c"], **attributes)]
    return nodes, floating, constants, plain


@pytest.mark.parametrize("seed", SEEDS)
def test_dynamically_quantised_lstm(seed: int, compiler: Compiler, tmp_path: Path) -> None:
    """The result is closer to the LSTM with the same weights than onnxruntime's, which rounds the activations."""
    rng = np.random.default_rng(seed)
    nodes, floating, constants, plain = quantised_lstm(rng)
    inputs, mlir = {"x": floats(rng, 7, 2, 6)}, tmp_path / "m_top.mlir"
    path = build(nodes, inputs, constants, 14, tmp_path / "m.onnx")
    exact = golden(build(floating, inputs, plain, 14, tmp_path / "float.onnx"), inputs)
    theirs = golden(path, inputs)
    compiler("import", "import", "--onnx", path, "--output", mlir)
    got = run_bmodel(deploy(compiler, mlir, supported_isas()[-1]), inputs)
    agree(got, exact, {}, 2e-5)
    for name, array in exact.items():
        assert np.abs(got[name] - array).max() <= np.abs(theirs[name] - array).max() + 1e-6
        assert np.abs(got[name] - theirs[name]).mean() < 0.05


def test_transform_says_what_is_padded(tmp_path: Path) -> None:
    """The check against onnxruntime handles padded outputs, and the user is informed about the padding."""
    nodes, inputs, constants, opset = detections(np.random.default_rng(0))
    path = build(nodes, inputs, constants, opset, tmp_path / "m.onnx")
    np.savez(tmp_path / "in.npz", **inputs)
    info = check(
        run_tool("model_transform", "--model_def", path, "--mlir", "m_top.mlir", "--test_input", "in.npz", cwd=tmp_path)
    )
    for name in ("box", "score", "label"):
        assert f"the size of output '{name}' along axis 0 is known at run time only" in info.replace("\n", " ")
