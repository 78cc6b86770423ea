# SPDX-License-Identifier: Apache-2.0
"""Mean intersection over union of a network with the 21 classes of PASCAL VOC, against COCO's polygons.

Objects of VOC's classes are painted from the largest to the smallest; the class scores are enlarged bilinearly to the
photo; only photos with more than 2 % of their pixels in a VOC class count.
"""
from __future__ import annotations

from pathlib import Path

import numpy as np

from ..errors import TesseraError
from . import Model, only_input, read_picture
from .detection import read_annotations

NAME = "segmentation"
CLASSES = 21
VOC_OF_COCO = {
    5: 1,
    2: 2,
    16: 3,
    9: 4,
    44: 5,
    6: 6,
    3: 7,
    17: 8,
    62: 9,
    21: 10,
    67: 11,
    18: 12,
    19: 13,
    4: 14,
    1: 15,
    64: 16,
    20: 17,
    63: 18,
    7: 19,
    72: 20,
}
LEAST_SHARE = 0.02


def paint(objects: list[dict], height: int, width: int) -> np.ndarray:
    """Returns [height,width] with the VOC class per pixel, 0: none."""
    from PIL import Image, ImageDraw

    image = Image.new("L", (width, height), 0)
    for entry in sorted((o for o in objects if o["category_id"] in VOC_OF_COCO), key=lambda o: -o["area"]):
        voc = VOC_OF_COCO[entry["category_id"]]
        if isinstance(entry["segmentation"], dict):
            image.paste(voc, mask=Image.fromarray(_run_lengths(entry["segmentation"]) * np.uint8(255)))
            continue
        for polygon in entry["segmentation"]:
            ImageDraw.Draw(image).polygon([tuple(point) for point in np.reshape(polygon, (-1, 2))], fill=voc)
    return np.asarray(image)


def _run_lengths(segmentation: dict) -> np.ndarray:
    """Decodes COCO's uncompressed run lengths, which alternate between 0 and 1, column by column."""
    height, width = segmentation["size"]
    counts = segmentation["counts"]
    flat = np.repeat(np.arange(len(counts)) % 2, counts).astype(np.uint8)
    return flat.reshape(width, height).T


def enlarge(scores: np.ndarray, height: int, width: int) -> np.ndarray:
    """Converts [C,h,w] class scores to the class of every pixel of height x width."""
    from PIL import Image

    planes = [
        np.asarray(Image.fromarray(plane.astype(np.float32)).resize((width, height), Image.BILINEAR))
        for plane in scores
    ]
    return np.argmax(np.stack(planes), axis=0)


def score(model: Model, data: Path) -> dict[str, float]:
    """Returns {'n', 'classes', 'mIoU', 'pixel_acc'}; the first output is [1,21,h,w]."""
    spec, output = only_input(model, NAME), model.outputs[0].name
    annotations = read_annotations(data, NAME)
    table = np.zeros((CLASSES, CLASSES), np.int64)
    right: list[float] = []
    for entry in annotations["images"]:
        truth = paint(
            [a for a in annotations["annotations"] if a["image_id"] == entry["id"]], entry["height"], entry["width"]
        )
        if np.mean(truth > 0) <= LEAST_SHARE:
            continue
        scores = model.run({spec.name: read_picture(spec, data / entry["file_name"])})[output]
        if scores.ndim != 4 or scores.shape[1] != CLASSES:
            raise TesseraError(
                f"--task {NAME}: output '{output}' {list(scores.shape)} is not [1,{CLASSES},h,w]",
                hint="score it with your own function: --scorer FILE.py",
            )
        found = enlarge(scores[0], *truth.shape)
        table += np.bincount(CLASSES * truth.ravel().astype(np.int64) + found.ravel(), minlength=CLASSES**2).reshape(
            CLASSES, CLASSES
        )
        right.append(float(np.mean(found == truth)))
    if not right:
        raise TesseraError(f"--task {NAME}: no photo of {data} shows enough of a VOC class")
    present = np.flatnonzero(table.sum(axis=1))
    union = table.sum(axis=0) + table.sum(axis=1) - np.diag(table)
    return {
        "n": len(right),
        "classes": len(present),
        "mIoU": float(np.mean((np.diag(table) / np.maximum(union, 1))[present])),
        "pixel_acc": float(np.mean(right)),
    }
