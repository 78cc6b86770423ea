# SPDX-License-Identifier: Apache-2.0
"""Tests that equal inputs give equal bytes: in another folder, with any number of jobs, with a cold or warm kernel
cache."""
from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest
import small_models
from case_file import Case, DataMissing, all_cases, data_path
from conftest import BUILD, check, run_tool

# Light networks of every kind: large ones have no other causes of differences (order of kernels, names, hashes).
CASES = [
    case
    for case in all_cases()
    if case.name
    in (
        "mnist",
        "resnet8_cifar10",
        "mobilenetv1_0.25_128",
        "light_squeezenet",
        "toycar_autoencoder",
        "ultraface_rfb_320",
        "vittrack",
        "dtln_model_2",
        "stories260k",
        "super_resolution_x3",
    )
]


def build(case: Case, folder: Path, *flags: object) -> dict[str, bytes]:
    """Returns all files that the two commands leave in `folder`, by name."""
    folder.mkdir(parents=True)
    shapes = ["--input_shapes", case.input_shapes] if case.input_shapes else []
    check(
        run_tool(
            "model_transform",
            "--model_name",
            case.name,
            "--model_def",
            data_path(case.model),
            "--mlir",
            "m_top.mlir",
            "--not_inference",
            *case.transform,
            *shapes,
            cwd=folder,
        )
    )
    check(
        run_tool(
            "model_deploy",
            "--mlir",
            "m_top.mlir",
            "--chip",
            "x86-v2",
            "--quantize",
            "F32",
            "--model",
            "m.bmodel",
            "--skip_validation",
            *flags,
            cwd=folder,
        )
    )
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_same_bytes(case: Case, tmp_path: Path) -> None:
    try:
        data_path(case.model)
    except DataMissing as missing:
        pytest.skip(str(missing))
    cache = tmp_path / "cache"
    first = build(case, tmp_path / "a", "--jobs", 1, "--cache_dir", cache)
    assert {"m_top.mlir", "m.bmodel"} <= set(first)
    assert any(cache.rglob("*")), "the kernel cache was not used: cold and warm are the same"
    others = {
        "two jobs, warm cache": ("--jobs", 2, "--cache_dir", cache),
        "no cache": ("--jobs", 2, "--cache_dir", "none"),
    }
    for i, (how, flags) in enumerate(others.items()):
        again = build(case, tmp_path / f"another folder {i}", *flags)
        assert set(again) == set(first)
        for name, data in first.items():
            assert again[name] == data, f"{name} differs: {how}, another folder"


def test_kernels_of_another_build_are_not_used(tmp_path: Path) -> None:
    """A change in any source folder may influence a kernel, so the cache uses the build id of the compiler to
    distinguish builds."""
    small_models.conv_relu(tmp_path / "m.onnx")
    compiler = BUILD / "bin" / "tessera-compile"
    build_id = bytes.fromhex(
        re.search(
            r"Build ID: ([0-9a-f]{40})",
            subprocess.run(["readelf", "-n", compiler], capture_output=True, text=True, check=True).stdout,
        )[1]
    )
    other = tmp_path / "other-compile"
    code = compiler.read_bytes()
    assert code.count(build_id) == 1
    other.write_bytes(code.replace(build_id, bytes(20)))
    other.chmod(0o755)

    def run(program: Path, *arguments: object) -> dict:
        result = subprocess.run(
            [program, *map(str, arguments)], cwd=tmp_path, capture_output=True, text=True, timeout=600
        )
        assert result.returncode == 0, result.stdout + result.stderr
        return json.loads(result.stdout.splitlines()[-1])

    run(compiler, "import", "--onnx", "m.onnx", "--output", "m_top.mlir")
    deploy = ("deploy", "--mlir", "m_top.mlir", "--output", "m.bmodel", "--cache-dir", tmp_path / "cache")
    hits = [run(program, *deploy)["cache_hits"] for program in (compiler, compiler, other, other)]
    assert hits[1] > 0 and hits == [0, hits[1], 0, hits[1]]
