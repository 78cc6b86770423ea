# SPDX-License-Identifier: Apache-2.0
"""Tests the calibration table: it is written and read back, edited correctly and incorrectly, and converted from
tpu-mlir's text form."""
from __future__ import annotations

import json
from pathlib import Path
from typing import Callable

import pytest

from tessera.calibration import table as tables
from tessera.calibration import tpu_mlir_table
from tessera.calibration.table import Entry, Table
from tessera.errors import TesseraError

TENSORS = ["x", "conv_Relu", "a/b:0", "y"]


@pytest.fixture
def table() -> Table:
    return Table(
        "m",
        "ab" * 16,
        "auto",
        100,
        "cd" * 16,
        (
            Entry.make("x", 2.64, -2.1, 2.64, True, "mse"),
            Entry.make("conv_Relu", 6.0, 0.0, 6.0, False, "max", 0.03125),
            Entry.make("a/b:0", 0.1, -0.1, 0.03, False, "kl"),
            Entry.make("y", 1e-8, 0.0, 0.0, True, "max"),
        ),
    )


def edit(path: Path, change: Callable[[dict], object]) -> None:
    document = json.loads(path.read_text())
    change(document)
    path.write_text(json.dumps(document))


def test_round_trip_one_line_a_tensor(table: Table, tmp_path: Path) -> None:
    path = tmp_path / "t.json"
    table.save(path)
    assert tables.load(path) == table
    lines = path.read_text().splitlines()
    assert sum('"name"' in line for line in lines) == len(TENSORS) and len(lines) == len(TENSORS) + 13
    tables.check_model(table, path, {"model_hash": "ab" * 16, "tensors": TENSORS})


def test_quantisation_of_the_entries(table: Table) -> None:
    x, relu, other, _ = table.tensors
    assert (x.scale, x.zero_point) == (pytest.approx(2.64 / 127), 0)
    assert (relu.scale, relu.zero_point) == (pytest.approx(6 / 255), -128)
    assert (other.scale, other.zero_point) == (pytest.approx(0.13 / 255), round(-128 + 0.1 / (0.13 / 255)))


def test_good_edits(table: Table, tmp_path: Path) -> None:
    path = tmp_path / "t.json"
    table.save(path)

    def change(document: dict) -> None:
        line = document["tensors"][0]
        line["threshold"] = 1.27
        del line["scale"], line["zero_point"]
        del document["tensors"][3]

    edit(path, change)
    read = tables.load(path)
    assert read.tensors[0].scale == pytest.approx(0.01)
    tables.check_model(read, path, {"model_hash": "ab" * 16, "tensors": TENSORS})


BAD = [
    (lambda d: d["tensors"][0].update(threshold=-1.0), "tensor 'x': threshold -1.0 is not positive"),
    (lambda d: d["tensors"][0].update(threshold=0), "tensor 'x': threshold 0 is not positive"),
    (lambda d: d["tensors"][1].update(min=7.0), "tensor 'conv_Relu': min 7.0 is above max 6.0"),
    (lambda d: d["tensors"][0].update(threshold="2"), "tensor 'x': threshold is '2', expected a finite number"),
    (lambda d: d["tensors"][0].update(max=float("nan")), "tensor 'x': max is nan"),
    (lambda d: d["tensors"][0].update(largest=-2.0), "tensor 'x': largest -2.0 is negative"),
    (
        lambda d: d["tensors"][0].update(treshold=1),
        "tensor 'x': unknown key \"treshold\"; allowed are dtype, error, largest, max",
    ),
    (lambda d: d["tensors"][0].pop("method"), "tensor 'x': \"method\" is missing"),
    (lambda d: d["tensors"][0].update(dtype="int3"), "tensor 'x': dtype 'int3'; allowed: int8"),
    (lambda d: d["tensors"][0].update(weight_terms=3), "tensor 'x': weight_terms is 3; allowed: 1, 2"),
    (lambda d: d["tensors"][0].update(threshold=1.0), "tensor 'x': scale 0.020787401 is not threshold / 127"),
    (lambda d: d["tensors"][1].update(max=3.0), "is not (max - min) / 255"),
    (lambda d: d["tensors"][1].update(zero_point=3), "zero_point is 3, but the range gives -128"),
    (lambda d: d["tensors"][1].update(zero_point=300), "zero_point is 300, expected a whole number from -128 to 127"),
    (lambda d: d["tensors"][1].update(symmetric="no"), "symmetric is 'no', expected true or false"),
    (lambda d: d["tensors"].append(d["tensors"][0]), "tensor 'x' is listed twice"),
    (lambda d: d["tensors"].append({}), 'entry 4 of "tensors" has no name'),
    (lambda d: d.update(colour=1), 'unknown key "colour"'),
    (lambda d: d.pop("samples"), '"samples" is missing'),
    (lambda d: d.update(samples=-4), '"samples" is -4'),
    (lambda d: d.update(version=9), "format version 9 is not supported (expected 1)"),
    (lambda d: d.update(format="other"), "is not a calibration table"),
    (lambda d: d.update(tensors=3), '"tensors" is not a list'),
]


