# SPDX-License-Identifier: Apache-2.0
"""Runs the quantised model in several variants and measures the output errors against the f32 model.

INT8 and INT16 models are simulated, because compiling them takes longer than running all samples: the f32 model, whose
kernels are already compiled, runs with the rounded weights, and its tensors are rounded as it runs. Sums are computed
in float and attention's powers are not rounded; otherwise the results equal those of the compiled model.
"""
from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Callable, Collection, Mapping, Sequence

import numpy as np

from .. import top_model
from ..bmodel import Net
from ..compile_driver import side_by_side
from ..families import HOST
from ..output_error import judged, relative, squares_between
from ..progress import Report
from ..top_model import TopModel
from .dataset import Dataset, readable
from .learn import save
from .rounding import Rounded
from .table import Table
from .worker import Candidate, Job, Worker, opened

SIMULATED = ("INT8", "INT16")
KEPT = 256 << 20
"""Bytes of f32 outputs that are kept instead of computed again."""
Run = Callable[[Mapping[str, np.ndarray]], Mapping[str, np.ndarray]]


@dataclass(frozen=True)
class Way:
    """A variant of the quantised model: a table, weights by the contractions' names, and factors by tensor."""

    table: Table
    weights: Mapping[str, Rounded]
    factors: Mapping[str, np.ndarray]


@dataclass(frozen=True)
class Tried:
    """Result of a run. error: relative error of the outputs. Of simulated models, narrow: scale and zero point of
    tensors in 8 bits; wide: scale and greatest integer of tensors in 16 bits. attention: of tensors that
    attention reads as q, k or v, the name of its q and its number of multiplications."""

    error: float
    narrow: Mapping[str, tuple[float, int]]
    wide: Mapping[str, tuple[float, int]] = field(default_factory=dict)
    attention: Mapping[str, tuple[str, float]] = field(default_factory=dict)


class Simulated:
    """Open models for simulation, by the compiler's hash of their contents. Most tables round the weights alike, so
    their models differ only in the quantisation of tensors."""

    MOST = 3

    def __init__(self) -> None:
        self._open: dict[str, tuple[Worker, Mapping[str, str]]] = {}

    def snapshot(self) -> "dict[str, tuple[Worker, Mapping[str, str]]]":
        """Returns the open models, each with the sources of its tensors, as a copy that other threads do not change."""
        return dict(self._open)

    def used(self, contents: str, model: "tuple[Worker, Mapping[str, str]]") -> None:
        """Keeps the MOST recently used models."""
        self._open[contents] = self._open.pop(contents, model)
        for oldest in list(self._open)[: -self.MOST]:
            self._open.pop(oldest, None)


