# SPDX-License-Identifier: Apache-2.0
"""Tests bad input of every kind: the message is clear, the exit code is the documented one, nothing crashes, and no
incomplete file is left."""
from __future__ import annotations

import os
import resource
import shlex
import shutil
import signal
import subprocess
from pathlib import Path
from typing import Callable

import numpy as np
import pytest
import small_models
from case_file import REGRESSION
from conftest import BUILD, check, run_tool

from tessera.files import save_npz

MNIST = REGRESSION / "models" / "mnist" / "mnist-8.onnx"


def assert_rejected(result: subprocess.CompletedProcess[str], code: int, *words: str) -> None:
    """Checks that the command ended with `code`, printed all `words`, and showed neither a stack trace nor a crash."""
    text = result.stderr
    assert (
        result.returncode == code
    ), f"exit code {result.returncode}, not {code}\n{result.stdout[-2000:]}\n{text[-2000:]}"
    for bad in ("Traceback", "Assertion", "Stack dump", "LLVM ERROR", "terminate called", "reproducer"):
        assert bad not in text, text
    for word in words:
        assert word in text, f"'{word}' is not in:\n{text}"


def transform(onnx: Path, *flags: object) -> subprocess.CompletedProcess[str]:
    return run_tool(
        "model_transform", "--model_def", onnx, "--mlir", onnx.with_name("m_top.mlir"), *flags, cwd=onnx.parent
    )