@pytest.mark.parametrize("change, words", BAD, ids=[words for _, words in BAD])
def test_bad_edits(table: Table, tmp_path: Path, change: Callable[[dict], object], words: str) -> None:
    path = tmp_path / "t.json"
    table.save(path)
    edit(path, change)
    with pytest.raises(TesseraError) as caught:
        tables.load(path)
    assert words in caught.value.message and "t.json" in caught.value.message


def test_no_json_and_no_file(tmp_path: Path) -> None:
    (tmp_path / "t.json").write_text('{"format": ')
    for name, words in (("t.json", "is not JSON"), ("none.json", "no such file")):
        with pytest.raises(TesseraError, match=words):
            tables.load(tmp_path / name)


def test_of_another_model(table: Table) -> None:
    with pytest.raises(
        TesseraError, match="t.json is of another model: its model_hash is abab.*'m'.*the model's is ef"
    ):
        tables.check_model(table, "t.json", {"model_hash": "ef" * 16, "tensors": TENSORS})
    with pytest.raises(TesseraError, match="the model has no tensor 'conv_Relu'; did you mean 'conv_Relu6'?"):
        tables.check_model(table, "t.json", {"model_hash": "ab" * 16, "tensors": ["x", "conv_Relu6", "a/b:0", "y"]})


def test_tpu_mlir_round_trip(table: Table, tmp_path: Path) -> None:
    path = tmp_path / "cali_table"
    tpu_mlir_table.export_text(table, path)
    read, notes = tpu_mlir_table.import_text(path, "m", "ab" * 16, TENSORS)
    assert notes == []
    for mine, theirs in zip(table.tensors, read.tensors):
        assert (theirs.name, theirs.symmetric, theirs.zero_point) == (mine.name, mine.symmetric, mine.zero_point)
        assert theirs.scale == pytest.approx(mine.scale, rel=1e-5)


def test_tpu_mlir_table_as_it_writes_it(tmp_path: Path) -> None:
    path = tmp_path / "cali_table"
    path.write_text(
        "# genetated time: 2024-01-01\n# histogram number: 2048\n###\n# op_name    threshold    min    max\n"
        "x 2.6400 -2.1000 2.6400\nconv_Relu 6.0 0.0 6.0\na/b:0_Sigmoid 1.0 0.0 1.0\ny_MatMul 9 -9 8.5\nextra_Cast 1 "
        "0 1\n"
        "#int4_th\nx 1.0 -1.0 1.0\n"
    )
    table, notes = tpu_mlir_table.import_text(path, "m", "00", TENSORS)
    assert [entry.name for entry in table.tensors] == TENSORS
    assert [entry.threshold for entry in table.tensors] == [2.64, 6.0, 1.0, 9.0]
    assert "extra_Cast" in " ".join(notes) and "#int4_th" in " ".join(notes)


@pytest.mark.parametrize(
    "line, words",
    [
        ("x 1.0 2.0", ":5: expected 'name threshold min max'"),
        ("x -1 0 1", ":5: 'x': threshold -1"),
        ("x 1 2 1", ":5: 'x': threshold 1, min 2, max 1"),
        ("x 1 nan 2", ":5:"),
        ("z 1 0 1", "lines are missing for 4 of the model's 4 tensors: 'x'"),
    ],
)
def test_bad_tpu_mlir_tables(tmp_path: Path, line: str, words: str) -> None:
    path = tmp_path / "cali_table"
    path.write_text("#\n#\n#\n\n" + line + "\n")
    with pytest.raises(TesseraError) as caught:
        tpu_mlir_table.import_text(path, "m", "00", TENSORS)
    assert words in caught.value.message
