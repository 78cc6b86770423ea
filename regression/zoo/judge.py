# SPDX-License-Identifier: Apache-2.0
"""Runs one exported network through the users' commands and judges the result."""
from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Callable, Mapping, Sequence

import numpy as np

COLUMNS = ("f32", "int8", "npu")
MORE_COLUMNS = ("npu_f32", "x86-v2", "x86-avx2", "x86-avx512", "x86-avx512vnni")
"""Columns that are compiled on request only: F32 on npu-base, and INT8 on further x86 variants."""
CALIBRATED, TRIED = 4, 3
"""Number of calibration samples, and of further samples that are run."""
LEAST = {"f32": 0.999, "quantised": 0.95}
"""Agreement with onnxruntime below which an answer without any complaint of a command is silently wrong."""
LEAST_INT8 = 0.5
VERDICTS = ("right", "wrong, reported", "refused", "too long", "exit 70", "silent")


@dataclass
class Step:
    """Result of a command. exit: its exit code, negative for a signal, 124 on timeout. document: the JSON of --json."""

    exit: int
    seconds: float
    peak_mb: float
    message: str = ""
    document: dict = field(default_factory=dict)


@dataclass
class Result:
    """Verdict about a network from one exporter. equal: whether int8 on x86 and on the NPU gives the same bits:
    "equal", "said" (different, and the tools report it), "differs", or "" if not compared."""

    network: str
    exporter: str
    family: str
    verdict: str = ""
    reason: str = ""
    cosine_f32: float | None = None
    cosine_int8: float | None = None
    reported_int8: bool = False
    """model_deploy itself says that the INT8 model is too coarse to use."""
    equal: str = ""
    host_subnets: int | None = None
    host_ops: int | None = None
    ops: int | None = None
    seconds: float = 0
    peak_mb: float = 0
    steps: dict[str, dict] = field(default_factory=dict)
    key: str = ""


class Tools:
    """Runs commands of a build, each in a separate process group."""

    def __init__(self, build: Path, limit_seconds: float) -> None:
        self._bin, self._limit = build / "bin", limit_seconds
        python_path = os.pathsep.join(filter(None, (str(build / "python"), os.environ.get("PYTHONPATH", ""))))
        self._environment = {
            **os.environ,
            "PYTHONPATH": python_path,
            "PATH": f"{self._bin}{os.pathsep}{os.environ['PATH']}",
            "OMP_NUM_THREADS": "1",
        }

    def run(self, folder: Path, name: str, *arguments: object) -> Step:
        """Runs a command in `folder`, and parses its output if it is JSON."""
        start = time.monotonic()
        with (folder / "stdout").open("wb+") as out, (folder / "stderr").open("wb+") as err:
            process = subprocess.Popen(
                [str(self._bin / name), *map(str, arguments)],
                cwd=folder,
                stdout=out,
                stderr=err,
                stdin=subprocess.DEVNULL,
                env=self._environment,
                start_new_session=True,
            )
            code, peak = self._wait(process, start + self._limit)
            texts = []
            for file in (out, err):
                file.seek(0)
                texts.append(file.read().decode(errors="replace"))
        document = _json(texts[0])
        error = document.get("error") or {}
        message = error.get("message") or (texts[1].strip() if code else "")
        details = (error.get("details") or []) + (_reproduced(folder) if code == 70 else [])
        return Step(code, time.monotonic() - start, peak, " | ".join([message, *map(str, details)])[:2000], document)

    @staticmethod
    def _wait(process: subprocess.Popen, deadline: float) -> tuple[int, float]:
        """Waits for the process, and kills it at the deadline. Returns its exit code (124 on timeout) and its peak
        resident memory in MB."""
        late = False
        while True:
            pid, status, usage = os.wait4(process.pid, os.WNOHANG)
            if pid:
                break
            if time.monotonic() > deadline and not late:
                late = True
                os.killpg(process.pid, signal.SIGKILL)
            time.sleep(0.01)
        process.returncode = os.waitstatus_to_exitcode(status)
        return (124 if late else process.returncode), usage.ru_maxrss / 1024


