# SPDX-License-Identifier: Apache-2.0
"""Integer weights of a language model, chosen with windows of a text: rounding with error feedback (rounding.py), for
the inputs that the matmuls of the f32 model have."""
from __future__ import annotations

from pathlib import Path
from typing import Callable, Mapping, Sequence

import numpy as np

from ..background import each
from ..errors import TesseraError
from ..llm.likelihood import log_probabilities
from ..tasks.perplexity import Windows
from ..top_model import TopModel
from .contractions import Contraction, Statistics, bytes_of
from .learn import read_contractions, save
from .observed import Observed
from .rounding import LEAST_ROWS, Rounded, round_alone
from .table import Table
from .worker import Worker

LARGEST_K = 8192
"""Longer sums keep the default rounding."""
BUDGET = 1 << 30
"""Bytes of second moments at a time; beyond that the windows run several times."""
_INPUT, _OUTPUT = "input_ids", "logits"


class Observer:
    """The f32 model with visible tensors. model: returns the logits of all tokens."""

    def __init__(self, model: TopModel, observed: Observed) -> None:
        self._observed, self._worker = observed, Worker(observed.job())
        self._empty = model.initial_states()
        self.contractions = read_contractions(observed.info["products"], observed.weights)

    def run(self, window: Sequence[int]) -> Worker:
        """Reads a window with empty caches."""
        self._worker.run({_INPUT: np.asarray([window], np.int64), **self._empty})
        return self._worker

    def perplexity(self, windows: Windows) -> float:
        """Returns the perplexity of windows, as score_windows defines it."""
        logs = []
        for window in windows.tokens:
            logits = self.run(window).outputs()[_OUTPUT][0, windows.first - 1 : -1]
            logs.append(log_probabilities(logits, window[windows.first :]))
        return float(np.exp(-np.concatenate(logs).mean()))

    def round(
        self,
        to_round: Sequence[Contraction],
        four_bits: bool,
        halves: bool,
        windows: Windows,
        progress: Callable[[int, int], None],
    ) -> dict[str, Rounded]:
        """Returns the weights by the names of the contractions, except those that read NaN or infinity. halves: f16
        holds the scales exactly."""
        found: dict[str, Rounded] = {}
        batches, count = _batches(to_round), len(windows.tokens)
        for number, batch in enumerate(batches):
            statistics = self._statistics(
                batch, windows, lambda done: progress(number * count + done, len(batches) * count)
            )
            usable = [contraction for some in batch for contraction in some if statistics[contraction.input].is_finite]
            choose = lambda each_one: round_alone(each_one, statistics[each_one.input], four_bits, halves=halves)
            found.update(zip((contraction.name for contraction in usable), each(choose, usable)))
        return found

    def _statistics(
        self, batch: Sequence[Sequence[Contraction]], windows: Windows, progress: Callable[[int], None]
    ) -> dict[str, Statistics]:
        """Returns the moments of the inputs by their names."""
        statistics = {some[0].input: Statistics(some[0]) for some in batch}
        for number, window in enumerate(windows.tokens):
            worker = self.run(window)
            each(lambda name: statistics[name].add(self._observed.array(worker, name), number, None), statistics)
            progress(number + 1)
        return statistics


def to_round(contractions: Sequence[Contraction], rows: int, four_bits: bool) -> list[Contraction]:
    """Returns the matmuls whose weights `rows` tokens can round. four_bits: only those that have 4 bits."""
    return [
        p
        for p in contractions
        if p.kind == "matmul"
        and p.depth <= LARGEST_K
        and rows >= LEAST_ROWS * p.depth
        and (p.bits == 4 or not four_bits)
    ]


def _batches(contractions: Sequence[Contraction]) -> list[list[list[Contraction]]]:
    """Returns batches of the contractions that read the same tensor."""
    together: dict[str, list[Contraction]] = {}
    for contraction in contractions:
        together.setdefault(contraction.input, []).append(contraction)
    batches: list[list[list[Contraction]]] = []
    size = 0
    for some in together.values():
        size += bytes_of(some[0])
        if not batches or size > BUDGET:
            batches.append([])
            size = bytes_of(some[0])
        batches[-1].append(some)
    return batches


def write_table(path: Path, model: str, model_hash: str, windows: Windows, weights: Mapping[str, Rounded]) -> None:
    """Writes a calibration table without ranges, and the weights beside it."""
    save(path, Table(model, model_hash, "gptq", len(windows.tokens), "", ()), weights, {})
