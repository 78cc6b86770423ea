# SPDX-License-Identifier: Apache-2.0
"""Elementary functions over all exponents, against references of extended precision.

Every function is an ONNX operator of its own in one network. In f32 its argument takes every exponent, with random and
extreme mantissas, and the special values: zeros, subnormals, infinities, NaN, neighbours of thresholds and of multiples
of pi / 2; in bf16 and f16 it takes every number. The largest errors are the table of docs/numerics.md:
    build/bin/tessera-python regression/conformance/elementary.py [--update] [--blocks 32]
"""
from __future__ import annotations

import argparse
import dataclasses
import math
import sys
import tempfile
from pathlib import Path
from typing import Callable, Iterable, Mapping, Sequence

import numpy as np
from engines import Compiler, deploy, run_bmodel, supported_isas
from onnx import TensorProto, helper

PAGE = Path(__file__).resolve().parents[2] / "docs/numerics.md"
BEGIN, END = "<!-- elementary functions: begin -->\n", "<!-- elementary functions: end -->\n"
Wide = np.longdouble
Array = np.ndarray


@dataclasses.dataclass(frozen=True)
class Function:
    """An operator and its definition. Errors are in units in the last place of the result, or of `scale` if that is
    larger, for formulas that cancel."""

    definition: Callable[..., Array]
    attributes: dict[str, float | str | int] = dataclasses.field(default_factory=dict)
    scale: Callable[[Array], Array] | None = None
    unit: str = "result"
    operators: tuple[str, ...] = ()  # operators instead of the one that gives the function its name
    operands: tuple[str, ...] = ("x",)


def _erfc(x: Array) -> Array:
    return np.array([math.erfc(float(value)) for value in x], Wide)


def _erf(x: Array) -> Array:
    return np.array([math.erf(float(value)) for value in x], Wide)


def _softplus(x: Array) -> Array:
    return np.log1p(np.exp(-np.abs(x))) + np.maximum(x, 0)


def _sigmoid(x: Array) -> Array:
    return np.where(x < 0, np.exp(x) / (1 + np.exp(x)), 1 / (1 + np.exp(-x)))


def _gelu_tanh(x: Array) -> Array:
    inner = np.sqrt(2 / Wide(np.pi)) * (x + Wide(0.044715) * x**3)
    return x / (1 + np.exp(-2 * inner))


def _f32(value: float) -> Wide:
    return Wide(np.float32(value))


def _elu(x: Array, alpha: float) -> Array:
    return np.where(x < 0, _f32(alpha) * np.expm1(np.minimum(x, 0)), x)


def _size(x: Array) -> Array:
    return np.abs(x)


def _one(x: Array) -> Array:
    return np.ones_like(x)


GAMMA, ALPHA = 1.05070102214813232421875, 1.67326319217681884765625
FUNCTIONS: dict[str, Function] = {
    "Sin": Function(np.sin),
    "Cos": Function(np.cos),
    "Tan": Function(np.tan),
    "Asin": Function(np.arcsin),
    "Acos": Function(np.arccos),
    "Atan": Function(np.arctan),
    "Sinh": Function(np.sinh),
    "Cosh": Function(np.cosh),
    "Tanh": Function(np.tanh),
    "Asinh": Function(np.arcsinh),
    "Acosh": Function(np.arccosh),
    "Atanh": Function(np.arctanh),
    "Exp": Function(np.exp),
    "Log": Function(np.log),
    "Sqrt": Function(np.sqrt),
    "Reciprocal": Function(lambda x: 1 / x),
    "Rsqrt": Function(lambda x: 1 / np.sqrt(x), operators=("Sqrt", "Reciprocal")),
    "Erf": Function(_erf),
    "Sigmoid": Function(_sigmoid),
    "Softplus": Function(_softplus),
    "Softsign": Function(lambda x: x / (1 + np.abs(x))),
    "Silu": Function(lambda x: x * _sigmoid(x), operators=("Sigmoid", "Mul")),
    "Mish": Function(lambda x: x * np.tanh(_softplus(x))),
    "Gelu": Function(lambda x: x * _erfc(-x / np.sqrt(Wide(2))) / 2, scale=_size, unit="x"),
    "Gelu tanh": Function(_gelu_tanh, {"approximate": "tanh"}, scale=_size, unit="x", operators=("Gelu",)),
    "Elu": Function(lambda x: _elu(x, 1), {"alpha": 1.0}, scale=_one, unit="1"),
    "Celu": Function(lambda x: _elu(x, 1), {"alpha": 1.0}, scale=_one, unit="1"),
    "Selu": Function(lambda x: _f32(GAMMA) * _elu(x, ALPHA), scale=_one, unit="1"),
    "HardSigmoid": Function(lambda x: np.clip(_f32(0.2) * x + Wide(0.5), 0, 1), scale=_one, unit="1"),
    "Pow": Function(np.power, operands=("a", "b")),
    "Mod (fmod=1)": Function(np.fmod, {"fmod": 1}, operators=("Mod",), operands=("a", "b")),
    "HardSwish": Function(lambda x: x * np.clip(x / 6 + Wide(0.5), 0, 1), scale=_size, unit="x"),
}


