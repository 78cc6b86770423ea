# SPDX-License-Identifier: Apache-2.0
"""TensorFlow Lite files: values against numpy and, if it is installed, LiteRT; errors for what is not supported."""
from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
import pytest
from conftest import check, run_tool
from tflite_files import Model, detection, quantisation, quantised_network, small_network

UNSUPPORTED = 4


def convolve(x: np.ndarray, w: np.ndarray, stride: int, groups: int) -> np.ndarray:
    """Returns the convolution of x [H, W, C] with w [OC, KH, KW, C / groups] with padding SAME, in float64."""
    size = [-(-n // stride) for n in x.shape[:2]]
    total = [max((o - 1) * stride + k - n, 0) for o, k, n in zip(size, w.shape[1:3], x.shape)]
    padded = np.pad(x.astype(np.float64), [(t // 2, t - t // 2) for t in total] + [(0, 0)])
    depth, each = w.shape[3], w.shape[0] // groups
    y = np.zeros((*size, w.shape[0]))
    for i, j, c in np.ndindex(y.shape):
        first = c // each * depth
        window = padded[i * stride :, j * stride :, first : first + depth][: w.shape[1], : w.shape[2]]
        y[i, j, c] = (window * w[c]).sum()
    return y


def expected(
    x: np.ndarray, w: np.ndarray, b: np.ndarray, d: np.ndarray, m: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    y = np.clip(convolve(x, w, 2, 1) + b, 0, 6)
    z = convolve(y, d.transpose(3, 1, 2, 0), 1, 4)
    total = np.maximum(z + np.concatenate([y, y], -1), 0)
    e = np.exp(0.5 * (total.mean((0, 1)) @ m.T))
    return e / e.sum(), total


def test_values(tmp_path: Path) -> None:
    """The Top model and the compiled model compute what numpy does, in the layout of the file."""
    path, weights = small_network(tmp_path / "m.tflite")
    top, compiled = tmp_path / "m_top.mlir", tmp_path / "m.bmodel"
    text = check(run_tool("model_transform", "--model_def", path, "--mlir", top))
    assert "compare with LiteRT" in text or "LiteRT is not installed" in text
    check(run_tool("model_deploy", "--mlir", top, "--chip", "x86", "--quantize", "F32", "--model", compiled))
    x = np.random.default_rng(1).standard_normal((1, 5, 6, 3)).astype(np.float32)
    np.savez(tmp_path / "in.npz", t0=x)
    for model in (top, compiled):
        out = tmp_path / "out.npz"
        check(run_tool("model_runner", "--model", model, "--input", tmp_path / "in.npz", "--output", out))
        got = np.load(out)
        wanted = expected(x[0], *weights)
        assert got[got.files[0]][0] == pytest.approx(wanted[0], rel=1e-5, abs=1e-6)
        assert got[got.files[1]][0] == pytest.approx(wanted[1], rel=1e-5, abs=1e-5)


def imported(path: Path) -> subprocess.CompletedProcess[str]:
    return run_tool("model_transform", "--model_def", path, "--mlir", path.with_name("m_top.mlir"), "--not_inference")


def test_lists_all_unsupported(tmp_path: Path) -> None:
    """Custom and control flow operators, quantised operands: all in one message, with the names of the tensors."""
    net = Model()
    x = net.tensor((1, 4))
    y = net.add("CUSTOM", [x], (1, 4))
    z = net.add("WHILE", [y], (1, 4))
    q = net.tensor((1, 4), "int8", quantization=quantisation([0.5], [0]))
    net.add("LOG", [q], (1, 4))
    result = imported(net.write(tmp_path / "m.tflite", [x, q], [z]))
    assert result.returncode == UNSUPPORTED
    for part in (
        "3 operator(s)",
        "custom operator 'Mystery' ('t1')",
        "WHILE ('t2')",
        "LOG with quantised operands ('t4')",
    ):
        assert part in result.stderr


@pytest.mark.parametrize(
    "code, options, values, text",
    [
        ("ADD", "MulOptions", {}, "options are not AddOptions"),
        ("ADD", "AddOptions", {"fused_activation_function": "TANH"}, "fused activation 4 is not supported"),
        ("MIRROR_PAD", "MirrorPadOptions", {"mode": "SYMMETRIC"}, "only the mode REFLECT"),
        ("GATHER", "GatherOptions", {"batch_dims": 1}, "batch_dims other than 0"),
    ],
)
def test_options(code: str, options: str, values: dict, text: str, tmp_path: Path) -> None:
    """Options that the importer does not implement are errors."""
    net = Model()
    x = net.tensor((1, 4))
    y = net.add(code, [x, net.constant(np.zeros((2, 2), np.int32)) if code != "ADD" else x], (1, 4), options, **values)
    result = imported(net.write(tmp_path / "m.tflite", [x], [y]))
    assert result.returncode != 0 and text in result.stderr


def test_newer_option(tmp_path: Path) -> None:
    """An option from a newer version of the format is an error."""
    path = small_network(tmp_path / "m.tflite")[0]
    # MulOptions has one field, ConcatenationOptions two: the second one is unknown if the table is read as the first.
    net = Model()
    x = net.tensor((1, 4))
    y = net.add("MUL", [x, x], (1, 4), "ConcatenationOptions", axis=1, fused_activation_function="RELU")
    data = bytearray(net.write(path, [x], [y]).read_bytes())
    places = [at for at, byte in enumerate(data) if byte == 10]
    messages = []
    for at in places:  # the byte of builtin_options_type is among them
        changed = bytearray(data)
        changed[at] = 21
        path.write_bytes(changed)
        messages.append(imported(path).stderr)
    assert any("MulOptions set an option of a newer version" in message for message in messages)


def test_damaged(tmp_path: Path) -> None:
    """Files that are cut off, have another version or declare another shape are errors."""
    path = small_network(tmp_path / "m.tflite")[0]
    data = path.read_bytes()
    for length in (0, 7, 40, len(data) // 2, len(data) - 1):
        path.write_bytes(data[:length])
        result = imported(path)
        assert result.returncode != 0 and ("damaged" in result.stderr or "not a .tflite file" in result.stderr)
    net = Model()
    net.version = 4
    x = net.tensor((1, 4))
    y = net.add("RELU", [x], (1, 4))
    assert "version 4 of the format is not supported" in imported(net.write(path, [x], [y])).stderr
    net.version, net.tensors[y]["shape"] = 3, [4, 1]
    assert "the file declares [4, 1]" in imported(net.write(path, [x], [y])).stderr


def test_quantised_values(tmp_path: Path) -> None:
    """The Top model and the compiled model give the integers of LiteRT's reference kernels, computed by hand."""
    path, x, wanted = quantised_network(tmp_path / "m.tflite")
    top, compiled = tmp_path / "m_top.mlir", tmp_path / "m.bmodel"
    text = check(run_tool("model_transform", "--model_def", path, "--mlir", top))
    assert "compare with LiteRT" in text or "LiteRT is not installed" in text
    check(run_tool("model_deploy", "--mlir", top, "--chip", "x86", "--model", compiled))
    np.savez(tmp_path / "in.npz", t0=x)
    for model in (top, compiled):
        out = tmp_path / "out.npz"
        check(run_tool("model_runner", "--model", model, "--input", tmp_path / "in.npz", "--output", out))
        got = np.load(out)
        assert got[got.files[0]].dtype == np.int8
        assert np.array_equal(got[got.files[0]], wanted)


@pytest.mark.parametrize(
    "field, value, text",
    [
        ("scale", [0.0], "its scale 0.00 is not a positive number"),
        ("scale", [-0.5], "is not a positive number"),
        ("scale", [], "'t0': its type is INT8, but it has no scale"),
        ("zero_point", [], "it has 1 scales, but 0 zero points"),
        ("zero_point", [0, 0], "it has 1 scales, but 2 zero points"),
        ("zero_point", [128], "its zero point 128 is not within -128 to 127"),
    ],
)
def test_invalid_quantisation(field: str, value: list[float], text: str, tmp_path: Path) -> None:
    """Scales and zero points that have no meaning are errors that name the tensor."""
    net = Model()
    good = quantisation([0.5], [0])
    x = net.tensor((1, 4), "int8", quantization={**good, field: value})
    y = net.tensor((1, 4), "int8", quantization=good)
    net.operator("MUL", [x, x], [y], "MulOptions")
    result = imported(net.write(tmp_path / "m.tflite", [x], [y]))
    assert result.returncode != 0 and text in result.stderr and "MUL 't1'" in result.stderr


@pytest.mark.parametrize(
    "weights, scales, axis, text",
    [
        ("int8", [0.1] * 2, 1, "it has 2 scales along dim 1, which does not have that size"),
        ("int8", [0.1] * 2, 9, "it has 2 scales along dim 9, which does not have that size"),
        ("uint8", [0.1], 0, "only one of activations and weights is UINT8"),
        ("int16", [0.1], 0, "the types of its operands do not belong together"),
    ],
)
def test_weights(weights: str, scales: list[float], axis: int, text: str, tmp_path: Path) -> None:
    """Weights with scales along another dim and mixed types are errors."""
    net = Model()
    x = net.tensor((1, 4, 4, 3), "int8", quantization=quantisation([0.5], [0]))
    y = net.tensor((1, 4, 4, 2), "int8", quantization=quantisation([0.5], [0]))
    zeros = [0] * len(scales)
    w = net.constant(np.ones((2, 1, 1, 3), weights), quantization=quantisation(scales, zeros, axis))
    net.operator("CONV_2D", [x, w], [y], "Conv2DOptions", stride_w=1, stride_h=1)
    result = imported(net.write(tmp_path / "m.tflite", [x], [y]))
    assert result.returncode != 0 and text in result.stderr


def test_scales_along_another_dim(tmp_path: Path) -> None:
    """The channels of a depthwise convolution are the last dim of its weights: other scales are an error."""
    net = Model()
    x, y = (net.tensor((1, 4, 4, 3), "int8", quantization=quantisation([0.5], [0])) for _ in range(2))
    w = net.constant(np.ones((1, 3, 1, 3), np.int8), quantization=quantisation([0.1] * 3, [0] * 3, 1))
    options = {"stride_w": 1, "stride_h": 1, "depth_multiplier": 1}
    net.operator("DEPTHWISE_CONV_2D", [x, w], [y], "DepthwiseConv2DOptions", **options)
    result = imported(net.write(tmp_path / "m.tflite", [x], [y]))
    assert result.returncode == UNSUPPORTED and "its weights have scales along dim 1; supported is 3" in result.stderr


def test_integers_without_scale(tmp_path: Path) -> None:
    """A convolution of integers that stand for nothing is an error."""
    net = Model()
    x, y, strides = net.tensor((1, 4, 4, 3), "int8"), net.tensor((1, 4, 4, 2), "int8"), {"stride_w": 1, "stride_h": 1}
    net.operator("CONV_2D", [x, net.constant(np.ones((2, 1, 1, 3), np.int8))], [y], "Conv2DOptions", **strides)
    result = imported(net.write(tmp_path / "m.tflite", [x], [y]))
    assert result.returncode != 0 and "but it has no scale" in result.stderr


@pytest.mark.parametrize("regular", [False, True])
def test_detection(regular: bool, tmp_path: Path) -> None:
    """Boxes that overlap a better one disappear, in all classes or in each class by itself."""
    path, inputs = detection(tmp_path / "m.tflite", regular)
    top = tmp_path / "m_top.mlir"
    check(run_tool("model_transform", "--model_def", path, "--mlir", top))
    np.savez(tmp_path / "in.npz", **inputs)
    out = tmp_path / "out.npz"
    check(run_tool("model_runner", "--model", top, "--input", tmp_path / "in.npz", "--output", out))
    got = np.load(out)
    boxes, classes, scores, count = (got[name] for name in got.files)
    # Boxes 0 and 1 overlap. Box 1 is the best one, of class 1; box 0 is of class 0, and box 2 is far from both.
    kept = [(1, 1, 0.9), (0, 0, 0.8), (2, 1, 0.6)] if regular else [(1, 1, 0.9), (2, 1, 0.6)]
    corners = {0: (0, 0, 1, 1), 1: (0, 0.1, 1, 1.1), 2: (5, 5, 6, 6)}
    assert count.tolist() == [len(kept)]
    for row, (box, label, score) in enumerate(kept):
        assert boxes[0, row] == pytest.approx(corners[box], abs=1e-6)
        assert classes[0, row] == label and scores[0, row] == pytest.approx(score)
    assert not boxes[0, len(kept) :].any() and not scores[0, len(kept) :].any()


def test_detection_options(tmp_path: Path) -> None:
    """Options that are damaged or out of their bounds are errors."""
    path, _ = detection(tmp_path / "m.tflite", False, max_classes_per_detection=2)
    assert "max_classes_per_detection is 2; supported is 1" in imported(path).stderr
    path, _ = detection(tmp_path / "m.tflite", False, nms_iou_threshold=2.0)
    assert "its options are not within their bounds" in imported(path).stderr
    path, _ = detection(tmp_path / "m.tflite", False, damaged=True)
    assert "its options are damaged" in imported(path).stderr
