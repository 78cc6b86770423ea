# SPDX-License-Identifier: Apache-2.0
"""Make models that exceed limits or select a branch by an input: limits.py FOLDER.
limits.py edit MODULE replaces a name by invalid UTF-8."""
import pathlib
import sys

import numpy as np
from onnx import TensorProto, helper

import models

F32, I64, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL
node, tensor, constant = models.node, models.tensor, models.constant


def concat_bomb():
    """Make a chain of 34 doublings, which turn 1 KiB into 16 TiB."""
    nodes = [node("Concat", [f"k{i}", f"k{i}"], [f"k{i + 1}"], f"double{i}", axis=0) for i in range(34)]
    return models.model(
        [*nodes, node("Add", ["x", "k34"], ["y"])],
        [tensor("x", [1])],
        [tensor("y", None)],
        [constant("k0", np.zeros(256, np.float32))],
    )


def two_concat_bomb():
    """Make the same chain with two different constants at each step."""
    nodes = []
    for i in range(34):
        nodes += [
            node("Concat", [f"a{i}", f"b{i}"], [f"a{i + 1}"], f"left{i}", axis=0),
            node("Concat", [f"b{i}", f"a{i}"], [f"b{i + 1}"], f"right{i}", axis=0),
        ]
    return models.model(
        [*nodes, node("Add", ["x", "a34"], ["y"])],
        [tensor("x", [1])],
        [tensor("y", None)],
        [constant("a0", np.zeros(256, np.float32)), constant("b0", np.ones(256, np.float32))],
    )


def many_tiles():
    """Make 1,000 constants of 4 MiB each."""
    nodes = [node("Tile", ["k", "n"], [f"t{i}"], f"tile{i}") for i in range(1000)]
    return models.model(
        [*nodes, node("Sum", ["x", *(f"t{i}" for i in range(1000))], ["y"])],
        [tensor("x", [1])],
        [tensor("y", None)],
        [constant("k", np.zeros(1024, np.float32)), constant("n", np.int64([1024]))],
    )


def one_hot():
    return models.model(
        [node("OneHot", ["x", "depth", "values"], ["hot"], "hot"), node("Relu", ["hot"], ["y"])],
        [tensor("x", [1], I64)],
        [tensor("y", None)],
        [constant("depth", np.int64(10**10)), constant("values", np.float32([0, 1]))],
    )


def wide_input():
    return models.model([node("Relu", ["x"], ["y"])], [tensor("x", [1 << 28])], [tensor("y", None)])


def rank17():
    return models.model(
        [node("Reshape", ["x", "s"], ["y"], "deep")],
        [tensor("x", [4])],
        [tensor("y", None)],
        [constant("s", np.int64([1] * 16 + [4]))],
    )


def rank17_input():
    return models.model([node("Relu", ["x"], ["y"])], [tensor("x", [1] * 17)], [tensor("y", None)])


def gather():
    return models.model(
        [node("Gather", ["x", "i"], ["y"], "pick", axis=1)],
        [tensor("x", [2, 5])],
        [tensor("y", None)],
        [constant("i", np.int64([0, -5, 5]))],
    )


def gather_nd():
    return models.model(
        [node("GatherND", ["x", "i"], ["y"], "pick")],
        [tensor("x", [2, 5])],
        [tensor("y", None)],
        [constant("i", np.int64([[1, 4], [-3, 0]]))],
    )


def scatter():
    return models.model(
        [node("ScatterElements", ["x", "i", "u"], ["y"], "put", axis=0)],
        [tensor("x", [2])],
        [tensor("y", None)],
        [constant("i", np.int64([2])), constant("u", np.float32([1]))],
    )


def five_inputs():
    return models.model([node("Relu", ["x"] * 5, ["y"], "act")], [tensor("x", [4])], [tensor("y", [4])])


def two_outputs():
    return models.model([node("Relu", ["x"], ["y", "z"], "act")], [tensor("x", [4])], [tensor("y", [4])])


def odd_attribute():
    return models.model(
        [node("Relu", ["x"], ["a"], "act1", alpha=0.1), node("Relu", ["a"], ["y"], "act2", alpha=0.1)],
        [tensor("x", [4])],
        [tensor("y", [4])],
    )


def only_ml():
    result = models.model(
        [node("SVMClassifier", ["x"], ["y"], "scale", domain="ai.onnx.ml")], [tensor("x", [4])], [tensor("y", [4])]
    )
    del result.opset_import[:]
    result.opset_import.add(domain="ai.onnx.ml", version=3)
    return result


def branch(name, nodes):
    return helper.make_graph(nodes, name, [], [tensor(nodes[-1].output[0], None)])