# ===----------------------------------------------------------------------=== #
# Arguments
# ===----------------------------------------------------------------------=== #


def _neighbours(values: Iterable[float], count: int = 3) -> Array:
    """Returns `values` as f32 with `count` neighbours on each side of each value, all with both signs."""
    middle = np.array(list(values), np.float32)
    found = [middle]
    for direction in (np.float32(-np.inf), np.float32(np.inf)):
        near = middle
        for _ in range(count):
            near = np.nextafter(near, direction)
            found.append(near)
    both = np.concatenate(found)
    return np.concatenate([both, -both])


# Where functions change their formula, overflow or leave the normal numbers.
THRESHOLDS = (
    *(0.0, 0.5, 0.625, 0.66, 0.927734375, 1.0, 2.0, 2.41421356, 3.0, 3.1, 4.0, 4.2, 8.0, 9.0, 17.0, 30.0, 80.0, 87.0),
    *(87.3365, 88.0, 88.72283, 89.0, 89.4159, 103.2789, 103.972, 104.0, 105.0, 2.0**20, 1e8, 1e9, 1e12, 1.7e20, 1e30),
)


def _mantissas(generator: np.random.Generator, block: int, count: int, bits: int) -> Array:
    """Returns `count` mantissas: all bits 0 in the first block, all bits 1 in the second, random in other blocks."""
    if block < 2:
        return np.full(count, block * ((1 << bits) - 1), np.uint64)
    return generator.integers(0, 1 << bits, count, np.uint64)


def singles(block: int) -> Array:
    """Returns f32 values of every exponent and both signs; the first block also contains the special values."""
    generator = np.random.default_rng(block)
    bits = _mantissas(generator, block, 255, 23) | (np.arange(255, dtype=np.uint64) << 23)
    every = bits.astype(np.uint32).view(np.float32)
    # sin, cos and tan cancel near multiples of pi / 2; 16367173 * 2^72 is the f32 closest to one.
    turns = generator.integers(1, 1 << 22, 4).astype(Wide) * np.pi / 2
    far = np.exp2(generator.uniform(20, 128, 4))
    largest = np.finfo(np.float32).max
    parts = [
        every,
        -every,
        _neighbours(turns, 1),
        np.minimum(far, largest).astype(np.float32),
        generator.uniform(-10, 10, 64).astype(np.float32),
    ]
    if block == 0:
        special = [16367173.0 * 2.0**72, np.inf, -np.inf, np.nan, largest, 2.0**-149]
        parts += [_neighbours(THRESHOLDS), np.array(special, np.float32)]
    return np.concatenate(parts)


