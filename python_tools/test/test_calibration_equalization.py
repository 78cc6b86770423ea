# SPDX-License-Identifier: Apache-2.0
"""Tests for which models calibration looks for factors."""
from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tessera import safetensors_io
from tessera.calibration.equalization import is_coarsened
from tessera.calibration.observed import Observed
from tessera.top_model import TopModel


@pytest.mark.parametrize("coarse", [True, False])
def test_not_those_whose_weights_int8_holds(tmp_path: Path, coarse: bool) -> None:
    assert is_coarsened(convolution(tmp_path, coarse)) == coarse


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
