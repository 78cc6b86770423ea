# SPDX-License-Identifier: Apache-2.0
"""Chains of ops between an op and the quantisation of its result, and scales that put a value at a rounding tie.

An epilogue program is a short chain of elementwise functions and operations with a second operand: a residual of the
same shape, of one value per channel, or broadcast along some dims. Engines fuse such chains into the op before them, in
many ways, so a fault may show for one combination alone.
"""
from __future__ import annotations

import random
from typing import TYPE_CHECKING, Callable

import numpy as np

if TYPE_CHECKING:
    from random_quantized import QuantisedNetwork

Function = Callable[["QuantisedNetwork", str], str]


def _op(kind: str, **attributes: object) -> Function:
    return lambda net, x: net.raw(kind, [x], **attributes)[0]


def _scalar(net: QuantisedNetwork, value: float) -> str:
    return net.constant(np.array(value, np.float32))


def _with(kind: str, value: float, first: bool = False) -> Function:
    """Returns a function that adds an operation with a constant as its first or second operand."""

    def build(net: QuantisedNetwork, x: str) -> str:
        other = _scalar(net, value)
        return net.raw(kind, [other, x] if first else [x, other])[0]

    return build


def _chain(*functions: Function) -> Function:
    def build(net: QuantisedNetwork, x: str) -> str:
        for function in functions:
            x = function(net, x)
        return x

    return build


def _times(gate: Function) -> Function:
    return lambda net, x: net.raw("Mul", [x, gate(net, x)])[0]


def _gelu_of(curve: Function) -> Function:
    """0.5 x (1 + curve(x))"""
    return lambda net, x: net.raw("Mul", [_with("Mul", 0.5)(net, x), _with("Add", 1)(net, curve(net, x))])[0]


def _cubic(net: QuantisedNetwork, x: str) -> str:
    cube = _with("Mul", 0.044715)(net, _with("Pow", 3)(net, x))
    return _with("Mul", 0.7978845608)(net, net.raw("Add", [x, cube])[0])


def _clip(net: QuantisedNetwork, x: str) -> str:
    low, high = net.rng.choice([(-0.25, 1.5), (0, 6), (-1, 1)])
    return net.raw("Clip", [x, _scalar(net, low), _scalar(net, high)])[0]


_ABOVE_ZERO = _chain(_op("Abs"), _with("Add", 0.1))  # for functions that are undefined below zero

FUNCTIONS: dict[str, Function] = {
    "Relu": _op("Relu"),
    "LeakyRelu": _op("LeakyRelu"),
    "Clip": _clip,
    "Scale": _with("Mul", 0.75),
    "Sigmoid": _op("Sigmoid"),
    "Tanh": _op("Tanh"),
    "Gelu": _gelu_of(_chain(_with("Mul", 0.5**0.5), _op("Erf"))),
    "GeluTanh": _gelu_of(_chain(_cubic, _op("Tanh"))),
    "QuickGelu": _times(_chain(_with("Mul", 1.702), _op("Sigmoid"))),
    "Silu": _times(_op("Sigmoid")),
    "Mish": _times(_chain(_op("Softplus"), _op("Tanh"))),
    "HardSwish": _op("HardSwish"),
    "HardSigmoid": _op("HardSigmoid"),
    "Elu": _op("Elu"),
    "Selu": _op("Selu"),
    "Celu": _op("Celu", alpha=0.7),
    "Softplus": _op("Softplus"),
    "Softsign": _op("Softsign"),
    "ThresholdedRelu": _op("ThresholdedRelu", alpha=0.3),
    "Erf": _op("Erf"),
    "Exp": _op("Exp"),
    "Log": _chain(_ABOVE_ZERO, _op("Log")),
    "Log1p": _chain(_op("Abs"), _with("Add", 1), _op("Log")),
    "Sqrt": _chain(_op("Abs"), _op("Sqrt")),
    "SqrtOfAny": _op("Sqrt"),  # NaN for negative numbers, which becomes the integer 0
    "Reciprocal": _chain(_ABOVE_ZERO, _op("Reciprocal")),
    "Abs": _op("Abs"),
    "Neg": _op("Neg"),
    "Floor": _op("Floor"),
    "Ceil": _op("Ceil"),
    "Round": _op("Round"),
    "Sign": _op("Sign"),
    "Sin": _op("Sin"),
    "Cos": _op("Cos"),
    "Atan": _op("Atan"),
    "Sinh": _op("Sinh"),
    "Asinh": _op("Asinh"),
    "Square": _with("Pow", 2),
    "Cube": _with("Pow", 3),
    "FourthPower": _with("Pow", 4),
    "Root": _chain(_ABOVE_ZERO, _with("Pow", 0.37)),
    "From1": _with("Sub", 1, first=True),
    "Divided": _chain(_ABOVE_ZERO, _with("Div", 0.3, first=True)),
}
# Functions that engines give special treatment, or that networks have most, are drawn more often.
_COMMON = ["Relu", "LeakyRelu", "Clip", "Gelu", "GeluTanh", "Silu", "Softplus", "Mish", "HardSwish", "Sigmoid", "Tanh"]


