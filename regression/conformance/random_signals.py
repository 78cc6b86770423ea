# SPDX-License-Identifier: Apache-2.0
"""Random networks of signals and volumes, [batch, channels, time] and [batch, channels, depth, height, width], whose
batch and extents are known at run time: one compile, then runs at several sizes as in random_sizes.py.

    build/bin/tessera-python regression/conformance/random_signals.py --seeds 0:500 [--isa x86-v2] [--keep FOLDER]

Networks of signals are like encoders and vocoders: convolutions of any stride, dilation and group, also transposed,
gates of two halves, causal pads, pools, norms over channels, means over time, and frames that are cut or joined.
"""
from __future__ import annotations

import sys
from pathlib import Path
from typing import Callable, Sequence

import numpy as np
import onnx
import seed_runner
import random_network
import random_sizes
from engines import Compiler, StageError
from onnx import TensorProto
from open_networks import OpenNetwork
from random_network import Network, Shape

MODES = ("F32", "INT8", "BF16", "F32", "INT16", "F16", "INT8", "DYNAMIC_INT8", "W8")  # by seed
Step = Callable[[Network, str], "str | None"]


def result_size(size: int, kernel: int, stride: int, dilation: int, pads: Sequence[int]) -> int:
    return (size + sum(pads) - ((kernel - 1) * dilation + 1)) // stride + 1


