# SPDX-License-Identifier: Apache-2.0
"""Classes of Top ops by what they do to numbers, named as tessera-compile names them (without "top.")."""
from __future__ import annotations

from typing import Collection

MOVES = frozenset(
    "reshape transpose concat slice pad expand tile gather gather_elements gather_nd trilu depth_to_space "
    "space_to_depth where compare is_inf is_nan shape identity".split()
)
"""Ops that compute nothing: their results are elements of their operands, or truth values."""
ROUNDED = frozenset(
    "add sub mul div min max neg abs sign sqrt reciprocal relu leaky_relu prelu clip ceil floor round thresholded_relu "
    "cast dequantize shrink".split()
)
"""Ops that round an exact result once or twice."""
ROUNDING = frozenset("quantize requantize round floor ceil cast".split())
"""Ops whose results jump if an operand crosses a threshold."""
INTEGERS = frozenset("and or xor not bit_shift mod requantize".split())
FUNCTIONS = frozenset(
    "pow rsqrt exp log sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh erf sigmoid silu hard_swish mish "
    "softplus softsign gelu elu celu selu hard_sigmoid".split()
)
"""Elementwise functions whose results have an error of a few units in the last place, or of 2^-22."""
RECOVERED = frozenset(
    "gelu silu mish hard_swish hard_sigmoid sigmoid softplus softmax layer_norm attention rope reduce batch_norm "
    "group_norm".split()
)
"""Ops that a network may express as a formula of several nodes, which overflows or cancels where the op does not."""
_IEEE = MOVES | frozenset("add sub mul div neg abs sqrt reciprocal exp log return".split())
_NO_PRODUCTS = MOVES | frozenset("add sub min max neg abs sign and or xor not bit_shift cast clip relu return".split())
_ELEMENTWISE = MOVES | ROUNDED | INTEGERS | FUNCTIONS | {"return"}


def are_elementwise(ops: Collection[str]) -> bool:
    """Returns true if no op combines several elements of an operand."""
    return _ELEMENTWISE.issuperset(ops)


def define_special_values(ops: Collection[str]) -> bool:
    """Returns true if IEEE 754 defines what the ops make of infinity and NaN."""
    return _IEEE.issuperset(ops)


def keep_integers(ops: Collection[str]) -> bool:
    """Returns true if integers of the whole range overflow at most by additions, which wrap around."""
    return _NO_PRODUCTS.issuperset(ops)
