# SPDX-License-Identifier: Apache-2.0
"""Weights chosen with the samples: the model runs once more, each op's inputs are summed up, its weights rounded by
that."""
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
from .products import Product, Statistics, bytes_of
from .rounding import Rounded, may_round, round_alone, round_weights
from .table import Table, load
from .worker import Job, opened

SAMPLES = 16
"""Looked at at most: with the positions of each there are enough rows."""
TRIALS = 16
"""Samples on which output errors are compared."""
WORTH_ROUNDING = 0.1
"""Least share of the weights for which auto looks for better roundings."""
BUDGET = 128 << 20
"""Bytes of statistics at a time; with more the samples run several times."""


def read_products(entries: Sequence[Mapping[str, object]], weights: Path) -> list[Product]:
    """The compiler's list with the weights it wrote."""
    arrays = safetensors_io.load(weights)
    return [Product.make(entry, arrays[str(entry["name"])]) for entry in entries]


def to_round(
    products: Sequence[Product], shape_of: Mapping[str, tuple[int, ...]], count: int, precision: str
) -> list[Product]:
    """Those on whose roundings `count` samples have a say. Transposed convolutions have no integers as weights
    alone."""
    return [
        p
        for p in products
        if (precision == "INT8" or p.kind != "conv_transpose")
        and p.input in shape_of
        and may_round(p, count * p.rows(shape_of[p.input]), precision == "W4")
    ]


def share_of(some: Sequence[Product], products: Sequence[Product]) -> float:
    """Of the weights."""
    return sum(p.weight.size for p in some) / max(sum(p.weight.size for p in products), 1)


def is_worth_it(to_round: Sequence[Product], products: Sequence[Product]) -> bool:
    """Whether auto looks for roundings of these: of enough of the weights."""
    return share_of(to_round, products) >= WORTH_ROUNDING


def learn(
    job: Job,
    samples: Callable[[], Iterator[Sample]],
    count: int,
    products: Sequence[Product],
    rounded: Sequence[Product],
    choices: Mapping[str, Choice],
    source_of: Mapping[str, str],
    shape_of: Mapping[str, tuple[int, ...]],
    ways: Sequence[Collection[str]],
    precision: str,
    progress: Callable[[int, int], None],
) -> list[dict[str, Rounded]]:
    """For each of `ways`, sets of methods, the weights by the products' names. samples: `count` of them. rounded:
    those of the products that to_round() gave. precision: W8 and W4 have integers as weights alone. Left out are
    products whose input has no range, and those whose weights need no choice if their bias is not asked for."""
    alone = precision != "INT8"
    second = {product.name for product in rounded}
    batches = _batches(
        [
            p
            for p in products
            if source_of.get(p.input) in choices
            and (p.name in second or any("bias_correction" in way for way in ways) and not alone)
        ]
    )
    worker, done = opened(job), 0
    result: list[dict[str, Rounded]] = [{} for _ in ways]
    for batch in batches:
        statistics = {product.name: Statistics(product, product.name in second) for product in batch}
        for sample in samples():
            try:
                worker.run(sample.load(job.specs))
            except Unreadable:
                continue

            def add(product: Product) -> None:
                source = source_of[product.input]
                x = worker.array(source).reshape(shape_of[product.input])
                statistics[product.name].add(x, sample.number, None if alone else choices[source].candidate())

            each(add, batch)  # what takes long holds no interpreter lock
            done += 1
            progress(done, (count + 1) * len(batches))
        clean = [product for product in batch if statistics[product.name].is_finite]  # others are rounded by themselves

        def choose(product: Product) -> list[Rounded]:
            mine = statistics[product.name]
            return [
                round_alone(product, mine, precision == "W4") if alone else round_weights(product, mine, way)
                for way in ways
            ]

        for product, found in zip(clean, each(choose, clean)):
            for way, weights, chosen in zip(ways, result, found):
                if product.name in second or "bias_correction" in way:
                    weights[product.name] = chosen
        done += 1
    return result


def _batches(products: Sequence[Product]) -> list[list[Product]]:
    batches: list[list[Product]] = [[]]
    size = 0
    for product in products:
        size += bytes_of(product)
        if batches[-1] and size > BUDGET:
            batches.append([])
            size = bytes_of(product)
        batches[-1].append(product)
    return [batch for batch in batches if batch]


def pick(
    dataset: Dataset, numbers: Sequence[int], apart: Collection[int]
) -> tuple[Callable[[], Iterator[Sample]], int]:
    """At most SAMPLES of the samples `numbers`, spread over them; not those `apart` where enough others are left."""
    others = [number for number in sorted(numbers) if number not in apart]
    pool = others if len(others) >= 2 * len(apart) else sorted(numbers)
    wanted = {pool[i] for i in spread(len(pool), SAMPLES)}
    return (lambda: (sample for sample in dataset.samples() if sample.number in wanted)), len(wanted)


def keep(samples: Iterator[Sample], specs: Sequence[InputSpec]) -> list[Sample]:
    """The readable ones, loaded: the model runs on them more than once, and a generator may take its time."""
    kept = []
    for sample in samples:
        with contextlib.suppress(Unreadable):
            kept.append(replace(sample, files=(), arrays=sample.load(specs)))
    return kept


def tried(numbers: Sequence[int]) -> set[int]:
    """The samples on which output errors are compared."""
    ordered = sorted(numbers)
    return {ordered[i] for i in spread(len(ordered), TRIALS)}


def save(path: Path, table: Table, weights: Mapping[str, Rounded], factors: Mapping[str, np.ndarray]) -> Table:
    """Writes a table and, beside it, the file with weights and factors that it names, where there are any; returns
    the table. Both are new."""
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
    """Raises TesseraError where the file beside table `path`, which a new table may replace or remove, is not that of
    the one there."""
    beside = path.with_suffix(".safetensors")
    if not beside.exists():
        return
    try:
        known = load(path).weights_hash if path.exists() else ""
    except TesseraError:
        known = ""
    if known != hashlib.sha256(beside.read_bytes()).hexdigest():
        raise TesseraError(
            f"failed to write {path}: its weights would go to {beside}, which is there and does not belong to it",
            hint="choose another name for -o, or move that file",
        )
