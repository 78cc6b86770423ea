# SPDX-License-Identifier: Apache-2.0
"""Writes small .tflite files with flatc and the importer's schema."""
from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any, Sequence

import numpy as np

SCHEMA = Path(__file__).resolve().parents[2] / "top_dialect/Import/Tflite/tflite.fbs"
TYPES = {name: name.upper() for name in ("float32", "float16", "int8", "uint8", "int16", "int32", "int64", "bool")}
CODES = SCHEMA.read_text().split("enum BuiltinOperator")[1].split("}")[0]
NUMBERS = {name: int(number) for name, number in re.findall(r"(\w+) = (\d+)", CODES)}


def quantisation(scales: Sequence[float], zeros: Sequence[int], axis: int = 0) -> dict[str, Any]:
    """Returns the field of a tensor whose integers q stand for scale (q - zero)."""
    return {"scale": list(map(float, scales)), "zero_point": list(map(int, zeros)), "quantized_dimension": axis}


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

    def constant(self, array: np.ndarray, **more: Any) -> int:
        self.buffers.append({"data": list(array.tobytes())})
        return self.tensor(array.shape, str(array.dtype), buffer=len(self.buffers) - 1, **more)

    def add(self, code: str, inputs: list[int], shape: tuple[int, ...], options: str = "", **values: Any) -> int:
        """Adds an operator and returns its output, of floats."""
        out = self.tensor(shape)
        self.operator(code, inputs, [out], options, **values)
        return out

    def operator(self, code: str, inputs: list[int], outputs: list[int], options: str = "", **values: Any) -> None:
        """Adds an operator that computes existing tensors."""
        # Readers take the larger one of two fields for the code; older ones have only the first.
        number = NUMBERS.get(code, 0)
        self.codes.append({"builtin_code": code, "deprecated_builtin_code": min(number, 127), "version": 1})
        if code == "CUSTOM":
            self.codes[-1]["custom_code"] = values.pop("custom_code", "Mystery")
        op: dict[str, Any] = {"opcode_index": len(self.codes) - 1, "inputs": inputs, "outputs": outputs}
        if "custom_options" in values:
            op["custom_options"] = list(values.pop("custom_options"))
        if options:
            op |= {"builtin_options_type": options, "builtin_options": values}
        self.operators.append(op)

    def write(self, path: Path, inputs: list[int], outputs: list[int]) -> Path:
        graph = {"tensors": self.tensors, "inputs": inputs, "outputs": outputs, "operators": self.operators}
        model = {"version": self.version, "operator_codes": self.codes, "subgraphs": [graph], "buffers": self.buffers}
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


def quantised_network(path: Path) -> tuple[Path, np.ndarray, np.ndarray]:
    """Writes x [1, 1, 3, 1] -> convolution -> addition -> x 2; returns the file, an input and the result.

    The convolution multiplies x - 1 by the weight 3 and adds the bias -2, in units of 0.5 * 0.25 = 0.125, and its
    result has steps of 0.5: q = round((3 (x - 1) - 2) / 4) - 4, where halves go away from zero. The sum with itself has
    steps of 1, so that q stays the distance from the zero point, which is 10 now. RELU6 limits it to 10 .. 16."""
    net = Model()
    x = net.tensor((1, 1, 3, 1), "int8", quantization=quantisation([0.5], [1]))
    w = net.constant(np.array([[[[3]]]], np.int8), quantization=quantisation([0.25], [0]))
    bias = net.constant(np.array([-2], np.int32), quantization=quantisation([0.125], [0]))
    y = net.tensor((1, 1, 3, 1), "int8", quantization=quantisation([0.5], [-4]))
    window = {"padding": "SAME", "stride_w": 1, "stride_h": 1}
    net.operator("CONV_2D", [x, w, bias], [y], "Conv2DOptions", **window)
    z = net.tensor((1, 1, 3, 1), "int8", quantization=quantisation([1.0], [10]))
    net.operator("ADD", [y, y], [z], "AddOptions", fused_activation_function="RELU6")
    given = np.array([5, -3, 127], np.int8).reshape(1, 1, 3, 1)
    # (10 / 4, -14 / 4, 376 / 4) are 2.5, -3.5 and 94.
    return net.write(path, [x], [z]), given, np.array([13, 10, 16], np.int8).reshape(1, 1, 3, 1)


def flexbuffer(values: dict[str, Any], folder: Path) -> bytes:
    """Returns a map in the format of custom options, as flatc writes it."""
    text = folder / "options.json"
    text.write_text(json.dumps(values))
    subprocess.run(["flatc", "--flexbuffers", "-b", "-o", str(folder), str(text)], check=True)
    return (folder / "options.bin").read_bytes()


def detection(path: Path, regular: bool, damaged: bool = False, **more: Any) -> tuple[Path, dict[str, np.ndarray]]:
    """Writes a detection post-processing of three boxes and two classes; returns the file and an input."""
    options = {"max_detections": 4, "max_classes_per_detection": 1, "detections_per_class": 4, "num_classes": 2}
    options |= {"use_regular_nms": regular, "nms_score_threshold": 0.3, "nms_iou_threshold": 0.5}
    options |= {"y_scale": 10.0, "x_scale": 10.0, "h_scale": 5.0, "w_scale": 5.0, **more}
    net = Model()
    boxes, scores = net.tensor((1, 3, 4)), net.tensor((1, 3, 3))
    anchors = net.constant(np.array([[0.5, 0.5, 1, 1], [0.5, 0.5, 1, 1], [5.5, 5.5, 1, 1]], np.float32))
    results = [net.tensor(shape) for shape in ((1, 4, 4), (1, 4), (1, 4), (1,))]
    custom = flexbuffer(options, path.parent)
    net.operator(
        "CUSTOM",
        [boxes, scores, anchors],
        results,
        custom_code="TFLite_Detection_PostProcess",
        custom_options=custom[:-4] if damaged else custom,
    )
    encoded = np.zeros((1, 3, 4), np.float32)
    encoded[0, 1, 1] = 1  # moves the second box by a tenth
    given = np.array([[[0, 0.8, 0.1], [0, 0.2, 0.9], [0, 0.1, 0.6]]], np.float32)
    return net.write(path, [boxes, scores], results), {"t0": encoded, "t1": given}


if __name__ == "__main__":  # tflite_files.py FOLDER COUNT SEED: files with altered bytes, for fuzz_tflite_import
    folder, rng = Path(sys.argv[1]), np.random.default_rng(int(sys.argv[3]))
    folder.mkdir(parents=True, exist_ok=True)
    quantised_network(folder / "quantised.tflite")
    detection(folder / "detection.tflite", True)
    small_network(folder / "plain.tflite")
    plain = [path.read_bytes() for path in sorted(folder.glob("*.tflite"))]
    for path in (*folder.glob("*.json"), folder / "options.bin"):
        path.unlink()
    for i in range(int(sys.argv[2])):
        data = bytearray(plain[i % len(plain)])
        for at in rng.integers(0, len(data), rng.integers(1, 6)):
            data[at] = rng.integers(256)
        (folder / f"{i}.tflite").write_bytes(data[: rng.integers(8, len(data))] if i % 5 == 0 else data)
