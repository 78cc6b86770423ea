# SPDX-License-Identifier: Apache-2.0
"""The second look of model_transform and model_deploy at tensors outside the default tolerance: is an op wrong, or is
it inherited rounding?"""
from __future__ import annotations

import contextlib
from typing import Callable, Collection, Mapping, Sequence

import numpy as np

from .. import compare, top_model, verdict
from ..onnx_facts import Freedom
from ..safetensors_io import Spool
from ..top_model import TopModel
from .common import Context


def check_each_op(
    context: Context,
    model: TopModel,
    arrays: Mapping[str, np.ndarray],
    comparison: compare.Comparison,
    engine: Callable[[Callable[[str, np.ndarray], None]], object],
    others: Sequence[Mapping[str, np.ndarray]] = (),
    freedom: Freedom = Freedom(),
    rerun: Callable[[], Sequence[verdict.Moved]] = tuple,
) -> str:
    """Where tensors are outside and --tolerance was not given: evaluates every op on the operands that the engine
    had, and those of `others`, and excuses tensors as verdict.Judge does; a warning says which. engine: runs it
    again and gives its tensors one by one. freedom, rerun: as in verdict.Judge. Returns what is wrong, "" where
    nothing is or it was not looked for.
    """
    args, report = context.args, context.report
    if args.tolerance is not None or not comparison.failed:
        return ""
    with report.extra_step("each op by itself") as step:
        with contextlib.closing(Spool()) as spool:
            engine(spool.put)
            judge = verdict.Judge(
                lambda operands, only: top_model.evaluate_each(model, arrays, operands, report, only=only)[0],
                {spec.name for spec in model.outputs},
                model.quantises,
                freedom,
                rerun,
            )
            why_not = judge.excuse(comparison, [spool, *others])
        step.note = why_not or f"all are right: {len(comparison.excused)} tensors inherit rounding"
    if comparison.excused and not comparison.failed:
        report.warn(_describe_excused(comparison, {spec.name for spec in model.outputs}))
    return why_not


def _describe_excused(comparison: compare.Comparison, outputs: Collection[str]) -> str:
    row = comparison.excused[0]
    affected = [f"'{each.name}' ({each.excuse})" for each in comparison.excused if each.name in outputs]
    text = f"outputs that differ: {', '.join(affected)}" if affected else "no output is outside"
    return (
        f"{len(comparison.excused)} of {len(comparison.rows)} tensors are outside {comparison.tolerance}, the worst is "
        f"'{row.name}': {compare.describe(row)}; {text}; every op is right by itself: what differs is rounding that "
        "ops behind it enlarge, or an order that the model leaves open (docs/numerics.md); "
        "--tolerance makes it an error"
    )
