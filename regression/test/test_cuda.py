# SPDX-License-Identifier: Apache-2.0
"""Models on NVIDIA's GPUs: x86's answers in f32, its bits where they are integers; every failure of a driver told.

Where there is no GPU the PTX machine (regression/cuda/machine) executes the models' kernels, with all of its checks on.
TESSERA_CUDA=all: every model, and more random networks.
"""
from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Iterator

import numpy as np
import pytest
from case_file import Case, all_cases
from conftest import Builder, check, inputs_of, run_tool, samples
from test_cases import skip_if_missing

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "conformance"))
import random_ops  # noqa: E402
import random_quantized  # noqa: E402

MACHINE = Path(os.environ["TESSERA_BUILD_DIR"]) / "ptx_machine/libcuda.so.1"
IS_WHOLE = os.environ.get("TESSERA_CUDA") == "all"
QUICK = ("resnet8_cifar10", "mobilenetv1_0.25_128", "toycar_autoencoder", "stories260k", "dtln_model_2")
CASES = [case for case in all_cases() if IS_WHOLE or case.name in QUICK]
# Quantised, these keep recurrent cells in f32, whose sums a GPU adds in another order.
FLOAT_PARTS = ("dtln_model_1",)
TOLERANCE = 2e-5  # of the largest value, in f32


def has_machine() -> bool:
    flags = next((line for line in Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("flags")), "")
    return MACHINE.exists() and {"avx2", "fma", "f16c"} <= set(flags.split())


@pytest.fixture(autouse=True, scope="module")
def driver() -> Iterator[None]:
    """The real driver where one is named, else the PTX machine."""
    if not os.environ.get("BMRT_LIBCUDA"):
        if not has_machine():
            pytest.skip("no GPU, and the PTX machine is not built or this processor lacks AVX2, FMA or F16C")
        os.environ["BMRT_LIBCUDA"] = str(MACHINE)
        yield
        del os.environ["BMRT_LIBCUDA"]
    else:
        yield


def deploy(top: Path, chip: str, output: Path, *flags: str | Path) -> dict:
    text = check(run_tool("tessera-compile", "deploy", "--mlir", top, "--chip", chip, *flags, "--output", output))
    return json.loads(text.splitlines()[-1])


