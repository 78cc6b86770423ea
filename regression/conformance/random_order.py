# SPDX-License-Identifier: Apache-2.0
"""Random cases of ops that compare and move elements: every instruction set gives what numpy does, to the bit.

TopK, ArgMax and ArgMin see few different values, so that most are tied, with NaN and infinities among floats;
GatherElements has indices of both signs, and Transpose moves a few planes into pixels and back.
    build/bin/tessera-python regression/conformance/random_order.py [--seeds 0:500]
"""
from __future__ import annotations

import argparse
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Mapping

import numpy as np
import onnx
from engines import Compiler, StageError, deploy, run_bmodel, supported_isas
from onnx import helper, numpy_helper
from onnx.mapping import NP_TYPE_TO_TENSOR_TYPE

VARIANTS = supported_isas()
TYPES = (np.float32, np.float16, np.float64, np.int8, np.uint8, np.int32, np.int64)


@dataclass(frozen=True)
class Case:
    operator: str
    inputs: Mapping[str, np.ndarray]
    constants: Mapping[str, np.ndarray]
    attributes: Mapping[str, Any]
    wanted: tuple[np.ndarray, ...]

    def model(self) -> onnx.ModelProto:
        outputs = [f"y{i}" for i in range(len(self.wanted))]
        node = helper.make_node(self.operator, [*self.inputs, *self.constants], outputs, name="op", **self.attributes)

        def infos(arrays: Mapping[str, np.ndarray]) -> list[onnx.ValueInfoProto]:
            return [
                helper.make_tensor_value_info(name, NP_TYPE_TO_TENSOR_TYPE[array.dtype], array.shape)
                for name, array in arrays.items()
            ]

        constants = [numpy_helper.from_array(array, name) for name, array in self.constants.items()]
        graph = helper.make_graph([node], "op", infos(self.inputs), infos(dict(zip(outputs, self.wanted))), constants)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def _values(rng: np.random.Generator, shape: tuple[int, ...], dtype: Any) -> np.ndarray:
    """Few different values; of floats some rows have NaN, infinities and zeros of both signs."""
    x = rng.integers(0 if dtype == np.uint8 else -5, 6, shape).astype(dtype)
    if np.issubdtype(dtype, np.floating) and rng.random() < 0.5:
        for value in (np.nan, np.inf, -np.inf, -0.0):
            x[rng.random(shape) < rng.choice([0.0, 0.1, 0.6])] = value
    return x


def _row_length(rng: np.random.Generator) -> int:
    return int(rng.choice([rng.integers(1, 40), rng.integers(32, 300), rng.integers(250, 900)]))


def _top_k(rng: np.random.Generator, dtype: Any) -> Case:
    x = _values(rng, (int(rng.integers(1, 5)), _row_length(rng)), dtype)
    k, largest = int(rng.integers(1, min(x.shape[1], rng.choice([16, 70])) + 1)), int(rng.integers(0, 2))
    keys = x.astype(np.float64)
    # NaN counts as the largest number, and is tied with no infinity.
    ranks = np.where(np.isnan(keys), 1e9, np.clip(keys, -1e8, 1e8))
    order = np.argsort(-ranks if largest else ranks, axis=-1, kind="stable")[:, :k]
    attributes = {"axis": -1, "largest": largest}
    return Case("TopK", {"x": x}, {"k": np.array([k])}, attributes, (np.take_along_axis(x, order, -1), order))


def _arg(rng: np.random.Generator, dtype: Any) -> Case:
    smallest, last = bool(rng.integers(0, 2)), int(rng.integers(0, 2))
    x = _values(rng, (int(rng.integers(1, 5)), _row_length(rng)), dtype)
    places = []
    for row in -x.astype(np.float64) if smallest else x.astype(np.float64):
        best = 0
        for i, value in enumerate(row):  # nothing is better than NaN, and NaN is not better
            if value > row[best] or (last and value == row[best]):
                best = i
        places.append(best)
    attributes = {"axis": -1, "keepdims": 0, "select_last_index": last}
    return Case("ArgMin" if smallest else "ArgMax", {"x": x}, {}, attributes, (np.array(places),))


def _transpose(rng: np.random.Generator, dtype: Any) -> Case:
    planes, height, width = int(rng.integers(2, 6)), int(rng.integers(1, 24)), int(rng.integers(1, 40))
    shape, order = ((planes, height, width), (1, 2, 0)) if rng.random() < 0.5 else ((height, width, planes), (2, 0, 1))
    if rng.random() < 0.4:
        order = tuple(rng.permutation(3).tolist())
    x = rng.integers(0, 100, shape).astype(dtype)
    return Case("Transpose", {"x": x}, {}, {"perm": order}, (np.ascontiguousarray(x.transpose(order)),))


def _gather_elements(rng: np.random.Generator, dtype: Any) -> Case:
    shape = [int(rng.integers(1, 9)) for _ in range(rng.integers(1, 4))]
    if rng.random() < 0.3:
        shape[-1] = int(rng.integers(900, 2500))
    axis, taken = int(rng.integers(0, len(shape))), [max(1, size - int(rng.integers(0, 3))) for size in shape]
    taken[axis] = int(rng.integers(1, 2 * shape[axis] + 1))
    x = rng.integers(0, 100, shape).astype(dtype)
    indices = rng.integers(-shape[axis], shape[axis], taken)
    read = x[tuple(slice(None) if d == axis else slice(0, size) for d, size in enumerate(taken))]
    wanted = np.take_along_axis(read, indices % shape[axis], axis)
    return Case("GatherElements", {"x": x, "i": indices}, {}, {"axis": axis}, (wanted,))


def make_case(seed: int) -> Case:
    rng = np.random.default_rng(seed)
    make = (_top_k, _arg, _transpose, _gather_elements)[seed % 4]
    return make(rng, TYPES[int(rng.integers(0, len(TYPES)))])


def check(compiler: Compiler, seed: int, folder: Path) -> list[str]:
    """Returns what is wrong, for each instruction set."""
    case, faults = make_case(seed), []
    path, mlir = folder / "m.onnx", folder / "m_top.mlir"
    onnx.save(case.model(), path)
    compiler("import", "import", "--onnx", path, "--output", mlir)
    for chip in VARIANTS:
        outputs = run_bmodel(deploy(compiler, mlir, chip), case.inputs)
        for number, wanted in enumerate(case.wanted):
            got = outputs[f"y{number}"]
            if got.tobytes() != wanted.tobytes() and not np.array_equal(got, wanted, equal_nan=got.dtype.kind == "f"):
                faults.append(f"seed {seed}, {case.operator}, {chip}: {np.sum(got != wanted)} of {wanted.size} differ")
    return faults


def run_seeds(seeds: range) -> list[str]:
    compiler, faults = Compiler(), []
    with tempfile.TemporaryDirectory() as folder:
        for seed in seeds:
            try:
                faults += check(compiler, seed, Path(folder))
            except StageError as error:
                faults.append(f"seed {seed}, {error.stage}: {error}")
    compiler.close()
    return faults


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", default="0:200", help="first:end (default: %(default)s)")
    first, end = map(int, parser.parse_args().seeds.split(":"))
    faults = run_seeds(range(first, end))
    print("\n".join([*faults, f"{end - first} cases on {len(VARIANTS)} instruction sets, {len(faults)} faults"]))
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
