# SPDX-License-Identifier: Apache-2.0
"""The quantised model compiled in several ways, and how far their outputs are from those of the f32 model."""
from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Collection, Mapping, Sequence

import numpy as np

from .. import top_model
from ..bmodel import Net
from ..compile_driver import side_by_side
from ..progress import Report
from ..top_model import TopModel
from .dataset import Dataset, readable
from .learn import save
from .output_error import relative, squares
from .rounding import Rounded
from .table import Table
from .worker import Job, Worker


@dataclass(frozen=True)
class Way:
    """A table, with weights by the products' names and factors by those of tensors."""

    table: Table
    weights: Mapping[str, Rounded]
    factors: Mapping[str, np.ndarray]


@dataclass(frozen=True)
class Trial:
    """precision, flags: as for the compiler. folder: for files that nobody needs later."""

    model: TopModel
    precision: str
    flags: tuple[str, ...]
    folder: Path

    def output_errors(self, job: Job, dataset: Dataset, numbers: Collection[int], ways: Sequence[Way]) -> list[float]:
        """Relative errors of the outputs against f32 on the samples `numbers`, one for each way."""
        nets = side_by_side([partial(self._open, f"trial{i}", way) for i, way in enumerate(ways)])
        worker = Worker(job)
        errors: list[list[np.ndarray]] = [[] for _ in nets]
        for _, arrays in readable(dataset, numbers, job.specs):
            worker.run(arrays)
            golden = worker.outputs()
            for net, found in zip(nets, errors):
                found.append(squares(golden, net.run(arrays), job.probabilities))
        return [math.sqrt(relative(found)) for found in errors]

    def _open(self, name: str, way: Way) -> Net:
        path = self.folder / f"{name}.json"
        save(path, way.table, way.weights, way.factors)
        top_model.deploy(
            self.model,
            path.with_suffix(".bmodel"),
            Report(1, quiet=True),
            chip="x86",
            quantize=self.precision,
            extra=["--calibration-table", str(path), *self.flags],
        )
        return Net(path.with_suffix(".bmodel"))
