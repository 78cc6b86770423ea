# SPDX-License-Identifier: Apache-2.0
"""Channels of a tensor brought to like ranges, where that lowers the error of int8: their factors go into the weights
around."""
from __future__ import annotations

import math
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Callable, Mapping, Sequence

import numpy as np

from tessera import _calibration

from .. import safetensors_io
from ..errors import TesseraError
from ..progress import Report
from .choose import choice_by
from .dataset import Dataset, readable, spread
from .distribution import Distribution
from .learn import read_products, share_of
from .observed import Observed
from .rounding import is_exact
from .table import Table, entries_of
from .thresholds import DEFAULT_PERCENTILE
from .trial import Trial, Way
from .worker import Worker

METHODS = {"cross_layer_equalization": "conv", "smooth_quant": "matmul"}
"""Whose inputs are scaled (quant/Transforms/Equalize.h)."""
SAMPLES = 12
"""Looked at at most."""
LEAST_GAIN = 0.9
"""Expected noise with factors at most this part of that without, else they are not tried."""
CLEARLY = 0.8
"""So much smaller must the output error be: channels that the samples hardly use have less head room with factors,
and other inputs may need it."""
EXACT_ENOUGH = 0.03
"""With an output error below this there is no risk to be taken."""
LEARNED = 0.75
"""Part of the squared error of weights alone that is gone once they are chosen by the samples: what they cost in 16-bit
activations, where nothing else costs much, shows how much that is."""


@dataclass(frozen=True)
class Found:
    """observed: the model with factors, None: they are left out. tensors: that are scaled. without, with_them: output
    errors, where they were measured; failure: why they could not be."""

    observed: Observed | None
    tensors: int = 0
    without: float = 0.0
    with_them: float = 0.0
    failure: str = ""


Histograms = Mapping[str, "_calibration.Histogram"]


def equalize(
    observed: Observed,
    dataset: Dataset,
    kinds: Sequence[str],
    always: bool,
    flags: Sequence[str],
    folder: Path,
    progress: Callable[[int, int], None],
) -> Found:
    """The model with factors for the inputs of `kinds` (values of METHODS) of products; unless `always` only if that
    lowers the quantised model's output error clearly."""
    if not (always or is_coarsened(observed)):
        return Found(None)
    wanted = set(spread(dataset.count, SAMPLES))
    channels = _channels(observed, dataset, wanted)
    progress(1, 3)
    if not channels:
        return Found(None)
    scaled = _compile(observed, channels, kinds, flags, folder)
    progress(2, 3)
    told = scaled.info["equalization"]
    if not scaled.factors or not (always or told["noise_after"] < LEAST_GAIN * told["noise_before"]):
        return Found(None)
    if always:
        return Found(scaled, told["tensors"])
    try:
        without, with_them = _output_errors(observed, scaled, dataset, wanted, flags, folder)
    except TesseraError as error:
        return Found(None, failure=error.message)
    progress(3, 3)
    pays = without > EXACT_ENOUGH and with_them < CLEARLY * without
    return Found(scaled if pays else None, told["tensors"], without, with_them)


def _output_errors(
    observed: Observed, scaled: Observed, dataset: Dataset, wanted: set[int], flags: Sequence[str], folder: Path
) -> list[float]:
    """Of int8 without and with factors, once the samples will have chosen the weights."""
    ways = [Way(_plain_table(one, _histograms(one, dataset, wanted)), {}, one.factors) for one in (observed, scaled)]

    def errors(precision: str, ways: Sequence[Way]) -> list[float]:
        trial = Trial(observed.model, precision, tuple(flags), folder)
        return trial.output_errors(observed.job(), dataset, wanted, ways)

    eight = errors("INT8", ways)
    if eight[0] <= EXACT_ENOUGH:
        return eight  # whatever the weights' part is
    return [math.sqrt(max(a * a - LEARNED * b * b, 0.0)) for a, b in zip(eight, errors("INT16", ways))]


def is_coarsened(observed: Observed) -> bool:
    """Whether int8 rounds most weights. It holds those of a model that was quantised before as they are: factors
    would end that."""
    products = read_products(observed.info["products"], observed.weights)
    return share_of([product for product in products if not is_exact(product)], products) > 0.5


def _channels(observed: Observed, dataset: Dataset, wanted: set[int]) -> dict[str, np.ndarray]:
    """Lowest, highest and mean square of the channels of what products read and make; not of tensors that are not
    finite."""
    shapes, sources = observed.shape_of, observed.source_of
    places = {
        name: (sources[name], shapes[name], axis)
        for name, axis in observed.info["channels"].items()
        if sources.get(name)
    }
    found: dict[str, np.ndarray] = {}
    worker, seen = Worker(observed.job()), 0
    for _, arrays in readable(dataset, wanted, observed.model.inputs):
        worker.run(arrays)
        seen += 1
        for name, (source, shape, axis) in places.items():
            rows = np.moveaxis(worker.array(source).reshape(shape), axis, 0).reshape(shape[axis], -1)
            least, most, square = (
                rows.min(1),
                rows.max(1),
                np.einsum("cr,cr->c", rows, rows) / np.float32(rows.shape[1]),
            )
            found[f"{name}:low"] = np.minimum(found.get(f"{name}:low", least), least)
            found[f"{name}:high"] = np.maximum(found.get(f"{name}:high", most), most)
            found[f"{name}:power"] = found.get(f"{name}:power", np.float32(0)) + square
    kept = [
        name
        for name in places
        if seen and all(np.isfinite(found[f"{name}:{what}"]).all() for what in ("low", "high", "power"))
    ]
    return {
        **{f"{name}:{what}": found[f"{name}:{what}"] for name in kept for what in ("low", "high")},
        **{f"{name}:power": found[f"{name}:power"] / np.float32(seen) for name in kept},
    }


def _histograms(observed: Observed, dataset: Dataset, wanted: set[int]) -> Histograms:
    worker = Worker(observed.job())
    histograms: dict[str, _calibration.Histogram] = {}
    for number, arrays in readable(dataset, wanted, observed.model.inputs):
        worker.run(arrays)
        worker.add_to(histograms, number, observed.integers)
    return histograms


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


def _plain_table(observed: Observed, histograms: Histograms) -> Table:
    """Ranges without trials."""
    choices = {
        source: choice_by("mse", Distribution.from_histogram(histogram), "best", DEFAULT_PERCENTILE)
        for source, histogram in histograms.items()
    }
    return Table("", observed.info["model_hash"], "mse", 0, "", entries_of(observed, histograms, choices))
