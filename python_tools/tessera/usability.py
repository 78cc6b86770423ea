# SPDX-License-Identifier: Apache-2.0
"""Decides whether a quantised model is broken rather than coarse. docs/numerics.md has the definition.

Only outputs count, over all samples together: which other tensors are visible depends on the chip.
"""
from __future__ import annotations

from typing import Mapping, Sequence

import numpy as np

from .tolerances import LEAST_OUTPUT_COSINE

Tensors = Mapping[str, np.ndarray]
FLIPPED = 0.5
"""A mask is broken if more than this share of its infinite elements are infinite on one side only ..."""
FEW_FLIPPED = 2
"""... and more elements than these for each sample."""


def unusable(samples: Sequence[tuple[Tensors, Tensors]]) -> str:
    """Returns why a quantised model is broken rather than coarse; "" if it is not.

    samples: for each sample the outputs of the reference and those of the model. Labels and indices have no cosine, so
    only float outputs count.
    """
    over = f" over {len(samples)} samples" if len(samples) > 1 else ""
    for wanted, got in samples:
        for name, golden in wanted.items():
            if name in got and got[name].shape != golden.shape:
                return f"output '{name}' has shape {list(got[name].shape)} instead of {list(golden.shape)}"
    for name in _float_outputs(samples):
        if reason := _not_finite(name, samples):
            return f"output '{name}' has {reason}{over}"
    cosines = output_cosines(samples)
    name = min(cosines, key=lambda each: cosines[each], default="")
    if not name or cosines[name] >= LEAST_OUTPUT_COSINE:
        return ""
    return f"output '{name}' has cos {cosines[name]:.4f} with the reference{over}, below {LEAST_OUTPUT_COSINE:g}"


def _float_outputs(samples: Sequence[tuple[Tensors, Tensors]]) -> list[str]:
    """Names of the outputs that are floats on both sides."""
    names = dict.fromkeys(
        n for want, got in samples for n in want if n in got and want[n].dtype.kind == got[n].dtype.kind == "f"
    )
    return list(names)


def _not_finite(name: str, samples: Sequence[tuple[Tensors, Tensors]]) -> str:
    """Returns the fault in the NaN and infinite values of an output, or ""."""
    nans = differing = either = 0
    for wanted, got in samples:
        if name not in wanted or name not in got:
            continue
        golden, have = wanted[name], got[name]
        nans += int(np.count_nonzero(np.isnan(have) & ~np.isnan(golden)))
        infinite = np.isinf(golden) | np.isinf(have)
        either += int(np.count_nonzero(infinite))
        differing += int(np.count_nonzero(golden[infinite] != have[infinite]))
    if nans:
        return f"NaN in {nans} places where the reference has numbers"
    if differing > max(FLIPPED * either, FEW_FLIPPED * len(samples)):
        return f"infinity in other places than the reference: {differing} of {either}"
    return ""


def output_cosines(samples: Sequence[tuple[Tensors, Tensors]]) -> dict[str, float]:
    """Returns the cosine of each float output with the reference's, all samples together. Values that are not finite
    in either are left out."""
    sums: dict[str, np.ndarray] = {}
    for wanted, got in samples:
        for name in _float_outputs([(wanted, got)]):
            a, b = wanted[name].astype(np.float64), got[name].astype(np.float64)
            finite = np.isfinite(a) & np.isfinite(b)
            a, b = a[finite], b[finite]
            sums[name] = sums.get(name, np.zeros(3)) + (a @ b, a @ a, b @ b)
    return {
        name: float(both / np.sqrt(ours * theirs)) if ours > 0 and theirs > 0 else float(ours == theirs)
        for name, (both, ours, theirs) in sums.items()
    }
