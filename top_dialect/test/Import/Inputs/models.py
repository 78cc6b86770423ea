# SPDX-License-Identifier: Apache-2.0
"""Make the small ONNX files for the importer tests: models.py NAME FILE, or models.py all FOLDER for the bad ones."""
import pathlib
import sys

import numpy as np
from onnx import AttributeProto, TensorProto, helper, numpy_helper

F32, I64 = TensorProto.FLOAT, TensorProto.INT64


def tensor(name, shape, kind=F32):
    return helper.make_tensor_value_info(name, kind, shape)


def constant(name, array):
    return numpy_helper.from_array(np.asarray(array), name)


def model(nodes, inputs, outputs, initializers=(), opset=13, domains=(), name="net"):
    graph = helper.make_graph(nodes, name, inputs, outputs, list(initializers))
    opsets = [helper.make_opsetid("", opset)] + [helper.make_opsetid(domain, 1) for domain in domains]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8)


def node(kind, inputs, outputs, name="", **attributes):
    return helper.make_node(kind, inputs, outputs, name=name, **attributes)


# --- valid models ---------------------------------------------------------------------


def conv():
    """Names, an initializer that is also an input, a bias, and a constant that is used twice."""
    w = constant("w", np.arange(16 * 3 * 3 * 3, dtype=np.float32).reshape(16, 3, 3, 3))
    twin = constant("twin", np.arange(16 * 3 * 3 * 3, dtype=np.float32).reshape(16, 3, 3, 3))
    b = constant("b", np.ones(16, np.float32))
    return model(
        [
            node("Conv", ["x", "w", "b"], ["c1"], "conv1", pads=[1, 1, 1, 1]),
            node("Conv", ["x", "twin"], ["c2"], "conv2", auto_pad="SAME_UPPER"),
            node("Add", ["c1", "c2"], ["sum"]),
            node("Relu", ["sum"], ["y"], "act"),
        ],
        [tensor("x", [1, 3, 8, 8]), tensor("w", [16, 3, 3, 3])],
        [tensor("y", [1, 16, 8, 8])],
        [w, twin, b],
    )


def unsupported_end():
    """A supported node before unsupported operators. One of these is in a branch and reads a string."""
    then, other = (
        helper.make_graph([node("Blend", [name, "words"], [f"{name}_b"])], name, [], [tensor(f"{name}_b", None)])
        for name in ("c", "x")
    )
    return model(
        [
            node("Neg", ["x"], ["c"], "neg"),
            node("Frobnicate", ["c"], ["f"], "frob"),
            node("If", ["flag"], ["y"], "choice", then_branch=then, else_branch=other),
        ],
        [tensor("x", [4]), tensor("flag", [], TensorProto.BOOL), tensor("words", [1], TensorProto.STRING)],
        [tensor("f", None), tensor("y", None)],
    )


def unsorted():
    return model(
        [node("Relu", ["b"], ["y"], "second"), node("Neg", ["x"], ["b"], "first")],
        [tensor("x", [4])],
        [tensor("y", [4])],
    )


def shape_arithmetic():
    """x [batch, 2, 3] flattened as exporters write it: Shape, Gather, Concat, Reshape."""
    return model(
        [
            node("Shape", ["x"], ["s"], "shape"),
            node("Gather", ["s", "zero"], ["batch"], "gather", axis=0),
            node("Unsqueeze", ["batch", "axes"], ["batch1"], "unsqueeze"),
            node("Concat", ["batch1", "rest"], ["target"], "concat", axis=0),
            node("Reshape", ["x", "target"], ["y"], "reshape"),
        ],
        [tensor("x", ["batch", 2, 3])],
        [tensor("y", ["batch", 6])],
        [constant("zero", np.int64(0)), constant("axes", np.int64([0])), constant("rest", np.int64([-1]))],
    )


def two_inputs():
    return model(
        [node("Add", ["a", "b"], ["y"], "add")], [tensor("a", ["n", 4]), tensor("b", ["n", 1])], [tensor("y", ["n", 4])]
    )


def branch(kind, source):
    return helper.make_graph(
        [node(kind, [source], ["out_" + kind], "inner_" + kind)], kind, [], [tensor("out_" + kind, None)]
    )


