# SPDX-License-Identifier: Apache-2.0
"""Random attention as networks write it: projections, one for q, k and v or one for all; heads by reshapes and
transpositions, shared by groups of queries or not; masks of every broadcast; the result left as it is or put back.

    build/bin/tessera-python regression/conformance/random_attention.py --seeds 0:500 [--isa cuda] [--keep FOLDER]
F32, F16 and BF16 against f32 on x86, within a tolerance; where bytes surround it, x86's bits. INT8, by ranges that
values exceed now and then, and on x86 and NPUs nothing else: the bits of the device reference.
"""
from __future__ import annotations

import json
import random
import sys
from pathlib import Path

import numpy as np
import onnx
import seed_runner
from engines import GPUS, Compiler, StageError, deploy, run_bmodel
from onnx import TensorProto, helper, numpy_helper
from random_quantized import NPUS, VARIANTS
from tessera import safetensors_io

PRECISIONS = ("F16", "BF16", "F16", "F32", "BF16", "BYTES")
MULTIPROCESSORS = (1, 4, 40)  # of the GPU, which determine its tiles
TOLERANCE = {"F32": 2e-5, "F16": 5e-3, "BF16": 4e-2, "BYTES": 0.0}


class AttentionNet:
    """A network generated from a seed. |precision| says how to deploy it, if not as the seed determines."""

    def __init__(self, seed: int, precision: str = "") -> None:
        self.rng, self.arrays = random.Random(seed), np.random.default_rng(seed)
        self.precision = precision or PRECISIONS[seed % len(PRECISIONS)]
        self.nodes: list[onnx.NodeProto] = []
        self.constants: dict[str, np.ndarray] = {}
        self.inputs: dict[str, np.ndarray] = {}
        r = self.rng
        self.batch, self.groups = r.randint(1, 2), r.choice([1, 1, 2, 3])
        self.heads = self.groups * r.randint(1, 3)  # of q; k and v have heads / groups
        self.queries = r.choice([1, 5, 15, 16, 17, 33, 64, 70, 130, 200])
        self.isSelf = r.random() < 0.6
        self.keys = self.queries if self.isSelf else r.choice([1, 7, 32, 64, 65, 100, 129, 200])
        self.depth = r.choice([4, 8, 16, 24, 32, 40, 64, 64, 72, 96, 128, 136])
        self.features = self.depth if r.random() < 0.7 else r.choice([6, 8, 24, 64, 128, 160])
        self.isNormalised = seed % 7 == 3  # q and k
        self.result = self.build()

    def op(self, kind: str, *operands: str, **attributes: object) -> str:
        name = f"t{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, list(operands), [name], name=f"{kind}_{name}", **attributes))
        return name

    def constant(self, value: np.ndarray) -> str:
        name = f"c{len(self.constants)}"
        self.constants[name] = value
        return name

    def given(self, name: str, *shape: int) -> str:
        self.inputs[name] = self.arrays.standard_normal(shape).astype(np.float32)
        return self.bytes_of(name) if self.precision == "BYTES" else self.op("Neg", name)

    def bytes_of(self, value: str, scale: float = 1 / 32) -> str:
        """Quantises and dequantises a value; the surrounding function is exact."""
        step, zero = self.constant(np.float32(scale)), self.constant(np.int8(0))
        return self.op("DequantizeLinear", self.op("QuantizeLinear", value, step, zero), step, zero)

    def project(self, x: str, columns: int, rows: int) -> str:
        w = self.arrays.standard_normal((rows, columns)) * (1.5 / np.sqrt(rows))
        return self.op("MatMul", x, self.constant(w.astype(np.float32)))

    def by_heads(self, x: str, heads: int, columns: int) -> str:
        shape = self.constant(np.array([0, -1, heads, columns], np.int64))
        return self.op("Transpose", self.op("Reshape", x, shape), perm=[0, 2, 1, 3])

    def operands(self) -> tuple[str, str, str]:
        """Returns q, k and v by heads."""
        r, width = self.rng, 24
        own = self.heads // self.groups
        if self.rng.random() < 0.2:  # as they are
            q = self.given("q", self.batch, self.heads, self.queries, self.depth)
            k = self.given("k", self.batch, own, self.keys, self.depth)
            return q, k, self.given("v", self.batch, own, self.keys, self.features)
        x = self.given("x", self.batch, self.queries, width)
        y = x if self.isSelf else self.given("y", self.batch, self.keys, width)
        if self.isSelf and self.groups == 1 and self.depth == self.features and r.random() < 0.5:
            return self.packed(self.project(x, 3 * self.heads * self.depth, width))
        q = self.by_heads(self.project(x, self.heads * self.depth, width), self.heads, self.depth)
        k = self.by_heads(self.project(y, own * self.depth, width), own, self.depth)
        return q, k, self.by_heads(self.project(y, own * self.features, width), own, self.features)

    def packed(self, x: str) -> tuple[str, str, str]:
        """Splits [batch, tokens, 3, heads, depth] into three of [batch, heads, tokens, depth]."""
        shape = self.constant(np.array([0, -1, 3, self.heads, self.depth], np.int64))
        moved = self.op("Transpose", self.op("Reshape", x, shape), perm=[2, 0, 3, 1, 4])
        q, k, v = (self.op("Gather", moved, self.constant(np.int64(i)), axis=0) for i in range(3))
        return q, k, v

    def mask(self) -> np.ndarray | None:
        r = self.rng
        kind = r.choice(["none", "none", "padding", "causal", "bias", "least"])
        shape = [r.choice([1, self.batch]), r.choice([1, self.heads]), r.choice([1, self.queries]), self.keys]
        if kind == "none":
            return None
        if kind == "bias":
            return self.arrays.standard_normal(shape).astype(np.float32)
        lowest = -np.inf if kind != "least" else np.finfo(np.float32).min
        if kind == "causal":  # the last key is always visible, so that every row sees a key
            hidden = np.tril(np.ones((self.queries, self.keys)), self.keys - self.queries) == 0
            hidden[:, -1] = False
            return np.where(hidden, lowest, 0).astype(np.float32)
        hidden = self.arrays.random(shape) < r.choice([0.3, 0.97])
        hidden[..., r.randrange(self.keys)] = False
        return np.where(hidden, lowest, 0).astype(np.float32)

    def normalised(self, x: str) -> str:
        factor = self.constant(np.linspace(-1, 2, self.depth, dtype=np.float32))
        y = self.op("LayerNormalization", x, factor, axis=-1, epsilon=1e-3)
        return self.bytes_of(y) if self.precision == "BYTES" else y

    def build(self) -> str:
        q, k, v = self.operands()
        if self.isNormalised:
            q, k = (self.normalised(each) for each in (q, k))
        rows = (self.batch, self.heads, self.queries)
        if self.groups > 1:  # heads of a group are separate dims beside k's
            own = self.heads // self.groups
            q = self.op(
                "Reshape", q, self.constant(np.array([0, own, self.groups, self.queries, self.depth], np.int64))
            )
            k = self.op("Unsqueeze", k, self.constant(np.array([2], np.int64)))
            v = self.op("Unsqueeze", v, self.constant(np.array([2], np.int64)))
        order = list(range(3 + (self.groups > 1))) + [3 + (self.groups > 1)]
        order[-1], order[-2] = order[-2], order[-1]
        scores = self.op("MatMul", q, self.op("Transpose", k, perm=order))
        scores = self.op("Mul", scores, self.constant(np.float32(self.depth**-0.5)))
        mask = self.mask()
        if mask is not None:
            if self.groups > 1 and mask.ndim == 4:
                mask = mask[:, None, :1]
            scores = self.op("Add", scores, self.constant(mask))
        y = self.op("MatMul", self.op("Softmax", scores, axis=-1), v)
        if self.groups > 1:
            y = self.op("Reshape", y, self.constant(np.array([*rows, self.features], np.int64)))
        return self.end(y)

    def end(self, y: str) -> str:
        y = self.bytes_of(y, 1 / 64) if self.precision == "BYTES" else y
        if self.rng.random() < 0.85:
            y = self.op("Transpose", y, perm=[0, 2, 1, 3])
            y = self.op("Reshape", y, self.constant(np.array([0, 0, self.heads * self.features], np.int64)))
            if self.rng.random() < 0.85:
                y = self.project(y, 16, self.heads * self.features)
        return y if self.precision == "BYTES" else self.op("Neg", y)

    def model(self) -> onnx.ModelProto:
        given = [helper.make_tensor_value_info(n, TensorProto.FLOAT, x.shape) for n, x in self.inputs.items()]
        result = helper.make_tensor_value_info(self.result, TensorProto.FLOAT, None)
        held = [numpy_helper.from_array(np.asarray(value), name) for name, value in self.constants.items()]
        graph = helper.make_graph(self.nodes, "attention", given, [result], held)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)


