# SPDX-License-Identifier: Apache-2.0
"""Tests npz_tool as a user runs it."""
from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from conftest import assert_clean

from tessera.files import load_npz, save_npz


@pytest.fixture
def files(tmp_path: Path) -> Path:
    x = np.linspace(-1, 1, 12, dtype=np.float32).reshape(3, 4)
    save_npz(tmp_path / "a.npz", {"x": x, "y": x + np.float32(0.3)})
    save_npz(tmp_path / "b.npz", {"x": x, "y": x})
    save_npz(tmp_path / "c.npz", {"z": x})
    save_npz(tmp_path / "nan.npz", {"x": np.array([np.nan, 1], np.float32)})
    return tmp_path


def test_compare(run_tool, files: Path) -> None:
    assert_clean(run_tool("npz_tool", "compare", "a.npz", "b.npz", "--excepts", "y"), 0)
    assert_clean(run_tool("npz_tool", "compare", "a.npz", "b.npz"), 3, "1 of 2 tensors", "'y'")
    assert_clean(run_tool("npz_tool", "compare", "a.npz", "c.npz"), 1, "nothing was compared")
    assert_clean(run_tool("npz_tool", "compare", "nan.npz", "nan.npz"), 0)
    assert_clean(run_tool("npz_tool", "compare", "a.npz", "b.npz", "--tolerance", "high"), 2, "--tolerance")


def test_what_decides_is_shown(run_tool, files: Path) -> None:
    """A scaled tensor has a cosine of 1 and still fails."""
    x = load_npz(files / "a.npz")["x"]
    save_npz(files / "scaled.npz", {"x": x * np.float32(1.02)})
    result = run_tool("npz_tool", "compare", "scaled.npz", "b.npz")
    assert_clean(result, 3, "euclid 0.98", "outside by euclid")
    assert (
        "FAIL euclid" in result.stdout
        and "0.980000" in result.stdout
        and "cos >= 0.9999, euclid >= 0.999" in result.stderr
    )
    assert_clean(run_tool("npz_tool", "compare", "scaled.npz", "b.npz", "--tolerance", "int8"), 0)
    document = json.loads(run_tool("npz_tool", "compare", "scaled.npz", "b.npz", "--json", "--save", "t.csv").stdout)
    [row] = document["comparison"]["tensors"]
    assert (
        row["missed"] == ["euclid"] and abs(row["euclid"] - 0.98) < 1e-6 and "euclid" in (files / "t.csv").read_text()
    )


def test_json_is_one_object_with_the_verdict(run_tool, files: Path) -> None:
    result = run_tool("npz_tool", "compare", "a.npz", "b.npz", "--json")
    document = json.loads(result.stdout)
    assert document["exit_code"] == 3 and document["status"] == "error"
    assert document["comparison"]["failed"] == 1 and document["comparison"]["tensors"][0]["name"] == "y"


def test_show(run_tool, files: Path) -> None:
    assert "3x4" in run_tool("npz_tool", "dump", "a.npz").stdout
    assert "-1." in run_tool("npz_tool", "dump", "a.npz", "x").stdout
    assert "0.3" in run_tool("npz_tool", "print_diff", "a.npz", "b.npz", "y", "--top", "1").stdout
    assert_clean(run_tool("npz_tool", "dump", "a.npz", "nope"), 1, "does not contain tensor 'nope'", "x, y")
    assert_clean(run_tool("npz_tool", "check_nan_inf", "nan.npz"), 1, "NaN")
    assert_clean(run_tool("npz_tool", "check_nan_inf", "a.npz"), 0)


def test_edit(run_tool, files: Path) -> None:
    assert_clean(run_tool("npz_tool", "extract", "a.npz", "o.npz", "y"), 0)
    assert list(load_npz(files / "o.npz")) == ["y"]
    assert_clean(run_tool("npz_tool", "rename", "a.npz", "o.npz", "y=w"), 0)
    assert list(load_npz(files / "o.npz")) == ["x", "w"]
    assert_clean(run_tool("npz_tool", "rename", "a.npz", "o.npz", "y=x"), 1, "unused")
    assert_clean(run_tool("npz_tool", "remove", "a.npz", "o.npz", "x,y"), 1, "no tensors are left")
    assert_clean(run_tool("npz_tool", "merge", "o.npz", "a.npz", "c.npz"), 0)
    assert list(load_npz(files / "o.npz")) == ["x", "y", "z"]
    assert_clean(run_tool("npz_tool", "merge", "o.npz", "a.npz", "b.npz"), 1, "more than one file")
    assert_clean(run_tool("npz_tool", "to_npy", "a.npz", "x", "x.npy"), 0)
    assert np.load(files / "x.npy").shape == (3, 4)


def test_usage(run_tool) -> None:
    assert_clean(run_tool("npz_tool"), 2)
    assert_clean(run_tool("npz_tool", "--help"), 0)
    assert_clean(run_tool("npz_tool", "dump", "none.npz"), 1, "no such file")


@pytest.fixture
def channel_files(tmp_path: Path) -> Path:
    ref = np.random.default_rng(0).standard_normal((1, 5, 4, 6)).astype(np.float32)
    got = ref.copy()
    got[0, 3] += np.float32(0.5)
    got[0, 1, 2, 2] += np.float32(0.25)
    save_npz(tmp_path / "got.npz", {"x": got, "flat": ref.ravel()})
    save_npz(tmp_path / "ref.npz", {"x": ref, "flat": ref.ravel()})
    return tmp_path


def test_channels_are_listed_worst_first(run_tool, channel_files: Path) -> None:
    result = run_tool("npz_tool", "compare", "got.npz", "ref.npz", "--tolerance", "0.1", "--per_channel", "x", "--json")
    document = json.loads(result.stdout)
    assert [row["channel"] for row in document["channels"]][:2] == [3, 1] and len(document["channels"]) == 5
    assert document["channels"][0]["max_abs"] == pytest.approx(0.5, rel=1e-5) and document["channels"][2]["rel_l2"] == 0


def test_heat_map_shows_the_place(run_tool, channel_files: Path) -> None:
    from PIL import Image

    assert_clean(run_tool("npz_tool", "compare", "got.npz", "ref.npz", "--tolerance", "0.1", "--heat_map", "e.png"), 0)
    picture = np.asarray(Image.open(channel_files / "e.png"))
    # All 24 places of channel 3 are white; the one of channel 1 has half the error; the others are black.
    assert (picture == 255).all(axis=-1).sum() == 24
    assert (np.abs(picture.astype(int) - (255, 128, 0)) <= 1).all(axis=-1).sum() == 1
    assert (picture == 0).all(axis=-1).sum() == 5 * 24 - 25


def test_channels_of_what_has_none(run_tool, channel_files: Path) -> None:
    command = ("npz_tool", "compare", "got.npz", "ref.npz", "--tolerance", "0.1")
    assert_clean(run_tool(*command, "--per_channel", "flat"), 2, "--axis 1", "rank 1")
    assert_clean(run_tool(*command, "--per_channel", "no"), 1, "does not contain tensor 'no'")
    assert_clean(run_tool(*command, "--heat_map", "e.xyz"), 1, "e.xyz", ".png")
    assert not (channel_files / "e.xyz").exists()
