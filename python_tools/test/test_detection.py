# SPDX-License-Identifier: Apache-2.0
"""Tests that detectors of three kinds get the same scores: a YOLOX, boxes with scores, and a user's decoding
function."""
from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from tessera.errors import TesseraError
from tessera.inputs import InputSpec
from tessera.preprocess import Preprocess
from tessera.tasks import detection, detection_heads

# x, y, width, height in the picture of 120 x 60, and the class
TRUTH = [((12, 6, 36, 30), 0), ((60, 24, 48, 24), 1)]


class Fake:
    """A model with the same outputs for every picture."""

    def __init__(self, spec: InputSpec, outputs: dict[str, np.ndarray]) -> None:
        self.inputs = [spec]
        self.outputs = [InputSpec(name, array.shape, "float32") for name, array in outputs.items()]
        self._arrays = outputs

    def run(self, arrays):
        return dict(self._arrays)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    Image.new("RGB", (120, 60), (9, 9, 9)).save(tmp_path / "a.png")
    annotations = {
        "images": [{"id": 1, "file_name": "a.png"}],
        "categories": [{"id": 3}, {"id": 8}],
        "annotations": [
            {"image_id": 1, "category_id": (3, 8)[cls], "bbox": list(box), "iscrowd": 0} for box, cls in TRUTH
        ],
    }
    (tmp_path / "annotations.json").write_text(json.dumps(annotations))
    return tmp_path


def spec(letterbox: bool = False) -> InputSpec:
    how = Preprocess(keep_aspect_ratio=letterbox, pad_type="normal")
    return InputSpec("x", (1, 3, 32, 96), "float32", how)


def shares(letterbox: bool) -> np.ndarray:
    """Returns the true boxes and a false one, as fractions of the input."""
    ratio = 32 / 60
    scale = np.float32([ratio / 96, ratio / 32] if letterbox else [1 / 120, 1 / 60])
    corners = np.float32([[x, y, x + w, y + h] for (x, y, w, h), _ in TRUTH] + [[80, 2, 90, 12]])
    return corners * np.concatenate([scale, scale])


SCORES = np.float32([[0.1, 0.9, 0.0], [0.3, 0.0, 0.7], [0.9, 0.06, 0.04]])  # the first column is the background


@pytest.mark.parametrize("letterbox", [False, True])
@pytest.mark.parametrize("background", [False, True])
def test_boxes_and_scores(data: Path, letterbox: bool, background: bool) -> None:
    scores = SCORES if background else SCORES[:, 1:]
    model = Fake(spec(letterbox), {"scores": scores[None], "boxes": shares(letterbox)[None].astype(np.float32)})
    assert detection.score(model, data) == {"n": 1, "mAP50": pytest.approx(1.0), "mAP": pytest.approx(1.0)}
    swapped = Fake(spec(letterbox), {"boxes": shares(letterbox)[None], "scores": scores[None][:, ::-1]})
    assert detection.score(swapped, data)["mAP50"] < 0.8


def test_boxes_in_another_form_are_rejected(data: Path) -> None:
    boxes = shares(False)[None]
    with pytest.raises(TesseraError, match="not x1, y1, x2, y2 as shares") as caught:
        detection.score(Fake(spec(), {"boxes": boxes * 96, "scores": SCORES[None]}), data)
    assert "--decoder" in caught.value.hint
    with pytest.raises(TesseraError, match=r"'boxes' \[1, 3, 4\], 'scores' \[1, 3, 7\] are neither"):
        detection.score(Fake(spec(), {"boxes": boxes, "scores": np.zeros((1, 3, 7), np.float32)}), data)


