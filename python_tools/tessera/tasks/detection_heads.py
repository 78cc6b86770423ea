# SPDX-License-Identifier: Apache-2.0
"""Decodes a detector's outputs to boxes: the YOLO family (yolo_heads.py), boxes with scores (SSD, torchvision,
TensorFlow), or a user's function.

A decoder takes the outputs by name, arrays with a batch of 1, and returns (boxes [n,4], scores [n], classes [n]): x1,
y1, x2, y2 in pixels of the network's input, classes counted from 0 in the order of the annotations' category ids.
Overlapping boxes are suppressed afterwards.
"""
from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Callable, Mapping

import numpy as np

from ..calibration.dataset import user_fault, user_function
from ..errors import TesseraError
from ..files import require_file
from . import yolo_heads
from .yolo_heads import Found, by_class, cells_of

DECODER_FUNCTION = "decode"
ADVICE = f"write your own decoder: --decoder FILE.py with a function {DECODER_FUNCTION}(outputs)"

Outputs = Mapping[str, np.ndarray]
Decoder = Callable[[Outputs], Found]


@dataclass(frozen=True)
class Head:
    """The facts a decoder needs: the input's size in pixels, the number of classes, and the annotations' category ids
    in ascending order (empty without annotations)."""

    height: int
    width: int
    classes: int
    ids: tuple[int, ...] = ()


def choose(outputs: Outputs, head: Head) -> Decoder:
    """Returns the decoder that fits the outputs' shapes. Raises TesseraError that lists the shapes if none does."""
    decoder = _grid(outputs, head) or _pairs(outputs, head)
    if head.ids:
        decoder = decoder or _lists(outputs, head)
    if decoder:
        return decoder
    shapes = ", ".join(f"'{name}' {list(array.shape)}" for name, array in outputs.items())
    cells = cells_of(head.height, head.width)
    raise TesseraError(
        f"--task detection: the outputs {shapes} are neither a YOLO's ([1,{cells},5+classes], "
        f"[1,{3 * cells},5+classes], [1,4+classes,{cells}], [1,n,6], or maps of 64 distances) nor boxes [1,n,4] with "
        f"scores [1,n,{head.classes}] or, with the background first, [1,n,{head.classes + 1}], nor boxes, scores and "
        "classes of n detections",
        hint=ADVICE,
    )


def _grid(outputs: Outputs, head: Head) -> Decoder | None:
    """Recognises heads with a row or a column for each cell of the grids."""
    cells, (name, first) = cells_of(head.height, head.width), next(iter(outputs.items()))
    maps = yolo_heads.distribution_maps(outputs, head.height, head.width, head.classes) or []
    if maps:
        return lambda arrays: yolo_heads.from_distributions(
            [np.concatenate([arrays[each][0] for each in names]) for names in maps]
        )
    if first.ndim != 3 or first.shape[0] != 1:
        return None
    if first.shape[2] == cells and first.shape[1] >= 5:
        return lambda arrays: yolo_heads.without_object_score(arrays[name][0].T, head.classes)
    if first.shape[1] == cells and first.shape[2] == 4 + head.classes:
        return lambda arrays: yolo_heads.without_object_score(arrays[name][0], head.classes)
    if first.shape[1] == cells and first.shape[2] >= 6:
        return lambda arrays: yolo_heads.with_object_score(
            yolo_heads.decode_yolox(arrays[name], head.height, head.width)
        )
    if first.shape[1] == 3 * cells and first.shape[2] >= 6:
        return lambda arrays: yolo_heads.with_object_score(arrays[name][0])
    return None


def _pairs(outputs: Outputs, head: Head) -> Decoder | None:
    """Recognises boxes [1,n,4] with scores [1,n,classes]."""
    floats = {name: array for name, array in outputs.items() if array.ndim == 3 and array.shape[0] == 1}
    columns = {head.classes, head.classes + 1}
    if head.ids:  # a column for every id: for COCO's 80 classes, 91 with the background or 90 without
        columns |= {head.ids[-1], head.ids[-1] + 1}
    for boxes, array in floats.items():
        rows = array.shape[1]
        scores = [
            name
            for name, other in floats.items()
            if name != boxes and other.shape[1] == rows and other.shape[2] in columns
        ]
        if array.shape[2] == 4 and len(scores) == 1:
            return lambda arrays: boxes_and_scores(arrays[boxes], arrays[scores[0]], head)
    return None