def outputs_of(folder: Path) -> list[str]:
    """Returns everything in the folder besides the inputs of the test."""
    return sorted(p.name for p in folder.iterdir() if p.suffix not in (".onnx", ".npz"))


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Returns a folder with a small model in all its forms: m.onnx, m_top.mlir, its weights, m.bmodel, in.npz."""
    folder = tmp_path_factory.mktemp("good")
    onnx = small_models.conv_relu(folder / "m.onnx")
    check(transform(onnx, "--not_inference"))
    check(
        run_tool(
            "model_deploy",
            "--mlir",
            "m_top.mlir",
            "--chip",
            "x86",
            "--quantize",
            "F32",
            "--model",
            "m.bmodel",
            "--skip_validation",
            cwd=folder,
        )
    )
    save_npz(folder / "in.npz", {"x": np.ones((1, 3, 8, 8), np.float32)})
    return folder


@pytest.fixture
def good(compiled: Path, tmp_path: Path) -> Path:
    """Returns a copy of this folder that the test may damage."""
    shutil.copytree(compiled, tmp_path, dirs_exist_ok=True)
    return tmp_path


BAD_GRAPHS: list[tuple[Callable[[Path], Path], tuple[str, ...]]] = [
    (small_models.cyclic, ("cycl", "first")),
    (small_models.dangling, ("nowhere", "adder")),
    (small_models.unknown_ops, ("FancyNorm", "com.example", "norm_7", "Wobble", "wobble_3", "13")),
    (small_models.type_mismatch, ("mixed",)),
    (small_models.shape_mismatch, ("product", "3", "4")),
    (small_models.huge, ("x",)),
    (small_models.wrong_conv_channels, ("conv5", "5", "3")),
]


@pytest.mark.parametrize("make, words", BAD_GRAPHS, ids=[m.__name__ for m, _ in BAD_GRAPHS])
def test_bad_graph(tmp_path: Path, make: Callable[[Path], Path], words: tuple[str, ...]) -> None:
    result = transform(make(tmp_path / "m.onnx"))
    assert result.returncode in (1, 4)
    assert_rejected(result, result.returncode, *words)
    assert outputs_of(tmp_path) == []


@pytest.mark.parametrize("data", [b"", b"hello, this is text\n" * 20, b"\x89PNG\r\n\x1a\n" + bytes(100), bytes(1000)])
def test_no_onnx_at_all(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "m.onnx").write_bytes(data)
    assert_rejected(transform(tmp_path / "m.onnx"), 1, "m.onnx")
    assert outputs_of(tmp_path) == []


def test_missing_and_folder(tmp_path: Path) -> None:
    assert_rejected(transform(tmp_path / "none.onnx"), 1, "none.onnx", "no such file")
    assert_rejected(
        run_tool("model_transform", "--model_def", tmp_path, "--mlir", tmp_path / "m_top.mlir"), 1, "folder"
    )


def import_only(onnx: Path, output: Path) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [BUILD / "bin" / "tessera-compile", "import", "--onnx", onnx, "--output", output],
        capture_output=True,
        timeout=600,
    )


def test_truncated_onnx(tmp_path: Path) -> None:
    data = MNIST.read_bytes()
    for length in [1, 7, 100, *range(1000, len(data) - 1, 2503), len(data) - 1]:
        (tmp_path / "m.onnx").write_bytes(data[:length])
        result = import_only(tmp_path / "m.onnx", tmp_path / "m_top.mlir")
        assert result.returncode == 1 and b'"event":"error"' in result.stdout, (
            length,
            result.returncode,
            result.stderr[-500:],
        )
    assert outputs_of(tmp_path) == []


def test_bit_flipped_onnx(tmp_path: Path) -> None:
    """The importer refuses a flipped bit, or the bit only changes numbers. It never crashes."""
    data = MNIST.read_bytes()
    generator = np.random.default_rng(7)
    # The first bytes hold the structure, so flips there have the largest effect.
    places = [*generator.integers(0, 3000, 60), *generator.integers(0, len(data), 20)]
    for place in map(int, places):
        flipped = bytearray(data)
        flipped[place] ^= 1 << int(generator.integers(8))
        (tmp_path / "m.onnx").write_bytes(flipped)
        result = import_only(tmp_path / "m.onnx", tmp_path / "m_top.mlir")
        assert result.returncode in (0, 1, 4), (place, result.returncode, result.stderr[-500:])


@pytest.mark.parametrize(
    "shapes, code, words",
    [
        ("nope=1x3x8x8", 1, ("nope", "x")),
        ("x=1x3x8", 1, ("x", "3", "4")),
        ("x=1x5x8x8", 1, ("5", "3")),
        ("x=-2x3x8x8", 1, ("-2",)),
        ("x=axb", 2, ("axb",)),
        ("[[1,3,8,8],[1]]", 1, ("2", "1")),
        ("[[1,3,8", 2, ()),
    ],
)
def test_wrong_input_shapes(tmp_path: Path, shapes: str, code: int, words: tuple[str, ...]) -> None:
    result = transform(small_models.conv_relu(tmp_path / "m.onnx", batch="N"), "--input_shapes", shapes)
    assert result.returncode in ((code, 2) if code == 1 else (code,))
    assert_rejected(result, result.returncode, *words)
    assert outputs_of(tmp_path) == []


def test_open_dims_are_named(tmp_path: Path) -> None:
    assert_rejected(
        transform(small_models.conv_relu(tmp_path / "m.onnx", batch="sequence")), 1, "'x'", "--input_shapes x=128x3x8x8"
    )


def test_proposed_sizes_can_be_copied(tmp_path: Path) -> None:
    """The importer asks for open sizes before a node inside the network fails, and the flag in the message works."""
    onnx = small_models.open_picture(tmp_path / "m.onnx")
    rejected = transform(onnx)
    assert_rejected(rejected, 1, "'image' [?x3x?x?], 'mask' [?x?]", "--input_shapes image=1x3x224x224,mask=1x128")
    check(transform(onnx, "--input_shapes", "image=1x3x224x224,mask=1x128", "--not_inference"))


def test_shapes_without_a_name(tmp_path: Path) -> None:
    result = transform(
        small_models.conv_relu(tmp_path / "m.onnx", batch="N"), "--input_shapes", "2x3x8x8", "--not_inference"
    )
    check(result)
    assert "[2, 4, 8, 8]" in result.stdout + result.stderr


def test_input_values_choose_a_branch(tmp_path: Path) -> None:
    """The branch that is not taken does not fit this size. With the input fixed, onnxruntime and Tessera agree."""
    onnx = small_models.by_rate(tmp_path / "m.onnx")
    assert_rejected(transform(onnx), 1, "by_rate", "as_others", "--input_values rate=VALUE")
    assert_rejected(transform(onnx, "--input_values", "rate=16000.5"), 1, "'rate'", "16000.5")
    result = transform(onnx, "--input_values", "rate=16000")
    check(result)
    assert "rate = 16000" in result.stdout + result.stderr


def test_old_opset_is_converted(tmp_path: Path) -> None:
    """onnx's converter aligns operands with 'axis' incorrectly. The check is skipped with a message instead of
    failing."""
    result = transform(small_models.opset6(tmp_path / "m.onnx"))
    check(result)
    assert "converted to opset 7" in result.stdout + result.stderr
    assert (
        "not compared with the framework" in result.stdout + result.stderr
        or "not installed" in result.stdout + result.stderr
    )


def test_pipes_are_not_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.onnx")
    os.mkfifo(tmp_path / "pipe.npz")
    assert_rejected(transform(tmp_path / "pipe.onnx"), 1, "pipe.onnx", "not a regular file")
    assert_rejected(
        transform(small_models.conv_relu(tmp_path / "m.onnx"), "--test_input", tmp_path / "pipe.npz"),
        1,
        "not a regular file",
    )


def test_constants_that_grow_are_bounded(tmp_path: Path) -> None:
    assert_rejected(
        transform(small_models.doubling(tmp_path / "m.onnx"), "--memory_limit", "0.01"), 1, "double", "--memory_limit"
    )


@pytest.mark.parametrize("location", ["../secret.bin", "/etc/passwd", "sub/../../secret.bin", "missing.bin", ""])
def test_external_data_outside_the_folder(tmp_path: Path, location: str) -> None:
    folder = tmp_path / "model"
    folder.mkdir()
    (tmp_path / "secret.bin").write_bytes(bytes(16))
    assert_rejected(transform(small_models.external_data(folder / "m.onnx", location)), 1, "'w'")
    assert outputs_of(folder) == []


def test_external_data_link_out_of_the_folder(tmp_path: Path) -> None:
    folder = tmp_path / "model"
    folder.mkdir()
    (tmp_path / "secret.bin").write_bytes(bytes(16))
    (folder / "w.bin").symlink_to(tmp_path / "secret.bin")
    result = transform(small_models.external_data(folder / "m.onnx", "w.bin"))
    assert_rejected(result, 1, "w")


@pytest.mark.parametrize(
    "flags, code, word",
    [
        (["--mean", "1,2"], 2, "--mean"),
        (["--resize_dims", "a,b"], 2, "--resize_dims"),
        (["--tolerance", "x"], 2, "--tolerance"),
        (["--no_such_flag"], 2, "no_such_flag"),
        (["--test_input", "none.npz"], 1, "none.npz"),
        (["--excepts", "no_tensor"], 1, "no_tensor"),
        (["--output_names", "no_tensor"], 1, "no_tensor"),
        (["--model_def"], 2, "--model_def"),
        (["--pixel_format", "gray"], 1, "no input takes such pictures"),
    ],
)
def test_wrong_flags(tmp_path: Path, flags: list[str], code: int, word: str) -> None:
    onnx = small_models.conv_relu(tmp_path / "m.onnx")
    if flags[0] == "--excepts":
        pytest.importorskip("onnxruntime")
    assert_rejected(transform(onnx, *flags), code, word)


def deploy(folder: Path, *flags: object) -> subprocess.CompletedProcess[str]:
    return run_tool("model_deploy", "--mlir", "m_top.mlir", "--model", "o.bmodel", *flags, cwd=folder)


def test_missing_weights(good: Path) -> None:
    (good / "m_weights.safetensors").unlink()
    assert_rejected(deploy(good), 1, "m_weights.safetensors")
    assert not (good / "o.bmodel").exists()


def test_changed_weights(good: Path) -> None:
    weights = good / "m_weights.safetensors"
    data = bytearray(weights.read_bytes())
    data[-3] ^= 1
    weights.write_bytes(data)
    assert_rejected(deploy(good), 1, "hash")
    weights.write_bytes(data[:-1])
    assert_rejected(deploy(good), 1, "m_weights.safetensors")
    assert not (good / "o.bmodel").exists()


@pytest.mark.parametrize(
    "text", ["", "not mlir", "module { func.func @main(%a: tensor<1xf32>) { return }", "module {}"]
)
def test_bad_mlir(good: Path, text: str) -> None:
    (good / "m_top.mlir").write_text(text)
    assert_rejected(deploy(good), 1)


@pytest.mark.parametrize(
    "flags, code, word",
    [
        (["--quantize", "INT8"], 2, "--calibration_table"),
        (["--quantize", "INT4"], 4, "INT4"),
        (["--quantize", "INT9"], 2, "INT9"),
        (["--strict"], 2, "--strict"),
        (["--chip", "z80"], 2, "z80"),
        (["--calibration_table", "t.json"], 2, "calibration_table"),
        (["--test_reference", "r.npz"], 2, "--test_input"),
        (["--threads", "0"], 2, "--threads"),
    ],
)
def test_what_deploy_does_not_do(good: Path, flags: list[str], code: int, word: str) -> None:
    assert_rejected(deploy(good, *flags), code, word)
    assert not (good / "o.bmodel").exists()


def test_comparison_that_compares_nothing_fails(good: Path) -> None:
    save_npz(good / "other.npz", {"unrelated": np.zeros(3, np.float32)})
    assert_rejected(deploy(good, "--test_input", "in.npz", "--test_reference", "other.npz"), 1, "'y'")


def test_comparison_below_tolerance_fails_with_3(good: Path) -> None:
    save_npz(good / "other.npz", {"y": np.ones((1, 4, 8, 8), np.float32)})
    assert_rejected(deploy(good, "--test_input", "in.npz", "--test_reference", "other.npz"), 3, "'y'", "outside")


X = np.ones((1, 3, 8, 8), np.float32)


@pytest.mark.parametrize(
    "arrays, words",
    [
        ({"z": X}, ("'z'", "'x'")),
        ({"x": X, "z": X}, ("'z'",)),
        ({}, ("'x'", "missing")),
        ({"x": X[:, :, :4]}, ("[1, 3, 4, 8]", "[1, 3, 8, 8]")),
        ({"x": X[0]}, ("[3, 8, 8]",)),
        ({"x": X.astype(np.int64)}, ("int64", "float32")),
        ({"x": X.astype(np.uint8)}, ("uint8",)),
    ],
)
def test_wrong_npz(good: Path, arrays: dict, words: tuple[str, ...]) -> None:
    save_npz(good / "bad.npz", arrays)
    for model in ("m.bmodel", "m_top.mlir"):
        assert_rejected(
            run_tool("model_runner", "--model", model, "--input", "bad.npz", "--output", "o.npz", cwd=good), 1, *words
        )
    assert not (good / "o.npz").exists()


@pytest.mark.parametrize(
    "name, data, word",
    [
        ("in.npz", b"PK\x03\x04 not really", "in.npz"),
        ("in.jpg", b"no picture", "in.jpg"),
        ("in.npy", b"\x93NUMPY?", "in.npy"),
        ("in.xyz", b"?", "in.xyz"),
    ],
)
def test_bad_input_file(good: Path, name: str, data: bytes, word: str) -> None:
    (good / name).write_bytes(data)
    assert_rejected(
        run_tool("model_runner", "--model", "m.bmodel", "--input", name, "--output", "o.npz", cwd=good), 1, word
    )


def test_wrong_kind_of_model(good: Path) -> None:
    run = ["--input", "in.npz", "--output", "o.npz"]
    (good / "m.txt").write_text("x")
    assert_rejected(run_tool("model_runner", "--model", "m.txt", *run, cwd=good), 2, "m.txt")
    assert_rejected(run_tool("model_runner", "--model", "none.bmodel", *run, cwd=good), 1, "none.bmodel")
    (good / "o.bmodel").write_bytes((good / "m.onnx").read_bytes())
    assert_rejected(run_tool("model_runner", "--model", "o.bmodel", *run, cwd=good), 1, "o.bmodel")


def test_truncated_bmodel(good: Path) -> None:
    data = (good / "m.bmodel").read_bytes()
    for length in (0, 1, 63, 64, 200, len(data) // 2, len(data) - 1):
        (good / "o.bmodel").write_bytes(data[:length])
        assert_rejected(run_tool("model_tool", "check", "o.bmodel", cwd=good), 1, "o.bmodel")
    (good / "o.bmodel").write_bytes(data + b"\0")
    assert_rejected(run_tool("model_tool", "check", "o.bmodel", cwd=good), 1, "o.bmodel")


FLIP = """
import sys, numpy as np, tessera.runtime as rt
path, step = sys.argv[1], int(sys.argv[2])
data = open(path, "rb").read()
x = np.ones((1, 3, 8, 8), np.float32)
good = rt.load(path).net()({"x": x})["y"]
refused = same = 0
for place in range(0, len(data), step):
    flipped = bytearray(data)
    flipped[place] ^= 0x41
    with open(path + ".flipped", "wb") as file:
        file.write(flipped)
    try:
        out = rt.load(path + ".flipped").net()({"x": x})["y"]
    except rt.Error:
        refused += 1
        continue
    assert np.array_equal(out, good), f"another answer after a flip at {place}"
    same += 1
