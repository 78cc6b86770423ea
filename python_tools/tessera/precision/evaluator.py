# SPDX-License-Identifier: Apache-2.0
"""Compiles the model with given types and runs it: output error on a few samples, score on all data."""
from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Mapping, Sequence

import numpy as np

from .. import any_model, top_model
from ..any_model import AnyModel
from ..calibration.worker import digest
from ..errors import ExitCode, TesseraError
from ..inputs import check_inputs
from ..output_error import SAMPLES, Meter
from ..progress import Report
from ..tasks.scale import Scale
from ..tasks.scorers import Scorer
from ..top_model import TopModel
from . import qtable
from .cost import Op, Rates, ops_of, rates_of, total
from .journal import Journal
from .search import Impossible, Measure, Types
from .target import Target, Verdict, check_figures

Arrays = Mapping[str, np.ndarray]


class Recorder:
    """The f32 model during scoring: keeps evenly spread samples with their outputs, and digests of all samples.

    Keeps at most 2 * SAMPLES samples; when full, every second one is dropped and the sampling stride doubles.
    """

    def __init__(self, model: AnyModel) -> None:
        self.model = replace(model, run=self._run)
        self._golden = model
        self.digests: list[str] = []
        self._kept: list[tuple[Arrays, Mapping[str, np.ndarray]]] = []
        self._stride = 1

    def _run(self, arrays: Arrays) -> Mapping[str, np.ndarray]:
        checked = check_inputs(arrays, self._golden.inputs, "the input")
        outputs = self._golden.run(checked)
        if len(self.digests) % self._stride == 0:
            if len(self._kept) == 2 * SAMPLES:
                self._kept, self._stride = self._kept[::2], self._stride * 2
            if len(self.digests) % self._stride == 0:
                self._kept.append(({name: array.copy() for name, array in checked.items()}, outputs))
        self.digests.append(digest(checked, self._golden.inputs))
        return outputs

    def guides(self) -> list[tuple[Arrays, Mapping[str, np.ndarray]]]:
        """Returns at most SAMPLES of the kept samples, evenly spread."""
        count = min(SAMPLES, len(self._kept))
        return [self._kept[i * len(self._kept) // count] for i in range(count)]


@dataclass(frozen=True)
class Setup:
    """Settings shared by all candidates. lines: the user's table lines, never changed. extra: further compiler
    flags."""

    model: TopModel
    chip: str
    extra: Sequence[str]
    lines: Sequence[qtable.Line]
    folder: Path
    threads: int


@dataclass
class CompiledEvaluator:
    """A bench (search.py) with the real compiler and runtime."""

    setup: Setup
    scorer: Scorer
    target: Target
    figure: str
    golden: float
    scale: Scale
    guides: Sequence[tuple[Arrays, Mapping[str, np.ndarray]]]
    journal: Journal
    errors_measured: int = 0
    scores_taken: int = 0
    compiled: int = 0
    rates: Rates | None = None
    """Rates of the chip, known once something has been compiled."""
    _ready: "tuple[dict[str, str], Path] | None" = None
    _ops: dict[str, list[Op]] = field(default_factory=dict)

    def measure(self, types: Types) -> Measure:
        known = self.journal.get("error", types)
        if known is None:
            net = self._open(types)
            known = [self._error(net), self.cost(types)]
            self.errors_measured += 1
            self.journal.put("error", types, known)
        return Measure(*known)

    def verdict(self, types: Types) -> Verdict:
        known = self.journal.get("score", types)
        if known is None:
            figures = self.scorer.score(self._open(types))
            if self.figure not in figures:
                check_figures(figures, self.figure, "a quantised model's score")
            known = [figures, self.cost(types)]
            self.scores_taken += 1
            self.journal.put("score", types, known)
        return Verdict(self.target, known[0], self.figure, self.golden, self.scale)

    def cost(self, types: Types) -> float:
        for kind in ("error", "score"):
            if known := self.journal.get(kind, types):
                return float(known[1])
        return self.cost_of(self.ops(types), {})

    def cost_of(self, ops: Sequence[Op], types: Types) -> float:
        """Returns the estimated time on the chip of compiled ops. types: by name, where they differ from the ops'."""
        assert self.rates
        return total(ops, self.rates, types)

    def ops(self, types: Types) -> list[Op]:
        """Returns the ops as compiled with the given types."""
        key = repr(sorted(types.items()))
        if key not in self._ops:
            self._compile(types)
        return self._ops[key]

    def _error(self, net: AnyModel) -> float:
        meter = Meter(self.setup.model.origins)
        for arrays, wanted in self.guides:
            meter.add(wanted, net.run(arrays))
        error = meter.result().error ** 2
        return error if math.isfinite(error) else 1e30

    def _open(self, types: Types) -> AnyModel:
        return any_model.open_model(self._compile(types), Report(1, quiet=True), self.setup.threads)

    def _compile(self, types: Types) -> Path:
        if self._ready and self._ready[0] == dict(types):
            return self._ready[1]
        table, output = self.setup.folder / "candidate.json", self.setup.folder / "candidate.bmodel"
        lines = [*self.setup.lines, *(qtable.Line(name, type_) for name, type_ in types.items())]
        qtable.save(table, "candidate", lines)
        try:
            result = top_model.deploy(
                self.setup.model,
                output,
                Report(1, quiet=True),
                chip=self.setup.chip,
                quantize="INT8",
                extra=[*self.setup.extra, "--quantize-table", str(table)],
            )
        except TesseraError as error:
            if types and error.code in (ExitCode.ERROR, ExitCode.UNSUPPORTED, ExitCode.USAGE):
                raise Impossible(error.message) from error
            raise
        self.compiled += 1
        self.rates = rates_of(result["quantization"])
        self._ops[repr(sorted(types.items()))] = ops_of(result["quantization"])
        self._ready = dict(types), output
        return output
