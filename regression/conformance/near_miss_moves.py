# SPDX-License-Identifier: Apache-2.0
"""Graphs whose arithmetic goes into weights, or whose moves cancel or meet: batch norms, pads, transposes, slices."""
from __future__ import annotations

from typing import Sequence

import numpy as np
from near_miss_case import Case, pattern


@pattern()
def group_norm(c: Case) -> Sequence[str]:
    n, groups, size, h, w = 2, 3, c.rng.randint(2, 4), c.rng.randint(2, 5), c.rng.randint(2, 5)
    x = c.op("Reshape", c.input(n, groups * size, h, w), c.ints(n, groups, -1))
    y = c.op("InstanceNormalization", x, c.weights(groups, offset=1), c.weights(groups), epsilon=1e-5)
    y = c.op("Reshape", y, c.ints(n, groups * size, h, w))
    return [c.either("Add", c.either("Mul", y, c.weights(groups * size, 1, 1)), c.weights(groups * size, 1, 1))]


# --- Folding into weights ---------------------------------------------------------------


def _affine(c: Case, x: str, *dims: int) -> str:
    x = c.either("Mul", x, c.weights(*dims, offset=1)) if c.rng.random() < 0.7 else c.op("Div", x, c.constant(3))
    return c.either("Add", x, c.weights(*dims)) if c.rng.random() < 0.5 else c.op("Sub", x, c.weights(*dims))


def _activated(c: Case, x: str) -> str:
    form = c.rng.randrange(4)
    if form == 0:
        return c.op("Clip", x, c.constant(0), c.constant(1))
    return x if form == 1 else c.op("Relu", x) if form == 2 else c.op("Max", x, c.constant(0))


@pattern()
def conv_affine(c: Case) -> Sequence[str]:
    group, per, out = c.rng.choice([(1, 3, 4), (1, 3, 3), (2, 2, 2), (4, 1, 1)])
    x = c.input(2, group * per, 5, 6)
    if c.rng.random() < 0.6:
        bias = [c.weights(group * out)] if c.rng.random() < 0.5 else []
        y = c.op("Conv", x, c.weights(group * out, per, 3, 3), *bias, group=group, pads=[1, 0, 1, 0], strides=[1, 2])
    else:
        y = c.op("ConvTranspose", x, c.weights(group * per, out, 3, 3), group=group, pads=[1, 0, 1, 0])
    channels = group * out
    if c.rng.random() < 0.5:
        statistics = (c.weights(channels, offset=1), c.weights(channels), c.weights(channels))
        y = c.op("BatchNormalization", y, *statistics, c.constant(np.linspace(0.5, 2, channels)), epsilon=1e-3)
    else:
        y = _affine(c, y, channels, 1, 1)
    return [_activated(c, y)]


@pattern()
def matmul_affine(c: Case) -> Sequence[str]:
    m, k, n = c.rng.randint(2, 5), c.rng.randint(2, 5), c.rng.randint(2, 5)
    if c.rng.random() < 0.5:
        y = c.op("Gemm", c.input(m, k), c.weights(n, k), c.weights(n), transB=1, alpha=c.rng.choice([1.0, 0.5]))
    else:
        y = c.op("MatMul", c.input(2, m, k), c.weights(*c.rng.choice([(k, n), (2, k, n), (1, k, n)])))
    return [_activated(c, _affine(c, y, n))]


@pattern()
def batch_norm_alone(c: Case) -> Sequence[str]:
    channels = c.rng.randint(2, 4)
    x = c.op("Relu", c.input(2, channels, *c.rng.choice([(), (3,), (3, 4)])))
    statistics = (c.weights(channels, offset=1), c.weights(channels), c.weights(channels))
    return [c.op("BatchNormalization", x, *statistics, c.constant(np.linspace(0.5, 2, channels)), epsilon=1e-3)]


@pattern()
def padded_window(c: Case) -> Sequence[str]:
    x = c.op(c.rng.choice(["Relu", "Identity"]), c.input(1, 3, 5, 6))
    kind = c.rng.choice(["Conv", "MaxPool", "AveragePool"])
    value = c.constant(c.rng.choice([0, 0, -np.inf, -3.4028234663852886e38])) if kind == "MaxPool" else c.constant(0)
    x = c.op("Pad", x, c.ints(0, 0, 1, 1, 0, 0, 1, 0), value)
    if kind == "Conv":
        return [c.op("Conv", x, c.weights(2, 3, 3, 3))]
    more = {"count_include_pad": 1} if kind == "AveragePool" and c.rng.random() < 0.5 else {}
    return [c.op(kind, x, kernel_shape=[3, 3], strides=[2, 2], **more)]


