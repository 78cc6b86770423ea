# SPDX-License-Identifier: Apache-2.0
"""Tests that a trial of calibration on the float model gives the result of the compiled integer model."""
from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from conftest import check
from test_calibration import calibrate, pictures, top  # noqa: F401: fixtures

from tessera import safetensors_io, top_model
from tessera.calibration import trial
from tessera.calibration.dataset import open_dataset
from tessera.calibration.observed import Observed
from tessera.calibration.rounding import Rounded
from tessera.calibration.table import Entry, Table, load
from tessera.calibration.worker import Worker
from tessera.progress import Report


@pytest.mark.parametrize("precision", trial.SIMULATED)
def test_a_simulated_model_errs_as_the_compiled_one(
    top: Path, pictures: Path, tmp_path: Path, precision: str, monkeypatch: pytest.MonkeyPatch  # noqa: F811
) -> None:
    """Tested with learned and with rounded weights, and with one tensor in 16 bits: all variants have different errors.
    Sums of floats round a few values in a thousand differently, and later ops spread the difference, so single errors
    in 8 bits scatter."""
    check(calibrate(top, pictures, tmp_path / "a.json", "--methods", "gptq,bias_correction"))
    arrays = safetensors_io.load(tmp_path / "a.safetensors")
    names = [name.removesuffix(":weight") for name in arrays if name.endswith(":weight")]
    weights = {n: Rounded(arrays[f"{n}:weight"], arrays[f"{n}:scale"], arrays.get(f"{n}:bias")) for n in names}
    table = replace(load(tmp_path / "a.json"), weights_hash="")
    plain = replace(table, tensors=tuple(replace(e, error=None) for e in table.tensors))
    worst = max(table.tensors, key=lambda e: e.error or 0).name
    wide = replace(
        plain, tensors=tuple(replace(e, dtype="int16" if e.name == worst else "int8") for e in plain.tensors)
    )
    ways = [trial.Way(plain, {}, {}), trial.Way(plain, weights, {}), trial.Way(wide, weights, {})]
    model = top_model.open_top(top, Report(1, quiet=True))
    observed = Observed.compile(model, tmp_path / "observed", Report(1, quiet=True), [])
    dataset = open_dataset(str(pictures), model.inputs, 4)

    def errors() -> list[float]:
        return trial.Trial(model, precision, (), tmp_path).output_errors(observed.job(), dataset, range(4), ways)

    simulated = errors()
    monkeypatch.setattr(trial, "SIMULATED", ())
    assert simulated == pytest.approx(errors(), rel=0.05 if precision == "INT16" else 0.4)
    if precision == "INT8":
        assert min(abs(np.diff(sorted(simulated)))) > 0.01 * max(simulated)


def test_models_that_differ_in_forms_alone_are_compiled_once(
    top: Path, pictures: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch  # noqa: F811
) -> None:
    """Tables with other ranges, types and lines are tried one after the other. Each gives the same error as in its own
    trial."""
    check(calibrate(top, pictures, tmp_path / "a.json", "--cali_method", "max"))
    table, random = replace(load(tmp_path / "a.json"), weights_hash=""), np.random.default_rng(0)

    def changed() -> Table:
        """Returns lines with wider ranges, in 16 bits, and without some of the tensors, which are float then."""
        few = random.random() < 0.5
        lines = [
            Entry.make(e.name, e.threshold * random.uniform(1, 2), e.min, e.max, e.symmetric, e.method)
            for e in table.tensors
            if not few or random.random() < 0.9
        ]
        lines = [replace(e, dtype="int16" if random.random() < 0.1 else "int8") for e in lines]
        return replace(table, tensors=tuple(lines))

    model = top_model.open_top(top, Report(1, quiet=True))
    observed = Observed.compile(model, tmp_path / "observed", Report(1, quiet=True), [])
    dataset = open_dataset(str(pictures), model.inputs, 1)
    ways = [trial.Way(t, {}, {}) for t in (table, *(changed() for _ in range(8)), table)]
    compiled: list[str] = []
    monkeypatch.setattr(trial, "Worker", lambda job: compiled.append(job.key) or Worker(job))

    def errors(golden: trial.Golden | None) -> list[float]:
        tried = trial.Trial(model, "INT8", (), tmp_path, golden)
        return [tried.output_errors(observed.job(), dataset, [0], [way])[0] for way in ways]

    assert errors(trial.Golden(observed.job())) == errors(None)
    assert len(ways) + 1 < len(compiled) < 2 * len(ways), "with other lines weights are others"
