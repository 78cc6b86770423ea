# SPDX-License-Identifier: Apache-2.0
"""Camera pixels (u8, BGR) as input: mean, scale and channel order are part of the model."""
import sys
from pathlib import Path

import numpy as np
from PIL import Image, ImageOps

import tessera.runtime as rt

net = rt.load("pixels.bmodel").net()
of_floats = rt.load("floats.bmodel").net()
labels = Path(sys.argv[1], "labels.txt").read_text(encoding="utf-8").splitlines()
print(
    "input:", net.inputs[0].type, net.inputs[0].shape, "instead of", of_floats.inputs[0].type, of_floats.inputs[0].shape
)

for path in sorted(Path(sys.argv[1], "pictures").glob("*.png")):
    rgb = np.asarray(ImageOps.fit(Image.open(path).convert("RGB"), (128, 128), bleed=0.06))
    frame = np.ascontiguousarray(rgb[None, :, :, ::-1])  # the format of the camera: [1, H, W, BGR]
    scores = net({"input": frame})["output"]

    floats = (rgb.astype(np.float32) - np.float32(127.5)) * np.float32(1 / 127.5)  # pre-processing without this feature
    same = np.array_equal(scores, of_floats({"input": floats.transpose(2, 0, 1)[None]})["output"])
    print(f"{path.stem:9} {labels[scores.argmax()].split(',')[0]:16}", "same bits" if same else "OTHER BITS")
