# SPDX-License-Identifier: Apache-2.0
"""Tests that models keep open dims with --dims, and that open imports, bound to sizes, equal static imports."""
from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Callable, Mapping, Sequence

import pytest
from conftest import check, run_tool

RESNET, SQUEEZENET = "data:models/cls/resnet20_cifar10.onnx", "data:models/cls/squeezenet1.0_227.onnx"
SUPER_RESOLUTION = "data:models/sr/super_resolution_x3.onnx"
STORIES, STORIES_KV = "data:models/llm/stories260k.onnx", "data:models/llm/stories260k_kv.onnx"
DETECTION, SILERO = "data:models/seg/ppocrv3_det.onnx", "data:models/rnn/silero_vad.onnx"


def kv_shapes(batch: int, seq: int, past: int) -> str:
    caches = ",".join(f"past_key_values.{i}.{kind}={batch}x4x{past}x8" for i in range(5) for kind in ("key", "value"))
    tokens = f"input_ids={batch}x{seq},position_ids={batch}x{seq}"
    return f"{tokens},attention_bias=1x1x{seq}x{past + seq},{caches}"


CASES: Sequence[tuple[str, str, Sequence[tuple[Mapping[str, int], str]]]] = [
    (RESNET, "N=1..8", [({"N": n}, f"input={n}x3x32x32") for n in (1, 3, 8)]),
    (SQUEEZENET, "N=1..8", [({"N": n}, f"data={n}x3x227x227") for n in (1, 3, 8)]),
    (SUPER_RESOLUTION, "batch_size=1..8", [({"batch_size": n}, f"input={n}x1x224x224") for n in (1, 3, 8)]),
    (
        STORIES,
        "batch=1..4,seq=1..128",
        [({"batch": b, "seq": s}, f"input_ids={b}x{s}") for b, s in ((1, 1), (2, 17), (4, 128))],
    ),
    (
        STORIES_KV,
        "batch=1..4,seq=1..128,past=0..128,total=1..256",
        [({"batch": b, "seq": s, "past": p}, kv_shapes(b, s, p)) for b, s, p in ((1, 1, 5), (2, 17, 3), (1, 128, 128))],
    ),
    (
        DETECTION,
        "x.2=32..1280:32,x.3=32..1280:32",
        [({"x.2/32": h, "x.3/32": w}, f"x=1x3x{32 * h}x{32 * w}") for h, w in ((1, 1), (10, 7), (23, 40))],
    ),
    # The length selects the branches of an If, so it is fixed; input.0 turns out to be state.1.
    (
        SILERO,
        "input.0=1..4,input.1=512,state.1=1..4",
        [({"state.1": n}, f"input={n}x512,state=2x{n}x128") for n in (1, 3, 4)],
    ),
]
VALUES = {SILERO: ("--input-values", "sr=16000")}


def canonical(path: Path) -> str:
    """Returns a module's text without the name and hash of its weights, with constants named by their order: they carry
    the name of the node that computed them first."""
    names: dict[str, str] = {}
    text = re.sub(r'top\.weight_(file|hash) = "[^"]*"', "", path.read_text())
    return re.sub(r'top\.weight "([^"]*)"', lambda found: names.setdefault(found[1], f"weight {len(names)}"), text)


@pytest.mark.parametrize("file, dims, sizes", CASES, ids=[Path(case[0]).stem for case in CASES])
def test_bound_import_equals_static_import(
    file: str, dims: str, sizes: Sequence[tuple[Mapping[str, int], str]], need: Callable[[str], Path], tmp_path: Path
) -> None:
    opened, static = tmp_path / "open_top.mlir", tmp_path / "static_top.mlir"
    load = ("import", "--onnx", need(file), *VALUES.get(file, ()))
    check(run_tool("tessera-compile", *load, "--output", opened, "--dims", dims, "--no-optimise"))
    check(run_tool("tessera-compile", *load, "--output", tmp_path / "opt_top.mlir", "--dims", dims))
    for values, shapes in sizes:
        check(run_tool("tessera-compile", *load, "--output", static, "--input-shapes", shapes))
        bind = "--top-bind-dims=dims=" + ",".join(f"{name}={value}" for name, value in values.items())
        check(run_tool("tessera-opt", opened, bind, "--top-pipeline", "-o", tmp_path / "bound.mlir"))
        check(run_tool("tessera-opt", static, "-o", tmp_path / "static.mlir"))
        assert canonical(tmp_path / "bound.mlir") == canonical(tmp_path / "static.mlir"), shapes


def test_model_transform_checks_three_sizes(need: Callable[[str], Path], tmp_path: Path) -> None:
    mlir = tmp_path / "resnet_top.mlir"
    output = check(
        run_tool("model_transform", "--model_def", need(RESNET), "--mlir", mlir, "--dims", "N=1..5~2", "--json")
    )
    result = json.loads(output)
    assert result["model"]["inputs"] == ["'input' float32[up to 5, 3, 32, 32]"]
    assert set(result["comparisons"]) == {"likely", "min", "max"}


def test_dims_of_unknown_name(need: Callable[[str], Path], tmp_path: Path) -> None:
    result = run_tool(
        "model_transform", "--model_def", need(RESNET), "--mlir", tmp_path / "m_top.mlir", "--dims", "n=1..8"
    )
    assert result.returncode != 0
    assert "'n', which is not the name of an open dim" in result.stdout + result.stderr
    assert "--dims N=1..8" in result.stdout + result.stderr
