# SPDX-License-Identifier: Apache-2.0
"""Tests sizes known at run time: values of derived sizes, --at, and inputs with open dims."""
from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from tessera.errors import TesseraError
from tessera.inputs import InputSpec, check_inputs, load_inputs
from tessera.sizes import describe, evaluate, free_sizes, parse_at, shape_at, shape_text, stage_at

# h is a multiple of 32; slot 2 is h / 32, slot 3 is batch * (h / 32) + 1
STAGE = {
    "dims": [
        {"name": "batch", "min": 1, "max": 8, "divisor": 1, "likely": 2},
        {"name": "h", "min": 32, "max": 1280, "divisor": 32, "likely": -1},
        {
            "name": "h0",
            "min": 1,
            "max": 40,
            "divisor": 1,
            "likely": -1,
            "terms": [{"op": "Slot", "value": 1}, {"op": "Const", "value": 32}, {"op": "FloorDiv", "value": 0}],
        },
        {
            "name": "batch*h0 + 1",
            "min": 2,
            "max": 321,
            "divisor": 1,
            "likely": -1,
            "terms": [
                {"op": "Slot", "value": 0},
                {"op": "Slot", "value": 2},
                {"op": "Mul", "value": 0},
                {"op": "Const", "value": 1},
                {"op": "Add", "value": 0},
            ],
        },
    ]
}
TENSOR = {"shape": [{"value": 321, "slot": 3}, {"value": 4, "slot": -1}]}


def test_derived_sizes() -> None:
    assert [dim["name"] for dim in free_sizes(STAGE)] == ["batch", "h"]
    assert evaluate(STAGE, {}) == [8, 1280, 40, 321]
    assert evaluate(STAGE, {}, "min") == [1, 32, 1, 2]
    assert evaluate(STAGE, {}, "likely") == [2, 1280, 40, 81]
    assert shape_at(TENSOR, evaluate(STAGE, {"batch": 3, "h": 64})) == [7, 4]
    assert shape_text(TENSOR, STAGE) == "batch*h0 + 1x4" and shape_text({}, STAGE) == "scalar"


def test_length_of_states() -> None:
    """After a run, states hold at most their capacity."""
    seq = {"name": "seq", "min": 1, "max": 64, "divisor": 1, "likely": 64}
    past = {"name": "past", "min": 0, "max": 192, "divisor": 1, "likely": 192, "next": 2}
    terms = [{"op": "Slot", "value": 1}, {"op": "Slot", "value": 0}, {"op": "Add", "value": 0}]
    stage = {"dims": [seq, past, {"name": "past + seq", "min": 1, "max": 192, "divisor": 1, "terms": terms}]}
    assert evaluate(stage, {}) == evaluate(stage, {}, "likely") == [64, 128, 192]
    assert evaluate(stage, {}, "min") == [1, 0, 1] and evaluate(stage, {"seq": 2}) == [2, 190, 192]


def test_at_of_several_stages() -> None:
    def bucket(least: int, most: int) -> dict[str, list[dict[str, object]]]:
        return {"dims": [{"name": "batch", "min": least, "max": most, "divisor": 1, "likely": -1}]}

    stages = [{}, bucket(2, 4), bucket(5, 8)]
    assert [stage_at(stages, f"batch={n}") for n in (2, 4, 5, 8)] == [1, 1, 2, 2]
    with pytest.raises(TesseraError, match="allowed is batch from 5 to 8"):
        stage_at(stages, "batch=9")


def test_at() -> None:
    assert parse_at("batch=3,h=64", STAGE) == {"batch": 3, "h": 64}
    for wrong, message in (
        ("n=3", "the model has no size 'n'"),
        ("batch=9", "allowed is batch from 1 to 8, usually 2"),
        ("batch=x", "batch=x is not possible"),
        ("h=65", "allowed is h from 32 to 1280, a multiple of 32"),
    ):
        with pytest.raises(TesseraError, match=message):
            parse_at(wrong, STAGE)
    assert describe(STAGE["dims"][0]) == "batch from 1 to 8, usually 2"


def test_inputs_of_open_dims() -> None:
    spec = InputSpec("x", (8, 3), "float32", open_dims=(0,))
    assert str(spec) == "'x' float32[up to 8, 3]"
    assert check_inputs({"x": np.zeros((5, 3), np.float32)}, [spec], "the input")["x"].shape == (5, 3)
    for shape in ((9, 3), (8, 2), (8,)):
        with pytest.raises(TesseraError, match="the model expects \\[up to 8, 3\\]"):
            check_inputs({"x": np.zeros(shape, np.float32)}, [spec], "the input")


def test_pictures_keep_their_size(tmp_path: Path) -> None:
    ranges = (range(1, 2), range(3, 4), range(32, 321, 32), range(32, 321, 32))
    spec = InputSpec("x", (1, 3, 320, 320), "float32", open_dims=(2, 3), ranges=ranges)
    for size, shape in (((100, 60), (1, 3, 64, 96)), ((10, 320), (1, 3, 320, 32)), ((1280, 640), (1, 3, 160, 320))):
        Image.new("RGB", size).save(tmp_path / "p.png")
        assert spec.for_picture(tmp_path / "p.png") == shape
        assert load_inputs(str(tmp_path / "p.png"), [spec])["x"].shape == shape
    assert spec.at((1, 3, 32, 32)).for_picture(tmp_path / "p.png") == (1, 3, 32, 32)