def conv(net: Network, x: str) -> str | None:
    r, (n, c, *extents) = net.rng, net.values[x]
    rank = len(extents)
    kernels = [r.choice([1, 2, 3, 5, 7] if rank == 1 else [1, 2, 3]) for _ in extents]
    stride, dilation = r.choice([1, 1, 1, 2, 3]), r.choice([1, 1, 2, 4] if rank == 1 else [1, 1, 2])
    group = r.choice([1, 1, 1, c, r.choice([g for g in range(1, c + 1) if c % g == 0])])
    m = group * r.randint(1, max(1, 40 // group))
    pads = [r.randint(0, k * dilation // 2 + 1) for k in (*kernels, *kernels)]
    if rank == 1 and r.random() < 0.3:
        pads = [(kernels[0] - 1) * dilation, 0]  # causal
    y = [result_size(s, kernels[i], stride, dilation, (pads[i], pads[i + rank])) for i, s in enumerate(extents)]
    if min(y) < 1:
        return None
    weights = net.weights(m, c // group, *kernels, scale=float(c // group * np.prod(kernels)) ** -0.5)
    operands = [x, weights, *([net.weights(m)] if r.random() < 0.7 else [])]
    attributes = {"strides": [stride] * rank, "dilations": [dilation] * rank, "pads": pads, "group": group}
    return net.node("Conv", operands, [(n, m, *y)], **attributes)[0]


def conv_transpose(net: Network, x: str) -> str | None:
    r, (n, c, *extents) = net.rng, net.values[x]
    if len(extents) > 1:
        return None
    stride = r.choice([1, 2, 2, 4, 5])
    kernel = stride * r.choice([1, 2]) if r.random() < 0.7 else r.randint(stride, stride + 3)
    pads = [r.randint(0, (kernel - 1) // 2) for _ in range(2)]
    size = stride * (extents[0] - 1) + kernel - sum(pads)
    if size < 1 or size > 300:
        return None
    m = r.randint(1, 24)
    weights = net.weights(c, m, kernel, scale=(c * kernel) ** -0.5)
    return net.node("ConvTranspose", [x, weights, net.weights(m)], [(n, m, size)], strides=[stride], pads=pads)[0]


def gate(net: Network, x: str) -> str | None:
    """Adds tanh(a) * sigmoid(b) of the halves of the channels."""
    n, c, *extents = net.values[x]
    if c % 2:
        return None
    half = (n, c // 2, *extents)
    a, b = net.node("Split", [x, net.ints(c // 2, c // 2)], [half, half], axis=1)
    left, right = net.node("Tanh", [a], [half])[0], net.node("Sigmoid", [b], [half])[0]
    return net.node("Mul", [left, right], [half])[0]


def pool(net: Network, x: str) -> str | None:
    r, (n, c, *extents) = net.rng, net.values[x]
    kernel, stride = r.randint(2, 3), r.randint(1, 2)
    y = [result_size(size, kernel, stride, 1, (0, 0)) for size in extents]
    if min(y) < 1:
        return None
    attributes = {"kernel_shape": [kernel] * len(y), "strides": [stride] * len(y)}
    return net.node(r.choice(["MaxPool", "AveragePool"]), [x], [(n, c, *y)], **attributes)[0]


def norm(net: Network, x: str) -> str | None:
    """Adds a layer norm over the channels, or an instance norm over the extents."""
    shape = net.values[x]
    scale, bias = net.weights(shape[1], scale=0.3, offset=1.0), net.weights(shape[1], scale=0.3)
    if net.rng.random() < 0.4:
        return net.node("InstanceNormalization", [x, scale, bias], [shape])[0]
    order = [0, *range(2, len(shape)), 1]
    last = tuple(shape[axis] for axis in order)
    (y,) = net.node("Transpose", [x], [last], perm=order)
    (y,) = net.node("LayerNormalization", [y, scale, bias], [last], axis=-1)
    return net.node("Transpose", [y], [shape], perm=[0, len(shape) - 1, *range(1, len(shape) - 1)])[0]


def unary(net: Network, x: str) -> str:
    kind = net.rng.choice(["Relu", "LeakyRelu", "Tanh", "Sigmoid", "Softplus", "Elu"])
    return net.node(kind, [x], [net.values[x]])[0]


def residual(net: Network, x: str) -> str | None:
    """Adds an earlier value of the same sizes, or a mean over the extents."""
    shape = net.values[x]
    if net.rng.random() < 0.4:
        (mean,) = net.node("GlobalAveragePool", [x], [(*shape[:2], *[1] * (len(shape) - 2))])
        return net.node("Mul", [x, mean], [shape])[0]
    other = net.pick(lambda each: each == shape)
    return net.node("Add", [x, str(other)], [shape])[0]


def crop(net: Network, x: str) -> str | None:
    """Cuts elements off the end, or off the beginning."""
    shape = net.values[x]
    cut = net.rng.randint(1, 3)
    if shape[-1] <= cut + 1:
        return None
    ends = (0, -cut) if net.rng.random() < 0.5 else (cut, 2**40)
    operands = [x, *(net.ints(end) for end in ends), net.ints(-1)]
    return net.node("Slice", operands, [(*shape[:-1], shape[-1] - cut)])[0]


def pad(net: Network, x: str) -> str | None:
    shape, r = net.values[x], net.rng
    begin, end = r.randint(0, 2), r.randint(0, 2)
    if shape[-1] < 3:
        return None
    zeros = [0] * (len(shape) - 1)
    mode = r.choice(["constant", "reflect", "edge"])
    return net.node(
        "Pad", [x, net.ints(*zeros, begin, *zeros, end)], [(*shape[:-1], shape[-1] + begin + end)], mode=mode
    )[0]


def join(net: Network, x: str) -> str:
    """Joins a value and its negation, along time or channels."""
    shape, axis = net.values[x], net.rng.choice([1, len(net.values[x]) - 1])
    (negated,) = net.node("Neg", [x], [shape])
    joined = tuple(2 * size if i == axis else size for i, size in enumerate(shape))
    return net.node("Concat", [x, negated], [joined], axis=axis)[0]


def softmax(net: Network, x: str) -> str:
    return net.node("Softmax", [x], [net.values[x]], axis=net.rng.choice([1, -1]))[0]


STEPS: tuple[Step, ...] = (
    *[conv] * 5, conv_transpose, conv_transpose, gate, pool, norm, unary, unary, residual, crop, pad, join, softmax
)  # fmt: skip


def make_network(seed: int) -> tuple[onnx.ModelProto, dict[str, np.ndarray]]:
    net = Network(seed)
    r = net.rng
    shape: Shape = (r.choice([1, 1, 2]), r.randint(1, 33), r.randint(4, 40))
    if seed % 5 == 4:
        shape = (shape[0], r.randint(1, 17), *(r.randint(2, 7) for _ in range(3)))
    net.add_input(shape)
    value, outputs = "x0", []
    for _ in range(r.randint(2, 8)):
        result = r.choice(STEPS)(net, value)
        if result and int(np.prod(net.values[result])) <= random_network.MAX_ELEMENTS:
            value = result
            outputs += [value] if r.random() < 0.15 else []
    if value == "x0":
        value = unary(net, value)
    read = {name for node in net.nodes for name in node.input}
    outputs += [name for node in net.nodes for name in node.output if name not in read]
    ports = [(name, TensorProto.FLOAT, net.values[name]) for name in dict.fromkeys(outputs)]
    return random_network.finish(net, seed, ports), net.inputs


def check(compiler: Compiler, seed: int, isa: str, folder: Path) -> None:
    network = OpenNetwork(*make_network(seed), seed)
    if not network.symbols:
        raise StageError(random_sizes.REJECTED, "no open dim")
    random_sizes.check_network(random_sizes.Network(compiler, seed, isa, folder, MODES[seed % len(MODES)], network))


def run_seed(seed: int, isa: str, keep: Path | None = None) -> str:
    """Returns the fault of the network of a seed, or ""."""
    fault = seed_runner.run_in_folder(check, "signals", seed, isa, keep)
    return fault and f"{MODES[seed % len(MODES)]} on {isa}, {fault}"


def run_seeds(
    seeds: Sequence[int], jobs: int, isa: str | None = None, keep: Path | None = None
) -> tuple[list[str], int]:
    """Returns the faults of many seeds, and how many networks were rejected."""
    return random_sizes.faults_of(run_seed, seeds, jobs, isa, keep)


if __name__ == "__main__":
    sys.exit(random_sizes.main(__doc__, run_seeds))
