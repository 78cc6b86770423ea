# SPDX-License-Identifier: Apache-2.0
"""Random transformers with one or two blocks: norms before or after, residuals, separate projections for q, k and v or
a joint one, attention over all tokens or in windows, and matmuls with an activation between them.

    build/bin/tessera-python regression/conformance/random_transformer.py --seeds 0:500 [--isa npu-base] [--keep FOLDER]

INT8 with ranges that values sometimes exceed: the bits of the device reference, also if rows stay over lanes.
"""
from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import seed_runner
from engines import Compiler, StageError, deploy, run_bmodel
from random_attention import AttentionNet, reference, write_table
from random_quantized import NPUS, VARIANTS


class TransformerNet(AttentionNet):
    """A network generated from a seed. Tokens are rows of a tensor of three dims, or of two."""

    def build(self) -> str:
        r = self.rng
        self.tokens = r.choice([1, 5, 16, 33, 64, 65, 100, 130, 197])
        self.width = self.heads * self.depth if self.heads * self.depth <= 256 else r.choice([24, 96, 100])
        self.wide = r.choice([2, 3, 4]) * self.width + r.choice([0, 0, 7])
        self.windows = r.choice([1, 1, 2, 4]) if self.tokens % 4 == 0 else 1
        self.isFlat = self.batch == 1 and r.random() < 0.2
        x = self.given("x", *([] if self.isFlat else [self.batch]), self.tokens, self.width)
        if r.random() < 0.5:
            x = self.op("Add", x, self.constant(self.arrays.standard_normal((self.tokens, self.width), np.float32)))
        for _ in range(r.choice([1, 1, 2])):
            x = self.block(x)
        if all(node.op_type not in ("MatMul", "Gemm") for node in self.nodes):
            x = self.linear(x, self.width, self.width)  # tensors without contractions stay float
        return self.op("Neg", self.norm(x) if r.random() < 0.7 else x)

    def norm(self, x: str) -> str:
        if self.rng.random() < 0.1:
            return x
        factor = self.constant(np.linspace(0.2, 2, self.width, dtype=np.float32))
        bias = self.constant(np.linspace(-0.3, 0.4, self.width, dtype=np.float32))
        return self.op("LayerNormalization", x, factor, bias, axis=-1, epsilon=1e-5)

    def linear(self, x: str, columns: int, rows: int) -> str:
        y = self.project(x, columns, rows)
        bias = self.constant(0.2 * self.arrays.standard_normal(columns).astype(np.float32))
        return self.op("Add", y, bias) if self.rng.random() < 0.8 else y

    def block(self, x: str) -> str:
        isFirst = self.rng.random() < 0.6  # the norm
        for part in (self.attention, self.mlp):
            if self.rng.random() < 0.15:
                continue
            y = part(self.norm(x) if isFirst else x)
            x = self.op("Add", *([x, y] if self.rng.random() < 0.5 else [y, x]))
            x = x if isFirst else self.norm(x)
        return x

    def mlp(self, x: str) -> str:
        y = self.linear(x, self.wide, self.width)
        kind = self.rng.choice(["Gelu", "Relu", "Sigmoid", "none", "HardSwish"])
        if kind == "Gelu":
            half, one, root = (self.constant(np.float32(each)) for each in (0.5, 1, 2**-0.5))
            y = self.op("Mul", self.op("Mul", y, self.op("Add", self.op("Erf", self.op("Mul", y, root)), one)), half)
        elif kind != "none":
            y = self.op(kind, y)
        return self.linear(y, self.width, self.wide)

    def attention(self, x: str) -> str:
        columns, width = self.heads * self.depth, self.width
        if self.windows > 1:
            x = self.op("Reshape", x, self.constant(np.array([-1, self.tokens // self.windows, width], np.int64)))
        elif self.isFlat:
            x = self.op("Reshape", x, self.constant(np.array([1, self.tokens, width], np.int64)))
        if self.rng.random() < 0.5:
            q, k, v = self.packed(self.linear(x, 3 * columns, width))
        else:
            q, k, v = (self.by_heads(self.linear(x, columns, width), self.heads, self.depth) for _ in range(3))
        scores = self.op("MatMul", q, self.op("Transpose", k, perm=[0, 1, 3, 2]))
        scores = self.op("Mul", scores, self.constant(np.float32(self.depth**-0.5)))
        y = self.op("MatMul", self.op("Softmax", scores, axis=-1), v)
        y = self.op("Transpose", y, perm=[0, 2, 1, 3])
        y = self.op("Reshape", y, self.constant(np.array([0, 0, columns], np.int64)))
        y = self.linear(y, width, columns)
        shape = [self.tokens, width] if self.isFlat else [-1, self.tokens, width]
        return self.op("Reshape", y, self.constant(np.array(shape, np.int64)))


def check(compiler: Compiler, seed: int, chip: str, folder: Path, make: type[TransformerNet] = TransformerNet) -> None:
    """Raises StageError if |chip| has other bits than the device reference in INT8. Leaves the IR in folder / "ir"."""
    net, top, table = make(seed, "INT8"), folder / "model_top.mlir", folder / "table.json"
    (folder / "model.onnx").write_bytes(net.model().SerializeToString())
    compiler("import", "import", "--onnx", folder / "model.onnx", "--output", top)
    model_hash = str(compiler("info", "info", "--mlir", top)["model_hash"])
    write_table(table, model_hash, reference(compiler, top, net, "--all"), seed)
    flags = ("--quantize", "INT8", "--calibration-table", str(table))
    want = next(iter(reference(compiler, top, net, "--device", *flags).values()))
    dumped = ("--dump-ir", str(folder / "ir"))
    got = next(iter(run_bmodel(deploy(compiler, top, chip, *flags, *dumped), net.inputs).values()))
    if not np.array_equal(want, got, equal_nan=True):
        raise StageError("compare", f"{int((want != got).sum())} of {want.size} elements differ from the reference")


def run_seed(seed: int, chip: str, keep: Path | None = None) -> str:
    """Returns the fault of the network of a seed, or ""."""
    return seed_runner.run_in_folder(check, "transformer", seed, chip, keep)


def main() -> int:
    arguments = seed_runner.parse_arguments(__doc__, (*VARIANTS, *NPUS))
    return seed_runner.report_faults(run_seed, VARIANTS, arguments)


if __name__ == "__main__":
    sys.exit(main())
