# SPDX-License-Identifier: Apache-2.0
"""What a search is to reach: `--target "cos>=0.999"` or `--target "drop<=0.5"`."""
from __future__ import annotations

import difflib
import math
import re
from dataclasses import dataclass

from ..errors import TesseraError, usage_error

METRICS = {"cos": ">=", "drop": "<="}
"""cos: least mean cosine of the outputs with those of f32; drop: most points of the score lost against f32."""
_FORM = re.compile(r"\s*([A-Za-z_]\w*)\s*(<=|>=|==|=|<|>)\s*(\S+)\s*")


@dataclass(frozen=True)
class Target:
    """metric: "cos" or "drop"."""

    metric: str
    limit: float

    @staticmethod
    def parse(text: str) -> "Target":
        """Raises TesseraError (exit code 2) that says what is allowed."""
        allowed = ", ".join(f'"{metric}{sign}NUMBER"' for metric, sign in METRICS.items())
        match = _FORM.fullmatch(text)
        if not match:
            raise usage_error(f"--target '{text}': expected one of {allowed}")
        metric, sign, number = match.groups()
        if metric not in METRICS:
            near = difflib.get_close_matches(metric, METRICS, 1)
            raise usage_error(
                f"--target '{text}': unknown metric '{metric}'" + (f"; is it '{near[0]}'?" if near else ""),
                hint=f"allowed are {allowed}",
            )
        if sign != METRICS[metric]:
            raise usage_error(f"--target '{text}': '{metric}' is compared with {METRICS[metric]}, not {sign}")
        try:
            limit = float(number)
        except ValueError:
            limit = math.nan
        if not math.isfinite(limit):
            raise usage_error(f"--target '{text}': '{number}' is no number")
        if metric == "cos" and not 0 < limit <= 1:
            raise usage_error(f"--target '{text}': a cosine is above 0 and at most 1")
        return Target(metric, limit)

    def __str__(self) -> str:
        return f"{self.metric}{METRICS[self.metric]}{self.limit:g}"


@dataclass(frozen=True)
class Verdict:
    """A candidate's figures held against those of f32. loss: in points, what `met` compares; smaller is better."""

    target: Target
    figures: dict[str, float]
    figure: str
    golden: float
    points: float

    @property
    def value(self) -> float:
        """Of the target's metric. NaN where the figure is NaN: that meets nothing."""
        score = self.figures[self.figure]
        return score if self.target.metric == "cos" else (self.golden - score) * self.points

    @property
    def loss(self) -> float:
        loss = -self.value if self.target.metric == "cos" else self.value
        return math.inf if math.isnan(loss) else loss

    @property
    def met(self) -> bool:
        return self.value >= self.target.limit if self.target.metric == "cos" else self.value <= self.target.limit

    def __str__(self) -> str:
        score = self.figures[self.figure]
        if self.target.metric == "cos":
            return f"cos {score:.6f}"
        return f"{self.figure} {score:.5g} against {self.golden:.5g}: {self.value:+.3f} points lost"


def check_figures(figures: dict[str, float], figure: str, what: str) -> None:
    """Raises TesseraError unless the figure that counts is there and finite."""
    if figure not in figures:
        raise TesseraError(
            f"{what}: no figure '{figure}' this time; it had: {', '.join(figures)}",
            hint="a scorer must return the same figures for every model",
        )
    if not math.isfinite(figures[figure]):
        raise TesseraError(f"{what}: {figure} of the f32 model is {figures[figure]}: nothing can be held against it")
