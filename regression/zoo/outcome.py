# SPDX-License-Identifier: Apache-2.0
"""Runs the compiled models of a network on samples and compares the outputs. This is a separate process, so that a
crash affects one network only.

    outcome.py onnx=FILE f32=FILE npu_f32=FILE int8=FILE npu=FILE [CHIP=FILE ..] SAMPLE.npz [SAMPLE.npz ..]

Any file may be left out; npu and CHIP are INT8 models for other chips than that of int8. padded=yes: the command
reported that outputs have the largest possible size. Prints a JSON object:
  reference_f32: agreement of f32 and npu_f32 with onnxruntime, of the worst output of all samples
  f32_int8: agreement of int8 with f32, or with onnxruntime if there is no f32 model
  different: number of elements of all outputs in which int8 and the models for other chips differ
  elements: number of elements of all these outputs
"""
from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Mapping

import numpy as np

from tessera import any_model
from tessera.onnx_runner import OnnxModel
from tessera.progress import Report

Arrays = Mapping[str, np.ndarray]


def agreement(got: np.ndarray, wanted: np.ndarray) -> float:
    """Returns the cosine of the finite elements, or for integers the share of equal elements; -1 if the shapes or the
    places of non-finite elements differ."""
    if got.shape != wanted.shape:
        return -1.0
    if not got.size:
        return 1.0
    if wanted.dtype.kind != "f":
        return float(np.mean(got == wanted))
    a, b = got.astype(np.float64).ravel(), wanted.astype(np.float64).ravel()
    if not np.array_equal(np.isfinite(a), np.isfinite(b)):
        return -1.0
    a, b = a[np.isfinite(a)], b[np.isfinite(b)]
    if not a.size or np.abs(a - b).max() <= 2.0**-22:
        return 1.0
    norms = float(np.linalg.norm(a) * np.linalg.norm(b))
    if not norms:
        return 0.0
    return float(a @ b) / norms if a.size > 1 else float(1 - min(1, abs(a[0] - b[0]) / max(abs(b[0]), 1e-30)))


def leading(got: Arrays, wanted: Arrays) -> dict[str, np.ndarray]:
    """Returns `got` with padded outputs cut to the sizes of `wanted`: an output with a data-dependent size has padding
    after its real entries (docs/concepts/data-dependent-outputs.md)."""
    cut = dict(got)
    for name in got.keys() & wanted.keys():
        a, b = got[name], wanted[name]
        more = [axis for axis in range(a.ndim) if a.ndim == b.ndim and a.shape[axis] != b.shape[axis]]
        if len(more) == 1 and a.shape[more[0]] > b.shape[more[0]]:
            cut[name] = np.take(a, range(b.shape[more[0]]), more[0])
    return cut


def worst(got: Arrays, wanted: Arrays) -> float:
    """Returns the lowest agreement of any output; -1 if an output is missing."""
    return min((agreement(got[name], wanted[name]) if name in got else -1.0 for name in wanted), default=-1.0)


def different(a: Arrays, b: Arrays) -> tuple[int, int]:
    """Returns the number of elements whose bits differ, and the number of elements."""
    count = total = 0
    for name in a:
        x, y = a[name], b.get(name)
        total += x.size
        if y is None or x.shape != y.shape or x.dtype != y.dtype:
            count += x.size
        else:
            bits = np.dtype(f"u{x.dtype.itemsize}")
            same = (
                x.view(bits) == y.view(bits) if x.ndim else np.atleast_1d(x).view(bits) == np.atleast_1d(y).view(bits)
            )
            both_nan = (x != x) & (y != y) if x.dtype.kind == "f" else np.zeros(x.shape, bool)
            count += int((~(same | both_nan)).sum())
    return count, total


def main() -> int:
    files = dict(word.split("=", 1) for word in sys.argv[1:] if "=" in word)
    padded = files.pop("padded", "") == "yes"
    samples = [word for word in sys.argv[1:] if "=" not in word]
    quiet = Report(0, quiet=True)
    models = {key: any_model.open_model(path, quiet).run for key, path in files.items() if key != "onnx"}
    if "onnx" in files:
        models["onnx"] = OnnxModel(files["onnx"], optimise=False).run
    info: dict[str, float] = {}
    for path in samples:
        with np.load(Path(path)) as file:
            arrays = dict(file)
        found = {
            key: {name: np.ascontiguousarray(value) for name, value in run(arrays).items()}
            for key, run in models.items()
        }
        for key in found.keys() & {"f32", "npu_f32"} if "onnx" in found else ():
            got = leading(found[key], found["onnx"]) if padded else found[key]
            info["reference_f32"] = min(info.get("reference_f32", 1.0), worst(got, found["onnx"]))
        like = found.get("f32", found.get("onnx"))
        if like is not None and "int8" in found:
            info["f32_int8"] = min(info.get("f32_int8", 1.0), worst(found["int8"], like))
        for key in found.keys() - {"onnx", "f32", "npu_f32", "int8"} if "int8" in found else ():
            count, total = different(found["int8"], found[key])
            info["different"] = info.get("different", 0) + count
            info["elements"] = info.get("elements", 0) + total
    print(json.dumps(info))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
