# SPDX-License-Identifier: Apache-2.0
"""Tests input tensors: matching ones are accepted with their exact type, others are named."""
from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tessera.errors import TesseraError
from tessera.files import save_npz
from tessera.inputs import InputSpec, check_inputs, load_inputs, random_inputs
from tessera.preprocess import Preprocess

X = InputSpec("x", (1, 3, 4, 4), "float32")
IDS = InputSpec("ids", (1, 8), "int64")


def test_random_is_seeded_and_typed() -> None:
    first, second = random_inputs([X, IDS]), random_inputs([X, IDS])
    assert np.array_equal(first["x"], second["x"]) and first["x"].dtype == np.float32
    assert set(np.unique(first["ids"])) <= {0, 1} and first["ids"].dtype == np.int64
    assert not np.array_equal(first["x"], random_inputs([X], seed=1)["x"])


def test_random_values_lie_in_the_ranges_that_are_known() -> None:
    got = random_inputs([X, IDS], ranges={"x": (2.0, 5.0), "other": (0.0, 1.0)})
    assert 2 <= got["x"].min() < 3 and 4 < got["x"].max() <= 5 and set(np.unique(got["ids"])) <= {0, 1}


def test_random_pixels_follow_the_preprocessing() -> None:
    spec = InputSpec("x", (1, 3, 4, 4), "float32", Preprocess(pixel_format="rgb", mean=(127.5,), scale=(1 / 127.5,)))
    assert -1 <= random_inputs([spec])["x"].min() and random_inputs([spec])["x"].max() <= 1


def test_harmless_types_are_converted() -> None:
    given = {"x": np.zeros(X.shape), "ids": np.zeros(IDS.shape, np.int32)}
    checked = check_inputs(given, [X, IDS], "test")
    assert checked["x"].dtype == np.float32 and checked["ids"].dtype == np.int64


def test_everything_wrong_is_named_at_once() -> None:
    with pytest.raises(TesseraError, match="'y' is not an input") as caught:
        check_inputs({"y": np.zeros(1), "x": np.zeros((1, 3, 4), np.float32)}, [X, IDS], "test")
    text = "\n".join(caught.value.details)
    assert "[1, 3, 4], the model expects [1, 3, 4, 4]" in text and "'ids' int64[1, 8] is missing" in text


def test_files(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.ones(X.shape, np.float32))
    np.save(tmp_path / "ids.npy", np.ones(IDS.shape, np.int64))
    save_npz(tmp_path / "in.npz", {"x": np.ones(X.shape, np.float32), "ids": np.ones(IDS.shape, np.int64)})
    assert load_inputs(str(tmp_path / "in.npz"), [X, IDS])["ids"].sum() == 8
    assert load_inputs(f"x={tmp_path}/x.npy,ids={tmp_path}/ids.npy", [X, IDS])["x"].sum() == 48
    assert load_inputs(str(tmp_path / "x.npy"), [X])["x"].sum() == 48
    with pytest.raises(TesseraError, match="one file given for 2 inputs"):
        load_inputs(str(tmp_path / "x.npy"), [X, IDS])
    with pytest.raises(TesseraError, match="no input 'z'"):
        load_inputs(f"z={tmp_path}/x.npy", [X])


def test_bfloat16_is_float32_of_fewer_bits(tmp_path: Path) -> None:
    spec = InputSpec("b", (3,), "bfloat16")
    drawn = random_inputs([spec])["b"]
    assert drawn.dtype == np.float32 and not (drawn.view(np.uint32) & 0xFFFF).any()
    for given in (np.array([0.1, 1e39, -2]), np.array([0.1, np.inf, -2], np.float32)):
        assert check_inputs({"b": given}, [spec], "x")["b"].tolist() == [np.float32(0.10009765625), np.inf, -2]
    bits = np.array([0x3F80, 0xC000, 0x7F80], np.uint16)
    np.savez(tmp_path / "b.npz", b=bits.view("V2"))  # the form in which numpy saves ml_dtypes.bfloat16
    assert load_inputs(str(tmp_path / "b.npz"), [spec])["b"].tolist() == [1, -2, np.inf]
    with pytest.raises(TesseraError, match="has type int32, the model expects bfloat16"):
        check_inputs({"b": np.zeros(3, np.int32)}, [spec], "x")