def if_constant():
    return model(
        [node("If", ["cond"], ["y"], "choice", then_branch=branch("Neg", "x"), else_branch=branch("Exp", "x"))],
        [tensor("x", [4])],
        [tensor("y", [4])],
        [constant("cond", np.bool_(False))],
    )


def if_run_time():
    return model(
        [
            node("If", ["cond"], ["y"], "choice", then_branch=branch("Neg", "w"), else_branch=branch("Exp", "w")),
            node("Add", ["y", "w"], ["z"], "after"),
        ],
        [tensor("cond", [], TensorProto.BOOL)],
        [tensor("z", [4])],
        [constant("w", np.ones(4, np.float32))],
    )


def loop():
    """A carried value that grows, so that its dim becomes open, and a scanned value."""
    body = helper.make_graph(
        [
            node("Concat", ["carried", "one"], ["next"], "grow", axis=0),
            node("Identity", ["cond_in"], ["cond_out"], "keep"),
            node("Cast", ["i"], ["scan"], "count", to=F32),
        ],
        "body",
        [tensor("i", [], I64), tensor("cond_in", [], TensorProto.BOOL), tensor("carried", [1])],
        [tensor("cond_out", [], TensorProto.BOOL), tensor("next", None), tensor("scan", [])],
        [constant("one", np.ones(1, np.float32))],
    )
    return model(
        [node("Loop", ["trips", "", "x"], ["y", "all"], "loop", body=body)],
        [tensor("trips", [], I64), tensor("x", [1])],
        [tensor("y", ["n"]), tensor("all", ["m"])],
    )


def endless_loop():
    """A loop with neither a trip count nor a condition."""
    result = loop()
    result.graph.node[0].input[0] = ""
    return result


def always_true_loop():
    """A loop whose condition stays true."""
    result = endless_loop()
    result.graph.node[0].input[1] = "going"
    result.graph.initializer.append(constant("going", np.array(True)))
    return result


def lstm():
    weight = lambda name, *shape: constant(name, np.ones(shape, np.float32))
    return model(
        [node("LSTM", ["x", "w", "r"], ["y", "yh"], "lstm", hidden_size=5, direction="reverse")],
        [tensor("x", [7, 2, 3])],
        [tensor("y", None), tensor("yh", None)],
        [weight("w", 1, 20, 3), weight("r", 1, 20, 5)],
    )


def typed_fields():
    """Constants of all element types, in typed fields and as raw bytes."""
    cases = [
        ("f16", TensorProto.FLOAT16, [1.0, -2.0]),
        ("f64", TensorProto.DOUBLE, [1.5, 2.5]),
        ("i8", TensorProto.INT8, [-1, 2]),
        ("u8", TensorProto.UINT8, [255, 2]),
        ("i32", TensorProto.INT32, [-5, 6]),
        ("i64", I64, [-7, 8]),
        ("flag", TensorProto.BOOL, [1, 0]),
    ]
    tensors = [helper.make_tensor(name, kind, [2], values) for name, kind, values in cases]
    tensors.append(helper.make_tensor("bf16", TensorProto.BFLOAT16, [2], [1.0, 3.0]))
    names = [t.name for t in tensors]
    return model(
        [node("Identity", [name], ["out_" + name]) for name in names],
        [tensor("x", [1])],
        [tensor("out_" + t.name, [2], t.data_type) for t in tensors],
        tensors,
    )


def chain(count=20000):
    nodes = [node("Relu" if i % 2 else "Neg", [f"t{i}"], [f"t{i + 1}"], f"n{i}") for i in range(count)]
    return model(nodes, [tensor("t0", [1, 8])], [tensor(f"t{count}", [1, 8])])


def wide(count=20000):
    """Many nodes that share only their input. Each of them produces one output."""
    nodes = [node("Mul", ["x", f"w{i}"], [f"p{i}"], f"n{i}") for i in range(count)]
    nodes.append(node("Sum", [f"p{i}" for i in range(count)], ["y"], "sum"))
    return model(
        nodes,
        [tensor("x", [1, 8])],
        [tensor("y", [1, 8])],
        [constant(f"w{i}", np.full(8, i, np.float32)) for i in range(count)],
    )


