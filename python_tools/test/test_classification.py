# SPDX-License-Identifier: Apache-2.0
"""Tests that labels whose class numbers are shifted against the model's are noticed."""
from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from tessera.inputs import InputSpec
from tessera.tasks import classification


class Brightness:
    """A model whose class is the picture's brightness plus `background`."""

    inputs = [InputSpec("x", (1, 3, 4, 4), "float32")]
    outputs = [InputSpec("y", (1, 41), "float32")]

    def __init__(self, background: int) -> None:
        self._background = background

    def run(self, arrays):
        scores = np.zeros((1, 41), np.float32)
        scores[0, int(arrays["x"].mean()) + self._background] = 1
        return {"y": scores}


@pytest.mark.parametrize("background, labels, warned", [(0, 0, False), (1, 0, True), (0, 1, True), (1, 1, False)])
def test_labels_off_by_one(tmp_path: Path, background: int, labels: int, warned: bool) -> None:
    rows = ["file,index"]
    for value in range(0, 40, 4):
        Image.new("RGB", (4, 4), (value, value, value)).save(tmp_path / f"{value}.png")
        rows.append(f"{value}.png,{value + labels}")
    (tmp_path / "labels.csv").write_text("\n".join(rows))
    said: list[str] = []
    figures = classification.score(Brightness(background), tmp_path, said.append)
    assert figures["top1"] == (0 if warned else 1)
    assert bool(said) == warned and all("off by one" in text and "1.000" in text for text in said)
