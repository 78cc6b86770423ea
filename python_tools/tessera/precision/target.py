# SPDX-License-Identifier: Apache-2.0
"""The target of a search: `--target "cos>=0.999"`, `"sqnr>=30"`, `"agree>=99"` or `"drop<=0.5"`."""
from __future__ import annotations

import difflib
import math
import re
from dataclasses import dataclass
from typing import Mapping

from ..errors import TesseraError, usage_error
from ..tasks.scale import Loss, Scale

METRICS = {"cos": ">=", "sqnr": ">=", "agree": ">=", "drop": "<="}
"""cos, sqnr, agree: least agreement of the outputs with f32 (tasks/agreement.py): mean cosine, signal to noise ratio in
dB, percentage of equal answers. drop: largest loss of the score against f32 in points (tasks/scale.py)."""
POOR_GUIDE = 0.05
"""The cosine is a poor measure if the allowed change exceeds this part of the change between different samples."""
_FORM = re.compile(r"\s*([A-Za-z_]\w*)\s*(<=|>=|==|=|<|>)\s*(\S+)\s*")


@dataclass(frozen=True)
class Target:
    """A target. metric: one of METRICS."""

    metric: str
    limit: float

    @staticmethod
    def parse(text: str) -> "Target":
        """Parses a target. Raises TesseraError (exit code 2) with the allowed forms."""
        allowed = ", ".join(f'"{metric}{sign}NUMBER"' for metric, sign in METRICS.items())
        match = _FORM.fullmatch(text)
        if not match:
            raise usage_error(f"--target '{text}': expected one of {allowed}")
        metric, sign, number = match.groups()
        if metric not in METRICS:
            near = difflib.get_close_matches(metric, METRICS, 1)
            raise usage_error(
                f"--target '{text}': unknown metric '{metric}'" + (f"; did you mean '{near[0]}'?" if near else ""),
                hint=f"allowed are {allowed}",
            )
        if sign != METRICS[metric]:
            raise usage_error(f"--target '{text}': '{metric}' is compared with {METRICS[metric]}, not {sign}")
        try:
            limit = float(number)
        except ValueError:
            limit = math.nan
        if not math.isfinite(limit):
            raise usage_error(f"--target '{text}': '{number}' is not a number")
        if metric == "cos" and not 0 < limit <= 1:
            raise usage_error(f"--target '{text}': a cosine is above 0 and at most 1")
        if metric == "agree" and not 0 < limit <= 100:
            raise usage_error(f"--target '{text}': a percentage of equal answers is above 0 and at most 100")
        return Target(metric, limit)

    @property
    def is_agreement(self) -> bool:
        """True if outputs are compared with f32's, without labels."""
        return self.metric != "drop"

    def __str__(self) -> str:
        return f"{self.metric}{METRICS[self.metric]}{self.limit:g}"


@dataclass(frozen=True)
class Verdict:
    """A candidate's figures compared with those of f32. loss: the value compared by `met`, smaller is better."""

    target: Target
    figures: dict[str, float]
    figure: str
    golden: float
    scale: Scale

    @property
    def lost(self) -> Loss:
        """The loss of the decisive figure against f32."""
        return self.scale.loss(self.golden, self.figures[self.figure])

    @property
    def value(self) -> float:
        """The value of the target's metric. NaN if the figure is NaN, which meets no target."""
        return self.figures[self.figure] if self.target.is_agreement else self.lost.points

    @property
    def loss(self) -> float:
        loss = -self.value if self.target.is_agreement else self.value
        return math.inf if math.isnan(loss) else loss

    @property
    def met(self) -> bool:
        return self.value >= self.target.limit if self.target.is_agreement else self.value <= self.target.limit

    def __str__(self) -> str:
        score = self.figures[self.figure]
        if self.target.is_agreement:
            return {"cos": f"cos {score:.6f}", "sqnr": f"sqnr {score:.2f} dB", "agree": f"agree {score:.2f} %"}[
                self.target.metric
            ]
        return f"{self.figure} {self.lost}"


def why_cosine_misleads(figures: Mapping[str, float], limit: float) -> str:
    """Explains why `cos` >= `limit` means little for a model with these figures; "" if it is meaningful."""
    said = []
    if "cos_others" in figures and 1 - limit > POOR_GUIDE * (1 - figures["cos_others"]):
        said.append(
            f"the outputs of f32 for different samples have a cosine of {figures['cos_others']:.5f} with each other, "
            f"so {limit:g} hardly distinguishes right from wrong answers"
        )
    if figures.get("agree", 100.0) < 99:
        said.append(f"{100 - figures['agree']:.1f} % of the answers differ from f32's")
    return "; ".join(said)


def check_figures(figures: dict[str, float], figure: str, what: str) -> None:
    """Raises TesseraError unless the decisive figure exists and is finite."""
    if figure not in figures:
        raise TesseraError(
            f"{what}: figure '{figure}' is missing; the scorer returned: {', '.join(figures)}",
            hint="a scorer must return the same figures for every model",
        )
    if not math.isfinite(figures[figure]):
        raise TesseraError(f"{what}: {figure} of the f32 model is {figures[figure]}: nothing can be compared with it")
