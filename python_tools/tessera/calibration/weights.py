# SPDX-License-Identifier: Apache-2.0
"""Decides whether weights learned from samples pay off: learns them, and compares the model with and without them."""
from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Callable, Collection, Iterator, Mapping, Sequence

from ..errors import TesseraError
from ..output_error import pick_samples
from . import learn, sequence
from .choose import Choice
from .dataset import Dataset, Sample
from .observed import Observed
from .contractions import Contraction
from .rounding import Rounded
from .table import Table
from .trial import Golden, Trial, Tried, Way
from .worker import Job


@dataclass(frozen=True)
class Request:
    """A request to choose weights. numbers: of the available samples. methods: of rounding.METHODS. auto: use only
    methods that lower the measured output error, possibly none. precision: as for model_deploy. flags: of
    tessera-compile. folder: for temporary files."""

    job: Job
    observed: Observed
    dataset: Dataset
    numbers: tuple[int, ...]
    methods: tuple[str, ...]
    auto: bool
    precision: str
    flags: tuple[str, ...]
    folder: Path
    golden: Golden | None = None

    @property
    def ways(self) -> list[tuple[str, ...]]:
        """Sets of methods to try."""
        if not self.auto or self.precision == "W8":
            return [self.methods]
        if self.precision == "W4":
            return [("gptq",), self.methods]
        # Means of samples unlike the later inputs would do harm.
        return [self.methods, tuple(method for method in self.methods if method != "bias_correction")]


@dataclass(frozen=True)
class Found:
    """Chosen weights, by the contractions' names. left_out: why there are none. methods: the best of the sets that were
    tried, with the number of ops and samples; without, with_them: the output errors. wide: ops that should keep 8 bits
    in W4, and their share of the weights. failure: why no variant could run. tried: the measured result of the table
    with these weights."""

    weights: dict[str, Rounded] = field(default_factory=dict)
    left_out: str = ""
    methods: tuple[str, ...] = ()
    ops: int = 0
    samples: int = 0
    without: float = 0.0
    with_them: float = 0.0
    wide: tuple[str, ...] = ()
    wide_share: float = 0.0
    failure: str = ""
    tried: Tried | None = None


def choose(
    request: Request, choices: Mapping[str, Choice], table: Table, progress: Callable[[int, int], None]
) -> Found:
    """Learns weights from the samples for the ranges `choices`, which `table` holds; with auto only if they lower the
    error."""
    tried = pick_samples(request.numbers, request.observed.model.specs)
    samples, count = learn.pick(request.dataset, request.numbers, tried)
    contractions = learn.read_contractions(request.observed.info["products"], request.observed.weights)
    to_round = learn.to_round(contractions, request.observed.shape_of, count, request.precision)
    if request.auto and not learn.is_worth_it(to_round, contractions):
        why = "left out: int8 holds them exactly, or there are too few samples"
        return Found(left_out=why, tried=_alone(request, table, tried))
    kept = learn.keep(samples(), request.job.specs)
    learned = _learn(request, lambda: iter(kept), count, contractions, to_round, choices, progress)
    if not any(learned):
        return Found(left_out="none is to be chosen", tried=_alone(request, table, tried))
    try:
        trial = Trial(request.observed.model, request.precision, request.flags, request.folder, request.golden)
        nothing_and_learned: list[Mapping[str, Rounded]] = [{}, *learned]
        ways = [Way(table, weights, request.observed.factors) for weights in nothing_and_learned]
        found_of_ways = trial.run(request.job, request.dataset, tried, ways)
    except TesseraError as error:
        if not request.auto:
            raise
        return Found(left_out="left out: the quantised model cannot be tried", failure=error.message)
    without, *errors = [of_way.error for of_way in found_of_ways]
    best = errors.index(min(errors))
    wide = (
        [p for p in to_round if p.name in learned[best] and learned[best][p.name].wide]
        if request.precision == "W4"
        else []
    )
    found = Found(
        learned[best],
        "",
        request.ways[best],
        len(learned[best]),
        count,
        without,
        errors[best],
        tuple(p.name for p in wide),
        learn.share_of(wide, contractions),
        tried=found_of_ways[1 + best],
    )
    if request.auto and not found.with_them < without:
        return replace(found, weights={}, left_out="left out", wide=(), tried=found_of_ways[0])
    return found


def _alone(request: Request, table: Table, tried: Collection[int]) -> Tried | None:
    """Measures the model with default rounding; None for weight-only precisions, which do not need it."""
    if request.precision != "INT8":
        return None
    trial = Trial(request.observed.model, request.precision, request.flags, request.folder, request.golden)
    try:
        return trial.run(request.job, request.dataset, tried, [Way(table, {}, request.observed.factors)])[0]
    except TesseraError:  # the reason is reported at deployment
        return None


def _learn(
    request: Request,
    samples: Callable[[], Iterator[Sample]],
    count: int,
    contractions: Sequence[Contraction],
    to_round: Sequence[Contraction],
    choices: Mapping[str, Choice],
    progress: Callable[[int, int], None],
) -> list[dict[str, Rounded]]:
    """Returns the weights by the contractions' names, for each of the request's ways."""
    observed, ways = request.observed, request.ways
    at_once = partial(
        learn.learn,
        request.job,
        samples,
        count,
        choices=choices,
        observed=observed,
        precision=request.precision,
        progress=progress,
    )
    if request.precision != "W4":
        return at_once(contractions, to_round, ways=ways)
    (first,) = at_once(to_round, to_round, ways=[("gptq",)])
    usable = [contraction for contraction in to_round if contraction.name in first]
    result = []
    for way in ways:
        mine = usable
        if "keep_wide" in way:
            mine = sequence.widened(usable, sequence.most_sensitive(request.job, observed, samples, usable, first))
        if "in_order" in way:
            result.append(sequence.round_in_order(request.job, observed, samples, mine, progress))
        else:
            result.append(first if mine is usable else at_once(mine, mine, ways=[way])[0])
    return result