print(refused, same)
"""


def test_altered_bmodel_every_64th_byte(good: Path) -> None:
    """The runtime refuses an altered file: a flip that is not noticed means that the hashes do not cover a byte."""
    result = subprocess.run(
        [BUILD / "bin" / "tessera-python", "-c", FLIP, good / "m.bmodel", "64"],
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert result.returncode == 0, result.stderr[-2000:]
    rejected, same = map(int, result.stdout.split())
    assert rejected > 0 and same == 0


def test_altered_real_bmodel_trusted_and_checked(tmp_path: Path) -> None:
    """Alters every 64th byte of a compiled network. The check refuses all of them; with the trust flag the runtime at
    least never crashes."""
    check(run_tool("model_transform", "--model_def", MNIST, "--mlir", "m_top.mlir", "--not_inference", cwd=tmp_path))
    check(run_tool("model_deploy", "--mlir", "m_top.mlir", "--model", "m.bmodel", "--skip_validation", cwd=tmp_path))
    out = check(run_tool("bmrt_alter_check", "m.bmodel", cwd=tmp_path))
    flips = -(-(tmp_path / "m.bmodel").stat().st_size // 64)
    assert out.startswith(f"{flips} flips: {flips} refused, 0 with the same answer"), out
    # Fields of the file's tables are altered, and all hashes are recomputed: the runtime refuses the file, or accesses
    # only bytes of its tensors.
    check(
        run_tool(
            "model_deploy",
            "--mlir",
            "m_top.mlir",
            "--model",
            "n.bmodel",
            "--chip",
            "npu-edge",
            "--quantize",
            "BF16",
            "--skip_validation",
            cwd=tmp_path,
        )
    )
    check(run_tool("bmrt_reseal", "m.bmodel", "n.bmodel", "--count", "300", cwd=tmp_path))


@pytest.mark.parametrize(
    "flags",
    [
        ["model_transform", "--model_def", "m.onnx", "--mlir", "/proc/none/m_top.mlir"],
        ["model_transform", "--model_def", "m.onnx", "--mlir", "n_top.mlir", "--test_result", "/proc/none/r.npz"],
        ["model_deploy", "--mlir", "m_top.mlir", "--model", "/proc/none/m.bmodel"],
        ["model_runner", "--model", "m.bmodel", "--input", "in.npz", "--output", "/proc/none/o.npz"],
    ],
)
def test_unwritable_folder(good: Path, flags: list[str]) -> None:
    assert_rejected(run_tool(*flags, cwd=good), 1, "/proc/none")


@pytest.mark.parametrize(
    "flags",
    [
        ["model_transform", "--model_def", "m.onnx", "--mlir", "pipe.mlir"],
        ["model_deploy", "--mlir", "m_top.mlir", "--model", "pipe.bmodel"],
        ["model_runner", "--model", "m.bmodel", "--input", "in.npz", "--output", "pipe.npz"],
        ["model_tool", "combine", "m.bmodel", "m.bmodel", "-o", "pipe.bmodel"],
        ["npz_tool", "rename", "in.npz", "pipe", "x=z"],
        ["run_calibration", "m_top.mlir", "--dataset", "in.npz", "-o", "pipe"],
        ["tessera", "bench", "m.bmodel", "-o", "pipe"],
        ["tessera", "reduce", "m.onnx", "--check", "false", "-o", "pipe.onnx"],
        ["tessera", "report", "m.bmodel", "-o", "pipe.html"],
    ],
    ids=lambda flags: "-".join(flags[: 1 + (flags[0] in ("tessera", "model_tool", "npz_tool"))]),
)
def test_devices_and_pipes_stay(good: Path, flags: list[str]) -> None:
    """A command must not replace a device or pipe with its output: as root it would replace /dev/null for all
    programs."""
    pipe = good / next(word for word in flags if word.startswith("pipe"))
    os.mkfifo(pipe)
    before = set(os.listdir(good))
    assert_rejected(run_tool(*flags, cwd=good), 1, pipe.name, "regular file")
    assert pipe.is_fifo() and set(os.listdir(good)) == before


@pytest.mark.parametrize(
    "flags, code, word",
    [
        (["explain", "m.bmodel", " "], 2, "LAYER"),
        (["explain", "m.onnx", "conv"], 1, "not a bmodel file"),
        (["report", "m_top.mlir"], 1, "model_tool reads compiled models"),
        (["report", "m.bmodel", "--accuracy", "table.json"], 1, "table.json: not the output of model_deploy"),
        (["report", "m.bmodel", "--accuracy", "deploy.json"], 1, "deploy.json: not the output of model_deploy"),
        (["report", "m.bmodel", "-o", f"{'x' * 300}.html"], 1, "File name too long"),
        (["report", "x" * 300], 1, "File name too long"),
        (["accuracy", "m.bmodel", "m.bmodel", "--task", "agreement", "--data", "x" * 300], 1, "File name too long"),
        (["bench", "m.bmodel", "--seconds", "nan"], 2, "nan is not a finite number"),
        (["bench", "m.bmodel", "--warm", "inf"], 2, "inf is not a finite number"),
        (["bench", "m.bmodel", "--threads", "99999999999999999999"], 2, "99999999999999999999 is too large"),
        (["bench", "m.bmodel", "--streams", "1025"], 2, "at most 1024"),
        (["report", "m.bmodel", "--measure", "99999999999"], 2, "99999999999 is too large"),
        (["bench", "m.bmodel", "--pin", "0-99999999999"], 2, "may not use processor"),
        (["bench", "m.bmodel", "--pin", "3-1"], 2, "3-1 is not a range"),
        (["bench", "m.bmodel", "--pin", ""], 2, "expected processor numbers"),
        (["reduce", "m.onnx", "--check", "false", "--seconds", "nan"], 2, "nan is not a finite number"),
    ],
)
def test_verbs_reject(good: Path, flags: list[str], code: int, word: str) -> None:
    (good / "table.json").write_text('{"format": "tessera-calibration", "model": "m", "tool": "tessera 0.1.0"}')
    (good / "deploy.json").write_text('{"tool": "model_deploy", "model": {"quantization": {"ops": [1]}}}')
    before = set(os.listdir(good))
    assert_rejected(run_tool("tessera", *flags, cwd=good), code, word)
    assert set(os.listdir(good)) == before


def limit_file_size() -> None:
    """Limits the size of files to 1 KiB. A writer then fails as on a full disk."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1024, 1024))


