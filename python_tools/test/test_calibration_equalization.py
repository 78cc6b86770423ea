# SPDX-License-Identifier: Apache-2.0
"""Which models factors are looked for."""
from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tessera import safetensors_io
from tessera.calibration.equalization import is_coarsened
from tessera.calibration.observed import Observed


@pytest.mark.parametrize("coarse", [True, False])
def test_not_those_whose_weights_int8_holds(tmp_path: Path, coarse: bool) -> None:
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
                "pads": [0] * 4,
                "dilations": [1, 1],
            }
        ]
    }
    observed = Observed(None, tmp_path / "o.bmodel", tmp_path / "w.safetensors", info)  # type: ignore[arg-type]
    assert is_coarsened(observed) == coarse
