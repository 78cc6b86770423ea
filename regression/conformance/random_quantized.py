# SPDX-License-Identifier: Apache-2.0
"""Random small quantised networks: every instruction set, and every NPU with its host, gives the integers of the device
reference, bit by bit.

The networks consist of quantise/dequantise pairs with odd shapes, channel tails, arbitrary zero points, saturating
values, per-channel weights, float results, 16-bit activations and channel shuffles. Every third one has matmuls of two
activations (batched, broadcast, masked, einsum), which mostly sum floats. They use every mode of requantisation and run
on 1 and 2 threads. The float results of the Top reference may occasionally differ by a rounding; such differences are
counted and must stay rare.

    build/bin/tessera-python regression/conformance/random_quantized.py --seeds 0:500 [--isa x86-v2|npu-base] [--keep
    FOLDER]
"""
from __future__ import annotations

import functools
import random
import sys
import tempfile
from pathlib import Path
from typing import Callable, Iterator, Mapping, Sequence

import numpy as np
import onnx
import random_graphs
import seed_runner
import random_network
from epilogues import draw_epilogue, tie_scale
from engines import GPUS, Compiler, StageError, deploy, run_bmodel, supported_isas
from onnx import TensorProto, helper
from random_network import MAX_ELEMENTS, Shape, positions

from tessera import safetensors_io

# Share of outputs of a run whose float simulation may be off by more than one step: roundings amplified by later
# layers.
MAX_FAR = 0.02
# The last one uses everything that this machine has, such as other byte multiplications with VNNI.
VARIANTS = (*supported_isas(), "x86")
NPUS = ("npu-edge", "npu-base", "npu-pro")  # these only requantise in float
ELEMENTS = {
    np.int8: TensorProto.INT8,
    np.uint8: TensorProto.UINT8,
    np.int16: TensorProto.INT16,
    np.uint16: TensorProto.UINT16,
}
MakeNetwork = Callable[[int, "int | None"], "tuple[onnx.ModelProto, dict[str, np.ndarray]]"]
MODES = ("float", "float", "fixed", "tflite")  # of requantisation
WEIGHT_AXES = {"Conv": 0, "ConvTranspose": 1, "MatMul": -1, "Gemm": None}
MOVES = {
    "Concat",
    "Slice",
    "Split",
    "Transpose",
    "Reshape",
    "Pad",
    "Resize",
    "DepthToSpace",
    "SpaceToDepth",
    "MaxPool",
    "GlobalMaxPool",
    "Gather",
    "Relu",
    "Clip",
    "ReduceMax",
    "ReduceMin",
}


