# SPDX-License-Identifier: Apache-2.0
"""Tests of model_deploy --buckets: chips that support only fixed sizes run every size of a model with open dims."""
from __future__ import annotations

from pathlib import Path
from typing import Mapping, Sequence

import numpy as np
import onnxruntime
import pytest
from conftest import check, run_tool
from test_sizes import Nodes, convolutions, pyramid, save

BATCHES = ["batch", 3, 18, 18]


def deploy(folder: Path, nodes: Nodes, shape: Sequence[int | str], rank: int, dims: str, *flags: str) -> Path:
    """Compiles a network for npu-base."""
    model = folder / "m.bmodel"
    save(folder / "m.onnx", nodes, shape, rank)
    check(
        run_tool(
            "tessera-compile", "import", "--onnx", folder / "m.onnx", "--output", folder / "m_top.mlir", "--dims", dims
        )
    )
    check(run_tool("model_deploy", "--mlir", folder / "m_top.mlir", "--chip", "npu-base", "--model", model, *flags))
    return model


def check_sizes(folder: Path, model: Path, shapes: Sequence[Sequence[int]]) -> None:
    """Compares runs of all sizes in one context with onnxruntime."""
    import tessera.runtime as runtime

    net = runtime.load(str(model)).net()
    session = onnxruntime.InferenceSession(str(folder / "m.onnx"), providers=["CPUExecutionProvider"])
    for shape in (*shapes, *shapes[:1]):
        x = np.random.default_rng(sum(shape)).standard_normal(shape).astype(np.float32)
        (wanted,) = session.run(["y"], {"x": x})
        (got,) = net({"x": x}).values()
        assert got.shape == wanted.shape
        np.testing.assert_allclose(got, wanted, rtol=1e-4, atol=1e-4)


def test_batches_and_the_host(tmp_path: Path) -> None:
    """A run takes the smallest bucket that fits, whatever ran before, and the host if no bucket does."""
    import tessera.runtime as runtime

    flags = ("--buckets", "batch=1,4", "--beyond_buckets", "x86")
    model = deploy(tmp_path, convolutions(), BATCHES, 2, "batch=1..8", *flags)
    check_sizes(tmp_path, model, [(n, 3, 18, 18) for n in (1, 2, 3, 4, 5, 8)])
    net = runtime.load(str(model)).net()
    chips = [net({"x": np.zeros((n, 3, 18, 18), np.float32)}) and net.chip for n in (8, 1, 5, 4)]
    assert [chip.split("-")[0] for chip in chips] == ["x86", "npu", "x86", "npu"]
    info = run_tool("model_tool", "info", model).stdout
    assert "batch from 2 to 4" in info and "batch from 1 to 8" in info


def test_pictures(tmp_path: Path) -> None:
    """Windows at the end of a padded picture read zeros, as at the end of the picture itself."""
    model = deploy(
        tmp_path,
        pyramid(),
        [1, 3, "h", "w"],
        4,
        "h=8..32:4,w=8..24:4",
        "--buckets",
        "h=12,32,w=24",
        "--skip_validation",
    )
    check_sizes(tmp_path, model, [(1, 3, h, w) for h, w in ((8, 8), (12, 24), (16, 12), (32, 20))])


def test_size_beyond_all_buckets(tmp_path: Path) -> None:
    import tessera.runtime as runtime

    model = deploy(tmp_path, convolutions(), BATCHES, 2, "batch=1..8", "--buckets", "batch=2,4", "--skip_validation")
    net = runtime.load(str(model)).net()
    with pytest.raises(ValueError) as error:
        net({"x": np.zeros((7, 3, 18, 18), np.float32)})
    assert "dimension 0 of input 'x' is 7, at most 4 is possible" in str(error.value)
    assert "1..2x3x18x18 (npu-base); 3..4x3x18x18 (npu-base)" in str(error.value)
    assert net({"x": np.zeros((2, 3, 18, 18), np.float32)})["y"].shape == (2, 10)


REJECTED: Mapping[str, tuple[Sequence[str], str]] = {
    "none": ((), "list the sizes to which inputs are padded, e.g. --buckets batch=4,8"),
    "unknown name": (("--buckets", "n=4"), "no open dim 'n'; the open dims are 'batch' from 1 to 8"),
    "not ascending": (("--buckets", "batch=4,4"), "must ascend, but 4 follows 4"),
    "out of range": (("--buckets", "batch=9"), "'batch' cannot be 9; the open dims are 'batch' from 1 to 8"),
    "no number": (("--buckets", "batch=a"), "'batch=a' is not NAME=SIZE,SIZE"),
    "no name": (("--buckets", "4"), "expected NAME=SIZE,SIZE"),
    "a chip of any size": (("--buckets", "batch=4", "--chip", "x86"), "--buckets is for NPUs and GPUs"),
    "a plan": (
        ("--buckets", "batch=4", "--plan", "p.json"),
        "--plan is for a single model; --buckets compiles several",
    ),
    "no buckets": (("--beyond_buckets", "x86"), "--beyond_buckets needs --buckets"),
    "another chip": (("--buckets", "batch=4", "--beyond_buckets", "npu-base"), "expected x86 or one of its variants"),
}


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("opened")
    save(folder / "m.onnx", convolutions(), BATCHES, 2)
    check(
        run_tool(
            "tessera-compile",
            "import",
            "--onnx",
            folder / "m.onnx",
            "--output",
            folder / "m_top.mlir",
            "--dims",
            "batch=1..8",
        )
    )
    return folder


@pytest.mark.parametrize("name", REJECTED)
def test_rejected_flags(opened: Path, name: str) -> None:
    flags, message = REJECTED[name]
    result = run_tool(
        "model_deploy", "--mlir", opened / "m_top.mlir", "--chip", "npu-base", "--model", opened / "m.bmodel", *flags
    )
    assert result.returncode in (2, 4), result.stderr
    assert message in result.stderr
