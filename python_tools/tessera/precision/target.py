# SPDX-License-Identifier: Apache-2.0
"""What a search is to reach: `--target "cos>=0.999"`, `"sqnr>=30"`, `"agree>=99"` or `"drop<=0.5"`."""
from __future__ import annotations

import difflib
import math
import re
from dataclasses import dataclass
from typing import Mapping

from ..errors import TesseraError, usage_error
from ..tasks.scale import Loss, Scale

METRICS = {"cos": ">=", "sqnr": ">=", "agree": ">=", "drop": "<="}
"""cos, sqnr, agree: least agreement of the outputs with those of f32 (tasks/agreement.py): their mean cosine, the
signal to noise ratio in dB, the percentage of equal answers; drop: most points of the score lost against f32
(tasks/scale.py)."""
POOR_GUIDE = 0.05
"""A cosine that moves by more than this part of what another input would move it by says little."""
_FORM = re.compile(r"\s*([A-Za-z_]\w*)\s*(<=|>=|==|=|<|>)\s*(\S+)\s*")


@dataclass(frozen=True)
class Target:
    """metric: one of METRICS."""

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
        if metric == "agree" and not 0 < limit <= 100:
            raise usage_error(f"--target '{text}': a percentage of equal answers is above 0 and at most 100")
        return Target(metric, limit)

    @property
    def is_agreement(self) -> bool:
        """Whether outputs are compared with f32's, without labels."""
        return self.metric != "drop"

    def __str__(self) -> str:
        return f"{self.metric}{METRICS[self.metric]}{self.limit:g}"


@dataclass(frozen=True)
class Verdict:
    """A candidate's figures held against those of f32. loss: in points, what `met` compares; smaller is better."""

    target: Target
    figures: dict[str, float]
    figure: str
    golden: float
    scale: Scale

    @property
    def lost(self) -> Loss:
        """The loss of the figure that counts against that of f32."""
        return self.scale.loss(self.golden, self.figures[self.figure])

    @property
    def value(self) -> float:
        """Of the target's metric. NaN where the figure is NaN: that meets nothing."""
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
    """What `cos` >= `limit` leaves unsaid about a model of such figures; "" where it is a guide."""
    said = []
    if "cos_others" in figures and 1 - limit > POOR_GUIDE * (1 - figures["cos_others"]):
        said.append(
            f"the outputs of f32 for different samples have a cosine of {figures['cos_others']:.5f} with each other, "
            f"so {limit:g} hardly tells a right answer from another one's"
        )
    if figures.get("agree", 100.0) < 99:
        said.append(f"{100 - figures['agree']:.1f} % of the answers are not those of f32")
    return "; ".join(said)


def check_figures(figures: dict[str, float], figure: str, what: str) -> None:
    """Raises TesseraError unless the figure that counts is there and finite."""
    if figure not in figures:
        raise TesseraError(
            f"{what}: no figure '{figure}' this time; it had: {', '.join(figures)}",
            hint="a scorer must return the same figures for every model",
        )
    if not math.isfinite(figures[figure]):
        raise TesseraError(f"{what}: {figure} of the f32 model is {figures[figure]}: nothing can be held against it")