class QuantisedNetwork(random_network.Network):
    """A network whose every result is quantised and dequantised; `integers` are the quantised tensors of `values`. With
    `has_ties`, half of the scales are chosen so that a value lies at a tie."""

    epilogue_share = 0.4  # of the results that have an epilogue program

    def __init__(self, seed: int, has_ties: bool = False) -> None:
        super().__init__(seed)
        self.has_ties = has_ties
        self.tie_rng = random.Random(seed)  # a separate generator: the network is the same without ties
        self.parameters: dict[str, tuple[float, np.ndarray]] = {}  # scale and zero point by value
        self.integers: dict[str, str] = {}
        self.words = seed % 2 == 1  # half of the networks have 16-bit tensors, too

    def raw(self, op: str, inputs: Sequence[str], count: int = 1, **attributes: object) -> list[str]:
        outputs = [f"t{len(self.nodes)}_{i}" for i in range(count)]
        self.nodes.append(helper.make_node(op, list(inputs), outputs, name=f"n{len(self.nodes)}_{op}", **attributes))
        return outputs

    def draw_parameters(self) -> tuple[float, np.ndarray]:
        if self.words and self.rng.random() < 0.4:
            # Symmetric, or arbitrary if unsigned; the step is between 1 and 1/200 of the step of bytes.
            step = float(np.float32(10 ** self.rng.uniform(-4.5, -2.2)))
            if self.rng.random() < 0.4:
                return step, np.array(self.rng.choice([0, 32768, self.rng.randint(20000, 45000)]), np.uint16)
            return step, np.array(0, np.int16)
        low, high, dtype = self.rng.choice([(-128, 127, np.int8), (-128, 127, np.int8), (0, 255, np.uint8)])
        middle = (low + high + 1) // 2
        zero = self.rng.choice([0, middle, self.rng.randint(middle - 40, middle + 40), self.rng.randint(low, high)])
        scale = float(np.float32(10 ** self.rng.uniform(-2.2, -1.4)))
        return scale, np.array(np.clip(zero, low, high), dtype)

    def evaluate(self, value: str) -> np.ndarray:
        """Returns the device reference's floats of a tensor of the network so far."""
        needed, nodes = {value}, []
        for node in reversed(self.nodes):
            if needed.intersection(node.output):
                nodes.insert(0, node)
                needed.update(node.input)
        inputs = {name: array for name, array in self.inputs.items() if name in needed}
        graph = helper.make_graph(
            nodes,
            "tie",
            [helper.make_tensor_value_info(name, TensorProto.FLOAT, array.shape) for name, array in inputs.items()],
            [helper.make_tensor_value_info(value, TensorProto.FLOAT, None)],
            [tensor for tensor in self.initializers if tensor.name in needed],
        )
        compiler = seed_runner.compiler_of_process()
        with tempfile.TemporaryDirectory() as folder:
            path, mlir = Path(folder) / "model.onnx", Path(folder) / "model_top.mlir"
            path.write_bytes(random_network.model_of(graph).SerializeToString())
            compiler("import", "import", "--onnx", path, "--output", mlir)
            return reference(compiler, mlir, inputs, "--device")[value]

    def parameters_of(self, value: str) -> tuple[float, np.ndarray]:
        """Draws scale and zero point for a float tensor."""
        scale, zero = self.draw_parameters()
        if not self.has_ties or value in self.inputs or self.tie_rng.random() < 0.5:
            return scale, zero
        limits = np.iinfo(zero.dtype)
        low, high = (int(limit) - int(zero) for limit in (limits.min, limits.max))
        return tie_scale(self.evaluate(value), low, high, self.tie_rng) or scale, zero

    def quantise(self, value: str, shape: Shape, parameters: tuple[float, np.ndarray] | None = None) -> str:
        scale, zero = parameters or self.parameters_of(value)
        operands = [self.constant(np.array(scale, np.float32)), self.constant(zero)]
        integers = self.raw("QuantizeLinear", [value, *operands])[0]
        result = self.raw("DequantizeLinear", [integers, *operands])[0]
        self.values[result] = shape
        self.parameters[result] = (scale, zero)
        self.integers[result] = integers
        return result

    def add_input(self, shape: Shape) -> None:
        super().add_input(shape)
        name = f"x{len(self.inputs) - 1}"
        del self.values[name]
        self.quantise(name, shape)

    def quantise_weights(self, op: str, name: str, attributes: dict) -> tuple[str, np.ndarray]:
        """Adds a dequantised i8 constant instead of a float one; returns it with its scales."""
        tensor = next(t for t in self.initializers if t.name == name)
        array = onnx.numpy_helper.to_array(tensor)
        axis = WEIGHT_AXES[op] if op != "Gemm" else (0 if attributes.get("transB") else 1)
        axis = axis % array.ndim  # type: ignore[operator]
        others = tuple(i for i in range(array.ndim) if i != axis)
        per_channel = self.rng.random() < 0.6 and (op != "ConvTranspose" or attributes.get("group", 1) == 1)
        largest = np.abs(array).max(axis=others if per_channel else None)
        scale = np.maximum(largest / 127, 1e-6).astype(np.float32)
        shaped = scale.reshape([-1 if i == axis else 1 for i in range(array.ndim)]) if per_channel else scale
        integers = np.clip(np.rint(array / shaped), -127, 127).astype(np.int8)
        more = {"axis": axis} if per_channel else {}
        zeros = np.zeros(scale.shape, np.int8)
        if not per_channel and self.rng.random() < 0.3:
            # Unsigned; with a zero point other than 128, matmuls multiply floats.
            zero = 128 if op.startswith("Conv") else self.rng.choice([128, self.rng.randint(100, 150)])
            integers, zeros = np.clip(integers.astype(np.int16) + zero, 0, 255).astype(np.uint8), np.array(
                zero, np.uint8
            )
        operands = [self.constant(integers), self.constant(scale), self.constant(zeros)]
        return self.raw("DequantizeLinear", operands, **more)[0], scale

    def node(self, op: str, inputs: Sequence[str], shapes: Sequence[Shape], **attributes: object) -> list[str]:
        operands, constants = list(inputs), {t.name: t for t in self.initializers}
        if op in WEIGHT_AXES and operands[1] in constants:
            x = operands[0]
            operands[1], scales = self.quantise_weights(op, operands[1], attributes)
            if len(operands) > 2 and self.rng.random() < 0.4:
                # An integer bias with the accumulator's scale, as exporters write it.
                bias = onnx.numpy_helper.to_array(constants[operands[2]])
                scale = (np.float32(self.parameters[x][0]) * scales).astype(np.float32)
                integers = np.clip(np.rint(bias / scale), -(2.0**30), 2.0**30).astype(np.int32)
                more = {"axis": 0} if scale.ndim else {}
                operands[2] = self.raw(
                    "DequantizeLinear",
                    [self.constant(integers), self.constant(scale), self.constant(np.zeros(scale.shape, np.int32))],
                    **more,
                )[0]
        outputs = self.raw(op, operands, len(shapes), **attributes)
        if op in WEIGHT_AXES and inputs[1] in constants and self.rng.random() < 0.15:
            outputs = [self.second_term(op, inputs[0], constants[inputs[1]], outputs[0], attributes)]
        results = []
        for output, shape in zip(outputs, shapes):
            if self.rng.random() < self.epilogue_share:
                output = draw_epilogue(self, output, shape)
            same = op in MOVES and operands[0] in self.parameters and self.rng.random() < 0.6
            results.append(self.quantise(output, shape, self.parameters[operands[0]] if same else None))
        return results

    def second_term(self, op: str, x: str, weight: TensorProto, first: str, attributes: dict) -> str:
        """Applies the op to the same input with a small random residual of the weight, and adds the result to `first`:
        like the quantiser's weights in two terms, but with an i16 result that may saturate."""
        rest = onnx.numpy_helper.to_array(weight) * np.float32(self.rng.uniform(0.5, 2) / 254)
        name = self.constant(rest.astype(np.float32))
        second = self.raw(op, [x, self.quantise_weights(op, name, attributes)[0]], **attributes)[0]
        scale = np.array(10 ** self.rng.uniform(-7, -5), np.float32)
        operands = [self.constant(scale), self.constant(np.array(0, np.int16))]
        words = self.raw("QuantizeLinear", [second, *operands])[0]
        return self.raw("Add", [first, self.raw("DequantizeLinear", [words, *operands])[0]])[0]


