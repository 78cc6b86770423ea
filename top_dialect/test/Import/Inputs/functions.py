# SPDX-License-Identifier: Apache-2.0
"""Check model-local functions against numpy: functions.py make FOLDER | check FOLDER | bad FOLDER."""
import pathlib
import sys

import numpy as np
from onnx import AttributeProto, FunctionProto, helper

import models
from tessera import safetensors_io

LIB = "my.lib"


def function(name, inputs, outputs, nodes, attributes=(), opset=13, defaults=(), domain=LIB):
    """Make a function. onnx 1.12 has no field for the default attributes, but keeps unknown fields."""
    result = helper.make_function(
        domain,
        name,
        inputs,
        outputs,
        nodes,
        [helper.make_opsetid("", opset), helper.make_opsetid(LIB, 1)],
        list(attributes),
    )
    data = result.SerializeToString()
    for default in defaults:
        text = default.SerializeToString()
        data += bytes([11 << 3 | 2, len(text)]) + text
    return FunctionProto.FromString(data)


def reference(node, name, attribute, kind):
    """Set attribute `name` of the node to the function's `attribute`."""
    entry = node.attribute.add()
    entry.name, entry.ref_attr_name, entry.type = name, attribute, kind
    return node


def with_functions(result, functions):
    result.functions.extend(functions)
    result.opset_import.add(domain=LIB, version=1)
    return result


def good():
    number = reference(models.node("Constant", [], ["t"]), "value_float", "factor", AttributeProto.FLOAT)
    scale = function(
        "Scale",
        ["x"],
        ["y"],
        [number, models.node("Mul", ["x", "t"], ["y"], "mul")],
        defaults=[helper.make_attribute("factor", 3.0)],
    )
    # A nested call. The inner names are those of the function around it.
    both = function(
        "Both",
        ["x"],
        ["y"],
        [
            models.node("Scale", ["x"], ["t"], "first", domain=LIB, factor=2.0),
            models.node("Scale", ["t"], ["y"], "second", domain=LIB),
        ],
    )
    # Softmax of opset 11 flattens.
    flat = function("Flat", ["x"], ["y"], [models.node("Softmax", ["x"], ["y"], "softmax", axis=1)], opset=11)
    # An input that calls may omit.
    bound = function("Bound", ["x", "low"], ["y"], [models.node("Clip", ["x", "low"], ["y"], "clip")])
    # An attribute inside a sub-graph, and an output that is an input.
    inner = reference(models.node("Constant", [], ["c"]), "value_float", "add", AttributeProto.FLOAT)
    then = helper.make_graph([inner, models.node("Add", ["x", "c"], ["sum"])], "then", [], [models.tensor("sum", None)])
    branch = models.node("If", ["yes"], ["y"], "choice", then_branch=then, else_branch=models.branch("Neg", "x"))
    yes = models.node("Constant", [], ["yes"], value=models.constant("", np.bool_(True)))
    pair = function("Pair", ["x"], ["y", "x"], [yes, branch], attributes=["add"])
    one = models.constant("t", np.float32([0.0]))
    result = models.model(
        [
            models.node("Both", ["x"], ["both"], "both_call", domain=LIB),
            models.node("Flat", ["x"], ["flat"], "flat_call", domain=LIB),
            models.node("Bound", ["x", "t"], ["bound"], "bound_call", domain=LIB),
            models.node("Bound", ["x"], ["free"], "free_call", domain=LIB),
            models.node("Pair", ["x"], ["plus", "same"], "pair_call", domain=LIB, add=5.0),
            models.node("Identity", ["same"], ["as_is"], "id"),
        ],
        [models.tensor("x", [2, 3, 4])],
        [models.tensor(name, [2, 3, 4]) for name in ("both", "flat", "bound", "free", "plus", "as_is")],
        [one],
    )
    return with_functions(result, [scale, both, flat, bound, pair])


def expected(x):
    powers = np.exp(x - x.max(axis=(1, 2), keepdims=True))
    return {
        "both": x * 6,
        "flat": powers / powers.sum(axis=(1, 2), keepdims=True),
        "bound": np.maximum(x, 0),
        "free": x,
        "plus": x + 5,
        "as_is": x,
    }


def call(name, functions, inputs=("x",), outputs=("y",)):
    return with_functions(
        models.model(
            [models.node(name, list(inputs), list(outputs), "call", domain=LIB)],
            [models.tensor("x", [4])],
            [models.tensor("y", None)],
        ),
        functions,
    )


def recursive():
    return call("F", [function("F", ["x"], ["y"], [models.node("F", ["x"], ["y"], "again", domain=LIB)])])


def doubling():
    """Make a model with 2^40 nodes after inlining."""
    functions = [function("F0", ["x"], ["y"], [models.node("Neg", ["x"], ["y"])])]
    for i in range(40):
        functions.append(
            function(
                f"F{i + 1}",
                ["x"],
                ["y"],
                [
                    models.node(f"F{i}", ["x"], ["t"], "a", domain=LIB),
                    models.node(f"F{i}", ["t"], ["y"], "b", domain=LIB),
                ],
            )
        )
    return call("F40", functions)


def twice():
    return call("F", [function("F", ["x"], ["y"], [models.node("Neg", ["x"], ["y"])])] * 2)


def many_inputs():
    return call("F", [function("F", ["x"], ["y"], [models.node("Neg", ["x"], ["y"])])], inputs=("x", "x"))


def unknown_inside():
    return call("F", [function("F", ["x"], ["y"], [models.node("Wobble", ["x"], ["y"], "wobble_1")])])


def error_inside():
    return call("F", [function("F", ["x"], ["y"], [models.node("Softmax", ["x"], ["y"], "soft", axis=7)])])


def wrong_type():
    node = reference(models.node("Softmax", ["x"], ["y"], "soft"), "axis", "which", AttributeProto.INT)
    result = call("F", [function("F", ["x"], ["y"], [node], attributes=["which"])])
    result.graph.node[0].attribute.append(helper.make_attribute("which", "first"))
    return result


def main():
    verb, folder = sys.argv[1], pathlib.Path(sys.argv[2])
    x = np.random.default_rng(0).standard_normal((2, 3, 4)).astype(np.float32)
    if verb == "make":
        (folder / "m.onnx").write_bytes(good().SerializeToString())
        safetensors_io.save(folder / "in.safetensors", {"x": x})
    elif verb == "bad":
        for make in (recursive, doubling, twice, many_inputs, unknown_inside, error_inside, wrong_type):
            (folder / f"{make.__name__}.onnx").write_bytes(make().SerializeToString())
    else:
        got = safetensors_io.load(folder / "out.safetensors")
        for name, want in expected(x).items():
            np.testing.assert_allclose(got[name], want, rtol=1e-5, atol=1e-6, err_msg=name)
        print(f"{len(got)} outputs agree")


if __name__ == "__main__":
    main()
