# SPDX-License-Identifier: Apache-2.0
"""Tests for which models calibration looks for factors and learns weights."""
from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tessera import safetensors_io
from tessera.calibration.equalization import is_coarsened, will_learn
from tessera.calibration.dataset import Dataset, Sample
from tessera.calibration.observed import Observed
from tessera.top_model import TopModel


@pytest.mark.parametrize("coarse", [True, False])
def test_not_those_whose_weights_int8_holds(tmp_path: Path, coarse: bool) -> None:
    assert is_coarsened(convolution(tmp_path, coarse)) == coarse


@pytest.mark.parametrize("samples, size, enough", [(1, 3, False), (12, 3, True), (1, 16, True)])
def test_weights_are_learned_where_there_are_rows(tmp_path: Path, samples: int, size: int, enough: bool) -> None:
    """A sum of 36 products requires 72 output positions."""
    dataset = Dataset(lambda: iter([Sample(i, str(i)) for i in range(samples)]), samples, samples, "", "")
    assert will_learn(convolution(tmp_path, True, size), dataset) == enough
    assert not will_learn(convolution(tmp_path, False, size), dataset), "int8 holds them as they are"


def convolution(tmp_path: Path, coarse: bool, size: int = 8) -> Observed:
    integers = np.random.default_rng(0).integers(-127, 128, (8, 4, 3, 3)).astype(np.float32)
    integers[:, 0, 0, 0] = 127
    weights = integers * np.float32(0.01) + (np.float32(0.004) * (integers % 3 - 1) if coarse else np.float32(0))
    safetensors_io.save(tmp_path / "w.safetensors", {"y": weights})
    info = {
        "products": [
            {
                "name": "y",
                "input": "x",
                "kind": "conv",
                "groups": 1,
                "strides": [1, 1],
                "pads": [1] * 4,
                "dilations": [1, 1],
            }
        ],
        "tensors": [{"name": "x", "shape": [1, 4, size, size], "source": "x", "integer": True}],
    }
    model = TopModel(tmp_path, (), ())
    return Observed(model, tmp_path / "o.bmodel", tmp_path / "w.safetensors", info)