def doubles(block: int) -> Array:
    """Returns the values of singles() as f64, and f64 values of every exponent and both signs."""
    generator = np.random.default_rng(block)
    bits = _mantissas(generator, block, 2047, 52) | (np.arange(2047, dtype=np.uint64) << 52)
    turns = generator.integers(1, 1 << 22, 16) * (np.pi / 2)
    # The first is the f64 that comes closest to a multiple of pi / 2.
    edges = [6381956970095103.0 * 2.0**797, np.finfo(np.float64).max, 709.78, 710.0, 711.0, 745.1, 746.0, 1e300]
    both = np.concatenate([bits.view(np.float64), turns, edges if block == 0 else []])
    return np.concatenate([singles(block).astype(np.float64), both, -both])


# Exponents of powers that are whole, halves or special.
POWERS = (*range(-40, 41), *np.arange(-4.5, 5), 0.1, -0.0, np.inf, -np.inf, np.nan, 2.0**24 + 2, 2.0**60)


def _with_pairs(x: Array, block: int, precision: str) -> dict[str, Array]:
    """Returns x, and pairs (a, b) of its values. Some values of b are exponents that are interesting for powers."""
    generator = np.random.default_rng(block)
    a, b = generator.permutation(x), generator.permutation(x)
    b[::3] = generator.choice(np.array(POWERS, x.dtype), len(b[::3]))
    with np.errstate(all="ignore"):  # powers that neither overflow nor vanish
        reach = 140 / np.log2(np.abs(a[1::3]))
        b[1::3] = np.where(np.isfinite(reach), reach, 1) * generator.uniform(-1, 1, len(reach))
    return {"x": x, "a": a, "b": _rounded(b, precision)}


def arguments(precision: str, blocks: int) -> dict[str, Array]:
    """Returns the arguments of the network as f32 or f64. A 16-bit type gets all its values, or a part of them if
    `blocks` is below 16."""
    if precision in ("F16", "BF16"):
        bits = np.arange(1 << 16, dtype=np.uint16)
        x = bits.view(np.float16).astype(np.float32) if precision == "F16" else _from_bf16(bits)
        every = _with_pairs(x, 0, precision)
        return {name: array[:: max(1, 16 // blocks)] for name, array in every.items()}
    draw = doubles if precision == "F64" else singles
    drawn = [_with_pairs(draw(block), block, precision) for block in range(blocks)]
    return {name: np.concatenate([each[name] for each in drawn]) for name in drawn[0]}


def _from_bf16(bits: Array) -> Array:
    return (bits.astype(np.uint32) << 16).view(np.float32)


def _rounded(values: Array, precision: str) -> Array:
    if precision == "F16":
        with np.errstate(over="ignore"):
            return values.astype(np.float16).astype(np.float32)
    return (values.view(np.uint32) & 0xFFFF0000).view(np.float32) if precision == "BF16" else values


# ===----------------------------------------------------------------------=== #
# The network
# ===----------------------------------------------------------------------=== #

ELEMENTS = {
    "F64": TensorProto.DOUBLE,
    "F32": TensorProto.FLOAT,
    "BF16": TensorProto.BFLOAT16,
    "F16": TensorProto.FLOAT16,
}


def _tensor(name: str) -> str:
    return "".join(letter if letter.isalnum() else "_" for letter in name)


def network(count: int, names: Iterable[str], element: int) -> bytes:
    nodes, outputs = [], []
    for name in names:
        function, y = FUNCTIONS[name], _tensor(name)
        first, *second = function.operators or (name,)
        middle = f"{y}_inner" if second else y
        nodes.append(helper.make_node(first, function.operands, [middle], name=middle, **function.attributes))
        if second:
            operands = ["x", middle] if second == ["Mul"] else [middle]
            nodes.append(helper.make_node(second[0], operands, [y], name=y))
        outputs.append(helper.make_tensor_value_info(y, element, [count]))
    inputs = [helper.make_tensor_value_info(name, element, [count]) for name in ("x", "a", "b")]
    graph = helper.make_graph(nodes, "elementary", inputs, outputs)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 22)], ir_version=10).SerializeToString()