def draw_function(net: QuantisedNetwork, value: str) -> str:
    names = _COMMON if net.rng.random() < 0.6 else list(FUNCTIONS)
    return FUNCTIONS[net.rng.choice(names)](net, value)


def _beside(net: QuantisedNetwork, shape: tuple[int, ...] | None) -> str:
    """Returns a second operand for a value of this shape that broadcasts to it."""
    if shape is None:  # the sizes of the value are unknown
        return net.weights(offset=1.2, scale=0.2)
    r = net.rng
    kind = r.choice(["same", "same", "same", "new", "new", "broadcast", "channels", "scalar"])
    other = net.pick(lambda s: s == shape) if kind == "same" else None
    if other:
        return other
    if kind == "scalar":
        return net.weights(offset=1.2, scale=0.2)
    if kind == "channels":
        axis = 1 if len(shape) > 3 else len(shape) - 1
        return net.weights(*(d if i == axis else 1 for i, d in enumerate(shape)), offset=0.5)
    if kind == "broadcast":
        shape = tuple(d if r.random() < 0.5 else 1 for d in shape)[r.choice([0, 0, len(shape) // 2]) :]
    net.add_input(shape or (1,))
    return next(reversed(net.values))


def draw_epilogue(net: QuantisedNetwork, value: str, shape: tuple[int, ...] | None) -> str:
    """Appends a random epilogue program to `value`, which is not a value of the network yet: functions (f) and
    operations with a second operand (+)."""
    r = net.rng
    for step in r.choice(["f", "f", "ff", "+", "+f", "+f", "+f", "f+", "+f+", "f+f"]):
        if step == "f":
            value = draw_function(net, value)
        else:
            operands = [value, _beside(net, shape)]
            kind = r.choice(["Add", "Add", "Add", "Sub", "Mul", "Max", "Min"])
            if r.random() < 0.3:
                operands.reverse()
            value = net.raw(kind, operands)[0]
    return value


def tie_scale(values: np.ndarray, low: int, high: int, rng: random.Random) -> float | None:
    """Returns a scale for which one of the float32 `values`, divided by it, is as close as possible to the middle of
    two integers from low to high; None if there is no such value."""
    numbers = values[np.isfinite(values) & (values != 0)].reshape(-1)
    if low >= 0:
        numbers = numbers[numbers > 0]
    if high <= 0:
        numbers = numbers[numbers < 0]
    if not len(numbers):
        return None
    number = np.float32(rng.choice(numbers))
    most = high if number > 0 else -low
    # A half of a small integer, one in the range's middle, or the last one before results saturate.
    middle = np.float32(rng.choice([0, rng.randrange(most), rng.randrange(most), most - 1]) + 0.5)
    scale = np.float32(abs(number) / middle)
    near = [scale, *(np.nextafter(scale, np.float32(end)) for end in (0, np.inf))]
    found = [s for s in near if 1e-12 < s < 1e12 and abs(abs(number) / s - middle) <= 1e-6 * max(1, middle)]
    return float(rng.choice(found)) if found else None
