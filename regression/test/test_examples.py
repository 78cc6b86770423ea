# SPDX-License-Identifier: Apache-2.0
"""Tests that every example prints its documented output, with the installed libraries."""
from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from case_file import REGRESSION
from conftest import BUILD, check

EXAMPLES = REGRESSION.parent / "examples"
NEEDS = {"c": ["pkg-config"], "custom-op": ["pkg-config"], "rust": ["pkg-config", "rustc"]}


@pytest.fixture(scope="module")
def prefix(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Installs libbmrt of this build."""
    folder = tmp_path_factory.mktemp("prefix")
    for component in ("runtime", "devel"):
        command = ["cmake", "--install", BUILD, "--prefix", folder, "--component", component]
        check(subprocess.run(command, capture_output=True, text=True))
    return folder


def environment(prefix: Path) -> dict[str, str]:
    libraries = next(prefix.rglob("libbmrt.so")).parent
    return {
        **os.environ,
        "PATH": f"{BUILD / 'bin'}{os.pathsep}{os.environ['PATH']}",
        "PYTHON": "tessera-python",
        "PKG_CONFIG_PATH": str(libraries / "pkgconfig"),
        "CMAKE_PREFIX_PATH": str(prefix),
        "LD_LIBRARY_PATH": str(libraries),
    }


@pytest.mark.parametrize("name", sorted(path.parent.name for path in EXAMPLES.glob("*/run.sh")))
def test_example(name: str, prefix: Path, tmp_path: Path) -> None:
    for program in NEEDS.get(name, []):
        if shutil.which(program) is None:
            pytest.skip(f"{program} is not installed")
    if name == "audio" and not os.environ.get("TESSERA_DATA"):
        pytest.skip("TESSERA_DATA is not set")
    printed = check(
        subprocess.run(
            [EXAMPLES / name / "run.sh"], cwd=tmp_path, env=environment(prefix), capture_output=True, text=True
        )
    )
    assert printed == (EXAMPLES / name / "expected.txt").read_text(encoding="utf-8")


def test_every_example_is_told_of() -> None:
    table = (EXAMPLES / "README.md").read_text(encoding="utf-8")
    assert {path.name for path in EXAMPLES.iterdir() if path.is_dir()} == {
        path.parent.name for path in EXAMPLES.glob("*/run.sh") if f"[{path.parent.name}]({path.parent.name}/)" in table
    }


def test_cmake_package(prefix: Path, tmp_path: Path) -> None:
    """The C++ example is built with c++, which is g++ on Debian; this test uses clang."""
    configure = ["cmake", "-S", EXAMPLES / "cpp", "-B", tmp_path / "build", "-DCMAKE_CXX_COMPILER=clang++-22"]
    check(subprocess.run(configure, env=environment(prefix), capture_output=True, text=True))
    build = ["cmake", "--build", tmp_path / "build"]
    check(subprocess.run(build, env=environment(prefix), capture_output=True, text=True))


def test_an_unknown_component_is_rejected(prefix: Path, tmp_path: Path) -> None:
    (tmp_path / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.16)\nproject(p NONE)\nfind_package(Tessera REQUIRED COMPONENTS tpu)\n"
    )
    command = ["cmake", "-S", tmp_path, "-B", tmp_path / "build"]
    result = subprocess.run(command, env=environment(prefix), capture_output=True, text=True)
    assert result.returncode != 0 and "Tessera has no component 'tpu'" in " ".join(result.stderr.split())
