# SPDX-License-Identifier: Apache-2.0
"""Compares the answers of two models: the same class, the same boxes, the same pixels found.

The shape of an output determines its answer: boxes of a detector (detection_heads.py), the largest entry along the axis
of classes or, for one channel of probabilities, the places above 1/2. Other outputs have no answer.
"""
from __future__ import annotations

from typing import Mapping

import numpy as np

from . import detection_heads
from .detection import Detections, detect, overlaps

Arrays = Mapping[str, np.ndarray]
LIKELY = 0.3
"""Boxes with at least this score are compared."""
MOSTLY, HALF = 0.75, 0.5
"""Share of the samples that must agree: of outputs with a single answer, and of outputs with an answer at each of many
places."""
SAME_BOX = 0.5
"""Overlap from which two boxes of the same class count as equal."""


def count_same(wanted: Arrays, got: Arrays, size: tuple[int, int] | None) -> dict[str, tuple[int, int]]:
    """Returns (same, total) by output ("boxes" for a detector): for places with one class each, the equal ones and all;
    for boxes and places found or not found, twice the common ones and the sum of both models'. size: height and width
    of the picture that both models saw, if any."""
    if size and (decoder := detection_heads.recognise(wanted, *size)):
        ours, theirs = (detect(decoder(arrays)) for arrays in (got, wanted))
        return {"boxes": _same_boxes(ours, theirs)}
    found = {}
    for name, golden in wanted.items():
        if name in got and golden.dtype.kind == "f" and (counted := _same_places(golden, got[name])):
            found[name] = counted
    return found


def _same_boxes(ours: Detections, theirs: Detections) -> tuple[int, int]:
    kept, wanted = ours.scores > LIKELY, theirs.scores > LIKELY
    near = overlaps(ours.boxes[kept], theirs.boxes[wanted])
    near *= ours.classes[kept][:, None] == theirs.classes[wanted][None]
    same, free = 0, np.ones(near.shape[1], bool)
    for row in near:  # best first
        candidates = np.where(free, row, 0)
        if candidates.size and candidates.max() >= SAME_BOX:
            free[int(candidates.argmax())] = False
            same += 1
    return 2 * same, int(kept.sum() + wanted.sum())


def _same_places(golden: np.ndarray, got: np.ndarray) -> tuple[int, int] | None:
    axis = class_axis(golden.shape)
    if axis is not None:
        same = np.argmax(golden, axis=axis) == np.argmax(got, axis=axis)
        return int(same.sum()), same.size
    if golden.size and golden.min() >= 0 and golden.max() <= 1:
        both, either = (golden > 0.5) & (got > 0.5), int((golden > 0.5).sum() + (got > 0.5).sum())
        return 2 * int(both.sum()), either
    return None


def class_axis(shape: tuple[int, ...]) -> int | None:
    """Returns the axis of an output's classes: its last axis, or the channels if there are fewer of them than columns
    of a picture. None if there is one channel."""
    if len(shape) < 2:
        return None
    last = len(shape) - 1
    axes = [axis for axis in ((1, last) if len(shape) > 3 else (last,)) if shape[axis] > 1]
    if len(shape) > 3 and (shape[1] == 1 or shape[last] == 1) and min(shape[2:-1] or (1,)) > 1:
        return None  # one channel before or after the places
    return min(axes, key=lambda axis: shape[axis]) if axes else None


def only_answer(array: np.ndarray) -> int | None:
    """Returns the answer of an output of probabilities if it is the same at every place: the likeliest class or, for
    one channel, 1 if all are above 1/2 and 0 if none is. None if places differ."""
    axis = class_axis(array.shape)
    shares = axis is not None and np.allclose(array.sum(axis), 1, atol=1e-3)
    answer = np.argmax(array, axis=axis) if shares else array > 0.5
    return int(answer.flat[0]) if answer.size and (answer == answer.flat[0]).all() else None


def mostly_alike(answers: Mapping[int, Mapping[str, int | None]]) -> dict[str, int]:
    """Finds outputs with one and the same answer everywhere on most samples, given only_answer by sample and output;
    returns the number of such samples. Ranges and errors from such samples do not hold for inputs with other answers.

    An output with many places, e.g. of a detector, gives one answer everywhere only if there is nothing to find; half
    of the samples suffice. An output with one place always has one answer, and samples may contain one class more
    often.
    """
    names = dict.fromkeys(name for found in answers.values() for name in found)
    found = {}
    for name in names:
        said = [each[name] for each in answers.values() if each.get(name) is not None]
        most = max((said.count(answer) for answer in set(said)), default=0)
        places = len(said) < len(answers)  # places differ in some sample
        if len(answers) > 1 and (most >= MOSTLY * len(answers) or places and most > HALF * len(answers)):
            found[name] = most
    return found
