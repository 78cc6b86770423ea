# SPDX-License-Identifier: Apache-2.0
"""COCO mean average precision of a detector.

Boxes are [x1, y1, x2, y2] in pixels of the original picture. The average precision follows the COCO evaluation: the
detections of a class are matched in order of score to the free ground-truth box with the highest overlap; crowd boxes
match any number and are ignored; precision is interpolated at 101 recall points and averaged over the classes that
occur; at most 100 detections per picture count.
"""
from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ..errors import TesseraError
from ..files import load_json
from ..inputs import InputSpec
from ..preprocess import Preprocess, read_upright
from . import Model, detection_heads, only_input, read_picture, require_data

NAME = "detection"

THRESHOLDS = np.linspace(0.5, 0.95, 10)
RECALL_POINTS = np.linspace(0, 1, 101)
MAX_DETECTIONS = 100


@dataclass
class Detections:
    """Detections in one picture: boxes [n,4], scores [n], classes [n]."""

    boxes: np.ndarray
    scores: np.ndarray
    classes: np.ndarray


def overlaps(a: np.ndarray, b: np.ndarray, crowd: np.ndarray | None = None) -> np.ndarray:
    """Returns the intersection over union of every box of `a` with every box of `b`; for crowd boxes, over the area of
    a."""
    top_left = np.maximum(a[:, None, :2], b[None, :, :2])
    bottom_right = np.minimum(a[:, None, 2:], b[None, :, 2:])
    inter = np.prod(np.clip(bottom_right - top_left, 0, None), axis=2)
    area_a = np.prod(a[:, 2:] - a[:, :2], axis=1)[:, None]
    area_b = np.prod(b[:, 2:] - b[:, :2], axis=1)[None]
    union = area_a + area_b - inter
    if crowd is not None:
        union = np.where(crowd[None, :], area_a, union)
    return inter / np.maximum(union, 1e-12)


def suppress(boxes: np.ndarray, scores: np.ndarray, threshold: float) -> list[int]:
    """Returns the indices kept by greedy non-maximum suppression, the best first."""
    order = np.argsort(-scores, kind="stable")
    keep: list[int] = []
    while order.size:
        best, rest = order[0], order[1:]
        keep.append(int(best))
        order = rest[overlaps(boxes[best : best + 1], boxes[rest])[0] <= threshold] if rest.size else rest
    return keep


def detect(found: detection_heads.Found, nms: float = 0.65) -> Detections:
    """Returns the best detections of a decoder without boxes that overlap a better one of their class."""
    boxes, scores, classes = found
    keep = [
        np.flatnonzero(classes == cls)[suppress(boxes[classes == cls], scores[classes == cls], nms)]
        for cls in np.unique(classes)
    ]
    if not keep:
        return Detections(np.zeros((0, 4)), np.zeros(0), np.zeros(0, int))
    best = np.concatenate(keep)
    best = best[np.argsort(-scores[best], kind="stable")[:MAX_DETECTIONS]]
    return Detections(boxes[best], scores[best], classes[best])


def to_picture(boxes: np.ndarray, spec: InputSpec, width: int, height: int) -> np.ndarray:
    """Converts boxes from pixels of the input to pixels of the original picture. Raises TesseraError if the
    pre-processing cropped it."""
    how = spec.preprocess or Preprocess()
    if not how.keep_aspect_ratio:
        return boxes * np.array([width / spec.shape[3], height / spec.shape[2]] * 2, np.float32)
    if how.keep_ratio_mode != "letterbox":
        raise TesseraError(
            f"--task {NAME}: the pre-processing crops pictures ({how.keep_ratio_mode}), so boxes at their borders "
            "are lost",
            hint="use model_transform with --keep_ratio_mode letterbox, or without --keep_aspect_ratio",
        )
    ratio = min(spec.shape[2] / height, spec.shape[3] / width)
    centred = how.pad_type == "center"
    left, top = ((spec.shape[3] - width * ratio) / 2, (spec.shape[2] - height * ratio) / 2) if centred else (0, 0)
    return np.divide(boxes - np.array([left, top] * 2, np.float32), ratio)


