# SPDX-License-Identifier: Apache-2.0
"""Check of model_transform and model_deploy on a second input with numbers of any magnitude."""
from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Callable, Mapping

import numpy as np

from .. import top_model, wide_check
from ..errors import ExitCode, TesseraError
from ..files import save_npz
from ..onnx_facts import Freedom
from ..safetensors_io import Spool
from ..top_model import TopModel
from ..wide_inputs import are_wide, wide_inputs
from .common import Context

Run = Callable[[Mapping[str, np.ndarray], Callable[[str, np.ndarray], None]], object]
SHOWN = 5


def check_wide_input(
    context: Context, model: TopModel, run: Run, what: str, kept: Path, freedom: Freedom | None = None
) -> TesseraError | None:
    """Runs the engine on wide inputs and checks each op; returns the error of a wrong one, None if there is none.

    run: runs the engine on the arrays and passes on its tensors one by one. kept: the file to which inputs that reveal
    a fault are written. freedom: what the file leaves open to an engine that runs the file itself.
    """
    args, report = context.args, context.report
    arrays = wide_inputs(model.inputs)
    # --tolerance applies to the test input, and 16-bit floats overflow.
    if args.tolerance is not None or model.narrow_floats or not are_wide(model.inputs, arrays):
        return None
    with report.extra_step("check each op on wide input") as step, contextlib.closing(Spool()) as spool:
        try:
            run(arrays, spool.put)
        except TesseraError as error:
            step.note = f"not run: {error}"
            return None
        outcome = wide_check.find_faults(
            spool,
            lambda operands, only: top_model.evaluate_each(model, arrays, operands, report, wide_check.BUDGET, only),
            freedom is not None,
            {*args.excepts.split(","), *(freedom or Freedom()).tensors},
        )
        step.note = f"{outcome.checked} tensors, {len(outcome.faults)} wrong"
    context.result["wide"] = {"checked": outcome.checked, "wrong": [str(fault) for fault in outcome.faults]}
    if not outcome.faults:
        return None
    save_npz(context.outputs.path(kept), arrays)
    return TesseraError(
        f"{what}: {len(outcome.faults)} of {outcome.checked} tensors are wrong on inputs of any magnitude (large, "
        f"tiny, zero), {outcome.faults[0]}",
        ExitCode.ACCURACY,
        hint=f"the inputs are in {kept}: pass them with --test_input; 'tessera reduce' finds the smallest network that "
        "shows it; if such numbers never occur, leave the tensor out with --excepts",
        details=[str(fault) for fault in outcome.faults[1 : SHOWN + 1]],
    )
