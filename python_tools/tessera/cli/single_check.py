# SPDX-License-Identifier: Apache-2.0
"""Second check of model_transform and model_deploy for tensors outside the default tolerance: decides whether an op is
wrong or the difference is inherited rounding."""
from __future__ import annotations

import contextlib
from collections import ChainMap
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
    """Checks single ops if tensors are outside the tolerance and --tolerance was not given: evaluates every op on the
    operands of the engine and of `others`, and excuses tensors as verdict.Judge does, with a warning. engine: runs the
    engine again and passes on its tensors one by one. freedom, rerun: as in verdict.Judge. Returns what is wrong; "" if
    nothing is, or if no check was made."""
    args, report = context.args, context.report
    if args.tolerance is not None or not comparison.failed:
        return ""

    def evaluate(operands: Mapping[str, np.ndarray], only: Collection[str]) -> Mapping[str, np.ndarray]:
        given = {name: operands[name] for name in arrays}
        return top_model.evaluate_each(model, given, operands, report, only=only)[0]

    with report.extra_step("check each op") as step:
        with contextlib.closing(Spool()) as spool:
            engine(spool.put)
            judge = verdict.Judge(evaluate, {spec.name for spec in model.outputs}, model.quantises, freedom, rerun)
            # Inputs are operands, too.
            why_not = judge.excuse(comparison, [ChainMap(each, arrays) for each in (spool, *others)])  # type: ignore
        step.note = why_not or f"all ops are correct: {len(comparison.excused)} tensors inherit rounding"
    if comparison.excused and not comparison.failed:
        report.warn(_describe_excused(comparison, {spec.name for spec in model.outputs}))
    return why_not


def _describe_excused(comparison: compare.Comparison, outputs: Collection[str]) -> str:
    row = comparison.excused[0]
    affected = [f"'{each.name}' ({each.excuse})" for each in comparison.excused if each.name in outputs]
    text = f"outputs that differ: {', '.join(affected)}" if affected else "no output is outside"
    return (
        f"{len(comparison.excused)} of {len(comparison.rows)} tensors are outside {comparison.tolerance}, the worst is "
        f"'{row.name}': {compare.describe(row)}; {text}; every single op is correct: the difference is rounding that "
        "later ops amplify, or an order that the model leaves open (docs/numerics.md); "
        "--tolerance makes it an error"
    )
