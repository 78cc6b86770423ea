# SPDX-License-Identifier: Apache-2.0
"""Whether two models answer alike: the same class, the same boxes, the same pixels found.

What an output's answer is, its shape says: boxes of a detector (detection_heads.py), the largest entry along the axis
of classes, or, of one channel of probabilities, the places above 1/2. Other outputs have none.
"""
from __future__ import annotations

from typing import Mapping

import numpy as np

from . import detection_heads
from .detection import Detections, detect, overlaps

Arrays = Mapping[str, np.ndarray]
LIKELY = 0.3
"""Boxes of at least this score are compared."""
MOSTLY, HALF = 0.75, 0.5
"""Of the samples: of outputs with one answer, and more than so many of those with an answer at each of many places."""
SAME_BOX = 0.5
"""Overlap from which a box of the same class is the same one."""


def count_same(wanted: Arrays, got: Arrays, size: tuple[int, int] | None) -> dict[str, tuple[int, int]]:
    """By output (of a detector: "boxes") what is the same and what there is: of places with one class each the same and
    all; of boxes and places found or not found twice those of both, and those of either added. size: height and width
    of the picture that both saw, where they saw one."""
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
    """Where the classes of an output are: its last axis, or that of channels where these are fewer than the columns of
    a picture. None where there is one channel."""
    if len(shape) < 2:
        return None
    last = len(shape) - 1
    axes = [axis for axis in ((1, last) if len(shape) > 3 else (last,)) if shape[axis] > 1]
    if len(shape) > 3 and (shape[1] == 1 or shape[last] == 1) and min(shape[2:-1] or (1,)) > 1:
        return None  # one channel before or behind the places
    return min(axes, key=lambda axis: shape[axis]) if axes else None


def only_answer(array: np.ndarray) -> int | None:
    """Of an output that holds probabilities: the class that is likeliest at every place, or, of one channel, 1 where
    all are above 1/2, 0 where none is. None where places differ."""
    axis = class_axis(array.shape)
    shares = axis is not None and np.allclose(array.sum(axis), 1, atol=1e-3)
    answer = np.argmax(array, axis=axis) if shares else array > 0.5
    return int(answer.flat[0]) if answer.size and (answer == answer.flat[0]).all() else None


def mostly_alike(answers: Mapping[int, Mapping[str, int | None]]) -> dict[str, int]:
    """By the outputs' only_answer for each sample: those that say one and the same thing everywhere on most samples,
    and on how many. What such samples tell of ranges and errors does not hold for inputs that have other answers.

    An output of many places, as a detector's, says nothing at all of them only where there is nothing to find: half of
    the samples are enough. One of one place always has an answer, and samples may have one class more often."""
    names = dict.fromkeys(name for found in answers.values() for name in found)
    found = {}
    for name in names:
        said = [each[name] for each in answers.values() if each.get(name) is not None]
        most = max((said.count(answer) for answer in set(said)), default=0)
        places = len(said) < len(answers)  # that differ in some sample
        if len(answers) > 1 and (most >= MOSTLY * len(answers) or places and most > HALF * len(answers)):
            found[name] = most
    return found
