# SPDX-License-Identifier: Apache-2.0
"""Check attention of opset 23 and unrolled loops against numpy: composite.py make|check FOLDER."""
import pathlib
import sys

import numpy as np
from onnx import TensorProto, helper

import models
from tessera import safetensors_io

F32, I64, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL
value = helper.make_tensor_value_info
SHAPES = {
    "q": (2, 4, 3, 8),
    "k": (2, 2, 3, 8),
    "v": (2, 2, 3, 8),
    "past_k": (2, 2, 2, 8),
    "past_v": (2, 2, 2, 8),
    "x": (4, 3),
    "s": (3,),
}


def inputs():
    rng = np.random.default_rng(3)
    return {name: rng.standard_normal(shape).astype(np.float32) for name, shape in SHAPES.items()}


def attention(q, k, v, mask, scale):
    k, v = np.repeat(k, 2, 1), np.repeat(v, 2, 1)
    scores = scale * q @ k.swapaxes(2, 3) + mask
    weights = np.exp(scores - np.maximum(scores.max(-1, keepdims=True), -1e30))
    return weights / np.maximum(weights.sum(-1, keepdims=True), 1e-30) @ v


def expected(a):
    """Return the outputs according to the definitions, in order."""
    k, v = np.concatenate([a["past_k"], a["k"]], 2), np.concatenate([a["past_v"], a["v"]], 2)
    causal = np.where(np.arange(5)[None] <= np.arange(3)[:, None] + 2, 0.0, -np.inf)
    result = {"cached": attention(a["q"], k, v, causal, 8**-0.5), "present": k}
    heads = lambda x: x.swapaxes(1, 2).reshape(2, 3, -1)
    visible = np.where(np.arange(3) != 1, 0.0, -np.inf)
    result["flat"] = heads(attention(a["q"], a["k"], a["v"], visible, 0.3))
    # Left padding: with the causal mask, the first query has no key.
    padded = np.where(np.arange(3) > 0, causal[:, 2:], -np.inf)
    result["padded"] = attention(a["q"], a["k"], a["v"], padded, 8**-0.5)
    sums = np.cumsum(a["x"][::-1], 0) + a["s"]
    result |= {"state": sums[-1], "sums": sums, "looped": a["s"] + 0 + 1 + 2, "counted": np.arange(3.0)}
    return result


def graph():
    node = helper.make_node
    scan = helper.make_graph(
        [node("Add", ["carry", "row"], ["next"]), node("Identity", ["next"], ["out"])],
        "scan_body",
        [value("carry", F32, [3]), value("row", F32, [3])],
        [value("next", F32, [3]), value("out", F32, [3])],
    )
    loop = helper.make_graph(
        [
            node("Cast", ["i"], ["f"], to=F32),
            node("Add", ["carried", "f"], ["moved"]),
            node("Identity", ["go"], ["on"]),
        ],
        "loop_body",
        [value("i", I64, []), value("go", BOOL, []), value("carried", F32, [3])],
        [value("on", BOOL, []), value("moved", F32, [3]), value("f", F32, [])],
    )
    flat = [node("Transpose", [x], [x + "_t"], perm=[0, 2, 1, 3]) for x in "qkv"]
    flat += [node("Reshape", [x + "_t", "rows"], [x + "_flat"]) for x in "qkv"]
    nodes = flat + [
        node("Attention", ["q", "k", "v", "", "past_k", "past_v"], ["cached", "present", ""], "cached", is_causal=1),
        node(
            "Attention",
            ["q_flat", "k_flat", "v_flat", "visible"],
            ["flat"],
            "flat",
            q_num_heads=4,
            kv_num_heads=2,
            scale=0.3,
        ),
        node("Attention", ["q", "k", "v", "left"], ["padded"], "padded", is_causal=1),
        node("Scan", ["s", "x"], ["state", "sums"], "scan", body=scan, num_scan_inputs=1, scan_input_directions=[1]),
        node("Loop", ["trips", "", "s"], ["looped", "counted"], "loop", body=loop),
    ]
    constants = [
        models.constant("rows", np.array([2, 3, -1])),
        models.constant("trips", np.array(3)),
        models.constant("left", np.array([[False, True, True]] * 3)),
        models.constant("visible", np.array([[True, False, True]] * 3)),
    ]
    outputs = [value(name, F32, None) for name in expected(inputs())]
    return helper.make_model(
        helper.make_graph(nodes, "g", [value(n, F32, s) for n, s in SHAPES.items()], outputs, constants),
        opset_imports=[helper.make_opsetid("", 23)],
        ir_version=10,
    )


def main():
    folder = pathlib.Path(sys.argv[2])
    if sys.argv[1] == "make":
        (folder / "m.onnx").write_bytes(graph().SerializeToString())
        safetensors_io.save(folder / "in.safetensors", inputs())
        return
    got, wanted = safetensors_io.load(folder / "out.safetensors"), expected(inputs())
    for name, ref in wanted.items():
        np.testing.assert_allclose(got[name], ref, rtol=1e-4, atol=1e-5, err_msg=name)
    print(len(wanted), "outputs agree")


main()