def _reproduced(folder: Path) -> list[str]:
    """Returns the compiler's error messages from the newest reproducer."""
    files = sorted(folder.glob("tessera-reproducer-*/stdout.jsonl"), key=lambda path: path.stat().st_mtime)
    events = map(_json, files[-1].read_text(errors="replace").splitlines()) if files else ()
    return [str(event["message"]) for event in events if event.get("event") == "error"]


def _json(text: str) -> dict:
    try:
        return json.loads(text) if text.lstrip().startswith("{") else {}
    except ValueError:
        return {}


def make_samples(
    inputs: Mapping[str, object], folder: Path, seed: int, shapes: Sequence[Mapping[str, Sequence[int]]] = ()
) -> list[Path]:
    """Writes one .npz per sample; the first CALIBRATED samples are for calibration. shapes: those of the inputs in
    turns, one further sample each; none: as the inputs state."""
    from registry import Input

    generator, result = np.random.default_rng(seed), []
    (folder / "samples").mkdir(exist_ok=True)
    for number in range(CALIBRATED + (len(shapes) or TRIED)):
        path = folder / ("samples" if number < CALIBRATED else "") / f"{number}.npz"
        turn = shapes[(number - CALIBRATED) % len(shapes)] if shapes else {}
        drawn = {
            name: Input(**{**info, "shape": tuple(turn.get(name, info["shape"]))})  # type: ignore[dict-item]
            for name, info in inputs.items()
        }
        np.savez(path, **{name: one.sample(generator) for name, one in drawn.items()})  # type: ignore[dict-item]
        result.append(path)
    return result


def judge(
    result: Result,
    model: Path,
    inputs: Mapping[str, object],
    folder: Path,
    tools: Tools,
    columns: Sequence[str] = COLUMNS,
    seed: int = 1,
    open_dims: Mapping[str, Any] | None = None,
) -> Result:
    """Fills in `result`; everything made lies in `folder`. open_dims: the ranges of open dims, and shapes to run."""
    samples = make_samples(inputs, folder, seed, open_dims["shapes"] if open_dims else ())
    quantised = result.family == "quantised"
    steps: dict[str, Step] = {}

    def run(step: str, name: str, *arguments: object) -> bool:
        steps[step] = tools.run(folder, name, *arguments, "--json")
        return steps[step].exit in (0, 3)

    definition = ("--model_name", "m", "--model_def", model, "--mlir", "m_top.mlir")
    if open_dims:
        definition += ("--dims", open_dims["dims"])
    if run("transform", "model_transform", *definition, "--test_input", samples[-1]):
        _deploy(run, columns, samples[-1], quantised)
        _compare(result, model, folder, tools, samples[CALIBRATED:], steps, quantised)
    _print_report(result, steps, quantised)
    return result


def _deploy(run: Callable[..., bool], columns: Sequence[str], sample: Path, quantised: bool) -> None:
    """Compiles the models of the columns with `run`, which takes the step, the command and its arguments. int8 and npu
    share a calibration table, unless the network itself is quantised."""
    deploy = ("model_deploy", "--mlir", "m_top.mlir", "--chip")
    if "f32" in columns:
        run("f32", *deploy, "x86", "--test_input", sample, "--model", "f32.bmodel")
    if "npu_f32" in columns:
        run("npu_f32", *deploy, "npu-base", "--skip_validation", "--model", "npu_f32.bmodel")
    flags = []
    if not quantised:
        quickly = ("--cali_method", "max", "--methods", "none", "--workers", 1)
        calibrate = ("run_calibration", "m_top.mlir", "--dataset", "samples", *quickly, "-o", "m_cali.json")
        if not set(columns) - {"f32", "npu_f32"} or not run("calibrate", *calibrate):
            return
        flags = ["--quantize", "INT8", "--calibration_table", "m_cali.json"]
    if "int8" in columns:
        run("int8", *deploy, "x86", *flags, "--test_input", sample, "--model", "int8.bmodel")
    if "npu" in columns:
        run("npu", *deploy, "npu-base", *flags, "--skip_validation", "--model", "npu.bmodel")
    for chip in (column for column in columns if column.startswith("x86-")):
        run(chip, *deploy, chip, *flags, "--skip_validation", "--model", f"{chip}.bmodel")


