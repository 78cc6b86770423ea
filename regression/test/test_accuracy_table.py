# SPDX-License-Identifier: Apache-2.0
"""Tests ./dev accuracy: its judges on known answers, and a row of the table."""
from __future__ import annotations

import json
import subprocess
import sys
import wave
from dataclasses import dataclass
from pathlib import Path
from typing import Callable

import numpy as np
import pytest
from case_file import REGRESSION
from conftest import BUILD
from PIL import Image

from tessera.inputs import InputSpec

FOLDER = REGRESSION / "accuracy"
sys.path.insert(0, str(FOLDER))

import judges  # noqa: E402


@dataclass
class Says:
    """A model that answers every input with the result of a function."""

    answer: Callable[[dict], dict]
    inputs: tuple[InputSpec, ...] = (InputSpec("x", (1, 3, 8, 8), "float32"),)
    outputs: tuple[InputSpec, ...] = (InputSpec("y", (1, 8), "float32"),)

    def run(self, arrays):
        return self.answer(arrays)


@pytest.fixture
def photo(tmp_path: Path) -> Path:
    folder = tmp_path / "photos"
    folder.mkdir()
    Image.new("RGB", (8, 8), (10, 200, 30)).save(folder / "a.png")
    return folder


def boxes(*found: tuple[float, float, float]) -> Says:
    """Returns a model whose output is the boxes given as (score, left, size)."""
    scores = np.array([[[1 - score, score] for score, _, _ in found]], np.float32)
    places = np.array([[[left, 0, left + size, size] for _, left, size in found]], np.float32)
    return Says(lambda _: {"scores": scores, "boxes": places})


@pytest.mark.parametrize(
    "found, agreement",
    [
        (((0.9, 0, 1), (0.8, 5, 1)), 1.0),
        (((0.9, 0, 1), (0.6, 5, 1)), 2 / 3),  # one has a score below the threshold
        (((0.9, 0, 1), (0.8, 5, 1), (0.75, 5.05, 1)), 1.0),  # the third is suppressed
        (((0.9, 0.9, 1), (0.8, 5, 1)), 0.5),  # one is at another place
        (((0.9, 0, 1), (0.85, 0.6, 1), (0.8, 5, 1)), 0.8),  # one too many: it overlaps too little to be suppressed
    ],
)
def test_faces(photo: Path, found: tuple, agreement: float) -> None:
    like = boxes((0.9, 0, 1), (0.8, 5, 1))
    figures = judges.faces(boxes(*found), like, photo)
    assert figures["faces"] == 2 and figures["agreement"] == pytest.approx(agreement)


def test_text_map(photo: Path) -> None:
    def shows(count: int) -> Says:
        return Says(lambda _: {"y": (np.arange(8) < count).astype(np.float32)[None] * 0.5})

    assert judges.text_map(shows(4), shows(4), photo)["iou"] == 1
    assert judges.text_map(shows(3), shows(6), photo) == {"iou": 0.5, "pixels": 6}


def test_speech_feeds_the_state_back(tmp_path: Path) -> None:
    file = tmp_path / "s.wav"
    with wave.open(str(file), "wb") as out:
        out.setparams((1, 2, 16000, 0, "NONE", ""))
        out.writeframes((np.sin(np.arange(16000 * 21) * 0.1) * 9000).astype("<i2").tobytes())

    def adds(noise: float) -> Says:
        return Says(
            lambda a: {
                "conv1d_3": a["input_4"] + a["input_5"].ravel()[0] + noise,
                "tf_op_layer_stack_5": a["input_5"] + 1,
            }
        )

    same, other = judges.speech(adds(0), adds(0), file), judges.speech(adds(5), adds(0), file)
    assert same["cos"] == pytest.approx(1) and other["cos"] < same["cos"] and same["snr"] > 100 > other["snr"]
    assert judges.denoised(adds(0), judges.speech_frames(file, 20, 21))[-1] > 100  # the states have grown


def test_mel_filters_cover_the_band_once() -> None:
    filters = judges.mel_filters(20, 1024, 16000)
    inside = filters.sum(axis=0)[8:400]
    assert filters.shape == (20, 513) and filters.min() == 0 and np.allclose(inside, 1, atol=1e-6)


def table(*arguments: object) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [BUILD / "bin/tessera-python", FOLDER / "accuracy.py", *map(str, arguments)], capture_output=True, text=True
    )


def test_a_row(need: Callable[[str], Path], tmp_path: Path) -> None:
    need("data:images/pets_calib")
    done = table(
        "resnet8", "--columns", "F32,INT8", "--no_peers", "--json", tmp_path / "t.json", "--markdown", tmp_path / "t.md"
    )
    assert done.returncode == 0, done.stderr
    f32, int8 = json.loads((tmp_path / "t.json").read_text())["resnet8_cifar10"]
    assert (
        f32["figures"]["top1"] == 0.576
        and f32["drop"] == 0
        and int8["drop"] == pytest.approx(57.6 - 100 * int8["figures"]["top1"])
    )
    assert int8["bytes"] < f32["bytes"] / 2 and "100.0 %" in int8["note"] and "0.5760 (+0.00)" in done.stdout
    assert (tmp_path / "t.md").read_text().count("\n") == 3


@pytest.mark.parametrize("flags, text", [(("--columns", "INT3"), "no INT3"), (("no_such_model",), "no case")])
def test_wrong_flags(flags: tuple[str, ...], text: str) -> None:
    done = table(*flags)
    assert done.returncode == 2 and text in done.stderr