def test_a_users_decoder(data: Path, tmp_path: Path) -> None:
    model = Fake(
        spec(), {"left": shares(False)[:, :2], "size": shares(False)[:, 2:] - shares(False)[:, :2], "scores": SCORES}
    )
    file = tmp_path / "mine.py"
    file.write_text(
        """import numpy as np
def decode(outputs):
    corners = np.concatenate([outputs["left"], outputs["left"] + outputs["size"]], 1) * [96, 32, 96, 32]
    return corners[:2], outputs["scores"][:2, 1:].max(1), outputs["scores"][:2, 1:].argmax(1)
"""
    )
    assert detection.score(model, data, detection_heads.users(file))["mAP"] == pytest.approx(1.0)
    for text, message in (
        ("def decode(outputs):\n  return outputs['nope']\n", "mine.py:2: KeyError"),
        ("x = 1\n", "does not define a function decode"),
        ("def decode(outputs):\n  return [[1, 2, 3]], [1], [0]\n", r"returned shapes \[1, 3\]"),
        ("def (\n", "mine.py:1: SyntaxError"),
    ):
        file.write_text(text)
        with pytest.raises(TesseraError, match=message):
            detection.score(model, data, detection_heads.users(file))


def in_pixels() -> np.ndarray:
    return shares(True)[:2].astype(np.float32) * [96, 32, 96, 32]


def centred() -> np.ndarray:
    """Returns the true boxes as centre and size in pixels, with the scores of their classes."""
    corners = in_pixels()
    classes = np.eye(2, dtype=np.float32)[[cls for _, cls in TRUTH]] * 0.9
    return np.concatenate([(corners[:, :2] + corners[:, 2:]) / 2, corners[:, 2:] - corners[:, :2], classes], 1)


CELLS = 12 * 4 + 6 * 2 + 3 * 1


def rows_of(count: int, rows: np.ndarray) -> np.ndarray:
    """Returns [1,count,n]: `rows` at every seventh place, and zeros elsewhere."""
    every = np.zeros((1, count, rows.shape[1]), np.float32)
    every[0, 3 : 3 + 7 * len(rows) : 7] = rows
    return every


def yolo_outputs(kind: str) -> dict[str, np.ndarray]:
    if kind == "v8":
        return {"output0": rows_of(CELLS, centred()).transpose(0, 2, 1)}
    if kind == "v8 with masks":
        rows = np.concatenate([centred(), np.full((2, 32), 5, np.float32)], 1)
        return {"output0": rows_of(CELLS, rows).transpose(0, 2, 1), "output1": np.zeros((1, 32, 8, 24), np.float32)}
    if kind == "v8 transposed":
        return {"output0": rows_of(CELLS, centred())}
    if kind == "v5":
        return {"output0": rows_of(3 * CELLS, np.insert(centred(), 4, 0.9, axis=1))}
    rows = np.concatenate([in_pixels(), np.float32([[0.9, 0], [0.8, 1]])], 1)
    return {"output0": rows_of(300, rows)}


@pytest.mark.parametrize("kind", ["v8", "v8 with masks", "v8 transposed", "v5", "v10"])
def test_yolo(data: Path, kind: str) -> None:
    outputs = yolo_outputs(kind)
    assert detection.score(Fake(spec(True), outputs), data)["mAP"] == pytest.approx(1.0)
    halved = {name: array * np.float32(0.5) for name, array in outputs.items()}
    if kind == "v10":  # this kind has classes as whole numbers
        halved = {"output0": outputs["output0"] * np.float32([0.5, 0.5, 0.5, 0.5, 1, 1])}
    assert detection.score(Fake(spec(True), halved), data)["mAP"] < 0.5


