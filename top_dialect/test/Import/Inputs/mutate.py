# SPDX-License-Identifier: Apache-2.0
"""Make models that no exporter would write: mutate.py FOLDER COUNT SEED.

Operators get random operands and attributes from a list of edge cases, and valid models of models.py get one
field changed. Two thirds of the models are also written with some bytes changed. The importer must reject
or import each model without crashing.
"""
import pathlib
import random
import sys

import numpy as np
from onnx import TensorProto, helper, numpy_helper

import functions
import legacy
import limits
import models

OPERATORS = """Add Sub Mul Div Pow Mod Sum Mean Min Max And Not BitShift BitwiseNot Equal Less Where IsInf Abs Sign
Round Relu Gelu
LeakyRelu Elu Selu HardSigmoid Shrink PRelu Clip Cast CastLike Identity Dropout Conv ConvTranspose MatMul Gemm
MaxPool AveragePool
LpPool GridSample GlobalAveragePool GlobalMaxPool GlobalLpPool ReduceSum ReduceMean ReduceMax ReduceLogSumExp ArgMax
ArgMin CumSum TopK Softmax
LogSoftmax Hardmax BatchNormalization LayerNormalization RMSNormalization GroupNormalization InstanceNormalization
LRN LpNormalization
MeanVarianceNormalization Constant ConstantOfShape Shape Size Range EyeLike Reshape Flatten Squeeze Unsqueeze
Transpose Concat Slice
Split Pad Expand Tile Trilu DepthToSpace SpaceToDepth Gather GatherElements GatherND ScatterElements ScatterND OneHot
NonZero Einsum
NonMaxSuppression Compress Unique DFT STFT HannWindow CenterCropPad Det SplitToSequence SequenceAt SequenceInsert
SequenceErase ConcatFromSequence
SequenceConstruct OptionalHasElement NegativeLogLikelihoodLoss SoftmaxCrossEntropyLoss RoiAlign MaxUnpool
Resize Upsample If Loop LSTM GRU RNN""".split()
INTS = [-(1 << 63), -(1 << 40), -3, -2, -1, 0, 0, 1, 1, 1, 2, 2, 3, 7, 16, 1 << 31, 1 << 40, (1 << 63) - 1]
FLOATS = [0.0, 1.0, -1.0, 0.5, 2.0, float("nan"), float("inf"), -float("inf"), 1e30, 1e-30]
STRINGS = [
    "",
    "NOTSET",
    "SAME_UPPER",
    "SAME_LOWER",
    "VALID",
    "constant",
    "reflect",
    "edge",
    "wrap",
    "nearest",
    "linear",
    "cubic",
    "align_corners",
    "tf_crop_and_resize",
    "half_pixel",
    "not_larger",
    "forward",
    "bidirectional",
    "LEFT",
    "CRD",
    "tanh",
    "add",
    "ij,jk->ik",
    "...i,...i",
    "i...->...",
    "->",
    ",",
    "ab->ba",
    "junk",
]
INT_NAMES = [
    "axis",
    "group",
    "keepdims",
    "blocksize",
    "to",
    "k",
    "p",
    "size",
    "transA",
    "transB",
    "ceil_mode",
    "count_include_pad",
    "hidden_size",
    "layout",
    "num_groups",
    "batch_dims",
    "largest",
    "allowzero",
    "start",
    "end",
    "exclusive",
    "reverse",
    "upper",
    "num_outputs",
    "dtype",
    "select_last_index",
    "value_int",
    "antialias",
    "noop_with_empty_axes",
]
LIST_NAMES = [
    "axes",
    "pads",
    "strides",
    "dilations",
    "kernel_shape",
    "perm",
    "split",
    "starts",
    "ends",
    "output_padding",
    "output_shape",
    "value_ints",
]
FLOAT_NAMES = ["alpha", "beta", "epsilon", "min", "max", "bias", "value_float", "cubic_coeff_a", "clip"]
STRING_NAMES = [
    "mode",
    "auto_pad",
    "direction",
    "equation",
    "coordinate_transformation_mode",
    "nearest_mode",
    "reduction",
    "approximate",
    "keep_aspect_ratio_policy",
]
TYPES = [
    TensorProto.FLOAT,
    TensorProto.INT64,
    TensorProto.INT32,
    TensorProto.BOOL,
    TensorProto.FLOAT16,
    TensorProto.UINT8,
    TensorProto.DOUBLE,
]
SHAPES = [
    [],
    [0],
    [1],
    [2],
    [3, 4],
    [2, 3],
    [1, 4, 6],
    [1, 4, 8, 8],
    [2, 1, 3, 3],
    [None, 4],
    [1, 4, None, 8],
    [1, 4, 3, 3, 3],
    [1 << 40],
]
OPSETS = [1, 4, 6, 7, 9, 10, 11, 13, 18, 21]


def random_constant(rng, name):
    kind = rng.choice([np.float32, np.int64, np.int64, np.int64, np.int32, np.bool_])
    shape = rng.choice([(), (1,), (2,), (3,), (4,), (8,), (4, 4, 3, 3), (0,)])
    if kind == np.int64:
        values = np.array([rng.choice(INTS) for _ in range(int(np.prod(shape)))], np.int64).reshape(shape)
    else:
        values = np.array([rng.choice([0, 1, 2]) for _ in range(int(np.prod(shape)))]).reshape(shape).astype(kind)
    return numpy_helper.from_array(values, name)


