# SPDX-License-Identifier: Apache-2.0
"""Random small networks with awkward shapes: x86 code against the Top reference, on 1 and 2 threads. They cover fusion,
layouts, copies that become views, and memory planning, which no single-operator case reaches.

    build/bin/tessera-python regression/conformance/random_graphs.py --seeds 0:500 [--isa x86-v2] [--keep FOLDER]

A seed gives the same network everywhere. For a failing network, the shortest failing prefix is reported.
"""
from __future__ import annotations

import random
import sys
import tempfile
from pathlib import Path
from typing import Iterator, Sequence

import numpy as np
import onnx
from engines import Compiler, StageError, deploy, run_bmodel, run_reference, supported_isas
from onnx import TensorProto
from random_network import MAX_ELEMENTS, Network, Shape, choose_outputs, finish, grow, positions
from seed_runner import compiler_of_process, count_operators, map_seeds, parse_arguments, shortest_fault

TOLERANCE = 2e-4  # of the largest absolute value of an output: sums are re-associated, exponentials approximated


def conv(net: Network) -> bool:
    x = net.pick_image()
    if not x:
        return False
    n, c, h, w = net.values[x]
    r = net.rng
    kh, kw = r.choice([(1, 1), (1, 1), (3, 3), (3, 3), (5, 5), (1, 3), (4, 2)])
    stride, dilation = r.choice([1, 1, 2, 3]), r.choice([1, 1, 1, 2])
    pads = [r.randint(0, k // 2 + 1) for k in (kh, kw, kh, kw)]
    oh = positions(h, kh, stride, (pads[0], pads[2]), dilation)
    ow = positions(w, kw, stride, (pads[1], pads[3]), dilation)
    group = r.choice([1, 1, c, r.choice([g for g in range(1, c + 1) if c % g == 0])])
    m = group * r.randint(1, max(1, 67 // group))
    if min(oh, ow) < 1 or n * m * oh * ow > MAX_ELEMENTS:
        return False
    operands = [x, net.weights(m, c // group, kh, kw, scale=(c // group * kh * kw) ** -0.5)]
    operands += [net.weights(m)] if r.random() < 0.6 else []
    net.node("Conv", operands, [(n, m, oh, ow)], strides=[stride] * 2, pads=pads, dilations=[dilation] * 2, group=group)
    return True


def far_conv(net: Network) -> bool:
    """Adds a convolution dilated so far that some or all of its outer taps only see padding."""
    x = net.pick_image()
    if not x:
        return False
    n, c, h, w = net.values[x]
    r = net.rng
    dilation, stride, m = r.randint(2, 14), r.choice([1, 1, 2]), r.randint(1, 40)
    pads = [max(0, dilation + r.choice([0, 0, -2, -1, 1])) for _ in range(4)]
    oh, ow = (positions(s, 3, stride, (pads[i], pads[i + 2]), dilation) for i, s in enumerate((h, w)))
    if min(oh, ow) < 1 or n * m * oh * ow > MAX_ELEMENTS:
        return False
    operands = [x, net.weights(m, c, 3, 3, scale=(9 * c) ** -0.5), net.weights(m)]
    net.node("Conv", operands, [(n, m, oh, ow)], strides=[stride] * 2, pads=pads, dilations=[dilation] * 2)
    return True


def open_conv(net: Network) -> bool:
    """Adds a convolution whose weights, and sometimes its bias, are not constant."""
    x = net.pick_image()
    if not x:
        return False
    n, c, h, w = net.values[x]
    r = net.rng
    kh, kw = r.choice([(1, 1), (1, 1), (3, 3), (1, 3), (4, 2)])
    stride, dilation = r.choice([1, 1, 2]), r.choice([1, 1, 2])
    pads = [r.randint(0, k // 2 + 1) for k in (kh, kw, kh, kw)]
    oh, ow = (positions(s, k, stride, (pads[i], pads[i + 2]), dilation) for i, (s, k) in enumerate(((h, kh), (w, kw))))
    group = r.choice([1, 1, c, r.choice([g for g in range(1, c + 1) if c % g == 0])])
    m = group * r.randint(1, max(1, 40 // group))
    if min(oh, ow) < 1 or n * m * oh * ow > MAX_ELEMENTS:
        return False
    operands = [x, f"x{len(net.inputs)}"]
    net.add_input((m, c // group, kh, kw))
    operands += [net.weights(m)] if r.random() < 0.6 else []
    (y,) = net.node(
        "Conv", operands, [(n, m, oh, ow)], strides=[stride] * 2, pads=pads, dilations=[dilation] * 2, group=group
    )
    if r.random() < 0.4:
        net.node("Relu", [y], [(n, m, oh, ow)])
    return True


def volume_window(r: random.Random, sizes: Shape) -> tuple[dict[str, list[int]], Shape] | None:
    """Returns kernel_shape, strides, pads and dilations over three dims, and the result's extents."""
    kernel = r.choice(
        [(1, 1, 1), (3, 3, 3), (3, 3, 3), (1, 3, 3), (3, 1, 1), (2, 1, 1), (2, 2, 2), (1, 1, 3), (3, 5, 2)]
    )
    strides = r.choice([[1, 1, 1], [1, 1, 1], [2, 2, 2], [1, 2, 2], [2, 1, 1], [kernel[0], 1, 2]])
    dilations = [r.choice([1, 1, 1, 2]) for _ in kernel]
    pads = [r.randint(0, k // 2) for k in (*kernel, *kernel)]
    out = tuple(positions(s, kernel[i], strides[i], (pads[i], pads[i + 3]), dilations[i]) for i, s in enumerate(sizes))
    if min(out) < 1:
        return None
    return {"kernel_shape": list(kernel), "strides": list(strides), "pads": pads, "dilations": dilations}, out


def volume_conv_of(net: Network, x: str) -> str:
    """Adds a convolution of the volumes `x` and returns its result; "" if none fits."""
    r = net.rng
    n, c, *sizes = net.values[x]
    window = volume_window(r, tuple(sizes))
    group = r.choice([1, 1, c, r.choice([g for g in range(1, c + 1) if c % g == 0])])
    m = group * r.randint(1, max(1, 40 // group))
    if not window or n * m * int(np.prod(window[1])) > MAX_ELEMENTS:
        return ""
    attributes, out = window
    kernel = attributes["kernel_shape"]
    operands = [x, net.weights(m, c // group, *kernel, scale=(c // group * int(np.prod(kernel))) ** -0.5)]
    operands += [net.weights(m)] if r.random() < 0.6 else []
    return net.node("Conv", operands, [(n, m, *out)], group=group, **attributes)[0]


WINDOW_KEYS = ("kernel_shape", "strides", "dilations", "pads")


def _holds_elements(size: int, positions: int, kernel: int, stride: int, dilation: int, before: int) -> bool:
    """Returns true if every window along a dim reads at least one element, not only padding."""
    starts = (position * stride - before for position in range(positions))
    return all(any(0 <= start + tap * dilation < size for tap in range(kernel)) for start in starts)


def volume_pool_of(net: Network, x: str) -> str:
    window = volume_window(net.rng, net.values[x][2:])
    if not window:
        return ""
    attributes, out = window
    if not all(map(_holds_elements, net.values[x][2:], out, *(attributes[key] for key in WINDOW_KEYS))):
        return ""  # the maximum of no elements is undefined and rejected
    return net.node("MaxPool", [x], [(*net.values[x][:2], *out)], **attributes)[0]


def volumes(net: Network) -> bool:
    """Adds some ops on volumes, into which an image's channels are split, and converts back."""
    x = net.pick_image()
    if not x:
        return False
    r = net.rng
    n, c, h, w = net.values[x]
    depth = r.choice([d for d in range(1, c + 1) if c % d == 0])
    shape = (n, c // depth, depth, h, w)
    (y,) = net.node("Reshape", [x, net.ints(*shape)], [shape])
    for _ in range(r.randint(1, 3)):
        result = r.choice([volume_conv_of, volume_conv_of, volume_pool_of])(net, y)
        if result and r.random() < 0.3 and net.values[result] == net.values[y]:
            result = net.node("Add", [result, y], [net.values[result]])[0]
        y = result or y
        if r.random() < 0.3:
            y = net.node("Relu", [y], [net.values[y]])[0]
    n, c, d, h, w = net.values[y]
    net.node("Reshape", [y, net.ints(n, c * d, h, w)], [(n, c * d, h, w)])
    return True


def conv_transpose(net: Network) -> bool:
    """Adds a transposed convolution whose stride divides the kernel once, twice or not at all; in groups; sometimes
    with the shape of an up-scaler, of an audio decoder (along one dim), or of a segmenter, whose strides have more
    phases than a copy has pieces."""
    x = net.pick_image()
    if not x:
        return False
    r = net.rng
    n, c, h, w = net.values[x]
    kernel, strides = _transposed_window(r)
    group = r.choice([g for g in (1, 1, 1, 2, 3, c) if c % g == 0])
    m = r.choice([r.randint(1, 20), r.randint(30, 130)]) if group == 1 else r.randint(1, max(1, 40 // group))
    if max(strides) > 4:
        m = min(m, 4)
    pads = [r.randint(0, min(max(2, strides[i % 2]), kernel[i % 2] - 1)) for i in range(4)]
    more = [r.randint(0, stride - 1) if r.random() < 0.4 else 0 for stride in strides]
    oh, ow = (strides[i] * (s - 1) + kernel[i] - pads[i] - pads[i + 2] + more[i] for i, s in enumerate((h, w)))
    if min(oh, ow) < 1 or n * m * group * oh * ow > MAX_ELEMENTS:
        return False
    net.node(
        "ConvTranspose",
        [x, net.weights(c, m, *kernel, scale=(c * max(kernel)) ** -0.5), net.weights(m * group)],
        [(n, m * group, oh, ow)],
        strides=strides,
        pads=pads,
        output_padding=more,
        group=group,
    )
    return True


def _transposed_window(r: random.Random) -> tuple[list[int], list[int]]:
    """Returns kernel and strides of a transposed convolution."""
    kind = r.random()
    if kind < 0.35:
        return [4, 4], [2, 2]
    if kind < 0.65:
        return [r.randint(1, 5)] * 2, [r.randint(1, 4)] * 2
    if kind < 0.9:
        stride = r.randint(2, 20)
        along = stride * r.randint(1, 2) if r.random() < 0.7 else r.randint(stride, 2 * stride + 3)
        across = r.choice([1, 1, 3])
        return ([across, along], [1, stride]) if r.random() < 0.7 else ([along, across], [stride, 1])
    strides = [r.randint(8, 11), r.randint(8, 11)]
    return [stride + r.choice([0, r.randint(0, stride)]) for stride in strides], strides


def pool(net: Network) -> bool:
    x = net.pick_image()
    if not x:
        return False
    n, c, h, w = net.values[x]
    kind = net.rng.choice(["MaxPool", "AveragePool", "GlobalAveragePool", "GlobalMaxPool"])
    if kind.startswith("Global"):
        net.node(kind, [x], [(n, c, 1, 1)])
        return True
    k, stride = net.rng.randint(2, 3), net.rng.randint(1, 2)
    pad = net.rng.randint(0, 1)
    oh, ow = positions(h, k, stride, (pad, pad)), positions(w, k, stride, (pad, pad))
    if min(oh, ow) < 1:
        return False
    more = {"count_include_pad": net.rng.randint(0, 1)} if kind == "AveragePool" else {}
    net.node(kind, [x], [(n, c, oh, ow)], kernel_shape=[k, k], strides=[stride] * 2, pads=[pad] * 4, **more)
    return True


def unary(net: Network) -> bool:
    x = net.pick()
    op = net.rng.choice(
        [
            "Relu",
            "Relu",
            "Sigmoid",
            "Tanh",
            "HardSwish",
            "LeakyRelu",
            "Elu",
            "Erf",
            "Abs",
            "Neg",
            "Softplus",
            "HardSigmoid",
            "Identity",
            "Sin",
        ]
    )
    net.node(op, [x], [net.values[x]])  # type: ignore[index, list-item]
    return True


def clip(net: Network) -> bool:
    x = net.pick()
    low, high = net.constant(np.array(-0.5, np.float32)), net.constant(np.array(net.rng.choice([1, 6]), np.float32))
    net.node("Clip", [x, low, high], [net.values[x]])  # type: ignore[index, list-item]
    return True


def swish(net: Network) -> bool:
    x = net.pick()
    shape = net.values[x]  # type: ignore[index]
    gate = net.node("Sigmoid", [x], [shape])[0]  # type: ignore[list-item]
    net.node("Mul", [x, gate], [shape])  # type: ignore[list-item]
    return True


def binary_constant(net: Network) -> bool:
    x = net.pick()
    shape = net.values[x]  # type: ignore[index]
    keep = net.rng.choice(["scalar", "channel", "last", "full", "some"])
    axis = 1 if keep == "channel" and len(shape) > 1 else len(shape) - 1
    dims = [
        d
        if keep == "full" or (keep == "some" and net.rng.random() < 0.5) or (keep in ("channel", "last") and i == axis)
        else 1
        for i, d in enumerate(shape)
    ]
    operands = [x, net.weights(*dims, scale=0.3, offset=1.5)]
    op = net.rng.choice(["Add", "Sub", "Mul", "Div", "Max", "Min"])
    if net.rng.random() < 0.3 and op != "Div":
        operands.reverse()
    net.node(op, operands, [shape])  # type: ignore[arg-type]
    return True


def _broadcast(a: Shape, b: Shape) -> Shape | None:
    try:
        shape = np.broadcast_shapes(a, b)
    except ValueError:
        return None
    return shape if int(np.prod(shape)) <= MAX_ELEMENTS else None


def binary(net: Network) -> bool:
    a = net.pick()
    shape = net.values[a]  # type: ignore[index]
    same = net.rng.random() < 0.7
    b = net.pick(lambda s: s == shape if same else len(s) == len(shape) and _broadcast(s, shape) is not None)
    if b is None:
        return False
    net.node(
        net.rng.choice(["Add", "Add", "Add", "Mul", "Sub", "Max"]),
        [a, b],  # type: ignore[list-item]
        [_broadcast(shape, net.values[b])],
    )  # type: ignore[list-item]
    return True


def concat(net: Network) -> bool:
    a = net.pick()
    shape = net.values[a]  # type: ignore[index]
    axis = min(net.rng.choice([0, 1, 1, 1, 2, 3]), len(shape) - 1)
    others = [
        net.pick(lambda s: len(s) == len(shape) and s[:axis] + s[axis + 1 :] == shape[:axis] + shape[axis + 1 :])
        for _ in range(net.rng.randint(1, 3))
    ]
    parts = [a, *others]
    net.rng.shuffle(parts)
    total = sum(net.values[part][axis] for part in parts)  # type: ignore[index]
    result = (*shape[:axis], total, *shape[axis + 1 :])
    if np.prod(result) > MAX_ELEMENTS:
        return False
    net.node("Concat", parts, [result], axis=axis)  # type: ignore[arg-type]
    return True


def slice_(net: Network) -> bool:
    x = net.pick(lambda s: max(s) > 2)
    if not x:
        return False
    shape = net.values[x]
    axis = net.rng.choice([i for i, d in enumerate(shape) if d > 2])
    start = net.rng.randint(0, shape[axis] - 2)
    end = net.rng.randint(start + 1, shape[axis])
    step = net.rng.choice([1, 1, 1, 2])
    size = -(-(end - start) // step)
    net.node(
        "Slice",
        [x, net.ints(start), net.ints(end), net.ints(axis), net.ints(step)],
        [(*shape[:axis], size, *shape[axis + 1 :])],
    )
    return True


def split(net: Network) -> bool:
    x = net.pick(lambda s: len(s) > 1 and s[1] > 1)
    if not x:
        return False
    shape = net.values[x]
    first = net.rng.randint(1, shape[1] - 1)
    net.node(
        "Split",
        [x, net.ints(first, shape[1] - first)],
        [(shape[0], size, *shape[2:]) for size in (first, shape[1] - first)],
        axis=1,
    )
    return True


def transpose(net: Network) -> bool:
    x = net.pick()
    shape = net.values[x]  # type: ignore[index]
    perm = list(range(len(shape)))
    net.rng.shuffle(perm)
    net.node("Transpose", [x], [tuple(shape[p] for p in perm)], perm=perm)  # type: ignore[list-item]
    return True


def reshape(net: Network) -> bool:
    x = net.pick()
    shape = net.values[x]  # type: ignore[index]
    count = int(np.prod(shape))
    a = net.rng.choice([d for d in range(1, 68) if count % d == 0])
    b = net.rng.choice([d for d in range(1, 68) if count // a % d == 0])
    options: list[Shape] = [(a, count // a), (1, a, b, count // a // b), (a, b, count // a // b)]
    if len(shape) == 4:
        options.append((shape[0], shape[1], shape[2] * shape[3]))
    target = net.rng.choice(options)
    net.node("Reshape", [x, net.ints(*target)], [target])  # type: ignore[list-item]
    return True


def pad(net: Network) -> bool:
    x = net.pick_image()
    if not x:
        return False
    shape = net.values[x]
    mode = net.rng.choice(["constant", "reflect", "edge"])
    sides = [net.rng.randint(0, min(2, d - 1)) if i > 1 or mode == "constant" else 0 for i, d in enumerate(shape)] * 2
    if mode != "constant":
        sides[0] = sides[1] = sides[4] = sides[5] = 0
    result = tuple(d + sides[i] + sides[i + 4] for i, d in enumerate(shape))
    if np.prod(result) > MAX_ELEMENTS:
        return False
    net.node("Pad", [x, net.ints(*sides)], [result], mode=mode)
    return True


def resize(net: Network) -> bool:
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
        mode=net.rng.choice(["nearest", "linear"]),
        coordinate_transformation_mode=net.rng.choice(["asymmetric", "half_pixel"]),
    )
    return True


def depth_to_space(net: Network) -> bool:
    if net.rng.random() < 0.5:
        x = net.pick(lambda s: len(s) == 4 and s[1] % 4 == 0)
        if x:
            n, c, h, w = net.values[x]
            net.node("DepthToSpace", [x], [(n, c // 4, h * 2, w * 2)], blocksize=2, mode=net.rng.choice(["DCR", "CRD"]))
        return x is not None
    x = net.pick(lambda s: len(s) == 4 and s[2] % 2 == 0 and s[3] % 2 == 0)
    if x:
        n, c, h, w = net.values[x]
        net.node("SpaceToDepth", [x], [(n, c * 4, h // 2, w // 2)], blocksize=2)
    return x is not None


def reduce(net: Network, kinds: tuple[str, ...] = ("ReduceMean", "ReduceMax", "ReduceMin", "ReduceL2")) -> bool:
    """Adds one of `kinds` over some axes; a kind listed twice is drawn twice as often."""
    x = net.pick()
    shape = net.values[x]  # type: ignore[index]
    axes = sorted(net.rng.sample(range(len(shape)), net.rng.randint(1, len(shape))))
    kept = net.rng.random() < 0.7 or len(axes) == len(shape)
    result = tuple(1 if i in axes else d for i, d in enumerate(shape) if kept or i not in axes)
    net.node(net.rng.choice(kinds), [x], [result], axes=axes, keepdims=int(kept))  # type: ignore[list-item]
    return True


def softmax(net: Network) -> bool:
    x = net.pick()
    shape = net.values[x]  # type: ignore[index]
    net.node(
        net.rng.choice(["Softmax", "Softmax", "LogSoftmax"]),
        [x],
        [shape],  # type: ignore[list-item]
        axis=net.rng.randrange(len(shape)),
    )
    return True


def norm(net: Network) -> bool:
    kind = net.rng.choice(
        ["LayerNormalization", "InstanceNormalization", "BatchNormalization", "BatchNormalization", "LRN"]
    )
    if kind == "LayerNormalization":
        x = net.pick(lambda s: s[-1] > 3)
        if x:
            last = net.values[x][-1]
            net.node(kind, [x, net.weights(last), net.weights(last)], [net.values[x]], axis=-1)
        return x is not None
    x = net.pick(lambda s: len(s) == 4 and (kind != "InstanceNormalization" or s[2] * s[3] > 3))
    if not x:
        return False
    c = net.values[x][1]
    parameters = [] if kind == "LRN" else [net.weights(c, scale=0.2, offset=1.0), net.weights(c)]
    if kind == "BatchNormalization":
        parameters += [net.weights(c), net.constant(net.array_rng.uniform(0.5, 2, c).astype(np.float32))]
    net.node(kind, [x, *parameters], [net.values[x]], **({"size": 3} if kind == "LRN" else {}))
    return True


def matmul(net: Network) -> bool:
    x = net.pick(lambda s: len(s) in (2, 3, 4))
    if not x:
        return False
    shape = net.values[x]
    k, n = shape[-1], net.rng.randint(1, 67)
    other = (
        net.pick(lambda s: len(s) == len(shape) and s[:-2] == shape[:-2] and s[-2] == k)
        if net.rng.random() < 0.4
        else None
    )
    result = (*shape[:-1], net.values[other][-1] if other else n)
    if np.prod(result) > MAX_ELEMENTS:
        return False
    y = net.node("MatMul", [x, other or net.weights(k, n, scale=k**-0.5)], [result])[0]
    if not other and net.rng.random() < 0.6:
        net.node("Add", [y, net.weights(n)], [result])
    return True


def rows_by_rows(net: Network) -> bool:
    """Multiplies an activation's rows with each other, or with their mean on either side (one row or one column)."""
    x = net.pick(lambda s: len(s) in (2, 3, 4) and s[-1] > 1)
    if not x:
        return False
    *batch, m, k = net.values[x]
    if int(np.prod(batch)) * m * m > MAX_ELEMENTS:
        return False
    sides = net.rng.choice([(m, m), (m, 1), (1, m)])
    mean = net.node("ReduceMean", [x], [(*batch, 1, k)], axes=[-2])[0] if m > 1 else x
    left, right = (x if size == m else mean for size in sides)
    perm = [*range(len(batch)), len(batch) + 1, len(batch)]
    turned = net.node("Transpose", [right], [(*batch, k, sides[1])], perm=perm)[0]
    net.node("MatMul", [left, turned], [(*batch, *sides)])
    return True


def gemm(net: Network) -> bool:
    x = net.pick(lambda s: len(s) == 2)
    if not x:
        return False
    m, k = net.values[x]
    n, transposed = net.rng.randint(1, 67), net.rng.randint(0, 1)
    weight = net.weights(*((n, k) if transposed else (k, n)), scale=k**-0.5)
    net.node("Gemm", [x, weight, net.weights(n)], [(m, n)], transB=transposed)
    return True


def gather(net: Network) -> bool:
    x = net.pick()
    shape = net.values[x]  # type: ignore[index]
    axis = net.rng.randrange(len(shape))
    indices = [net.rng.randrange(shape[axis]) for _ in range(net.rng.randint(1, 5))]
    net.node(
        "Gather",
        [x, net.ints(*indices)],
        [(*shape[:axis], len(indices), *shape[axis + 1 :])],  # type: ignore[list-item]
        axis=axis,
    )
    return True


OPS = (
    [conv] * 6
    + [binary] * 5
    + [unary] * 4
    + [concat] * 3
    + [binary_constant] * 3
    + [slice_, transpose, reshape, matmul] * 2
    + [volumes] * 2
    + [far_conv, open_conv]
    + [
        conv_transpose,
        pool,
        clip,
        swish,
        split,
        pad,
        resize,
        depth_to_space,
        reduce,
        softmax,
        norm,
        norm,
        gemm,
        gather,
        rows_by_rows,
    ]
)


def make_network(seed: int, steps: int | None = None) -> tuple[onnx.ModelProto, dict[str, np.ndarray]]:
    """Returns the network of a seed with its inputs; only its first `steps` steps if given."""
    net = Network(seed)
    grow(net, OPS, (3, 8), steps)
    result = [name for node in net.nodes for name in node.output]
    return (
        finish(net, seed, [(name, TensorProto.FLOAT, net.values[name]) for name in choose_outputs(net, seed, result)]),
        net.inputs,
    )


def _check(compiler: Compiler, seed: int, steps: int | None, isa: str, keep: Path | None) -> None:
    model, inputs = make_network(seed, steps)
    with tempfile.TemporaryDirectory() as temporary:
        folder = keep or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        path, mlir = folder / "model.onnx", folder / "model_top.mlir"
        path.write_bytes(model.SerializeToString())
        # The graph as in the file is the golden, so that a wrong optimisation shows as well.
        plain = folder / "plain_top.mlir"
        compiler("import", "import", "--onnx", path, "--output", plain, "--no-optimise")
        want = run_reference(compiler, plain, inputs)
        compiler("import", "import", "--onnx", path, "--output", mlir)
        got = run_bmodel(deploy(compiler, mlir, isa), inputs)
    for name, expected in want.items():
        if got[name].shape != expected.shape:
            raise StageError("compare", f"'{name}' has shape {got[name].shape}, the reference {expected.shape}")
        scale = max(float(np.abs(expected[np.isfinite(expected)]).max(initial=0.0)), 1e-3)
        if not np.allclose(got[name], expected, rtol=TOLERANCE, atol=TOLERANCE * scale, equal_nan=True):
            difference = np.abs(got[name].astype(np.float64) - expected)
            worst = np.unravel_index(int(np.nanargmax(difference)), expected.shape)
            raise StageError(
                "compare",
                f"'{name}' {expected.shape} at {tuple(map(int, worst))}: {got[name][worst]}, "
                f"reference {expected[worst]}; largest value {scale:.4g}",
            )


def run_seed(seed: int, isa: str, keep: Path | None = None) -> str:
    """Returns the fault of the network of a seed, or ""."""
    try:
        _check(compiler_of_process(), seed, None, isa, None)
        return ""
    except StageError as fault:
        return shortest_fault(fault, _check, make_network, seed, isa, keep)


def run_seeds(seeds: Sequence[int], jobs: int, isa: str | None = None, keep: Path | None = None) -> Iterator[str]:
    """Yields the faults of many seeds as they are found. Without `isa` the instruction sets alternate."""
    yield from filter(None, map_seeds(run_seed, supported_isas(), seeds, jobs, isa, keep))


def main() -> int:
    arguments = parse_arguments(__doc__, supported_isas())
    faults = 0
    for fault in run_seeds(arguments.seeds, arguments.jobs, arguments.isa, arguments.keep):
        print(fault, flush=True)
        faults += 1
    print(f"{faults} of {len(arguments.seeds)} networks fail; nodes: {count_operators(make_network, arguments.seeds)}")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