def fan_out(count=20000):
    """One tensor with many uses in nodes that are all equal except for a constant of one concat."""
    nodes = [node("Relu", ["x"], ["r"], "source")]
    nodes += [node("Slice", ["r", f"b{i % 8}", f"e{i % 8}", "axes"], [f"s{i}"], f"n{i}") for i in range(count)]
    nodes.append(node("Concat", [f"s{i}" for i in range(count)], ["y"], "join", axis=1))
    bounds = [constant(f"{name}{i}", np.int64([i + offset])) for i in range(8) for name, offset in (("b", 0), ("e", 1))]
    return model(nodes, [tensor("x", [1, 8])], [tensor("y", [1, count])], bounds + [constant("axes", np.int64([1]))])


def mixed(count=5000):
    """A chain of concat, slice, add and transposes that cancel, with a skip connection to each link."""
    nodes = []
    for i in range(count):
        at, then = f"t{i}", f"t{i + 1}"
        nodes += [
            node("Concat", [at, "x"], [f"c{i}"], f"concat{i}", axis=0),
            node("Slice", [f"c{i}", "begin", "end", "axes"], [f"h{i}"], f"slice{i}"),
            node("Transpose", [f"h{i}"], [f"a{i}"], f"there{i}", perm=[1, 0]),
            node("Add", [f"a{i}", "bias"], [f"b{i}"], f"add{i}"),
            node("Transpose", [f"b{i}"], [then], f"back{i}", perm=[1, 0]),
        ]
    return model(
        nodes,
        [tensor("t0", [2, 4]), tensor("x", [2, 4])],
        [tensor(f"t{count}", [2, 4])],
        [
            constant("begin", np.int64([1])),
            constant("end", np.int64([3])),
            constant("axes", np.int64([0])),
            constant("bias", np.ones((4, 1), np.float32)),
        ],
    )


def space_to_depth():
    """Channels 0 and 1 of 2x2 blocks. CRD keeps the block of a channel together, DCR the channels of a position."""
    x = constant("x", np.arange(8, dtype=np.float32).reshape(1, 2, 2, 2))
    return model(
        [
            node("SpaceToDepth", ["x"], ["dcr"], "dcr", blocksize=2),
            node("SpaceToDepth", ["x"], ["crd"], "crd", blocksize=2, mode="CRD"),
        ],
        [tensor("unused", [1])],
        [tensor("dcr", [1, 8, 1, 1]), tensor("crd", [1, 8, 1, 1])],
        [x],
        opset=28,
    )


# --- invalid models -------------------------------------------------------------------


def cyclic():
    return model(
        [
            node("Add", ["x", "c"], ["a"], "one"),
            node("Neg", ["a"], ["b"], "two"),
            node("Relu", ["b"], ["c"], "three"),
            node("Exp", ["c"], ["y"], "four"),
        ],
        [tensor("x", [4])],
        [tensor("y", [4])],
    )


def dangling():
    return model([node("Add", ["x", "missing"], ["y"], "add")], [tensor("x", [4])], [tensor("y", [4])])


def unknown():
    return model(
        [
            node("Frobnicate", ["x"], ["a"], "frob1"),
            node("Frobnicate", ["a"], ["b"], "frob2"),
            node("Blend", ["b"], ["y"], "blend", domain="acme"),
        ],
        [tensor("x", [4])],
        [tensor("y", [4])],
        domains=["acme"],
    )


def type_mismatch():
    return model(
        [node("Add", ["x", "w"], ["y"], "add")],
        [tensor("x", [4])],
        [tensor("y", [4])],
        [constant("w", np.ones(4, np.int64))],
    )


def declared_type():
    return model([node("Neg", ["x"], ["y"], "neg")], [tensor("x", [4])], [tensor("y", [4], I64)])


def huge_input():
    return model([node("Relu", ["x"], ["y"], "act")], [tensor("x", [1 << 40])], [tensor("y", [1 << 40])])


def huge_result():
    return model(
        [node("ConstantOfShape", ["s"], ["big"], "fill"), node("Add", ["x", "big"], ["y"], "add")],
        [tensor("x", [1])],
        [tensor("y", None)],
        [constant("s", np.int64([1 << 20, 1 << 20]))],
    )


