# SPDX-License-Identifier: Apache-2.0
"""Random nodes that onnxruntime's optimiser writes: fused and block-quantised operators. See random_contrib.py."""
from __future__ import annotations


import numpy as np
from contrib_case import Case, Rng, floats, maybe, pick


def fused_matmul(rng: Rng) -> Case:
    case = Case("FusedMatMul")
    batch = [int(d) for d in rng.integers(1, 4, int(rng.integers(0, 3)))]
    m, k, n = (int(d) for d in rng.integers(1, 6, 3))
    flags = {name: int(maybe(rng)) for name in ("transA", "transB")}
    flags |= {name: int(maybe(rng, 0.3)) for name in ("transBatchA", "transBatchB")}

    def operand(rows: int, columns: int, swap: int, rotate: int) -> np.ndarray:
        last = [columns, rows] if swap else [rows, columns]
        dims = [*batch, *last]
        if rotate and batch:
            dims = [dims[-2], *batch, dims[-1]]
        return floats(rng, *dims)

    case.attributes |= {name: value for name, value in flags.items() if value or maybe(rng, 0.3)}
    if maybe(rng):
        case.attributes["alpha"] = float(rng.uniform(-2, 2))
    case.add("a", operand(m, k, flags["transA"], flags["transBatchA"]))
    case.add("b", operand(k, n, flags["transB"], flags["transBatchB"]), constant=maybe(rng, 0.3))
    return case


def fused_gemm(rng: Rng) -> Case:
    case = Case("FusedGemm")
    m, k, n = (int(d) for d in rng.integers(1, 6, 3))
    a, b = (int(maybe(rng)) for _ in range(2))
    case.attributes |= {"transA": a, "transB": b}
    for name in ("alpha", "beta"):
        if maybe(rng):
            case.attributes[name] = float(rng.uniform(-2, 2))
    activation = pick(rng, "Relu", "Sigmoid", "Tanh", "LeakyRelu", "HardSigmoid", "Softplus", "")
    if activation:
        case.attributes["activation"] = activation
    if activation in ("LeakyRelu", "HardSigmoid"):
        case.attributes["activation_alpha"] = float(np.float32(rng.uniform(0, 0.5)))
    if activation == "HardSigmoid":
        case.attributes["activation_beta"] = float(np.float32(rng.uniform(0, 0.5)))
    case.add("a", floats(rng, *((k, m) if a else (m, k))))
    case.add("b", floats(rng, *((n, k) if b else (k, n))), constant=maybe(rng))
    if maybe(rng):
        case.add("c", floats(rng, *pick(rng, (n,), (1, n), (m, n), (m, 1), (1,), ())))
    return case


def fused_conv(rng: Rng) -> Case:
    case = Case("FusedConv")
    group, inner, outer = (int(d) for d in rng.integers(1, 4, 3))
    rank = pick(rng, 1, 2, 2)
    kernel = [int(d) for d in rng.integers(1, 4, rank)]
    case.attributes |= {"kernel_shape": kernel, "group": group}
    if maybe(rng):
        case.attributes["pads"] = [int(d) for d in rng.integers(0, 2, 2 * rank)]
    if maybe(rng):
        case.attributes["strides"] = [int(d) for d in rng.integers(1, 3, rank)]
    activation = pick(rng, "Relu", "Sigmoid", "Tanh", "LeakyRelu", "Clip", "HardSigmoid", "")
    if activation:
        case.attributes["activation"] = activation
    params = {"LeakyRelu": [0.1], "Clip": [-0.5, 0.75], "HardSigmoid": [0.3, 0.4]}.get(activation)
    if params:
        case.attributes["activation_params"] = params
    case.add("x", floats(rng, int(rng.integers(1, 3)), group * inner, *(int(d) for d in rng.integers(4, 8, rank))))
    case.add("w", floats(rng, group * outer, inner, *kernel), constant=True)
    if maybe(rng):
        case.add("b", floats(rng, group * outer), constant=True)
    return case