def rates():
    """Make a model with two sample rates, as in a voice detector. The branch for the other rate needs other sizes and
    contains an unknown operator."""
    fits = branch("fits", [node("Reshape", ["x", "good"], ["t"], "as_frames")])
    never = branch("never", [node("Wobble", ["x"], ["w"], "wobble"), node("Reshape", ["x", "bad"], ["e"], "as_others")])
    return models.model(
        [
            node("Equal", ["sr", "rate"], ["is16k"], "compare"),
            node("If", ["is16k"], ["y"], "by_rate", then_branch=fits, else_branch=never),
        ],
        [tensor("x", [1, 512]), tensor("sr", [], I64)],
        [tensor("y", None)],
        [constant("rate", np.int64(16000)), constant("good", np.int64([8, 64])), constant("bad", np.int64([7, 64]))],
    )


def sizes():
    """Make the same model without the unknown operator."""
    result = rates()
    never = next(attribute.g for attribute in result.graph.node[1].attribute if attribute.name == "else_branch")
    del never.node[0]
    return result


def ranks():
    """Make a model whose branches have rank 1 and 2."""
    return models.model(
        [
            node(
                "If",
                ["c"],
                ["y"],
                "choice",
                then_branch=models.branch("Neg", "x"),
                else_branch=branch("flat", [node("Flatten", ["x"], ["f"])]),
            )
        ],
        [tensor("x", [4]), tensor("c", [], BOOL)],
        [tensor("y", None)],
    )


def typed():
    """Make a model with one input of each kind that can be given a value."""
    nodes = [node("Cast", [name], [name + "_f"], to=F32) for name in ("i", "b", "v")]
    return models.model(
        [*nodes, node("Sum", ["x", "f", "i_f", "b_f", "v_f"], ["y"])],
        [
            tensor("x", [3]),
            tensor("f", [1]),
            tensor("i", [], TensorProto.INT8),
            tensor("b", [], BOOL),
            tensor("v", ["n"], I64),
        ],
        [tensor("y", [3])],
    )


def empty_dim():
    return models.model(
        [node("Concat", ["x", "z"], ["y"], "join", axis=0)],
        [tensor("x", [2, 3]), tensor("z", [0, 3])],
        [tensor("y", None)],
    )


def pictures():
    return models.model(
        [node("Conv", ["image", "w"], ["y"], "conv"), node("Relu", ["ids"], ["z"])],
        [tensor("image", [None, 3, None, None]), tensor("ids", ["batch_size", "sequence_length"])],
        [tensor("y", None), tensor("z", None)],
        [constant("w", np.ones((4, 3, 33, 33), np.float32))],
    )


def shapeless():
    result = models.model([node("Add", ["x", "s"], ["y"])], [tensor("x", [4]), tensor("s", [])], [tensor("y", None)])
    result.graph.input[1].type.tensor_type.ClearField("shape")
    return result


def open_input(name, shape):
    return models.model([node("Neg", [name], ["y"])], [tensor(name, shape)], [tensor("y", None)])


def open_samples():
    """Make a model with a single open dim, which is therefore not the batch."""
    return open_input("samples", [None])


def open_length():
    """Make a model whose first dim is open and has a name that shows that it is not the batch."""
    return open_input("x", ["sequence_length", 4])


def bad_names():
    """Make a model with names that are not UTF-8 by replacing bytes in the file."""
    result = models.model(
        [
            node("Neg", ["xxA"], ["xxB"], "nnA"),
            node("Exp", ["xxB"], ["xxC"], "nnB"),
            node("Abs", ["xxC"], ["yyA"], "x" * 100000),
        ],
        [tensor("xxA", [4])],
        [tensor("yyA", [4])],
        name="ggA",
    )
    result.graph.doc_string = "ddA"
    data = result.SerializeToString()
    for old, new in (
        (b"xxA", b"x\xffA"),
        (b"xxB", b"x\xfeB"),
        (b"xxC", b"x\x00C"),
        (b"yyA", b"y\xc3("),
        (b"nnA", b"n\x80A"),
        (b"ggA", b"g\xf5A"),
        (b"ddA", b"d\xe2A"),
    ):
        assert old in data
        data = data.replace(old, new)
    return data


MODELS = (
    concat_bomb,
    two_concat_bomb,
    many_tiles,
    one_hot,
    wide_input,
    rank17,
    rank17_input,
    gather,
    gather_nd,
    scatter,
    five_inputs,
    two_outputs,
    odd_attribute,
    only_ml,
    rates,
    sizes,
    ranks,
    typed,
    empty_dim,
    pictures,
    shapeless,
    open_samples,
    open_length,
    bad_names,
)


def main():
    if sys.argv[1] == "edit":
        path = pathlib.Path(sys.argv[2])
        text = path.read_bytes()
        assert rb"x\\xFEB" in text
        path.write_bytes(text.replace(rb"x\\xFEB", rb"x\FEB"))
        return
    for make in MODELS:
        result = make()
        path = pathlib.Path(sys.argv[1]) / f"{make.__name__}.onnx"
        path.write_bytes(result if isinstance(result, bytes) else result.SerializeToString())


if __name__ == "__main__":
    main()