class Golden:
    """Shared state of the trials of one model: the f32 model's judged outputs by sample, so that it runs once on each
    as far as memory allows, and the simulated models."""

    def __init__(self, job: Job) -> None:
        self._job = job
        self.simulated = Simulated()
        self._known: dict[int, dict[str, np.ndarray]] = {}
        self._size = 0

    def of(self, number: int, arrays: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Returns the judged outputs of sample `number`, whose inputs are `arrays`."""
        if number in self._known:
            return self._known[number]
        worker = opened(self._job)
        worker.run(arrays)
        outputs = worker.judged()
        self.remember(number, outputs)
        return outputs

    def remember(self, number: int, outputs: dict[str, np.ndarray]) -> None:
        """Stores the judged outputs that another run of the model has computed."""
        size = sum(array.nbytes for array in outputs.values())
        if self._size + size <= KEPT:
            self._known[number] = outputs
            self._size += size


@dataclass
class Opened:
    """A variant's open model. narrow, wide, attention: as in Tried. worker: holds a simulated model open. squares: of
    its outputs (output_error.py), by sample."""

    run: Run
    narrow: Mapping[str, tuple[float, int]]
    worker: Worker | None = None
    wide: Mapping[str, tuple[float, int]] = field(default_factory=dict)
    attention: Mapping[str, tuple[str, float]] = field(default_factory=dict)
    squares: dict[int, np.ndarray] = field(default_factory=dict)


@dataclass(frozen=True)
class Trial:
    """Runs variants of one model. precision, flags: as for the compiler. folder: for temporary files. golden: shared
    f32 outputs, if there are any."""

    model: TopModel
    precision: str
    flags: tuple[str, ...]
    folder: Path
    golden: Golden | None = None

    def output_errors(self, job: Job, dataset: Dataset, numbers: Collection[int], ways: Sequence[Way]) -> list[float]:
        """Returns the relative errors of the outputs against f32 on the samples `numbers`, one per variant."""
        return [tried.error for tried in self.run(job, dataset, numbers, ways)]

    def run(self, job: Job, dataset: Dataset, numbers: Collection[int], ways: Sequence[Way]) -> list[Tried]:
        """Returns errors and quantisation of all variants on the samples `numbers`."""
        return self.measure(job, self.open(job, ways), dataset, numbers)

    def open(self, job: Job, ways: Sequence[Way]) -> list[Opened]:
        """Opens the variants' models, which can then be measured on more and more samples."""
        open_one = self._simulate if self._simulated else self._open
        names = [f"trial{i}" for i in range(len(ways))]
        return side_by_side([partial(open_one, job, name, way) for name, way in zip(names, ways)])

    def measure(self, job: Job, models: Sequence[Opened], dataset: Dataset, numbers: Collection[int]) -> list[Tried]:
        """Returns each model's error on the samples `numbers`; runs it only on new samples."""
        golden = self.golden if self._simulated and self.golden else None
        golden = golden or Golden(job if self._simulated else replace(job, logits=()))
        origins = dict(job.origins)
        left = {n for n in numbers if any(n not in one.squares for one in models)}
        for number, arrays in readable(dataset, left, job.specs) if left else ():
            wanted = golden.of(number, arrays)
            for one in models:
                if number not in one.squares:
                    one.squares[number] = squares_between(wanted, one.run(arrays), origins)
        found = [[one.squares[n] for n in sorted(numbers) if n in one.squares] for one in models]
        errors = (math.sqrt(relative(squares)) for squares in found)
        return [Tried(error, one.narrow, one.wide, one.attention) for error, one in zip(errors, models)]

    @property
    def _simulated(self) -> bool:
        return self.precision in SIMULATED

    def _deploy(self, name: str, way: Way, *flags: str) -> tuple[Path, dict]:
        """Returns the .bmodel and the compiler's result."""
        path = self.folder / f"{name}.json"
        save(path, way.table, way.weights, way.factors)
        bmodel = path.with_suffix(".bmodel")
        extra = ["--calibration-table", str(path), *flags, *self.flags]
        quiet = Report(1, quiet=True)
        return bmodel, top_model.deploy(self.model, bmodel, quiet, chip=HOST, quantize=self.precision, extra=extra)

    def _open(self, job: Job, name: str, way: Way) -> Opened:
        net = Net(self._deploy(name, way)[0])
        return Opened(lambda arrays: judged(net.run(arrays), dict(job.origins)), {})

    def _simulate(self, job: Job, name: str, way: Way) -> Opened:
        simulated = self.golden.simulated if self.golden else Simulated()
        known = simulated.snapshot()
        bmodel, info = self._deploy(name, way, "--observe", *(["--known", ",".join(known)] if known else []))
        if info["known"]:
            worker, sources = known[info["contents"]]
        else:
            sources = {tensor["name"]: tensor["source"] for tensor in info["tensors"]}
            # The key has to be unique: an older model may have the same path.
            worker = Worker(replace(job, key=f"{job.key} {name} {self.precision}", model=str(bmodel)))
        simulated.used(info["contents"], (worker, sources))
        forms = {
            sources[form["name"]]: Candidate(form["scale"], form["zero_point"], form["lowest"], form["highest"])
            for form in info["forms"]
            if sources.get(form["name"])
        }
        narrow = {f["name"]: (f["scale"], f["zero_point"]) for f in info["forms"] if f["highest"] == 127}
        wide = {f["name"]: (f["scale"], f["highest"]) for f in info["forms"] if f["highest"] > 127}
        readers = ((f["name"], f["attention"], float(f["attention_products"])) for f in info["forms"])
        attention = {name: (reader, contractions) for name, reader, contractions in readers if reader}
        return Opened(partial(worker.simulate, forms=forms), narrow, worker, wide, attention)