def pool_windows(net: random_network.Network, op: str, x: str, **attributes: int) -> bool:
    n, c, h, w = net.values[x]
    k, stride, pad = net.rng.randint(2, 3), net.rng.randint(1, 2), net.rng.randint(0, 1)
    oh, ow = positions(h, k, stride, (pad, pad)), positions(w, k, stride, (pad, pad))
    if min(oh, ow) < 1:
        return False
    net.node(op, [x], [(n, c, oh, ow)], kernel_shape=[k, k], strides=[stride] * 2, pads=[pad] * 4, **attributes)
    return True


def max_pool(net: random_network.Network) -> bool:
    x = net.pick_image()
    if not x:
        return False
    if net.rng.random() < 0.2:
        net.node("GlobalMaxPool", [x], [(*net.values[x][:2], 1, 1)])
        return True
    return pool_windows(net, "MaxPool", x)


def mean(net: random_network.Network) -> bool:
    """Adds a mean that sums integers; a mean whose divisor depends on the position is computed in float and left
    out."""
    x = net.pick_image()
    if not x or net.rng.random() < 0.4:
        return random_graphs.reduce(net, ("ReduceMean", "ReduceMean", "ReduceMax", "ReduceMin"))
    if net.rng.random() < 0.4:
        net.node("GlobalAveragePool", [x], [(*net.values[x][:2], 1, 1)])
        return True
    return pool_windows(net, "AveragePool", x, count_include_pad=1)


