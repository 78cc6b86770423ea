# SPDX-License-Identifier: Apache-2.0
"""Models of one operator with random attributes, shapes and optional inputs, against onnxruntime: operators of
onnxruntime's optimiser (com.microsoft), of ai.onnx.ml, of attention, and conversions of stored types.

    build/bin/tessera-python regression/conformance/random_contrib.py [--seeds 0:400] [--family NAME] [--chip x86]

A case passes if the reference (and with --chip its compiled code) gives what onnxruntime gives, or if Tessera rejects
it by name. onnxruntime's own rejections are skipped. Prints a table by family.
"""
from __future__ import annotations

import argparse
import collections
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Callable

import numpy as np
import onnx
from contrib_case import ML, Case, Rng, floats, maybe, pick
from contrib_experts import mixture, quantised_mixture
from engines import Compiler, StageError, deploy, run_bmodel, run_reference
from onnx import TensorProto, helper, numpy_helper

# --- attention ---------------------------------------------------------------------------


def padding_mask(rng: Rng, batch: int, queries: int, keys: int) -> np.ndarray | None:
    kind = pick(rng, "none", "lengths", "ends", "raw", "rows")
    if kind == "lengths":
        return rng.integers(1, keys + 1, batch).astype(np.int32)
    if kind == "ends":
        starts = rng.integers(0, keys, batch)
        ends = starts + 1 + rng.integers(0, keys - starts)
        return np.concatenate([ends, starts]).astype(np.int32)
    if kind == "raw":
        return (rng.random((batch, keys)) < 0.7).astype(np.int32)
    return (rng.random((batch, queries, keys)) < 0.7).astype(np.int32) if kind == "rows" else None


def common_attention(rng: Rng, case: Case) -> None:
    if maybe(rng):
        case.attributes["scale"] = float(rng.uniform(0.1, 1.0))
    if maybe(rng):
        case.attributes["unidirectional"] = int(rng.integers(2))
    if maybe(rng, 0.6):
        case.attributes["mask_filter_value"] = float(pick(rng, -1.5, -5.0))
    else:
        case.tolerance = 2e-3  # scores minus 10000 keep three digits


def attention(rng: Rng) -> Case:
    case = Case("Attention", outputs=1)
    batch, rows, heads, size, wide = (int(rng.integers(1, n)) for n in (4, 7, 4, 9, 10))
    value_size = size if maybe(rng, 0.6) else int(rng.integers(1, 9))
    hidden, value_hidden = heads * size, heads * value_size
    case.attributes["num_heads"] = heads
    past = int(rng.integers(1, 5)) if maybe(rng, 0.4) and value_size == size else 0
    if value_size != size or maybe(rng, 0.2):
        case.attributes["qkv_hidden_sizes"] = [hidden, hidden, value_hidden]
    common_attention(rng, case)
    case.add("x", floats(rng, batch, rows, wide))
    case.add("w", floats(rng, wide, 2 * hidden + value_hidden), constant=maybe(rng))
    if maybe(rng, 0.8):
        case.add("b", floats(rng, 2 * hidden + value_hidden), constant=maybe(rng))
    else:
        case.skip()
    mask = padding_mask(rng, batch, rows, rows + past)
    case.add("mask", mask) if mask is not None else case.skip()
    if past:
        case.add("past", floats(rng, 2, batch, heads, past, size))
        case.outputs = 2
    else:
        case.skip()
        case.outputs = 1 + int(maybe(rng, 0.2))
    if maybe(rng, 0.4):
        case.add("bias", floats(rng, pick(rng, 1, batch), pick(rng, 1, heads), rows, rows + past))
    return case


