# SPDX-License-Identifier: Apache-2.0
"""Tests --dump_ir: it writes the IR after every pass, and tessera-opt compiles each of them to the same code."""
from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from case_file import all_cases
from conftest import BUILD, Builder, check, run_tool

CHIP = "chip=npu-base"
# These passes follow the shared lowering; the last one writes the bytes of the stream into the module.
NPU_PASSES = (
    "--device-assign-addresses=part-alignment=1",
    f"--npu-fuse-copies={CHIP}",
    f"--npu-choose-forms={CHIP}",
    f"--npu-choose-direct-stores={CHIP}",
    f"--npu-schedule={CHIP}",
    f"--npu-emit-commands={CHIP}",
    "--npu-allocate-local",
    "--npu-order-commands",
    "--npu-assign-waits",
    "--npu-encode",
)
X86_PASSES = ("--x86-pack-weights=vector-bytes=32", "--x86-verify-packing", "--device-assign-addresses")


def opt(source: Path, output: Path, passes: tuple[str, ...]) -> str:
    command = [BUILD / "bin" / "tessera-opt", source, "-o", output, *passes]
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[:2000]
    return output.read_text()


def code_of(text: str) -> str:
    found = re.search(r'code dense<"0x([0-9A-F]+)">', text)
    assert found, text[:500]
    return found[1]


def phase_of(path: Path) -> str:
    return path.stem.split("-", 1)[1]


def dumped(folder: Path, chip: str, quantize: str) -> list[Path]:
    """Deploys a model with a weights file and --dump_ir. Returns the dumped files in the order in which they were
    written."""
    case = next(case for case in all_cases() if case.name == "resnet8_cifar10")
    builder = Builder(folder)
    top = builder.top(case)
    table = ("--calibration_table", builder.table(case, folder)[0]) if quantize == "INT8" else ()
    flags = ("--chip", chip, "--quantize", quantize, *table, "--skip_validation", "--model", folder / "m.bmodel")
    check(run_tool("model_deploy", "--mlir", top, *flags, "--dump_ir", folder / "ir", cwd=folder))
    return sorted((folder / "ir").glob("*.mlir"))


@pytest.mark.parametrize("quantize", ["INT8", "BF16"])
def test_npu_phases_are_taken_on(tmp_path: Path, quantize: str) -> None:
    files = dumped(tmp_path, "npu-base", quantize)
    names = [phase_of(path) for path in files]
    lowered = max(number for number, name in enumerate(names) if name.startswith("lower-"))
    whole = opt(files[lowered], tmp_path / "whole.mlir", NPU_PASSES)
    code = code_of(whole)
    assert len(code) > 1000
    done = [
        "device-assign-addresses",
        "npu-fuse-copies",
        "npu-choose-forms",
        "npu-choose-direct-stores",
        "npu-schedule",
    ]
    done += [f"npu-program-{phase}" for phase in ("staged", "allocated", "ordered", "numbered")]
    tried = []
    for path, name in zip(files[lowered + 1 :], names[lowered + 1 :]):
        (passed,) = [number for number, each in enumerate(done) if name.endswith(each)]
        again = opt(path, tmp_path / "again.mlir", NPU_PASSES[passed + 1 :])
        assert code_of(again) == code, path.name
        tried.append(done[passed])
    assert set(tried) >= {"device-assign-addresses", "npu-choose-forms", "npu-schedule", *done[5:]}


def test_x86_phases_are_taken_on(tmp_path: Path) -> None:
    """Weights that passes pack are stored in the output's own weights file. The next run reads them from there."""
    files = {phase_of(path).split("-x86_0-")[-1]: path for path in dumped(tmp_path, "x86-avx2", "F32")}
    passes = ("x86-assign-layouts", "x86-pack-weights", "device-assign-addresses")
    source = files[passes[0]]
    for passed, flag in zip(passes[1:], (X86_PASSES[:-1], X86_PASSES[-1:])):
        result = tmp_path / f"{passed}.mlir"
        opt(source, result, flag)
        # The ops are equal and, by their hash, the packed weights too.
        assert without_file_name(result) == without_file_name(files[passed]), passed
        source = result


def without_file_name(path: Path) -> str:
    assert "top.weight_hash" in path.read_text()
    text = subprocess.run([BUILD / "bin" / "tessera-opt", path], capture_output=True, text=True, check=True).stdout
    return re.sub(r'top.weight_file = "[^"]*"', "", text)


def test_equal_weights_stand_in_one_file(tmp_path: Path) -> None:
    files = dumped(tmp_path, "x86-avx2", "F32")
    named = [re.search(r'top.weight_file = "([^"]*)"', path.read_text()) for path in files]
    written = {path.name for path in (tmp_path / "ir").glob("*.safetensors")}
    assert {match[1] for match in named if match} == written
    assert 1 < len(written) < len(files)


def test_a_folder_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    (tmp_path / "ir").write_text("a file")
    case = next(case for case in all_cases() if case.name == "resnet8_cifar10")
    top = Builder(tmp_path).top(case)
    flags = ("--skip_validation", "--model", tmp_path / "m.bmodel", "--dump_ir", tmp_path / "ir")
    done = run_tool("model_deploy", "--mlir", top, *flags, cwd=tmp_path)
    assert done.returncode == 1 and "Not a directory" in done.stderr
    assert not (tmp_path / "m.bmodel").exists()
