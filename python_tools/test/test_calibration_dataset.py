# SPDX-License-Identifier: Apache-2.0
"""Tests that samples are made or read once, however often they are requested."""
from __future__ import annotations

from itertools import islice
from pathlib import Path
from typing import Iterator

import numpy as np
import pytest

from tessera.calibration import dataset as datasets
from tessera.calibration.dataset import Remembered, Sample, open_dataset, readable
from tessera.errors import TesseraError
from tessera.inputs import InputSpec


class Making:
    """Fills the same array for each sample, and counts the samples."""

    made = 0

    def __call__(self) -> Iterator[Sample]:
        array = np.zeros(4, np.float32)
        for i in range(6):
            self.made += 1
            array[:] = i
            yield Sample(i, str(i), arrays={"x": array})


def values(samples: Iterator[Sample]) -> list[float]:
    return [float(sample.arrays["x"][0]) for sample in samples if sample.arrays]


def test_a_generator_is_asked_once() -> None:
    making = Making()
    kept = Remembered(making)
    assert values(islice(kept.samples(), 3)) == [0, 1, 2] and making.made == 3
    first, second = kept.samples(), kept.samples()
    assert values(islice(first, 5)) == [0, 1, 2, 3, 4] and values(second) == [0, 1, 2, 3, 4, 5]
    assert values(first) == [5] and values(kept.samples()) == [0, 1, 2, 3, 4, 5] and making.made == 6


def test_of_more_than_is_kept_each_pass_makes_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(datasets, "KEPT", 3 * 16)
    making = Making()
    kept = Remembered(making)
    before = kept.samples()
    assert values(islice(before, 2)) == [0, 1]
    for _ in range(2):
        assert [float(s.arrays["x"][0]) for s in kept.samples() if s.arrays] == [0, 1, 2, 3, 4, 5]
    assert values(before) == [2, 3, 4, 5] and making.made > 12


def test_one_that_fails_fails_each_time(tmp_path: Path) -> None:
    path = tmp_path / "make.py"
    path.write_text("def samples():\n    yield {'x': [1.0]}\n    raise ValueError('no more')\n")
    dataset = open_dataset(str(path), (InputSpec("x", (1,), "float32"),), 4)
    for _ in range(2):
        with pytest.raises(TesseraError, match="make.py:3: ValueError: no more"):
            list(dataset.samples())


def test_files_are_read_once(tmp_path: Path) -> None:
    for i in range(3):
        np.savez(tmp_path / f"{i}.npz", x=np.full(1, i, np.float32))
    specs = (InputSpec("x", (1,), "float32"),)
    dataset = open_dataset(str(tmp_path), specs, 3)
    assert [float(arrays["x"][0]) for _, arrays in readable(dataset, (0, 2), specs)] == [0, 2]
    for file in tmp_path.glob("*.npz"):
        file.unlink()
    assert [float(arrays["x"][0]) for _, arrays in readable(dataset, (0, 2), specs)] == [0, 2]