def run(
    compiler: Compiler, chip: str, precision: str, given: Mapping[str, Array], names: Iterable[str]
) -> dict[str, Array]:
    """Returns the results of each function on a chip."""
    names = list(names)
    with tempfile.TemporaryDirectory() as folder:
        model, mlir = Path(folder) / "m.onnx", Path(folder) / "m_top.mlir"
        model.write_bytes(network(len(given["x"]), names, ELEMENTS[precision]))
        compiler("import", "import", "--onnx", model, "--output", mlir)
        bmodel = deploy(compiler, mlir, chip, "--quantize", "F32" if precision == "F64" else precision)
        narrow = {name: array.astype(np.float16) for name, array in given.items()} if precision == "F16" else given
        got = run_bmodel(bmodel, narrow, list(given) if precision == "BF16" else [], threads=(1,))
    return {name: got[_tensor(name)] for name in names}


# ===----------------------------------------------------------------------=== #
# Errors
# ===----------------------------------------------------------------------=== #

# Bits of the mantissa, the exponents of the least normal number and of the first beyond the largest.
TYPES = {"F64": (53, -1022, 1024), "F32": (24, -126, 128), "BF16": (8, -126, 128), "F16": (11, -14, 16)}


@dataclasses.dataclass
class Errors:
    """Errors of one function: the largest in ulp and its argument, the largest exact result that was flushed to 0, and
    the arguments whose results are of another kind: NaN, an infinity, or a zero of the wrong sign."""

    worst: float
    at: float
    flushed: float
    wrong: Array


def _ulp(value: Array, precision: str) -> Array:
    digits, least, _ = TYPES[precision]
    exponent = np.frexp(np.maximum(np.abs(value), Wide(2) ** least))[1]
    return np.ldexp(Wide(1), exponent - digits)


def _operands(name: str, given: Mapping[str, Array]) -> list[Array]:
    with np.errstate(invalid="ignore"):  # signalling NaN
        return [given[operand].astype(Wide) for operand in FUNCTIONS[name].operands]


def definition_of(name: str, given: Mapping[str, Array]) -> Array:
    """Computes the results in extended precision."""
    with np.errstate(all="ignore"):
        return FUNCTIONS[name].definition(*_operands(name, given))


def errors_of(name: str, precision: str, given: Mapping[str, Array], got: Array, want: Array) -> Errors:
    function, operands = FUNCTIONS[name], _operands(name, given)
    digits, least, top = TYPES[precision]
    with np.errstate(all="ignore"):
        size = np.maximum(np.abs(want), function.scale(operands[0])) if function.scale else np.abs(want)
        last = np.ldexp(Wide(1), top) * (1 - np.ldexp(Wide(1), -digits))  # the largest number
        # Infinity counts as the number after the largest one.
        both = [np.where(np.isinf(y), np.copysign(np.ldexp(Wide(1), top), y), y) for y in (want, got.astype(Wide))]
        beyond = np.abs(want) > last
        both[0] = np.where(beyond, np.copysign(np.minimum(np.abs(both[0]), np.ldexp(Wide(1), top)), want), both[0])
        isNumber = ~(np.isnan(want) | np.isnan(got))
        # A product with a factor below twice the least normal number may be 0, too.
        smallest = np.ldexp(np.maximum(Wide(1), np.abs(operands[0])), least + 1)
        isFlushed = (
            isNumber & (got == 0) & (np.abs(want) > np.ldexp(Wide(1), least - digits)) & (np.abs(want) < smallest)
        )
        error = np.abs(both[1] - both[0]) / _ulp(np.where(isNumber, np.minimum(size, last), 1), precision)
        error = np.where(isNumber & ~isFlushed, error, 0)
        isWrong = (np.isnan(want) != np.isnan(got)) | (isNumber & np.isinf(got) & (np.abs(want) < last))
        if not function.scale:
            isWrong |= (want == 0) & (got == 0) & (np.signbit(want) != np.signbit(got))
    at = int(np.argmax(error))
    x = operands[0]
    flushed = np.abs(want[isFlushed]).max(initial=0)
    return Errors(float(error[at]), float(x[at]), float(flushed), x[isWrong].astype(np.float64))