@pytest.mark.parametrize(
    "flags, absent",
    [
        (
            ["model_transform", "--model_def", "big.onnx", "--mlir", "b_top.mlir", "--not_inference"],
            ["b_top.mlir", "b_weights.safetensors"],
        ),
        (
            ["model_deploy", "--mlir", "m_top.mlir", "--model", "o.bmodel", "--skip_validation", "--cache_dir", "none"],
            ["o.bmodel"],
        ),
        (["tessera", "report", "m.bmodel", "-o", "r.html"], ["r.html"]),
        (["tessera", "report", "m.bmodel", "-o", "r.html", "--model_explorer", "me"], ["r.html", "me"]),
    ],
)
def test_full_disk(good: Path, flags: list[str], absent: list[str]) -> None:
    small_models.deep_chain(good / "big.onnx", 4)
    before = set(os.listdir(good))
    result = run_tool(*flags, cwd=good, preexec_fn=limit_file_size)
    assert_rejected(result, 1)
    assert set(os.listdir(good)) == before, "a half-written file is left"
    for name in absent:
        assert not (good / name).exists()


def in_shell(folder: Path, command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["bash", "-c", f"{BUILD}/bin/{command}"], cwd=folder, capture_output=True, text=True, timeout=600
    )


DEPLOY = "model_deploy --mlir m_top.mlir --model o.bmodel --skip_validation"