def _lists(outputs: Outputs, head: Head) -> Decoder | None:
    """Recognises detections selected by the network itself: rows of six numbers, or separate boxes, scores and
    classes."""
    name, first = next(iter(outputs.items()))
    if first.ndim == 3 and first.shape[::2] == (1, 6) and yolo_heads.is_end_to_end(first[0], head.classes):
        return lambda arrays: yolo_heads.end_to_end(arrays[name][0])
    boxes = [name for name, array in outputs.items() if array.size and array.shape[-1] == 4 and array.ndim in (2, 3)]
    if len(boxes) != 1:
        return None
    count = outputs[boxes[0]].size // 4
    columns = [name for name, array in outputs.items() if name != boxes[0] and array.size == count and count > 1]
    whole = [name for name in columns if np.array_equal(outputs[name], np.rint(outputs[name]))]
    if len(columns) != 2 or len(whole) != 1:
        return None
    scores = next(name for name in columns if name != whole[0])
    return lambda arrays: listed(arrays[boxes[0]], arrays[scores], arrays[whole[0]], head)


def recognise(outputs: Outputs, height: int, width: int) -> Decoder | None:
    """Returns the decoder that fits the outputs' shapes without knowing the number of classes; None if the outputs are
    not a detector's."""
    for scores in (array for array in outputs.values() if array.ndim == 3):
        shares = np.allclose(scores.sum(-1), 1, atol=1e-3)  # scores that add up to 1 include the background
        head = Head(height, width, scores.shape[2] - bool(shares and scores.shape[2] > 1))
        try:
            decoder = choose(outputs, head)
            decoder(outputs)
        except TesseraError:
            continue
        return decoder
    return None


def boxes_and_scores(boxes: np.ndarray, scores: np.ndarray, head: Head) -> Found:
    """Decodes boxes [1,n,4], x1, y1, x2, y2 as shares of the input, as output by SSD after its priors, with scores
    [1,n,columns]: a column for each class or each category id, with or without the background first."""
    columns = scores.shape[2]
    if columns in (head.classes, head.classes + 1):
        chosen = scores[0][:, columns - head.classes :]
    else:
        chosen = scores[0][:, [each - (head.ids[-1] + 1 - columns) for each in head.ids]]
    found = by_class(boxes[0], chosen)
    corners = found[0]
    if len(corners) and (np.mean(corners[:, 2:] >= corners[:, :2]) < 0.9 or np.median(np.abs(corners)) > 2):
        raise TesseraError(
            "--task detection: the boxes are not x1, y1, x2, y2 as shares of the input: the first is "
            + ", ".join(f"{value:.4g}" for value in corners[0]),
            hint=ADVICE,
        )
    return corners * _size(head), found[1], found[2]


def listed(boxes: np.ndarray, scores: np.ndarray, categories: np.ndarray, head: Head) -> Found:
    """Decodes n detections given as boxes, scores and category ids. Shares of the input are in TensorFlow's order y1,
    x1, y2, x2; pixels are in torchvision's order x1, y1, x2, y2. Unknown categories are left out."""
    boxes, scores, categories = boxes.reshape(-1, 4), scores.ravel(), np.rint(categories.ravel()).astype(int)
    position = {each: index for index, each in enumerate(head.ids)}
    keep = [i for i in np.flatnonzero(scores > yolo_heads.SCORE_THRESHOLD) if int(categories[i]) in position]
    classes = np.array([position[int(categories[i])] for i in keep], int)
    found = boxes[keep]
    if boxes.max(initial=0) <= 2:
        found = found[:, [1, 0, 3, 2]] * _size(head)
    return found, scores[keep], classes


def _size(head: Head) -> np.ndarray:
    return np.array([head.width, head.height, head.width, head.height], np.float32)


def users(file: str | Path) -> Decoder:
    """Returns the decoder function of a user's Python file. Raises TesseraError, also with the failing line if the
    function fails."""
    path = require_file(file, "decoder")
    function = user_function(
        path,
        "--decoder",
        f"{DECODER_FUNCTION}(outputs)",
        f"def {DECODER_FUNCTION}(outputs): return boxes, scores, classes",
    )

    def decode(outputs: Mapping[str, np.ndarray]) -> Found:
        try:
            boxes, scores, classes = (np.asarray(each) for each in function(dict(outputs)))
        except Exception as error:
            raise user_fault(path, error) from error
        if (
            boxes.ndim != 2
            or boxes.shape[1:] != (4,)
            or scores.shape != (len(boxes),)
            or classes.shape != (len(boxes),)
        ):
            raise TesseraError(
                f"--decoder {path}: {DECODER_FUNCTION}() returned shapes {list(boxes.shape)}, {list(scores.shape)}, "
                f"{list(classes.shape)}; expected boxes [n,4], scores [n], classes [n]"
            )
        return boxes, scores, classes.astype(int)

    return decode
