#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""./dev cases: runs the users' commands, from model_transform to model_runner, on every field case.

    ./dev cases [--only PART[,PART ..]] [--jobs N] [--keep DIR]

Prints a line per case. Fails if a case fails that expected_failures.txt does not list, or if a listed one passes.
"""
from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "zoo")]

from field_case import FOLDER, LIST, FieldCase, all_cases, expected_failures  # noqa: E402
from judge import Step, Tools  # noqa: E402
from judging import different_bits, unlike, wrong  # noqa: E402

BUILD = Path(os.environ.get("TESSERA_BUILD_DIR", HERE.parents[1] / "build"))
NPU = "npu-base"
OUTCOMES = ("right", "expected failure", "FAILED")


class Fault(Exception):
    """The first fault of a case."""


class Commands:
    """Runs the commands for one case in `folder`."""

    def __init__(self, case: FieldCase, tools: Tools, folder: Path) -> None:
        self._case, self._tools, self._folder = case, tools, folder
        self._promised = True  # the compiler has declared every INT8 model so far bit-equal everywhere

    def check(self) -> None:
        """Checks the case. Raises Fault."""
        step = self._transform()
        if step.exit:
            return
        inputs = self._inputs()
        wanted = self._case.arrays("expected")
        if wanted is None:
            try:
                wanted = self._run(self._case.model, inputs, "wanted")
            except Fault:  # onnxruntime cannot run it
                wanted = self._run(Path("m_top.mlir"), inputs, "wanted")
        self._wrong("x86", inputs, wanted, step)
        self._wrong(NPU, inputs, wanted, step)
        for precision in self._case.narrow_precisions:
            self._near(precision, self._outputs("x86", precision, inputs), wanted)
        if self._case.is_quantised:
            self._quantised(inputs, wanted)

    def _ask(self, name: str, *arguments: object, allowed: tuple[int, ...] = (0,)) -> Step:
        step = self._tools.run(self._folder, name, *arguments, "--json")
        if step.exit not in allowed or "Traceback (most recent call last)" in step.message:
            raise Fault(f"{name}: exit code {step.exit}: {step.message[:300]}")
        return step

    def _transform(self) -> Step:
        """Checks that the model is accepted or rejected as expected. An accepted model must also pass model_transform's
        own check; --not_inference is passed only for rejected ones."""
        case, shapes = self._case, self._case.open_shapes()
        flags = ["--input_shapes", shapes] if shapes else []
        allowed: tuple[int, ...] = (0,)
        if case.must_be_rejected:
            flags, allowed = [*flags, *case.arguments], (1, 4)
        elif case.may_be_unsupported:
            allowed = (0, 4)
        model = ("--model_name", "m", "--model_def", case.model, "--mlir", "m_top.mlir")
        step = self._ask("model_transform", *model, *flags, allowed=allowed)
        if step.exit and not step.message.strip(" |"):
            raise Fault(f"model_transform: exit code {step.exit} without a message")
        if step.exit == 4 and "--input_shapes" in step.message:
            raise Fault(f"model_transform advises --input_shapes, which cannot help: {step.message[:300]}")
        return step

    def _inputs(self) -> Path:
        """Returns the file of inputs: that of the case if present, otherwise the one that model_transform drew."""
        given = self._case.folder / "input.npz"
        return given if given.exists() else self._folder / "m_in_f32.npz"

    def _run(self, model: Path, inputs: Path, name: str) -> dict[str, np.ndarray]:
        output = self._folder / f"{name}.npz"
        self._ask("model_runner", "--model", model, "--input", inputs, "--output", output)
        with np.load(output) as file:
            return dict(file)

    def _outputs(self, chip: str, precision: str, inputs: Path, *flags: object) -> dict[str, np.ndarray]:
        """Returns the outputs of the compiled model. Exit code 3 of a quantised model means that INT8 is too coarse,
        which is not a fault."""
        model = self._folder / f"{chip}_{precision}.bmodel"
        info = ("--mlir", "m_top.mlir", "--chip", chip, "--quantize", precision, "--test_input", inputs)
        allowed = (0,) if precision == "F32" else (0, 3)
        step = self._ask("model_deploy", *info, *flags, "--model", model, allowed=allowed)
        self._promised &= step.document.get("model", {}).get("bit_equal_except") == []
        return self._run(model, inputs, model.stem)

    def _wrong(self, chip: str, inputs: Path, wanted: dict[str, np.ndarray], transform: Step) -> None:
        got = self._outputs(chip, "F32", inputs)
        if "the largest size" in str(transform.document.get("warnings", "")):
            got = {name: _cut(array, wanted.get(name)) for name, array in got.items()}
        if fault := wrong(self._case, got, wanted):
            raise Fault(f"{chip}: {fault}")

    @staticmethod
    def _near(what: str, got: dict[str, np.ndarray], wanted: dict[str, np.ndarray]) -> None:
        if fault := unlike(got, wanted):
            raise Fault(f"{what}: {fault}")

    def _quantised(self, inputs: Path, wanted: dict[str, np.ndarray]) -> None:
        samples = self._case.samples or self._folder / "samples"
        if not samples.exists():
            samples.mkdir()
            shutil.copy(inputs, samples / "0.npz")
        self._ask("run_calibration", "m_top.mlir", "--dataset", samples, "--workers", 1, "-o", "m_cali.json")
        flags, self._promised = ("--calibration_table", "m_cali.json"), True
        got, other = (self._outputs(chip, "INT8", inputs, *flags) for chip in ("x86", NPU))
        if self._case.needs_equal_bits and not self._promised:
            raise Fault("INT8 is not promised to be bit-equal everywhere")
        if self._promised and (fault := different_bits(other, got)):
            raise Fault(f"INT8 on {NPU} and x86: {fault}")
        self._near("INT8", got, wanted)


def _cut(array: np.ndarray, like: np.ndarray | None) -> np.ndarray:
    """Returns the leading entries of a padded output."""
    if like is None or array.ndim != like.ndim or any(a < b for a, b in zip(array.shape, like.shape)):
        return array
    return array[tuple(slice(0, size) for size in like.shape)]


def outcome(case: FieldCase, fault: str) -> tuple[str, str]:
    """Returns (one of OUTCOMES, the reason). An expected failure of any check of the case excuses the commands."""
    reasons = {check: reason for (name, check), reason in expected_failures().items() if name == case.name}
    if fault and not reasons:
        return OUTCOMES[2], fault
    if not fault and set(reasons) == {"commands"}:
        return OUTCOMES[2], f"passes now; delete its line from {LIST.name}"
    return (OUTCOMES[1], next(iter(reasons.values()))) if fault else (OUTCOMES[0], "")


def check(case: FieldCase, limit: float, keep: Path | None) -> str:
    """Returns the fault of the case, or ""."""
    with tempfile.TemporaryDirectory(prefix="tessera-case-") as scratch:
        folder = keep / case.name if keep else Path(scratch)
        folder.mkdir(parents=True, exist_ok=True)
        try:
            Commands(case, Tools(BUILD, limit), folder).check()
        except Fault as fault:
            return str(fault)
    return ""


def main() -> int:
    parser = argparse.ArgumentParser(prog="./dev cases", description=__doc__.split("\n\n", 1)[0], allow_abbrev=False)
    parser.add_argument("--only", default="", metavar="PART,..", help="cases whose names contain one of these")
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="cases at once (default: %(default)s)")
    parser.add_argument(
        "--limit", type=float, default=120, metavar="SECONDS", help="for each command (default: %(default)s)"
    )
    parser.add_argument("--keep", type=Path, metavar="DIR", help="leave everything that the commands write there")
    args = parser.parse_args()
    parts = list(filter(None, args.only.split(",")))
    cases = [case for case in all_cases() if not parts or any(part in case.name for part in parts)]
    if not cases:
        print(f"cases: skipped: {FOLDER} is not in TESSERA_DATA, or no case of that name is")
        return 0
    lock, counts = threading.Lock(), dict.fromkeys(OUTCOMES, 0)

    def one(case: FieldCase) -> None:
        kind, reason = outcome(case, check(case, args.limit, args.keep and args.keep.resolve()))
        with lock:
            counts[kind] += 1
            print(f"{sum(counts.values())}/{len(cases)} {case.name}: {kind} {reason}".rstrip(), flush=True)

    with ThreadPoolExecutor(max(1, args.jobs)) as pool:
        list(pool.map(one, cases))
    print(", ".join(f"{count} {kind}" for kind, count in counts.items()))
    return 1 if counts[OUTCOMES[2]] else 0


if __name__ == "__main__":
    raise SystemExit(main())
