# SPDX-License-Identifier: Apache-2.0
"""Tests regression/cuda/on_device.py, a script for real GPUs, on the PTX machine: which cases it accepts and
rejects."""
from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from case_file import all_cases, data_path
from test_cases import skip_if_missing
from test_cuda import MACHINE, has_machine

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "cuda"))
import measured  # noqa: E402

SCRIPT = Path(__file__).resolve().parents[1] / "cuda" / "on_device.py"
LIBRARY = Path(os.environ["TESSERA_BUILD_DIR"]) / "lib" / "libbmrt.so"

pytestmark = pytest.mark.skipif(
    not has_machine(), reason="the PTX machine is not built or this processor lacks AVX2, FMA or F16C"
)


@pytest.fixture(scope="module")
def cases(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Returns a folder of cases from make_cases.py: int8 ones must have the bits of x86, f32 ones have a tolerance."""
    case = next(case for case in all_cases() if case.name == "resnet8_cifar10")
    skip_if_missing(case)
    folder = tmp_path_factory.mktemp("cases")
    tools = os.environ | {"PATH": f"{LIBRARY.parents[1] / 'bin'}:{os.environ['PATH']}"}
    words = [sys.executable, SCRIPT.with_name("make_cases.py"), "--output", folder, "--precisions", "F32,INT8"]
    subprocess.run([*words, "--gemm", "96x64x40", data_path(case.model)], env=tools, check=True)
    for precision in ("int8", "f32"):
        (folder / f"{case.name}_{precision}").rename(folder / precision)
        (folder / f"gemm_96x64x40_{precision}").rename(folder / f"gemm_{precision}")
    return folder


# The part of torch that on_device.py calls; it works on the host.
TORCH = """
import contextlib, time, types
import numpy
__version__ = "0"
int8, float16, bfloat16, float32 = "int8", "float16", "bfloat16", "float32"
class Tensor:
    def __init__(self, array): self.array = array
    def cuda(self): return self
    def to(self, kind): return self
    def t(self): return Tensor(self.array.T)
class Module:
    def cuda(self): return self
    def __call__(self, *arrays): assert all(isinstance(each, Tensor) for each in arrays)
class Event:
    def __init__(self, enable_timing): assert enable_timing
    def record(self): self.time = time.perf_counter()
    def synchronize(self): pass
    def elapsed_time(self, other): return 1e3 * (other.time - self.time)
class CUDAGraph:
    def replay(self): time.sleep(1e-4)
cuda = types.SimpleNamespace(is_available=lambda: True, synchronize=lambda: None, Event=Event, CUDAGraph=CUDAGraph)
cuda.graph = lambda graph: contextlib.nullcontext()
export = types.SimpleNamespace(load=lambda path: types.SimpleNamespace(module=Module))
no_grad, from_numpy = contextlib.nullcontext, Tensor
def compile(module): raise RuntimeError("no compiler\\nat all")
def randint(low, high, size, dtype, device): return Tensor(numpy.zeros(size))
def randn(size, device): return Tensor(numpy.zeros(size))
def matmul(a, b): a.array @ b.array
_int_mm = matmul
"""


def on_device(*arguments: object, **variables: str) -> "subprocess.CompletedProcess[str]":
    """Runs on_device.py in a Python without Tessera on its path."""
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    return subprocess.run(
        [sys.executable, SCRIPT, "--library", LIBRARY, "--runs", "3", "--seconds", "1", *map(str, arguments)],
        env=environment | {"BMRT_LIBCUDA": str(MACHINE)} | variables,
        capture_output=True,
        text=True,
        check=False,
    )


def results(cases: Path, tmp_path: Path, *names: str) -> tuple[int, list[dict[str, Any]]]:
    info = on_device("--json", tmp_path / "r.json", *(cases / name for name in names))
    assert info.returncode in (0, 1), info.stderr
    return info.returncode, json.loads((tmp_path / "r.json").read_text())["cases"]


def altered(cases: Path, tmp_path: Path, name: str) -> Path:
    """Copies a case and increases the second element of its expected output."""
    shutil.copytree(cases / name, tmp_path / "cases" / name)
    expected = dict(np.load(cases / name / "expected.npz"))
    output = next(iter(expected))
    expected[output].reshape(-1)[1] += np.abs(expected[output]).max()
    np.savez(tmp_path / "cases" / name / "expected.npz", **expected)
    return tmp_path / "cases"


def test_right_answers_pass_and_are_timed(cases: Path, tmp_path: Path) -> None:
    code, (int8, f32) = results(cases, tmp_path, "int8", "f32")
    assert code == 0 and int8["passed"] and f32["passed"], (int8, f32)
    assert all(output["differing"] == 0 for output in int8["outputs"].values())
    for row in (int8, f32):
        assert 0 < row["wall_us"]["min"] <= row["wall_us"]["p50"] <= row["wall_us"]["p99"]
        assert row["event_us"]["runs"] == 3 and row["estimate_us"] > 0 and row["measured_over_estimate"] > 0
    info = json.loads((tmp_path / "r.json").read_text())
    assert info["passed"] and info["device"]["major"] >= 8


def test_launches_are_timed_beside_their_estimates(cases: Path, tmp_path: Path) -> None:
    _, (row,) = results(cases, tmp_path, "int8")
    assert len(row["launches"]) > 5 and "Conv" in "".join(launch["node"] for launch in row["launches"])
    assert all(launch["us"] > 0 and launch["estimate_us"] > 0 and launch["bound"] for launch in row["launches"])
    assert sum(launch["estimate_us"] for launch in row["launches"]) == pytest.approx(row["estimate_us"], abs=0.1)
    assert row["torch"] is None


def test_pytorch_and_cublas_stand_beside(cases: Path, tmp_path: Path) -> None:
    (tmp_path / "torch").mkdir()
    (tmp_path / "torch" / "__init__.py").write_text(TORCH)
    for name in ("gemm_int8", "gemm_f32"):
        shutil.copytree(cases / name, tmp_path / name)
        (tmp_path / name / "model.pt2").write_bytes(b"")
    folders = (tmp_path / "gemm_int8", tmp_path / "gemm_f32")
    info = on_device("--json", tmp_path / "r.json", *folders, PYTHONPATH=str(tmp_path))
    assert info.returncode == 0, info.stdout + info.stderr
    for row in json.loads((tmp_path / "r.json").read_text())["cases"]:
        assert row["torch"]["eager_us"]["p50"] > 0 and row["torch"]["graph_us"]["p50"] > 0
        assert row["torch"]["compile_error"] == "no compiler", "the other figures are reported if one fails"
        assert row["cublas"]["us"] > 0 and row["cublas"]["of_cublas"] > 0
    assert "torch eager" in info.stdout and "of cuBLAS" in info.stdout


@pytest.mark.parametrize("name", ["int8", "f32"])
def test_wrong_answers_fail(name: str, cases: Path, tmp_path: Path) -> None:
    code, (row,) = results(altered(cases, tmp_path, name), tmp_path, name)
    assert code == 1 and not row["passed"]
    assert [output["differing"] >= 1 and not output["passed"] for output in row["outputs"].values()][0]


def test_not_a_number_never_passes(cases: Path, tmp_path: Path) -> None:
    shutil.copytree(cases / "f32", tmp_path / "f32")
    expected = dict(np.load(cases / "f32" / "expected.npz"))
    expected[next(iter(expected))].reshape(-1)[0] = np.nan
    np.savez(tmp_path / "f32" / "expected.npz", **expected)
    code, (row,) = results(tmp_path, tmp_path, "f32")
    assert code == 1 and not row["passed"]


def test_what_cannot_run_is_told(cases: Path, tmp_path: Path) -> None:
    shutil.copytree(cases / "int8", tmp_path / "broken")
    (tmp_path / "broken" / "cuda.bmodel").write_bytes(b"no model")
    np.savez(tmp_path / "broken" / "inputs.npz", other=np.zeros(1))
    shutil.copytree(cases / "int8", tmp_path / "named")
    np.savez(tmp_path / "named" / "inputs.npz", other=np.zeros(1))
    (tmp_path / "empty").mkdir()
    code, rows = results(tmp_path, tmp_path, "broken", "named", "empty")
    assert code == 1 and [row["passed"] for row in rows] == [False] * 3
    assert rows[0]["error"] and "inputs.npz lacks" in rows[1]["error"] and "holds no .bmodel" in rows[2]["error"]
    info = on_device(cases / "int8", PTX_MACHINE_FAIL_LAUNCH="2")
    assert info.returncode == 1 and "FAIL" in info.stdout and "failed on" in info.stdout, info.stdout + info.stderr


def test_without_a_driver(cases: Path) -> None:
    info = on_device(cases / "int8", BMRT_LIBCUDA="/no/such/libcuda.so.1")
    assert info.returncode == 2 and "libcuda" in info.stderr and "Traceback" not in info.stderr


def test_cases_run_in_several_processes(cases: Path, tmp_path: Path) -> None:
    """A process whose GPU is lost does not fail the other cases of its batch: each of them is run again alone."""
    broken = altered(cases, tmp_path, "int8")
    shutil.copytree(cases / "f32", broken / "unnamed")
    np.savez(broken / "unnamed" / "inputs.npz", other=np.zeros(1))
    folders = (broken / "int8", broken / "unnamed", cases / "f32")
    info = on_device("--jobs", "2", "--json", tmp_path / "r.json", *folders)
    rows = {row["case"]: row for row in json.loads((tmp_path / "r.json").read_text())["cases"]}
    assert info.returncode == 1 and len(rows) == 3, info.stdout + info.stderr
    assert rows["f32"]["passed"] and not rows["int8"]["passed"] and "inputs.npz lacks" in rows["unnamed"]["error"]


def test_back_ends_are_found_although_dlopen_is_replaced(cases: Path, tmp_path: Path) -> None:
    """As under compute-sanitizer: $ORIGIN is then the folder of the library that replaces dlopen()."""
    source = tmp_path / "replaced.c"
    source.write_text(
        "#define _GNU_SOURCE\n#include <dlfcn.h>\n"
        "void *dlopen(const char *name, int mode) {\n"
        '  return ((void *(*)(const char *, int))dlsym(RTLD_NEXT, "dlopen"))(name, mode);\n}\n'
    )
    subprocess.run(["cc", "-shared", "-fPIC", source, "-o", tmp_path / "replaced.so", "-ldl"], check=True)
    info = on_device(cases / "int8", LD_PRELOAD=str(tmp_path / "replaced.so"))
    assert info.returncode == 0, info.stdout + info.stderr


def test_the_docs_show_the_stored_measurements() -> None:
    summary = json.loads((SCRIPT.parent / "results" / "h200.json").read_text())
    text = measured.PAGE.read_text(encoding="utf-8")
    assert measured.page_with(text, measured.tables(summary)) == text, "run regression/cuda/measured.py --write"
    assert all(row["passed"] for row in summary["rows"].values()) and len(summary["rows"]) > 10
