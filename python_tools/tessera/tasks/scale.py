# SPDX-License-Identifier: Apache-2.0
"""The unit of a score's drop: points, i.e. hundredths of the score's full scale.

Every limit on a drop (`--target "drop<=0.5"`, `--max_drop 0.5`) and every drop in the output is in this unit.
"""
from __future__ import annotations

import math
from dataclasses import dataclass

from ..errors import TesseraError

SERIOUS = 1 / 3
"""A model that loses more than this share of the f32 score is always reported."""
DECLARATION = "SCALE"
"""The name by which a scorer file declares its full scale."""


@dataclass(frozen=True)
class Scale:
    """The full scale of a figure.

    full: the distance in the figure's own unit that equals 100 points; None: the f32 model's figure, so that points are
    percent of it. lower_is_better: for figures such as perplexity. note: how an undeclared scale was determined.
    """

    full: float | None = 1.0
    lower_is_better: bool = False
    note: str = ""

    def loss(self, golden: float, score: float) -> "Loss":
        """Returns the loss of `score` against `golden`, the f32 model's figure."""
        full = abs(golden) if self.full is None else self.full
        lost = score - golden if self.lower_is_better else golden - score
        return Loss(golden, score, 100 * lost / full if full else (0.0 if lost == 0 else math.copysign(math.inf, lost)))


@dataclass(frozen=True)
class Loss:
    """A figure of the f32 model, the same figure of another model, and the loss in points."""

    golden: float
    score: float
    points: float

    @property
    def share(self) -> float:
        """The lost part of the f32 model's score; for a score of 0, the lost part of the full scale."""
        if self.golden == 0:
            return self.points / 100
        return math.copysign(abs(self.golden - self.score) / abs(self.golden), self.points)

    @property
    def is_serious(self) -> bool:
        return not self.share <= SERIOUS

    def __str__(self) -> str:
        gained = " gained" if self.points < 0 else ""
        return f"{self.golden:.5g} -> {self.score:.5g}, {abs(self.points):.3g} points{gained}"


def declared(value: object, where: str) -> Scale:
    """Returns the scale that a scorer file declares. Raises TesseraError unless `value` is a positive number."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value < math.inf:
        raise TesseraError(
            f"{where}: {DECLARATION} is {value!r}; expected a positive number",
            hint=f"{DECLARATION} = 1.0 for a score from 0 to 1, {DECLARATION} = 100 for percent",
        )
    return Scale(float(value))


def assumed(golden: float) -> Scale:
    """Returns the scale of an undeclared score, by the f32 model's figure: 1 for figures from 0 to 1, else 100."""
    full = 1.0 if 0 < golden <= 1 else 100.0
    return Scale(
        full,
        note=f"the scorer does not declare {DECLARATION}; its f32 score is {golden:.5g}, so a full scale of {full:g} "
        f"is assumed: a drop of {full / 100:g} is one point. Declare it in the scorer: {DECLARATION} = {full:g}",
    )


def serious_warning(name: str, loss: Loss, figure: str) -> str:
    """Returns the warning about a model that loses more than SERIOUS of the f32 score; "" for all other models."""
    if not loss.is_serious:
        return ""
    return f"{name} loses more than a third of the f32 model's {figure}: {loss}"