def nearest(net: random_network.Network) -> bool:
    x = net.pick_image()
    if not x:
        return False
    n, c, h, w = net.values[x]
    target = (n, c, h * net.rng.randint(1, 3), w * net.rng.randint(1, 2))
    if np.prod(target) > MAX_ELEMENTS:
        return False
    net.node(
        "Resize",
        [x, "", "", net.ints(*target)],
        [target],
        mode="nearest",
        coordinate_transformation_mode=net.rng.choice(["asymmetric", "half_pixel"]),
    )
    return True


def in_float(net: QuantisedNetwork, x: str, shape: Shape) -> str:
    """Returns a float that is quantised nowhere, or the value of a quantised tensor unchanged."""
    kind = net.rng.choice(["", "", "Softmax", "Sigmoid", "LayerNormalization", "Mul"])
    if kind in ("Softmax", "LayerNormalization"):
        weights = [net.weights(shape[-1])] if kind == "LayerNormalization" else []
        return net.raw(kind, [x, *weights], axis=-1)[0]
    if kind == "Mul":
        return net.raw(kind, [x, net.weights(shape[-1], scale=0.4, offset=0.5)])[0]
    return net.raw(kind, [x])[0] if kind else x


def second_factor(net: QuantisedNetwork, left: Shape) -> tuple[str, Shape, bool] | None:
    """Returns a value whose next to last dim (with True, whose last dim) is the one over which `left` sums, and whose
    leading dims broadcast to those of `left`."""
    r, depth = net.rng, left[-1]
    fits = [
        (name, shape, turned)
        for name, shape in net.values.items()
        for turned in (False, True)
        if len(shape) >= 2
        and shape[-1 if turned else -2] == depth
        and len(shape) <= len(left)
        and all(d in (1, whole) for d, whole in zip(shape[:-2][::-1], left[:-2][::-1]))
    ]
    if fits and r.random() < 0.7:
        return r.choice(fits)
    # A value of any shape, cut and reshaped.
    x = net.pick(lambda s: int(np.prod(s)) >= depth)
    if not x:
        return None
    lead = tuple(d if r.random() < 0.6 else 1 for d in left[:-2])[r.choice([0, 0, len(left) - 2]) :]
    if int(np.prod(lead)) * depth > int(np.prod(net.values[x])):
        lead = ()
    columns = int(np.prod(net.values[x])) // (int(np.prod(lead)) * depth)
    columns = r.randint(1, min(columns, 40))
    flat = net.raw("Reshape", [x, net.ints(-1)])[0]
    part = net.raw("Slice", [flat, net.ints(0), net.ints(int(np.prod(lead)) * depth * columns), net.ints(0)])[0]
    return net.raw("Reshape", [part, net.ints(*lead, depth, columns)])[0], (*lead, depth, columns), False


def activation_product(net: QuantisedNetwork) -> bool:
    """Multiplies two tensors computed at run time, batched and broadcast, of rank 2 to 5; sometimes attention's two
    matmuls."""
    r = net.rng
    a = net.pick(lambda s: 2 <= len(s) <= 5)
    if not a:
        return False
    shape = net.values[a]
    if len(shape) < 5 and r.random() < 0.2:
        at = r.randrange(len(shape) - 1)
        shape = (*shape[:at], 1, *shape[at:])
        a = net.raw("Reshape", [a, net.ints(*shape)])[0]
    found = second_factor(net, shape)
    if not found:
        return False
    b, other, turned = found
    columns = other[-2] if turned else other[-1]
    result = (*shape[:-1], columns)
    if int(np.prod(result)) > MAX_ELEMENTS or int(np.prod(result)) * shape[-1] > 3_000_000:
        return False
    right = in_float(net, b, other)
    if turned:
        right = net.raw("Transpose", [right], perm=[*range(len(other) - 2), len(other) - 1, len(other) - 2])[0]
    y = net.raw("MatMul", [in_float(net, a, shape), right])[0]
    if r.random() < 0.4:
        y = net.raw("Mul", [y, net.constant(np.array(0.3, np.float32))])[0]
    if r.random() < 0.3:
        mask = r.choice([(columns,), (shape[-2], columns), (1,) * (len(result) - 1) + (columns,)])
        hidden = (net.array_rng.random(mask) < 0.2).astype(np.float32) * np.float32(-9)
        y = net.raw("Add", [y, net.constant(hidden)])[0]
    if r.random() < 0.5:
        y = net.raw("Softmax", [y], axis=-1)[0]
        values = second_factor(net, result)
        if values and not values[2] and r.random() < 0.7 and int(np.prod(result[:-1])) * values[1][-1] <= MAX_ELEMENTS:
            y, result = net.raw("MatMul", [y, values[0]])[0], (*result[:-1], values[1][-1])
    net.quantise(y, result)
    return True


