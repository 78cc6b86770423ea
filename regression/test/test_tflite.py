# SPDX-License-Identifier: Apache-2.0
"""TensorFlow Lite files: values against numpy and, if it is installed, LiteRT; errors for what is not supported."""
from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
import pytest
from conftest import check, run_tool
from tflite_files import Model, small_network

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
    q = net.tensor((1, 4), "int8", quantization={"scale": [0.5], "zero_point": [0]})
    net.add("DEQUANTIZE", [q], (1, 4), "DequantizeOptions")
    result = imported(net.write(tmp_path / "m.tflite", [x, q], [z]))
    assert result.returncode == UNSUPPORTED
    for part in ("3 operator(s)", "custom operator 'Mystery' ('t1')", "WHILE ('t2')", "quantised operands ('t4')"):
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