ISAS = tuple(supported_isas("x86-avx512bf16"))
# Columns of the table: chips and a precision. f64 and the types of 16 bits are models whose tensors have that type.
COLUMNS: dict[str, tuple[tuple[str, ...], str]] = {
    "x86 f32": (ISAS, "F32"),
    "x86 f64": (("x86-v2", "x86"), "F64"),
    "npu f32": (("npu-base",), "F32"),
    "cuda f32": (("cuda",), "F32"),
    "bf16": ((*ISAS, "npu-base", "cuda"), "BF16"),
    "f16": ((*ISAS, "npu-base", "cuda"), "F16"),
}


def measure(
    compiler: Compiler, column: str, blocks: int, names: Iterable[str] = FUNCTIONS, chips: Sequence[str] = ()
) -> dict[str, list[Errors]]:
    """Measures each function on all chips of a column, or on those of `chips`. Returns one Errors per chip."""
    all_chips, precision = COLUMNS[column]
    given = arguments(precision, blocks)
    exact = {name: definition_of(name, given) for name in names}
    found: dict[str, list[Errors]] = {name: [] for name in names}
    for chip in chips or all_chips:
        for name, got in run(compiler, chip, precision, given, names).items():
            found[name].append(errors_of(name, precision, given, got, exact[name]))
    return found


# ===----------------------------------------------------------------------=== #
# The table
# ===----------------------------------------------------------------------=== #


def bound_of(worst: float) -> float:
    """Returns the error as the table states it: two digits, rounded up."""
    step = 10.0 ** (math.floor(math.log10(worst)) - 1) if worst >= 1 else 0.01
    return round(math.ceil(worst / step) * step, 2)


def table(cells: Mapping[str, Mapping[str, float]]) -> str:
    """Returns the lines of the page: one function per line, its largest errors by column."""
    lines = ["| function | ulp of | " + " | ".join(COLUMNS) + " |", "|---|---|" + "---|" * len(COLUMNS)]
    for name, function in FUNCTIONS.items():
        lines.append(f"| {name} | {function.unit} | " + " | ".join(f"{cells[c][name]:g}" for c in COLUMNS) + " |")
    return "\n".join(lines) + "\n"


def read_table() -> dict[str, dict[str, float]]:
    """Returns the bounds stated on the page, by column and function."""
    lines = PAGE.read_text().split(BEGIN)[1].split(END)[0].splitlines()
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("|")]
    return {column: {row[0]: float(row[2 + index]) for row in rows[2:]} for index, column in enumerate(rows[0][2:])}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--blocks", type=int, default=32, help="numbers of each exponent and sign")
    parser.add_argument("--columns", nargs="*", default=list(COLUMNS), choices=list(COLUMNS))
    parser.add_argument("--functions", nargs="*", default=list(FUNCTIONS))
    parser.add_argument("--update", action="store_true", help=f"writes the table into {PAGE.name}")
    options = parser.parse_args()
    compiler, cells, wrong = Compiler(), {}, 0
    for column in options.columns:
        cells[column] = {}
        for name, found in measure(compiler, column, options.blocks, options.functions).items():
            worst = max(found, key=lambda errors: errors.worst)
            cells[column][name] = bound_of(worst.worst)
            strange = np.concatenate([errors.wrong for errors in found])
            wrong += len(strange)
            flushed = max(errors.flushed for errors in found)
            print(
                f"{column:9} {name:13} {worst.worst:9.4g} ulp at {worst.at:<15.9g}"
                + (f" 0 for up to {flushed:.2g}" if flushed else "")
                + (f"  WRONG: {len(strange)}, e.g. {strange[:4]}" if len(strange) else ""),
                flush=True,
            )
    compiler.close()
    if options.update:
        before, rest = PAGE.read_text().split(BEGIN)
        PAGE.write_text(before + BEGIN + table(cells) + END + rest.split(END)[1])
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
