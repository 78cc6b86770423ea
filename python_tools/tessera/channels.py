# SPDX-License-Identifier: Apache-2.0
"""The distribution of a tensor's error: by channel, and as a picture."""
from __future__ import annotations

import math
from pathlib import Path

import numpy as np

from .compare import Row, Tolerance, compare_tensor
from .errors import TesseraError, usage_error
from .files import atomic_write

_LARGEST_SIDE = 4096  # pixels of a heat map


def by_channel(name: str, got: np.ndarray, ref: np.ndarray, axis: int, tolerance: Tolerance) -> list[Row]:
    """Returns one row per channel along `axis`, named by its index, the worst relative error first."""
    _check(name, got, ref, axis)
    rows = [
        compare_tensor(str(i), np.take(got, i, axis), np.take(ref, i, axis), tolerance) for i in range(ref.shape[axis])
    ]
    return sorted(rows, key=lambda row: -(math.inf if math.isnan(row.rel_l2) else row.rel_l2))


def _check(name: str, got: np.ndarray, ref: np.ndarray, axis: int) -> None:
    if got.shape != ref.shape:
        raise TesseraError(
            f"'{name}' has shape {list(got.shape)} against {list(ref.shape)}: channels cannot be compared"
        )
    if not -ref.ndim <= axis < ref.ndim:
        raise usage_error(f"--axis {axis} is out of range: '{name}' has rank {ref.ndim}")


def heat_map(name: str, got: np.ndarray, ref: np.ndarray, axis: int) -> np.ndarray:
    """Returns RGB uint8 [h,w,3]: one tile per channel in reading order; black is no error, white the tensor's largest
    |error|.

    A tile shows the tensor without the channel's axis: its last dim as columns, all others as rows.
    """
    _check(name, got, ref, axis)
    error = np.nan_to_num(np.abs(got.astype(np.float64) - ref.astype(np.float64)), nan=np.inf, posinf=np.inf)
    finite = error[np.isfinite(error)]
    largest = float(finite.max()) if finite.size and finite.max() > 0 else 1.0
    channels = np.moveaxis(np.minimum(error / largest, 1.0), axis, 0)
    tiles = channels.reshape(channels.shape[0], -1, channels.shape[-1] if channels.ndim > 1 else 1)
    count, height, width = tiles.shape
    columns = max(1, min(count, round(math.sqrt(count * (height + 1) / (width + 1)))))
    rows = -(-count // columns)
    if max(rows * (height + 1), columns * (width + 1)) > _LARGEST_SIDE:
        raise TesseraError(
            f"the heat map of '{name}' {list(ref.shape)} would exceed {_LARGEST_SIDE} pixels per side",
            hint="extract a part of the tensor, or choose another --axis",
        )
    picture = np.zeros((rows * (height + 1) + 1, columns * (width + 1) + 1, 3), np.uint8)
    picture[:] = (40, 40, 60)
    for i, tile in enumerate(tiles):
        top, left = i // columns * (height + 1) + 1, i % columns * (width + 1) + 1
        picture[top : top + height, left : left + width] = _colours(tile)
    return picture


def _colours(values: np.ndarray) -> np.ndarray:
    """Maps 0..1 to black, red, yellow, white."""
    return np.stack([np.clip(values * 3 - i, 0, 1) * 255 for i in range(3)], axis=-1).round().astype(np.uint8)


def save_heat_map(path: str | Path, picture: np.ndarray) -> None:
    """Writes a picture file whose format follows from the name's suffix."""
    from PIL import Image

    try:
        # Looked up here, because atomic_write() writes to a temporary name.
        kind = Image.registered_extensions()[Path(path).suffix.lower()]
        with atomic_write(path) as file:
            Image.fromarray(picture).save(file, format=kind)
    except (OSError, ValueError, KeyError) as error:
        raise TesseraError(
            f"failed to write the heat map {path}: {error}", hint="use a name that ends in .png"
        ) from error