@pytest.mark.parametrize("closed", [">&-", "2>&-", "<&- >&- 2>&-", "--json >&-"])
def test_closed_streams_lead_nowhere(good: Path, closed: str) -> None:
    """The next file that is opened does not take the place of a closed stream."""
    assert_rejected(in_shell(good, f"{DEPLOY} --quantize F32 --chip x86 {closed}"), 0)
    assert (good / "o.bmodel").read_bytes() == (good / "m.bmodel").read_bytes()


@pytest.mark.parametrize("command", [f"{DEPLOY} --json", DEPLOY, "model_deploy --help"])
def test_stdout_that_takes_no_more(good: Path, command: str) -> None:
    assert_rejected(in_shell(good, f"{command} > /dev/full"), 1, "failed to write to stdout: No space left on device")


def test_no_temporary_folder(good: Path) -> None:
    def no_files() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))

    assert_rejected(run_tool(*DEPLOY.split(), cwd=good, preexec_fn=no_files), 1, "temporary files", "TMPDIR")


def test_runtime_rejects_a_wrong_call_in_words(good: Path) -> None:
    code = "import tessera.runtime as rt, numpy as np; rt.load('m.bmodel').net()({'nope': np.zeros(3)})"
    result = subprocess.run([BUILD / "bin" / "tessera-python", "-c", code], cwd=good, capture_output=True, text=True)
    assert result.returncode == 1 and "nope" in result.stderr and "'x'" in result.stderr


def test_next_steps_can_be_pasted_whatever_files_are_called(tmp_path: Path) -> None:
    """A file name is quoted as one word of the shell, so it cannot become a part of the command."""
    model, top = "it's $(touch there) a model.onnx", "a $(touch there) & top.mlir"
    shutil.copy(MNIST, tmp_path / model)
    text = check(run_tool("model_transform", "--model_def", model, "--model_name", "m", "--mlir", top, cwd=tmp_path))
    step = text.split("== Next steps ==")[1].strip().splitlines()[0].strip()
    words = shlex.split(step)
    assert words[:3] == ["model_deploy", "--mlir", top]
    tools = {**os.environ, "PATH": f"{BUILD / 'bin'}:{os.environ['PATH']}"}
    done = subprocess.run(step, shell=True, cwd=tmp_path, capture_output=True, text=True, env=tools)
    assert done.returncode == 0 and not (tmp_path / "there").exists(), done.stderr
