# SPDX-License-Identifier: Apache-2.0
"""Brings the channels of a tensor to similar ranges if that lowers the error of int8. The channels' factors are folded
into the surrounding weights."""
from __future__ import annotations

import math
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Callable, Collection, Mapping, Sequence

import numpy as np

from .. import safetensors_io
from ..errors import TesseraError
from ..progress import Report
from .choose import EXACT_ENOUGH, choice_by
from .collect import State
from .dataset import Dataset, Unreadable, spread
from .distribution import Distribution
from .learn import read_contractions, share_of
from .observed import Observed
from .rounding import is_exact
from .table import Table, entries_of
from .thresholds import DEFAULT_PERCENTILE
from .trial import Golden, Trial, Way
from .worker import Worker, look, opened

METHODS = {"cross_layer_equalization": "conv", "smooth_quant": "matmul"}
"""The ops whose inputs are scaled (quant/Transforms/Equalize/Equalize.h)."""
SAMPLES = 12
"""Most samples observed."""
TRIED = 4
"""Number of these samples on which int8 is tried with and without factors."""
LEAST_GAIN = 0.9
"""Factors are tried only if the expected noise with them is at most this part of the noise without."""
CLEARLY = 0.8
"""Factors are kept only if they reduce the output error to this part: they leave less headroom to channels that the
samples hardly use, and other inputs may need it."""


@dataclass(frozen=True)
class Found:
    """Result of equalize(). observed: the model with factors, None if they are not used. seen: what the observed
    samples show of the model that is used next, if they were run. tensors: number of scaled tensors. without,
    with_them: output errors, if measured; failure: why they could not be."""

    observed: Observed | None
    seen: State | None = None
    tensors: int = 0
    without: float = 0.0
    with_them: float = 0.0
    failure: str = ""


@dataclass(frozen=True)
class FactorTrials:
    """The setting in which factors are tried. flags: of the compiler. folder: for temporary files."""

    dataset: Dataset
    flags: tuple[str, ...]
    folder: Path
    golden: Golden


def equalize(
    observed: Observed, kinds: Sequence[str], always: bool, bench: FactorTrials, progress: Callable[[int, int], None]
) -> Found:
    """Returns the model with factors for the inputs of the contractions of `kinds` (values of METHODS). Unless
    `always`, only if that clearly lowers the quantised model's output error."""
    if not (always or is_coarsened(observed)):
        return Found(None)
    wanted = spread(sum(1 for _ in bench.dataset.samples()), SAMPLES)  # a generator does not know its length before
    seen, channels = _look(observed, bench, wanted)
    progress(1, 3)
    if not channels:
        return Found(None, seen)
    if always:
        scaled = _compile(observed, channels, kinds, bench.flags, bench.folder)
        return Found(scaled, None, scaled.info["equalization"]["tensors"]) if scaled.factors else Found(None, seen)
    try:
        return _try(observed, kinds, channels, seen, bench, wanted, progress)
    except TesseraError as error:
        return Found(None, seen, failure=error.message)


def _try(
    observed: Observed,
    kinds: Sequence[str],
    channels: Mapping[str, np.ndarray],
    seen: State,
    bench: FactorTrials,
    wanted: Sequence[int],
    progress: Callable[[int, int], None],
) -> Found:
    """Decides whether factors pay off, and measures only as much as the decision needs."""
    job, some = observed.job(), [wanted[i] for i in spread(len(wanted), TRIED)]
    trial = Trial(observed.model, "INT8", bench.flags, bench.folder, bench.golden)
    (without,) = trial.output_errors(job, bench.dataset, some, [_plain_way(observed, seen)])
    progress(2, 3)
    if without <= EXACT_ENOUGH:
        return Found(None, seen, without=without)
    scaled = _compile(observed, channels, kinds, bench.flags, bench.folder)
    info = scaled.info["equalization"]
    if not scaled.factors or info["noise_after"] >= LEAST_GAIN * info["noise_before"]:
        return Found(None, seen, without=without)
    seen_scaled, _ = _look(scaled, bench, wanted, with_channels=False)
    (scaled_error,) = trial.output_errors(job, bench.dataset, some, [_plain_way(scaled, seen_scaled)])
    progress(3, 3)
    pays = scaled_error < CLEARLY * without
    return Found(
        scaled if pays else None,
        seen_scaled if pays else seen,
        info["tensors"],
        without=without,
        with_them=scaled_error,
    )