# --- Moves --------------------------------------------------------------------------------


@pattern()
def focus(c: Case) -> Sequence[str]:
    x = c.input(1, 3, 4, 6)
    parts = [c.cut(c.cut(x, i, 99, 2, 2), j, 99, 3, 2) for j in (0, 1) for i in (0, 1)]
    return [c.op("Conv", c.op("Concat", *parts, axis=1), c.weights(2, 12, 1, 1))]


@pattern()
def pixel_shuffle(c: Case) -> Sequence[str]:
    if c.rng.random() < 0.3:
        return [c.op("DepthToSpace", c.input(1, 8, 2, 3), blocksize=2, mode=c.rng.choice(["DCR", "CRD"]))]
    x = c.op("Reshape", c.input(1, 8, 2, 3), c.ints(1, 2, 2, 2, 2, 3))
    x = c.op("Transpose", x, perm=c.rng.choice([[0, 1, 4, 2, 5, 3], [0, 3, 4, 1, 5, 2]]))
    return [c.op("Reshape", x, c.ints(1, 2, 4, 6))]


@pattern()
def channel_shuffle(c: Case) -> Sequence[str]:
    x = c.op("Relu", c.input(1, 6, 3, 2))
    x = c.op("Transpose", c.op("Reshape", x, c.ints(1, 2, 3, 3, 2)), perm=[0, 2, 1, 3, 4])
    halves = c.op("Reshape", x, c.ints(1, 6, 3, 2))
    return [c.cut(halves, 0, 3, 1), c.op("Conv", c.cut(halves, 3, 6, 1), c.weights(2, 3, 1, 1))]


@pattern()
def windows(c: Case) -> Sequence[str]:
    """Splits pixels into windows and back, rolled like shifted windows."""
    x = c.input(1, 4, 6, 3)
    x = c.op("Concat", c.cut(x, 1, 4, 1), c.cut(x, 0, 1, 1), axis=1)
    x = c.op("Transpose", c.op("Reshape", x, c.ints(1, 2, 2, 3, 2, 3)), perm=[0, 1, 3, 2, 4, 5])
    x = c.either("Add", c.op("Reshape", x, c.ints(6, 4, 3)), c.weights(4, 1))
    x = c.op("Transpose", c.op("Reshape", x, c.ints(1, 2, 3, 2, 2, 3)), perm=[0, 1, 3, 2, 4, 5])
    return [c.op("Reshape", x, c.ints(1, 4, 6, 3))]


@pattern()
def transposed_chain(c: Case) -> Sequence[str]:
    """Moves channels last, computes there, and moves them back."""
    x = c.op("Transpose", c.input(2, 3, 4, 5), perm=[0, 2, 3, 1])
    kinds = c.rng.sample(["scale", "reduce", "softmax", "slice", "pad", "concat", "relu"], 2)
    for kind in sorted(kinds, key=lambda kind: kind != "scale"):  # before the dims change
        if kind == "scale":
            x = c.either("Mul", x, c.weights(*c.rng.choice([(3,), (1,), (5, 1), (4, 1, 1)])))
        elif kind == "reduce":
            axis = c.rng.choice([1, 2, 3])
            x = c.either("Add", x, c.op("ReduceMean", x, axes=[axis]))
        elif kind == "softmax":
            x = c.op("Softmax", x, axis=c.rng.choice([-1, 1, 2]))
        elif kind == "slice":
            x = c.cut(x, 1, 99, c.rng.choice([1, 2]))
        elif kind == "pad":
            x = c.op("Pad", x, c.ints(0, 1, 0, 0, 0, 0, 2, 0), c.constant(0.5), mode=c.rng.choice(["constant", "edge"]))
        else:
            x = c.op("Concat", x, c.op("Relu", x), axis=c.rng.choice([1, 2])) if kind == "concat" else c.op("Relu", x)
    return [c.op("Transpose", x, perm=[0, 3, 1, 2])]


@pattern()
def transposed_products(c: Case) -> Sequence[str]:
    a, b = c.op("Transpose", c.input(2, 3, 4), perm=[0, 2, 1]), c.input(2, 3, 5)
    y = c.op("MatMul", a, c.op("Mul", b, c.constant(0.5)))
    return [c.op("ReduceSum", c.op("Transpose", y, perm=[0, 2, 1]), c.ints(1), keepdims=c.rng.randrange(2))]


