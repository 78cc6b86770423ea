# SPDX-License-Identifier: Apache-2.0
"""Tests model_deploy --tune, which chooses tiles of products by measured times.
The PTX machine's clock replaces a GPU's. It counts the instructions that kernels issue, or their blocks. The fastest
tile by each of the two clocks is known, and the two differ.
"""
from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import check, run_tool
from onnx import TensorProto, helper, numpy_helper
from small_models import save, tensor
from test_cuda import MACHINE, has_machine, run

pytestmark = pytest.mark.skipif(
    not has_machine(), reason="the PTX machine is not built, or this processor cannot run it"
)
BLOCKS = re.compile(r"<(\d+) x (\d+), .*?stages = \d+(?:, split_k = (\d+))?")
ROWS, K, COLUMNS = 64, 256, 64
TILES = 5


@pytest.fixture(scope="module")
def top(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Imports four matmuls. With F16 the second and third are equal; the first reads the f32 input, and the fourth has
    another shape."""
    folder = tmp_path_factory.mktemp("tune")
    rng = np.random.default_rng(3)
    shapes = {"a": (K, K), "b": (K, K), "c": (K, K), "d": (K, COLUMNS)}
    weights = [numpy_helper.from_array(rng.standard_normal(s).astype(np.float32) * 0.05, n) for n, s in shapes.items()]
    nodes = [
        helper.make_node("MatMul", ["x", "a"], ["p"], name="first"),
        helper.make_node("MatMul", ["p", "b"], ["q"], name="second"),
        helper.make_node("MatMul", ["q", "c"], ["r"], name="third"),
        helper.make_node("MatMul", ["r", "d"], ["y"], name="fourth"),
    ]
    values = [tensor("x", (ROWS, K), TensorProto.FLOAT)], [tensor("y", (ROWS, COLUMNS), TensorProto.FLOAT)]
    save(folder / "m.onnx", nodes, *values, weights)
    flags = ("--model_name", "m", "--model_def", "m.onnx", "--mlir", "m_top.mlir", "--not_inference")
    check(run_tool("model_transform", *flags, cwd=folder))
    return folder / "m_top.mlir"


def deployed(top: Path, *flags: object, code: int = 0, **variables: str) -> Any:
    """Returns the output of model_deploy --json or, if it fails, the text of its error."""
    fixed = ("--mlir", top, "--quantize", "F16", "--skip_validation", "--json")
    environment = os.environ | {"BMRT_LIBCUDA": str(MACHINE), "PTX_MACHINE_CHECKS": "0"} | variables
    info = run_tool("model_deploy", *fixed, *flags, env=environment)
    assert info.returncode == code, info.stdout + info.stderr
    return json.loads(info.stdout) if not code else info.stderr + info.stdout


def blocks(tile: str) -> int:
    rows, columns, split = (int(number or 1) for number in BLOCKS.search(tile).groups())  # type: ignore[union-attr]
    return -(-ROWS // rows) * -(-K // columns) * split


def test_measured_times_choose(top: Path, tmp_path: Path) -> None:
    chosen = {}
    for clock in ("issue", "blocks"):
        model, cache, device = (tmp_path / f"{clock}{suffix}" for suffix in (".bmodel", "", ".mlir"))
        flags = ("--chip", "cuda", "--tune", TILES, "--model", model, "--cache_dir", cache, "--device_mlir", device)
        plan = deployed(top, *flags, PTX_MACHINE_CLOCK=clock)["model"]["plan"]
        products = {" ".join(entry["layers"]): entry for entry in plan["products"]}
        assert len(products) == 3 and "PTX machine" in plan["device"]
        text = device.read_text()
        for entry in products.values():
            times = entry["microseconds"]
            assert len(times) == TILES and times[entry["tile"]] == min(times.values())
            assert entry["tile"] in text, "the IR has another tile"
        pair = next(entry for entry in products.values() if len(entry["layers"]) == 2)
        chosen[clock] = pair["tile"]
        if clock == "blocks":
            assert all(time == 2 * blocks(tile) for tile, time in pair["microseconds"].items()), "not what was measured"
        # The second deployment reuses the stored measurements, so its plan is the same.
        again = deployed(top, *flags, PTX_MACHINE_CLOCK=clock)["model"]["plan"]["products"]
        assert [entry["tile"] for entry in again] == [entry["tile"] for entry in plan["products"]]
        assert not any("microseconds" in entry for entry in again)
    assert chosen["issue"] != chosen["blocks"], "the clock decides nothing"


def test_a_plan_is_followed_and_checked(top: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plan, other = tmp_path / "plan.json", "#cuda.tile<16 x 32, k_bytes = 64, warps = 1 x 1 x 1, stages = 4>"
    flags = ("--chip", "cuda", "--model", tmp_path / "m.bmodel")
    deployed(top, *flags, "--plan_out", plan)
    written = json.loads(plan.read_text())

    def planned(tile: str, code: int) -> Any:
        for entry in written["products"]:
            entry["tile"] = tile
        plan.write_text(json.dumps(written))
        return deployed(top, "--chip", "cuda", "--model", tmp_path / "p.bmodel", "--plan", plan, code=code)

    info = planned(other, 0)["model"]["plan"]["products"]
    assert {entry["tile"] for entry in info} == {other}
    monkeypatch.setenv("BMRT_LIBCUDA", str(MACHINE))
    x = {"x": np.random.default_rng(1).standard_normal((ROWS, K)).astype(np.float32)}
    for name, expected in run(tmp_path / "m.bmodel", x).items():
        np.testing.assert_allclose(run(tmp_path / "p.bmodel", x)[name], expected, rtol=2e-2, atol=2e-2)
    assert "tile_c1" in planned(other.replace("16 x 32", "24 x 32"), 1)
    assert "is not a #cuda.tile" in planned("#cuda.gemv<columns = 2, warps = 4 x 1>", 1)
    assert "tf32" in planned(other.replace(">", ", tf32 = true>"), 1)
    written["products"].append(dict(written["products"][0], product="0" * 32))
    assert any("1 products that the model does not have" in text for text in planned(other, 0)["warnings"])
    written["products"].append(written["products"][0])
    assert "has two tiles" in planned(other, 1)


def test_rejections(top: Path, tmp_path: Path) -> None:
    flags = ("--model", tmp_path / "m.bmodel", "--tune")
    for missing in ({"BMRT_LIBCUDA": "/no/such/libcuda.so.1"}, {"PTX_MACHINE_NO_DEVICE": "1"}):
        assert "--tune measures on this machine's GPU" in deployed(top, "--chip", "cuda", *flags, code=1, **missing)
    old = {"PTX_MACHINE_COMPUTE_CAPABILITY": "8.0"}
    assert "--tune measures on this machine's GPU" in deployed(top, "--chip", "cuda-sm90", *flags, code=1, **old)
    assert "--tune is for GPUs" in deployed(top, "--chip", "x86", *flags, code=2)
    assert "--tune takes a number" in deployed(top, "--chip", "cuda", *flags, 0, code=2)
    assert not (tmp_path / "m.bmodel").exists()
