# SPDX-License-Identifier: Apache-2.0
"""Tests models for 64-bit Arm: runs them under qemu with a cross-compiled runtime and compares the outputs with those
of this machine. Skipped without Debian's cross compiler or without qemu."""
from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Callable

import numpy as np
import pytest
from case_file import REGRESSION, Case, read_case
from conftest import Builder, check, run_tool, samples
from made_once import BUILD

from tessera.bmodel import Net, open_net

SOURCE = REGRESSION.parent
TOOLS = ("aarch64-linux-gnu-g++", "qemu-aarch64", "cmake", "ninja")

Emulator = Callable[[Path, bytes], "subprocess.CompletedProcess[bytes]"]


@pytest.fixture(scope="module")
def emulator() -> Emulator:
    """Builds the runtime for 64-bit Arm. Returns a function that runs a model on given inputs under qemu."""
    missing = [tool for tool in TOOLS if shutil.which(tool) is None]
    if missing:
        pytest.skip(f"{', '.join(missing)} not found: apt install g++-aarch64-linux-gnu qemu-user")
    build, program = BUILD / "runtime-arm64", Path(__file__).with_name("run_model.c")
    launcher = [f"-DCMAKE_{language}_COMPILER_LAUNCHER={shutil.which('ccache') or ''}" for language in ("C", "CXX")]
    compiler: list[object] = ["aarch64-linux-gnu-gcc", "-Wall", "-Wextra", "-Werror", f"-I{SOURCE}/bmruntime/include"]
    commands: list[list[object]] = [
        ["cmake", "--preset", "runtime-arm64", "-B", build, *launcher],
        ["ninja", "-C", build, "bmrt"],
        [*compiler, program, f"-L{build}/lib", "-lbmrt", "-o", build / "run_model"],
    ]
    for command in commands:
        check(subprocess.run([*map(str, command)], cwd=SOURCE, text=True, capture_output=True, timeout=1800))
    qemu = ["qemu-aarch64", "-L", "/usr/aarch64-linux-gnu", "-E", f"LD_LIBRARY_PATH={build}/lib"]
    qemu.append(str(build / "run_model"))
    return lambda model, inputs: subprocess.run([*qemu, str(model)], input=inputs, capture_output=True, timeout=600)


def run_under(emulator: Emulator, model: Path, net: Net, inputs: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Runs `model`, which has the inputs and outputs of `net`. Returns the outputs as stored."""
    stored = net.stored(inputs)
    result = emulator(model, b"".join(stored[each.name].tobytes() for each in net.inputs))
    assert result.returncode == 0, result.stderr.decode()
    outputs, at = {}, 0
    for name, like in net.run_stored(stored, lambda *_: None).items():
        outputs[name] = np.frombuffer(result.stdout, like.dtype, like.size, at).reshape(like.shape)
        at += like.nbytes
    assert at == len(result.stdout)
    return outputs


def deployed(top: Path, chip: str, *flags: object) -> Path:
    model = top.with_name(f"{top.stem}_{chip}_{flags[1]}.bmodel")
    if not model.exists():
        check(run_tool("model_deploy", "--mlir", top, "--chip", chip, "--model", model, "--skip_validation", *flags))
    return model


def case_of(name: str) -> Case:
    return read_case(REGRESSION / "cases" / f"{name}.toml")


def both(builder: Builder, emulator: Emulator, name: str, *flags: object) -> list[tuple[np.ndarray, np.ndarray]]:
    """Returns each output of the case's model under qemu and on this machine."""
    case = case_of(name)
    top = builder.top(case)
    net = open_net(deployed(top, "x86", *flags))
    inputs = {spec.name: value for spec, value in zip(net.inputs, samples_of(net).values())}
    expected = net.run_stored(net.stored(inputs), lambda *_: None)
    found = run_under(emulator, deployed(top, "arm64", *flags), net, inputs)
    assert found.keys() == expected.keys() and found
    return [(found[key], expected[key]) for key in found]


def samples_of(net: Net) -> dict[str, np.ndarray]:
    specs = [{"name": each.name, "shape": each.shape, "dtype": str(np.dtype(each.dtype))} for each in net.inputs]
    return samples(specs, seed=5)


@pytest.mark.parametrize(
    "name, precision",
    [
        ("mnist", "F32"),
        ("resnet20_cifar10", "F32"),
        ("dtln_model_1", "F32"),
        ("stories260k", "F32"),
        ("stories260k", "W8"),
        ("resnet8_cifar10", "F16"),
        ("resnet8_cifar10", "BF16"),
        ("toycar_autoencoder", "DYNAMIC_INT8"),
    ],
)
def test_floats(builder: Builder, emulator: Emulator, name: str, precision: str) -> None:
    """Outputs of floats are those of this machine up to the order of sums."""
    for found, expected in both(builder, emulator, name, "--quantize", precision):
        assert np.abs(expected).max() > 0
        tolerance = {"F16": 0.01, "BF16": 0.05}.get(precision, 1e-4) * np.abs(expected).max()
        np.testing.assert_allclose(found, expected, rtol=0, atol=tolerance)


@pytest.mark.parametrize("name", ["resnet20_cifar10", "toycar_autoencoder", "mobilenetv1_0.25_128"])
def test_integers(builder: Builder, emulator: Emulator, name: str, tmp_path: Path) -> None:
    """A model of integers has the bits of this machine."""
    table, _ = builder.table(case_of(name), tmp_path)
    for found, expected in both(builder, emulator, name, "--quantize", "INT8", "--calibration_table", table):
        assert len(np.unique(expected)) > 5
        np.testing.assert_array_equal(found, expected)


def test_rejects_another_machine(builder: Builder) -> None:
    """The runtime of this machine reports that the code is for another one."""
    model = deployed(builder.top(case_of("mnist")), "arm64", "--quantize", "F32")
    result = run_tool("bmrt_bench", model)
    assert result.returncode == 1 and "has code for AArch64, which this machine is not" in result.stderr
