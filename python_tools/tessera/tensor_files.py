# SPDX-License-Identifier: Apache-2.0
"""Reads tensor files of any supported format."""
from __future__ import annotations

from pathlib import Path

import numpy as np

from . import safetensors_io
from .files import load_npy, load_npz, require_file


def load_tensors(path: str | Path, what: str = "tensor file") -> dict[str, np.ndarray]:
    """Reads arrays by name from an .npz, .safetensors or .npy file (the latter under the file's stem)."""
    suffix = Path(path).suffix
    if suffix == ".safetensors":
        require_file(path, what)
        return safetensors_io.load(path)
    if suffix == ".npy":
        return {Path(path).stem: load_npy(path, what)}
    return load_npz(path, what)
