# SPDX-License-Identifier: Apache-2.0
"""Tests the parts of ./dev bench that do not measure: finding models, drawing meaningful inputs, and comparing
ratios."""
from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from case_file import REGRESSION
from conftest import BUILD

sys.path.insert(0, str(REGRESSION / "bench"))

import networks  # noqa: E402
import stored  # noqa: E402
from tessera.errors import TesseraError  # noqa: E402
from tessera.inputs import InputSpec  # noqa: E402


def test_what_has_become_worse_is_named(tmp_path: Path) -> None:
    file = tmp_path / "ratios.json"
    stored.store({"f32": {"1": {"a": 0.8, "b": 0.9}}}, "machine", "peer 1", file)
    stored.store({"f32": {"1": {"b": 0.7}, "2": {"a": 0.5}}}, "machine", "peer 1", file)
    before = stored.load(file)
    assert before == {"f32": {"1": {"a": 0.8, "b": 0.7}, "2": {"a": 0.5}}}
    assert stored.worse({"f32": {"1": {"a": 0.85, "new": 9.0}}, "int8": {"1": {"a": 9.0}}}, before) == []
    (info,) = stored.worse({"f32": {"1": {"a": 0.81, "b": 0.77}}}, before)
    assert info == "b, f32, 1 threads: 0.77 of the best peer, was 0.70"
    assert len(stored.worse({"f32": {"1": {"a": float("nan")}}}, before)) == 1
    file.write_text("{}")
    with pytest.raises(TesseraError, match="no table of ratios"):
        stored.load(file)
    assert stored.geometric_mean([0.5, 2.0]) == pytest.approx(1.0)


def test_the_stored_table_is_one(tmp_path: Path) -> None:
    ratios = stored.load()
    assert ratios and all(0 < r < 10 for t in ratios.values() for m in t.values() for r in m.values())


def test_models_of_a_folder_have_inputs_that_mean_something(tmp_path: Path) -> None:
    folder = tmp_path / "text"
    folder.mkdir()
    (folder / "model.onnx").write_bytes(b"")
    info = {
        "ids": {"shape": [1, 4], "kind": "ids", "high": 30000},
        "mask": {"shape": [1, 4], "kind": "ones", "high": 2},
    }
    (folder / "inputs.json").write_text(json.dumps(info))
    (model,) = networks.choose([], str(tmp_path), tmp_path)
    assert (model.name, model.onnx) == ("text", folder / "model.onnx")
    specs = [InputSpec(name, (1, 4), dtype) for name, dtype in (("ids", "int64"), ("mask", "int64"), ("x", "float32"))]
    drawn = model.sample(specs, 3)
    assert drawn["ids"].max() > 1 and (drawn["mask"] == 1).all() and drawn["x"].dtype == np.float32
    assert all((drawn[name] == array).all() for name, array in model.sample(specs, 3).items())
    with pytest.raises(TesseraError, match="no file NAME"):
        networks.choose([], str(folder), tmp_path)


@pytest.mark.parametrize(
    "words, code, message",
    [
        (("--precision", "f32,int4"), 2, "--precision int4: allowed are f32, bf16, int8"),
        (("none.onnx",), 1, "none.onnx"),
    ],
)
def test_what_it_rejects(words: tuple, code: int, message: str, tmp_path: Path) -> None:
    command = [BUILD / "bin/tessera-python", REGRESSION / "bench/bench.py", *words]
    result = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    assert result.returncode == code and message in result.stderr, result.stderr
