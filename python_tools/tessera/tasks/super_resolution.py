# SPDX-License-Identifier: Apache-2.0
"""Peak signal-to-noise ratio of a network that enlarges the luminance of photos.

The largest box at the photo's top left with the output's proportions is resized to the output's size, shrunk
bicubically to the input's size, enlarged by the network and compared with the original; values are 0..1.
"""
from __future__ import annotations

from pathlib import Path

import numpy as np

from ..errors import TesseraError
from ..preprocess import is_picture, read_upright
from . import Model, only_input, require_data

NAME = "super_resolution"


def psnr(got: np.ndarray, wanted: np.ndarray) -> float:
    """Returns the ratio in dB, for values 0..1."""
    return float(-10 * np.log10(max(np.mean(np.square(got.astype(np.float64) - wanted)), 1e-20)))


def largest_box(size: tuple[int, int], proportions: tuple[int, int]) -> tuple[int, int]:
    """Returns (width, height) of the largest box with these proportions inside `size`."""
    ratio = min(size[0] / proportions[0], size[1] / proportions[1])
    return round(proportions[0] * ratio), round(proportions[1] * ratio)


def score(model: Model, data: Path) -> dict[str, float]:
    """Returns {'n', 'psnr', 'psnr_bicubic'}: means over the photos."""
    from PIL import Image

    spec, output = only_input(model, NAME), model.outputs[0]
    if len(spec.shape) != 4 or spec.shape[1] != 1 or len(output.shape) != 4:
        raise TesseraError(f"--task {NAME}: the model's input {spec} is not [1,1,h,w]")
    small, large = (spec.shape[3], spec.shape[2]), (output.shape[3], output.shape[2])
    ours, bicubic = [], []
    for picture in sorted(p for p in require_data(data, NAME).iterdir() if is_picture(p)):
        luminance = read_upright(picture).convert("YCbCr").split()[0]
        crop = luminance.crop((0, 0, *largest_box(luminance.size, large))).resize(large, Image.BICUBIC)
        wanted = np.asarray(crop, np.float64) / 255
        shrunk = crop.resize(small, Image.BICUBIC)
        array = (np.asarray(shrunk, np.float32) / 255).reshape(spec.shape)
        got = model.run({spec.name: array})[output.name]
        ours.append(psnr(np.rint(np.clip(got.reshape(wanted.shape), 0, 1) * 255) / 255, wanted))
        bicubic.append(psnr(np.asarray(shrunk.resize(large, Image.BICUBIC), np.float64) / 255, wanted))
    if not ours:
        raise TesseraError(f"--task {NAME}: {data} does not contain pictures")
    return {"n": len(ours), "psnr": float(np.mean(ours)), "psnr_bicubic": float(np.mean(bicubic))}
