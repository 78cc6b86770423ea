# SPDX-License-Identifier: Apache-2.0
"""Tests the outputs that calibration stores to compare quantised models with, and the error that it reports."""
from __future__ import annotations

from pathlib import Path
from typing import Mapping

import numpy as np
import pytest

from tessera.calibration import checks
from tessera.calibration import table as tables
from tessera.calibration.dataset import Dataset, Sample
from tessera.calibration.worker import digest
from tessera.errors import TesseraError
from tessera.inputs import InputSpec
from tessera.output_error import SAMPLES, pick_samples
from tessera.tasks.answers import mostly_alike, only_answer

SPECS = [InputSpec("x", (1, 3), "float32")]


class Doubling:
    """The f32 model."""

    def run(self, arrays: Mapping[str, np.ndarray]) -> None:
        self.got = arrays["x"] * 2

    def outputs(self) -> dict[str, np.ndarray]:
        return {"y": self.got.copy()}


class Doubtless(Doubling):
    """A model whose probabilities are all close to 0."""

    def outputs(self) -> dict[str, np.ndarray]:
        return {"y": doubtless(self.got / 2)}


LOGITS = np.linspace(16, 20, 24, dtype=np.float32)


def doubtless(x: np.ndarray, more: float = 1.0) -> np.ndarray:
    return np.exp(-more * x[:, :1] * LOGITS)


def samples(count: int) -> tuple[Dataset, dict[int, str]]:
    found = [Sample(i, str(i), arrays={"x": np.full((1, 3), i + 1, np.float32)}) for i in range(count)]
    digests = {sample.number: digest(sample.load(SPECS), SPECS) for sample in found}
    return Dataset(lambda: iter(found), count, count, "", ""), digests


def saved(path: Path, count: int, model: Doubling = Doubling(), **info: object) -> tables.Table:
    dataset, digests = samples(count)
    short = tuple(text[: tables.DIGEST_LENGTH] for text in digests.values())
    table = tables.Table("m", "h", "mse", count, "", (), sample_digests=short, **info)  # type: ignore[arg-type]
    table.save(path)
    checks.save(path, dataset, pick_samples(digests, SPECS), SPECS, model)  # type: ignore[arg-type]
    return table


def test_several_samples_come_back_with_what_f32_makes_of_them(tmp_path: Path) -> None:
    table = saved(tmp_path / "t.json", 40, max_error=0.02, output_error=0.5, same_answers=("y",))
    assert tables.load(tmp_path / "t.json") == table
    kept = checks.load(tmp_path / "t.json", SPECS)
    assert len(kept) == SAMPLES and all(np.array_equal(y["y"], x["x"] * 2) for x, y in kept)
    assert checks.output_error(lambda x: {"y": x["x"] * 2}, kept, {}).error == 0
    assert checks.output_error(lambda x: {"y": x["x"] * 2.2}, kept, {}).error == pytest.approx(0.1, rel=1e-5)


def test_what_a_sigmoid_made_is_judged_by_what_it_read(tmp_path: Path) -> None:
    """The results of the sigmoid range from 1e-7 to 1e-35. Logits that are 5 % larger have a measurable error."""
    saved(tmp_path / "t.json", 4, Doubtless())
    kept = checks.load(tmp_path / "t.json", SPECS)
    assert checks.output_error(lambda x: {"y": doubtless(x["x"])}, kept, {"y": "sigmoid"}).error == 0
    error = checks.output_error(lambda x: {"y": doubtless(x["x"], 1.05)}, kept, {"y": "sigmoid"}).error
    assert error == pytest.approx(0.05 * np.linalg.norm(LOGITS) / np.linalg.norm(LOGITS - 18), rel=0.01)
    assert checks.output_error(lambda x: {"y": doubtless(x["x"], 0)}, kept, {"y": "sigmoid"}).error > 2 * error


def test_those_of_another_table_or_shape_are_no_checks(tmp_path: Path) -> None:
    saved(tmp_path / "t.json", 3)
    assert checks.load(tmp_path / "t.json", [InputSpec("x", (1, 4), "float32")]) == []
    tables.Table("m", "h", "mse", 0, "", ()).save(tmp_path / "t.json")
    assert checks.load(tmp_path / "t.json", SPECS) == []
    checks.checks_path(tmp_path / "t.json").write_bytes(b"no archive")
    assert checks.load(tmp_path / "t.json", SPECS) == []


@pytest.mark.parametrize(
    "key, value", [("max_error", -1), ("output_error", "much"), ("same_answers", "y"), ("decides_types", 1)]
)
def test_edited_badly(tmp_path: Path, key: str, value: object) -> None:
    path = tmp_path / "t.json"
    saved(path, 2)
    path.write_text(path.read_text().replace("{", f'{{"{key}": {value!r}, '.replace("'", '"'), 1))
    with pytest.raises(TesseraError, match=key):
        tables.load(path)


def test_more_than_the_stated_error_is_told_with_a_way_out() -> None:
    assert checks.error_warning(0.05, 0.05, "INT8", "e", "t.json") == ""
    text = checks.error_warning(0.0712, 0.05, "INT8", "relative error 7.12% on 16 samples", "t.json")
    assert (
        "relative error 7.12% on 16 samples" in text
        and "5.0%" in text
        and "--calibration_table t.json --target" in text
    )


def test_outputs_that_say_the_same_on_most_samples() -> None:
    nothing, something = np.full((1, 1, 4, 4), 1e-4, np.float32), np.full((1, 1, 4, 4), 1e-4, np.float32)
    something[0, 0, 2, 2] = 0.9
    assert only_answer(nothing) == 0 and only_answer(1 - nothing) == 1 and only_answer(something) is None
    classes = np.array([[0.1, 0.7, 0.2], [0.3, 0.4, 0.3]], np.float32)
    assert only_answer(classes) == 1 and only_answer(classes[:, ::-1].copy()) == 1
    assert only_answer(np.array([[0.7, 0.3], [0.2, 0.8]], np.float32)) is None
    assert mostly_alike({0: {"a": 0, "b": 0, "c": None}, 1: {"a": 0, "b": 1, "c": None}}) == {"a": 2}
    assert mostly_alike({i: {"few": 0 if i else None, "half": 0 if i % 2 else None} for i in range(4)}) == {"few": 3}
    assert mostly_alike({i: {"more": 0 if i < 3 else None} for i in range(5)}) == {"more": 3}
    assert mostly_alike({i: {"class": int(i > 2)} for i in range(5)}) == {}  # a single output
    assert mostly_alike({0: {"a": 0}}) == {}  # a single sample does not show anything
    assert "'a'" in checks.answers_warning(["a"]) and checks.answers_warning([]) == ""
    assert "'a' (34 of 60) gives" in checks.answers_warning(["a"], {"a": 34}, 60)
