# SPDX-License-Identifier: Apache-2.0
"""From a detector's outputs to boxes: YOLOX's head, boxes with scores (SSD and its kin), or a function of the user's.

A decoder takes the outputs by name, arrays with a batch of 1, and gives (boxes [n,4], scores [n], classes [n]): x1,
y1, x2, y2 in pixels of the network's input, classes counted from 0 in the order of the annotations' category ids.
What overlaps is suppressed after it.
"""
from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Callable, Mapping

import numpy as np

from ..calibration.dataset import user_fault, user_function
from ..errors import TesseraError
from ..files import require_file

DECODER_FUNCTION = "decode"
STRIDES = (8, 16, 32)
SCORE_THRESHOLD = 0.01
ADVICE = f"give a decoder of your own: --decoder FILE.py with a function {DECODER_FUNCTION}(outputs)"

Found = tuple[np.ndarray, np.ndarray, np.ndarray]
Decoder = Callable[[Mapping[str, np.ndarray]], Found]


@dataclass(frozen=True)
class Head:
    """What a decoder must know: the input's size in pixels, and how many classes the annotations have."""

    height: int
    width: int
    classes: int


def choose(outputs: Mapping[str, np.ndarray], head: Head) -> Decoder:
    """The decoder that the outputs' shapes speak for. Raises TesseraError that lists them."""
    cells = sum((head.height // stride) * (head.width // stride) for stride in STRIDES)
    floats = {name: array for name, array in outputs.items() if array.ndim == 3 and array.shape[0] == 1}
    first = next(iter(outputs.values()))
    if first.ndim == 3 and first.shape[1] == cells and first.shape[2] >= 6:
        name = next(iter(outputs))
        return lambda arrays: yolox(arrays[name], head)
    for boxes, array in floats.items():
        rows = array.shape[1]
        scores = [
            name
            for name, other in floats.items()
            if name != boxes and other.shape[1] == rows and other.shape[2] in (head.classes, head.classes + 1)
        ]
        if array.shape[2] == 4 and len(scores) == 1:
            return lambda arrays: boxes_and_scores(arrays[boxes], arrays[scores[0]], head)
    shapes = ", ".join(f"'{name}' {list(array.shape)}" for name, array in outputs.items())
    raise TesseraError(
        f"--task detection: the outputs {shapes} are neither YOLOX's [1,{cells},5+classes] nor boxes [1,n,4] with "
        "scores "
        f"[1,n,{head.classes}] or, with the background first, [1,n,{head.classes + 1}]",
        hint=ADVICE,
    )


def recognise(outputs: Mapping[str, np.ndarray], height: int, width: int) -> Decoder | None:
    """The decoder that the outputs' shapes speak for where nobody tells how many classes there are; None: they are no
    detector's."""
    for scores in (array for array in outputs.values() if array.ndim == 3):
        shares = np.allclose(scores.sum(-1), 1, atol=1e-3)  # of one sum: the background is one of them
        head = Head(height, width, scores.shape[2] - bool(shares and scores.shape[2] > 1))
        try:
            decoder = choose(outputs, head)
            decoder(outputs)
        except TesseraError:
            continue
        return decoder
    return None


def by_class(boxes: np.ndarray, scores: np.ndarray) -> Found:
    """Of boxes [n,4] and scores [n,classes] all pairs above the threshold."""
    rows, classes = np.nonzero(scores > SCORE_THRESHOLD)
    return boxes[rows], scores[rows, classes], classes


def decode_yolox(output: np.ndarray, height: int, width: int) -> np.ndarray:
    """[1,cells,5+classes] raw output to the same with x, y, w, h in input pixels."""
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


def yolox(output: np.ndarray, head: Head) -> Found:
    raw = decode_yolox(output, head.height, head.width)
    centre, extent = raw[:, :2], raw[:, 2:4]
    return by_class(np.concatenate([centre - extent / 2, centre + extent / 2], axis=1), raw[:, 4:5] * raw[:, 5:])


def boxes_and_scores(boxes: np.ndarray, scores: np.ndarray, head: Head) -> Found:
    """boxes [1,n,4]: x1, y1, x2, y2 as shares of the input, as SSD gives them after its priors; scores [1,n,classes]:
    with one class more than the annotations the first is the background."""
    found = by_class(boxes[0], scores[0][:, scores.shape[2] - head.classes :])
    corners = found[0]
    if len(corners) and (np.mean(corners[:, 2:] >= corners[:, :2]) < 0.9 or np.median(np.abs(corners)) > 2):
        raise TesseraError(
            "--task detection: the boxes are not x1, y1, x2, y2 as shares of the input: the first is "
            + ", ".join(f"{value:.4g}" for value in corners[0]),
            hint=ADVICE,
        )
    return corners * np.array([head.width, head.height, head.width, head.height], np.float32), found[1], found[2]


def users(file: str | Path) -> Decoder:
    """The function of a user's Python file. Raises TesseraError, where it fails too, with the line in the file."""
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
