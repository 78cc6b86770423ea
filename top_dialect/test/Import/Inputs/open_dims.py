# SPDX-License-Identifier: Apache-2.0
"""Makes the ONNX files with open dims for open-dims.test: open_dims.py NAME FILE."""
import pathlib
import sys

import numpy as np
from onnx import TensorProto

from models import constant, model, node, tensor

I64 = TensorProto.INT64


def picture():
    """A convolution with stride 2, resized to the input's size and added to it."""
    weight = constant("w", np.ones((3, 3, 3, 3), np.float32))
    return model(
        [
            node("Conv", ["x", "w"], ["half"], "half", strides=[2, 2], pads=[1, 1, 1, 1]),
            node("Resize", ["half", "", "scales"], ["twice"], "twice", mode="nearest"),
            node("Add", ["x", "twice"], ["y"], "add"),
        ],
        [tensor("x", ["batch", 3, "h", "w_"])],
        [tensor("y", None)],
        [weight, constant("scales", np.array([1, 1, 2, 2], np.float32))],
    )


def same_pads():
    """A convolution with stride 2, whose pads depend on whether the size is even."""
    weight = constant("w", np.ones((3, 3, 3, 3), np.float32))
    return model(
        [node("Conv", ["x", "w"], ["y"], "half", strides=[2, 2], auto_pad="SAME_UPPER")],
        [tensor("x", [1, 3, "h", 8])],
        [tensor("y", None)],
        [weight],
    )


def shape_chain():
    """Shape, Gather, Concat and Reshape, as exporters write a flatten; a range and a mask of the length."""
    return model(
        [
            node("Shape", ["x"], ["shape"], "shape"),
            node("Gather", ["shape", "zero"], ["batch"], "batch"),
            node("Gather", ["shape", "one"], ["length"], "length"),
            node("Unsqueeze", ["batch", "axis"], ["batch1"], "batch1"),
            node("Concat", ["batch1", "rest"], ["target"], "target", axis=0),
            node("Reshape", ["x", "target"], ["flat"], "flat"),
            node("Range", ["zero", "length", "one"], ["range"], "range"),
            node("Unsqueeze", ["length", "axis"], ["length1"], "length1"),
            node("ConstantOfShape", ["length1"], ["filled"], "filled"),
            node("Slice", ["table", "start", "length1", "axis"], ["rows"], "rows"),
            node("Add", ["rows", "filled"], ["biased"], "biased"),
        ],
        [tensor("x", ["batch", "length", 4])],
        [tensor("flat", None), tensor("range", None, I64), tensor("biased", None)],
        [
            constant("zero", np.int64(0)),
            constant("one", np.int64(1)),
            constant("axis", np.array([0], np.int64)),
            constant("start", np.array([0], np.int64)),
            constant("rest", np.array([-1], np.int64)),
            constant("table", np.arange(64, dtype=np.float32)),
        ],
    )


def cache():
    """The sum of a concatenation and an input whose size the file calls otherwise."""
    return model(
        [node("Concat", ["past", "new"], ["all"], "all", axis=1), node("Add", ["all", "mask"], ["y"], "add")],
        [tensor("past", ["b", "past", 4]), tensor("new", ["b", "seq", 4]), tensor("mask", ["b", "total", 4])],
        [tensor("y", None)],
    )


def unequal():
    """A sum whose dims agree for a single size of the range only."""
    return model(
        [node("Add", ["x", "table"], ["y"], "add")],
        [tensor("x", ["n", 4])],
        [tensor("y", None)],
        [constant("table", np.ones((8, 4), np.float32))],
    )


def unnamed():
    return model(
        [node("Relu", ["x"], ["y"], "relu")], [tensor("x", [None, "m + 1"]), tensor("z", ["m"])], [tensor("y", None)]
    )


if __name__ == "__main__":
    pathlib.Path(sys.argv[2]).write_bytes(globals()[sys.argv[1]]().SerializeToString())
