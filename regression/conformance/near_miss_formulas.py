# SPDX-License-Identifier: Apache-2.0
"""Formulas that the Recover passes turn into one op: norms, activations, softmax, attention, rotary embeddings."""
from __future__ import annotations

import math
from typing import Sequence

from near_miss_case import Case, pattern

# --- Norms -------------------------------------------------------------------------


def _trailing(c: Case, shape: Sequence[int]) -> list[int]:
    return list(range(-c.rng.choice([1, 1, min(2, len(shape) - 1)]), 0))


def _inverse_root(c: Case, below: str) -> str:
    root = c.op("Sqrt", below) if c.rng.random() < 0.7 else c.op("Pow", below, c.constant(0.5))
    return c.op("Reciprocal", root) if c.rng.random() < 0.5 else c.op("Div", c.constant(1), root)


@pattern("layer_norm")
def layer_norm(c: Case) -> Sequence[str]:
    shape = c.dims()
    x, axes = c.input(*shape), _trailing(c, shape)
    centred = c.op("Sub", x, c.op("ReduceMean", x, axes=axes))
    variance = c.op("ReduceMean", c.square(centred), axes=axes)
    below = c.either("Add", variance, c.constant(1e-5))
    if c.rng.random() < 0.5:
        y = c.op("Div", centred, c.op("Sqrt", below))
    else:
        y = c.either("Mul", centred, _inverse_root(c, below))
    y = c.either("Mul", y, c.weights(*shape[axes[0] :], offset=1)) if c.rng.random() < 0.7 else y
    return [c.either("Add", y, c.weights(*shape[axes[0] :]))]


@pattern("layer_norm")
def rms_norm(c: Case) -> Sequence[str]:
    shape = c.dims()
    x, axes = c.input(*shape), _trailing(c, shape)
    below = c.either("Add", c.op("ReduceMean", c.square(x), axes=axes), c.constant(1e-5))
    y = c.either("Mul", x, _inverse_root(c, below))
    return [c.either("Mul", y, c.weights(*shape[axes[0] :], offset=1))]


@pattern("layer_norm")
def expanded_norm(c: Case) -> Sequence[str]:
    """x a + (bias - mean(x) a), a = scale / sqrt(variance + epsilon)."""
    shape = c.dims()
    x, axes = c.input(*shape), _trailing(c, shape)
    mean = c.op("ReduceMean", x, axes=axes)
    variance = c.op("ReduceMean", c.square(c.op("Sub", x, mean)), axes=axes)
    inverse = _inverse_root(c, c.either("Add", variance, c.constant(1e-5)))
    a = c.either("Mul", inverse, c.weights(*shape[axes[0] :], offset=1))
    shift = c.op("Sub", c.weights(*shape[axes[0] :]), c.either("Mul", mean, a))
    return [c.either("Add", c.either("Mul", x, a), shift)]


@pattern("layer_norm")
def layer_norm_op(c: Case) -> Sequence[str]:
    shape = c.dims()
    y = c.op("LayerNormalization", c.input(*shape), c.weights(shape[-1], offset=1), axis=-1)
    return [c.either("Add", y, c.weights(shape[-1]))]


@pattern()
def length(c: Case) -> Sequence[str]:
    shape = c.dims()
    x, axes = c.input(*shape), [c.rng.randrange(len(shape))]
    total = (
        c.op("ReduceSum", c.square(x), c.ints(*axes)) if c.rng.random() < 0.5 else c.op("ReduceSumSquare", x, axes=axes)
    )
    return [c.op("Div", x, c.op("Max", c.op("Sqrt", total), c.constant(1e-6)))]


# --- Activations -------------------------------------------------------------------


@pattern("gelu")
def gelu(c: Case) -> Sequence[str]:
    x = c.input(*c.dims())
    argument = (
        c.op("Div", x, c.constant(math.sqrt(2))) if c.rng.random() < 0.5 else c.op("Mul", x, c.constant(0.5**0.5))
    )
    return [_halved_product(c, x, c.either("Add", c.op("Erf", argument), c.constant(1)))]