def multi_head_attention(rng: Rng) -> Case:
    case = Case("MultiHeadAttention")
    batch, rows, heads, size = (int(rng.integers(1, n)) for n in (4, 7, 4, 9))
    keys = rows if maybe(rng, 0.6) else int(rng.integers(1, 7))
    value_size = size if maybe(rng, 0.6) else int(rng.integers(1, 9))
    case.attributes["num_heads"] = heads
    common_attention(rng, case)
    form = pick(rng, "plain", "plain", "plain", "packed", "packed_kv", "cache")
    past = int(rng.integers(1, 5)) if form == "plain" and maybe(rng, 0.4) and value_size == size else 0
    if form == "packed":
        keys = rows
        case.add("q", floats(rng, batch, rows, heads, 3, size))
        case.skip(), case.skip(), case.skip()
    elif form == "packed_kv":
        case.add("q", floats(rng, batch, rows, heads * size))
        case.add("k", floats(rng, batch, keys, heads, 2, size))
        case.skip(), case.skip()
    elif form == "cache":
        case.add("q", floats(rng, batch, rows, heads * size))
        case.add("k", floats(rng, batch, heads, keys, size))
        case.add("v", floats(rng, batch, heads, keys, size))
        case.skip()
    else:
        case.add("q", floats(rng, batch, rows, heads * size))
        case.add("k", floats(rng, batch, keys, heads * size))
        case.add("v", floats(rng, batch, keys, heads * value_size))
        if maybe(rng, 0.5):
            case.add("b", floats(rng, heads * (2 * size + value_size)), constant=maybe(rng))
        else:
            case.skip()
    mask = padding_mask(rng, batch, rows, keys + past)
    case.add("mask", mask) if mask is not None else case.skip()
    if maybe(rng, 0.4):
        case.add("bias", floats(rng, pick(rng, 1, batch), pick(rng, 1, heads), rows, keys + past))
    else:
        case.skip()
    if past:
        case.add("past_k", floats(rng, batch, heads, past, size))
        case.add("past_v", floats(rng, batch, heads, past, size))
        case.outputs = 3
    return case


