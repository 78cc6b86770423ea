# SPDX-License-Identifier: Apache-2.0
"""Random operators on tensors with open dims, with arguments (sizes, scales, pads, axes, k) that are constants,
computed from sizes, or inputs of the run. One compile, then runs at several sizes against onnxruntime.

    build/bin/tessera-python regression/conformance/random_open_ops.py --seeds 0:500 [--isa x86-v2] [--keep FOLDER]
"""
from __future__ import annotations

import functools
import random
import sys
from pathlib import Path
from typing import Callable, Sequence

import numpy as np
import onnx
import random_data_sizes
import random_graphs
import seed_runner
import random_sizes
from engines import Compiler, StageError, deploy
from onnx import TensorProto, helper, numpy_helper
from open_networks import INTERESTING

Arrays = dict[str, np.ndarray]
Sizes = dict[str, int]
Draw = Callable[[np.random.Generator, Sizes], np.ndarray]
KINDS = {np.dtype(np.float32): TensorProto.FLOAT, np.dtype(np.int64): TensorProto.INT64}
COORDINATES = ("half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric", "half_pixel_symmetric")
ROUNDS = ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil")


class Network:
    """A network under construction. A dim of an input is a number, or the name of an open dim."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.nodes: list[onnx.NodeProto] = []
        self.constants: dict[str, np.ndarray] = {}
        self.inputs: dict[str, tuple[np.dtype, tuple[int | str, ...], Draw]] = {}
        self.ranges: dict[str, tuple[int, int]] = {}
        self.outputs: list[str] = []

    def pick(self, *choices: object) -> object:
        return self.random.choice(choices)

    def dim(self, least: int = 1, most: int = 24) -> str:
        """Declares an open dim."""
        name = "abcdefgh"[len(self.ranges)]
        low = self.random.choice([n for n in (least, 1, 2, 4) if n >= least])
        self.ranges[name] = (low, max(low + 1, self.random.choice(INTERESTING[2:]) % most + 1))
        return name

    def add(self, operator: str, inputs: Sequence[str], outputs: int = 1, **attributes: object) -> list[str]:
        names = [f"{operator.lower()}{len(self.nodes)}_{i}" for i in range(outputs)]
        self.nodes.append(helper.make_node(operator, list(inputs), names, **attributes))
        return names

    def constant(self, value: object, dtype: object = np.int64) -> str:
        name = f"k{len(self.constants)}"
        self.constants[name] = np.asarray(value, dtype)
        return name

    def input(self, shape: Sequence[int | str], draw: Draw | None = None, dtype: object = np.float32) -> str:
        name = f"x{len(self.inputs)}"
        shape = tuple(shape)

        def normal(r: np.random.Generator, sizes: Sizes) -> np.ndarray:
            return r.standard_normal([sizes.get(str(d), d) for d in shape]).astype(np.float32)

        self.inputs[name] = (np.dtype(dtype), shape, draw or normal)
        return name

    def vector(self, draw: Callable[[np.random.Generator, Sizes], Sequence[float]], count: int, dtype: object) -> str:
        return self.input((count,), lambda r, sizes: np.asarray(draw(r, sizes), dtype), dtype)

    def indices(self, shape: Sequence[int | str], size: int | str) -> str:
        """An input of positions in a dim of `size`."""

        def draw(r: np.random.Generator, sizes: Sizes) -> np.ndarray:
            most = int(sizes.get(str(size), size))
            return r.integers(-most, most, [sizes.get(str(d), d) for d in shape], np.int64)

        return self.input(shape, draw, np.int64)

    def picture(self) -> tuple[str, list[int | str]]:
        shape: list[int | str] = [self.pick(1, 2), self.pick(1, 3), self.dim(), self.dim()]  # type: ignore[list-item]
        if self.random.randrange(4) == 0:
            shape[0] = self.dim()
        return self.input(shape), shape

    def matrix(self) -> tuple[str, list[int | str]]:
        shape: list[int | str] = [self.dim(), self.pick(1, 5, 16)]  # type: ignore[list-item]
        if self.random.randrange(2):
            shape.reverse()
        if self.random.randrange(3) == 0:
            shape = [self.dim(), self.dim()]
        return self.input(shape), shape

    # Operators

    def resize(self) -> None:
        x, shape = self.picture()
        mode = self.pick("nearest", "linear", "cubic")
        attributes: dict[str, object] = {"mode": mode, "coordinate_transformation_mode": self.pick(*COORDINATES)}
        if mode == "nearest":
            attributes["nearest_mode"] = self.pick(*ROUNDS)
        if mode == "cubic":
            attributes["exclude_outside"] = self.pick(0, 1)
        kind = self.pick("scales", "sizes", "run scales", "run sizes", "other")
        if kind == "scales":
            scales = [1.0, 1.0, self.pick(0.5, 1.0, 1.7, 2.0, 3.0), self.pick(0.4, 1.0, 2.0, 2.5)]
            self.outputs += self.add("Resize", [x, "", self.constant(scales, np.float32)], **attributes)
        elif kind == "run scales":
            draw = lambda r, _: [1.0, 1.0, r.choice((0.5, 1.0, 1.3, 2.0)), r.choice((0.7, 1.0, 2.0))]  # noqa: E731
            self.outputs += self.add("Resize", [x, "", self.vector(draw, 4, np.float32)], **attributes)
        else:
            front = self.add("Slice", [self.add("Shape", [x])[0], self.constant([0]), self.constant([2])])[0]
            if kind == "sizes":
                back = self.constant([self.pick(1, 6, 16), self.pick(3, 17)])
            elif kind == "run sizes":
                back = self.vector(lambda r, _: r.integers(1, 30, 2), 2, np.int64)
            else:
                other, _ = self.picture()
                back = self.add("Slice", [self.add("Shape", [other])[0], self.constant([2]), self.constant([4])])[0]
                self.outputs += self.add("Relu", [other])
            (sizes,) = self.add("Concat", [front, back], axis=0)
            self.outputs += self.add("Resize", [x, "", "", sizes], **attributes)

    def rounded_size(self) -> None:
        """A size that is computed in floats, as by ceil(h / 2) in Python."""
        x, _ = self.matrix()
        kind, dtype = self.random.choice(((TensorProto.FLOAT, np.float32), (TensorProto.DOUBLE, np.float64)))
        (number,) = self.add("Cast", [self.add("Shape", [x])[0]], to=kind)
        for _ in range(self.random.randrange(1, 3)):
            factor = self.constant(self.pick(0.5, 1.5, 2.0, 3.0, 7.0), dtype)
            (number,) = self.add(str(self.pick("Mul", "Div")), [number, factor])
        rounding = self.pick("Ceil", "Floor", None)
        (number,) = self.add(str(rounding), [number]) if rounding else (number,)
        (sizes,) = self.add("Cast", [number], to=TensorProto.INT64)
        self.outputs += self.add("Expand", [self.constant(1.0, np.float32), sizes])
        self.outputs += self.add("Relu", [x])

    def grid_sample(self) -> None:
        x, shape = self.picture()
        points = [shape[0], *(self.pick(1, 5, self.dim()) for _ in range(2)), 2]
        sizes = lambda s: [s.get(str(d), d) for d in points]  # noqa: E731
        grid = self.input(points, lambda r, s: r.uniform(-1.3, 1.3, sizes(s)).astype(np.float32))  # type: ignore
        self.outputs += self.add(
            "GridSample",
            [x, grid],
            mode=self.pick("bilinear", "nearest", "bicubic"),
            padding_mode=self.pick("zeros", "border", "reflection"),
            align_corners=self.pick(0, 1),
        )

    def suppression(self) -> None:
        batch, boxes, classes = self.pick(1, 2, self.dim(most=4)), self.pick(7, self.dim()), self.pick(1, 3)
        if self.random.randrange(3) == 0:
            classes = self.dim(most=5)
        if all(isinstance(d, int) for d in (batch, boxes, classes)):
            boxes = self.dim()
        corners = self.input((batch, boxes, 4))  # type: ignore[arg-type]
        scores = self.input((batch, classes, boxes))  # type: ignore[arg-type]
        limits = [self.constant(self.pick(0.0, 0.3, 0.7), np.float32), self.constant(self.pick(-9.0, 0.2), np.float32)]
        kind = self.pick("constant", "all", "run")
        most = self.constant([2 if kind == "constant" else 1 << 40])
        if kind == "run":
            most = self.vector(lambda r, _: [r.integers(0, 9)], 1, np.int64)
        given = [corners, scores, most, *limits][: self.pick(3, 5, 5)]  # type: ignore[misc]
        self.outputs += self.add("NonMaxSuppression", given, center_point_box=self.pick(0, 1))

    def unique_slices(self) -> None:
        shape = [self.dim(most=9), self.pick(2, 70, self.dim(most=5))]
        if self.random.randrange(2):
            shape.append(self.pick(1, 2, self.dim(most=4)))
        x = self.input(shape)  # type: ignore[arg-type]
        (flags,) = self.add("Greater", [x, self.constant(self.pick(0.0, 1.0), np.float32)])
        (numbers,) = self.add("Cast", [flags], to=self.pick(TensorProto.FLOAT, TensorProto.INT64))
        axis = self.random.randrange(len(shape))
        self.outputs += self.add("Unique", [numbers], 4, axis=axis, sorted=self.pick(0, 1))

    def pad(self) -> None:
        x, shape = self.picture()
        mode = self.pick("constant", "edge", "reflect", "wrap")
        kind = self.pick("constant", "constant", "run", "sizes")
        if kind == "constant":
            pads = self.constant([0, 0, self.pick(0, 1), self.pick(0, 1), 0, 0, 0, self.pick(0, 1)])
        elif kind == "run":
            draw = lambda r, _: [0, 0, *r.integers(0, 2, 2), 0, 0, *r.integers(0, 2, 2)]  # noqa: E731
            pads = self.vector(draw, 8, np.int64)
        else:  # to the next multiple of 8
            mode = "constant"
            (spatial,) = self.add("Slice", [self.add("Shape", [x])[0], self.constant([2]), self.constant([4])])
            (up,) = self.add("Div", [self.add("Add", [spatial, self.constant([7])])[0], self.constant([8])])
            (end,) = self.add("Sub", [self.add("Mul", [up, self.constant([8])])[0], spatial])
            (pads,) = self.add("Concat", [self.constant([0] * 6), end], axis=0)
        for d in (2, 3) if mode in ("reflect", "wrap") else ():  # onnxruntime reads beyond a dim of one element
            low, high = self.ranges[str(shape[d])]
            self.ranges[str(shape[d])] = max(low, 2), max(high, 3)
        self.outputs += self.add("Pad", [x, pads], mode=mode)

    def top_k(self) -> None:
        x, shape = self.matrix()
        axis = self.random.randrange(2)
        size = self.add("Slice", [self.add("Shape", [x])[0], self.constant([axis]), self.constant([axis + 1])])[0]
        kind = self.pick("constant", "run", "all", "least")
        if kind == "constant":
            k = self.constant([1])
        elif kind == "run":
            k = self.vector(lambda r, sizes: [r.integers(0, sizes.get(str(shape[axis]), shape[axis]) + 1)], 1, np.int64)
        else:
            k = size if kind == "all" else self.add("Min", [size, self.constant([3])])[0]
        self.outputs += self.add("TopK", [x, k], 2, axis=axis, largest=self.pick(0, 1))

    def arg(self) -> None:
        x, _ = self.matrix()
        operator = str(self.pick("ArgMax", "ArgMin"))
        self.outputs += self.add(operator, [x], axis=self.pick(0, 1), select_last_index=self.pick(0, 1))

    def gather_elements(self) -> None:
        x, shape = self.matrix()
        axis = self.random.randrange(2)
        own = list(shape)
        own[axis] = self.pick(3, 20, self.dim())  # type: ignore[call-overload]
        self.outputs += self.add("GatherElements", [x, self.indices(own, shape[axis])], axis=axis)

    def gather_nd(self) -> None:
        x, shape = self.matrix()
        rows = self.pick(4, self.dim())
        self.outputs += self.add("GatherND", [x, self.indices((rows, 1), shape[0])])  # type: ignore[arg-type]

    def scatter(self) -> None:
        x, shape = self.matrix()
        rows = self.pick(1, self.dim())
        places: list[int | str] = [rows, shape[1]]  # type: ignore[list-item]
        reduction = self.pick("none", "add", "mul")
        if self.random.randrange(2):
            updates = self.input(places)
            draw = lambda r, sizes: r.permutation(np.arange(1000))[: sizes.get(str(rows), rows)][  # noqa: E731
                :, None
            ] % sizes.get(str(shape[0]), shape[0])
            if reduction == "none":
                reduction = "add"  # the order of equal places is not defined
            index = self.input((rows, 1), lambda r, s: np.asarray(draw(r, s), np.int64), np.int64)  # type: ignore
            self.outputs += self.add("ScatterND", [x, index, updates], reduction=reduction)
        else:
            if reduction == "none":
                reduction = "add"
            index = self.indices(places, shape[0])
            self.outputs += self.add("ScatterElements", [x, index, self.input(places)], axis=0, reduction=reduction)

    def cumsum(self) -> None:
        x, _ = self.matrix()
        axis = self.constant(self.pick(0, 1))
        self.outputs += self.add("CumSum", [x, axis], exclusive=self.pick(0, 1), reverse=self.pick(0, 1))

    def trilu(self) -> None:
        x, _ = self.matrix()
        k = [] if self.random.randrange(2) else [self.constant(self.pick(-2, 0, 1))]
        self.outputs += self.add("Trilu", [x, *k], upper=self.pick(0, 1))

    def einsum(self) -> None:
        a, b, c = self.dim(), self.dim(), self.pick(1, 8)
        equation = str(self.pick("ab,bc->ac", "ab,cb->ca", "abc,bc->ab", "ab,ac->abc", "ab,ab->a"))
        left, right = equation.split("->")[0].split(",")
        sizes = {"a": a, "b": b, "c": c}
        shapes = [[sizes[letter] for letter in term] for term in (left, right)]
        self.outputs += self.add("Einsum", [self.input(s) for s in shapes], equation=equation)  # type: ignore

    def diagonal(self) -> None:
        sizes = {"a": self.dim(most=9), "b": self.dim(most=9), "c": self.pick(1, 4)}
        equation = str(self.pick("aa->a", "aa->", "aab->ab", "aba->ba", "aabb->ab", "aaa->a", "aac,cb->ab", "ab,aa->b"))
        terms = equation.split("->")[0].split(",")
        shapes = [[sizes[letter] for letter in term] for term in terms]
        self.outputs += self.add("Einsum", [self.input(s) for s in shapes], equation=equation)  # type: ignore

    def one_hot(self) -> None:
        n, depth = self.dim(), 7
        kind = self.pick(self.constant([depth]), None)
        depths = kind or self.vector(lambda r, _: [r.integers(1, 9)], 1, np.int64)
        values = self.constant([0.5, 2.0], np.float32)
        index = self.input((n, 3), lambda r, s: r.integers(-1, 9, (s[n], 3), np.int64), np.int64)
        self.outputs += self.add("OneHot", [index, str(depths), values], axis=self.pick(-1, 0, 1))

    def recurrent(self) -> None:
        operator = str(self.pick("LSTM", "GRU", "RNN"))
        gates = {"LSTM": 4, "GRU": 3, "RNN": 1}[operator]
        steps, batch = self.pick(self.dim(), 5), self.pick(self.dim(most=9), 1, 3)
        if isinstance(steps, int) and isinstance(batch, int):
            steps = self.dim()
        inputs, hidden = self.pick(1, 6, 17), self.pick(1, 8, 19)
        direction = str(self.pick("forward", "reverse", "bidirectional"))
        d = 2 if direction == "bidirectional" else 1
        r = np.random.default_rng(self.random.randrange(1 << 30))
        weights = [r.standard_normal((d, gates * hidden, n)) * 0.3 for n in (inputs, hidden)]  # type: ignore
        bias = r.standard_normal((d, 2 * gates * hidden)) * 0.3  # type: ignore
        x = self.input((steps, batch, inputs))  # type: ignore[arg-type]
        names = [x, *(self.constant(w, np.float32) for w in weights), self.constant(bias, np.float32)]
        if self.random.randrange(2):

            def lengths(r: np.random.Generator, sizes: Sizes) -> np.ndarray:
                most = int(sizes.get(str(steps), steps))  # type: ignore[arg-type]
                return r.integers(1, most + 1, sizes.get(str(batch), batch)).astype(np.int32)  # type: ignore

            names.append(self.input((batch,), lengths, np.int32))  # type: ignore[arg-type]
        elif self.random.randrange(2):
            names += ["", self.input((d, batch, hidden))]  # type: ignore[arg-type]
        attributes: dict[str, object] = {"linear_before_reset": self.pick(0, 1)} if operator == "GRU" else {}
        self.outputs += self.add(
            operator, names, 3 if operator == "LSTM" else 2, hidden_size=hidden, direction=direction, **attributes
        )

    def selection(self) -> None:
        x, shape = self.matrix()
        (flags,) = self.add("Greater", [x, self.constant(self.pick(0.0, 1.5, 9.0, -9.0), np.float32)])
        kind = self.pick("NonZero", "Compress", "Unique", "mask")
        if kind == "NonZero":
            self.outputs += self.add("NonZero", [flags])
        elif kind == "Compress":
            (flat,) = self.add("Reshape", [flags, self.constant([-1])])
            self.outputs += self.add("Compress", [x, flat])
        elif kind == "Unique":
            (rounded,) = self.add("Floor", [x])
            self.outputs += self.add("Unique", [rounded], 4, sorted=self.pick(0, 1))
        else:  # y[mask] = tanh(x[mask])
            (places,) = self.add("Transpose", [self.add("NonZero", [flags])[0]], perm=[1, 0])
            (chosen,) = self.add("GatherND", [x, places])
            (updates,) = self.add("Tanh", [chosen])
            self.outputs += self.add("ScatterND", [x, places, updates])

    def cut(self) -> None:
        x, _ = self.matrix()
        starts = self.vector(lambda r, _: r.integers(-3, 9, 1), 1, np.int64)
        ends = self.vector(lambda r, _: r.integers(-3, 30, 1), 1, np.int64)
        self.outputs += self.add("Slice", [x, starts, ends, self.constant([self.pick(0, 1)])])

    def tile(self) -> None:
        x, _ = self.matrix()
        kind = self.pick("constant", "run")
        drawn = self.vector(lambda r, _: r.integers(0, 4, 2), 2, np.int64) if kind == "run" else ""
        repeats = drawn or self.constant([2, 3])
        self.outputs += self.add("Tile", [x, repeats])

    def reduce(self) -> None:
        x, _ = self.matrix()
        axes = self.vector(lambda r, _: [r.integers(-2, 2)], 1, np.int64)
        operator = str(self.pick("ReduceSum", "ReduceMax", "ReduceMean"))
        self.outputs += self.add(operator, [x, axes], keepdims=self.pick(0, 1))


OPERATORS = (
    "resize", "resize", "resize", "pad", "pad", "top_k", "arg", "gather_elements", "gather_nd", "scatter", "cumsum",
    "trilu", "einsum", "one_hot", "recurrent", "recurrent", "selection", "selection", "cut", "tile", "reduce",
    "grid_sample", "grid_sample", "suppression", "suppression", "unique_slices", "diagonal",
    "rounded_size",
)  # fmt: skip


def make_network(seed: int) -> tuple[Network, onnx.ModelProto]:
    n = Network(seed)
    getattr(n, OPERATORS[seed % len(OPERATORS)])()
    kinds = {**KINDS, np.dtype(np.int32): TensorProto.INT32}
    used = {d for _, shape, _ in n.inputs.values() for d in shape}
    n.ranges = {name: r for name, r in n.ranges.items() if name in used}
    graph = helper.make_graph(
        n.nodes,
        f"seed{seed}",
        [helper.make_tensor_value_info(name, kinds[dtype], shape) for name, (dtype, shape, _) in n.inputs.items()],
        [onnx.ValueInfoProto(name=name) for name in n.outputs],
        [numpy_helper.from_array(value, name) for name, value in n.constants.items()],
    )
    return n, helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)


def draw_inputs(n: Network, seed: int) -> list[Arrays]:
    """Returns inputs at the smallest and the largest sizes, and at others."""
    all_sizes = [{name: r[i] for name, r in n.ranges.items()} for i in range(2)]
    for _ in range(3):
        choose = lambda low, high: n.random.choice([s for s in INTERESTING if low <= s <= high] or [high])  # noqa: E731
        all_sizes.append({name: choose(*r) for name, r in n.ranges.items()})
    result = []
    for i, sizes in enumerate(all_sizes):
        r = np.random.default_rng((seed, i))
        result.append({name: draw(r, sizes) for name, (_, _, draw) in n.inputs.items()})
    return result


def copies_scaled_input(model: onnx.ModelProto, inputs: Arrays, wanted: Arrays) -> bool:
    """Returns true for a Resize of which the scales change no size. onnxruntime then copies the input, while ONNX
    computes coordinates with the scales."""
    node = model.graph.node[0]
    if node.op_type != "Resize" or not node.input[2]:
        return False
    constants = {tensor.name: numpy_helper.to_array(tensor) for tensor in model.graph.initializer}
    scales = {**constants, **inputs}[node.input[2]]
    return wanted[node.output[0]].shape == inputs[node.input[0]].shape and bool(np.any(scales != 1))


def check(compiler: Compiler, seed: int, isa: str, folder: Path) -> None:
    n, model = make_network(seed)
    path, mlir = folder / "model.onnx", folder / "model_top.mlir"
    path.write_bytes(model.SerializeToString())
    ranges = ",".join(f"{name}={low}..{high}" for name, (low, high) in n.ranges.items())
    try:
        compiler("import", "import", "--onnx", path, "--output", mlir, "--dims", ranges)
        bmodel = deploy(compiler, mlir, isa)
    except StageError as fault:
        if fault.rejected:
            raise StageError(random_sizes.REJECTED, str(fault)) from fault
        raise
    cases = []
    for inputs in draw_inputs(n, seed):
        try:
            wanted = random_sizes.expected_outputs(path, inputs)
        except random_sizes.OrtError:
            continue
        if not copies_scaled_input(model, inputs, wanted):
            cases.append((inputs, wanted))
    results = random_data_sizes.run_all(bmodel, [inputs for inputs, _ in cases])
    for (inputs, wanted), got in zip(cases, results):
        # onnxruntime copies x to a result of x's sizes, also if the scales are not 1.
        wanted = {n: y for n, y in wanted.items() if not n.startswith("resize") or y.shape != inputs["x0"].shape}
        shapes = {name: array.shape for name, array in inputs.items()}
        random_sizes.compare(f"onnxruntime at {shapes}", got, wanted, random_graphs.TOLERANCE)


def run_seed(seed: int, isa: str, keep: Path | None = None) -> str:
    """Returns the fault of the network of a seed, or ""."""
    fault = seed_runner.run_in_folder(check, "open_ops", seed, isa, keep)
    return fault and f"{OPERATORS[seed % len(OPERATORS)]} on {isa}, {fault}"


run_seeds = functools.partial(random_data_sizes.run_seeds, run=run_seed)


if __name__ == "__main__":
    sys.exit(random_sizes.main(__doc__, run_seeds))
