# SPDX-License-Identifier: Apache-2.0
"""Creates a function that scores a model, from a task's name or a user's Python file."""
from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Callable, Iterator, Mapping

import numpy as np

from . import TASKS, agreement, detection_heads
from ..any_model import AnyModel
from ..calibration.dataset import Dataset, Unreadable, open_dataset, user_fault, user_function_and_names
from ..errors import TesseraError
from ..files import require_file
from ..output_error import Meter, OutputError, pick_samples
from .scale import DECLARATION, Scale, assumed, declared

AGREEMENT = "agreement"
SCORER_FUNCTION = "score"


@dataclass(frozen=True)
class Scorer:
    """A scoring function. score: returns the figures of a model. figure: the decisive one, "" for the first. scale: its
    full scale, None if a user's scorer does not declare one. errors: the output errors of the models that agreement has
    scored, by their paths."""

    score: Callable[[AnyModel], dict[str, float]]
    figure: str
    scale: Scale | None
    errors: dict[Path, OutputError] = field(default_factory=dict)

    def scale_for(self, golden: float, warn: Callable[[str], None]) -> Scale:
        """Returns the scale; `warn` reports an assumed one. golden: the f32 model's figure."""
        if self.scale:
            return self.scale
        scale = assumed(golden)
        warn(scale.note)
        return scale


def make_scorer(
    task: str | None,
    scorer: str | None,
    data: str,
    input_num: int,
    golden: AnyModel,
    warn: Callable[[str], None],
    decoder: str | None = None,
    figure: str = "cos",
) -> Scorer:
    """Creates a scorer from `task` or `scorer` (a file). decoder: a file, for detection. golden: the model with which
    agreement compares, on at most `input_num` samples. figure: the decisive figure of agreement."""
    if scorer:
        return _user_scorer(Path(scorer), data)
    if task != AGREEMENT:
        known = TASKS[str(task)]
        more: dict[str, object] = {"decoder": detection_heads.users(decoder)} if decoder else {}
        if known.warns:
            more["warn"] = warn
        return Scorer(lambda model: _numbers(known.score(model, Path(data), **more)), known.figure, known.scale)
    return _agreement(golden, open_dataset(data, golden.inputs, input_num), warn, figure)


def _agreement(golden: AnyModel, dataset: Dataset, warn: Callable[[str], None], figure: str) -> Scorer:
    skipped: set[str] = set()
    measured = pick_samples(range(dataset.count), [*golden.inputs, *golden.outputs])
    errors: dict[Path, OutputError] = {}

    def samples() -> Iterator[tuple[int, Mapping[str, np.ndarray]]]:
        for sample in dataset.samples():
            try:
                yield sample.number, sample.load(golden.inputs)
            except Unreadable as error:
                if sample.name not in skipped:
                    skipped.add(sample.name)
                    warn(f"left out: {error}")

    def score(model: AnyModel) -> dict[str, float]:
        meter = Meter({**model.origins, **golden.origins})
        figures = _numbers(agreement.score(model, golden, samples(), meter, measured))
        errors[model.path] = meter.result()
        return figures

    return Scorer(score, figure, Scale(), errors)


def _numbers(figures: Mapping[str, float]) -> dict[str, float]:
    return {str(name): float(value) for name, value in figures.items()}


def _user_scorer(path: Path, data: str) -> Scorer:
    require_file(path, "scorer")
    function, names = user_function_and_names(
        path, "--scorer", f"{SCORER_FUNCTION}()", f"def {SCORER_FUNCTION}(model, data): return 0.75"
    )
    scale = declared(names[DECLARATION], f"--scorer {path}") if DECLARATION in names else None

    def score(model: AnyModel) -> dict[str, float]:
        try:
            result = function(model, data)
        except TesseraError:
            raise
        except Exception as error:
            raise user_fault(path, error) from error
        try:
            numbers = _numbers(result if isinstance(result, Mapping) else {"score": result})
        except (TypeError, ValueError):
            numbers = {}
        if not numbers:
            raise TesseraError(
                f"--scorer {path}: {SCORER_FUNCTION}() returned {result!r}",
                hint="it must return a number or a non-empty dict of numbers",
            )
        return numbers

    return Scorer(score, "", scale)