@pattern("gelu")
def gelu_tanh(c: Case) -> Sequence[str]:
    x = c.input(*c.dims())
    cube = c.op("Pow", x, c.constant(3)) if c.rng.random() < 0.5 else c.op("Mul", c.op("Mul", x, x), x)
    inner = c.either("Add", x, c.either("Mul", cube, c.constant(0.044715)))
    tanh = c.op("Tanh", c.either("Mul", inner, c.constant(math.sqrt(2 / math.pi))))
    return [_halved_product(c, x, c.either("Add", tanh, c.constant(1)))]


def _halved_product(c: Case, x: str, gate: str) -> str:
    form = c.rng.randrange(3)
    if form == 0:
        return c.either("Mul", c.either("Mul", x, c.constant(0.5)), gate)
    return c.either(
        "Mul", *((c.either("Mul", x, gate), c.constant(0.5)) if form == 1 else (x, c.op("Mul", gate, c.constant(0.5))))
    )


@pattern("silu")
def silu(c: Case) -> Sequence[str]:
    x = c.input(*c.dims())
    if c.rng.random() < 0.5:
        return [c.either("Mul", x, c.op("Sigmoid", x))]
    return [c.op("Div", x, c.either("Add", c.op("Exp", c.op("Neg", x)), c.constant(1)))]


@pattern("sigmoid")
def sigmoid(c: Case) -> Sequence[str]:
    below = c.either("Add", c.op("Exp", c.op("Neg", c.input(*c.dims()))), c.constant(1))
    return [c.op("Reciprocal", below) if c.rng.random() < 0.5 else c.op("Div", c.constant(1), below)]


@pattern("mish")
def mish(c: Case) -> Sequence[str]:
    x = c.input(*c.dims())
    softplus = (
        c.op("Log", c.either("Add", c.op("Exp", x), c.constant(1))) if c.rng.random() < 0.5 else c.op("Softplus", x)
    )
    return [c.either("Mul", x, c.op("Tanh", softplus))]


def _ramp(c: Case, x: str, limit: float = 6) -> str:
    line = c.either("Add", x, c.constant(3))
    form = c.rng.randrange(3)
    if form == 0:
        return c.op("Clip", line, c.constant(0), c.constant(limit))
    return c.either("Min", c.op("Relu", line) if form == 1 else c.either("Max", line, c.constant(0)), c.constant(limit))


@pattern("hard_swish")
def hard_swish(c: Case) -> Sequence[str]:
    x = c.input(*c.dims())
    if c.rng.random() < 0.3:
        return [c.either("Mul", x, c.op("HardSigmoid", x, alpha=1 / 6, beta=0.5))]
    if c.rng.random() < 0.5:
        return [c.op("Div", c.either("Mul", x, _ramp(c, x)), c.constant(6))]
    return [c.either("Mul", x, c.op("Div", _ramp(c, x), c.constant(6)))]


@pattern("hard_sigmoid")
def hard_sigmoid(c: Case) -> Sequence[str]:
    return [c.op("Div", _ramp(c, c.input(*c.dims())), c.constant(6))]


# --- Softmax and attention -----------------------------------------------------------


@pattern("softmax")
def softmax(c: Case) -> Sequence[str]:
    shape = c.dims()
    x, axes = c.input(*shape), [c.rng.randrange(len(shape))]
    shifted = c.op("Sub", x, c.op("ReduceMax", x, axes=axes)) if c.rng.random() < 0.7 else x
    exp = c.op("Exp", shifted)
    total = c.op("ReduceSum", exp, c.ints(*axes))
    form = c.rng.randrange(3)
    if form == 0:
        return [c.op("Div", exp, total)]
    return [c.op("Log", c.op("Div", exp, total)) if form == 1 else c.op("Sub", shifted, c.op("Log", total))]


@pattern("attention")
def attention(c: Case) -> Sequence[str]:
    b, h, s, t, e, f = 1 + c.rng.randrange(2), 2, c.rng.randint(2, 5), c.rng.randint(2, 6), 4, c.rng.choice([4, 3])
    q, k, v = c.input(b, h, s, e), c.input(b, h, t, e), c.input(b, h, t, f)
    scale = c.constant(0.5 if c.rng.random() < 0.5 else 0.7)
    q = c.either("Mul", q, scale) if c.rng.random() < 0.3 else q
    k = c.either("Mul", k, scale) if c.rng.random() < 0.3 else k
    scores = c.op("MatMul", q, c.op("Transpose", k, perm=[0, 1, 3, 2]))
    scores = c.op(c.rng.choice(["Mul", "Div"]), scores, scale) if c.rng.random() < 0.7 else scores
    if c.rng.random() < 0.6:
        scores = c.either(
            "Add", scores, c.weights(*c.rng.choice([(s, t), (1, 1, s, t), (b, 1, 1, t), (t,), (h, s, t)]))
        )
    return [c.op("MatMul", c.op("Softmax", scores, axis=-1), v)]


