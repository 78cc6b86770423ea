# SPDX-License-Identifier: Apache-2.0
"""Writes models whose inputs and outputs can be states."""
import sys
from pathlib import Path

from onnx import TensorProto, helper


def tensor(name: str, *shape: object):
    return helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)


def save(name: str, nodes: list, inputs: list, outputs: list) -> None:
    graph = helper.make_graph(nodes, "m", inputs, outputs)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    (Path(sys.argv[1]) / name).write_bytes(model.SerializeToString())


def step() -> list:
    return [
        helper.make_node("Add", ["x", "h_in"], ["sum"]),
        helper.make_node("Tanh", ["sum"], ["h_out"]),
        helper.make_node("Mul", ["h_out", "prev"], ["y"]),
        helper.make_node("Relu", ["prev"], ["second"]),
    ]


FOUR = ("x", "h_in", "prev")
save(
    "m.onnx",
    [*step(), helper.make_node("ReduceSum", ["wide"], ["unused"])],
    [*(tensor(name, 1, 4) for name in FOUR), tensor("wide", 1, 5)],
    [tensor(name, 1, 4) for name in ("y", "h_out", "second")],
)
save(
    "open.onnx",
    step(),
    [tensor(name, "N", 4) for name in FOUR],
    [tensor(name, "N", 4) for name in ("y", "h_out", "second")],
)
# Not detected as states: min (no output is named like it), a (a_n has another type) and d (d_out and d_new fit it).
INPUTS = ("past_key_values.0.key", "state", "h0", "c", "cell_prev", "min", "d")
OUTPUTS = ("present.0.key", "stateN", "hn", "cn", "cell_next", "mout", "d_out", "d_new")
save(
    "names.onnx",
    [helper.make_node("Relu", [name], [output]) for name, output in zip((*INPUTS, "d"), OUTPUTS)]
    + [helper.make_node("Concat", ["a", "a"], ["a_n"], axis=0)],
    [*(tensor(name, 2) for name in INPUTS), tensor("a", 3)],
    [*(tensor(name, 2) for name in OUTPUTS), tensor("a_n", 6)],
)
