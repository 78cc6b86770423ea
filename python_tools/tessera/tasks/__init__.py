# SPDX-License-Identifier: Apache-2.0
"""Scores of real tasks (top-1, mAP, mIoU, PSNR, perplexity, ...) for any model that maps input arrays to output
arrays."""
from __future__ import annotations

import importlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Mapping, Protocol, Sequence

import numpy as np

from ..errors import TesseraError
from ..inputs import InputSpec
from ..preprocess import Preprocess
from .scale import Scale


class Model(Protocol):
    """A model to score, e.g. `tessera.bmodel.Net`. outputs: in the model's order; only their names matter."""

    @property
    def inputs(self) -> Sequence[InputSpec]:
        ...

    @property
    def outputs(self) -> Sequence[InputSpec]:
        ...

    def run(self, arrays: Mapping[str, np.ndarray]) -> Mapping[str, np.ndarray]:
        """Returns the outputs by name."""


@dataclass(frozen=True)
class Task:
    """A task. module: has score(model, data: Path) -> dict of figures; `figure` is the decisive one.

    scale: the figure's full scale; a hundredth of it is one point. warns: score takes a function `warn`.
    """

    module: str
    data: str
    figure: str
    scale: Scale = Scale()
    warns: bool = False

    def score(self, model: Any, data: Path, **more: object) -> dict[str, float]:
        return importlib.import_module(f".{self.module}", __name__).score(model, data, **more)


TASKS = {
    "classification": Task(
        "classification", "folder with labels.csv (columns file and one ending in 'index')", "top1", warns=True
    ),
    "detection": Task(
        "detection",
        "folder with COCO's annotations.json; the model is a YOLO, outputs boxes and scores like SSD, or has a "
        "--decoder",
        "mAP50",
    ),
    "segmentation": Task(
        "segmentation", "folder with COCO's annotations.json; the classes are those of PASCAL VOC", "mIoU"
    ),
    "super_resolution": Task("super_resolution", "folder of photos; the model enlarges luminance", "psnr", Scale(100)),
    "language": Task("language", "folder with *.txt and a llama2.c tokenizer *.bin", "ppl", Scale(None, True)),
    "tracking": Task("tracking", "folder with pairs.csv (template, search, ..., w, h)", "hit"),
}
LANGUAGE_TASKS = {
    "perplexity": Task("perplexity", "text file in UTF-8; --context tokens are a window", "ppl", Scale(None, True)),
    "multiple_choice": Task(
        "multiple_choice", ".jsonl file; each line has a question, a list of choices, and the answer's index", "acc"
    ),
}
"""Tasks for models of tessera llm, whose score takes a tessera.llm.LanguageModel."""


def only_input(model: Model, task: str) -> InputSpec:
    """Returns the model's only input. Raises TesseraError if it has several."""
    if len(model.inputs) != 1:
        raise TesseraError(
            f"--task {task} is for models with one input; this one has {len(model.inputs)}",
            details=["its inputs are: " + ", ".join(map(str, model.inputs))],
            hint="score it with your own function: --scorer FILE.py",
        )
    return model.inputs[0]


def read_picture(spec: InputSpec, picture: Path) -> np.ndarray:
    """Reads the picture as the input, with the model's pre-processing."""
    return (spec.preprocess or Preprocess()).apply(picture, spec.shape, spec.dtype)


def require_data(path: Path, task: str) -> Path:
    """Returns `path` if it exists; raises TesseraError otherwise."""
    if not path.exists():
        raise TesseraError(f"--task {task}: {path} is missing", hint=f"the task requires a {TASKS[task].data}")
    return path
