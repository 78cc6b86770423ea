# SPDX-License-Identifier: Apache-2.0
"""Tests the wheels: the console scripts work in fresh environments, with numpy 1 and 2, and uninstalling leaves no
files."""
from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from case_file import REGRESSION
from conftest import BUILD, check

sys.path.insert(0, str(REGRESSION.parent / "python_tools" / "dev"))

import package  # noqa: E402

MNIST = REGRESSION / "models" / "mnist"


def interpreters() -> list[str]:
    """Returns the Pythons of this machine that the module is built for and that have numpy, one per numpy version."""
    found: dict[str, str] = {}
    for python in (sys.executable, "/usr/bin/python3", shutil.which("python3") or ""):
        ask = "import sys, numpy; print(sys.version_info[:2] == %r, numpy.__version__)" % (tuple(sys.version_info[:2]),)
        answer = subprocess.run([python, "-c", ask], capture_output=True, text=True) if python else None
        if answer and answer.returncode == 0 and answer.stdout.startswith("True"):
            found.setdefault(answer.stdout, python)
    return sorted(found.values())


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Returns both wheels of this build; the compiler's is linked to this machine's LLVM."""
    if subprocess.run([sys.executable, "-c", "import wheel, setuptools, pip"], capture_output=True).returncode:
        pytest.skip("pip, setuptools or wheel is not installed")
    source, output = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("wheels")
    package.stage_sources(source)
    return [
        package.make_wheel(source / "bmruntime" / "python", BUILD, output),
        package.make_wheel(source, BUILD, output, TESSERA_WHEEL_SHARED="1"),
    ]


def environment_with(wheels: list[Path], python: str, folder: Path) -> Path:
    """Creates a virtual environment with the wheels in `folder`. Returns the folder of its commands."""
    has_pip = subprocess.run([python, "-c", "import pip"], capture_output=True).returncode == 0  # also in the venv
    without = ["--without-pip"] if has_pip else []
    make = [python, "-m", "venv", "--system-site-packages", *without, folder]
    check(subprocess.run(make, capture_output=True, text=True))
    pip(folder, "install", "-q", "--no-deps", "--no-index", *wheels)
    return folder / "bin"


def pip(folder: Path, *arguments: object) -> str:
    command = [str(word) for word in (folder / "bin" / "python", "-m", "pip", *arguments)]
    return check(subprocess.run(command, capture_output=True, text=True))


@pytest.mark.parametrize("python", interpreters())
def test_console_scripts(python: str, wheels: list[Path], tmp_path: Path) -> None:
    bin_folder = environment_with(wheels, python, tmp_path / "venv")
    clean = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path)}  # the build is not on the path

    def run(name: str, *arguments: object) -> str:
        command = [bin_folder / name, *map(str, arguments)]
        return check(subprocess.run(command, cwd=tmp_path, env=clean, text=True, capture_output=True, timeout=600))

    definition = ("--model_name", "m", "--model_def", MNIST / "mnist-8.onnx", "--mlir", "m_top.mlir")
    run("model_transform", *definition, "--not_inference")
    run("model_deploy", "--mlir", "m_top.mlir", "--chip", "x86", "--quantize", "F32", "--model", "m.bmodel")
    np.savez(tmp_path / "in.npz", Input3=np.load(MNIST / "in_Input3.npy"))
    run("model_runner", "--model", "m.bmodel", "--input", "in.npz", "--output", "out.npz")
    expected = np.load(MNIST / "out_Plus214_Output_0.npy")
    with np.load(tmp_path / "out.npz") as out:
        np.testing.assert_allclose(out["Plus214_Output_0"], expected, atol=1e-3 * np.ptp(expected))
    assert "m.bmodel" in run("model_tool", "check", "m.bmodel")
    assert "Plus214_Output_0" in run("npz_tool", "dump", "out.npz")
    run("tessera", "report", "m.bmodel", "-o", "m.html")
    assert "median" in run("bmrt_bench", "m.bmodel", "--iters", "2")
    assert "verdict: PASS" in run("tessera", "run", MNIST / "mnist-8.onnx")
    assert "import" in run("tessera-compile", "--help")


def test_the_runtime_alone(wheels: list[Path], tmp_path: Path) -> None:
    """The wheel of the runtime is small, contains no program, and runs models. When both wheels are uninstalled, no
    file is left."""
    download, installed = package.size(wheels[0])
    assert download < package.LIMITS["tessera_runtime"][0] and installed < package.LIMITS["tessera_runtime"][1]
    environment_with(wheels[:1], sys.executable, tmp_path / "venv")
    script = "import tessera.runtime as rt; rt.load('none.bmodel')"
    command = [tmp_path / "venv" / "bin" / "python", "-c", script]
    result = subprocess.run(command, cwd=tmp_path, env={"PATH": "/usr/bin"}, capture_output=True, text=True)
    assert "tessera._runtime.Error" in result.stderr and "none.bmodel" in result.stderr

    pip(tmp_path / "venv", "install", "-q", "--no-deps", "--no-index", wheels[1])
    pip(tmp_path / "venv", "uninstall", "-q", "-y", "tessera", "tessera-runtime")
    assert not list((tmp_path / "venv").glob("lib/python*/site-packages/tessera*"))
    assert not (tmp_path / "venv" / "bin" / "model_deploy").exists()
