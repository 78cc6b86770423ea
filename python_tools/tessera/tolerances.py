# SPDX-License-Identifier: Apache-2.0
"""The default tolerances of checks: one table for all commands, explained in docs/numerics.md."""
from __future__ import annotations

from .compare import FLOAT32_FLOOR, Tolerance
from .errors import TesseraError, usage_error

DEFAULT = {
    "F32": Tolerance(0.9999, 0.999, floor=FLOAT32_FLOOR),
    "INT8": Tolerance(0.99, 0.9, floor=FLOAT32_FLOOR),
    "INT16": Tolerance(0.999, 0.95, floor=FLOAT32_FLOOR),
    "BF16": Tolerance(0.999, 0.95, floor=FLOAT32_FLOOR),
    "F16": Tolerance(0.9999, 0.99, floor=FLOAT32_FLOOR),
    "W8": Tolerance(0.999, 0.95, floor=FLOAT32_FLOOR),
    "W4": Tolerance(0.95, 0.7, floor=FLOAT32_FLOOR),
    "W8A8": Tolerance(0.99, 0.9, floor=FLOAT32_FLOOR),
    "W4A8": Tolerance(0.95, 0.7, floor=FLOAT32_FLOOR),
    "DYNAMIC_INT8": Tolerance(0.99, 0.9, floor=FLOAT32_FLOOR),
}
"""Least similarity of every tensor by precision."""
LEAST_OUTPUT_COSINE = 0.5
"""A quantised model with an output below this, over all samples of the check, is broken rather than coarse."""


def of_float_model(narrow: str) -> Tolerance:
    """Returns the tolerance of a model that is not quantised. narrow: the narrowest type of its floats; values rounded
    to 16 bits differ by the corresponding tolerance between engines."""
    return DEFAULT[{"f16": "F16", "bf16": "BF16"}.get(narrow, "F32")]


METAVAR = "COS[,EUCLID]|PRECISION"
ALL = ", ".join(f"{precision} {tolerance.cosine:g},{tolerance.euclid:g}" for precision, tolerance in DEFAULT.items())
"""For --help."""


def parse(text: str | None, precision: str = "F32") -> Tolerance:
    """Parses --tolerance: 'cos', 'cos,euclid' or the name of a precision; None: the default of `precision`. Raises a
    usage error."""
    if text is None:
        return DEFAULT[precision]
    if text.upper() in DEFAULT:
        return DEFAULT[text.upper()]
    try:
        return Tolerance.parse(text, FLOAT32_FLOOR)
    except TesseraError as error:
        raise usage_error(f"{error.message}, or a precision: {', '.join(DEFAULT)}") from error
