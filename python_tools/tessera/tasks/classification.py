# SPDX-License-Identifier: Apache-2.0
"""Top-1 and top-5 over a folder of labelled pictures."""
from __future__ import annotations

import csv
from pathlib import Path
from typing import Callable

import numpy as np

from ..errors import TesseraError
from . import Model, only_input, read_picture, require_data

NAME = "classification"
SHIFTS = (-1, 1)  # of labels that count a background class although the model does not, and vice versa


def read_labels(folder: Path) -> list[tuple[Path, int]]:
    """Returns (picture, class index) for every row of labels.csv; the index is the column that ends in 'index'."""
    table = require_data(folder / "labels.csv", NAME)
    with open(table, newline="", encoding="utf-8") as file:
        reader = csv.DictReader(file)
        column = next((name for name in reader.fieldnames or [] if name.endswith("index")), None)
        if column is None or "file" not in (reader.fieldnames or []):
            raise TesseraError(
                f"{table}: has the columns {reader.fieldnames}; expected: file, and one that ends in 'index'"
            )
        try:
            labels = [(folder / row["file"], int(row[column])) for row in reader]
        except (TypeError, ValueError) as error:
            raise TesseraError(f"{table}:{reader.line_num}: {error}") from error
    if not labels:
        raise TesseraError(f"{table}: has no rows")
    return labels


def score(model: Model, data: Path, warn: Callable[[str], None] | None = None) -> dict[str, float]:
    """Returns {'n', 'top1', 'top5'} of the first output's class scores over a folder. `warn` reports labels that seem
    to number the classes differently from the model."""
    spec, output = only_input(model, NAME), model.outputs[0].name
    labels = read_labels(data)
    first = fifth = 0
    shifted = dict.fromkeys(SHIFTS, 0)
    for picture, label in labels:
        scores = model.run({spec.name: read_picture(spec, picture)})[output]
        order = np.argsort(-np.ravel(scores), kind="stable")
        first += int(order[0] == label)
        fifth += int(label in order[:5])
        for shift in SHIFTS:
            shifted[shift] += int(order[0] == label + shift)
    if warn and (text := _off_by_one(first, shifted, len(labels), len(order))):
        warn(text)
    return {"n": len(labels), "top1": first / len(labels), "top5": fifth / len(labels)}


def _off_by_one(hits: int, shifted: dict[int, int], pictures: int, classes: int) -> str:
    """Returns a warning if far more labels are correct when shifted by one; "" otherwise. At least five pictures are
    needed, because a single one may match by chance."""
    shift = max(shifted, key=lambda each: shifted[each])
    if shifted[shift] < max(5, 2 * hits + 1):
        return ""
    return (
        f"the labels seem to be off by one: top-1 is {hits / pictures:.3f}, with labels {shift:+d} it is "
        f"{shifted[shift] / pictures:.3f}; the model has {classes} classes, of which the first may be the background"
    )
