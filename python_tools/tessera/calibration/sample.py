# SPDX-License-Identifier: Apache-2.0
"""One of a calibration table's samples, in NAME_cali_sample.npz beside NAME_cali.json: what checks of the quantised
model run on.

A quantised model clips what lies outside of the ranges that its table saw, and what is random is not what the network
was made for: checks on either tell of errors that real data does not have.
"""
from __future__ import annotations

from pathlib import Path
from typing import Mapping, Sequence

import numpy as np

from ..errors import TesseraError
from ..files import load_npz, save_npz
from ..inputs import InputSpec, check_inputs, random_inputs
from . import table as tables
from .dataset import Dataset, Unreadable
from .worker import digest

MOST_BYTES = 64 << 20


def sample_path(table: str | Path) -> Path:
    return Path(table).with_name(f"{Path(table).stem}_sample.npz")


def save(path: str | Path, dataset: Dataset, used: Mapping[int, str], specs: Sequence[InputSpec]) -> None:
    """Writes the first of the samples numbered in `used` beside the table `path`; nothing where it is large, and no
    older one stays."""
    beside = sample_path(path)
    first = min(used)
    for sample in dataset.samples():
        if sample.number == first:
            try:
                arrays = sample.load(specs)
            except (Unreadable, TesseraError):  # it was readable a moment ago; the table is good without it
                break
            if sum(array.nbytes for array in arrays.values()) <= MOST_BYTES:
                save_npz(beside, arrays)
                return
            break
    beside.unlink(missing_ok=True)


def default_input(path: str | Path, specs: Sequence[InputSpec]) -> tuple[dict[str, np.ndarray], str]:
    """Inputs for a check where none are given, and what they are: the table's sample, where it fits `specs` and is
    one of those the table was made from; else random ones in the ranges that the table has."""
    table = tables.load(path)
    beside = sample_path(path)
    if beside.is_file():
        try:
            arrays = check_inputs(load_npz(beside), specs, str(beside))
        except TesseraError:  # of other shapes, say: the table serves them too
            arrays = None
        if arrays is not None and digest(arrays, specs)[: tables.DIGEST_LENGTH] in table.sample_digests:
            return arrays, f"{beside.name}, a calibration sample"
    ranges = {entry.name: (entry.min, entry.max) for entry in table.tensors}
    return random_inputs(specs, ranges=ranges), "random input in the ranges of the calibration table"
