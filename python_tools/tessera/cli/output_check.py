# SPDX-License-Identifier: Apache-2.0
"""model_deploy's check of a quantised model by its outputs: those of several samples against the f32 model's."""
from __future__ import annotations

from dataclasses import dataclass
from typing import Callable, Sequence

import numpy as np

from .. import bmodel, compare, families, top_model
from ..calibration import checks
from ..calibration import table as tables
from ..errors import ExitCode, TesseraError
from ..inputs import random_inputs
from ..output_error import Meter, OutputError, name_for, pick_samples
from ..scratch import scratch_folder
from ..top_model import TopModel
from ..usability import unusable
from .common import Context

MOST_SIMULATED = 100e6
"""Multiplications of all samples up to which a simulator runs them; this machine runs more, the simulator one."""
RANDOM = 4
"""Random inputs that decide if there are no samples."""
NARROW = ("BF16", "F16")

Arrays = checks.Arrays
Sample = tuple[Arrays, Arrays]
"""Outputs of the f32 model and of the tested model."""


@dataclass(frozen=True)
class Tested:
    """A deployed model and what the check has run of it.

    given, golden, got: the test input with the outputs of the reference and of the model; what: the test input, for
    people. reference: evaluates the f32 model on inputs as the deployed model takes them. flags: of the deployment.
    """

    model: TopModel
    net: bmodel.Net
    given: Arrays
    golden: Arrays
    got: Arrays
    what: str
    reference: Callable[[Arrays], Arrays]
    flags: Sequence[str]


def measure_outputs(context: Context, tested: Tested) -> list[Sample]:
    """Compares the outputs with the f32 model's and returns both, the test input's first. The samples are those that
    calibration kept; without any the test input, and if that is random RANDOM such inputs. Warns if the outputs are
    further off than the table allows."""
    args, report = context.args, context.report
    first = (tested.golden, tested.got)
    kept = _kept(args.calibration_table, tested)
    if args.quantize == "F32":
        return [first]
    with report.step("outputs on several samples") as step:
        if kept:
            what = "calibration samples"
            run, engine = _engine(context, tested, [check.inputs for check in kept])
            samples = [(check.outputs, run(check.inputs)) for check in kept]
            found = [first, *samples]
        else:
            others = [] if args.test_input or args.test_reference else _random(args.calibration_table, tested)
            run, engine = _engine(context, tested, others)
            what = tested.what + (f", and {len(others)} more random inputs" if others else "")
            samples = found = [first, *((tested.reference(given), run(given)) for given in others)]
        meter = Meter(tested.model.origins)
        for golden, got in samples:
            meter.add(golden, got)
        error = meter.result()
        step.note = f"{error}{engine}, {what}"
    context.result["output_error"] = error.as_dict()
    _warn(context, error, what)
    return found


def _kept(table: str | None, tested: Tested) -> list[checks.Check]:
    """The samples beside the table, if inputs and outputs of the deployed model have the types of the Top model's."""
    if not table:
        return []
    types = {spec.name: (spec.shape, spec.dtype) for spec in tested.model.outputs}
    same = {spec.name: (spec.shape, spec.dtype) for spec in tested.net.outputs} == types
    return checks.load(table, (*tested.net.inputs, *tested.net.states)) if same else []


def _random(table: str | None, tested: Tested) -> list[Arrays]:
    """Random inputs other than the test input, in the ranges of the table."""
    entries = tables.load(table).tensors if table else ()
    ranges = {entry.name: (entry.min, entry.max) for entry in entries}
    return [random_inputs((*tested.net.inputs, *tested.net.states), seed, ranges) for seed in range(1, RANDOM)]


