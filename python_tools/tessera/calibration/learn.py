# SPDX-License-Identifier: Apache-2.0
"""Learns weights from samples: runs the model once more, accumulates statistics of each op's inputs, and uses them to
round its weights."""
from __future__ import annotations

import contextlib
import hashlib
from dataclasses import replace
from pathlib import Path
from typing import Callable, Collection, Iterator, Mapping, Sequence

import numpy as np

from .. import safetensors_io
from ..background import each
from ..errors import TesseraError
from ..inputs import InputSpec
from .choose import Choice
from .dataset import Dataset, Sample, Unreadable, spread
from .contractions import Contraction, Statistics, bytes_of
from .observed import Observed
from .rounding import Rounded, may_round, round_alone, round_weights
from .table import Table, load
from .worker import Job, opened

SAMPLES = 16
"""Most samples used; with all positions of each there are enough rows."""
WORTH_ROUNDING = 0.1
"""Least share of the weights for which auto looks for better roundings."""
BUDGET = 128 << 20
"""Bytes of statistics at a time; beyond that the samples run several times."""


def read_contractions(entries: Sequence[Mapping[str, object]], weights: Path) -> list[Contraction]:
    """Returns the contractions of the compiler's list with the weights that the compiler wrote."""
    arrays = safetensors_io.load(weights)
    return [Contraction.make(entry, arrays[str(entry["name"])]) for entry in entries]


def to_round(
    contractions: Sequence[Contraction], shape_of: Mapping[str, tuple[int, ...]], count: int, precision: str
) -> list[Contraction]:
    """Returns the contractions whose weights `count` samples can round. In weight-only precisions transposed
    convolutions do not have integer weights."""
    return [
        p
        for p in contractions
        if (precision == "INT8" or p.kind != "conv_transpose")
        and p.input in shape_of
        and may_round(p, count * p.rows(shape_of[p.input]), precision == "W4")
    ]


def share_of(some: Sequence[Contraction], contractions: Sequence[Contraction]) -> float:
    """Returns the share of the weights that belong to `some`."""
    return sum(p.weight.size for p in some) / max(sum(p.weight.size for p in contractions), 1)


def is_worth_it(to_round: Sequence[Contraction], contractions: Sequence[Contraction]) -> bool:
    """Returns true if auto looks for roundings: `to_round` has a large enough share of the weights."""
    return share_of(to_round, contractions) >= WORTH_ROUNDING


def learn(
    job: Job,
    samples: Callable[[], Iterator[Sample]],
    count: int,
    contractions: Sequence[Contraction],
    rounded: Sequence[Contraction],
    choices: Mapping[str, Choice],
    observed: Observed,
    ways: Sequence[Collection[str]],
    precision: str,
    progress: Callable[[int, int], None],
) -> list[dict[str, Rounded]]:
    """Chooses weights; returns them by the contractions' names, for each of `ways` (sets of methods).

    samples: yields `count` samples. rounded: the result of to_round(). precision: W8 and W4 quantise weights only.
    Contractions are left out if their input has no range, or if their weights need no choice and no bias correction is
    wanted.
    """
    alone, source_of, shape_of = precision != "INT8", observed.source_of, observed.shape_of
    second = {contraction.name for contraction in rounded}
    corrects = not alone and any("bias_correction" in way for way in ways)
    usable = [p for p in contractions if source_of.get(p.input) in choices and p.input in shape_of]
    batches = _batches([p for p in usable if p.name in second or corrects])
    worker, done = opened(job), 0
    result: list[dict[str, Rounded]] = [{} for _ in ways]
    for batch in batches:
        statistics = {contraction.name: Statistics(contraction, contraction.name in second) for contraction in batch}
        for sample in samples():
            try:
                worker.run(sample.load(job.specs))
            except Unreadable:
                continue

            def add(contraction: Contraction) -> None:
                way = None if alone else choices[source_of[contraction.input]].candidate()
                rows = contraction.rows(shape_of[contraction.input])
                x = observed.array(worker, contraction.input)
                statistics[contraction.name].add(x, sample.number, way, rows)

            each(add, batch)  # the expensive part releases the interpreter lock
            done += 1
            progress(done, (count + 1) * len(batches))
        clean = [each for each in batch if statistics[each.name].is_finite]  # the compiler rounds the rest

        def choose(contraction: Contraction) -> list[Rounded]:
            mine = statistics[contraction.name]
            return [
                round_alone(contraction, mine, precision == "W4") if alone else round_weights(contraction, mine, way)
                for way in ways
            ]

        for contraction, found in zip(clean, each(choose, clean)):
            for way, weights, chosen in zip(ways, result, found):
                if contraction.name in second or "bias_correction" in way:
                    weights[contraction.name] = chosen
        done += 1
    return result


