# SPDX-License-Identifier: Apache-2.0
"""Accuracy of a tracker: how often its score map has the peak at the object, which is in the centre of the search
picture.

pairs.csv has the columns template and search, two pictures; the first output is the score map [1,1,h,w].
"""
from __future__ import annotations

import csv
from pathlib import Path

import numpy as np

from ..errors import TesseraError
from . import Model, read_picture, require_data

NAME = "tracking"
CELLS = 1.5


def score(model: Model, data: Path) -> dict[str, float]:
    """Returns {'n', 'hit'}: share of pairs whose peak is within 1.5 cells of the centre in both directions."""
    table = require_data(data / "pairs.csv", NAME)
    specs = {spec.name: spec for spec in model.inputs}
    if set(specs) != {"template", "search"}:
        raise TesseraError(f"--task {NAME}: the model's inputs are {', '.join(specs)}; expected: template, search")
    output, hits, count = model.outputs[0].name, 0, 0
    with open(table, newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            arrays = {name: read_picture(specs[name], data / row[name]) for name in specs}
            scores = model.run(arrays)[output][0, 0]
            peak = np.array(np.unravel_index(int(np.argmax(scores)), scores.shape))
            centre = (np.array(scores.shape) - 1) / 2
            hits += int((np.abs(peak - centre) <= CELLS).all())
            count += 1
    if not count:
        raise TesseraError(f"{table}: has no rows")
    return {"n": count, "hit": hits / count}
