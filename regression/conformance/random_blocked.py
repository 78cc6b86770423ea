# SPDX-License-Identifier: Apache-2.0
"""Random convolutional networks as onnxruntime saves them with all optimisations, in its blocked layout
(com.microsoft.nchwc), against onnxruntime.

    build/bin/tessera-python regression/conformance/random_blocked.py [--seeds 0:300] [--chips x86,npu-base]

A case passes if the reference and the compiled code of each chip give what onnxruntime gives for the network before its
optimisation. Prints a line for each case that does not pass, and how often each blocked operator occurred.
"""
from __future__ import annotations

import argparse
import collections
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Sequence

import numpy as np
import onnx
from contrib_case import Rng, floats, maybe, pick
from engines import Compiler, StageError, deploy, run_bmodel, run_reference
from onnx import TensorProto, helper, numpy_helper

DOMAIN = "com.microsoft.nchwc"
CHANNELS = (1, 3, 4, 5, 8, 12, 16, 17, 20, 24, 32, 40, 48, 64)  # multiples of 8 and 16, and others
TOLERANCE = 3e-4  # of the largest value


@dataclass
class Tensor:
    name: str
    channels: int
    height: int
    width: int


@dataclass
class Network:
    """A network under construction. Each method adds layers and returns their result."""

    rng: Rng
    nodes: list[onnx.NodeProto] = field(default_factory=list)
    weights: list[TensorProto] = field(default_factory=list)

    def node(self, op: str, inputs: Sequence[str], **attributes: Any) -> str:
        name = f"t{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, inputs, [name], **attributes))
        return name

    def weight(self, array: np.ndarray) -> str:
        name = f"w{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(array, name))
        return name

    def window(self, x: Tensor, kernel: int, stride: int) -> tuple[list[int], int, int]:
        """Draws pads with which the result is not empty; returns them and the size of the result."""
        pads = [int(self.rng.integers(0, kernel // 2 + 1)) for _ in range(4)]
        if min(x.height, x.width) < kernel:
            pads = [kernel // 2] * 4
        height = (x.height + pads[0] + pads[2] - kernel) // stride + 1
        width = (x.width + pads[1] + pads[3] - kernel) // stride + 1
        return pads, height, width

    def conv(self, x: Tensor, channels: int | None = None, kernel: int | None = None, same: bool = False) -> Tensor:
        rng = self.rng
        channels, kernel = channels or pick(rng, *CHANNELS), kernel or pick(rng, 1, 3, 3, 5)
        stride = 1 if same else pick(rng, 1, 1, 2)
        groups = [1, 1, 1, x.channels] + [2] * (x.channels % 2 == 0)
        group = 1 if same else pick(rng, *groups)
        if group > 1:
            channels = group * pick(rng, 1, 1, 2) if group == x.channels else 2 * max(channels // 2, 1)
        pads, height, width = self.window(x, kernel, stride)
        if same:
            pads, height, width = [kernel // 2] * 4, x.height, x.width
        fan_in = x.channels // group * kernel * kernel
        inputs = [x.name, self.weight(floats(rng, channels, x.channels // group, kernel, kernel) / np.sqrt(fan_in))]
        if maybe(rng, 0.6):
            inputs.append(self.weight(floats(rng, channels)))
        y = self.node("Conv", inputs, strides=[stride] * 2, pads=pads, group=group, kernel_shape=[kernel] * 2)
        return Tensor(y, channels, height, width)

    def normalised(self, x: Tensor) -> Tensor:
        parts = [floats(self.rng, x.channels) for _ in range(3)] + [np.abs(floats(self.rng, x.channels)) + 0.5]
        return Tensor(self.node("BatchNormalization", [x.name, *map(self.weight, parts)]), *self.size(x))

    def activated(self, x: Tensor) -> Tensor:
        kind = pick(self.rng, "", "", "Relu", "Relu", "Sigmoid", "Tanh", "LeakyRelu", "Clip", "HardSigmoid", "silu")
        if not kind:
            return x
        if kind == "silu":
            name = self.node("Mul", [x.name, self.node("Sigmoid", [x.name])])
        elif kind == "Clip":
            name = self.node("Clip", [x.name, self.weight(np.float32(-0.5)), self.weight(np.float32(1.5))])
        else:
            alpha = {"LeakyRelu": {"alpha": 0.1}, "HardSigmoid": {"alpha": 0.3, "beta": 0.4}}.get(kind, {})
            name = self.node(kind, [x.name], **alpha)
        return Tensor(name, *self.size(x))

    def pooled(self, x: Tensor) -> Tensor:
        kernel, stride = pick(self.rng, 2, 3), pick(self.rng, 1, 2)
        pads, height, width = self.window(x, kernel, stride)
        pads = [min(pad, kernel - 1) for pad in pads]
        shape = {"kernel_shape": [kernel] * 2, "strides": [stride] * 2, "pads": pads}
        if maybe(self.rng):
            return Tensor(self.node("MaxPool", [x.name], **shape), x.channels, height, width)
        include = {"count_include_pad": int(maybe(self.rng))}
        return Tensor(self.node("AveragePool", [x.name], **shape, **include), x.channels, height, width)

    def added(self, x: Tensor) -> Tensor:
        """Adds a residual: of the input, or of a second convolution."""
        y = self.conv(x, x.channels if maybe(self.rng) else None, same=True)
        other = x if y.channels == x.channels and maybe(self.rng) else self.conv(x, y.channels, 1, same=True)
        names = [y.name, other.name] if maybe(self.rng) else [other.name, y.name]
        return self.activated(Tensor(self.node("Add", names), *self.size(y)))

    def joined(self, x: Tensor) -> Tensor:
        parts = [self.activated(self.conv(x, same=True)) for _ in range(int(self.rng.integers(2, 4)))]
        name = self.node("Concat", [part.name for part in parts], axis=1)
        return Tensor(name, sum(part.channels for part in parts), x.height, x.width)

    def enlarged(self, x: Tensor) -> Tensor:
        nearest = {"coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
        mode = pick(
            self.rng, nearest, {"mode": "linear"}, {"mode": "linear", "coordinate_transformation_mode": "asymmetric"}
        )
        scales = self.weight(np.float32([1, 1, 2, 2]))
        return Tensor(self.node("Resize", [x.name, "", scales], **mode), x.channels, 2 * x.height, 2 * x.width)

    def averaged(self, x: Tensor) -> Tensor:
        op = pick(self.rng, "GlobalAveragePool", "GlobalMaxPool")
        return Tensor(self.node(op, [x.name]), x.channels, 1, 1)

    @staticmethod
    def size(x: Tensor) -> tuple[int, int, int]:
        return x.channels, x.height, x.width

    def layer(self, x: Tensor) -> Tensor:
        choices = [self.pooled, self.added, self.joined, self.enlarged] if min(x.height, x.width) > 2 else [self.added]
        if max(x.height, x.width) > 24:
            choices.remove(self.enlarged)
        if maybe(self.rng, 0.5):
            y = self.conv(x)
            return self.activated(self.normalised(y) if maybe(self.rng, 0.2) else y)
        return pick(self.rng, *choices)(x)


def draw(seed: int) -> tuple[onnx.ModelProto, np.ndarray]:
    """Returns a network and its input."""
    rng = np.random.default_rng(seed)
    network = Network(rng)
    x = Tensor("x", pick(rng, 1, 3, 4, 16, 20, 32), int(rng.integers(5, 18)), int(rng.integers(5, 18)))
    data = floats(rng, pick(rng, 1, 1, 2), *network.size(x))
    y, outputs = x, []
    for _ in range(int(rng.integers(2, 7))):
        y = network.layer(y)
        if maybe(rng, 0.2):
            outputs.append(y.name)
    last = network.averaged(y) if maybe(rng, 0.3) else network.conv(y)
    outputs.append(last.name)
    graph = helper.make_graph(
        network.nodes,
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, data.shape)],
        [onnx.ValueInfoProto(name=name) for name in dict.fromkeys(outputs)],
        network.weights,
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), data


def optimise(model: onnx.ModelProto, data: np.ndarray, path: Path) -> dict[str, np.ndarray]:
    """Saves the model with all optimisations of onnxruntime. Returns the outputs of the model as it is."""
    import onnxruntime as ort

    def session(level: Any, file: Path | None) -> Any:
        options = ort.SessionOptions()
        options.log_severity_level = 4
        options.intra_op_num_threads = 1
        options.graph_optimization_level = level
        if file:
            options.optimized_model_filepath = str(file)
        return ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])

    session(ort.GraphOptimizationLevel.ORT_ENABLE_ALL, path)
    plain = session(ort.GraphOptimizationLevel.ORT_DISABLE_ALL, None)
    return dict(zip([output.name for output in plain.get_outputs()], plain.run(None, {"x": data})))


def difference(got: np.ndarray | None, want: np.ndarray) -> str:
    if got is None or got.shape != want.shape:
        return f"{None if got is None else got.shape} in place of {want.shape}"
    error = np.abs(got - want)
    if np.all(error <= TOLERANCE * max(float(np.abs(want).max()), 1e-3)):
        return ""
    worst = int(np.nan_to_num(error, nan=np.inf).argmax())
    return f"element {worst} is {got.ravel()[worst]}, expected {want.ravel()[worst]}"


def run_case(compiler: Compiler, seed: int, chips: Sequence[str]) -> tuple[str, collections.Counter]:
    """Runs a case; returns what is wrong, or "", and the blocked operators of its file."""
    model, data = draw(seed)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        wanted = optimise(model, data, folder / "m.onnx")
        saved = onnx.load(str(folder / "m.onnx"))
        kinds = collections.Counter(node.op_type for node in saved.graph.node if node.domain == DOMAIN)
        try:
            compiler("import", "import", "--onnx", folder / "m.onnx", "--output", folder / "m_top.mlir")
            for chip in ("reference", *chips):
                if chip == "reference":
                    found = run_reference(compiler, folder / "m_top.mlir", {"x": data})
                else:
                    found = run_bmodel(deploy(compiler, folder / "m_top.mlir", chip), {"x": data})
                for output, want in wanted.items():
                    if problem := difference(found.get(output), want):
                        return f"{chip}: output {output}: {problem}", kinds
        except StageError as error:
            return f"{error.stage}: {error}", kinds
    return "", kinds


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", default="0:300")
    parser.add_argument("--chips", default="x86,npu-base")
    arguments = parser.parse_args()
    first, last = (int(value) for value in arguments.seeds.split(":"))
    compiler, kinds, wrong = Compiler(), collections.Counter(), 0
    for seed in range(first, last):
        problem, own = run_case(compiler, seed, arguments.chips.split(","))
        kinds += own
        if problem:
            wrong += 1
            print(f"{seed}: {problem}", flush=True)
    print(f"{last - first} cases, {wrong} wrong; " + ", ".join(f"{op} {count}" for op, count in kinds.most_common()))
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
