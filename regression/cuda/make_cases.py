#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Creates cases for on_device.py from .onnx models: one folder per model and precision, with a .bmodel per chip.

    build/bin/tessera-python regression/cuda/make_cases.py --output cases --chips cuda,cuda-sm80 a.onnx b.onnx

--gemm 4096x4096x1024 adds a matmul of these sizes (m x n x k) in each precision, to compare with cuBLAS.
The expected outputs are those of x86 on random inputs: the same integers in INT8, else the same values within a
tolerance. To time PyTorch on a case, put model.pt2 or model.pt into its folder by hand.
"""
from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Sequence

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

# Relative to the largest value: sums are added in another order, and narrow types are rounded at other places.
TOLERANCES = {"F32": 1e-4, "F16": 5e-3, "BF16": 4e-2, "INT8": None}
TYPES = {"F32": "f32", "F16": "f16", "BF16": "bf16", "INT8": "i8"}  # element types of a matmul's operands
PERIOD = 61  # rows and columns of a --gemm repeat, so that the case compresses; no size of a tile divides this
SAMPLES = 2  # calibration samples; the ranges need not be good, only the same for all chips


class Failed(Exception):
    """Raised if a command fails; the message says why."""


def tool(*words: object) -> str:
    """Runs a command of build/bin and returns its output."""
    info = subprocess.run([str(word) for word in words], capture_output=True, text=True, check=False)
    if info.returncode != 0:
        raise Failed(f"{' '.join(map(str, words))}\n{(info.stderr or info.stdout)[-2000:]}")
    return info.stdout


def noise(top: Path, seed: int) -> dict[str, np.ndarray]:
    """Returns random inputs of the model: floats around zero, integers 0 and 1, which are valid indices."""
    generator = np.random.default_rng(seed)
    specs = json.loads(tool("tessera-compile", "info", "--mlir", top).splitlines()[-1])["inputs"]
    return {
        spec["name"]: (
            (generator.standard_normal(spec["shape"]) * 0.7).astype(spec["dtype"])
            if spec["dtype"].startswith("float")
            else generator.integers(0, 2, spec["shape"]).astype(spec["dtype"])
        )
        for spec in specs
    }


def product(sizes: Sequence[int], path: Path) -> Path:
    """Writes an .onnx with a matmul after a ReLU, so that its left operand has the precision's type."""
    m, n, k = sizes
    drawn = np.random.default_rng(0).standard_normal((k, min(n, PERIOD))).astype(np.float32) * np.float32(k**-0.5)
    weights = drawn[:, np.arange(n) % PERIOD]
    nodes = [helper.make_node("Relu", ["x"], ["r"]), helper.make_node("MatMul", ["r", "w"], ["y"], name="product")]
    given, result = (
        helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in (("x", (m, k)), ("y", (m, n)))
    )
    graph = helper.make_graph(nodes, path.stem, [given], [result], [numpy_helper.from_array(weights, "w")])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), str(path))
    return path


def sizes_of(texts: Sequence[str]) -> dict[str, list[int]]:
    return {text: [int(size) for size in text.split("x")] for text in texts}


def make(
    model: Path,
    output: Path,
    chips: Sequence[str],
    precisions: Sequence[str],
    work: Path,
    gemm: Sequence[int] | None = None,
) -> None:
    """Creates all cases of one model; `gemm` are the sizes if the model is a single matmul."""
    top, table = work / f"{model.stem}_top.mlir", work / f"{model.stem}_cali.json"
    tool(*("model_transform", "--model_name", model.stem, "--model_def", model, "--mlir", top, "--not_inference"))
    if "INT8" in precisions:
        data = work / model.stem
        data.mkdir()
        for seed in range(SAMPLES):
            np.savez(data / f"{seed}.npz", **noise(top, seed))
        # Integers are compared bit for bit, so no error on these samples may keep a contraction in f32.
        tool("run_calibration", top, "--dataset", data, "--input_num", SAMPLES, "--max_error", 10, "-o", table)
    for precision in precisions:
        folder = output / f"{model.stem}_{precision.lower()}"
        folder.mkdir(parents=True, exist_ok=True)
        flags = ["--quantize", precision, *(["--calibration_table", table] if precision == "INT8" else [])]
        for chip in ("x86", *chips):
            to = work / "x86.bmodel" if chip == "x86" else folder / f"{chip}.bmodel"
            tool("model_deploy", "--mlir", top, "--chip", chip, *flags, "--model", to, "--skip_validation")
        inputs = noise(top, SAMPLES)
        if gemm:
            inputs = {name: array[np.arange(len(array)) % PERIOD] for name, array in inputs.items()}
        np.savez(folder / "inputs.npz", **inputs)
        files = ("--input", folder / "inputs.npz", "--output", folder / "expected.npz")
        tool("model_runner", "--model", work / "x86.bmodel", *files)
        settings: dict[str, object] = {"tolerance": TOLERANCES[precision]}
        if gemm:
            settings["gemm"] = {"sizes": list(gemm), "type": TYPES[precision]}
        (folder / "case.json").write_text(json.dumps(settings) + "\n")
        print(folder, flush=True)


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Makes cases for on_device.py.", allow_abbrev=False)
    parser.add_argument("models", nargs="*", type=Path, metavar="MODEL.onnx")
    parser.add_argument("--gemm", action="append", default=[], metavar="MxNxK", help="add a matmul of these sizes")
    parser.add_argument("--output", type=Path, required=True, metavar="FOLDER")
    parser.add_argument("--chips", default="cuda", metavar="A,B", help="default: %(default)s")
    parser.add_argument("--precisions", default="F32,F16,INT8", metavar="A,B", help="default: %(default)s")
    args = parser.parse_args(argv)
    precisions = args.precisions.upper().split(",")
    unknown = [precision for precision in precisions if precision not in TOLERANCES]
    if unknown:
        parser.error(f"--precisions '{unknown[0]}': expected some of {', '.join(TOLERANCES)}")
    if bad := [text for text in args.gemm if not re.fullmatch(r"[1-9]\d*x[1-9]\d*x[1-9]\d*", text)]:
        parser.error(f"--gemm '{bad[0]}': expected three sizes, e.g. 4096x4096x1024")
    if not args.models and not args.gemm:
        parser.error("give a MODEL.onnx or --gemm")
    with tempfile.TemporaryDirectory() as work:
        gemms = {product(sizes, Path(work) / f"gemm_{text}.onnx"): sizes for text, sizes in sizes_of(args.gemm).items()}
        for model in (*args.models, *gemms):
            try:
                make(model, args.output, args.chips.split(","), precisions, Path(work), gemms.get(model))
            except Failed as error:
                print(f"make_cases: {model}: {error}", file=sys.stderr)
                return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
