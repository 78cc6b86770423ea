# SPDX-License-Identifier: Apache-2.0
"""Tests tiled products: every tile that a chip may choose gives x86's bits, and does as much work as estimated."""
from __future__ import annotations

import json
import os
import re
import shutil
from pathlib import Path
from typing import Iterator

import numpy as np
import pytest
from conftest import check, run_tool
from onnx import TensorProto, helper, numpy_helper
from small_models import save, tensor
from test_cuda import MACHINE, deploy, has_machine, run

IS_WHOLE = os.environ.get("TESSERA_CUDA") == "all"
SOURCE = Path(__file__).resolve().parents[2] / "codegen/Cuda/Transforms/ChooseTiles.cpp"
# rows, K and columns of products; chips with different numbers of multiprocessors choose different tiles for them
SHAPES = [(130, 96, 130), (300, 520, 70), (61, 333, 190), (40, 1100, 33), (7, 2050, 65), (16, 64, 24), (300, 100, 9)]
SHAPES += [(190, 90, 9), (4, 60, 90), (3, 60, 250), (30, 100, 120), (120, 60, 10), (3, 100, 120), (30, 250, 20)]
SHAPES += [(250, 250, 250), (100, 90, 7), (100, 30, 90), (29, 132, 266), (87, 268, 22)]
CHIPS = (1, 12, 108)
chosen: set[tuple[str, ...]] = set()
splits: set[int] = set()
on_cores: set[tuple[str, ...]] = set()


@pytest.fixture(autouse=True)
def machine(monkeypatch: pytest.MonkeyPatch) -> None:
    if not has_machine():
        pytest.skip("the PTX machine is not built or this processor lacks AVX2, FMA or F16C")
    monkeypatch.setenv("BMRT_LIBCUDA", os.environ.get("BMRT_LIBCUDA") or str(MACHINE))


def tiles_in(folder: Path) -> Iterator[tuple[str, ...]]:
    for file in folder.glob("*.mlir"):
        for tile in re.findall(r"#cuda\.tile<([^>]*)>", file.read_text()):
            if split := re.search(r", split_k = (\d+)", tile):
                splits.add(int(split.group(1)))
                tile = tile.replace(split.group(0), "")
            yield tuple(re.findall(r"\d+", tile))


def import_model(folder: Path, nodes: list, x: np.ndarray, w: np.ndarray, dtype: int) -> None:
    results = [helper.make_tensor_value_info("y", dtype, None)]
    given = [tensor("x", x.shape, numpy_helper.from_array(x).data_type)]
    save(folder / "m.onnx", nodes, given, results, [numpy_helper.from_array(w, "w")], opset=18)
    flags = ("--model_name", "m", "--model_def", "m.onnx", "--mlir", "m_top.mlir", "--not_inference")
    check(run_tool("model_transform", *flags, cwd=folder))


def answer(folder: Path, x: np.ndarray, chip: str, *flags: str | Path) -> np.ndarray:
    model = folder / f"{chip.partition('-')[0]}.bmodel"
    deploy(folder / "m_top.mlir", chip, model, *flags)
    return next(iter(run(model, {"x": x}).values()))


def gpu_answer(folder: Path, x: np.ndarray, multiprocessors: int, *flags: str) -> np.ndarray:
    """Returns the output of a GPU with this number of multiprocessors; tiles_in(folder / "ir") are the tiles."""
    shutil.rmtree(folder / "ir", ignore_errors=True)
    return answer(folder, x, "cuda-sm80", *flags, "--chip-set", f"sms={multiprocessors}", "--dump-ir", folder / "ir")


def answers(folder: Path, x: np.ndarray, multiprocessors: int, *flags: str) -> list[np.ndarray]:
    """Returns the outputs of x86 and of a GPU with this number of multiprocessors."""
    want = answer(folder, x, "x86", *(flag for flag in flags if flag != "--tf32"))
    return [want, gpu_answer(folder, x, multiprocessors, *flags)]


