# SPDX-License-Identifier: Apache-2.0
"""Random cases of single quantised ops: every instruction set gives the bits of the device reference, on 1 and 2
threads.

Odd shapes, channel tails from 1 to 67, zero points anywhere, values far beyond the range, scales that are powers of two
(so that halves, negative ones too, occur exactly) or by which a result lies next to a tie. Several cases of a family
share a model. Families "... with epilogue" have a program of elementwise functions and residuals (epilogues.py) behind
the op, and readers of its result.
    build/bin/tessera-python regression/conformance/random_ops.py [--cases 2000] [--family conv] [--isa x86-v2]
    [--epilogues] [--first 0] [--rotate] [--keep FOLDER]
"""
from __future__ import annotations

import argparse
import collections
import os
import sys
import tempfile
import time
import zlib
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Callable, Sequence

import numpy as np
import onnx
import random_graphs as g
import seed_runner
import random_network
import random_quantized as q
from epilogues import draw_function
from engines import GPUS, StageError, deploy, run_bmodel, supported_isas
from onnx import TensorProto, helper
from random_network import MAX_ELEMENTS, Shape, positions

VARIANTS = supported_isas("x86-avx512vnni", "x86-avx512bf16")
# CUDA where BMRT_LIBCUDA names a driver, which may be the PTX machine.
CHIPS = (*VARIANTS, "x86", *q.NPUS, *(GPUS if os.environ.get("BMRT_LIBCUDA") else ()))
CASES_PER_MODEL = 20
ONNX_TYPES = {
    np.dtype(np.int8): TensorProto.INT8,
    np.dtype(np.uint8): TensorProto.UINT8,
    np.dtype(np.int16): TensorProto.INT16,
    np.dtype(np.uint16): TensorProto.UINT16,
    np.dtype(np.int32): TensorProto.INT32,
    np.dtype(np.float32): TensorProto.FLOAT,
}


