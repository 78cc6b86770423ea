# SPDX-License-Identifier: Apache-2.0
"""Detectors of three kinds are scored alike: a YOLOX, boxes with scores, and what a user's function decodes."""
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
    """Gives outputs whatever the picture."""

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
    """The true boxes and one that is none, as shares of the input."""
    ratio = 32 / 60
    scale = np.float32([ratio / 96, ratio / 32] if letterbox else [1 / 120, 1 / 60])
    corners = np.float32([[x, y, x + w, y + h] for (x, y, w, h), _ in TRUTH] + [[80, 2, 90, 12]])
    return corners * np.concatenate([scale, scale])


SCORES = np.float32([[0.1, 0.9, 0.0], [0.3, 0.0, 0.7], [0.9, 0.06, 0.04]])  # the background first


@pytest.mark.parametrize("letterbox", [False, True])
@pytest.mark.parametrize("background", [False, True])
def test_boxes_and_scores(data: Path, letterbox: bool, background: bool) -> None:
    scores = SCORES if background else SCORES[:, 1:]
    model = Fake(spec(letterbox), {"scores": scores[None], "boxes": shares(letterbox)[None].astype(np.float32)})
    assert detection.score(model, data) == {"n": 1, "mAP50": pytest.approx(1.0), "mAP": pytest.approx(1.0)}
    swapped = Fake(spec(letterbox), {"boxes": shares(letterbox)[None], "scores": scores[None][:, ::-1]})
    assert detection.score(swapped, data)["mAP50"] < 0.8


def test_boxes_in_another_form_are_refused(data: Path) -> None:
    boxes = shares(False)[None]
    with pytest.raises(TesseraError, match="not x1, y1, x2, y2 as shares") as caught:
        detection.score(Fake(spec(), {"boxes": boxes * 96, "scores": SCORES[None]}), data)
    assert "--decoder" in caught.value.hint
    with pytest.raises(TesseraError, match=r"'boxes' \[1, 3, 4\], 'scores' \[1, 3, 9\] are neither"):
        detection.score(Fake(spec(), {"boxes": boxes, "scores": np.zeros((1, 3, 9), np.float32)}), data)


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
        ("x = 1\n", "defines no function decode"),
        ("def decode(outputs):\n  return [[1, 2, 3]], [1], [0]\n", r"returned shapes \[1, 3\]"),
        ("def (\n", "mine.py:1: SyntaxError"),
    ):
        file.write_text(text)
        with pytest.raises(TesseraError, match=message):
            detection.score(model, data, detection_heads.users(file))


def test_yolox(data: Path) -> None:
    """One cell a box: its centre and size, the object's and the classes' scores."""
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
