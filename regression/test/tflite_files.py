# SPDX-License-Identifier: Apache-2.0
"""Writes small .tflite files with flatc and the importer's schema."""
from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np

SCHEMA = Path(__file__).resolve().parents[2] / "top_dialect/Import/Tflite/tflite.fbs"
TYPES = {"float32": "FLOAT32", "int32": "INT32", "int8": "INT8", "float16": "FLOAT16"}


class Model:
    """A graph under construction. A tensor is known by its index."""

    def __init__(self) -> None:
        self.tensors: list[dict[str, Any]] = []
        self.buffers: list[dict[str, Any]] = [{}]
        self.codes: list[dict[str, Any]] = []
        self.operators: list[dict[str, Any]] = []
        self.version = 3

    def tensor(self, shape: tuple[int, ...], dtype: str = "float32", **more: Any) -> int:
        number = len(self.tensors)
        self.tensors.append({"shape": list(shape), "type": TYPES[dtype], "name": f"t{number}", **more})
        return number

    def constant(self, array: np.ndarray) -> int:
        self.buffers.append({"data": list(array.tobytes())})
        return self.tensor(array.shape, str(array.dtype), buffer=len(self.buffers) - 1)

    def add(self, code: str, inputs: list[int], shape: tuple[int, ...], options: str = "", **values: Any) -> int:
        """Adds an operator and returns its output."""
        out = self.tensor(shape)
        self.codes.append({"builtin_code": code, "custom_code": "Mystery" if code == "CUSTOM" else None})
        op: dict[str, Any] = {"opcode_index": len(self.codes) - 1, "inputs": inputs, "outputs": [out]}
        if options:
            op |= {"builtin_options_type": options, "builtin_options": values}
        self.operators.append(op)
        return out

    def write(self, path: Path, inputs: list[int], outputs: list[int]) -> Path:
        graph = {"tensors": self.tensors, "inputs": inputs, "outputs": outputs, "operators": self.operators}
        codes = [{key: value for key, value in code.items() if value is not None} for code in self.codes]
        model = {"version": self.version, "operator_codes": codes, "subgraphs": [graph], "buffers": self.buffers}
        text = path.with_suffix(".json")
        text.write_text(json.dumps(model))
        subprocess.run(["flatc", "-b", "-o", str(path.parent), str(SCHEMA), str(text)], check=True)
        return path


def small_network(path: Path, seed: int = 0) -> tuple[Path, list[np.ndarray]]:
    """Writes x [1, 5, 6, 3] -> convolution -> depthwise -> add of two branches -> mean -> product -> softmax. Returns
    the file and the weights in this order: w, b, depthwise w, matrix."""
    rng = np.random.default_rng(seed)
    w, b, d, m = (rng.standard_normal(shape).astype(np.float32) for shape in ((4, 3, 3, 3), (4,), (1, 3, 2, 8), (5, 8)))
    net = Model()
    x = net.tensor((1, 5, 6, 3))
    conv = {"padding": "SAME", "stride_w": 2, "stride_h": 2, "fused_activation_function": "RELU6"}
    y = net.add("CONV_2D", [x, net.constant(w), net.constant(b)], (1, 3, 3, 4), "Conv2DOptions", **conv)
    depthwise = {"padding": "SAME", "stride_w": 1, "stride_h": 1, "depth_multiplier": 2}
    z = net.add("DEPTHWISE_CONV_2D", [y, net.constant(d)], (1, 3, 3, 8), "DepthwiseConv2DOptions", **depthwise)
    both = net.add("CONCATENATION", [y, y], (1, 3, 3, 8), "ConcatenationOptions", axis=-1)
    total = net.add("ADD", [z, both], (1, 3, 3, 8), "AddOptions", fused_activation_function="RELU")
    axes = net.constant(np.array([1, 2], np.int32))
    mean = net.add("MEAN", [total, axes], (1, 8), "ReducerOptions", keep_dims=False)
    product = net.add("FULLY_CONNECTED", [mean, net.constant(m), -1], (1, 5), "FullyConnectedOptions")
    out = net.add("SOFTMAX", [product], (1, 5), "SoftmaxOptions", beta=0.5)
    return net.write(path, [x], [out, total]), [w, b, d, m]


if __name__ == "__main__":  # tflite_files.py FOLDER COUNT SEED: files with altered bytes, for fuzz_tflite_import
    folder, rng = Path(sys.argv[1]), np.random.default_rng(int(sys.argv[3]))
    folder.mkdir(parents=True, exist_ok=True)
    plain = small_network(folder / "plain.tflite")[0].read_bytes()
    (folder / "plain.json").unlink()
    for i in range(int(sys.argv[2])):
        data = bytearray(plain)
        for at in rng.integers(0, len(data), rng.integers(1, 6)):
            data[at] = rng.integers(256)
        (folder / f"{i}.tflite").write_bytes(data[: rng.integers(8, len(data))] if i % 5 == 0 else data)