def random_attributes(rng):
    result = {}
    for names, value in (
        (INT_NAMES, lambda: rng.choice(INTS)),
        (FLOAT_NAMES, lambda: rng.choice(FLOATS)),
        (STRING_NAMES, lambda: rng.choice(STRINGS)),
        (LIST_NAMES, lambda: [rng.choice(INTS) for _ in range(rng.randrange(1, 7))]),
    ):
        for name in names:
            if rng.random() < 0.2:
                result[name] = value()
    if rng.random() < 0.03:
        result["axis"] = 1.5  # a float instead of an integer
    return result


def random_operator(rng):
    inputs, initializers, names = [], [], []
    for i in range(rng.randrange(0, 6)):
        name = f"i{i}"
        if rng.random() < 0.1:
            name = ""
        elif rng.random() < 0.45:
            initializers.append(random_constant(rng, name))
        else:
            inputs.append(models.tensor(name, rng.choice(SHAPES), rng.choice(TYPES[:1] * 4 + TYPES)))
        names.append(name)
    outputs = [f"o{i}" for i in range(rng.randrange(1, 4))]
    attributes = random_attributes(rng)
    kind = rng.choice(OPERATORS)
    if kind in ("If", "Loop"):
        attributes.update(
            {
                name: models.branch("Neg", names[-1] if names else "o9")
                for name in ("then_branch", "else_branch", "body")
            }
        )
    result = helper.make_node(kind, names, outputs, name="n", **attributes)
    return models.model(
        [result], inputs, [models.tensor(name, None) for name in outputs], initializers, opset=rng.choice(OPSETS)
    )


def legacy_model():
    nodes, constants, wanted = legacy.opset6()
    return models.model(
        nodes, [models.tensor("x", legacy.X.shape)], [models.tensor(name, None) for name in wanted], constants, opset=6
    )


GOOD = [
    models.conv,
    models.shape_arithmetic,
    models.if_run_time,
    models.loop,
    models.lstm,
    models.typed_fields,
    functions.good,
    functions.doubling,
    legacy_model,
    limits.concat_bomb,
    limits.two_concat_bomb,
    limits.rates,
    limits.sizes,
    limits.typed,
    limits.pictures,
    limits.empty_dim,
]


def changed_function(rng, result):
    """Change an input, the name or an attribute of a node in a function."""
    node = rng.choice(rng.choice(result.functions).node)
    kind = rng.randrange(4)
    if kind == 0 and node.input:
        node.input[rng.randrange(len(node.input))] = rng.choice(["x", "y", "t", "nowhere", ""])
    elif kind == 1:
        node.op_type, node.domain = rng.choice([(f.name, f.domain) for f in result.functions])
    elif kind == 2:
        functions.reference(node, rng.choice(INT_NAMES), rng.choice(["factor", "add", "none"]), rng.randrange(0, 9))
    else:
        rng.choice(result.functions).opset_import[0].version = rng.choice([0, 1, 6, 9, 13, 1000])


def changed_model(rng):
    result = rng.choice(GOOD)()
    graph = result.graph
    if result.functions and rng.random() < 0.7:
        changed_function(rng, result)
        return result
    target = rng.randrange(6)
    if target == 0 and graph.initializer:
        proto = rng.choice(graph.initializer)
        proto.dims[:] = [rng.choice(INTS) for _ in range(rng.randrange(0, 4))]
    elif target == 1 and graph.initializer:
        rng.choice(graph.initializer).data_type = rng.randrange(0, 30)
    elif target in (2, 3) and not graph.node[0].input:
        graph.node[0].op_type = rng.choice(OPERATORS)
    elif target == 2:
        node = rng.choice([each for each in graph.node if each.input])
        del node.input[rng.randrange(len(node.input)) :]
    elif target == 3:
        node = rng.choice([each for each in graph.node if each.input])
        node.input[rng.randrange(len(node.input))] = rng.choice(graph.node).output[0]
    elif target == 4:
        rng.choice(graph.input).type.tensor_type.elem_type = rng.randrange(0, 20)
    else:
        result.opset_import[0].version = rng.choice([0, 1, 4, 6, 7, 8, 9, 11, 13, 18, 1000])
    return result


def altered(rng, data):
    """Replace, remove or duplicate some bytes."""
    data = bytearray(data)
    for _ in range(rng.randrange(1, 4)):
        at, size = rng.randrange(len(data)), rng.randrange(1, 9)
        kind = rng.randrange(4)
        if kind == 0:
            data[at] ^= 1 << rng.randrange(8)
        elif kind == 1:
            data[at] = rng.choice([0, 1, 0x7F, 0x80, 0xFF])
        elif kind == 2 and len(data) > size:
            del data[at : at + size]
        else:
            data[at:at] = data[at : at + size]
    return bytes(data)


def main():
    folder, count, seed = pathlib.Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    folder.mkdir(parents=True, exist_ok=True)
    rng = random.Random(seed)
    for i in range(count):
        result = random_operator(rng) if rng.random() < 0.8 else changed_model(rng)
        data = result.SerializeToString()
        (folder / f"{i:05}.onnx").write_bytes(data)
        if i % 3:
            (folder / f"{i:05}-altered.onnx").write_bytes(altered(rng, data))


if __name__ == "__main__":
    main()
