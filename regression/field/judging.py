# SPDX-License-Identifier: Apache-2.0
"""Compares the outputs of a field case with the expected ones."""
from __future__ import annotations

from typing import Mapping

import numpy as np
from field_case import FieldCase
from onnx import TensorProto

RELATIVE = {TensorProto.BFLOAT16: 2.0**-7, TensorProto.FLOAT16: 2.0**-9}
"""Relative tolerance of models that compute in these types; all others have the tolerance of F32."""
F32 = 1e-4
SMALLEST = 1e-6
"""Absolute error that is never wrong, for sums that cancel out."""
ALIKE = 0.98
"""Cosine between INT8 and F32 that is close enough."""

Arrays = Mapping[str, np.ndarray]


def relative_tolerance(case: FieldCase) -> float:
    """Returns the tolerance by the narrowest float type that the graph stores or casts to."""
    graph = case.proto.graph
    types = {tensor.data_type for tensor in graph.initializer}
    types |= {value.type.tensor_type.elem_type for value in (*graph.input, *graph.output, *graph.value_info)}
    types |= {attribute.i for node in graph.node for attribute in node.attribute if attribute.name == "to"}
    return max((RELATIVE[kind] for kind in types if kind in RELATIVE), default=F32)


def wrong(case: FieldCase, got: Arrays, wanted: Arrays) -> str:
    """Describes the first wrong output; "" if there is none."""
    for name, want in wanted.items():
        short = name if len(name) <= 40 else f"{name[:37]}..."
        if name not in got:
            return f"output '{short}' is missing"
        if got[name].shape != want.shape or got[name].dtype != want.dtype:
            there = f"{got[name].dtype}{list(got[name].shape)}"
            return f"output '{short}' is {there} instead of {want.dtype}{list(want.shape)}"
        limit = _limit(case, want)
        bad = ~_close(got[name], want, limit)
        if bad.any():
            worst = int(np.argmax(bad))
            values = f"{got[name].ravel()[worst]} instead of {want.ravel()[worst]}"
            return f"output '{short}': {int(bad.sum())} of {want.size} elements differ, element {worst} is {values}"
    return ""


def _limit(case: FieldCase, want: np.ndarray) -> np.ndarray | float:
    """Returns the largest allowed absolute error of each element."""
    if want.dtype.kind in "iu":
        return case.step("istep")
    if want.dtype.kind != "f":
        return 0.0
    if any(flag.startswith("step=") for flag in case.flags):
        return case.step("step") * (1 + F32) + F32 * np.abs(want)
    relative = max(relative_tolerance(case), case.share_allowed)
    size = np.abs(np.where(np.isfinite(want), want, 0).astype(np.float64))
    # Values of very different magnitude are judged one by one; otherwise a small value may be the difference of large
    # ones.
    one_by_one = "tail" in case.flags and not case.share_allowed
    whole = 0.0 if one_by_one or not want.size else float(size.max())
    return relative * np.maximum(size, whole) + SMALLEST


def _close(got: np.ndarray, want: np.ndarray, limit: np.ndarray | float) -> np.ndarray:
    if want.dtype.kind in "iu" and want.dtype.itemsize == 8:
        return got == want if not np.any(limit) else np.abs(got - want) <= limit
    with np.errstate(all="ignore"):
        error = np.abs(got.astype(np.float64) - want.astype(np.float64))
    both_nan = (got != got) & (want != want)
    return (got == want) | both_nan | (error <= limit)


def unlike(got: Arrays, wanted: Arrays) -> str:
    """Returns a message about the first float output whose direction differs from the expected one (a cosine below
    ALIKE), or ""."""
    for name, want in wanted.items():
        if want.dtype.kind != "f" or not want.size or name not in got:
            continue
        a, b = (array.astype(np.float64).ravel() for array in (got[name], want))
        norms = float(np.linalg.norm(a) * np.linalg.norm(b))
        cosine = float(a @ b) / norms if norms else float(np.array_equal(a, b))
        if not cosine >= ALIKE:
            return f"output '{name[:40]}' has cosine {cosine:.4f} with the expected one"
    return ""


def different_bits(got: Arrays, wanted: Arrays) -> str:
    """Returns a message about the first output whose bits differ, or "". NaN equals NaN."""
    for name, want in wanted.items():
        other = got[name]
        same = (other == want) | ((other != other) & (want != want))
        if other.shape != want.shape or not same.all():
            return f"output '{name[:40]}' differs in {int((~same).sum())} of {want.size} elements"
    return ""
