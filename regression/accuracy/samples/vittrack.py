# SPDX-License-Identifier: Apache-2.0
"""Calibration samples of a tracker: an object in the middle of a photo, with its surroundings."""
import os
from pathlib import Path

from PIL import Image
from tessera.preprocess import Preprocess

PIXELS = Preprocess.from_fields(
    {"pixel_format": "rgb", "mean": [123.675, 116.28, 103.53], "scale": [0.0171247538, 0.0175070028, 0.0174291939]}
)


def samples():
    folder = Path(os.environ["TESSERA_DATA"]) / "images/pets_calib"
    for path in sorted(folder.glob("*.jpg")):
        with Image.open(path) as picture:
            middle, side = (picture.width / 2, picture.height / 2), min(picture.size) * 0.9
            crop = lambda size: picture.convert("RGB").crop(  # noqa: E731
                tuple(int(m + sign * size / 2) for sign in (-1, 1) for m in middle)
            )
            yield {
                "template": PIXELS.apply(crop(side / 2), (1, 3, 128, 128)),
                "search": PIXELS.apply(crop(side), (1, 3, 256, 256)),
            }