@pytest.mark.parametrize("multiprocessors", CHIPS)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_matrices_of_bytes(shape: tuple[int, int, int], multiprocessors: int, tmp_path: Path) -> None:
    rng, (m, k, n) = np.random.default_rng([multiprocessors, *shape]), shape
    types = [(np.int8, np.uint8)[i] for i in rng.integers(2, size=2)]
    x, w = (
        rng.integers(np.iinfo(t).min, np.iinfo(t).max + 1, size).astype(t) for t, size in zip(types, ((m, k), (k, n)))
    )
    import_model(tmp_path, [helper.make_node("MatMulInteger", ["x", "w"], ["y"])], x, w, TensorProto.INT32)
    want = x.astype(np.int64) @ w.astype(np.int64)
    np.testing.assert_array_equal(gpu_answer(tmp_path, x, multiprocessors), want)
    if multiprocessors == CHIPS[0]:
        np.testing.assert_array_equal(answer(tmp_path, x, "x86"), want)
    used = set(tiles_in(tmp_path / "ir"))
    assert len(used) == 1, "tensor cores do not multiply a matrix of bytes"
    chosen.update(used)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_matrices_of_floats(shape: tuple[int, int, int], tmp_path: Path) -> None:
    """Products of floats on CUDA cores. The values are small integers, whose sums are exact in any order."""
    rng, (m, k, n) = np.random.default_rng(shape), shape
    x, w = (rng.integers(-8, 9, size).astype(np.float32) for size in ((m, k), (k, n)))
    import_model(tmp_path, [helper.make_node("MatMul", ["x", "w"], ["y"])], x, w, TensorProto.FLOAT)
    flags = ("--tf32",) if m < 10 else ()
    for multiprocessors in CHIPS:
        np.testing.assert_array_equal(gpu_answer(tmp_path, x, multiprocessors, *flags), x @ w)
        (used,) = set(tiles_in(tmp_path / "ir"))
        assert (len(used) == 8) == bool(flags), "what multiplies is not what was asked for"  # tf32 kernels
        if not flags:
            on_cores.add(used)


FORMS = {"F32": (), "TF32": ("--tf32",), "F16": ("--quantize", "F16"), "BF16": ("--quantize", "BF16")}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("multiprocessors", CHIPS if IS_WHOLE else CHIPS[:2])
def test_floats_without_rounding(form: str, multiprocessors: int, tmp_path: Path) -> None:
    """The values are small integers, whose sums are exact in any order."""
    rng = np.random.default_rng(multiprocessors)
    x, w = (rng.integers(-8, 9, size).astype(np.float32) for size in ((2, 24, 17, 9), (40, 24, 3, 3)))
    nodes = [
        helper.make_node("Neg", ["x"], ["narrow"]),
        helper.make_node("Conv", ["narrow", "w"], ["y"], pads=[1, 0, 1, 2], strides=[2, 1], dilations=[1, 2]),
    ]
    import_model(tmp_path, nodes, x, w, TensorProto.FLOAT)
    want, got = answers(tmp_path, x, multiprocessors, *FORMS[form])
    np.testing.assert_array_equal(got, want)
    assert set(tiles_in(tmp_path / "ir"))


def test_long_sums_of_floats_are_the_same_at_each_run(tmp_path: Path) -> None:
    """Blocks that share a tile arrive in any order; the last one adds and rounds the parts in the order of K."""
    rng = np.random.default_rng(3)
    x, w = (rng.standard_normal(size).astype(np.float32) for size in ((20, 6000), (6000, 40)))
    import_model(tmp_path, [helper.make_node("MatMul", ["x", "w"], ["y"])], x, w, TensorProto.FLOAT)
    want, got = answers(tmp_path, x, 108)
    assert "split_k" in "".join(file.read_text() for file in (tmp_path / "ir").glob("*.mlir"))
    np.testing.assert_allclose(got, want, rtol=0, atol=1e-3)
    np.savez(tmp_path / "in.npz", x=x)
    for seed in range(1, 4):
        flags = ("--model", tmp_path / "cuda.bmodel", "--input", tmp_path / "in.npz", "--output", tmp_path / "out.npz")
        order = {"PTX_MACHINE_SEED": str(seed), "PTX_MACHINE_THREADS": "1"}
        run_tool("model_runner", *flags, env=os.environ | order).check_returncode()
        (again,) = np.load(tmp_path / "out.npz").values()
        np.testing.assert_array_equal(again.view(np.uint32), got.view(np.uint32))


def test_every_tile_was_chosen() -> None:
    """Checks what the tests above have recorded."""
    table = re.search(r"kShapes\[\] = \{(.*?)\n\};", SOURCE.read_text(), re.S)
    shapes = {tuple(re.findall(r"\d+", row)) for row in re.findall(r"\{([^{}]*)\}", table.group(1))} if table else set()
    assert len(shapes) > 5 and chosen <= shapes
    assert chosen == shapes, f"never chosen: {sorted(shapes - chosen)}"
    assert len(splits) > 2, f"blocks shared tiles as {sorted(splits)} alone"
    assert len(on_cores) > len(shapes) / 2, f"on cores only {sorted(on_cores)}"
