# SPDX-License-Identifier: Apache-2.0
"""How good is a model for us? We sort photos into animals and other things: confusing two cats costs nothing."""
from pathlib import Path

import numpy as np
from PIL import Image, ImageOps

ANIMALS = range(398)  # ImageNet's classes 0 to 397
SCALE = 1.0  # the best result of score(): a drop of 0.01 is one point
LIVING = {"cat"}


def score(model, data):
    """`tessera accuracy --scorer` and `model_deploy --target .. --scorer` call this for each model. Higher is better;
    if there are several figures, the first one counts."""
    right, sure = 0, []
    pictures = sorted(Path(data).glob("*.png"))
    for path in pictures:
        pixels = np.asarray(ImageOps.fit(Image.open(path).convert("RGB"), (128, 128), bleed=0.06), np.float32)
        array = ((pixels - 127.5) / 127.5).transpose(2, 0, 1)[None]
        scores = next(iter(model.run({model.inputs[0].name: array}).values())).ravel()[-1000:]
        animal = float(scores[ANIMALS].sum())
        right += (animal > 0.5) == (path.stem in LIVING)
        sure.append(abs(animal - 0.5) * 2)
    return {"right": right / len(pictures), "sure": round(float(np.mean(sure)), 1)}