def match(found: np.ndarray, truth: np.ndarray, crowd: np.ndarray, threshold: float) -> tuple[np.ndarray, np.ndarray]:
    """Returns, for detections in order of score: (is a true positive, is ignored)."""
    hit, ignored = np.zeros(len(found), bool), np.zeros(len(found), bool)
    if not len(truth) or not len(found):
        return hit, ignored
    iou = overlaps(found, truth, crowd)
    free = ~crowd
    for i in range(len(found)):
        candidates = np.where(free & (iou[i] >= threshold), iou[i], -1)
        best = int(np.argmax(candidates))
        if candidates[best] >= 0:
            hit[i], free[best] = True, False
        elif (crowd & (iou[i] >= threshold)).any():
            ignored[i] = True
    return hit, ignored


def average_precision(hit: np.ndarray, scores: np.ndarray, positives: int) -> float:
    """Returns the interpolated average precision of one class at one overlap threshold."""
    order = np.argsort(-scores, kind="mergesort")
    true = np.cumsum(hit[order])
    precision = true / np.arange(1, len(order) + 1)
    precision = np.maximum.accumulate(precision[::-1])[::-1]
    places = np.searchsorted(true / positives, RECALL_POINTS, side="left")
    return float(np.mean([precision[p] if p < len(precision) else 0.0 for p in places])) if len(order) else 0.0


def mean_average_precision(results: dict[int, Detections], annotations: dict) -> dict[str, float]:
    """Returns {'mAP50', 'mAP'} of detections by picture id against COCO annotations."""
    categories = sorted(c["id"] for c in annotations["categories"])
    truth: dict[tuple[int, int], list[dict]] = {}
    for a in annotations["annotations"]:
        truth.setdefault((a["image_id"], categories.index(a["category_id"])), []).append(a)
    table = []
    for cls in sorted({key[1] for key in truth}):
        rows: list[list[np.ndarray]] = [[] for _ in THRESHOLDS]
        scores, positives = [], 0
        for image, detections in results.items():
            here = truth.get((image, cls), [])
            boxes = np.array([[x, y, x + w, y + h] for x, y, w, h in (a["bbox"] for a in here)]).reshape(-1, 4)
            crowd = np.array([bool(a["iscrowd"]) for a in here], bool)
            positives += int((~crowd).sum())
            mask = detections.classes == cls
            scores.append(detections.scores[mask])
            for row, threshold in zip(rows, THRESHOLDS):
                hit, ignored = match(detections.boxes[mask], boxes, crowd, threshold)
                row.append(np.stack([hit, ignored]))
        if not positives:
            continue
        s = np.concatenate(scores)
        line = []
        for row in rows:
            hit, ignored = np.concatenate(row, axis=1)
            line.append(average_precision(hit[~ignored], s[~ignored], positives))
        table.append(line)
    ap = np.array(table)
    return {"mAP50": float(ap[:, 0].mean()), "mAP": float(ap.mean())}


def read_annotations(folder: Path, task: str) -> dict:
    """Reads COCO's annotations.json. Raises TesseraError if the file is not one."""
    path = require_data(folder / "annotations.json", task)
    annotations = load_json(path, "annotations")
    try:
        annotations["images"], annotations["annotations"], annotations["categories"]
    except (ValueError, KeyError, TypeError) as error:
        raise TesseraError(f"{path}: not a COCO annotation file: {type(error).__name__}: {error}") from error
    return annotations


def score(model: Model, data: Path, decoder: detection_heads.Decoder | None = None) -> dict[str, float]:
    """Returns {'n', 'mAP50', 'mAP'} over the pictures of a COCO-style folder. `decoder` decodes the outputs; by default
    it is chosen by their shapes (detection_heads.py)."""
    spec = only_input(model, NAME)
    annotations = read_annotations(data, NAME)
    ids = tuple(sorted(int(category["id"]) for category in annotations["categories"]))
    head = detection_heads.Head(spec.shape[2], spec.shape[3], len(ids), ids)
    results = {}
    for entry in annotations["images"]:
        path = data / entry["file_name"]
        array = read_picture(spec, path)
        width, height = read_upright(path).size
        outputs = model.run({spec.name: array})
        ordered = {each.name: outputs[each.name] for each in model.outputs}
        decoder = decoder or detection_heads.choose(ordered, head)
        boxes, scores, classes = decoder(ordered)
        results[entry["id"]] = detect((to_picture(boxes, spec, width, height), scores, classes))
    return {"n": len(results), **mean_average_precision(results, annotations)}
