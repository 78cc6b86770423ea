# SPDX-License-Identifier: Apache-2.0
"""Tests that NVIDIA's assembler accepts every kernel of the models for every compute capability, and spills no
register.
The resources of each kernel (registers of a thread, shared memory etc.) are written to test-results/cuda_kernels.json
of the build. TESSERA_CUDA=all tests all models of TESSERA_DATA.
"""
from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any, Iterator

import pytest
from case_file import Case
from conftest import Builder, check, run_tool
from test_cases import skip_if_missing
from test_cuda import CASES, IS_WHOLE, deploy
from test_cuda_sass import sass

BUILD = Path(os.environ["TESSERA_BUILD_DIR"])
RESULTS = BUILD / "test-results" / "cuda_kernels.json"
CHIPS = ("cuda-sm80", "cuda-sm86", "cuda-sm89", "cuda-sm90")
PRECISIONS = ("F32", "INT8", "F16") if IS_WHOLE else ("F32", "INT8")

pytestmark = pytest.mark.skipif(
    not shutil.which("ptxas"), reason="ptxas (CUDA toolkit, or PyPI's nvidia-cuda-nvcc) is not on the path"
)


@pytest.fixture(scope="module")
def kernels() -> Iterator[dict[str, dict[str, Any]]]:
    """Collects the resources of kernels by model and precision, then by kernel and architecture, and writes them to a
    file at the end."""
    found: dict[str, dict[str, Any]] = {}
    yield found
    RESULTS.parent.mkdir(parents=True, exist_ok=True)
    RESULTS.write_text(json.dumps(found, indent=1, sort_keys=True) + "\n")


def assembled(ptx: Path, chip: str) -> dict[str, dict[str, int]]:
    """Returns the resources that ptxas reports for every kernel."""
    arch = f"sm_{chip.removeprefix('cuda-sm')}"
    info = subprocess.run(
        ["ptxas", "-v", f"-arch={arch}", ptx, "-o", ptx.with_suffix(".cubin")],
        capture_output=True,
        text=True,
        check=False,
    )
    text = info.stdout + info.stderr
    assert info.returncode == 0, f"{arch}: {text[-2000:]}"
    found = {}
    for name, body in re.findall(rf"Compiling entry function '(\S+)' for '{arch}'\n(.*?)(?=Compiling|\Z)", text, re.S):
        numbers = {
            key: int(match.group(1)) if (match := re.search(pattern, body)) else 0
            for key, pattern in {
                "registers": r"Used (\d+) registers",
                "frame_bytes": r"(\d+) bytes stack frame",
                "spill_store_bytes": r"(\d+) bytes spill stores",
                "spill_load_bytes": r"(\d+) bytes spill loads",
                "shared_bytes": r"(\d+) bytes smem",
                "constant_bytes": r"(\d+) bytes cmem",
            }.items()
        }
        found[name] = numbers
    return found


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_every_kernel_fits(
    case: Case, precision: str, builder: Builder, tmp_path: Path, kernels: dict[str, dict[str, Any]]
) -> None:
    skip_if_missing(case)
    flags: tuple[str | Path, ...] = ("--quantize", precision)
    if precision == "INT8":
        flags = (*flags, "--calibration-table", builder.table(case, tmp_path)[0])
    info = deploy(builder.top(case), "cuda", tmp_path / "m.bmodel", *flags)
    ptx = sass.ptx_of(tmp_path / "m.bmodel", tmp_path)
    listed = kernels.setdefault(f"{case.name} {precision}", {})
    for chip in CHIPS:
        found = assembled(ptx, chip)
        assert len(found) == info["kernels"], f"{chip}: {len(found)} of {info['kernels']} kernels are reported"
        for name, numbers in found.items():
            listed.setdefault(name, {})[chip] = numbers
        spilled = {
            name: numbers
            for name, numbers in found.items()
            if numbers["spill_store_bytes"] or numbers["spill_load_bytes"]
        }
        assert not spilled, f"{chip}: registers are spilled: {spilled}"
        assert all(0 < numbers["registers"] <= 255 for numbers in found.values())


def test_the_second_compilation_assembles_nothing(builder: Builder, tmp_path: Path) -> None:
    """ptxas on the path is a script that counts its runs. A damaged file of the cache counts as absent."""
    skip_if_missing(CASES[0])
    real, runs, cache = shutil.which("ptxas"), tmp_path / "runs", tmp_path / "cache"
    (tmp_path / "ptxas").write_text(f'#!/bin/sh\ncase "$1" in -arch*) echo $1 >>{runs};; esac\nexec {real} "$@"\n')
    (tmp_path / "ptxas").chmod(0o755)
    environment = os.environ | {"PATH": f"{tmp_path}:{os.environ['PATH']}"}
    result = []

    def compiled(chip: str, folder: Path | str) -> list[str]:
        result.append(tmp_path / f"{len(result)}.bmodel")
        flags = ("--chip", chip, "--output", result[-1], "--cache-dir", folder)
        check(run_tool("tessera-compile", "deploy", "--mlir", builder.top(CASES[0]), *flags, env=environment))
        return runs.read_text().split()

    assert compiled("cuda-sm80", cache) == compiled("cuda-sm80", cache) == ["-arch=sm_80"]
    assert compiled("cuda-sm90", cache) == ["-arch=sm_80", "-arch=sm_90"]
    assert len(compiled("cuda-sm80", "")) == 3, "without a cache"
    assert result[0].read_bytes() == result[1].read_bytes() == result[3].read_bytes()
    for kept in [path for path in cache.rglob("*") if path.is_file()]:
        kept.write_bytes(kept.read_bytes()[:-1] + b"?")
    assert len(compiled("cuda-sm80", cache)) == 4, "a damaged file"
    assert result[0].read_bytes() == result[4].read_bytes()


@pytest.mark.parametrize("chip", CHIPS)
def test_machine_code_is_in_the_file(chip: str, builder: Builder, tmp_path: Path) -> None:
    skip_if_missing(CASES[0])
    deploy(builder.top(CASES[0]), chip, tmp_path / "m.bmodel")
    sass.ptx_of(tmp_path / "m.bmodel", tmp_path)
    assert b"\x7fELF" in (tmp_path / "code").read_bytes()
