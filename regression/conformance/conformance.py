# SPDX-License-Identifier: Apache-2.0
"""Runs the ONNX backend tests through every engine and reports each test as passed, rejected or failed.

    build/bin/tessera-python regression/conformance/conformance.py [--filter GLOB] [--engines a,b] [--update]

prints what failed and the table; --update rewrites refused.txt, the refusals the test expects.
"""
from __future__ import annotations

import argparse
import collections
import fnmatch
import os
import re
import sys
import tempfile
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Callable, Iterable, Sequence

import numpy as np
import onnx
from backend_tests import ARCHIVE, BackendTest, DataSet, compare, freeze, read_set, read_tests
from engines import Compiler, StageError, deploy, run_bmodel, run_reference, supported_isas

from tessera.top_model import pad

FOLDER = Path(__file__).resolve().parent
REJECTED, DEVIATIONS = FOLDER / "refused.txt", FOLDER / "deviations.txt"
PASSED, REJECTION, FAILED = "passed", "refused", "failed"


Importer = Callable[[Compiler, onnx.ModelProto, "dict[str, np.ndarray]", Path], "tuple[Path, dict[str, int]]"]


@dataclass(frozen=True)
class Outcome:
    """The result of a test on an engine."""

    kind: str = PASSED
    stage: str = ""
    message: str = ""
    as_it_is: bool = True  # False: inputs were made constants first (_import)

    @staticmethod
    def of(error: StageError) -> Outcome:
        return Outcome(REJECTION if error.rejected else FAILED, error.stage, str(error).replace("\n", " "))


def _shapes(inputs: dict[str, np.ndarray]) -> list[str]:
    """Returns the inputs that may control what an operator does: scalars, and vectors like shapes and axes."""
    return [n for n, array in inputs.items() if array.ndim == 0 or (array.ndim == 1 and array.dtype == np.int64)]


def _import(
    compiler: Compiler, model: onnx.ModelProto, inputs: dict[str, np.ndarray], folder: Path
) -> tuple[Path, dict[str, int]]:
    """Imports a model; returns its Top module, and the padded outputs with their axes.

    Inputs that control an operator (axes, a shape), which exported models have as constants, are made constants and
    removed from `inputs`.
    """
    path, mlir = folder / "model.onnx", folder / "model_top.mlir"
    while True:
        path.write_bytes(model.SerializeToString())
        try:
            result = compiler("import", "import", "--onnx", path, "--output", mlir)
            for spec in result["inputs"]:  # the random numbers that a node draws
                if spec["name"] not in inputs:
                    inputs[spec["name"]] = np.random.default_rng(0).random(spec["shape"]).astype(spec["dtype"])
            shapes = _shapes(inputs)
            if not shapes or all(
                dim is not None and dim >= 0 for output in result["outputs"] for dim in output["shape"]
            ):
                return mlir, {
                    output["name"]: output["padded_axis"] for output in result["outputs"] if "padded_axis" in output
                }
            for name in shapes:  # the output's dims are open and depend on these tensors
                model = freeze(model, name, inputs.pop(name))
        except StageError as error:
            name = re.search(r"tensor '([^']*)'\) is computed at run time; it must be constant", str(error))
            # Make the tensor constant if it is an input; otherwise it depends on the inputs that look like shapes.
            frozen = [name[1]] if name and name[1] in inputs else _shapes(inputs) if name else []
            if not error.rejected or not frozen:
                raise
            for input_name in frozen:
                model = freeze(model, input_name, inputs.pop(input_name))


def _import_open(
    compiler: Compiler, model: onnx.ModelProto, inputs: dict[str, np.ndarray], folder: Path
) -> tuple[Path, dict[str, int]]:
    """Imports a model as it is; sizes that its inputs give become symbols."""
    path, mlir = folder / "model.onnx", folder / "model_top.mlir"
    path.write_bytes(model.SerializeToString())
    result = compiler("import", "import", "--onnx", path, "--dims", "auto", "--output", mlir)
    for spec in result["inputs"]:  # the random numbers that a node draws
        if spec["name"] not in inputs:
            inputs[spec["name"]] = np.random.default_rng(0).random(spec["shape"]).astype(spec["dtype"])
    return mlir, {}


