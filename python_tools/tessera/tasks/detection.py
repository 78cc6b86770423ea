# SPDX-License-Identifier: Apache-2.0
"""COCO mean average precision of a YOLOX network.

Boxes are [x1, y1, x2, y2] in pixels of the original picture. The average precision follows the COCO
evaluation: detections of a class in order of score, each matched to the free ground-truth box with
the highest overlap, crowd boxes match any number and count for nothing, precision interpolated at
101 recall points, mean over classes that occur, at most 100 detections a picture.
"""
from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ..errors import TesseraError
from . import Model, only_input, read_picture, require_data

NAME = "detection"

THRESHOLDS = np.linspace(0.5, 0.95, 10)
RECALL_POINTS = np.linspace(0, 1, 101)
MAX_DETECTIONS = 100
STRIDES = (8, 16, 32)


@dataclass
class Detections:
    """Of one picture: boxes [n,4], scores [n], classes [n]."""

    boxes: np.ndarray
    scores: np.ndarray
    classes: np.ndarray


def decode_yolox(output: np.ndarray, size: int) -> np.ndarray:
    """[1,cells,5+classes] raw output to the same with x, y, w, h in input pixels."""
    raw = np.array(output[0], np.float32)
    cells, scale = [], []
    for stride in STRIDES:
        n = size // stride
        y, x = np.mgrid[:n, :n]
        cells.append(np.stack([x.ravel(), y.ravel()], 1))
        scale.append(np.full((n * n, 1), stride))
    grid, stride_of = np.concatenate(cells), np.concatenate(scale)
    raw[:, :2] = (raw[:, :2] + grid) * stride_of
    raw[:, 2:4] = np.exp(raw[:, 2:4]) * stride_of
    return raw


def overlaps(a: np.ndarray, b: np.ndarray, crowd: np.ndarray | None = None) -> np.ndarray:
    """Intersection over union of every box of `a` with every box of `b`; for crowd boxes over the area of a."""
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
    """Indices that greedy non-maximum suppression keeps, best first."""
    order = np.argsort(-scores, kind="stable")
    keep: list[int] = []
    while order.size:
        best, rest = order[0], order[1:]
        keep.append(int(best))
        order = rest[overlaps(boxes[best:best + 1], boxes[rest])[0] <= threshold] if rest.size else rest
    return keep


def detect(output: np.ndarray, ratio: float, size: int, score_threshold: float = 0.01, nms: float = 0.65) -> Detections:
    """Detections of one YOLOX output; `ratio` is how much the letterbox shrank the picture into size x size."""
    raw = decode_yolox(output, size)
    centre, extent = raw[:, :2] / ratio, raw[:, 2:4] / ratio
    boxes = np.concatenate([centre - extent / 2, centre + extent / 2], axis=1)
    scores = raw[:, 4:5] * raw[:, 5:]
    parts: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []
    for cls in range(scores.shape[1]):
        mask = scores[:, cls] > score_threshold
        if mask.any():
            b, s = boxes[mask], scores[mask, cls]
            keep = suppress(b, s, nms)
            parts.append((b[keep], s[keep], np.full(len(keep), cls)))
    if not parts:
        return Detections(np.zeros((0, 4)), np.zeros(0), np.zeros(0, int))
    b, s, c = (np.concatenate(column) for column in zip(*parts))
    best = np.argsort(-s, kind="stable")[:MAX_DETECTIONS]
    return Detections(b[best], s[best], c[best])


def match(found: np.ndarray, truth: np.ndarray, crowd: np.ndarray, threshold: float) -> tuple[np.ndarray, np.ndarray]:
    """For detections in order of score: (is a true positive, is to be ignored)."""
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
    """Interpolated average precision of one class at one overlap threshold."""
    order = np.argsort(-scores, kind="mergesort")
    true = np.cumsum(hit[order])
    precision = true / np.arange(1, len(order) + 1)
    precision = np.maximum.accumulate(precision[::-1])[::-1]
    places = np.searchsorted(true / positives, RECALL_POINTS, side="left")
    return float(np.mean([precision[p] if p < len(precision) else 0.0 for p in places])) if len(order) else 0.0


def mean_average_precision(results: dict[int, Detections], annotations: dict) -> dict[str, float]:
    """{'mAP50', 'mAP'} of detections by picture id against COCO annotations."""
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
    """COCO's annotations.json. Raises TesseraError where it is none."""
    path = require_data(folder / "annotations.json", task)
    try:
        annotations = json.loads(path.read_text(encoding="utf-8"))
        annotations["images"], annotations["annotations"], annotations["categories"]
    except (ValueError, KeyError, TypeError) as error:
        raise TesseraError(f"{path}: is no COCO annotation file: {type(error).__name__}: {error}") from error
    return annotations


def score(model: Model, data: Path) -> dict[str, float]:
    """{'n', 'mAP50', 'mAP'} over the pictures of a COCO-style folder; the first output is YOLOX's, letterboxed."""
    from PIL import Image

    spec, output = only_input(model, NAME), model.outputs[0].name
    annotations = read_annotations(data, NAME)
    cells = sum((spec.shape[2] // stride) ** 2 for stride in STRIDES)
    results = {}
    for entry in annotations["images"]:
        path = data / entry["file_name"]
        array = read_picture(spec, path)
        with Image.open(path) as image:
            ratio = min(spec.shape[2] / image.height, spec.shape[3] / image.width)
        raw = model.run({spec.name: array})[output]
        if raw.ndim != 3 or raw.shape[1] != cells or raw.shape[2] < 6:
            raise TesseraError(f"--task {NAME}: output '{output}' {list(raw.shape)} is not a YOLOX's [1,{cells},5+classes]",
                               hint="score it with a function of your own: --scorer FILE.py")
        results[entry["id"]] = detect(raw, ratio, spec.shape[2])
    return {"n": len(results), **mean_average_precision(results, annotations)}
