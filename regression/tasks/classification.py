# SPDX-License-Identifier: Apache-2.0
"""Top-1 and top-5 over a folder of labelled pictures."""
from __future__ import annotations

import csv
from pathlib import Path
from typing import Callable

import numpy as np

from tessera.preprocess import Preprocess

Runner = Callable[[np.ndarray], np.ndarray]


def read_labels(folder: Path) -> list[tuple[Path, int]]:
    """(picture, class index) for every row of labels.csv; the index is the column that ends in 'index'."""
    with open(folder / "labels.csv", newline="", encoding="utf-8") as file:
        reader = csv.DictReader(file)
        column = next(name for name in reader.fieldnames or [] if name.endswith("index"))
        return [(folder / row["file"], int(row[column])) for row in reader]


def score(run: Runner, folder: Path, preprocess: Preprocess, shape: tuple[int, ...]) -> dict[str, float]:
    """{'n', 'top1', 'top5'}; `run` maps one [1,C,H,W] float32 array to the class scores."""
    labels = read_labels(folder)
    first = fifth = 0
    for picture, label in labels:
        order = np.argsort(-np.ravel(run(preprocess.apply(picture, shape))), kind="stable")
        first += int(order[0] == label)
        fifth += int(label in order[:5])
    return {"n": len(labels), "top1": first / len(labels), "top5": fifth / len(labels)}
