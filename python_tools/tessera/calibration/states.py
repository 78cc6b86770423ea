# SPDX-License-Identifier: Apache-2.0
"""Samples of a model with states. Calibration needs the values that the states have in use, so it takes the samples as
one sequence: the f32 model computes the states of each sample from the sample before. A sample that contains the states
itself starts a new sequence."""
from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Callable, Iterator, Mapping

import numpy as np

from ..top_model import TopModel
from .dataset import Dataset, Remembered, Sample, Unreadable, open_dataset, spread

Run = Callable[[Mapping[str, np.ndarray]], Mapping[str, np.ndarray]]


def open_sequence(given: str, model: TopModel, input_num: int, run: Run) -> Dataset:
    """Opens the samples that `--dataset` names and adds the states to them. If there are more than input_num, runs all
    and takes that many, evenly spread. run: runs the f32 model on inputs and states."""
    states = [state.input for state in model.states]
    all_of_them = input_num if Path(given).suffix == ".py" else sys.maxsize
    found = open_dataset(given, model.inputs, all_of_them, states)
    chosen = {row: number for number, row in enumerate(spread(found.count, input_num))}

    def samples() -> Iterator[Sample]:
        now = model.initial_states()
        for row, sample in enumerate(found.samples()):
            try:
                arrays = {**now, **sample.load(model.inputs, states)}
            except Unreadable:
                if row in chosen:
                    yield replace(sample, number=chosen[row])
                continue
            now = model.next_states(run(arrays))
            if row in chosen:
                yield Sample(chosen[row], sample.name, arrays=arrays)

    identity = f"{found.identity} sequence {input_num}"
    return Dataset(Remembered(samples).samples, len(chosen), found.available, identity, found.kind)
