# SPDX-License-Identifier: Apache-2.0
"""The formulas that Tessera recovers, with one thing changed: import, optimise and run on x86 against onnxruntime.

A recovery that compares an axis, a constant or a type in one branch and forgets it in another gives wrong numbers for
graphs that nearly match. Each case is a pattern of near_miss_formulas.py or near_miss_moves.py as exporters write it,
or that with one or two changes of near_miss_changes.py; graphs that onnxruntime rejects are drawn again.
    build/bin/tessera-python regression/conformance/near_misses.py [--cases 10000] [--pattern rope] [--keep FOLDER]
"""
from __future__ import annotations

import argparse
import os
import sys
import tempfile
import zlib
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Iterable, Iterator, Sequence

import near_miss_formulas  # noqa: F401  (registers its patterns)
import near_miss_moves  # noqa: F401
import numpy as np
from engines import StageError, deploy, run_bmodel, supported_isas
from near_miss_changes import Values, changed, model_of, widened
from near_miss_case import PATTERNS, Case
from seed_runner import compiler_of_process

CASES_PER_MODEL = 25
DRAWS = 40  # until a change gives a graph that onnxruntime accepts
REJECTED = (
    "is listed twice",  # an axis: onnxruntime uses it once, ONNX does not define it
    "the window is larger than the padded input",
    "the pad value",  # computed at run time
)
"""Parts of messages for graphs that onnxruntime runs and Tessera rejects deliberately."""
TOLERANCE = 2e-5  # of the largest value of an output
PERTURBATION = 1e-6  # of the inputs; its effect on the outputs counts as rounding


@dataclass
class Drawn:
    """A case with its description, the right outputs, and what rounding may change in them."""

    case: Case
    text: str
    wanted: Values
    noise: Values


def _session(case: Case, every_tensor: bool):  # type: ignore[no-untyped-def]
    import onnxruntime as ort

    options = ort.SessionOptions()
    options.log_severity_level, options.intra_op_num_threads = 4, 1
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    model, inputs = model_of({"": case}, every_tensor)
    return ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"]), inputs


def run_onnxruntime(case: Case, every_tensor: bool = False) -> tuple[Values, Values] | None:
    """Returns outputs (or all tensors) by name with their largest change under tiny changes of the inputs; None if
    onnxruntime rejects the graph."""
    try:
        session, inputs = _session(case, every_tensor)
        names = [value.name for value in session.get_outputs()]
        first = dict(zip(names, session.run(names, inputs)))
        noise = {name: np.zeros(array.shape) for name, array in first.items()}
        for seed in range(0 if every_tensor else 2):
            signs = np.random.default_rng(seed)
            moved = {
                n: (a * (1 + PERTURBATION * signs.choice([-1, 1], a.shape))).astype(a.dtype) for n, a in inputs.items()
            }
            for name, array in zip(names, session.run(names, moved)):
                with np.errstate(invalid="ignore"):
                    noise[name] = np.fmax(noise[name], np.abs(array.astype(np.float64) - first[name]))
    except Exception:  # onnxruntime raises its own unrelated classes
        return None
    return first, noise


def draw(name: str, seed: int) -> Drawn:
    """Draws the case of a seed. Of eight seeds, one gives the unchanged pattern, one gives two changes, and six give
    one."""
    build, _ = PATTERNS[name]
    case = Case(zlib.crc32(f"{name} {seed}".encode()))
    case.outputs = list(build(case))
    text = f"{name} {seed}"
    for _ in range((0, 2, 1, 1, 1, 1, 1, 1)[seed % 8]):
        tensors = run_onnxruntime(case, every_tensor=True)
        assert tensors, f"{text}: onnxruntime rejects the pattern"
        values = {**case.inputs, **case.constants, **tensors[0]}
        for _ in range(DRAWS):
            other, description = changed(case, values)
            if description and run_onnxruntime(other):
                case, text = other, f"{text}: {description}"
                break
    results = run_onnxruntime(case)
    assert results, f"{text}: onnxruntime rejects the pattern"
    return Drawn(case, text, *results)


def fault_of(drawn: Drawn, got: Values, prefix: str) -> str:
    """Returns the fault of a case's outputs; "" if there is none, or if onnxruntime has the same error in single
    precision."""
    fault = _fault_of(drawn, got, prefix)
    exact = run_onnxruntime(widened(drawn.case)) if fault else None
    if not exact:
        return fault
    noise = {name: drawn.noise[name] + np.abs(array - exact[0][name]) for name, array in drawn.wanted.items()}
    return _fault_of(Drawn(drawn.case, drawn.text, drawn.wanted, noise), got, prefix)


