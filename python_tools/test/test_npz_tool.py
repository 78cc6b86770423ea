# SPDX-License-Identifier: Apache-2.0
"""npz_tool as a user runs it."""
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


def test_json_is_one_object_with_the_verdict(run_tool, files: Path) -> None:
    result = run_tool("npz_tool", "compare", "a.npz", "b.npz", "--json")
    document = json.loads(result.stdout)
    assert document["exit_code"] == 3 and document["status"] == "error"
    assert document["comparison"]["failed"] == 1 and document["comparison"]["tensors"][0]["name"] == "y"


def test_show(run_tool, files: Path) -> None:
    assert "3x4" in run_tool("npz_tool", "dump", "a.npz").stdout
    assert "-1." in run_tool("npz_tool", "dump", "a.npz", "x").stdout
    assert "0.3" in run_tool("npz_tool", "print_diff", "a.npz", "b.npz", "y", "--top", "1").stdout
    assert_clean(run_tool("npz_tool", "dump", "a.npz", "nope"), 1, "no tensor 'nope'", "x, y")
    assert_clean(run_tool("npz_tool", "check_nan_inf", "nan.npz"), 1, "NaN")
    assert_clean(run_tool("npz_tool", "check_nan_inf", "a.npz"), 0)


def test_edit(run_tool, files: Path) -> None:
    assert_clean(run_tool("npz_tool", "extract", "a.npz", "o.npz", "y"), 0)
    assert list(load_npz(files / "o.npz")) == ["y"]
    assert_clean(run_tool("npz_tool", "rename", "a.npz", "o.npz", "y=w"), 0)
    assert list(load_npz(files / "o.npz")) == ["x", "w"]
    assert_clean(run_tool("npz_tool", "rename", "a.npz", "o.npz", "y=x"), 1, "free")
    assert_clean(run_tool("npz_tool", "remove", "a.npz", "o.npz", "x,y"), 1, "no tensor is left")
    assert_clean(run_tool("npz_tool", "merge", "o.npz", "a.npz", "c.npz"), 0)
    assert list(load_npz(files / "o.npz")) == ["x", "y", "z"]
    assert_clean(run_tool("npz_tool", "merge", "o.npz", "a.npz", "b.npz"), 1, "more than one file")
    assert_clean(run_tool("npz_tool", "to_npy", "a.npz", "x", "x.npy"), 0)
    assert np.load(files / "x.npy").shape == (3, 4)


def test_usage(run_tool) -> None:
    assert_clean(run_tool("npz_tool"), 2)
    assert_clean(run_tool("npz_tool", "--help"), 0)
    assert_clean(run_tool("npz_tool", "dump", "none.npz"), 1, "no such file")
