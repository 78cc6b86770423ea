# SPDX-License-Identifier: Apache-2.0
"""Tests plans of the NPU: effort levels, and plan files that are written, followed, edited, or rejected because they do
not suit the model."""
from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Callable

import numpy as np
import pytest
from case_file import all_cases
from conftest import Builder, check, run_tool, samples

SMALL = ("--chip", "npu-edge", "--chip_set", "local_memory.bytes_per_lane=16384")  # too small to hold every value whole


class Model:
    def __init__(self, top: Path, table: Path, specs: list[dict], folder: Path) -> None:
        self.folder = folder
        self._command = [
            "model_deploy",
            "--mlir",
            top,
            *SMALL,
            "--quantize",
            "INT8",
            "--calibration_table",
            table,
            "--skip_validation",
        ]
        self._inputs = samples(specs, 3)

    def deploy(self, *flags: object, name: str = "m.bmodel") -> Any:
        return run_tool(*self._command, "--model", self.folder / name, *flags, cwd=self.folder)

    def info(self, *flags: object, name: str = "m.bmodel") -> dict:
        return json.loads(check(self.deploy(*flags, "--json", name=name)))["model"]

    def outputs(self, name: str = "m.bmodel") -> dict[str, np.ndarray]:
        import tessera.runtime as runtime

        return {key: array.copy() for key, array in runtime.load(str(self.folder / name)).net()(self._inputs).items()}


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Model:
    folder = tmp_path_factory.mktemp("plan")
    case = next(case for case in all_cases() if case.name == "mobilenetv1_0.25_128")
    builder = Builder(folder)
    return Model(builder.top(case), *builder.table(case, folder), folder)


def test_levels_of_effort(model: Model) -> None:
    times, results = [], []
    for level in range(4):
        times.append(model.info("--opt", level)["estimate"]["microseconds"])
        results.append(model.outputs())
    assert times[0] > times[1] >= times[2] > times[3], times
    for result in results[1:]:
        for name, array in result.items():
            assert np.array_equal(array, results[0][name])


@pytest.mark.parametrize("chip", ["npu-edge", "npu-base", "npu-pro"])
def test_a_plan_is_written_and_followed(model: Model, chip: str) -> None:
    # npu-base and npu-pro may quantise the picture in the first convolution. A followed plan makes the same decision.
    searched = model.info("--chip", chip, "--opt", 3, "--plan_out", "plan.json", name="searched.bmodel")
    plan = json.loads((model.folder / "plan.json").read_text())
    assert plan == searched["plan"] and plan["whole"]
    assert plan["groups"] or chip != "npu-edge"  # the others have room
    followed = model.info("--chip", chip, "--plan", "plan.json", name="followed.bmodel")
    assert followed["plan"] == plan and followed["estimate"] == searched["estimate"]
    assert followed["commands"] == searched["commands"] and followed["local_peak_bytes"] == searched["local_peak_bytes"]


def test_an_edited_plan_is_followed(model: Model) -> None:
    whole = model.info("--plan_out", "plan.json")
    plan = json.loads((model.folder / "plan.json").read_text())
    expected = model.outputs()
    kept = {"whole": [{"first": each["first"], "last": each["last"]} for each in plan["whole"][:2]], "groups": []}
    (model.folder / "edited.json").write_text(json.dumps(kept))
    edited = model.info("--plan", "edited.json", name="edited.bmodel")
    assert [(each["first"], each["last"]) for each in edited["plan"]["whole"]] == [
        (each["first"], each["last"]) for each in kept["whole"]
    ]
    assert edited["plan"]["groups"] == [] and edited["estimate"]["microseconds"] > whole["estimate"]["microseconds"]
    for name, array in model.outputs("edited.bmodel").items():
        assert np.array_equal(array, expected[name])


@pytest.mark.parametrize(
    "edit, words",
    [
        (lambda plan: "[", ("is not valid JSON",)),
        (lambda plan: "[]", ("'whole' and 'groups'",)),
        (lambda plan: json.dumps({**plan, "tiles": []}), ("unknown key 'tiles'",)),
        (lambda plan: json.dumps({"whole": 3}), ("'whole' is not a list",)),
        (lambda plan: json.dumps({"whole": [3]}), ("'whole', entry 0", "not an object")),
        (
            lambda plan: json.dumps({"whole": [{**plan["whole"][0], "bank": 1}]}),
            ("'whole', entry 0", "unknown key 'bank'"),
        ),
        (lambda plan: json.dumps({"whole": [{"first": -1, "last": 2}]}), ("'first'", "whole number")),
        (
            lambda plan: json.dumps({"groups": [{"first": 3, "last": 2, "slices": 2}]}),
            ("'groups', entry 0", "'last' is before 'first'"),
        ),
        (
            lambda plan: json.dumps({"whole": [{**plan["whole"][0], "from": "elsewhere"}]}),
            ("'elsewhere'", "another model, chip or version"),
        ),
        (lambda plan: json.dumps({"whole": [{"first": 0, "last": 20}]}), ("layer 0 to 20", "no value")),
        (lambda plan: json.dumps({"whole": [{"first": 5000, "last": 5001}]}), ("layer 5000", "layers")),
        (lambda plan: json.dumps({"groups": [{"first": 0, "last": 20, "slices": 2}]}), ("layers 0 to 20 in 2 slices",)),
    ],
)
def test_plans_that_do_not_suit_are_rejected(model: Model, edit: Callable[[dict], str], words: tuple[str, ...]) -> None:
    plan = model.info()["plan"]
    (model.folder / "bad.json").write_text(edit(plan))
    result = model.deploy("--plan", "bad.json", name="bad.bmodel")
    assert result.returncode == 1, result.stdout + result.stderr
    assert all(word in result.stderr for word in words), result.stderr
    assert not (model.folder / "bad.bmodel").exists()


def test_flags_that_contradict(model: Model) -> None:
    for flags, word in (
        (("--plan", "plan.json", "--opt", "1"), "--opt"),
        (("--chip", "x86", "--opt", "1"), "NPUs"),
        (("--opt", "4"), "--opt"),
    ):
        result = model.deploy(*flags)
        assert result.returncode == 2 and word in result.stderr, result.stderr
    missing = model.deploy("--plan", "none.json")
    assert missing.returncode == 1 and "none.json" in missing.stderr
