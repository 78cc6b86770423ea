# SPDX-License-Identifier: Apache-2.0
"""Check operators whose meaning changed in opset 7 against numpy: legacy.py make FOLDER | check FOLDER."""
import pathlib
import sys

import numpy as np

import models
from tessera import safetensors_io

X = np.random.default_rng(0).standard_normal((2, 3, 4, 5)).astype(np.float32)
C = np.float32([1.0, -2.0, 3.0])
PLANE = np.arange(12, dtype=np.float32).reshape(3, 4)
LAST = np.float32([1, 2, 3, 4, 5])


def opset1():
    node = models.node
    x = X.reshape(6, 20)
    nodes = [
        node("Reshape", ["x"], ["flat"], "reshape", shape=[6, -1]),
        node("Cast", ["x"], ["whole"], "cast", to="INT32"),
        node("Tile", ["x", "tiles", "axis"], ["tiled"], "tile"),
        node("Pad", ["x"], ["padded"], "pad", paddings=[0, 0, 1, 2, 0, 0, 0, 1], value=7.0),
        node("Upsample", ["x"], ["up"], "upsample", height_scale=2.0, width_scale=3.0, mode="nearest"),
        node("GlobalLpPool", ["x"], ["norm"], "norm", p=2.0),
        node("Selu", ["x"], ["selu"], "selu"),
        node("Relu", ["x"], ["relu"], "relu", consumed_inputs=[0]),
    ]
    wanted = {
        "flat": x,
        "whole": X.astype(np.int32),
        "tiled": np.concatenate([X, X, X], 2),
        "padded": np.pad(X, ((0, 0), (0, 0), (1, 0), (2, 1)), constant_values=7),
        "up": X.repeat(2, 2).repeat(3, 3),
        "norm": np.sqrt((X * X).sum((2, 3), keepdims=True)),
        "selu": np.float32(1.0507) * np.where(X > 0, X, np.float32(1.6732) * (np.exp(X) - 1)),
        "relu": np.maximum(X, 0),
    }
    return nodes, [models.constant("tiles", np.float32(3)), models.constant("axis", np.float32(2))], wanted


def opset6():
    node = models.node
    nodes = [
        node("Add", ["x", "c"], ["add"], "add", broadcast=1, axis=1),
        node("Sub", ["x", "plane"], ["sub"], "sub", broadcast=1, axis=1),
        node("Mul", ["x", "last"], ["mul"], "mul", broadcast=1),
        node("Div", ["x", "x"], ["div"], "div"),
        node("Greater", ["x", "c"], ["greater"], "greater", broadcast=1, axis=-3),
        node("PRelu", ["x", "c"], ["prelu"], "prelu"),
        node("BatchNormalization", ["x", "c", "c", "c", "var"], ["bn"], "bn", is_test=1, epsilon=0.0),
        node("Dropout", ["x"], ["dropout"], "dropout", is_test=1),
        node("Gemm", ["g", "g", "bias"], ["gemm"], "gemm", broadcast=1, transB=1),
    ]
    c, var = C.reshape(3, 1, 1), np.float32([1, 4, 9]).reshape(3, 1, 1)
    wanted = {
        "add": X + c,
        "sub": X - PLANE.reshape(3, 4, 1),
        "mul": X * LAST,
        "div": np.ones_like(X),
        "greater": X > c,
        "prelu": np.where(X > 0, X, X * c),
        "bn": (X - c) / np.sqrt(var) * c + c,
        "dropout": X,
        "gemm": PLANE @ PLANE.T + C,
    }
    return (
        nodes,
        [
            models.constant("c", C),
            models.constant("plane", PLANE),
            models.constant("last", LAST),
            models.constant("g", PLANE),
            models.constant("bias", C),
            models.constant("var", np.float32([1, 4, 9])),
        ],
        wanted,
    )


def bad(kind, **attributes):
    return models.model(
        [models.node(kind, ["x", "c"], ["y"], "old", **attributes)],
        [models.tensor("x", X.shape)],
        [models.tensor("y", None)],
        [models.constant("c", C)],
        opset=6,
    )


KINDS = {np.dtype(np.float32): 1, np.dtype(np.int32): 6, np.dtype(bool): 9}


def main():
    verb, folder = sys.argv[1], pathlib.Path(sys.argv[2])
    for opset, make in ((1, opset1), (6, opset6)):
        nodes, constants, wanted = make()
        if verb == "make":
            outputs = [models.tensor(name, None, KINDS[value.dtype]) for name, value in wanted.items()]
            result = models.model(nodes, [models.tensor("x", X.shape)], outputs, constants, opset=opset)
            (folder / f"m{opset}.onnx").write_bytes(result.SerializeToString())
            result.ir_version = 2
            result.ClearField("opset_import")
            (folder / f"none{opset}.onnx").write_bytes(result.SerializeToString())
            safetensors_io.save(folder / "in.safetensors", {"x": X})
            continue
        got = safetensors_io.load(folder / f"out{opset}.safetensors")
        for name, want in wanted.items():
            assert got[name].dtype == want.dtype, name
            np.testing.assert_allclose(got[name], want, rtol=1e-5, atol=1e-5, err_msg=name)
        print(f"opset {opset}: {len(got)} outputs agree")
    if verb == "make":
        for name, result in (
            ("equal", bad("Add")),
            ("axis", bad("Add", broadcast=1, axis=3)),
            ("training", bad("Dropout")),
        ):
            if name == "training":
                del result.graph.node[0].input[1:]
            if name == "axis":
                result.graph.initializer[0].CopyFrom(models.constant("c", PLANE))
            (folder / f"{name}.onnx").write_bytes(result.SerializeToString())


if __name__ == "__main__":
    main()