def run(model: Path, inputs: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    import tessera.runtime as runtime

    return runtime.load(str(model)).net()(inputs)


def answers(top: Path, tmp_path: Path, *flags: str | Path) -> tuple[dict, dict]:
    """Of x86 and of the GPU, on the same random inputs; the GPU runs all ops."""
    inputs = samples(inputs_of(top), 5)
    results = []
    for chip in ("x86", "cuda"):
        told = deploy(top, chip, tmp_path / f"{chip}.bmodel", *flags)
        assert chip == "x86" or not told["partition"]["host_ops"], told["partition"]["host_ops"]
        results.append(run(tmp_path / f"{chip}.bmodel", inputs))
    return results[0], results[1]


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_f32_is_x86s(case: Case, builder: Builder, tmp_path: Path) -> None:
    skip_if_missing(case)
    want, got = answers(builder.top(case), tmp_path)
    for name, expected in want.items():
        scale = max(1e-6, float(np.abs(expected.astype(np.float64)).max(initial=0)))
        worst = float(np.abs(got[name].astype(np.float64) - expected).max(initial=0)) / scale
        assert worst <= TOLERANCE, f"{case.name}: '{name}' is off by {worst:.1e} of its largest value"


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_int8_has_x86s_bits(case: Case, builder: Builder, tmp_path: Path) -> None:
    skip_if_missing(case)
    if case.name in FLOAT_PARTS:
        pytest.skip(f"{case.name} keeps recurrent cells in f32")
    table, _ = builder.table(case, tmp_path)
    want, got = answers(builder.top(case), tmp_path, "--quantize", "INT8", "--calibration-table", table)
    for name, expected in want.items():
        wrong = int((got[name] != expected).sum())
        assert not wrong, f"{case.name}: '{name}' differs in {wrong} of {expected.size} elements"


# What the narrow types leave: they are rounded at other places, and their sums are added in another order.
NARROW = {"W8": TOLERANCE, "W4": TOLERANCE, "DYNAMIC_INT8": TOLERANCE, "F16": 5e-3, "BF16": 4e-2}


@pytest.mark.parametrize("precision", NARROW)
def test_other_precisions_are_x86s(precision: str, builder: Builder, tmp_path: Path) -> None:
    for name in ("toycar_autoencoder", "vittrack"):
        case = next(case for case in all_cases() if case.name == name)
        skip_if_missing(case)
        if name == "vittrack" and precision == "DYNAMIC_INT8":
            continue  # one rounding more or less decides some integers
        want, got = answers(builder.top(case), tmp_path, "--quantize", precision)
        for output, expected in want.items():
            worst = float(np.abs(got[output] - expected).max()) / float(np.abs(expected).max())
            assert worst <= NARROW[precision], f"{name}: '{output}' is off by {worst:.1e} of its largest value"


def test_random_quantised_networks() -> None:
    seeds = range(1000, 3000) if IS_WHOLE else range(1000, 1024)
    results = list(random_quantized.run_seeds(seeds, os.cpu_count() or 1, variants=("cuda",)))
    assert not [fault for fault, _, _ in results if fault], "\n".join(fault for fault, _, _ in results)
    assert sum(compared for _, compared, _ in results) > 50_000


def test_random_ops() -> None:
    path = Path(random_ops.__file__)
    cases = "2000" if IS_WHOLE else "60"
    told = subprocess.run(
        [sys.executable, path, "--cases", cases, "--isa", "cuda"], capture_output=True, text=True, check=False
    )
    assert told.returncode == 0 and ", 0 faults" in told.stdout, told.stdout + told.stderr


@pytest.fixture(scope="module")
def small_model(tmp_path_factory: pytest.TempPathFactory, builder: Builder) -> tuple[Path, Path]:
    """The smallest of the models, and inputs of it."""
    case = next(case for case in all_cases() if case.name == "resnet8_cifar10")
    skip_if_missing(case)
    folder = tmp_path_factory.mktemp("small")
    top = builder.top(case)
    deploy(top, "cuda-sm80", folder / "m.bmodel")
    np.savez(folder / "in.npz", **samples(inputs_of(top), 5))
    return folder / "m.bmodel", folder / "in.npz"


FAULTS = {
    "no_driver": ({"BMRT_LIBCUDA": "/no/such/libcuda.so.1"}, "NVIDIA's driver is not there"),
    "no_cuda": ({"BMRT_LIBCUDA": "libc.so.6"}, "no driver of NVIDIA's"),
    "old_driver": ({"PTX_MACHINE_DRIVER_VERSION": "11040"}, "is of CUDA 11.4, and 12.0 or newer is needed"),
    "no_device": ({"PTX_MACHINE_NO_DEVICE": "1"}, "no NVIDIA GPU"),
    "old_device": ({"PTX_MACHINE_COMPUTE_CAPABILITY": "7.5"}, "compute capability 7.5"),
    "which_device": ({"BMRT_CUDA_DEVICE": "3"}, "wants GPU 3, and this machine has 1"),
    "memory": ({"PTX_MACHINE_FAIL_ALLOC": "1"}, "has no memory for"),
    "launch": ({"PTX_MACHINE_FAIL_LAUNCH": "2"}, "failed on"),
    "blocking_launch": ({"PTX_MACHINE_FAIL_LAUNCH": "2", "BMRT_CUDA_BLOCKING": "1"}, "layer Conv_2 Relu_3 failed"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_failures_are_told(fault: str, small_model: tuple[Path, Path], tmp_path: Path) -> None:
    if os.environ["BMRT_LIBCUDA"] != str(MACHINE):
        pytest.skip("a real driver does not fail on demand")
    variables, message = FAULTS[fault]
    model, inputs = small_model
    told = subprocess.run(
        ["model_runner", "--model", model, "--input", inputs, "--output", tmp_path / "out.npz"],
        env=os.environ | variables,
        capture_output=True,
        text=True,
        check=False,
    )
    assert told.returncode == (71 if fault == "memory" else 1) and message in told.stderr, told.stderr
    assert "Traceback" not in told.stderr


def test_the_assembler_takes_every_kernel(builder: Builder, tmp_path: Path) -> None:
    """deploy ends with an error where ptxas refuses one."""
    if not shutil.which("ptxas"):
        pytest.skip("ptxas (CUDA toolkit, or PyPI's nvidia-cuda-nvcc) is not on the path")
    for case in CASES:
        skip_if_missing(case)
        for chip in ("cuda-sm80", "cuda-sm90"):
            deploy(builder.top(case), chip, tmp_path / "m.bmodel")
