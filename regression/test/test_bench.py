# SPDX-License-Identifier: Apache-2.0
"""Tests tessera bench on a real model: measurements, estimates, and refused arguments."""
from __future__ import annotations

import json
from pathlib import Path

import pytest
import trace_reader
from case_file import all_cases, data_path
from conftest import Builder, check, run_tool
from tessera.bench import engines

ONNX = "repo:models/resnet8_cifar10/resnet8_cifar10.onnx"
QUICK = ("--seconds", 1, "--warm", 0.3)


@pytest.fixture(scope="module")
def top(builder: Builder) -> Path:
    return builder.top(next(case for case in all_cases() if case.name == "resnet8_cifar10"))


def test_beside_what_is_installed(tmp_path: Path) -> None:
    peers = [name for name in engines.PEERS if engines.installed(name)][:1]
    words = [*QUICK, "--streams", 2, "--threads", 2, "--ops", "-o", tmp_path / "r.json"]
    words += ["--against", ",".join(peers)] if peers else []
    text = check(run_tool("tessera", "bench", data_path(ONNX), *words))
    info = json.loads((tmp_path / "r.json").read_text())
    assert [each["name"] for each in info["results"]] == ["tessera", *peers]
    for each in info["results"]:
        assert 0 < each["min_ms"] <= each["p50_ms"] <= each["p90_ms"] <= each["p99_ms"] and each["runs"] >= 12
        low, high = each["typical_ms_between"]
        assert low <= each["typical_ms"] <= high and each["runs_per_second"] > 0 and each["peak_mib"] > 1
        assert f"{each['p50_ms']:.3f}" in text and each["warm_runs"] >= 3
    if peers:
        assert all("cos 1.0" in each["answer"] for each in info["results"][:-1])
    steps = info["ops"]["tessera"]["steps"]
    assert len(steps) > 5 and all(step["us"] >= 0 and step["bound_us"] > 0 for step in steps)
    (tmp_path / "slow.json").write_text(json.dumps(slower(info, 2)))
    for path, verdict in (("r.json", "no difference"), ("slow.json", "slower")):
        rows = json.loads(check(run_tool("tessera", "bench", "--compare", "r.json", path, "--json", cwd=tmp_path)))
        assert {row["verdict"] for row in rows["comparison"] if row["what"] == "latency"} == {verdict}


def slower(info: dict, factor: float) -> dict:
    result = json.loads(json.dumps(info))
    for each in result["results"]:
        each["rounds_us"] = [[factor * time for time in times] for times in each["rounds_us"]]
    return result


def test_of_an_npu_the_estimate_is_told(top: Path, tmp_path: Path) -> None:
    model = tmp_path / "npu.bmodel"
    deploy = ("--mlir", top, "--chip", "npu-base", "--quantize", "F16", "--model", model, "--skip_validation")
    check(run_tool("model_deploy", *deploy))
    perf = json.loads(check(run_tool("model_tool", "perf", model, "--json")))["report"]
    info = json.loads(check(run_tool("tessera", "bench", model, "--json")))["bench"]
    (each,) = info["results"]
    assert each["kind"] == "estimated for npu-base" and "rounds_us" not in each
    assert each["p50_ms"] == perf.get("total_microseconds", perf["microseconds"]) / 1e3


def test_an_engine_that_fails_is_named(tmp_path: Path) -> None:
    if not engines.installed("onnxruntime"):
        pytest.skip("onnxruntime is not installed")
    (tmp_path / "bad.onnx").write_bytes(b"no model")
    words = ("--against", "onnxruntime", "--model_def", tmp_path / "bad.onnx")
    result = run_tool("tessera", "bench", data_path(ONNX), *QUICK, *words)
    assert result.returncode == 1 and "onnxruntime: " in result.stderr, result.stderr


@pytest.mark.parametrize(
    "words, code, message",
    [
        ((), 2, "pass a model"),
        (("m.onnx", "--against", "tflite"), 2, "expected onnxruntime, openvino"),
        (("m.bmodel", "--against", "onnxruntime"), 2, "the .onnx that"),
        (("m.onnx", "--pin", "x"), 2, "processor numbers"),
        (("m.onnx", "--pin", "100000"), 2, "may not use processor 100000"),
        (("m.onnx", "--threads", "0"), 2, "at least 1"),
        (("m.onnx", "--relative_to", "openvino"), 2, "--relative_to requires --compare"),
        (("a/m.bmodel", "b/m.bmodel"), 2, "two models have the file name m.bmodel"),
        (("none.bmodel",), 1, "none.bmodel"),
        (("--compare", "none.json", "none.json"), 1, "none.json"),
    ],
)
def test_what_it_rejects(words: tuple, code: int, message: str, tmp_path: Path) -> None:
    if "--against" in words and not engines.installed("onnxruntime"):
        pytest.skip("onnxruntime is not installed")
    result = run_tool("tessera", "bench", *words, cwd=tmp_path)
    assert result.returncode == code and message in result.stderr, result.stderr


def test_the_runtimes_trace_is_clean(top: Path, tmp_path: Path) -> None:
    model = tmp_path / "x86.bmodel"
    check(run_tool("model_deploy", "--mlir", top, "--chip", "x86", "--model", model, "--skip_validation"))
    check(run_tool("bmrt_bench", model, "--iters", 3, "--warmup", 0, "--trace", tmp_path / "t.json"))
    (steps,) = trace_reader.read(tmp_path / "t.json").tracks.values()
    assert len(steps) > 5 and all(step.args["device_op"] for step in steps)