def _fault_of(drawn: Drawn, got: Values, prefix: str) -> str:
    for name, wanted in drawn.wanted.items():
        array = got[prefix + name]
        if array.shape != wanted.shape or array.dtype != wanted.dtype:
            return f"'{name}' is {array.dtype}{array.shape}, not {wanted.dtype}{wanted.shape}"
        finite = np.isfinite(wanted) & np.isfinite(drawn.noise[name])
        with np.errstate(invalid="ignore"):
            error = np.where(finite, np.abs(array.astype(np.float64) - wanted), 0)
        allowed = TOLERANCE * np.abs(wanted[finite]).max(initial=0) + 20 * drawn.noise[name] + 1e-7
        with np.errstate(invalid="ignore"):
            wrong = finite & ~(error <= allowed)
        if wrong.any():
            i = np.unravel_index(np.argmax(np.where(wrong, np.nan_to_num(error, nan=np.inf), 0)), wanted.shape)
            return (
                f"'{name}' {wanted.shape}: {int(wrong.sum())} wrong, {array[i]} at {[*map(int, i)]}, right {wanted[i]}"
            )
    return ""


def _run(cases: dict[str, Case], isa: str, folder: Path) -> Values:
    model, inputs = model_of(cases)
    path, mlir, compiler = folder / "model.onnx", folder / "model_top.mlir", compiler_of_process()
    path.write_bytes(model.SerializeToString())
    np.savez(folder / "input.npz", **inputs)
    compiler("import", "import", "--onnx", path, "--output", mlir)
    return run_bmodel(deploy(compiler, mlir, isa), inputs, threads=(1,))


def check(drawn: dict[str, Drawn], isa: str, keep: Path | None) -> Iterator[str]:
    """Yields the faults of cases that share a model. If the model fails as a whole, each case runs alone."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        try:
            got = _run({prefix: each.case for prefix, each in drawn.items()}, isa, folder)
        except StageError as error:
            if len(drawn) == 1:
                if any(text in str(error) for text in REJECTED):
                    return
                yield f"{next(iter(drawn.values())).text}: {error.stage}: {error}"
            else:
                for prefix, each in drawn.items():
                    yield from check({prefix: each}, isa, keep)
            return
        for prefix, each in drawn.items():
            if fault := fault_of(each, got, prefix):
                yield f"{each.text}: {fault}"
                if keep:
                    kept = keep / each.text.split(":")[0].replace(" ", "_")
                    kept.mkdir(parents=True, exist_ok=True)
                    _run({"": each.case}, isa, kept)


def run_group(group: Sequence[tuple[str, int]], isa: str, keep: Path | None) -> list[str]:
    return list(check({f"k{i}_": draw(*which) for i, which in enumerate(group)}, isa, keep))


def run_cases(
    which: Sequence[tuple[str, int]], jobs: int, keep: Path | None = None, isa: str | None = None
) -> Iterator[str]:
    """Yields the faults of the cases (pattern, seed). The groups alternate between instruction sets unless `isa` names
    one."""
    groups = [which[i : i + CASES_PER_MODEL] for i in range(0, len(which), CASES_PER_MODEL)]
    isas = [isa] if isa else supported_isas()
    turns = [isas[-1 - i % len(isas)] for i in range(len(groups))]
    with ProcessPoolExecutor(jobs) as pool:
        for faults in pool.map(run_group, groups, turns, [keep] * len(groups)):
            yield from faults


def cases_of(patterns: Iterable[str], first: int, count: int) -> list[tuple[str, int]]:
    """Returns `count` cases that alternate between the patterns, with seeds from `first` on."""
    names = list(patterns)
    return [(names[i % len(names)], first + i // len(names)) for i in range(count)]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=int, default=1000)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--pattern", action="append", choices=PATTERNS)
    parser.add_argument("--isa", choices=[*supported_isas(), "npu-base"], help="default: instruction sets by turns")
    parser.add_argument("--keep", type=Path, help="leave the files of cases that fail here")
    parser.add_argument("-j", "--jobs", type=int, default=os.cpu_count() or 1)
    arguments = parser.parse_args()
    which = cases_of(arguments.pattern or PATTERNS, arguments.first, arguments.cases)
    failed: Counter[str] = Counter()
    for fault in run_cases(which, arguments.jobs, arguments.keep, arguments.isa):
        print(fault, flush=True)
        failed[fault.split(" ")[0]] += 1
    print(f"{failed.total()} of {len(which)} cases fail" + (f": {dict(failed)}" if failed else ""))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
