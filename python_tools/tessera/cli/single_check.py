# SPDX-License-Identifier: Apache-2.0
"""The second look of model_transform and model_deploy at tensors outside the default tolerance: is an op wrong, or is
it inherited rounding?"""
from __future__ import annotations

import contextlib
from typing import Callable, Mapping, Sequence

import numpy as np

from .. import compare, top_model, verdict
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
) -> None:
    """Where tensors are outside and --tolerance was not given: evaluates every op on the operands that the engine
    had, and those of `others`, and excuses tensors as verdict.excuse says; a warning tells which. engine: runs it
    again and gives its tensors one by one.
    """
    args, report = context.args, context.report
    if args.tolerance is not None or not comparison.failed or comparison.broken:
        return
    with report.extra_step("each op by itself") as step:
        with contextlib.closing(Spool()) as spool:
            engine(spool.put)
            why_not = verdict.excuse(
                comparison,
                [spool, *others],
                lambda operands: top_model.evaluate_each(model, arrays, operands, report),
                {spec.name for spec in model.outputs},
                model.quantises,
            )
        step.note = why_not or f"all are right: {len(comparison.excused)} tensors inherit rounding"
    if comparison.excused and not comparison.failed:
        row = comparison.excused[0]
        report.warn(
            f"{len(comparison.excused)} of {len(comparison.rows)} tensors are outside {comparison.tolerance}, the "
            f"worst is '{row.name}': "
            f"{compare.describe(row)}; every op is right by itself: what differs is rounding that ops behind it "
            "enlarge (docs/numerics.md); "
            "--tolerance makes it an error"
        )