def _batches(contractions: Sequence[Contraction]) -> list[list[Contraction]]:
    batches: list[list[Contraction]] = [[]]
    size = 0
    for contraction in contractions:
        size += bytes_of(contraction)
        if batches[-1] and size > BUDGET:
            batches.append([])
            size = bytes_of(contraction)
        batches[-1].append(contraction)
    return [batch for batch in batches if batch]


def pick(
    dataset: Dataset, numbers: Sequence[int], apart: Collection[int]
) -> tuple[Callable[[], Iterator[Sample]], int]:
    """Picks at most SAMPLES of the samples `numbers`, evenly spread; avoids the samples `apart` if enough others
    remain. Returns a function that yields them, and their number."""
    others = [number for number in sorted(numbers) if number not in apart]
    pool = others if len(others) >= 2 * len(apart) else sorted(numbers)
    wanted = {pool[i] for i in spread(len(pool), SAMPLES)}
    return (lambda: (sample for sample in dataset.samples() if sample.number in wanted)), len(wanted)


def keep(samples: Iterator[Sample], specs: Sequence[InputSpec]) -> list[Sample]:
    """Returns the readable samples, loaded: the model runs on them more than once, and a generator may be slow."""
    kept = []
    for sample in samples:
        with contextlib.suppress(Unreadable):
            kept.append(replace(sample, files=(), arrays=sample.load(specs)))
    return kept


def save(path: Path, table: Table, weights: Mapping[str, Rounded], factors: Mapping[str, np.ndarray]) -> Table:
    """Writes a new table and, if there are any, its weights and factors in the file beside it; returns the table with
    that file's hash."""
    arrays: dict[str, np.ndarray] = {f"{name}:factors": values for name, values in factors.items()}
    for name, rounded in weights.items():
        suffix = "4wide" if rounded.wide else str(rounded.bits or "")
        arrays[f"{name}:weight{suffix}"], arrays[f"{name}:scale{suffix}"] = rounded.integers, rounded.scales
        for key, added in (("bias", rounded.bias), ("input_bias", rounded.input_bias)):
            if added is not None:
                arrays[f"{name}:{key}"] = added
    beside = path.with_suffix(".safetensors")
    if arrays:
        safetensors_io.save(beside, arrays)
        table = replace(table, weights_hash=hashlib.sha256(beside.read_bytes()).hexdigest())
    table.save(path)
    return table


def check_beside(path: Path) -> None:
    """Checks that a file beside the table `path`, which a new table may replace or remove, belongs to the table there
    now. Raises TesseraError otherwise."""
    beside = path.with_suffix(".safetensors")
    if not beside.exists():
        return
    try:
        known = load(path).weights_hash if path.exists() else ""
    except TesseraError:
        known = ""
    if known != hashlib.sha256(beside.read_bytes()).hexdigest():
        raise TesseraError(
            f"failed to write {path}: its weights would overwrite {beside}, which belongs to another table",
            hint="choose another name for -o, or move that file",
        )
