# SPDX-License-Identifier: Apache-2.0
"""The quantised model in several ways, and how far their outputs are from those of the f32 model.

INT8 and INT16 are not compiled, which takes longer than all samples: the f32 model is, with the rounded weights (its
kernels are there), and its tensors are rounded as it runs. The sums are those of floats, and attention's powers are
not rounded; otherwise it computes what the compiled one does.
"""
from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Callable, Collection, Mapping, Sequence

import numpy as np

from .. import top_model
from ..bmodel import Net
from ..compile_driver import side_by_side
from ..progress import Report
from ..top_model import TopModel
from .dataset import Dataset, readable
from .learn import save
from .output_error import judged, relative, squares_between
from .rounding import Rounded
from .table import Table
from .worker import Form, Job, Worker

SIMULATED = ("INT8", "INT16")
Run = Callable[[Mapping[str, np.ndarray]], Mapping[str, np.ndarray]]


@dataclass(frozen=True)
class Way:
    """A table, with weights by the products' names and factors by those of tensors."""

    table: Table
    weights: Mapping[str, Rounded]
    factors: Mapping[str, np.ndarray]


@dataclass(frozen=True)
class Tried:
    """error: relative, of the outputs. narrow: scale and zero point of tensors in 8 bits; of models that are
    simulated."""

    error: float
    narrow: Mapping[str, tuple[float, int]]


@dataclass(frozen=True)
class Trial:
    """precision, flags: as for the compiler. folder: for files that nobody needs later."""

    model: TopModel
    precision: str
    flags: tuple[str, ...]
    folder: Path

    def output_errors(self, job: Job, dataset: Dataset, numbers: Collection[int], ways: Sequence[Way]) -> list[float]:
        """Relative errors of the outputs against f32 on the samples `numbers`, one for each way."""
        return [tried.error for tried in self.run(job, dataset, numbers, ways)]

    def run(self, job: Job, dataset: Dataset, numbers: Collection[int], ways: Sequence[Way]) -> list[Tried]:
        """The same, and what was decided."""
        simulated = self.precision in SIMULATED
        open_one = self._simulate if simulated else self._open
        nets = side_by_side([partial(open_one, job, f"trial{i}", way) for i, way in enumerate(ways)])
        worker = Worker(job if simulated else replace(job, logits=()))
        errors: list[list[np.ndarray]] = [[] for _ in nets]
        for _, arrays in readable(dataset, numbers, job.specs):
            worker.run(arrays)
            golden = worker.judged()
            for (run, _), found in zip(nets, errors):
                found.append(squares_between(golden, run(arrays), job.probabilities))
        return [Tried(math.sqrt(relative(found)), narrow) for found, (_, narrow) in zip(errors, nets)]

    def _deploy(self, name: str, way: Way, *flags: str) -> tuple[Path, dict]:
        """The .bmodel and what the compiler tells of it."""
        path = self.folder / f"{name}.json"
        save(path, way.table, way.weights, way.factors)
        bmodel = path.with_suffix(".bmodel")
        extra = ["--calibration-table", str(path), *flags, *self.flags]
        quiet = Report(1, quiet=True)
        return bmodel, top_model.deploy(self.model, bmodel, quiet, chip="x86", quantize=self.precision, extra=extra)

    def _open(self, job: Job, name: str, way: Way) -> tuple[Run, dict[str, tuple[float, int]]]:
        net = Net(self._deploy(name, way)[0])
        return (lambda arrays: judged(net.run(arrays), job.probabilities)), {}

    def _simulate(self, job: Job, name: str, way: Way) -> tuple[Run, dict[str, tuple[float, int]]]:
        bmodel, told = self._deploy(name, way, "--observe")
        sources = {tensor["name"]: tensor["source"] for tensor in told["tensors"]}
        forms = {
            sources[form["name"]]: Form(form["scale"], form["zero_point"], form["lowest"], form["highest"])
            for form in told["forms"]
            if sources.get(form["name"])
        }
        # Of the same path there may be an older one.
        worker = Worker(replace(job, key=f"{job.key} {name} {self.precision}", model=str(bmodel)))
        narrow = {f["name"]: (f["scale"], f["zero_point"]) for f in told["forms"] if f["highest"] == 127}
        return partial(worker.simulate, forms=forms), narrow
