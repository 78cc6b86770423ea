# SPDX-License-Identifier: Apache-2.0
"""Writes net.onnx, two convolutions with com.example::Bilateral between them, and samples.npz."""
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

random = np.random.default_rng(1)


def weights(name: str, *shape: int) -> onnx.TensorProto:
    return numpy_helper.from_array(random.normal(0, 0.3, shape).astype(np.float32), name)


nodes = [
    helper.make_node("Conv", ["x", "w1"], ["features"], "first", pads=[1, 1, 1, 1]),
    helper.make_node(
        "Bilateral",
        ["features"],
        ["smooth"],
        "smoother",
        domain="com.example",
        radius=2,
        sigma_space=1.5,
        sigma_value=0.5,
    ),
    helper.make_node("Conv", ["smooth", "w2"], ["y"], "second", pads=[1, 1, 1, 1]),
]
graph = helper.make_graph(
    nodes,
    "net",
    [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 3, 16, 16])],
    [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 4, 16, 16])],
    [weights("w1", 8, 3, 3, 3), weights("w2", 4, 8, 3, 3)],
)
opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.example", 1)]
onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=8), "net.onnx")
np.savez("samples.npz", x=random.normal(0, 1, (8, 3, 16, 16)).astype(np.float32))