class OpCases(q.QuantisedNetwork):
    """Cases with one op each, side by side in one graph; `cases` are the integer outputs of each."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed, has_ties=True)
        self.cases: list[dict[str, tuple[np.dtype, Shape]]] = []
        self.nodes_of_cases: list[set[str]] = []
        self.mixed = self.words

    def begin(self, family: str) -> None:
        self.words = self.mixed and not family.startswith("integer")  # integer ops only take bytes
        self.epilogue_share = 1.0 if family.endswith(EPILOGUE) else 0.2
        self.values.clear()
        self.integers.clear()
        self.first_node = len(self.nodes)
        self.wide: dict[str, tuple[np.dtype, Shape]] = {}

    def end(self, given: set[str]) -> None:
        nodes = self.nodes[self.first_node :]
        read = {name for node in nodes for name in node.input}
        outputs = {
            self.integers[name]: (self.parameters[name][1].dtype, shape)
            for name, shape in self.values.items()
            if name not in given and (name not in read or self.rng.random() < 0.3)
        }
        self.cases.append({**outputs, **self.wide})
        self.nodes_of_cases.append({node.name for node in nodes})

    def quantise(self, value: str, shape: Shape, parameters: tuple[float, np.ndarray] | None = None) -> str:
        """Quantises a value; sometimes the float result of an epilogue is compared, too."""
        if self.epilogue_share == 1 and value not in self.inputs and self.rng.random() < 0.2:
            self.wide[value] = (np.dtype(np.float32), shape)
        return super().quantise(value, shape, parameters)

    def draw_parameters(self) -> tuple[float, np.ndarray]:
        scale, zero = super().draw_parameters()
        return (float(2.0 ** round(np.log2(scale))) if self.rng.random() < 0.5 else scale), zero

    def add_input(self, shape: Shape) -> None:
        super().add_input(shape)
        name = f"x{len(self.inputs) - 1}"
        self.inputs[name] *= np.float32(self.rng.choice([0.3, 1, 1, 8]))
        if self.rng.random() < 0.3:  # half steps
            scale = self.parameters[next(reversed(self.values))][0]
            self.inputs[name] = ((np.floor(self.inputs[name] / scale) + 0.5) * scale).astype(np.float32)

    def bytes_of(self, value: str) -> tuple[str, np.ndarray]:
        """Returns the integers of a value and their zero point."""
        return self.integers[value], self.parameters[value][1]

    def given(self, i: int = 0) -> tuple[str, Shape]:
        name = list(self.values)[i]
        return name, self.values[name]


def image(net: OpCases) -> Shape:
    r = net.rng
    return (r.choice([1, 1, 1, 2]), r.randint(1, 67), r.randint(1, 13), r.randint(1, 13))


def image_of_fewer_channels(net: OpCases) -> Shape:
    """Returns the shape of an image. If activations may have 16 bits, it has at most 20 channels, so that all taps of a
    5x5 window sum exactly in 32 bits. With more channels the compiler keeps a float convolution, whose order of
    summation differs between engines."""
    n, c, h, w = image(net)
    return (n, min(c, 20) if net.words else c, h, w)


def matrix(net: OpCases) -> Shape:
    r = net.rng
    return r.choice(
        [
            (r.randint(1, 40), r.randint(1, 130)),
            (r.randint(1, 3), r.randint(1, 20), r.randint(1, 67)),
            (1, r.randint(1, 4), r.randint(1, 20), r.randint(1, 67)),
        ]
    )


def any_shape(net: OpCases) -> Shape:
    return net.rng.choice([image, matrix])(net)


def one(shape: Callable[[OpCases], Shape], op: Callable[..., bool]) -> Callable[[OpCases], bool]:
    """Returns a family whose op reads one value of this shape."""

    def build(net: OpCases) -> bool:
        net.add_input(shape(net))
        return op(net)

    return build


def make_conv(kind: str) -> Callable[[OpCases], bool]:
    def conv(net: OpCases) -> bool:
        r = net.rng
        n, c, h, w = net.given()[1]
        kh, kw = r.choice([(1, 1), (3, 3), (3, 3), (5, 5), (1, 3), (4, 2), (7, 7)])
        stride, dilation = r.choice([1, 1, 2, 3]), r.choice([2, 3]) if kind == "dilated" else 1
        pads = [r.randint(0, k // 2 + 1) for k in (kh, kw, kh, kw)]
        oh = positions(h, kh, stride, (pads[0], pads[2]), dilation)
        ow = positions(w, kw, stride, (pads[1], pads[3]), dilation)
        group = (
            c
            if kind == "depthwise"
            else r.choice([d for d in range(1, c + 1) if c % d == 0])
            if kind == "grouped"
            else 1
        )
        m = c * r.choice([1, 1, 2]) if kind == "depthwise" else group * r.randint(1, max(1, 67 // group))
        if min(oh, ow) < 1 or n * m * oh * ow > MAX_ELEMENTS:
            return False
        operands = [net.given()[0], net.weights(m, c // group, kh, kw, scale=(c // group * kh * kw) ** -0.5)]
        operands += [net.weights(m)] if r.random() < 0.6 else []
        net.node(
            "Conv", operands, [(n, m, oh, ow)], strides=[stride] * 2, pads=pads, dilations=[dilation] * 2, group=group
        )
        return True

    return one(image, conv)


def volume(net: OpCases) -> Shape:
    r = net.rng
    return (r.choice([1, 1, 1, 2]), r.randint(1, 40), r.randint(1, 6), r.randint(1, 9), r.randint(1, 9))


def volume_conv(net: OpCases) -> bool:
    return bool(g.volume_conv_of(net, net.given()[0]))


def volume_pool(net: OpCases) -> bool:
    return bool(g.volume_pool_of(net, net.given()[0]))


def two_activations(net: OpCases) -> bool:
    r = net.rng
    batch = tuple(r.randint(1, 3) for _ in range(r.randint(0, 2)))
    m, k, n = r.randint(1, 30), r.randint(1, 100), r.randint(1, 67)
    net.add_input((*batch, m, k))
    net.add_input((*batch, k, n))
    net.node("MatMul", [net.given()[0], net.given(1)[0]], [(*batch, m, n)])
    return True


def binary(op: str) -> Callable[[OpCases], bool]:
    def build(net: OpCases) -> bool:
        shape = any_shape(net)
        net.add_input(shape)
        other = tuple(d if net.rng.random() < 0.6 else 1 for d in shape) if net.rng.random() < 0.6 else shape
        net.add_input(other)
        operands = [net.given()[0], net.given(1)[0]]
        if net.rng.random() < 0.5:
            operands.reverse()
        net.node(op, operands, [shape])
        return True

    return build


def divide(net: OpCases) -> bool:
    """Adds a division by constants; dividing by integers, some of which represent 0, would give NaN, which has no
    specified integer."""
    x, shape = net.given()
    divisor = [d if net.rng.random() < 0.6 else 1 for d in shape]
    net.node("Div", [x, net.weights(*divisor, scale=0.3, offset=net.rng.choice([-1.7, 1.7]))], [shape])
    return True


def concat(net: OpCases) -> bool:
    shape = any_shape(net)
    axis = net.rng.randrange(len(shape))
    for _ in range(net.rng.randint(2, 4)):
        net.add_input((*shape[:axis], net.rng.randint(1, 40), *shape[axis + 1 :]))
    total = sum(s[axis] for s in net.values.values())
    net.node("Concat", list(net.values), [(*shape[:axis], total, *shape[axis + 1 :])], axis=axis)
    return True


def average_pool(net: OpCases) -> bool:
    if net.rng.random() < 0.2:
        x, shape = net.given()
        net.node("GlobalAveragePool", [x], [(*shape[:2], 1, 1)])
        return True
    return q.pool_windows(net, "AveragePool", net.given()[0], count_include_pad=net.rng.randint(0, 1))


def resize(mode: str) -> Callable[[OpCases], bool]:
    def build(net: OpCases) -> bool:
        x, (n, c, h, w) = net.given()
        target = (n, c, net.rng.randint(1, 2 * h + 2), net.rng.randint(1, 2 * w + 2))
        if np.prod(target) > MAX_ELEMENTS:
            return False
        net.node(
            "Resize",
            [x, "", "", net.ints(*target)],
            [target],
            mode=mode,
            coordinate_transformation_mode=net.rng.choice(["asymmetric", "half_pixel", "align_corners"]),
        )
        return True

    return one(image, build)


def reduce(net: OpCases) -> bool:
    x, shape = net.given()
    axes = sorted(net.rng.sample(range(len(shape)), net.rng.randint(1, len(shape))))
    result = tuple(1 if i in axes else d for i, d in enumerate(shape))
    op = net.rng.choice(
        ["ReduceMean", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceL2", "ReduceSumSquare", "ReduceL1"]
    )
    net.node(op, [x], [result], axes=axes, keepdims=1)
    return True


def softmax(net: OpCases) -> bool:
    x, shape = net.given()
    net.node(net.rng.choice(["Softmax", "Softmax", "LogSoftmax"]), [x], [shape], axis=net.rng.randrange(len(shape)))
    return True


def layer_norm(net: OpCases) -> bool:
    x, shape = net.given()
    net.node("LayerNormalization", [x, net.weights(shape[-1], offset=1.0), net.weights(shape[-1])], [shape], axis=-1)
    return True


def rms_norm(net: OpCases) -> bool:
    x, shape = net.given()
    square = net.raw("Mul", [x, x])[0]
    mean = net.raw("ReduceMean", [square], axes=[-1], keepdims=1)[0]
    root = net.raw("Sqrt", [net.raw("Add", [mean, net.constant(np.float32(1e-5))])[0]])[0]
    y = net.raw("Mul", [net.raw("Div", [x, root])[0], net.weights(shape[-1], offset=1.0)])[0]
    net.quantise(y, shape)
    return True


def activation(net: OpCases) -> bool:
    """Adds functions of one byte (tables), and of the float result of another op."""
    x, shape = net.given()
    value = x
    if net.rng.random() < 0.5:
        value = net.raw("Add", [x, net.weights(*([1] * (len(shape) - 1)), shape[-1])])[0]
    net.quantise(draw_function(net, value), shape)
    return True


def attention(net: OpCases) -> bool:
    r = net.rng
    heads, s, t, e, f = r.randint(1, 4), r.randint(1, 20), r.randint(1, 40), r.randint(1, 40), r.randint(1, 40)
    for shape in ((1, heads, s, e), (1, heads, e, t), (1, heads, t, f)):
        net.add_input(shape)
    query, key, value = list(net.values)
    scores = net.raw("Mul", [net.raw("MatMul", [query, key])[0], net.constant(np.float32(e**-0.5))])[0]
    weights = net.quantise(
        net.raw("Softmax", [scores], axis=-1)[0], (1, heads, s, t), (1 / 256, np.array(-128, np.int8))
    )
    net.node("MatMul", [weights, value], [(1, heads, s, f)])
    return True


def integer_matmul(net: OpCases) -> bool:
    """Adds a matmul with exact 32-bit sums of bytes, with zero points of any sign and type."""
    r = net.rng
    batch = tuple(r.randint(1, 3) for _ in range(r.randint(0, 2)))
    m, k, n = r.randint(1, 30), r.randint(1, 300), r.randint(1, 67)
    net.add_input((*batch, m, k))
    left, zero = net.bytes_of(net.given()[0])
    dtype = r.choice([np.int8, np.uint8])
    weights = net.array_rng.integers(np.iinfo(dtype).min, np.iinfo(dtype).max + 1, (k, n)).astype(dtype)
    point = net.array_rng.integers(np.iinfo(dtype).min, np.iinfo(dtype).max + 1, r.choice([(), (n,)])).astype(dtype)
    y = net.raw("MatMulInteger", [left, net.constant(weights), net.constant(zero), net.constant(point)])[0]
    net.wide[y] = (np.dtype(np.int32), (*batch, m, n))
    return True


def dynamic_matmul(net: OpCases) -> bool:
    """Adds a float matmul whose rows are quantised at run time: rows of zeros, of one sign, of half steps, with very
    different magnitudes."""
    r, shape, name = net.rng, matrix(net), f"x{len(net.inputs)}"
    random_network.Network.add_input(net, shape)
    net.values.pop(name)
    rows = net.inputs[name].reshape(-1, shape[-1])
    rows *= np.float32(10.0) ** net.array_rng.integers(-3, 4, (len(rows), 1)).astype(np.float32)
    for i, row in enumerate(rows):
        kind = r.randrange(6)
        rows[i] = (0, np.abs(row), -np.abs(row), np.clip(np.rint(row * 254) / 2, 0, 127.5), row, row)[kind]
        rows[i, :1] = 127.5 if kind == 3 else rows[i, :1]  # half steps
    n, k = r.randint(1, 67), shape[-1]
    weights, bias = net.weights(n, k, scale=k**-0.5), net.weights(n)
    if len(shape) == 2 and r.random() < 0.5:
        y = net.raw("Gemm", [name, weights, bias], transB=1)[0]
    else:
        y = net.raw("MatMul", [name, net.raw("Transpose", [weights], perm=[1, 0])[0]])[0]
        y = net.raw("Add", [y, bias])[0] if r.random() < 0.5 else y
    y = net.raw(r.choice(["Relu", "Sigmoid"]), [y])[0] if r.random() < 0.4 else y
    net.wide[y] = (np.dtype(np.float32), (*shape[:-1], n))
    return True


def integer_conv(net: OpCases) -> bool:
    x, (n, c, h, w) = net.given()
    values, zero = net.bytes_of(x)
    m, pad = net.rng.randint(1, 40), net.rng.randint(0, 1)
    if min(h, w) + 2 * pad < 3:
        return False
    dtype = net.rng.choice([np.int8, np.uint8])
    weights = net.array_rng.integers(np.iinfo(dtype).min, np.iinfo(dtype).max + 1, (m, c, 3, 3)).astype(dtype)
    point = np.array(net.rng.randint(np.iinfo(dtype).min, np.iinfo(dtype).max), dtype)
    y = net.raw(
        "ConvInteger", [values, net.constant(weights), net.constant(zero), net.constant(point)], pads=[pad] * 4
    )[0]
    net.wide[y] = (np.dtype(np.int32), (n, m, h + 2 * pad - 2, w + 2 * pad - 2))
    return True


FAMILIES: dict[str, Callable[[OpCases], bool]] = {
    "conv": make_conv("plain"),
    "grouped conv": make_conv("grouped"),
    "dilated conv": make_conv("dilated"),
    "depthwise conv": make_conv("depthwise"),
    "transposed conv": one(image_of_fewer_channels, g.conv_transpose),
    "far conv": one(image, g.far_conv),
    "volume conv": one(volume, volume_conv),
    "volume max pool": one(volume, volume_pool),
    "matmul": one(matrix, g.matmul),
    "matmul of activations": two_activations,
    "gemm": one(lambda net: matrix(net)[-2:], g.gemm),
    "max pool": one(image, q.max_pool),
    "average pool": one(image, average_pool),
    "add": binary("Add"),
    "sub": binary("Sub"),
    "mul": binary("Mul"),
    "div": one(any_shape, divide),
    "max": binary("Max"),
    "concat": concat,
    "nearest resize": resize("nearest"),
    "linear resize": resize("linear"),
    "reduce": one(any_shape, reduce),
    "softmax": one(any_shape, softmax),
    "layer norm": one(any_shape, layer_norm),
    "rms norm": one(any_shape, rms_norm),
    "activation": one(any_shape, activation),
    "attention": attention,
    "gather": one(any_shape, g.gather),
    "pad": one(image, g.pad),
    "slice": one(any_shape, g.slice_),
    "transpose": one(any_shape, g.transpose),
    "integer matmul": integer_matmul,
    "integer conv": one(image, integer_conv),
    "dynamic matmul": dynamic_matmul,
}
EPILOGUE = " with epilogue"
READERS = [
    g.conv,
    g.conv,
    g.conv,
    g.matmul,
    g.binary,
    g.binary,
    g.unary,
    g.concat,
    g.transpose,
    g.reshape,
    q.max_pool,
    q.mean,
]


def with_epilogue(producer: Callable[[OpCases], bool]) -> Callable[[OpCases], bool]:
    """Returns a family with an epilogue program after its op, and up to three readers of the result and of its
    operands."""

    def build(net: OpCases) -> bool:
        if not producer(net):
            return False
        for _ in range(net.rng.choice([0, 1, 1, 2, 3])):
            net.rng.choice(READERS)(net)
        return True

    return build


_WITHOUT_EPILOGUE = {"activation", "rms norm", "attention", "integer matmul", "integer conv", "dynamic matmul"}
EPILOGUE_FAMILIES = {
    family + EPILOGUE: with_epilogue(build) for family, build in FAMILIES.items() if family not in _WITHOUT_EPILOGUE
}
# Flags of the compiler, for both engines.
OPTIONS = {"dynamic matmul": ("--quantize", "DYNAMIC_INT8")}


def make_cases(family: str, number: int, count: int) -> tuple[onnx.ModelProto, OpCases]:
    """Model `number` of a family with `count` cases."""
    net = OpCases(zlib.crc32(f"{family} {number}".encode()))
    while len(net.cases) < count:
        state = (len(net.nodes), len(net.initializers), dict(net.inputs))
        net.begin(family)
        result = (FAMILIES | EPILOGUE_FAMILIES)[family](net)
        if not result:
            del net.nodes[state[0] :], net.initializers[state[1] :]
            net.inputs = state[2]
            continue
        # The values of the graph's inputs are known; all other tensors are results of the op.
        given = {
            name
            for name in net.values
            if any(
                node.op_type == "QuantizeLinear"
                and node.output[0] == net.integers[name]
                and node.input[0] in net.inputs
                for node in net.nodes[state[0] :]
            )
        }
        net.end(given)
    outputs = [(name, ONNX_TYPES[dtype], shape) for case in net.cases for name, (dtype, shape) in case.items()]
    return random_network.finish(net, number, outputs), net


def unequal(got: np.ndarray, want: np.ndarray) -> np.ndarray:
    """Counts elements with other bits; all NaNs are equal."""
    differs = (got != want) & ~((got != got) & (want != want))
    return differs | (np.signbit(got) != np.signbit(want)) & (got == want) if got.dtype == np.float32 else differs


def run_model(
    task: tuple[str, int, int, tuple[str, ...], Path | None]
) -> tuple[str, int, int, list[str], dict[str, int]]:
    """Runs one model on some variants; returns family, cases, elements, faults, and differing elements by variant."""
    family, number, count, variants, keep = task
    compiler, faults, wrong, elements = seed_runner.compiler_of_process(), [], dict.fromkeys(variants, 0), 0
    with tempfile.TemporaryDirectory() as temporary:
        folder = keep / f"{family.replace(' ', '_')}_{number}" if keep else Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        path, mlir = folder / "model.onnx", folder / "model_top.mlir"
        try:
            model, net = make_cases(family, number, count)
            path.write_bytes(model.SerializeToString())
            compiler("import", "import", "--onnx", path, "--output", mlir)
            options = OPTIONS.get(family, ())
            want = q.reference(compiler, mlir, net.inputs, "--device", *options)
        except StageError as error:
            return family, count, 0, [f"{family} {number}: {error.stage}: {error}"], wrong
        elements = sum(array.size for array in want.values())
        for variant in variants:
            try:
                bmodel = deploy(compiler, mlir, variant, *options)
                inexact = set(compiler.info["bit_equal_except"])
                got = run_bmodel(bmodel, net.inputs)
            except StageError as error:
                faults.append(f"{family} {number} on {variant}: {error.stage}: {error}")
                continue
            for i, case in enumerate(net.cases):
                for name in case if not inexact & net.nodes_of_cases[i] else ():
                    differs = unequal(got[name], want[name])
                    wrong[variant] += int(differs.sum())
                    if differs.any():
                        at = tuple(map(int, np.argwhere(differs)[0]))
                        faults.append(
                            f"{family} {number}, case {i} ({name}) on {variant}: {differs.sum()} of {want[name].size} "
                            "elements "
                            f"differ, first at {at}: {got[name][at]}, reference {want[name][at]}"
                        )
    return family, count, elements, faults, wrong


def run_cases(
    cases: int,
    jobs: int,
    variants: Sequence[str] = VARIANTS,
    families: Sequence[str] = tuple(FAMILIES),
    keep: Path | None = None,
    per_model: int = CASES_PER_MODEL,
    rotate: bool = False,
    first_model: int = 0,
):
    """Yields run_model's results for at least `cases` cases in total; with `rotate`, each model runs on one variant, in
    turns. The models of a family start at `first_model`."""
    each = -(-cases // len(families))
    tasks = []
    for family in families:
        for number, first in enumerate(range(0, each, per_model)):
            chosen = (variants[(first_model + len(tasks)) % len(variants)],) if rotate else tuple(variants)
            tasks.append((family, first_model + number, min(per_model, each - first), chosen, keep))
    with ProcessPoolExecutor(jobs) as pool:
        yield from pool.map(run_model, tasks)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=int, default=2000)
    parser.add_argument("--family", choices=FAMILIES | EPILOGUE_FAMILIES, action="append")
    parser.add_argument("--epilogues", action="store_true", help="all families with epilogues")
    parser.add_argument("--isa", choices=(*VARIANTS, "x86", *q.NPUS, *GPUS), action="append")
    parser.add_argument("--rotate", action="store_true", help="each model on one chip, in turns, instead of on all")
    parser.add_argument("--first", type=int, default=0, help="number of each family's first model")
    parser.add_argument("--keep", type=Path, help="leave the files here")
    parser.add_argument("-j", "--jobs", type=int, default=os.cpu_count() or 1)
    options = parser.parse_args()
    start, variants = time.monotonic(), options.isa or (CHIPS if options.rotate else VARIANTS)
    cases: collections.Counter[str] = collections.Counter()
    elements: collections.Counter[str] = collections.Counter()
    wrong: dict[str, collections.Counter[str]] = collections.defaultdict(collections.Counter)
    faults = 0
    families = options.family or tuple(EPILOGUE_FAMILIES if options.epilogues else FAMILIES)
    for family, count, size, found, by_variant in run_cases(
        options.cases, options.jobs, variants, families, options.keep, rotate=options.rotate, first_model=options.first
    ):
        cases[family] += count
        elements[family] += size
        wrong[family].update(by_variant)
        faults += len(found)
        for fault in found:
            print(fault, flush=True)
    print(f"{'family':<34}{'cases':>7}{'elements':>10}  differing on " + " ".join(f"{v:>15}" for v in variants))
    for family in cases:
        print(
            f"{family:<34}{cases[family]:>7}{elements[family]:>10}               "
            + " ".join(f"{wrong[family][v]:>15}" for v in variants)
        )
    print(
        f"{sum(cases.values())} cases, {sum(elements.values())} elements, {faults} faults, "
        f"{time.monotonic() - start:.0f} s"
    )
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
