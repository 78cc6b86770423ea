# SPDX-License-Identifier: Apache-2.0
"""Decoders of the YOLO family's outputs, as their exporters write them.

| network | output | boxes | scores |
|---|---|---|---|
| YOLOX | [1, cells, 5 + classes] | offsets to the cell, logarithms of sizes | object x class |
| YOLOv5, v7 | [1, 3 cells, 5 + classes] | centre and size in pixels | object x class |
| YOLOv8, v9, v11 | [1, 4 + classes (+ masks), cells], or transposed | centre and size in pixels | class |
| YOLOv8 to v11, raw | per stride [1, 64 + classes, h, w] | distributions of 4 distances (DFL) | class, sigmoid or not |
| YOLOv10, or with NMS inside | [1, n, 6] | corners in pixels | score, then the class |

`cells` is the number of cells of all strides: (h / 8)(w / 8) + (h / 16)(w / 16) + (h / 32)(w / 32).
"""
from __future__ import annotations

from typing import Mapping, Sequence

import numpy as np

STRIDES = (8, 16, 32)
SCORE_THRESHOLD = 0.01
DISTANCES = 16  # bins of a distance's distribution, in cells

Found = tuple[np.ndarray, np.ndarray, np.ndarray]


def by_class(boxes: np.ndarray, scores: np.ndarray) -> Found:
    """Returns all pairs above the threshold of boxes [n,4] and scores [n,classes]."""
    rows, classes = np.nonzero(scores > SCORE_THRESHOLD)
    return boxes[rows], scores[rows, classes], classes


def cells_of(height: int, width: int) -> int:
    return sum((height // stride) * (width // stride) for stride in STRIDES)


def corners(centre: np.ndarray, extent: np.ndarray) -> np.ndarray:
    """Returns x1, y1, x2, y2 of boxes given by their centres and sizes."""
    return np.concatenate([centre - extent / 2, centre + extent / 2], axis=1)


def decode_yolox(output: np.ndarray, height: int, width: int) -> np.ndarray:
    """Returns a raw output [1,cells,5+classes] with x, y, w, h in input pixels."""
    raw = np.array(output[0], np.float32)
    cells, scale = [], []
    for stride in STRIDES:
        y, x = np.mgrid[: height // stride, : width // stride]
        cells.append(np.stack([x.ravel(), y.ravel()], 1))
        scale.append(np.full((x.size, 1), stride))
    grid, stride_of = np.concatenate(cells), np.concatenate(scale)
    raw[:, :2] = (raw[:, :2] + grid) * stride_of
    raw[:, 2:4] = np.exp(raw[:, 2:4]) * stride_of
    return raw


def with_object_score(raw: np.ndarray) -> Found:
    """Decodes raw [n,5+classes]: centre and size in pixels, the object's score, the classes' scores."""
    return by_class(corners(raw[:, :2], raw[:, 2:4]), raw[:, 4:5] * raw[:, 5:])


def without_object_score(raw: np.ndarray, classes: int) -> Found:
    """Decodes raw [n,4+classes+more]: centre and size in pixels, the classes' scores; `more` are mask coefficients."""
    return by_class(corners(raw[:, :2], raw[:, 2:4]), raw[:, 4 : 4 + classes])


def end_to_end(rows: np.ndarray) -> Found:
    """Decodes rows [n,6]: x1, y1, x2, y2 in pixels, score, class."""
    rows = rows[rows[:, 4] > SCORE_THRESHOLD]
    return rows[:, :4], rows[:, 4], np.rint(rows[:, 5]).astype(int)


def is_end_to_end(rows: np.ndarray, classes: int) -> bool:
    """Returns true if rows [n,6] hold scores in 0..1 and valid integer classes."""
    scores, labels = rows[:, 4], rows[:, 5]
    return bool(
        np.all((scores >= 0) & (scores <= 1)) and np.all(labels == np.rint(labels)) and np.all(labels < classes)
    )


def distribution_maps(
    outputs: Mapping[str, np.ndarray], height: int, width: int, classes: int
) -> list[list[str]] | None:
    """Returns, for each stride, the names of the outputs that hold the 64 distances and the classes' scores (one name
    if they are one tensor); None unless the outputs are such maps and nothing else matches."""
    found = []
    for stride in STRIDES:
        here = {
            name: array.shape[1]
            for name, array in outputs.items()
            if array.ndim == 4 and array.shape[2:] == (height // stride, width // stride)
        }
        whole = [name for name, channels in here.items() if channels == 4 * DISTANCES + classes]
        boxes = [name for name, channels in here.items() if channels == 4 * DISTANCES]
        scores = [name for name, channels in here.items() if channels == classes]
        if len(whole) == 1:
            found.append(whole)
        elif len(boxes) == 1 and len(scores) == 1:
            found.append([boxes[0], scores[0]])
        else:
            return None
    return found


def from_distributions(maps: Sequence[np.ndarray]) -> Found:
    """Decodes maps, for each stride [64+classes,h,w]. A distance to a side of the box is the mean of its distribution,
    in cells from the cell's centre (Generalized Focal Loss, Li et al. 2020)."""
    boxes, scores = [], []
    for stride, both in zip(STRIDES, maps):
        rows = both.reshape(both.shape[0], -1).T.astype(np.float32)
        bins = rows[:, : 4 * DISTANCES].reshape(-1, 4, DISTANCES)
        shares = np.exp(bins - bins.max(-1, keepdims=True))
        distances = (shares * np.arange(DISTANCES)).sum(-1) / shares.sum(-1)
        y, x = np.mgrid[: both.shape[1], : both.shape[2]]
        centre = np.stack([x.ravel(), y.ravel()], 1) + 0.5
        boxes.append(np.concatenate([centre - distances[:, :2], centre + distances[:, 2:]], axis=1) * stride)
        scores.append(rows[:, 4 * DISTANCES :])
    every = np.concatenate(scores)
    if every.size and (every.min() < 0 or every.max() > 1):  # scores before the sigmoid
        every = 1 / (1 + np.exp(-every))
    return by_class(np.concatenate(boxes).astype(np.float32), every)
