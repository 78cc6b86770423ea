# SPDX-License-Identifier: Apache-2.0
"""Check operators whose result size is only known at run time, and composed operators, against numpy:

selection.py make FOLDER; selection.py check padded|exact FOLDER; selection.py refuse FOLDER TOOL."""
import json
import pathlib
import subprocess
import sys

import numpy as np
from onnx import TensorProto, helper

import models
from tessera import safetensors_io

F32, I64, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL
value, node = helper.make_tensor_value_info, helper.make_node
SHAPES = {
    "boxes": (2, 6, 4),
    "scores": (2, 2, 6),
    "data": (5, 3),
    "row": (6,),
    "signal": (2, 40, 1),
    "pairs": (2, 12, 2),
    "long": (1, 1536, 1),
    "logits": (4, 3, 2),
    "image": (3, 2, 4, 4),
    "steps": (5, 1, 3),
}
PREDICT = {"row": lambda rng: rng.integers(0, 3, 6).astype(np.float32)}
OUTPUT_BOXES = 3


def inputs():
    rng = np.random.default_rng(8)
    result = {}
    for name, shape in SHAPES.items():
        result[name] = PREDICT[name](rng) if name in PREDICT else rng.standard_normal(shape).astype(np.float32)
    result["data"] = np.where(result["data"] > 0.3, result["data"], 0).astype(np.float32)
    result["labels"] = np.array([[0, 2], [1, -1], [2, 2], [0, 1]], np.int64)
    return result


WEIGHTS = {
    "w8": np.random.default_rng(1).integers(-127, 128, (1, 3, 16)).astype(np.int8),
    "r8": np.random.default_rng(2).integers(0, 256, (1, 4, 16)).astype(np.uint8),
    "w_scale": np.float32([0.004]),
    "w_zero": np.int8([3]),
    "r_scale": np.linspace(0.002, 0.004, 16, dtype=np.float32)[None],
    "r_zero": np.full((1, 16), 128, np.uint8),
    "lstm_b": np.random.default_rng(3).standard_normal((1, 32)).astype(np.float32),
}


# --- definitions ------------------------------------------------------------------------


def area(b):
    return abs(b[2] - b[0]) * abs(b[3] - b[1])


def overlap(a, b):
    low = [max(min(a[i], a[i + 2]), min(b[i], b[i + 2])) for i in (0, 1)]
    high = [min(max(a[i], a[i + 2]), max(b[i], b[i + 2])) for i in (0, 1)]
    common = max(0.0, high[0] - low[0]) * max(0.0, high[1] - low[1])
    return common / (area(a) + area(b) - common)


def suppress(boxes, scores, most, iou, least):
    rows = []
    for b in range(scores.shape[0]):
        for c in range(scores.shape[1]):
            kept = []
            for i in sorted(range(scores.shape[2]), key=lambda i: (-scores[b, c, i], i)):
                if scores[b, c, i] > least and all(overlap(boxes[b, i], boxes[b, j]) <= iou for j in kept):
                    kept.append(i)
            rows += [[b, c, i] for i in kept[:most]]
    return np.int64(rows).reshape(-1, 3)


def unique(x, axis=None, ordered=True):
    y, first, inverse, counts = np.unique(x, True, True, True, axis=axis)
    inverse = inverse.reshape(-1)
    if not ordered:
        order = np.argsort(first)
        first, counts, inverse = first[order], counts[order], np.argsort(order)[inverse]
        y = np.take(x.reshape(-1) if axis is None else x, first, 0 if axis is None else axis)
    return y, first, inverse, counts