def overflow():
    result = model(
        [node("Add", ["x", "w"], ["y"], "add")],
        [tensor("x", [1])],
        [tensor("y", None)],
        [constant("w", np.float32([1]))],
    )
    result.graph.initializer[0].dims[:] = [1 << 40, 1 << 40]
    return result


def short_data():
    result = conv()
    result.graph.initializer[0].dims[0] = 17
    return result


def duplicate_tensor():
    return model(
        [node("Neg", ["x"], ["y"], "one"), node("Exp", ["x"], ["y"], "two")], [tensor("x", [4])], [tensor("y", [4])]
    )


def duplicate_input():
    return model([node("Neg", ["x"], ["y"], "one")], [tensor("x", [4]), tensor("x", [4])], [tensor("y", [4])])


def duplicate_initializer():
    return model(
        [node("Add", ["x", "w"], ["y"], "one")],
        [tensor("x", [4])],
        [tensor("y", [4])],
        [constant("w", np.float32([1])), constant("w", np.float32([2]))],
    )


def missing_output():
    return model([node("Neg", ["x"], ["y"], "one")], [tensor("x", [4])], [tensor("other", [4])])


def old_opset():
    return model([node("Neg", ["x"], ["y"], "one")], [tensor("x", [4])], [tensor("y", [4])], opset=0)


def new_opset():
    return model([node("Neg", ["x"], ["y"], "one")], [tensor("x", [4])], [tensor("y", [4])], opset=1000)


def no_opset():
    result = model([node("Neg", ["x"], ["y"], "one")], [tensor("x", [4])], [tensor("y", [4])])
    result.ClearField("opset_import")
    return result


def duplicate_output():
    return model([node("Neg", ["x"], ["y"], "one")], [tensor("x", [4])], [tensor("y", [4]), tensor("y", [4])])


def subgraph_dangling():
    return model(
        [node("If", ["cond"], ["y"], "choice", then_branch=branch("Neg", "x"), else_branch=branch("Exp", "nowhere"))],
        [tensor("cond", [], TensorProto.BOOL), tensor("x", [4])],
        [tensor("y", [4])],
    )


def subgraph_output():
    result = model(
        [node("If", ["cond"], ["y"], "choice", then_branch=branch("Neg", "x"), else_branch=branch("Exp", "x"))],
        [tensor("cond", [], TensorProto.BOOL), tensor("x", [4])],
        [tensor("y", [4])],
    )
    result.graph.node[0].attribute[0].g.output[0].name = "nowhere"
    return result


def no_operands(kind, **attributes):
    """A node without operands. The handler must not use values computed from them."""
    return model([node(kind, [], ["y"], "bare", **attributes)], [tensor("x", [4])], [tensor("y", None)])


def bare_hardmax():
    return no_operands("Hardmax")


def bare_reshape():
    return no_operands("Reshape")


def bare_split():
    return no_operands("Split")


def scalar_pad():
    return model(
        [node("Pad", ["x", "pads", "", "axes"], ["y"], "pad")],
        [tensor("x", [])],
        [tensor("y", None)],
        [constant("pads", np.int64([1, 1])), constant("axes", np.int64([0]))],
        opset=18,
    )


def scalar_resize():
    return model(
        [node("Resize", ["x", "", "", "sizes"], ["y"], "resize", axes=[0])],
        [tensor("x", [])],
        [tensor("y", None)],
        [constant("sizes", np.int64([3]))],
        opset=18,
    )


def absurd_scale():
    return model(
        [node("Resize", ["x", "", "scales"], ["y"], "resize")],
        [tensor("x", [4])],
        [tensor("y", None)],
        [constant("scales", np.float32([1e30]))],
    )


def grid_batch():
    return model(
        [node("GridSample", ["x", "g"], ["y"], "sample")],
        [tensor("x", [1, 3, 8, 8]), tensor("g", [2, 4, 4, 2])],
        [tensor("y", None)],
        opset=16,
    )


def two_targets():
    """Resize with both scales and sizes."""
    return model(
        [node("Resize", ["x", "", "scales", "sizes"], ["y"], "resize")],
        [tensor("x", [1, 1, 2, 2])],
        [tensor("y", [1, 1, 4, 4])],
        [constant("scales", np.float32([1, 1, 2, 2])), constant("sizes", np.int64([1, 1, 4, 4]))],
    )