def _run_set(
    compiler: Compiler, test: BackendTest, files: dict[str, bytes], engines: Sequence[str], folder: Path
) -> dict[str, Outcome]:
    """Runs a data set as it is, or, if that is rejected, with constant shapes."""
    outcomes = _attempt(compiler, test, files, engines, folder, _import_open)
    if any(outcome.kind == REJECTION for outcome in outcomes.values()):
        outcomes = _attempt(compiler, test, files, engines, folder, _import)
    return outcomes


def _attempt(
    compiler: Compiler, test: BackendTest, files: dict[str, bytes], engines: Sequence[str], folder: Path, load: Importer
) -> dict[str, Outcome]:
    model = onnx.ModelProto.FromString(test.model)
    try:
        unreadable = None
        try:
            data = read_set(model, files)
        except StageError as error:  # types that numpy lacks are rejected by Tessera, too
            data, unreadable = DataSet({}, {}, []), error
        given = len(data.inputs)
        mlir, padded = load(compiler, model, data.inputs, folder)
        wanted = dict(data.outputs)
        if unreadable:
            raise unreadable
    except StageError as error:
        return {engine: Outcome.of(error) for engine in engines}

    def run(engine: str) -> Outcome:
        try:
            if engine == "reference":
                actual = run_reference(compiler, mlir, data.inputs, data.bfloat16)
            else:
                actual = run_bmodel(deploy(compiler, mlir, engine), data.inputs, data.bfloat16)
            for name, axis in padded.items():
                wanted[name] = pad(data.outputs[name], axis, actual[name].shape[axis])
            compare(actual, wanted, data.nan_codes)
        except StageError as error:
            return Outcome.of(error)
        return Outcome(as_it_is=len(data.inputs) == given)

    return {engine: run(engine) for engine in engines}


_compiler: Compiler | None = None  # one per worker process


def run_test(test: BackendTest, engines: Sequence[str]) -> dict[str, Outcome]:
    """Runs one test on each engine; the first of its data sets that does not pass decides."""
    global _compiler
    _compiler = _compiler or Compiler()
    if not test.sets:
        return dict.fromkeys(engines, Outcome(FAILED, "data", "the test has no data set"))
    outcomes = dict.fromkeys(engines, Outcome())
    for files in test.sets.values():
        with tempfile.TemporaryDirectory() as folder:
            for engine, outcome in _run_set(_compiler, test, files, engines, Path(folder)).items():
                if outcomes[engine].kind == PASSED and (outcome.kind != PASSED or not outcome.as_it_is):
                    outcomes[engine] = outcome
    return outcomes


def run_all(tests: Iterable[BackendTest], engines: Sequence[str], jobs: int) -> dict[str, dict[str, Outcome]]:
    """Returns test -> engine -> outcome."""
    tests = list(tests)
    with ProcessPoolExecutor(jobs) as pool:
        results = pool.map(run_test, tests, [tuple(engines)] * len(tests), chunksize=8)
        return dict(zip((test.name for test in tests), results))


def reason(outcome: Outcome) -> str:
    """Returns the reason of a rejection, without the names of nodes and tensors."""
    operators = re.findall(r"  (\w+) \(domain", outcome.message)
    if operators:
        return "operator " + ", ".join(operators)
    constraint = re.search(r"cannot lower '([^']*)'.*?\((\w+)\);", outcome.message)
    if constraint:
        return f"{constraint[1]}: {constraint[2]}"
    text = re.sub(r"node '[^']*' \((\w+)\)", r"\1", outcome.message)
    text = re.sub(r"^(in|out)put '[^']*'", r"\1put", text).split(":")
    is_advice = re.search("--input_shapes|give it with --input_values", text[-1])
    kept = text[:-1] if len(text) > 1 and is_advice else text
    return re.sub(r" \(input.*?\)|'[^']*'", "", ":".join(kept)).strip()