@pattern("attention")
def guarded_attention(c: Case) -> Sequence[str]:
    h, s, t, e = 2, 3, c.rng.randint(2, 6), 4
    q, k, v = c.input(1, h, s, e), c.input(1, h, t, e), c.input(1, h, t, e)
    scores = c.op("MatMul", c.either("Mul", q, c.constant(0.5)), c.op("Transpose", k, perm=[0, 1, 3, 2]))
    p = c.op("Softmax", c.either("Add", scores, c.weights(s, t)), axis=-1)
    return [c.op("MatMul", c.op("Where", c.op("IsNaN", p), c.constant(0), p), v)]


@pattern("attention")
def grouped_attention(c: Case) -> Sequence[str]:
    b, heads, repeats, s, t, e = 1 + c.rng.randrange(2), 2, c.rng.randint(2, 3), 3, 5, 4

    def repeated(x: str) -> str:
        single = c.op("Unsqueeze", x, c.ints(2))
        wide = c.op("Expand", single, c.ints(b, heads, repeats, t, e))
        return c.op("Reshape", wide, c.ints(b, heads * repeats, t, e))

    q, k, v = c.input(b, heads * repeats, s, e), repeated(c.input(b, heads, t, e)), repeated(c.input(b, heads, t, e))
    scores = c.op("MatMul", q, c.op("Transpose", k, perm=[0, 1, 3, 2]))
    scores = c.either("Mul", scores, c.constant(0.5))
    scores = c.either("Add", scores, c.weights(*c.rng.choice([(s, t), (1, 1, s, t), (b, heads * repeats, s, t)])))
    return [c.op("MatMul", c.op("Softmax", scores, axis=-1), v)]


# --- Rotary embeddings ----------------------------------------------------------------


def _angles(c: Case, s: int, width: int) -> str:
    return c.weights(*c.rng.choice([(s, width), (1, s, width), (1, 1, s, width), (width,), (1, width)]))


def _rotated(c: Case, x1: str, x2: str, cos: str, sin: str) -> tuple[str, str]:
    y1 = c.op("Sub", c.either("Mul", x1, cos), c.either("Mul", x2, sin))
    return y1, c.either("Add", c.either("Mul", x1, sin), c.either("Mul", x2, cos))


@pattern("rope")
def rope_halves(c: Case) -> Sequence[str]:
    s, half = c.rng.randint(2, 5), c.rng.randint(2, 4)
    x = c.input(1, 2, s, 2 * half)
    cos, sin = _angles(c, s, half), _angles(c, s, half)
    return [c.op("Concat", *_rotated(c, c.cut(x, 0, half), c.cut(x, half, 2 * half), cos, sin), axis=-1)]


@pattern("rope")
def rope_pairs(c: Case) -> Sequence[str]:
    s, half = c.rng.randint(2, 5), c.rng.randint(2, 4)
    x = c.input(1, 2, s, 2 * half)
    parts = [c.cut(x, 0, 2 * half, -1, 2), c.cut(x, 1, 2 * half, -1, 2)]
    rotated = _rotated(c, *parts, _angles(c, s, half), _angles(c, s, half))
    stacked = c.op("Concat", *(c.op("Unsqueeze", y, c.ints(4)) for y in rotated), axis=-1)
    return [c.op("Reshape", stacked, c.ints(1, 2, s, 2 * half))]


@pattern("rope")
def rotate_half(c: Case) -> Sequence[str]:
    s, half = c.rng.randint(2, 5), c.rng.randint(2, 4)
    x = c.input(1, 2, s, 2 * half)
    angle = c.input(1, 1, s, half) if c.rng.random() < 0.5 else c.weights(s, half)
    both = c.op("Concat", angle, angle, axis=-1)
    turned = c.op("Concat", c.op("Neg", c.cut(x, half, 2 * half)), c.cut(x, 0, half), axis=-1)
    return [c.either("Add", c.either("Mul", x, c.op("Cos", both)), c.either("Mul", turned, c.op("Sin", both)))]
