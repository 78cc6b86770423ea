# SPDX-License-Identifier: Apache-2.0
"""Top-1 and top-5 over a folder of labelled pictures."""
from __future__ import annotations

import csv
from pathlib import Path

import numpy as np

from ..errors import TesseraError
from . import Model, only_input, read_picture, require_data

NAME = "classification"


def read_labels(folder: Path) -> list[tuple[Path, int]]:
    """(picture, class index) for every row of labels.csv; the index is the column that ends in 'index'."""
    table = require_data(folder / "labels.csv", NAME)
    with open(table, newline="", encoding="utf-8") as file:
        reader = csv.DictReader(file)
        column = next((name for name in reader.fieldnames or [] if name.endswith("index")), None)
        if column is None or "file" not in (reader.fieldnames or []):
            raise TesseraError(
                f"{table}: has the columns {reader.fieldnames}; wanted: file, and one that ends in 'index'"
            )
        try:
            labels = [(folder / row["file"], int(row[column])) for row in reader]
        except (TypeError, ValueError) as error:
            raise TesseraError(f"{table}:{reader.line_num}: {error}") from error
    if not labels:
        raise TesseraError(f"{table}: has no rows")
    return labels


def score(model: Model, data: Path) -> dict[str, float]:
    """{'n', 'top1', 'top5'} of the first output's class scores over a folder."""
    spec, output = only_input(model, NAME), model.outputs[0].name
    labels = read_labels(data)
    first = fifth = 0
    for picture, label in labels:
        scores = model.run({spec.name: read_picture(spec, picture)})[output]
        order = np.argsort(-np.ravel(scores), kind="stable")
        first += int(order[0] == label)
        fifth += int(label in order[:5])
    return {"n": len(labels), "top1": first / len(labels), "top5": fifth / len(labels)}
