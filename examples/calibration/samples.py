# SPDX-License-Identifier: Apache-2.0
"""Calibration samples that a program makes: out of any store, prepared as the application does it."""
import os
from pathlib import Path

import numpy as np
from PIL import Image, ImageOps


def samples():
    """What `run_calibration --dataset FILE.py` calls, once a pass: dicts of arrays by the model's input names."""
    for path in sorted(Path(os.environ["PICTURES"]).glob("*.png")):
        picture = ImageOps.fit(Image.open(path).convert("RGB"), (146, 146))
        for left, top in ((0, 0), (18, 0), (0, 18), (18, 18), (9, 9)):  # five crops of each: few pictures, more samples
            pixels = np.asarray(picture.crop((left, top, left + 128, top + 128)), np.float32)
            yield {"input": ((pixels - 127.5) / 127.5).transpose(2, 0, 1)[None]}
