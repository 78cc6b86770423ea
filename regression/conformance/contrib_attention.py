# SPDX-License-Identifier: Apache-2.0
"""Random nodes of attention, rotary embeddings and caches. See random_contrib.py."""
from __future__ import annotations


import numpy as np
from contrib_case import Case, Rng, floats, maybe, pick


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
