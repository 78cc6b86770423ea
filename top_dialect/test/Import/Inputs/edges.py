# SPDX-License-Identifier: Apache-2.0
"""Make models with one operator each in corner cases of its definition: edges.py FOLDER."""
import sys
from pathlib import Path

import numpy as np
from onnx import TensorProto, helper, numpy_helper

folder = Path(sys.argv[1])


def save(
    name: str, kind: str, shape: tuple[int, ...], constants: list[list[int]], opset: int = 18, **attributes: object
) -> None:
    inputs = ["x", *(f"c{i}" for i in range(len(constants)))]
    graph = helper.make_graph(
        [helper.make_node(kind, inputs, ["y"], name=name, **attributes)],
        name,
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(np.array(values, np.int64), f"c{i}") for i, values in enumerate(constants)],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)
    (folder / f"{name}.onnx").write_bytes(model.SerializeToString())


save("scalar", "ReduceSumSquare", (), [], 13)
save("no_axes", "ReduceL2", (2, 3), [], noop_with_empty_axes=1)
save("no_axes_of_a_sum", "ReduceSum", (2, 3), [], noop_with_empty_axes=1)
save("backwards", "Slice", (5, 4), [[-100, -2], [-1000, -1000], [0, 1], [-1, -2]])
save("from_smallest", "Slice", (4, 5), [[-(1 << 63), -2], [-2, (1 << 63) - 1], [0, 1]])
save("backwards_of_none", "Slice", (0,), [[-100], [-1000], [0], [-1]])
save("ceiling", "LpPool", (1, 1, 5, 4), [], kernel_shape=[2, 3], strides=[2, 4], ceil_mode=1)
save("wrapped", "Pad", (3, 2), [[-1, 0, 1, 0]], 21, mode="wrap")