def reference(compiler: Compiler, top: Path, net: AttentionNet, *flags: object) -> dict[str, np.ndarray]:
    given, results = top.with_name("in.safetensors"), top.with_name("out.safetensors")
    safetensors_io.save(given, net.inputs)
    compiler("reference", "reference", "--mlir", top, "--input", given, "--output", results, *flags)
    return safetensors_io.load(results)


def write_table(path: Path, model_hash: str, tensors: dict[str, np.ndarray], seed: int) -> None:
    """Writes ranges of tensors, some of which are smaller than the range of their values."""
    rng, entries = random.Random(seed), []
    for name, value in tensors.items():
        finite = value[np.isfinite(value)] if value.dtype == np.float32 else np.zeros(0)
        share = rng.choice([0.3, 0.8, 1.0, 1.0, 1.5])
        low, high = (float(share * each) for each in (finite.min(initial=0), finite.max(initial=0)))
        threshold = max(high, -low, 1e-6)
        entries.append(
            {"name": name, "threshold": threshold, "min": low, "max": max(high, low + 1e-6), "symmetric": True}
            | {"method": "max", "dtype": "int8"}
        )
    head = {"format": "tessera-calibration", "version": 1, "model": "model", "method": "max"}
    head |= {"model_hash": model_hash, "samples": 1, "sample_hash": "0", "tool": "test", "tensors": entries}
    path.write_text(json.dumps(head))


