# SPDX-License-Identifier: Apache-2.0
"""One sample of a calibration table, in NAME_cali_sample.npz beside NAME_cali.json, for checks of the quantised model.

A quantised model clips values outside its table's ranges, and a network is not made for random input: checks on either
would report errors that do not occur with real data.
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
    """Writes the first of the samples numbered in `used` beside the table `path`. A large sample is not written; an
    older file is removed."""
    beside = sample_path(path)
    first = min(used)
    for sample in dataset.samples():
        if sample.number == first:
            try:
                arrays = sample.load(specs)
            except (Unreadable, TesseraError):  # readable a moment ago; the table is complete without it
                break
            if sum(array.nbytes for array in arrays.values()) <= MOST_BYTES:
                save_npz(beside, arrays)
                return
            break
    beside.unlink(missing_ok=True)


def default_input(
    path: str | Path, specs: Sequence[InputSpec], states: Sequence[InputSpec] = ()
) -> tuple[dict[str, np.ndarray], str]:
    """Returns inputs and states for a check without given inputs, and a description of them: the table's sample if it
    fits and belongs to the table, else random inputs in the table's ranges."""
    table, specs = tables.load(path), (*specs, *states)
    beside = sample_path(path)
    if beside.is_file():
        try:
            arrays = check_inputs(load_npz(beside), specs, str(beside))
        except TesseraError:  # e.g. other shapes, which the table also serves
            arrays = None
        if arrays is not None and digest(arrays, specs)[: tables.DIGEST_LENGTH] in table.sample_digests:
            return arrays, f"{beside.name}, a calibration sample"
    ranges = {entry.name: (entry.min, entry.max) for entry in table.tensors}
    return random_inputs(specs, ranges=ranges), "random input in the ranges of the calibration table"