def fourier(x, n=None, axis=1, inverse=False, onesided=False):
    numbers = x[..., 0] + (1j * x[..., 1] if x.shape[-1] == 2 else 0)
    y = (np.fft.ifft if inverse else np.fft.fft)(numbers, n, axis)
    if onesided:
        y = np.take(y, range(y.shape[axis] // 2 + 1), axis)
    return np.stack([y.real, y.imag], -1)


def stft(x, step, window, onesided=True):
    frames = (x.shape[1] - len(window)) // step + 1
    cut = np.stack([x[:, f * step : f * step + len(window)] * window[:, None] for f in range(frames)], 1)
    return fourier(cut, axis=2, onesided=onesided)


def likelihood(logs, labels, weight):
    safe = np.where(labels < 0, 0, labels)
    w = np.where(labels < 0, 0, weight[safe])
    loss = -np.take_along_axis(logs, safe[:, None], 1)[:, 0] * w
    return loss.sum() / w.sum()


def log_softmax(x):
    x = x - x.max(1, keepdims=True)
    return x - np.log(np.exp(x).sum(1, keepdims=True))


def batch_norm(x, scale, bias):
    axes = (0, 2, 3)
    mean, variance = x.mean(axes, keepdims=True), x.var(axes, keepdims=True)
    y = (x - mean) / np.sqrt(variance + 1e-5) * scale[:, None, None] + bias[:, None, None]
    return y, 0.9 * 0.5 + 0.1 * mean.ravel(), 0.9 * 2 + 0.1 * variance.ravel()


def lstm(x):
    w = ((WEIGHTS["w8"].astype(np.float64) - 3) * 0.004)[0]
    r = ((WEIGHTS["r8"].astype(np.float64) - 128) * WEIGHTS["r_scale"])[0]
    b = WEIGHTS["lstm_b"][0]
    h = c = np.zeros((1, 4))
    sigmoid = lambda v: 1 / (1 + np.exp(-v))
    for t in x:
        i, o, f, g = np.split(t @ w + h @ r + b[:16] + b[16:], 4, 1)
        c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
        h = sigmoid(o) * np.tanh(c)
    return h[None]


def max_pool(x, kernel=(3, 2), strides=(2, 1), pads=(1, 0, 1, 1)):
    """Return the maxima of windows and their positions in x."""
    numbers = np.pad(np.arange(x.size).reshape(x.shape), ((0, 0), (0, 0), (pads[0], pads[2]), (pads[1], pads[3])))
    x = np.pad(x, ((0, 0), (0, 0), (pads[0], pads[2]), (pads[1], pads[3])), constant_values=-np.inf)
    out = [(x.shape[d + 2] - kernel[d]) // strides[d] + 1 for d in (0, 1)]
    best, place = np.zeros((*x.shape[:2], *out), np.float32), np.zeros((*x.shape[:2], *out), np.int64)
    for n, c, i, j in np.ndindex(*best.shape):
        window = (
            n,
            c,
            slice(i * strides[0], i * strides[0] + kernel[0]),
            slice(j * strides[1], j * strides[1] + kernel[1]),
        )
        best[n, c, i, j], place[n, c, i, j] = x[window].max(), numbers[window].ravel()[x[window].argmax()]
    return best, place


REGIONS, ENTRIES = np.float32([[0, 0, 6, 4], [2.5, 1, 9, 9], [-3, -2, 5, 3]]), np.int64([0, 2, 1])


def roi_align(x, height=2, width=3, samples=2, scale=0.5):
    def sample(image, y, across):
        if not (-1 <= y <= 4 and -1 <= across <= 4):
            return 0.0 * image[:, 0, 0]
        y, across = np.clip([y, across], 0, 3)
        i, j = int(y), int(across)
        dy, dx = y - i, across - j
        i1, j1 = min(i + 1, 3), min(j + 1, 3)
        return (
            (1 - dy) * (1 - dx) * image[:, i, j]
            + (1 - dy) * dx * image[:, i, j1]
            + dy * (1 - dx) * image[:, i1, j]
            + dy * dx * image[:, i1, j1]
        )

    result = np.zeros((len(REGIONS), x.shape[1], height, width))
    for r, (region, entry) in enumerate(zip(REGIONS, ENTRIES)):
        left, top, right, bottom = region * scale - 0.5
        for i, j in np.ndindex(height, width):
            points = [
                sample(
                    x[entry],
                    top + (bottom - top) * (i + (a + 0.5) / samples) / height,
                    left + (right - left) * (j + (b + 0.5) / samples) / width,
                )
                for a, b in np.ndindex(samples, samples)
            ]
            result[r, :, i, j] = np.mean(points, 0)
    return result


# --- the two models ---------------------------------------------------------------------

HANN = np.float32(0.5 - 0.5 * np.cos(2 * np.pi * np.arange(12) / 12))
SCALE, BIAS, CLASS_WEIGHT = np.float32([1.5, 0.5]), np.float32([0.1, -0.2]), np.float32([0.2, 0.3, 0.5])
CONSTANTS = {
    "most": np.int64(OUTPUT_BOXES),
    "iou": np.float32(0.4),
    "least": np.float32(-0.5),
    "third": np.int64([2]),
    "step": np.int64(4),
    "hop": np.int64(5),
    "hann": HANN,
    "n7": np.int64(7),
    "n16": np.int64(16),
    "length": np.int64(12),
    "scale": SCALE,
    "bias": BIAS,
    "mean": np.float32([0.5, 0.5]),
    "variance": np.float32([2, 2]),
    "class_weight": CLASS_WEIGHT,
    "table": np.float32([3, 1, 3, 2, 1]),
    "two": np.int64(2),
    "one": np.int64(1),
    "size": np.int64(9),
    "flags": np.array([True, False, True, False, True]),
    "crop": np.int64([7, 1]),
    "regions": REGIONS,
    "entries": ENTRIES,
    **WEIGHTS,
}


def padded():
    """Return the nodes and, for each output, the expected value and the padded axis."""
    a = inputs()
    rows = suppress(a["boxes"], a["scores"], OUTPUT_BOXES, 0.4, -0.5)
    y, first, inverse, counts = unique(a["row"])
    y2, first2, inverse2, counts2 = unique(a["row"], ordered=False)
    nodes = [
        node("NonMaxSuppression", ["boxes", "scores", "most", "iou", "least"], ["kept"], "nms"),
        node("Gather", ["kept", "third"], ["column"], "column", axis=1),
        node("Squeeze", ["column", "one_axis"], ["numbers"], "numbers"),
        node("Gather", ["data_wide", "numbers"], ["picked"], "picked", axis=0),
        node("Shape", ["kept"], ["shape"], "shape"),
        node("Slice", ["kept", "zero_axis", "four", "zero_axis"], ["prefix"], "prefix"),
        node("Shape", ["prefix"], ["prefix_shape"], "prefix_shape"),
        node("NonZero", ["data"], ["where"], "where"),
        node("GreaterOrEqual", ["row", "one_f"], ["mask"], "mask"),
        node("Compress", ["boxes", "mask"], ["pressed"], "pressed", axis=1),
        node("Unique", ["row"], ["y", "first", "inverse", "counts"], "unique"),
        node("Unique", ["row"], ["y2", "", "inverse2", "counts2"], "unique2", sorted=0),
    ]
    wide = np.arange(12, dtype=np.float32).reshape(6, 2) - 3
    wanted = {
        "kept": (rows, 0),
        "picked": (wide[rows[:, 2]], 0),
        "shape": (np.int64(rows.shape), None),
        "prefix": (rows[:4], 0),
        "prefix_shape": (np.int64(rows[:4].shape), None),
        "where": (np.array(np.nonzero(a["data"])), 1),
        "pressed": (a["boxes"][:, a["row"] >= 1], 1),
        "y": (y, 0),
        "first": (first, 0),
        "inverse": (inverse, None),
        "counts": (counts, 0),
        "y2": (y2, 0),
        "inverse2": (inverse2, None),
    }
    constants = {"data_wide": wide, "one_axis": np.int64([1]), "one_f": np.float32(1)}
    constants |= {"zero_axis": np.int64([0]), "four": np.int64([4])}
    return nodes, wanted, constants


class Wanted:
    """Nodes and their expected outputs in the format of padded(), without padded axes."""

    def __init__(self):
        self.nodes, self.outputs = [], {}

    def add(self, name, kind, operands, reference, domain="", **attributes):
        outputs = [name] if not isinstance(reference, tuple) else [f"{name}{i}" for i in range(len(reference))]
        outputs = attributes.pop("outputs", outputs)
        self.nodes.append(node(kind, operands, outputs, name, domain=domain, **attributes))
        values = reference if isinstance(reference, tuple) else (reference,)
        for output, array in zip([o for o in outputs if o], values):
            if array is not None:
                self.outputs[output] = (array, None)


def add_transforms(result, a):
    result.add("dft", "DFT", ["signal"], fourier(a["signal"]), axis=1)
    result.add("dft_one", "DFT", ["signal", "n16"], fourier(a["signal"], 16, onesided=True), onesided=1)
    result.add("dft_batch", "DFT", ["signal"], fourier(a["signal"], axis=0), axis=0)
    result.add("dft_pad", "DFT", ["pairs", "n16"], fourier(a["pairs"], 16), axis=-2)
    result.add("dft_inverse", "DFT", ["pairs"], fourier(a["pairs"], inverse=True), inverse=1)
    result.add("dft_long", "DFT", ["long"], fourier(a["long"]))
    result.add("stft", "STFT", ["signal", "step", "hann"], stft(a["signal"], 4, HANN))
    result.add("stft_hop", "STFT", ["signal", "hop", "", "length"], stft(a["signal"], 5, np.ones(12)))
    result.add(
        "stft_pairs", "STFT", ["pairs", "step", "hann"], stft(a["pairs"][..., :2], 4, HANN, onesided=False), onesided=0
    )
    angle = 2 * np.pi * np.arange(9) / 9
    result.add("hann9", "HannWindow", ["size"], 0.5 - 0.5 * np.cos(angle))
    result.add("hamming9", "HammingWindow", ["size"], 25 / 46 - 21 / 46 * np.cos(angle * 9 / 8), periodic=0)
    result.add("blackman9", "BlackmanWindow", ["size"], 0.42 - 0.5 * np.cos(angle) + 0.08 * np.cos(2 * angle))


def add_images(result, a):
    result.add(
        "cropped",
        "CenterCropPad",
        ["image", "crop"],
        np.pad(a["image"], ((0, 0), (0, 0), (1, 2), (0, 0)))[..., 1:2],
        axes=[2, -1],
    )
    result.add("determinant", "Det", ["image"], np.linalg.det(a["image"].astype(np.float64)))
    pooled, places = max_pool(a["image"])
    result.add("pool", "MaxPool", ["image"], (pooled, places), kernel_shape=[3, 2], strides=[2, 1], pads=[1, 0, 1, 1])
    square, corners = max_pool(a["image"], (2, 2), (2, 2), (0, 0, 0, 0))
    unpooled = np.zeros(a["image"].size)
    unpooled[corners.ravel()] = square.ravel()
    result.add("corner", "MaxPool", ["image"], (square, corners), kernel_shape=[2, 2], strides=[2, 2])
    result.add(
        "unpooled",
        "MaxUnpool",
        ["corner0", "corner1"],
        unpooled.reshape(a["image"].shape),
        kernel_shape=[2, 2],
        strides=[2, 2],
    )
    result.add(
        "aligned",
        "RoiAlign",
        ["image", "regions", "entries"],
        roi_align(a["image"]),
        output_height=2,
        output_width=3,
        sampling_ratio=2,
        spatial_scale=0.5,
    )


def add_training(result, a):
    logs = log_softmax(a["logits"])
    bn = batch_norm(a["image"], SCALE, BIAS)
    result.add(
        "nll",
        "NegativeLogLikelihoodLoss",
        ["logits", "labels", "class_weight"],
        likelihood(a["logits"], a["labels"], CLASS_WEIGHT),
        ignore_index=-1,
    )
    result.add(
        "sce",
        "SoftmaxCrossEntropyLoss",
        ["logits", "labels"],
        (likelihood(logs, a["labels"], np.ones(3)), logs),
        ignore_index=-1,
    )
    result.add("bn", "BatchNormalization", ["image", "scale", "bias", "mean", "variance"], bn, training_mode=1)
    result.add(
        "lstm",
        "DynamicQuantizeLSTM",
        ["steps", "w8", "r8", "lstm_b", "", "", "", "", "w_scale", "w_zero", "r_scale", "r_zero"],
        lstm(a["steps"]),
        domain="com.microsoft",
        hidden_size=4,
        outputs=["", "lstm"],
    )


def add_lists(result, a):
    y, first, inverse, counts = unique(CONSTANTS["table"])
    result.add("constant", "Unique", ["table"], (y, first, inverse, counts))
    result.add("pressed_constant", "Compress", ["data", "flags"], a["data"][[0, 2, 4]], axis=0)
    result.nodes.extend(
        [
            node("SplitToSequence", ["data", "two"], ["parts"], "parts", axis=0),
            node("SequenceInsert", ["parts", "data", "one"], ["more"], "more"),
            node("SequenceErase", ["more"], ["fewer"], "fewer"),
            node("SplitToSequence", ["data"], ["rows"], "rows", keepdims=0),
        ]
    )
    result.add("at", "SequenceAt", ["fewer", "two"], a["data"][2:4])
    result.add("count", "SequenceLength", ["fewer"], np.int64(3))
    result.add(
        "joined", "ConcatFromSequence", ["fewer"], np.concatenate([a["data"][:2], a["data"], a["data"][2:4]]), axis=0
    )
    result.add("stacked", "ConcatFromSequence", ["rows"], a["data"].T, axis=1, new_axis=1)


def exact():
    result, a = Wanted(), inputs()
    for part in (add_transforms, add_images, add_training, add_lists):
        part(result, a)
    return result.nodes, result.outputs, {}


def graph(nodes, wanted, more, opset=18):
    shapes = [value(name, F32, shape) for name, shape in SHAPES.items()] + [value("labels", I64, [4, 2])]
    constants = [models.constant(name, array) for name, array in {**CONSTANTS, **more}.items()]
    outputs = [
        value(name, I64 if np.asarray(array).dtype == np.int64 else F32, None) for name, (array, _) in wanted.items()
    ]
    opsets = [helper.make_opsetid("", opset), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(
        helper.make_graph(nodes, "g", shapes, outputs, constants), opset_imports=opsets, ir_version=10
    )


def check(which, folder):
    _, wanted, _ = padded() if which == "padded" else exact()
    got = safetensors_io.load(folder / f"{which}.safetensors")
    for name, (array, axis) in wanted.items():
        actual, array = got[name], np.asarray(array)
        if axis is not None:
            assert actual.shape[axis] >= array.shape[axis], name
            real = np.arange(actual.shape[axis]) < array.shape[axis]
            behind = np.compress(~real, actual, axis)
            assert (behind == -1).all(), (name, behind)
            actual = np.compress(real, actual, axis)
        assert actual.shape == array.shape, (name, actual.shape, array.shape)
        np.testing.assert_allclose(actual, array, rtol=1e-4, atol=2e-4 if name == "dft_long" else 2e-5, err_msg=name)
    print(len(wanted), "outputs agree")


# --- rejected models --------------------------------------------------------------------


FLAG = value("flag", BOOL, [])


def rejected_with_branches(nms, boxes, most):
    """Return models with an unknown number of boxes in branches, and with boxes of a wrong rank."""
    branch = lambda name: helper.make_graph([node("Identity", ["kept"], [name])], name, [], [value(name, I64, None)])
    return {
        "branch": (
            nms + [node("If", ["flag"], ["y"], "after", then_branch=branch("a"), else_branch=branch("b"))],
            boxes + [FLAG],
            I64,
            most,
            17,
        ),
        "boxes_rank": (
            nms[:1] + [node("Identity", ["kept"], ["y"])],
            [value("boxes", F32, [6, 4]), boxes[1]],
            I64,
            most,
            17,
        ),
    }


def rejected_behind_nms():
    """Return models with nodes that may not read a number of boxes only known at run time."""
    nms = [node("NonMaxSuppression", ["boxes", "scores", "most"], ["kept"], "nms")]
    after = lambda kind, operands, **a: nms + [node(kind, operands, ["y"], "after", **a)]
    boxes = [value("boxes", F32, [1, 6, 4]), value("scores", F32, [1, 1, 6])]
    most = {
        "most": np.int64([3]),
        "zero": np.int64([0]),
        "tail": np.int64([-2]),
        "end": np.int64([9]),
        "rows": np.int64([[0, 0, 1]] * 3),
        "k": np.int64([1]),
    }
    return {
        "mean": (after("ReduceMean", ["kept"], axes=[0]), boxes, I64, most, 17),
        "topk": (
            after("TopK", ["kept", "k"], axis=0)[:-1] + [node("TopK", ["kept", "k"], ["y", "i"], "after", axis=0)],
            boxes,
            I64,
            most,
            17,
        ),
        "count": (
            nms
            + [
                node("Shape", ["kept"], ["count"], "count", end=1),
                node("TopK", ["numbers", "count"], ["v", "y"], "after"),
            ],
            boxes + [value("numbers", F32, [6])],
            I64,
            most,
            17,
        ),
        "concat": (after("Concat", ["kept", "rows"], axis=0), boxes, I64, most, 17),
        "row": (after("Gather", ["kept", "zero"], axis=0), boxes, I64, most, 17),
        "last": (after("Slice", ["kept", "tail", "end", "zero"]), boxes, I64, most, 17),
        "two_lists": (
            nms
            + [
                node("NonMaxSuppression", ["boxes", "scores", "most"], ["other"], "nms2"),
                node("Add", ["kept", "other"], ["y"], "after"),
            ],
            boxes,
            I64,
            most,
            17,
        ),
        "static_rows": (after("Add", ["kept", "rows"]), boxes, I64, most, 17),
        **rejected_with_branches(nms, boxes, most),
    }


def rejected_forms():
    """Return models with unsupported forms of transforms, sequences and lists."""
    listed = lambda name: helper.make_graph(
        [node("SequenceConstruct", ["x"], [name])], name, [], [helper.make_tensor_sequence_value_info(name, F32, None)]
    )
    x = [value("x", F32, [1, 10, 1])]
    return {
        "dft_last_axis": ([node("DFT", ["x"], ["y"], "dft", axis=2)], x, F32, {}, 17),
        "dft_onesided": ([node("DFT", ["x"], ["y"], "dft", onesided=1, inverse=1)], x, F32, {}, 17),
        "dft_prime": ([node("DFT", ["x", "n"], ["y"], "dft")], x, F32, {"n": np.int64(8209)}, 17),
        "stft_long": (
            [node("STFT", ["x", "step", "hann"], ["y"], "stft")],
            x,
            F32,
            {"step": np.int64(4), "hann": HANN},
            17,
        ),
        "sequence_place": (
            [node("SequenceConstruct", ["x", "x"], ["s"]), node("SequenceAt", ["s", "two"], ["y"], "at")],
            x,
            F32,
            {"two": np.int64(2)},
            17,
        ),
        "sequence_output": (
            [node("SequenceConstruct", ["x", "x"], ["s"]), node("Identity", ["x"], ["y"])],
            x,
            "s",
            {},
            17,
        ),
        "sequence_branch": (
            [
                node("If", ["flag"], ["s"], "choice", then_branch=listed("a"), else_branch=listed("b")),
                node("Identity", ["x"], ["y"]),
            ],
            x + [FLAG],
            F32,
            {},
            17,
        ),
        "wide_unique": ([node("Unique", ["w"], ["y"], "unique", axis=0)], [value("w", F32, [512, 65])], F32, {}, 17),
    }


def rejections():
    """Return a map from name to nodes, inputs, output, constants and opset."""
    return {**rejected_behind_nms(), **rejected_forms()}


def reject(folder, tool):
    for name, (nodes, given, kind, constants, opset) in rejections().items():
        output = helper.make_tensor_sequence_value_info("s", F32, None) if kind == "s" else value("y", kind, None)
        result = helper.make_model(
            helper.make_graph(nodes, "g", given, [output], [models.constant(n, a) for n, a in constants.items()]),
            opset_imports=[helper.make_opsetid("", opset)],
            ir_version=10,
        )
        (folder / "bad.onnx").write_bytes(result.SerializeToString())
        done = subprocess.run(
            [tool, "import", "--onnx", folder / "bad.onnx", "--output", folder / "bad_top.mlir"],
            capture_output=True,
            text=True,
        )
        events = [json.loads(line) for line in done.stdout.splitlines()]
        message = next((event["message"] for event in events if event["event"] == "error"), done.stderr[-300:])
        print(name, done.returncode, message.replace("\n", " "))


def main():
    if sys.argv[1] == "make":
        folder = pathlib.Path(sys.argv[2])
        for name, parts in {"padded": padded(), "exact": exact()}.items():
            (folder / f"{name}.onnx").write_bytes(graph(*parts).SerializeToString())
        safetensors_io.save(folder / "in.safetensors", inputs())
    elif sys.argv[1] == "check":
        check(sys.argv[2], pathlib.Path(sys.argv[3]))
    else:
        reject(pathlib.Path(sys.argv[2]), sys.argv[3])


main()