def check_integers(compiler: Compiler, seed: int, chip: str, folder: Path) -> None:
    """Raises StageError if |chip| has other bits than the device reference in INT8."""
    net, top, table = AttentionNet(seed, "INT8"), folder / "integers_top.mlir", folder / "table.json"
    (folder / "integers.onnx").write_bytes(net.model().SerializeToString())
    compiler("import", "import", "--onnx", folder / "integers.onnx", "--output", top)
    model_hash = str(compiler("info", "info", "--mlir", top)["model_hash"])
    write_table(table, model_hash, reference(compiler, top, net, "--all"), seed)
    flags = ("--quantize", "INT8", "--calibration-table", str(table))
    want = next(iter(reference(compiler, top, net, "--device", *flags).values()))
    got = next(iter(run_bmodel(deploy(compiler, top, chip, *flags), net.inputs).values()))
    if compiler.info["bit_equal_except"]:
        raise StageError("compare", f"the compiler does not promise equal bits for {compiler.info['bit_equal_except']}")
    floats = [op for op in compiler.info["quantization"]["ops"] if op["op"] == "top.attention" and op["type"] == "F32"]
    if floats:
        raise StageError("compare", f"attention stays float: {floats}")
    if not np.array_equal(want, got, equal_nan=True):
        raise StageError("compare", f"{int((want != got).sum())} of {want.size} elements differ from the reference")


def check_network(compiler: Compiler, seed: int, chip: str, folder: Path) -> None:
    """Checks one network. Raises StageError. Leaves the IR of |chip| in folder / "ir"."""
    net = AttentionNet(seed)
    top = folder / "model_top.mlir"
    (folder / "model.onnx").write_bytes(net.model().SerializeToString())
    compiler("import", "import", "--onnx", folder / "model.onnx", "--output", top)
    precision = "F32" if net.precision == "BYTES" else net.precision
    plain = deploy(compiler, top, "x86")
    want = next(iter(run_bmodel(plain, net.inputs).values()))
    card = f"sms={MULTIPROCESSORS[seed // 6 % len(MULTIPROCESSORS)]}"
    flags = ("--quantize", precision, "--dump-ir", str(folder / "ir"), "--chip-set", card)
    got = next(iter(run_bmodel(deploy(compiler, top, chip, *flags), net.inputs).values()))
    if not np.array_equal(np.isnan(want), np.isnan(got)):
        raise StageError("compare", "the places of NaN differ from x86")
    scale = max(1e-6, float(np.nan_to_num(np.abs(want)).max(initial=0)))
    error = float(np.nan_to_num(np.abs(got - want)).max(initial=0)) / scale
    if error > TOLERANCE[net.precision]:
        raise StageError("compare", f"{net.precision}: off by {error:.1e} of the largest value")


def check(compiler: Compiler, seed: int, chip: str, folder: Path) -> None:
    check_integers(compiler, seed, chip, folder)
    if chip in GPUS:
        check_network(compiler, seed, chip, folder)


def run_seed(seed: int, chip: str, keep: Path | None = None) -> str:
    """Returns the fault of the network of a seed, or ""."""
    return seed_runner.run_in_folder(check, "attention", seed, chip, keep)


def main() -> int:
    arguments = seed_runner.parse_arguments(__doc__, (*VARIANTS, *NPUS, *GPUS))
    return seed_runner.report_faults(run_seed, VARIANTS, arguments)


if __name__ == "__main__":
    sys.exit(main())