def passed_as_they_are(outcomes: dict[str, dict[str, Outcome]], engine: str) -> int:
    """Returns how many tests passed without replacing an input by a constant."""
    return sum(by_engine[engine].kind == PASSED and by_engine[engine].as_it_is for by_engine in outcomes.values())


def read_table(path: Path) -> dict[str, tuple[str, str]]:
    """Reads a file of lines `[engine] reason`, each followed by its tests. Returns {test: (engine or "all",
    reason)}."""
    table: dict[str, tuple[str, str]] = {}
    entry = ("", "")
    for number, line in enumerate(path.read_text().splitlines(), 1):
        heading = re.fullmatch(r"\[(\S+)\] (.+)", line)
        if heading:
            entry = (heading[1], heading[2])
        elif line.strip() and not line.startswith("#"):
            if not entry[1] or line.strip() in table:
                raise ValueError(f"{path.name}:{number}: a test without a heading, or one listed twice")
            table[line.strip()] = entry
    return table


def _rejections(outcomes: dict[str, dict[str, Outcome]]) -> dict[tuple[str, str], list[str]]:
    """Returns {(engines, reason): tests}. `engines` is "all" for a rejection at import, "x86" for one at deployment."""
    groups: dict[tuple[str, str], list[str]] = collections.defaultdict(list)
    for name, by_engine in outcomes.items():
        rejected = next((o for o in by_engine.values() if o.kind == REJECTION), None)
        if rejected:
            groups[
                "all" if rejected.stage == "import" else "x86" if rejected.stage == "deploy" else "reference",
                reason(rejected),
            ].append(name)
    return groups


def write_rejections(outcomes: dict[str, dict[str, Outcome]]) -> None:
    lines = ["# What is refused (exit code 4), by engine and reason. Written by: conformance.py --update"]
    for (engine, why), names in sorted(_rejections(outcomes).items()):
        lines += ["", f"[{engine}] {why}", *sorted(names)]
    REJECTED.write_text("\n".join(lines) + "\n")


def expected(table: dict[str, tuple[str, str]], name: str, engine: str) -> str:
    """Returns the reason that a table states for a test on an engine, or ""."""
    holder, why = table.get(name, ("", ""))
    return why if holder == "all" or engine.startswith(holder or "?") else ""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--engines", default=",".join(["reference", *supported_isas()]))
    parser.add_argument("--filter", default="*", help="only the tests of these names")
    parser.add_argument("--archive", type=Path, default=Path(os.environ.get("TESSERA_DATA", "")) / ARCHIVE)
    parser.add_argument("--update", action="store_true", help="rewrite refused.txt (of all tests, on all engines)")
    parser.add_argument("--verbose", action="store_true", help="also list the refusals")
    parser.add_argument("-j", "--jobs", type=int, default=os.cpu_count() or 1)
    arguments = parser.parse_args()
    engines = arguments.engines.split(",")
    tests = [test for name, test in read_tests(arguments.archive).items() if fnmatch.fnmatch(name, arguments.filter)]
    outcomes = run_all(tests, engines, arguments.jobs)
    deviations = read_table(DEVIATIONS)
    shown = (FAILED, REJECTION) if arguments.verbose else (FAILED,)
    for name, by_engine in sorted(outcomes.items()):
        for engine, outcome in by_engine.items():
            if outcome.kind in shown:
                note = expected(deviations, name, engine)
                print(
                    f"{name} {engine} {outcome.kind} at {outcome.stage}: {outcome.message}"
                    + (f" (expected: {note})" if note else "")
                )
    for engine in engines:
        counts = collections.Counter(by_engine[engine].kind for by_engine in outcomes.values())
        print(
            f"{engine:12}"
            + "".join(f"{kind} {counts[kind]:5}   " for kind in (PASSED, REJECTION, FAILED))
            + f"passed as they are {passed_as_they_are(outcomes, engine):5}"
        )
    if arguments.update:
        write_rejections(outcomes)
    return 0


if __name__ == "__main__":
    sys.exit(main())