def _compare(
    result: Result,
    model: Path,
    folder: Path,
    tools: Tools,
    samples: Sequence[Path],
    steps: dict[str, Step],
    quantised: bool,
) -> None:
    files = {
        name: folder / f"{name}.bmodel"
        for name, step in steps.items()
        if step.exit in (0, 3) and (folder / f"{name}.bmodel").exists()
    }
    if not files:
        return
    steps["outcome"] = tools.run(
        folder,
        "tessera-python",
        Path(__file__).with_name("outcome.py"),
        f"onnx={model}",
        *(f"{k}={v}" for k, v in files.items()),
        f"padded={'yes' if reports_padding(steps['transform'].document) else 'no'}",
        *samples,
    )
    info = steps["outcome"].document
    result.cosine_f32, result.cosine_int8 = info.get("reference_f32"), info.get("f32_int8")
    result.reported_int8 = "int8" in steps and steps["int8"].exit == 3
    if "elements" in info:
        said = any(said_unequal(steps[name].document) for name in ("int8", "npu") if name in steps)
        result.equal = "equal" if not info["different"] else "said" if said else "differs"


def reports_padding(document: Mapping[str, object]) -> bool:
    """Returns true if model_transform warns that an output with a data-dependent size has the largest size instead."""
    return any("the largest size" in str(text) for text in document.get("warnings", ()))  # type: ignore[attr-defined]


def said_unequal(document: Mapping[str, object]) -> bool:
    """Returns true if model_deploy names ops that prevent bit-equal results on other chips."""
    model = document.get("model")
    return isinstance(model, dict) and bool(model.get("bit_equal_except"))


def _print_report(result: Result, steps: Mapping[str, Step], quantised: bool) -> None:
    """Fills `result` from the steps: partition, time, memory, verdict and reason."""
    partition = (steps["npu"].document.get("model", {}).get("partition") if "npu" in steps else None) or {}
    subnets = partition.get("subnets", [])
    if subnets:
        result.host_subnets = sum(subnet["device"] != "npu" for subnet in subnets)
        result.host_ops, result.ops = len(partition.get("host_ops", [])), sum(subnet["ops"] for subnet in subnets)
    result.seconds = round(sum(step.seconds for step in steps.values()), 1)
    result.peak_mb = round(max(step.peak_mb for step in steps.values()))
    result.steps = {
        name: {key: value for key, value in asdict(step).items() if key != "document"} for name, step in steps.items()
    }
    result.verdict, result.reason = verdict_of(result, steps, quantised)


def verdict_of(result: Result, steps: Mapping[str, Step], quantised: bool) -> tuple[str, str]:
    """Returns the worst verdict (one of VERDICTS) that applies, and its reason."""
    bad = {name: step for name, step in steps.items() if step.exit}
    for name, step in bad.items():
        if (
            step.exit == 70
            or "Traceback (most recent call last)" in step.message
            or step.exit < 0
            or step.exit > 130
            or (name == "outcome" and step.exit not in (0, 124))
        ):
            return "exit 70", f"{name}: {step.message or f'exit code {step.exit}'}"
    least = LEAST["quantised" if quantised else "f32"]
    if not {"transform", "f32"} & set(bad) and result.cosine_f32 is not None and result.cosine_f32 < least:
        return "silent", f"F32 differs from onnxruntime, agreement {result.cosine_f32:.4f}"
    if (
        "int8" in steps
        and not steps["int8"].exit
        and not steps["int8"].document.get("warnings")
        and result.cosine_int8 is not None
        and result.cosine_int8 < LEAST_INT8
    ):
        return "silent", f"INT8 differs from F32, agreement {result.cosine_int8:.4f}"
    for name, step in bad.items():
        if name == "int8" and step.exit == 3:
            continue  # reported as too coarse (random weights, few samples); the page shows this beside the figure
        kind = {124: "too long", 3: "wrong, reported"}.get(step.exit, "refused")
        return kind, f"{name}: {step.message}"
    return "right", ""
