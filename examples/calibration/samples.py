# SPDX-License-Identifier: Apache-2.0
"""Calibration samples from a program: from any source, prepared exactly as in the application."""
import os
from pathlib import Path

import numpy as np
from PIL import Image, ImageOps


def samples():
    """Yields dicts of arrays by input name; `run_calibration --dataset FILE.py` calls this once per pass."""
    for path in sorted(Path(os.environ["PICTURES"]).glob("*.png")):
        picture = ImageOps.fit(Image.open(path).convert("RGB"), (146, 146))
        for left, top in ((0, 0), (18, 0), (0, 18), (18, 18), (9, 9)):  # five crops of each picture
            pixels = np.asarray(picture.crop((left, top, left + 128, top + 128)), np.float32)
            yield {"input": ((pixels - 127.5) / 127.5).transpose(2, 0, 1)[None]}