def group_query_attention(rng: Rng) -> Case:
    case = Case("GroupQueryAttention", outputs=3)
    key_heads, repeats, size = int(rng.integers(1, 4)), int(rng.integers(1, 4)), 16 * int(rng.integers(1, 3))
    heads = key_heads * repeats
    first = maybe(rng)
    batch = int(rng.integers(1, 4))
    rows = int(rng.integers(1, 7)) if first or batch == 1 else 1
    old = 0 if first else int(rng.integers(1, 9))
    room = old + rows + (int(rng.integers(0, 4)) if maybe(rng, 0.3) else 0)
    case.attributes |= {"num_heads": heads, "kv_num_heads": key_heads}
    rotary = maybe(rng)
    for name, value, chance in (
        ("scale", float(rng.uniform(0.1, 1.0)), 0.3),
        ("softcap", float(rng.uniform(0.5, 3.0)), 0.3),
        ("local_window_size", int(rng.integers(1, 6)), 0.3),
        ("smooth_softmax", 1, 0.2),
        ("do_rotary", 1, 1.0 if rotary else 0.0),
        ("rotary_interleaved", int(rng.integers(2)), 0.5),
    ):
        if maybe(rng, chance):
            case.attributes[name] = value
    if maybe(rng, 0.3):
        case.add("q", floats(rng, batch, rows, (heads + 2 * key_heads) * size))
        case.skip(), case.skip()
    else:
        case.add("q", floats(rng, batch, rows, heads * size))
        case.add("k", floats(rng, batch, rows, key_heads * size))
        case.add("v", floats(rng, batch, rows, key_heads * size))
    if not first:
        case.add("past_k", floats(rng, batch, key_heads, room if maybe(rng, 0.3) else old, size))
        case.add("past_v", floats(rng, batch, key_heads, case.fed["past_k"].shape[2], size))
    else:
        case.skip(), case.skip()
    case.add("seqlens", np.full(batch, old + rows - 1, np.int32), constant=maybe(rng))
    if rows == 1 and not first and maybe(rng, 0.5):  # sequences of other lengths
        lengths = rng.integers(0, old + rows, batch).astype(np.int32)
        lengths[int(rng.integers(batch))] = old + rows - 1
        case.fed.pop("seqlens", None), case.constants.pop("seqlens", None)
        case.fed["seqlens"] = lengths
        case.compared = 1  # the values after the tokens of a cache are not specified
    case.add("total", np.array(old + rows, np.int32), constant=True)
    if rotary:
        case.add("cos", floats(rng, 32, size // 2), constant=True)
        case.add("sin", floats(rng, 32, size // 2), constant=True)
    else:
        case.skip(), case.skip()
    case.skip()
    if maybe(rng, 0.3):
        case.add("bias", floats(rng, pick(rng, 1, batch), pick(rng, 1, heads), rows, old + rows))
    else:
        case.skip()
    if maybe(rng, 0.2) and "smooth_softmax" not in case.attributes:
        case.add("sink", floats(rng, heads), constant=True)
    else:
        case.skip()
    return case


def rotary(rng: Rng) -> Case:
    case = Case("RotaryEmbedding")
    batch, rows, heads, half = (int(rng.integers(1, n)) for n in (4, 6, 4, 5))
    size = 2 * half
    partial = maybe(rng, 0.3)
    rotated = 2 * int(rng.integers(1, half + 1)) if partial else size
    if partial:
        case.attributes |= {"rotary_embedding_dim": rotated, "num_heads": heads}
    elif maybe(rng, 0.3):
        case.attributes["num_heads"] = heads
    if maybe(rng):
        case.attributes["interleaved"] = int(rng.integers(2))
    flat = maybe(rng)
    case.add("x", floats(rng, batch, rows, heads * size) if flat else floats(rng, batch, heads, rows, size))
    one = maybe(rng)
    case.add("ids", rng.integers(0, 4, 1) if one else rng.integers(0, 10, (batch, rows)), constant=maybe(rng))
    case.add("cos", floats(rng, 10, rotated // 2), constant=maybe(rng))
    case.add("sin", floats(rng, 10, rotated // 2), constant=maybe(rng))
    return case


def onnx_rotary(rng: Rng) -> Case:
    case = Case("RotaryEmbedding", domain="", opset=23)
    batch, rows, heads, half = (int(rng.integers(1, n)) for n in (4, 6, 4, 5))
    size = 2 * half
    rotated = 2 * int(rng.integers(1, half + 1)) if maybe(rng, 0.4) else size
    flat = maybe(rng)
    if flat or maybe(rng, 0.2):
        case.attributes["num_heads"] = heads
    if rotated != size or maybe(rng, 0.2):
        case.attributes["rotary_embedding_dim"] = rotated
    if maybe(rng):
        case.attributes["interleaved"] = int(rng.integers(2))
    case.add("x", floats(rng, batch, rows, heads * size) if flat else floats(rng, batch, heads, rows, size))
    if maybe(rng):
        case.add("cos", floats(rng, 10, rotated // 2))
        case.add("sin", floats(rng, 10, rotated // 2))
        case.add("ids", rng.integers(0, 10, (batch, rows)))
    else:
        case.add("cos", floats(rng, batch, rows, rotated // 2))
        case.add("sin", floats(rng, batch, rows, rotated // 2))
    return case


def onnx_attention(rng: Rng) -> Case:
    case = Case("Attention", domain="", opset=pick(rng, 23, 24))
    batch, rows, key_heads, repeats, size = (int(rng.integers(1, n)) for n in (4, 6, 3, 3, 7))
    keys = rows if maybe(rng) else int(rng.integers(1, 6))
    heads, value_size = key_heads * repeats, int(rng.integers(1, 7))
    past = int(rng.integers(1, 4)) if maybe(rng, 0.3) else 0
    keys = 1 if past and rows == 1 else keys  # for one query onnxruntime hides nothing, ONNX later keys
    flat = maybe(rng)
    if flat:
        case.attributes |= {"q_num_heads": heads, "kv_num_heads": key_heads}
        case.add("q", floats(rng, batch, rows, heads * size))
        case.add("k", floats(rng, batch, keys, key_heads * size))
        case.add("v", floats(rng, batch, keys, key_heads * value_size))
    else:
        case.add("q", floats(rng, batch, heads, rows, size))
        case.add("k", floats(rng, batch, key_heads, keys, size))
        case.add("v", floats(rng, batch, key_heads, keys, value_size))
    for name, value, chance in (
        ("scale", float(rng.uniform(0.1, 1.0)), 0.3),
        ("softcap", float(rng.uniform(0.5, 3.0)), 0.3),
        ("is_causal", 1, 0.4),
        ("softmax_precision", 1, 0.2),
    ):
        if maybe(rng, chance):
            case.attributes[name] = value
    total = keys + past
    shapes = [
        (rows, total),
        (heads, rows, total),
        (1, rows, total),
        (batch, heads, rows, total),
        (batch, 1, rows, total),
    ]
    kind = pick(rng, "none", "bool", "float", "short")
    if kind == "none":
        case.skip()
    else:
        shape = shapes[int(rng.integers(len(shapes)))]
        if kind == "short" and case.opset == 24 and total > 2:
            shape = (*shape[:-1], total - 1)
        if kind == "bool":
            mask = rng.random(shape) < 0.7
            mask[..., 0] = True
            case.add("mask", mask)
        else:
            case.add("mask", floats(rng, *shape))
    if past:
        case.add("past_k", floats(rng, batch, key_heads, past, size))
        case.add("past_v", floats(rng, batch, key_heads, past, value_size))
        case.outputs = 3
    elif case.opset == 24 and maybe(rng, 0.3):
        case.skip(), case.skip()
        case.add(
            "lengths", rng.integers(rows if "is_causal" in case.attributes and rows <= keys else 1, keys + 1, batch)
        )
    if maybe(rng, 0.3):
        case.outputs = 4
        case.attributes["qk_matmul_output_mode"] = int(rng.integers(4))
    return case


def tensor_scatter(rng: Rng) -> Case:
    case = Case("TensorScatter", domain="", opset=24)
    rank = int(rng.integers(3, 5))
    dims = [int(d) for d in rng.integers(1, 5, rank)]
    axis = int(rng.integers(1, rank))
    dims[axis] += 3
    update = list(dims)
    update[axis] = int(rng.integers(1, 4))
    if axis != rank - 2 or maybe(rng):
        case.attributes["axis"] = axis - pick(rng, 0, rank)
    circular = maybe(rng)
    if circular or maybe(rng, 0.3):
        case.attributes["mode"] = "circular" if circular else "linear"
    case.add("cache", floats(rng, *dims))
    case.add("update", floats(rng, *update))
    if maybe(rng, 0.8):
        limit = dims[axis] if circular else dims[axis] - update[axis] + 1
        case.add("starts", rng.integers(0, limit, dims[0]))
    return case


# --- what the optimiser fuses ------------------------------------------------------------


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


# --- ai.onnx.ml --------------------------------------------------------------------------


def ml(op: str) -> Case:
    return Case(op, domain=ML)


def scaler(rng: Rng) -> Case:
    case = ml("Scaler")
    rows, columns = (int(d) for d in rng.integers(1, 6, 2))
    x = floats(rng, rows, columns) if maybe(rng, 0.7) else rng.integers(-9, 9, (rows, columns)).astype(np.int64)
    case.add("x", x)
    width = pick(rng, 1, columns)
    case.attributes |= {
        "offset": [float(v) for v in floats(rng, width)],
        "scale": [float(v) for v in floats(rng, width)],
    }
    return case


def normalizer(rng: Rng) -> Case:
    case = ml("Normalizer")
    x = floats(rng, int(rng.integers(1, 6)), int(rng.integers(1, 6)))
    if maybe(rng, 0.3):
        x[0] = 0
    case.add("x", x)
    case.attributes["norm"] = pick(rng, "MAX", "L1", "L2")
    return case


def binarizer(rng: Rng) -> Case:
    case = ml("Binarizer")
    case.add("x", floats(rng, 3, 4))
    if maybe(rng):
        case.attributes["threshold"] = float(rng.uniform(-1, 1))
    return case


def label_encoder(rng: Rng) -> Case:
    case = ml("LabelEncoder")
    count = int(rng.integers(1, 7))
    ints = rng.integers(-5, 6, count)
    case.attributes |= (
        {"keys_int64s": [int(v) for v in ints]} if maybe(rng) else {"keys_floats": [float(v) for v in ints]}
    )
    case.attributes |= (
        {"values_int64s": [int(v) for v in rng.integers(-9, 9, count)]}
        if maybe(rng)
        else {"values_floats": [float(v) for v in floats(rng, count)]}
    )
    if maybe(rng):
        case.attributes["default_int64" if "values_int64s" in case.attributes else "default_float"] = (
            7 if "values_int64s" in case.attributes else 7.5
        )
    x = rng.integers(-6, 7, (3, 4))
    case.add("x", x if "keys_int64s" in case.attributes else x.astype(np.float32))
    return case


def imputer(rng: Rng) -> Case:
    case = ml("Imputer")
    columns = int(rng.integers(1, 5))
    width = pick(rng, 1, columns)
    if maybe(rng):
        x = floats(rng, 4, columns)
        missing = pick(rng, float("nan"), 2.0)
        x[rng.random(x.shape) < 0.4] = missing
        case.attributes |= {"imputed_value_floats": [float(v) for v in floats(rng, width)]}
        case.attributes["replaced_value_float"] = missing
    else:
        x = rng.integers(-2, 3, (4, columns))
        case.attributes |= {"imputed_value_int64s": [int(v) for v in rng.integers(5, 9, width)]}
        case.attributes["replaced_value_int64"] = 1
    case.add("x", x)
    return case


def array_feature_extractor(rng: Rng) -> Case:
    case = ml("ArrayFeatureExtractor")
    columns = int(rng.integers(1, 6))
    case.add("x", floats(rng, *pick(rng, (columns,), (3, columns), (2, 3, columns))))
    count = int(rng.integers(1, 4))
    case.add("y", rng.integers(0, columns, pick(rng, (count,), (1, count))), constant=maybe(rng))
    return case


def one_hot_encoder(rng: Rng) -> Case:
    case = ml("OneHotEncoder")
    cats = rng.permutation(9)[: int(rng.integers(1, 6))]
    case.attributes |= {"cats_int64s": [int(v) for v in cats], "zeros": 1}
    x = rng.integers(0, 9, pick(rng, (4,), (2, 3)))
    case.add("x", x if maybe(rng) else x.astype(np.float32))
    return case


@dataclass
class Trees:
    """The lists of attributes that describe random trees."""

    lists: dict[str, list] = field(default_factory=lambda: collections.defaultdict(list))
    leaves: list[tuple[int, int]] = field(default_factory=list)

    def grow(self, rng: Rng, tree: int, features: int, modes: list[str], depth: int) -> int:
        number = sum(1 for t in self.lists["nodes_treeids"] if t == tree)
        place = len(self.lists["nodes_treeids"])
        for name, value in (
            ("nodes_treeids", tree),
            ("nodes_nodeids", number),
            ("nodes_featureids", int(rng.integers(features))),
            ("nodes_values", float(np.float32(rng.integers(-4, 5) / 4))),
            ("nodes_modes", "LEAF"),
            ("nodes_truenodeids", 0),
            ("nodes_falsenodeids", 0),
            ("nodes_missing_value_tracks_true", int(rng.integers(2))),
        ):
            self.lists[name].append(value)
        if depth == 0 or (depth < 3 and maybe(rng, 0.3)):
            self.leaves.append((tree, number))
            return number
        self.lists["nodes_modes"][place] = pick(rng, *modes)
        self.lists["nodes_truenodeids"][place] = self.grow(rng, tree, features, modes, depth - 1)
        self.lists["nodes_falsenodeids"][place] = self.grow(rng, tree, features, modes, depth - 1)
        return number


def random_trees(rng: Rng, features: int) -> Trees:
    trees = Trees()
    all_modes = ["BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ"]
    modes = [pick(rng, *all_modes[:4])] if maybe(rng) else all_modes
    for tree in range(int(rng.integers(1, 5))):
        trees.grow(rng, tree, features, modes, int(rng.integers(1, 4)))
    if maybe(rng, 0.6):
        del trees.lists["nodes_missing_value_tracks_true"]
    return trees


def tree_input(rng: Rng, case: Case, features: int) -> None:
    x = (rng.integers(-4, 5, (5, features)) / 4).astype(np.float32)
    if maybe(rng, 0.3):
        x[rng.random(x.shape) < 0.2] = np.nan
    kind = pick(rng, np.float32, np.float32, np.float64)
    case.add("x", x.astype(kind))


def tree_regressor(rng: Rng) -> Case:
    case = ml("TreeEnsembleRegressor")
    features, targets = (int(d) for d in rng.integers(1, 4, 2))
    trees = random_trees(rng, features)
    case.attributes |= dict(trees.lists)
    rows = [(t, n, k) for t, n in trees.leaves for k in range(targets) if targets == 1 or maybe(rng, 0.7)]
    rows = rows or [(*trees.leaves[0], 0)]
    case.attributes |= {
        "n_targets": targets,
        "target_treeids": [r[0] for r in rows],
        "target_nodeids": [r[1] for r in rows],
        "target_ids": [r[2] for r in rows],
        "target_weights": [float(v) for v in floats(rng, len(rows))],
    }
    if maybe(rng):
        case.attributes["aggregate_function"] = pick(rng, "SUM", "AVERAGE", "MIN", "MAX")
    if maybe(rng, 0.4):
        case.attributes["base_values"] = [float(v) for v in floats(rng, targets)]
    if maybe(rng, 0.4):
        case.attributes["post_transform"] = pick(rng, "NONE", "LOGISTIC", "SOFTMAX")
    tree_input(rng, case, features)
    return case


def tree_classifier(rng: Rng) -> Case:
    case = ml("TreeEnsembleClassifier")
    case.outputs = 2
    features, classes = int(rng.integers(1, 4)), int(rng.integers(2, 5))
    trees = random_trees(rng, features)
    case.attributes |= dict(trees.lists)
    if classes == 2 and maybe(rng, 0.7):
        rows = [(t, n, 0) for t, n in trees.leaves]
    else:
        rows = [(t, n, k) for t, n in trees.leaves for k in range(classes) if maybe(rng, 0.7)] or [
            (*trees.leaves[0], 0)
        ]
    weights = floats(rng, len(rows)) if maybe(rng) else rng.random(len(rows)).astype(np.float32) / len(trees.leaves)
    case.attributes |= {
        "classlabels_int64s": [int(v) for v in rng.permutation(20)[:classes]],
        "class_treeids": [r[0] for r in rows],
        "class_nodeids": [r[1] for r in rows],
        "class_ids": [r[2] for r in rows],
        "class_weights": [float(v) for v in weights],
    }
    if maybe(rng, 0.5):
        case.attributes["post_transform"] = pick(rng, "NONE", "LOGISTIC", "SOFTMAX", "SOFTMAX_ZERO")
    if maybe(rng, 0.3):
        case.attributes["base_values"] = [float(v) for v in floats(rng, classes)]
    tree_input(rng, case, features)
    return case


def tf_idf(rng: Rng) -> Case:
    case = Case("TfIdfVectorizer", domain="", opset=9)
    lengths = int(rng.integers(1, 4))
    counts, pool, grams = [], [], 0
    for length in range(1, lengths + 1):
        counts.append(len(pool))
        own = {tuple(int(v) for v in rng.integers(0, 4, length)) for _ in range(int(rng.integers(0, 4)))}
        own |= {tuple(int(v) for v in rng.integers(0, 4, length))} if length == lengths else set()
        for gram in sorted(own):
            pool += gram
        grams += len(own)
    most = int(rng.integers(1, lengths + 1))
    case.attributes |= {
        "ngram_counts": counts,
        "ngram_indexes": [int(v) for v in rng.permutation(grams)],
        "pool_int64s": pool,
        "min_gram_length": int(rng.integers(1, most + 1)),
        "max_gram_length": lengths if maybe(rng, 0.7) else most,
        "max_skip_count": int(rng.integers(0, 3)),
        "mode": pick(rng, "TF", "IDF", "TFIDF"),
    }
    if maybe(rng):
        case.attributes["weights"] = [float(v) for v in floats(rng, grams)]
    shape = pick(rng, (int(rng.integers(1, 9)),), (2, int(rng.integers(1, 9))))
    case.add("x", rng.integers(0, 4, shape).astype(pick(rng, np.int32, np.int64)))
    return case


FAMILIES: dict[str, Callable[[Rng], Case]] = {
    f.__name__: f
    for f in (
        attention,
        multi_head_attention,
        group_query_attention,
        rotary,
        onnx_rotary,
        onnx_attention,
        tensor_scatter,
        fused_matmul,
        fused_gemm,
        fused_conv,
        embed_layer_norm,
        skip_norm,
        gelu,
        matmul_nbits,
        gather_block_quantized,
        mixture,
        quantised_mixture,
        scaler,
        normalizer,
        binarizer,
        label_encoder,
        imputer,
        array_feature_extractor,
        one_hot_encoder,
        tree_regressor,
        tree_classifier,
        tf_idf,
    )
}


# --- running -----------------------------------------------------------------------------


def expected(case: Case, model: onnx.ModelProto) -> list[np.ndarray] | str:
    """Returns onnxruntime's outputs. If it rejects the case: those of the case's own reference, or else its message."""
    import onnxruntime as ort

    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    try:
        session = ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
        return session.run(None, case.fed)
    except Exception as error:  # of any of onnxruntime's kinds
        return case.reference() if case.reference else str(error)


def run_case(compiler: Compiler, case: Case, chip: str | None) -> tuple[str, str]:
    """Runs a case; returns (outcome, message)."""
    model = case.model()
    want = expected(case, model)
    if isinstance(want, str):
        return "skipped", want.strip().splitlines()[0][-200:]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "m.onnx").write_bytes(model.SerializeToString())
        try:
            compiler("import", "import", "--onnx", folder / "m.onnx", "--output", folder / "m_top.mlir")
            results = [run_reference(compiler, folder / "m_top.mlir", case.fed)]
            if chip:
                results.append(run_bmodel(deploy(compiler, folder / "m_top.mlir", chip), case.fed))
        except StageError as error:
            return ("rejected" if error.rejected else "failed"), f"{error.stage}: {error}"
    for got in results:
        for i, wanted in enumerate(want[: case.compared]):
            problem = difference(got.get(f"out{i}"), wanted, case.tolerance)
            if problem:
                return "differs", f"output {i}: {problem}"
    return "passed", ""


def difference(got: np.ndarray | None, want: np.ndarray, tolerance: float) -> str:
    if got is None or got.shape != want.shape or got.dtype != want.dtype:
        return f"{None if got is None else (got.dtype, got.shape)} in place of {(want.dtype, want.shape)}"
    if np.issubdtype(want.dtype, np.integer):
        return "" if np.array_equal(got, want) else f"{got.ravel()[:8]} in place of {want.ravel()[:8]}"
    got = np.maximum(got, np.finfo(np.float32).min)  # onnxruntime hides scores with this value
    if np.allclose(got, want, rtol=tolerance, atol=tolerance, equal_nan=True):
        return ""
    worst = int(np.nanargmax(np.abs(got - want))) if not np.all(np.isnan(got - want)) else 0
    return f"element {worst} is {got.ravel()[worst]}, expected {want.ravel()[worst]}"


def describe(case: Case) -> str:
    shapes = {
        name: (name in case.constants and "constant ", np.shape(array))
        for name, array in (case.fed | case.constants).items()
    }
    short = {k: v for k, v in case.attributes.items() if not isinstance(v, list) or len(v) < 9}
    return f"{case.op} {short} {case.names} {shapes}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", default="0:400")
    parser.add_argument("--family", choices=sorted(FAMILIES))
    parser.add_argument("--chip")
    parser.add_argument("--verbose", action="store_true", help="also list what is rejected")
    arguments = parser.parse_args()
    first, last = (int(v) for v in arguments.seeds.split(":"))
    names = [arguments.family] if arguments.family else list(FAMILIES)
    counts: dict[str, collections.Counter] = collections.defaultdict(collections.Counter)
    compiler = Compiler()
    for seed in range(first, last):
        name = names[seed % len(names)]
        case = FAMILIES[name](np.random.default_rng(seed))
        outcome, message = run_case(compiler, case, arguments.chip)
        counts[name][outcome] += 1
        if outcome in ("failed", "differs") or (arguments.verbose and outcome != "passed"):
            print(f"{name} {seed} {outcome}: {message}\n    {describe(case)}")
    for name, by_outcome in counts.items():
        print(f"{name:26}" + "  ".join(f"{kind} {count}" for kind, count in sorted(by_outcome.items())))
    return int(any(c["failed"] + c["differs"] for c in counts.values()))


if __name__ == "__main__":
    sys.exit(main())
