# SPDX-License-Identifier: Apache-2.0
"""Tests pre-processing with pictures small enough to compute by hand."""
from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from tessera import preprocess
from tessera.errors import ExitCode, TesseraError
from tessera.preprocess import Preprocess


def picture(height: int, width: int) -> Image.Image:
    """Returns a picture with R = row, G = column, B = 200."""
    pixels = np.zeros((height, width, 3), np.uint8)
    pixels[:, :, 0] = np.arange(height)[:, None]
    pixels[:, :, 1] = np.arange(width)[None]
    pixels[:, :, 2] = 200
    return Image.fromarray(pixels)


def test_channel_order_mean_and_scale() -> None:
    p = Preprocess(pixel_format="rgb", mean=(1, 2, 3), scale=(2, 1, 0.5))
    x = p.apply(picture(4, 5), (1, 3, 4, 5))
    assert x.dtype == np.float32 and x.shape == (1, 3, 4, 5)
    assert x[0, 0, 3, 0] == (3 - 1) * 2 and x[0, 1, 0, 4] == 4 - 2 and x[0, 2, 0, 0] == (200 - 3) * 0.5
    assert Preprocess(pixel_format="bgr").apply(picture(4, 5), (1, 3, 4, 5))[0, 0, 0, 0] == 200
    assert Preprocess(pixel_format="rgb", channel_format="nhwc").apply(picture(4, 5), (1, 4, 5, 3))[
        0, 3, 4
    ].tolist() == [3, 4, 200]


def test_short_side_then_centre_crop() -> None:
    # 8x12 -> short side 4 -> 4x6 -> centre crop 4x4 -> centre crop 2x2: columns 2..3 of the 4x6 picture.
    p = Preprocess(pixel_format="rgb", resize_dims=(4, 4), keep_aspect_ratio=True, keep_ratio_mode="short_side_scale")
    small = np.asarray(picture(8, 12).resize((6, 4), Image.BILINEAR), np.float32)
    assert np.array_equal(p.apply(picture(8, 12), (1, 3, 2, 2))[0].transpose(1, 2, 0), small[1:3, 2:4])


@pytest.mark.parametrize("pad_type, first_column", [("normal", 0), ("center", 2)])
def test_letterbox(pad_type: str, first_column: int) -> None:
    p = Preprocess(pixel_format="rgb", keep_aspect_ratio=True, pad_value=114, pad_type=pad_type)
    x = p.apply(picture(8, 4), (1, 3, 8, 8))[0, 2]
    assert (x == 200).sum() == 32 and (x == 114).sum() == 32
    assert (x[:, first_column : first_column + 4] == 200).all()


def test_gray_and_json_round_trip() -> None:
    p = Preprocess(pixel_format="gray", mean=(127.5,), scale=(1 / 127.5,), resize_dims=(6, 6), pad_type="normal")
    assert Preprocess.from_json(p.to_json()) == p
    assert p.apply(picture(9, 9), (1, 1, 6, 6)).shape == (1, 1, 6, 6)


@pytest.mark.parametrize(
    "fields",
    [{"mean": (1, 2)}, {"scale": (1, 2, 3), "pixel_format": "gray"}, {"pixel_format": "yuv"}, {"resize_dims": (0, 4)},
     {"resize_dims": (4, 10**20)}, {"mean": (float("nan"),)}, {"scale": (float("inf"),)}],  # fmt: skip
)
def test_contradictions_are_rejected(fields: dict) -> None:
    with pytest.raises(TesseraError) as caught:
        Preprocess(**fields).check()
    assert caught.value.code == ExitCode.USAGE


@pytest.mark.parametrize("shape", [(1, 4, 8, 8), (2, 3, 8, 8), (1, 10)])
def test_input_that_is_no_picture(shape: tuple) -> None:
    with pytest.raises(TesseraError, match="picture"):
        Preprocess().apply(picture(8, 8), shape)


@pytest.mark.parametrize("data", [b"", b"not a picture", b"\xff\xd8\xff\xe0 cut"])
def test_bad_picture(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "x.jpg").write_bytes(data)
    with pytest.raises(TesseraError, match="failed to read picture"):
        Preprocess().apply(tmp_path / "x.jpg", (1, 3, 8, 8))


def test_bad_stored_preprocess() -> None:
    with pytest.raises(TesseraError, match="pre-processing"):
        Preprocess.from_json('{"colour":"red"}')


@pytest.mark.parametrize(
    "flags, picture, warned",
    [
        ([], None, False),
        ([], "x.npz", False),
        ([], "cat.jpg", True),
        (["--mean", "1,2,3"], None, True),
        (["--mean", "1,2,3", "--pixel_format", "bgr"], "cat.jpg", False),
    ],
)
def test_the_default_channel_order_is_not_silent(flags: list[str], picture: str | None, warned: bool) -> None:
    parser = argparse.ArgumentParser()
    preprocess.add_arguments(parser)
    text = preprocess.default_order_warning(parser.parse_args(flags), picture)
    assert bool(text) == warned and ("--pixel_format rgb" in text) == warned
