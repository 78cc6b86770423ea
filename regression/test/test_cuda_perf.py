# SPDX-License-Identifier: Apache-2.0
"""Tests the estimated cost of models for GPUs: tessera estimate, model_tool perf, and the counts of the PTX machine."""
from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import pytest
from case_file import Case, all_cases, data_path
from conftest import BUILD, Builder, check, inputs_of, run_tool, samples
from test_cases import skip_if_missing
from test_cuda import MACHINE, deploy, has_machine

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def case() -> Case:
    small = next(case for case in all_cases() if case.name == "resnet8_cifar10")
    skip_if_missing(small)
    return small


def test_estimate_tells_of_every_layer(case: Case, builder: Builder, tmp_path: Path) -> None:
    chips = ("cuda-sm90", "cuda-sm89")
    arguments = ("estimate", builder.top(case), "--chip", ",".join(chips), "--quantize", "F32")
    info = json.loads(check(run_tool("tessera", *arguments, "--json", "--report", tmp_path / "r")))
    for chip, entry in zip(chips, info["estimates"]):
        report = entry["report"]
        assert report["chip"] == chip and report["launches"] == len(report["layers"]) > 5
        assert {layer["bound"] for layer in report["layers"]} <= {"tensor cores", "cores", "grid", "dram", "launch"}
        parts = ("compute_microseconds", "grid_microseconds", "dram_microseconds", "launch_microseconds")
        for layer in report["layers"]:
            compute, grid, dram, launch = (layer[part] for part in parts)
            assert layer["microseconds"] == pytest.approx(launch + max(compute, grid, dram), abs=0.002)
        total = sum(layer["microseconds"] for layer in report["layers"])
        assert report["microseconds"] == pytest.approx(total, abs=0.1)
        assert sum(report["time_microseconds"].values()) == pytest.approx(total, abs=0.1)
        assert report["dram_bytes"] >= report["dram_least_bytes"] > 0 and report["roofline"]["ratio"] >= 1
        rows = (tmp_path / "r" / chip / "layers.csv").read_text().splitlines()
        assert len(rows) == 1 + len(report["layers"])
        roofline = report["roofline"]
        assert report["microseconds"] >= roofline["by_launch_microseconds"] > roofline["dram_microseconds"]
    fast, slow = (entry["report"]["roofline"]["by_launch_microseconds"] for entry in info["estimates"])
    assert fast < slow
    text = check(run_tool("tessera", *arguments))
    assert "cuda-sm90: about" in text and "bound by" in text


@pytest.mark.parametrize("precision", ["INT8", "F16"])
def test_estimates_of_the_docs_are_todays(precision: str) -> None:
    """estimates.py writes the table of docs/cuda.md; its row of one model is computed again."""
    model = next(case for case in all_cases() if case.name == "mobilenetv2_1.0_224")
    skip_if_missing(model)
    script, path = ROOT / "regression/cuda/estimates.py", os.pathsep.join([str(BUILD / "bin"), os.environ["PATH"]])
    flags = ("--precision", precision)
    done = run_tool("tessera-python", script, data_path(model.model), *flags, env=os.environ | {"PATH": path})
    row = check(done).strip().splitlines()[-1]
    assert row in (ROOT / "docs/cuda.md").read_text(), f"docs/cuda.md has no '{row}'"


def test_faster_memory_is_told(case: Case, builder: Builder) -> None:
    arguments = ("estimate", builder.top(case), "--chip", "cuda-sm80", "--quantize", "F32", "--json")
    slow = json.loads(check(run_tool("tessera", *arguments, "--chip_set", "dram.gbps=1")))["estimates"][0]["report"]
    fast = json.loads(check(run_tool("tessera", *arguments)))["estimates"][0]["report"]
    assert slow["microseconds"] > fast["microseconds"] and "dram" in slow["time_microseconds"]
    assert slow["dram_bytes"] == fast["dram_bytes"] and slow["products"] == fast["products"]


def test_counts_stand_beside_the_estimate(case: Case, builder: Builder, tmp_path: Path) -> None:
    if not has_machine():
        pytest.skip("the PTX machine is not built or this processor lacks AVX2, FMA or F16C")
    model, counts = tmp_path / "m.bmodel", tmp_path / "counts.json"
    deploy(builder.top(case), "cuda", model)
    np.savez(tmp_path / "in.npz", **samples(inputs_of(builder.top(case)), 5))
    run_tool(
        "model_runner",
        *("--model", model, "--input", tmp_path / "in.npz", "--output", tmp_path / "out.npz"),
        env=os.environ | {"BMRT_LIBCUDA": str(MACHINE), "PTX_MACHINE_COUNTS": str(counts)},
    ).check_returncode()
    info = json.loads(check(run_tool("model_tool", "perf", model, "--counts", counts, "--json")))["report"]
    counted = info["counted"]
    assert counted["launches"] == info["launches"] and len(counted["by_kernel"]) == info["kernels"]
    assert counted["dram_bytes"] > 0 and counted["issue_microseconds"] > 0
    # A product is one multiply-add of one lane. With fewer float instructions than products, the model could not be
    # computed.
    assert counted["warp_instructions"]["float"] * 32 >= info["products"]
    for key in ("launches", "dram_bytes", "bank_conflicts", "tensor_products"):
        assert counted[key] == pytest.approx(sum(kernel[key] for kernel in counted["by_kernel"]))
    text = check(run_tool("model_tool", "perf", model, "--counts", counts, "--report", tmp_path / "r"))
    assert "warp instructions: " in text and "bank conflicts: " in text
    assert json.loads((tmp_path / "r" / "report.json").read_text())["counted"]["launches"] == info["launches"]


@pytest.mark.parametrize(
    "flags, code, message",
    [
        (("--chip_set", "sms=1"), 2, "model_deploy computes the estimate of a GPU"),
        (("--counts", "/no/such/file"), 1, "--counts file"),
        (("--counts", "bad.json"), 1, "does not contain counts of the PTX machine"),
        (("--counts", "other.json"), 1, "they belong to another model"),
    ],
)
def test_bad_arguments_say_why(
    flags: tuple[str, str], code: int, message: str, case: Case, builder: Builder, tmp_path: Path
) -> None:
    deploy(builder.top(case), "cuda", tmp_path / "m.bmodel")
    (tmp_path / "bad.json").write_text("[]")
    (tmp_path / "other.json").write_text("{}")
    result = run_tool("model_tool", "perf", tmp_path / "m.bmodel", *flags, cwd=tmp_path)
    assert result.returncode == code and message in result.stderr, result.stderr


def test_files_of_several_sizes_have_an_estimate_each(case: Case, builder: Builder, tmp_path: Path) -> None:
    top = builder.top(case)
    deploy(top, "cuda", tmp_path / "a.bmodel")
    deploy(top, "cuda-sm80", tmp_path / "b.bmodel")
    files = (tmp_path / "a.bmodel", tmp_path / "b.bmodel")
    check(run_tool("model_tool", "combine", *files, "-o", tmp_path / "ab.bmodel"))
    info = json.loads(check(run_tool("model_tool", "perf", tmp_path / "ab.bmodel", "--json")))
    assert [entry["report"]["chip"] for entry in info["stages"]] == ["cuda", "cuda-sm80"]
