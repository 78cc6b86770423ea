# SPDX-License-Identifier: Apache-2.0
"""Check GridSample in all its modes against a simple implementation: grid_sample.py make|check FOLDER."""
import itertools
import math
import pathlib
import sys

import numpy as np
from onnx import helper

import models
from tessera import safetensors_io

KERNELS, PADDINGS = ("nearest", "linear", "cubic"), ("zeros", "border", "reflection")
CASES = [
    (rank, mode, padding, align)
    for rank, mode, padding, align in itertools.product((2, 3), KERNELS, PADDINGS, (0, 1))
    if rank == 2 or mode != "cubic"
]
SPATIAL = {2: (5, 7), 3: (3, 4, 5)}
POINTS = {2: (4, 3), 3: (2, 3, 2)}


def name_of(case):
    return "_".join(map(str, case))


def inputs():
    rng = np.random.default_rng(1)
    result = {}
    for rank in (2, 3):
        result[f"x{rank}"] = rng.standard_normal((2, 3) + SPATIAL[rank]).astype(np.float32)
        result[f"g{rank}"] = rng.uniform(-3, 3, (2,) + POINTS[rank] + (rank,)).astype(np.float32)
    return result


def folded(v, low, high):
    while low < high and not low <= v <= high:
        v = 2 * low - v if v < low else 2 * high - v
    return v


def taps(mode, at):
    """Return (pixel, weight) for each tap of the kernel around `at`."""
    if mode == "nearest":
        return [(at, 1.0)]
    base = math.floor(at)
    t = at - base
    if mode == "linear":
        return [(base, 1 - t), (base + 1, t)]
    a = -0.75
    near = lambda d: (a + 2) * d**3 - (a + 3) * d**2 + 1
    far = lambda d: a * d**3 - 5 * a * d**2 + 8 * a * d - 4 * a
    return [(base - 1, far(1 + t)), (base, near(t)), (base + 1, near(1 - t)), (base + 2, far(2 - t))]


def taps_of_dim(mode, padding, align, g, size):
    """Return (pixel in the input, weight) along one dim for the coordinate `g` in -1..1."""
    low, high = (0, size - 1) if align else (-0.5, size - 0.5)
    at = low + (g + 1) / 2 * (high - low)
    at = float(np.rint(at)) if mode == "nearest" else at
    at = folded(at, low, high) if padding == "reflection" else at
    result = []
    for pixel, weight in taps(mode, at):
        pixel = folded(pixel, low, high) if padding == "reflection" else pixel
        pixel = min(max(pixel, 0), size - 1) if padding == "border" else pixel
        if 0 <= pixel <= size - 1:
            result.append((int(pixel), weight))
    return result


def naive(x, grid, mode, padding, align):
    y = np.zeros(x.shape[:2] + grid.shape[1:-1], np.float64)
    for place in np.ndindex(grid.shape[:-1]):
        dims = [taps_of_dim(mode, padding, align, float(g), size) for g, size in zip(grid[place][::-1], x.shape[2:])]
        for combination in itertools.product(*dims):
            pixel, weight = zip(*combination)
            y[(place[0], slice(None)) + place[1:]] += math.prod(weight) * x[(place[0], slice(None)) + pixel]
    return y


def make(folder):
    nodes = [
        helper.make_node(
            "GridSample",
            [f"x{case[0]}", f"g{case[0]}"],
            [name_of(case)],
            name=name_of(case),
            mode=case[1],
            padding_mode=case[2],
            align_corners=case[3],
        )
        for case in CASES
    ]
    result = models.model(
        nodes,
        [models.tensor(name, array.shape) for name, array in inputs().items()],
        [models.tensor(name_of(case), None) for case in CASES],
        opset=20,
    )
    (folder / "m.onnx").write_bytes(result.SerializeToString())
    safetensors_io.save(folder / "in.safetensors", inputs())


def check(folder):
    got, given = safetensors_io.load(folder / "out.safetensors"), inputs()
    for case in CASES:
        rank, mode, padding, align = case
        want = naive(given[f"x{rank}"], given[f"g{rank}"], mode, padding, align)
        np.testing.assert_allclose(got[name_of(case)], want, atol=1e-5, err_msg=name_of(case))
    print(f"{len(CASES)} cases agree")


if __name__ == "__main__":
    {"make": make, "check": check}[sys.argv[1]](pathlib.Path(sys.argv[2]))
