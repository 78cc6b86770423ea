# SPDX-License-Identifier: Apache-2.0
"""Weight-only rounding in the order of the ops, so that each op is rounded for the results of earlier ops with rounded
weights.

Each stage of ops uses the moments of these inputs, and rounds towards the weights that would map them to the results of
the float model: with the second moments H of the rounded model's inputs x' and C = (x - x') x'', these weights are W +
W C / H.
"""
from __future__ import annotations

import contextlib
from dataclasses import replace
from typing import Any, Callable, Iterator, Mapping, Sequence

import numpy as np

from .. import safetensors_io
from ..background import each
from ..output_error import relative
from .dataset import Sample, Unreadable
from .observed import Observed
from .contractions import Lack, Contraction, Statistics, bytes_of
from .rounding import Rounded, round_alone
from .worker import Job, Worker, opened

STAGES = 24
"""Most stages, unless the statistics of a stage would exceed BUDGET. Each stage compiles a model and runs all
samples."""
BUDGET = 64 << 20
"""Bytes of second moments at a time."""
WIDE_SHARE = 0.1
"""Share of the weights that W4 may keep in 8 bits."""
NOISE_SAMPLES = 2


def stages_of(contractions: Sequence[Contraction]) -> list[list[Contraction]]:
    """Splits the contractions into stages in the order of the model; ops that read the same tensor stay together."""
    together: list[list[Contraction]] = []
    for contraction in contractions:
        if together and together[-1][0].input == contraction.input:
            together[-1].append(contraction)
        else:
            together.append([contraction])
    stages: list[list[Contraction]] = []
    for i, some in enumerate(together):
        begins = not stages or len(stages) <= i * STAGES // len(together)
        if begins or sum(map(bytes_of, stages[-1] + some)) > BUDGET:
            stages.append([])
        stages[-1] += some
    return stages


def round_in_order(
    job: Job,
    observed: Observed,
    samples: Callable[[], Iterator[Sample]],
    contractions: Sequence[Contraction],
    progress: Callable[[int, int], None],
) -> dict[str, Rounded]:
    """Returns the integer weights of `products` by name. observed: the float model that `job` runs. Contractions that
    read NaN or infinity on the samples are left out."""
    exact, found = opened(job), {}
    weights: dict[str, Any] = {}
    stages = stages_of(contractions)
    for number, stage in enumerate(stages):
        current = _with_weights(job, observed, weights) if weights else exact
        statistics = _observe(exact, current, job, observed, samples, stage)

        def choose(contraction: Contraction) -> Rounded | None:
            mine, lack = statistics[contraction.name]
            if not mine.is_finite or not lack.is_finite:
                return None
            return round_alone(contraction, mine, four_bits=True, lack=lack if current is not exact else None)

        for contraction, rounded in zip(stage, each(choose, stage)):
            if rounded:
                found[contraction.name], weights[contraction.name] = rounded, contraction.restored(
                    rounded.integers, rounded.scales
                )
        progress(number + 1, len(stages) + 1)
    return found


def _with_weights(job: Job, observed: Observed, weights: Mapping[str, np.ndarray]) -> Worker:
    """Returns a worker for the model with some weights rounded."""
    bmodel = observed.bmodel.with_name("rounded.bmodel")
    safetensors_io.save(bmodel.with_suffix(".safetensors"), weights)
    observed.compile_again(bmodel, bmodel.with_suffix(".safetensors"))
    return Worker(replace(job, key=f"{job.key} {len(weights)}", model=str(bmodel)))


def _observe(
    exact: Worker,
    current: Worker,
    job: Job,
    observed: Observed,
    samples: Callable[[], Iterator[Sample]],
    stage: Sequence[Contraction],
) -> dict[str, tuple[Statistics, Lack]]:
    """Returns the statistics of the ops' inputs in the model so far, and of their difference from the float model's."""
    statistics = {contraction.name: (Statistics(contraction), Lack(contraction)) for contraction in stage}
    for sample in samples():
        try:
            arrays = sample.load(job.specs)
        except Unreadable:
            continue
        exact.run(arrays)
        if current is not exact:
            current.run(arrays)

        def add(contraction: Contraction) -> None:
            x, wanted = (observed.array(worker, contraction.input) for worker in (current, exact))
            rows = contraction.rows(observed.shape_of[contraction.input])
            mine, lack = statistics[contraction.name]
            mine.add(x, sample.number, None, rows)
            if current is not exact:
                lack.add(x, wanted, sample.number, rows)

        each(add, stage)
    return statistics


def most_sensitive(
    job: Job,
    observed: Observed,
    samples: Callable[[], Iterator[Sample]],
    contractions: Sequence[Contraction],
    rounded: Mapping[str, Rounded],
) -> list[Contraction]:
    """Returns the contractions whose rounding to 4 bits affects the outputs most per byte saved, with at most
    WIDE_SHARE of all weights. Their errors are simulated in the float model as noise of the same power."""
    worker = opened(job)
    squares: dict[str, Any] = {}
    sources = {
        p.name: observed.source_of[p.name]
        for p in contractions
        if p.bits == 4 and p.name in rounded and observed.source_of.get(p.name)
    }
    power = {sources[name]: rounded[name].loss for name in sources}
    for sample in samples():
        with contextlib.suppress(Unreadable):
            for source, found in worker.disturb(sample.load(job.specs), power).items():
                squares.setdefault(source, []).append(found)
            if all(len(found) == NOISE_SAMPLES for found in squares.values()):
                break
    errors = {name: relative(squares[source]) for name, source in sources.items() if source in squares}
    left = WIDE_SHARE * sum(p.weight.size for p in contractions)
    chosen = []
    for contraction in sorted(
        (p for p in contractions if p.name in errors), key=lambda p: -errors[p.name] / p.weight.size
    ):
        if contraction.weight.size <= left:
            chosen.append(contraction)
            left -= contraction.weight.size
    return chosen


def widened(contractions: Sequence[Contraction], wide: Sequence[Contraction]) -> list[Contraction]:
    """Returns the contractions, with 8 bits and a scale per channel for those in `wide`."""
    names = {contraction.name for contraction in wide}
    return [replace(p, bits=8, group=p.reduced, wide=True) if p.name in names else p for p in contractions]