def is_coarsened(observed: Observed) -> bool:
    """Returns true if int8 rounds most weights. It holds the weights of a model that was quantised before exactly;
    factors would destroy that."""
    contractions = read_contractions(observed.info["products"], observed.weights)
    return share_of([contraction for contraction in contractions if not is_exact(contraction)], contractions) > 0.5


def _look(
    observed: Observed, bench: FactorTrials, wanted: Collection[int], with_channels: bool = True
) -> tuple[State, dict[str, np.ndarray]]:
    """Runs the `wanted` samples. Returns what they show of all tensors and, with `with_channels`, the lowest and
    highest value and mean square of the channels of the contractions' inputs and outputs, except for tensors that are
    not finite."""
    job, state = observed.job(), State.empty(observed.sources)
    worker = opened(job)
    channels = Channels(observed) if with_channels else None
    for sample in bench.dataset.samples():
        if sample.number in wanted:
            try:
                arrays = bench.dataset.load(sample, job.specs)
            except Unreadable:
                continue  # the pass that collects the samples reports unreadable ones
            state.names[sample.number] = sample.name
            look(worker, job, sample.number, arrays, state)
            if channels:
                bench.golden.remember(sample.number, worker.judged())
                channels.add(worker)
    return state, channels.found() if channels else {}


class Channels:
    """Lowest and highest value and mean square of each channel of the contractions' inputs and outputs."""

    def __init__(self, observed: Observed) -> None:
        sources, shapes = observed.source_of, observed.shape_of
        self._observed = observed
        self._axes = {n: axis for n, axis in observed.info["channels"].items() if sources.get(n) and n in shapes}
        self._found: dict[str, np.ndarray] = {}
        self._seen = 0

    def add(self, worker: Worker) -> None:
        """Adds the tensors of the worker's last run."""
        found = self._found
        self._seen += 1
        for name, axis in self._axes.items():
            array = self._observed.array(worker, name)
            parts = array.reshape(math.prod(array.shape[:axis]), array.shape[axis], -1)
            least, most = parts.min((0, 2)), parts.max((0, 2))
            square = np.einsum("acb,acb->c", parts, parts) / np.float32(parts.shape[0] * parts.shape[2])
            found[f"{name}:low"] = np.minimum(found.get(f"{name}:low", least), least)
            found[f"{name}:high"] = np.maximum(found.get(f"{name}:high", most), most)
            found[f"{name}:power"] = found.get(f"{name}:power", np.float32(0)) + square

    def found(self) -> dict[str, np.ndarray]:
        """Returns the statistics, except for tensors that are not finite."""
        found = self._found
        kept = [
            name
            for name in self._axes
            if self._seen and all(np.isfinite(found[f"{name}:{what}"]).all() for what in ("low", "high", "power"))
        ]
        return {
            **{f"{name}:{what}": found[f"{name}:{what}"] for name in kept for what in ("low", "high")},
            **{f"{name}:power": found[f"{name}:power"] / np.float32(self._seen) for name in kept},
        }


def _compile(
    observed: Observed, channels: Mapping[str, np.ndarray], kinds: Sequence[str], flags: Sequence[str], folder: Path
) -> Observed:
    statistics, factors = folder / "channels.safetensors", folder / "factors.safetensors"
    safetensors_io.save(statistics, channels)
    extra = ["--channel-statistics", str(statistics), "--factors", str(factors), "--equalize", ",".join(kinds), *flags]
    scaled = Observed.compile(observed.model, folder / "equalized", Report(1, quiet=True), extra)
    names = {
        tensor["name"] for tensor in observed.info["tensors"]
    }  # a factor's own multiplication reads one that has no name
    tensors = [tensor for tensor in scaled.info["tensors"] if tensor["name"] in names]
    return replace(
        scaled,
        info={**scaled.info, "tensors": tensors},
        factors={name.removesuffix(":factors"): values for name, values in safetensors_io.load(factors).items()},
    )


def _plain_way(observed: Observed, seen: State) -> Way:
    """Returns the ranges by the default method, without trials."""
    histograms = {source: seen.histograms[source] for source in observed.integers - (seen.unseen() & observed.repeated)}
    choices = {
        source: choice_by("mse", Distribution.from_histogram(histogram), "best", DEFAULT_PERCENTILE)
        for source, histogram in histograms.items()
    }
    table = Table("", observed.info["model_hash"], "mse", 0, "", entries_of(observed, histograms, choices))
    return Way(table, {}, observed.factors)