def embed_layer_norm(rng: Rng) -> Case:
    case = Case("EmbedLayerNormalization", outputs=pick(rng, 2, 3))
    batch, rows, hidden = (int(rng.integers(1, n)) for n in (4, 7, 9))
    case.add("ids", rng.integers(0, 11, (batch, rows)).astype(np.int32))
    segments = maybe(rng)
    case.add("segments", rng.integers(0, 2, (batch, rows)).astype(np.int32)) if segments else case.skip()
    case.add("words", floats(rng, 11, hidden), constant=True)
    case.add("places", floats(rng, 12, hidden), constant=True)
    case.add("kinds", floats(rng, 2, hidden), constant=True) if segments else case.skip()
    case.add("gamma", floats(rng, hidden), constant=True)
    case.add("beta", floats(rng, hidden), constant=True)
    mask = maybe(rng)
    if mask:
        ones = rng.integers(0, rows + 1, (batch, 1))
        case.add("mask", (np.arange(rows) < ones).astype(np.int32))
    else:
        case.skip()
    if maybe(rng, 0.3):
        case.add("position_ids", rng.integers(0, 12, (pick(rng, 1, batch), rows)).astype(np.int32))
    if maybe(rng):
        case.attributes["epsilon"] = float(pick(rng, 1e-12, 1e-5, 1e-3))
    return case


def skip_norm(rng: Rng) -> Case:
    rms = maybe(rng)
    case = Case("SkipSimplifiedLayerNormalization" if rms else "SkipLayerNormalization")
    batch, rows, hidden = (int(rng.integers(1, n)) for n in (4, 7, 9))
    case.add("x", floats(rng, batch, rows, hidden))
    shape = (batch, rows, hidden) if rms else pick(rng, (batch, rows, hidden), (1, rows, hidden), (rows, hidden))
    case.add("skip", floats(rng, *shape))
    case.add("gamma", floats(rng, hidden), constant=maybe(rng))
    if not rms:
        case.add("beta", floats(rng, hidden), constant=True) if maybe(rng) else case.skip()
    case.add("bias", floats(rng, hidden), constant=True) if maybe(rng) else case.skip()
    if maybe(rng):
        case.attributes["epsilon"] = float(pick(rng, 1e-12, 1e-5, 1e-3))
    return case


def gelu(rng: Rng) -> Case:
    case = Case(pick(rng, "BiasGelu", "FastGelu", "QuickGelu", "Gelu"))
    shape = [int(d) for d in rng.integers(1, 6, 3)]
    case.add("x", floats(rng, *shape))
    if case.op == "BiasGelu" or (case.op == "FastGelu" and maybe(rng)):
        case.add("b", floats(rng, shape[-1]))
    if case.op == "QuickGelu" and maybe(rng):
        case.attributes["alpha"] = float(rng.uniform(0.5, 2))
    return case


def matmul_nbits(rng: Rng) -> Case:
    case = Case("MatMulNBits", tolerance=1e-3)
    bits, block = pick(rng, 4, 4, 8, 2), pick(rng, 16, 32)
    k, n = int(rng.integers(1, 70)), int(rng.integers(1, 9))
    blocks = -(-k // block)
    case.attributes |= {"K": k, "N": n, "bits": bits, "block_size": block}
    if maybe(rng, 0.3):
        case.attributes["accuracy_level"] = pick(rng, 0, 1)
    case.add("a", floats(rng, *pick(rng, (3, k), (2, 3, k), (1, k))))
    case.add("b", rng.integers(0, 256, (n, blocks, block * bits // 8)).astype(np.uint8), constant=True)
    case.add("scales", np.abs(floats(rng, *pick(rng, (n, blocks), (n * blocks,)))) + 0.1, constant=True)
    zero = pick(rng, "none", "packed", "float")
    if zero == "packed":
        case.add("zeros", rng.integers(0, 256, (n, -(-blocks * bits // 8))).astype(np.uint8), constant=True)
    elif zero == "float":
        case.add("zeros", floats(rng, n, blocks), constant=True)
    else:
        case.skip()
    case.skip()
    if maybe(rng, 0.3):
        case.add("bias", floats(rng, n), constant=True)
    return case


def gather_block_quantized(rng: Rng) -> Case:
    case = Case("GatherBlockQuantized")
    block, bits = pick(rng, 16, 32), pick(rng, 4, 8)
    rows, size = int(rng.integers(1, 9)), block * int(rng.integers(1, 4))
    case.attributes |= {"block_size": block, "gather_axis": 0, "quantize_axis": 1, "bits": bits}
    case.add("data", rng.integers(0, 256, (rows, size * bits // 8)).astype(np.uint8), constant=True)
    case.add("indices", rng.integers(-rows, rows, pick(rng, (3,), (2, 3), ())), constant=maybe(rng, 0.3))
    case.add("scales", np.abs(floats(rng, rows, size // block)) + 0.1, constant=True)
    if maybe(rng):
        case.add("zeros", rng.integers(0, 256, (rows, -(-size // block * bits // 8))).astype(np.uint8), constant=True)
    return case
