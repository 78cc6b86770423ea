# SPDX-License-Identifier: Apache-2.0
"""Tests that tensors of every shape are read back unchanged, at an address that is aligned for their type."""
from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tessera import safetensors_io

SHAPES = ((), (0,), (3,), (2, 0, 4))


@pytest.mark.parametrize("read", [safetensors_io.load, safetensors_io.MappedTensors])
def test_tensors_without_dims_or_elements(tmp_path: Path, read) -> None:
    tensors = {f"{kind}{shape}": np.full(shape, 1.5, np.float32) for kind in ("f", "b") for shape in SHAPES}
    path = tmp_path / "t.safetensors"
    safetensors_io.save(path, tensors, bfloat16=[name for name in tensors if name.startswith("b")])
    got = read(path)
    for name, array in tensors.items():
        assert got[name].dtype == np.float32 and got[name].shape == array.shape and np.array_equal(got[name], array)


@pytest.mark.parametrize("read", [safetensors_io.load, safetensors_io.MappedTensors])
def test_tensors_behind_smaller_ones_are_aligned(tmp_path: Path, read) -> None:
    tensors = {"byte": np.zeros(1, np.int8), "float": np.arange(5, dtype=np.float32), "double": np.ones(3)}
    path = tmp_path / "t.safetensors"
    safetensors_io.save(path, tensors)
    got = read(path)
    for name, array in tensors.items():
        assert got[name].flags.aligned and np.array_equal(got[name], array)
        memoryview(got[name])  # numpy marks an unaligned array with its own dtype format
        assert memoryview(got[name]).format == array.dtype.char