def full_output_shape():
    """ConvTranspose whose output_shape contains batch and channels."""
    return model(
        [node("ConvTranspose", ["x", "w"], ["y"], "up", output_shape=[1, 1, 4, 4], strides=[2, 2])],
        [tensor("x", [1, 1, 2, 2])],
        [tensor("y", [1, 1, 4, 4])],
        [constant("w", np.ones((1, 1, 2, 2), np.float32))],
    )


def einsum(equation, *shapes):
    names = [f"x{i}" for i in range(len(shapes))]
    return model(
        [node("Einsum", names, ["y"], "einsum", equation=equation)],
        [tensor(name, shape) for name, shape in zip(names, shapes)],
        [tensor("y", None)],
    )


def ellipsis_ranks():
    return einsum("...,...->...", [], [2, 3])


def ellipsis_sizes():
    return einsum("...ij,...jk->...ik", [2, 5, 3, 4], [3, 1, 4, 2])


def index_sizes():
    return einsum("ij,jk->ik", [3, 4], [5, 2])


def largest_of_any_number():
    """RoiAlign whose number of points depends on the size of each region."""
    return model(
        [node("RoiAlign", ["x", "regions", "image"], ["y"], "align", mode="max")],
        [tensor("x", [1, 1, 8, 8]), tensor("regions", [2, 4]), tensor("image", [2], I64)],
        [tensor("y", None)],
        opset=16,
    )


def wrong_attribute():
    result = node("Concat", ["x", "x"], ["y"], "concat", axis=0)
    result.attribute[0].type = AttributeProto.FLOAT
    return model([result], [tensor("x", [4])], [tensor("y", [8])])


def bad_axis():
    return model([node("Softmax", ["x"], ["y"], "softmax", axis=3)], [tensor("x", [2, 4])], [tensor("y", [2, 4])])


def bad_kernel():
    return model(
        [node("Conv", ["x", "w"], ["y"], "conv")],
        [tensor("x", [1, 3, 8, 8])],
        [tensor("y", None)],
        [constant("w", np.ones((8, 4, 3, 3), np.float32))],
    )


def external(location="weights.bin", offset=None, length=None):
    result = conv()
    for proto in result.graph.initializer:
        if proto.name == "w":
            proto.ClearField("raw_data")
            proto.data_location = TensorProto.EXTERNAL
            for key, value in (("location", location), ("offset", offset), ("length", length)):
                if value is not None:
                    entry = proto.external_data.add()
                    entry.key, entry.value = key, str(value)
    return result


def external_parent():
    return external("../weights.bin")


def external_absolute():
    return external("/etc/hostname")


def external_link():
    return external("link.bin")


def external_short():
    return external(offset=800)


def external_no_number():
    return external(offset="many")


# --- files that are not models --------------------------------------------------------


def truncated():
    return conv().SerializeToString()[:-100]


def flipped():
    data = bytearray(conv().SerializeToString())
    data[3] ^= 0x80
    return bytes(data)


def text():
    return str(conv()).encode()


def empty():
    return b""


def no_graph():
    result = conv()
    result.ClearField("graph")
    return result


BAD = """endless_loop always_true_loop cyclic dangling unknown type_mismatch declared_type huge_input huge_result
overflow short_data duplicate_tensor
duplicate_input duplicate_initializer missing_output old_opset new_opset no_opset subgraph_dangling
two_targets full_output_shape ellipsis_ranks ellipsis_sizes index_sizes largest_of_any_number
subgraph_output bare_hardmax bare_reshape bare_split scalar_pad scalar_resize absurd_scale grid_batch wrong_attribute
bad_axis
bad_kernel external external_parent external_absolute external_link external_short external_no_number truncated
flipped text empty no_graph""".split()


def write(name, path):
    result = globals()[name]()
    path.write_bytes(result if isinstance(result, bytes) else result.SerializeToString())


def main():
    name, path = sys.argv[1], pathlib.Path(sys.argv[2])
    if name != "all":
        write(name, path)
        return
    for bad in BAD:
        write(bad, path / f"{bad}.onnx")


if __name__ == "__main__":
    main()