@pattern()
def cuts(c: Case) -> Sequence[str]:
    """Gathers and slices from concatenations and from one another."""
    x = c.op("Concat", c.input(2, 4, 3), c.input(2, 5, 3), axis=1)
    y = c.cut(c.cut(x, 1, 8, 1), 1, 6, 1, c.rng.choice([1, 2]))
    picked = c.op(
        "Gather", x, c.constant(c.rng.choice([[1, 2, 3], [6, 4, 2], [4], [-1, -2], [0, 0]]), np.int64), axis=1
    )
    return [y, picked, c.op("Gather", x, c.constant(3, np.int64), axis=1)]


@pattern()
def viewed_sum(c: Case) -> Sequence[str]:
    """Returns a sum between a reshape that adds dims of size 1 and the reverse reshape."""
    x = c.op("Reshape", c.input(2, 3, 4), c.ints(1, 2, 3, 1, 4))
    x = c.either("Add", x, c.weights(*c.rng.choice([(4,), (3, 1, 4), (2, 3, 1, 4), (1, 2, 1, 1, 1)])))
    return [c.op("Reshape", x, c.ints(2, 3, 4))]


@pattern()
def upsampled(c: Case) -> Sequence[str]:
    """Returns a 2x upsampling, by Resize or by repeating, followed by a convolution."""
    x = c.input(1, 2, 3, 4)
    if c.rng.random() < 0.5:
        modes = {"mode": c.rng.choice(["nearest", "linear"]), "coordinate_transformation_mode": "asymmetric"}
        x = c.op("Resize", x, "", c.constant([1, 1, 2, 2]), nearest_mode="floor", **modes)
    else:
        x = c.op("Reshape", x, c.ints(1, 2, 3, 1, 4, 1))
        x = c.op("Reshape", c.op("Expand", x, c.ints(1, 2, 3, 2, 4, 2)), c.ints(1, 2, 6, 8))
    return [c.op("Conv", x, c.weights(2, 2, 3, 3), pads=[1, 1, 1, 1])]


@pattern()
def einsum(c: Case) -> Sequence[str]:
    equation, *shapes = c.rng.choice(
        [
            ("bhqd,bhkd->bhqk", (2, 2, 3, 4), (2, 2, 5, 4)),
            ("bij,bjk->bik", (2, 3, 4), (2, 4, 5)),
            ("bij,bj->bi", (2, 3, 4), (2, 4)),
            ("ij,kj->ik", (3, 4), (5, 4)),
            ("bqhd,bkhd->bhqk", (2, 3, 2, 4), (2, 5, 2, 4)),
            ("...ij,...jk->...ik", (2, 3, 4), (2, 4, 5)),
            ("ij->ji", (3, 4)),
            ("bij->bj", (2, 3, 4)),
            ("i,j->ij", (3,), (4,)),
            ("bhwc,hkc->bhwk", (2, 3, 4, 2), (3, 4, 2)),
        ]
    )
    return [c.either("Mul", c.op("Einsum", *(c.input(*shape) for shape in shapes), equation=equation), c.constant(0.5))]


@pattern()
def pooled(c: Case) -> Sequence[str]:
    """Returns a global mean in one of several forms, followed by a matmul."""
    x, form = c.input(2, 4, 3, 5), c.rng.randrange(3)
    if form == 0:
        x = c.op("Flatten", c.op("GlobalAveragePool", x))
    elif form == 1:
        x = c.op("ReduceMean", x, axes=[2, 3], keepdims=0)
    else:
        x = c.op("Squeeze", c.op("ReduceMean", c.op("ReduceMean", x, axes=[3]), axes=[2]), c.ints(2, 3))
    return [c.op("MatMul", x, c.weights(4, 3))]


@pattern()
def squeeze_excite(c: Case) -> Sequence[str]:
    x = c.op("Conv", c.input(1, 4, 3, 3), c.weights(4, 4, 1, 1))
    gate = c.op("Relu", c.op("Conv", c.op("GlobalAveragePool", x), c.weights(2, 4, 1, 1), c.weights(2)))
    gate = c.op("Sigmoid", c.op("Conv", gate, c.weights(4, 2, 1, 1), c.weights(4)))
    return [c.either("Add", c.either("Mul", x, gate), c.input(1, 4, 3, 3))]