@pytest.mark.parametrize("apart", [False, True])
@pytest.mark.parametrize("logits", [False, True])
def test_yolo_without_decoding(data: Path, apart: bool, logits: bool) -> None:
    """A distance of 2.25 cells is a distribution of 0.75 at 2 and 0.25 at 3."""
    boxes = [np.full((64, 32 // s, 96 // s), -60, np.float32) for s in (8, 16, 32)]
    scores = [np.full((2, 32 // s, 96 // s), -20 if logits else 0, np.float32) for s in (8, 16, 32)]
    for (x, y), box, (_, cls) in zip(((2, 1), (6, 2)), in_pixels(), TRUTH):
        distances = np.array([x + 0.5 - box[0] / 8, y + 0.5 - box[1] / 8, box[2] / 8 - x - 0.5, box[3] / 8 - y - 0.5])
        for side, distance in enumerate(distances):
            whole = int(distance)
            boxes[0][16 * side + whole, y, x] = np.log(1 - (distance - whole) + 1e-12)
            boxes[0][16 * side + whole + 1, y, x] = np.log(distance - whole + 1e-12)
        scores[0][cls, y, x] = 3 if logits else 0.9
    if apart:
        outputs = {f"b{i}": each[None] for i, each in enumerate(boxes)}
        outputs.update({f"s{i}": each[None] for i, each in enumerate(scores)})
    else:
        outputs = {f"o{i}": np.concatenate(pair)[None] for i, pair in enumerate(zip(boxes, scores))}
    assert detection.score(Fake(spec(True), outputs), data)["mAP"] == pytest.approx(1.0)


def test_categories_by_their_ids(data: Path) -> None:
    """The networks of TensorFlow and torchvision have a column, or a number, for each of COCO's 91 ids, although only
    80 are used. Here the ids are 3 and 8."""
    scores = np.zeros((3, 9), np.float32)
    scores[:, 0] = SCORES[:, 0]
    scores[:, [3, 8]] = SCORES[:, 1:]
    for columns in (scores, scores[:, 1:]):
        model = Fake(spec(), {"boxes": shares(False)[None].astype(np.float32), "scores": columns[None]})
        assert detection.score(model, data)["mAP"] == pytest.approx(1.0)
    boxes = shares(False)[:, [1, 0, 3, 2]].astype(np.float32)
    tensorflow = {
        "detection_boxes": boxes[None],
        "detection_classes": np.float32([[3, 8, 5]]),
        "detection_scores": np.float32([[0.9, 0.7, 0.6]]),
        "num_detections": np.float32([3]),
    }
    assert detection.score(Fake(spec(), tensorflow), data)["mAP"] == pytest.approx(1.0)
    torchvision = {
        "boxes": (shares(False) * [96, 32, 96, 32]).astype(np.float32),
        "labels": np.array([3, 8, 5]),
        "scores": np.float32([0.9, 0.7, 0.6]),
    }
    assert detection.score(Fake(spec(), torchvision), data)["mAP"] == pytest.approx(1.0)


def test_a_picture_that_was_taken_upright(data: Path) -> None:
    """Its pixels lie on their side, and its EXIF orientation states this."""
    exif = Image.Exif()
    exif[0x0112] = 6  # to be rotated clockwise by 90 degrees
    lying = Image.new("RGB", (60, 120), (9, 9, 9))
    lying.paste((200, 0, 0), (0, 0, 60, 60))
    lying.save(data / "a.png", exif=exif)
    model = Fake(spec(), {"scores": SCORES[None], "boxes": shares(False)[None].astype(np.float32)})
    assert detection.score(model, data)["mAP"] == pytest.approx(1.0)
    pixels = Preprocess(pixel_format="rgb").apply(data / "a.png", (1, 3, 60, 120))
    assert pixels[0, 0, :, 60:].min() == 200 and pixels[0, 0, :, :60].max() == 9


def test_yolox(data: Path) -> None:
    """Each box has one cell with its centre and size, and the scores of the object and of the classes."""
    grid = [(x, y, s) for s in (8, 16, 32) for y in range(32 // s) for x in range(96 // s)]
    raw = np.zeros((1, len(grid), 7), np.float32)
    corners = shares(True)[:2] * [96, 32, 96, 32]
    for cell, (box, (_, cls)) in enumerate(zip(corners, TRUTH)):
        x, y, stride = grid[cell]
        raw[0, cell, :4] = [
            (box[0] + box[2]) / 2 / stride - x,
            (box[1] + box[3]) / 2 / stride - y,
            *np.log((box[2:] - box[:2]) / stride),
        ]
        raw[0, cell, 4:] = [0.9, cls == 0, cls == 1]
    assert detection.score(Fake(spec(True), {"output": raw}), data)["mAP"] == pytest.approx(1.0)