def einsum(net: QuantisedNetwork) -> bool:
    """Multiplies two tensors with random letters: for batches, for sums, and for dims of only one tensor, some of which
    are summed, too."""
    r = net.rng
    a = net.pick(lambda s: 2 <= len(s) <= 4)
    if not a:
        return False
    shape = net.values[a]
    letters = {"abcd"[i]: size for i, size in enumerate(shape)}
    first = "".join(letters)
    shared = r.sample(first, r.randint(1, len(first)))
    count, own = int(np.prod([letters[c] for c in shared])), r.randint(0, 2)
    x = net.pick(lambda s: int(np.prod(s)) >= count)
    if not x:
        return False
    for c in "xy"[:own]:
        letters[c] = r.randint(1, max(1, min(9, int(np.prod(net.values[x])) // count)))
        count *= letters[c]
    if count > int(np.prod(net.values[x])):
        return False
    second = [*shared, *"xy"[:own]]
    r.shuffle(second)
    flat = net.raw("Reshape", [x, net.ints(-1)])[0]
    part = net.raw("Slice", [flat, net.ints(0), net.ints(count), net.ints(0)])[0]
    b = net.raw("Reshape", [part, net.ints(*(letters[c] for c in second))])[0]
    kept = [c for c in letters if r.random() < 0.75] or [first[0]]
    r.shuffle(kept)
    result = tuple(letters[c] for c in kept)
    if int(np.prod(list(letters.values()))) > 3_000_000 or int(np.prod(result)) > MAX_ELEMENTS:
        return False
    y = net.raw(
        "Einsum",
        [in_float(net, a, shape), in_float(net, b, tuple(letters[c] for c in second))],
        equation=f"{first},{''.join(second)}->{''.join(kept)}",
    )[0]
    net.quantise(y, result)
    return True


def shuffle_channels(net: QuantisedNetwork) -> bool:
    x = net.pick_image()
    if not x:
        return False
    n, c, h, w = net.values[x]
    groups = net.rng.choice([d for d in range(1, c + 1) if c % d == 0])
    split = net.raw("Reshape", [x, net.ints(n, groups, c // groups, h, w)])[0]
    turned = net.raw("Transpose", [split], perm=[0, 2, 1, 3, 4])[0]
    y = net.raw("Reshape", [turned, net.ints(n, c, h, w)])[0]
    net.quantise(y, (n, c, h, w), net.parameters.get(x) if net.rng.random() < 0.6 else None)
    return True


def volume(net: random_network.Network) -> bool:
    """Adds a convolution or a maximum over three spatial dims, also of an image whose channels become planes."""
    r = net.rng
    x = net.pick(lambda shape: len(shape) == 5) if r.random() < 0.6 else None
    if not x:
        image = net.pick_image()
        if not image:
            return False
        n, c, h, w = net.values[image]
        depth = r.choice([d for d in range(1, 9) if c % d == 0])
        x = net.node("Reshape", [image, net.ints(n, c // depth, depth, h, w)], [(n, c // depth, depth, h, w)])[0]
    n, c, *sizes = net.values[x]
    op = r.choice(["Conv", "Conv", "Conv", "MaxPool"])
    kernel = r.choice(
        [(1, 1, 1), (3, 3, 3), (3, 1, 1), (1, 3, 3), (2, 3, 1)] if op == "Conv" else [(2, 2, 2), (1, 2, 3), (3, 2, 2)]
    )
    strides = [r.choice([1, 1, 2]) for _ in kernel]
    dilations = [r.choice([1, 1, 2]) if op == "Conv" else 1 for _ in kernel]
    pads = [r.randint(0, k // 2) for k in kernel * 2]
    places = [
        positions(size, k, stride, (begin, end), dilation)
        for size, k, stride, begin, end, dilation in zip(
            sizes, kernel, strides, pads[:3], pads[3:], dilations, strict=True
        )
    ]
    group = r.choice([1, 1, c, r.choice([g for g in range(1, c + 1) if c % g == 0])])
    m = group * r.randint(1, max(1, 40 // group)) if op == "Conv" else c
    if min(places) < 1 or n * m * np.prod(places) > MAX_ELEMENTS:
        return False
    window = {"kernel_shape": list(kernel), "strides": strides, "pads": pads}
    if op == "MaxPool":
        net.node(op, [x], [(n, c, *places)], **window)
        return True
    weights = net.weights(m, c // group, *kernel, scale=(c // group * float(np.prod(kernel))) ** -0.5)
    net.node(op, [x, weights, net.weights(m)], [(n, m, *places)], dilations=dilations, group=group, **window)
    return True


def narrow_chain(net: QuantisedNetwork) -> bool:
    """Adds a chain of convolutions whose channels leave most lanes of an NPU idle, on images with many rows, so that it
    may use blocks of rows as channels. Windows have any stride and padding; the last result may be wide."""
    r = net.rng
    step = r.choice([16, 32, 64])
    shape = (r.choice([1, 1, 1, 2]), r.randint(1, 3), step * r.randint(64 // step, 256 // step), r.randint(8, 64))
    net.add_input(shape)
    x = next(reversed(net.values))
    for left in reversed(range(r.randint(1, 5))):
        n, c, h, w = net.values[x]
        kernel = [r.choice([1, 2, 3, 3, 3, 5]), r.choice([1, 3, 3])]
        strides = [r.choice([1, 2, 2, 2, 3]), r.choice([1, 2])]
        # Padding that keeps the number of rows a multiple of the stride, or any.
        before = r.randint(0, kernel[0] // 2)
        pads = [before, r.randint(0, kernel[1] // 2), max(0, kernel[0] - strides[0] - before), r.randint(0, 1)]
        pads[2] += r.choice([0, 0, 0, 0, 1])
        dilations = [1, r.choice([1, 1, 1, 2])]
        places = [
            positions(size, kernel[i], strides[i], (pads[i], pads[i + 2]), dilations[i]) for i, size in ((0, h), (1, w))
        ]
        m = r.randint(1, 8 if left else r.choice([2, 8, 40]))
        if min(places) < 1 or n * m * places[0] * places[1] > MAX_ELEMENTS:
            return True
        operands = [x, net.weights(m, c, *kernel, scale=(c * kernel[0] * kernel[1]) ** -0.5)]
        operands += [net.weights(m)] if r.random() < 0.7 else []
        window = {"kernel_shape": kernel, "strides": strides, "pads": pads, "dilations": dilations}
        x = net.node("Conv", operands, [(n, m, *places)], **window)[0]
    return True


g = random_graphs
OPS = (
    [g.conv] * 8
    + [g.binary] * 4
    + [g.unary] * 3
    + [g.concat] * 3
    + [g.matmul] * 3
    + [
        g.slice_,
        g.transpose,
        g.reshape,
        g.conv_transpose,
        g.conv_transpose,
        g.clip,
        g.swish,
        g.split,
        g.pad,
        g.depth_to_space,
        g.gemm,
        g.gather,
        g.binary_constant,
        max_pool,
        max_pool,
        mean,
        mean,
        mean,
        nearest,
        shuffle_channels,
    ]
)
PRODUCTS = [activation_product] * 8 + [einsum] * 3  # contractions of two activations, most of which sum floats


def make_network(
    seed: int, steps: int | None = None, has_ties: bool = True
) -> tuple[onnx.ModelProto, dict[str, np.ndarray]]:
    """Returns the network of a seed with its inputs; only its first `steps` steps if given."""
    net = QuantisedNetwork(seed, has_ties)
    ops = OPS + [volume] * 10 if seed % 4 == 2 else OPS  # only these networks have three spatial dims
    ops = ops + [narrow_chain] * 120 if seed % 5 == 3 else ops
    random_network.grow(net, ops + PRODUCTS if seed % 3 == 1 else ops, (1, 7), steps)
    # The integers themselves are compared.
    outputs = [
        (net.integers[name], ELEMENTS[net.parameters[name][1].dtype.type], net.values[name])
        for name in random_network.choose_outputs(net, seed, net.values)
    ]
    return random_network.finish(net, seed, outputs), net.inputs


def reference(
    compiler: Compiler, mlir: Path, inputs: Mapping[str, np.ndarray], *options: object
) -> dict[str, np.ndarray]:
    given, results = mlir.with_name("in.safetensors"), mlir.with_name("out.safetensors")
    safetensors_io.save(given, inputs)
    compiler("reference", "reference", "--mlir", mlir, "--input", given, "--output", results, *options)
    return safetensors_io.load(results)


def check(
    compiler: Compiler, seed: int, steps: int | None, isa: str, keep: Path | None, make: MakeNetwork = make_network
) -> tuple[int, int]:
    """Checks a network. Returns the number of compared elements, and of those whose float simulation is more than one
    step off. Nothing is compared if the compiler reports that bits of a node differ between engines, as for a
    convolution whose sums could exceed 32 bits."""
    model, inputs = make(seed, steps)
    with tempfile.TemporaryDirectory() as temporary:
        folder = keep or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        path, mlir, plain = folder / "model.onnx", folder / "model_top.mlir", folder / "plain_top.mlir"
        path.write_bytes(model.SerializeToString())
        compiler("import", "import", "--onnx", path, "--output", plain, "--no-optimise")
        simulated = reference(compiler, plain, inputs)
        compiler("import", "import", "--onnx", path, "--output", mlir)
        mode = "float" if isa in NPUS else random.Random(seed).choice(MODES)
        want = reference(compiler, mlir, inputs, "--device", "--requantize", mode)
        dumped = ("--dump-ir", str(keep / "ir")) if keep else ()
        got = run_bmodel(deploy(compiler, mlir, isa, "--requantize", mode, *dumped), inputs)
        if compiler.info["bit_equal_except"]:
            return 0, 0
    elements = far = 0
    for name, expected in want.items():
        if got[name].shape != expected.shape or got[name].dtype != expected.dtype:
            raise StageError(
                "compare",
                f"'{name}' is {got[name].dtype}{got[name].shape}, the reference " f"{expected.dtype}{expected.shape}",
            )
        wrong = np.argwhere(got[name] != expected)
        if len(wrong):
            worst = tuple(map(int, wrong[0]))
            raise StageError(
                "compare",
                f"'{name}' {expected.shape}: {len(wrong)} integers differ, first at {worst}: "
                f"{got[name][worst]}, reference {expected[worst]}",
            )
        elements += expected.size
        far += int((np.abs(simulated[name].astype(np.int32) - expected) > 1).sum())
    return elements, far


def run_seed(seed: int, isa: str, keep: Path | None = None, make: MakeNetwork = make_network) -> tuple[str, int, int]:
    """Returns the fault of the network that `make` builds for a seed (or ""), the number of elements compared, and the
    number of elements far from the simulation."""
    check_one = functools.partial(check, make=make)
    try:
        return ("", *check_one(seed_runner.compiler_of_process(), seed, None, isa, None))
    except StageError as fault:
        return seed_runner.shortest_fault(fault, check_one, make, seed, isa, keep), 0, 0


def run_seeds(
    seeds: Sequence[int],
    jobs: int,
    isa: str | None = None,
    keep: Path | None = None,
    variants: Sequence[str] = VARIANTS,
) -> Iterator[tuple[str, int, int]]:
    """Returns run_seed's results for many seeds. Without `isa` the variants alternate."""
    return seed_runner.map_seeds(run_seed, variants, seeds, jobs, isa, keep)


def main() -> int:
    arguments = seed_runner.parse_arguments(__doc__, (*VARIANTS, *NPUS, *GPUS))
    faults = elements = far = 0
    for fault, compared, off in run_seeds(arguments.seeds, arguments.jobs, arguments.isa, arguments.keep):
        if fault:
            print(fault, flush=True)
        faults, elements, far = faults + bool(fault), elements + compared, far + off
    nodes = seed_runner.count_operators(functools.partial(make_network, has_ties=False), arguments.seeds)
    print(
        f"{faults} of {len(arguments.seeds)} networks fail; {elements} elements equal, {far} of them more than one "
        f"step from the float simulation; nodes: {nodes}"
    )
    return 1 if faults or far > MAX_FAR * elements else 0


if __name__ == "__main__":
    sys.exit(main())