def _engine(context: Context, tested: Tested, inputs: Sequence[Arrays]) -> tuple[Callable[[Arrays], Arrays], str]:
    """Returns what runs the model on `inputs`, and a word on it. A chip's simulator takes long: if so many inputs are
    too many for it, the same quantised model for this machine runs them, provided that it agrees on the test input."""
    args = context.args
    products = context.result["model"].get("quantization", {}).get("products", 0)
    if not families.of_chip(args.chip).is_simulated or products * len(inputs) <= MOST_SIMULATED:
        return tested.net.run, ""
    with scratch_folder() as folder:
        path = folder / "twin.bmodel"
        top_model.deploy(
            tested.model, path, context.report, chip=families.HOST, quantize=args.quantize, extra=tested.flags
        )
        twin = bmodel.open_net(path, args.threads)
    outputs = twin.run(tested.given)
    same = all(np.array_equal(outputs[n], a, equal_nan=a.dtype.kind == "f") for n, a in tested.got.items())
    if same:
        return twin.run, f" ({families.HOST}, which gives {args.chip}'s bits on the test input)"
    return tested.net.run, ""


def _warn(context: Context, error: OutputError, what: str) -> None:
    args, report = context.args, context.report
    if not args.calibration_table:
        if args.quantize in NARROW and error.error > checks.MAX_ERROR:
            kept = "for which bf16 is too coarse" if args.quantize == "BF16" else "beyond the range of f16"
            report.warn(
                f"{args.quantize} changes the outputs: {error}, {what}. Measure the effect with 'tessera "
                f"accuracy'. With a --calibration_table from run_calibration, results {kept} stay in f32"
            )
        return
    table = tables.load(args.calibration_table)
    limit = checks.MAX_ERROR if table.max_error is None else table.max_error
    if text := checks.error_warning(error.error, limit, args.quantize, f"{error}, {what}", args.calibration_table):
        report.warn(text)


def warn_by_table(context: Context, model: TopModel) -> None:
    """Warns of what calibration found, which holds whether or not the model can be run here."""
    args, warn = context.args, context.report.warn
    table = tables.load(args.calibration_table)
    if text := checks.answers_warning(table.same_answers):
        warn(text)
    as_measured = args.quantize == "INT8" and not args.quantize_table
    if not as_measured or not args.skip_validation or table.output_error is None or table.max_error is None:
        return
    count = len(pick_samples(range(table.samples), model.specs))
    measured = f"{name_for(model.outputs, model.origins)} {table.output_error:.2%} on {count} calibration samples"
    if text := checks.error_warning(
        table.output_error, table.max_error, args.quantize, measured, args.calibration_table
    ):
        warn(text)


def judge(
    context: Context,
    comparison: compare.Comparison,
    samples: Sequence[Sample],
    tolerance: compare.Tolerance,
    strict: bool,
    reason: str,
) -> None:
    """Raises TesseraError (exit code 3) unless the model is good enough. If not `strict`, its outputs decide
    (`samples`, as for usability.unusable), and tensors outside the tolerance are a warning."""
    args, report = context.args, context.report
    title = f"{args.model} against the Top reference"
    if comparison.missing:
        report.say(
            f"{len(comparison.missing)} tensors of the reference are inside fused steps and not visible separately"
        )
    if strict:
        comparison.require_passed(title, list(samples[0][0]), reason)
        return
    comparison.require_rows(title)
    broken = unusable(samples)
    if broken and not (args.accept_loss or args.target):
        raise TesseraError(
            f"{args.model} is not usable: {broken}",
            ExitCode.ACCURACY,
            details=_worst_tensors(comparison),
            hint="pass --test_input data like the calibration's; find the first bad op by the own errors above, and "
            "keep such ops in float (--quantize_table) or search with --target; --accept_loss makes this a warning",
        )
    if comparison.failed:
        report.warn(
            f"{len(comparison.failed)} of {len(comparison.rows)} tensors are outside {tolerance}; measure the effect "
            "with 'tessera accuracy', or make it an error with --tolerance"
        )


def _worst_tensors(comparison: compare.Comparison) -> list[str]:
    """Explains a broken model by the tensor that is furthest off."""
    if not comparison.failed:
        return []
    worst = comparison.failed[0]
    return [
        f"{len(comparison.failed)} of {len(comparison.rows)} visible tensors are outside {comparison.tolerance}; the "
        f"worst is '{worst.name}': {compare.describe(worst)}"
    ]
