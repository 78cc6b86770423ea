# SPDX-License-Identifier: Apache-2.0
"""Check conversions of stored types against numpy: stored_types.py make|check FOLDER [FILE]."""
import pathlib
import sys

import numpy as np
from onnx import TensorProto, helper

from tessera import safetensors_io

# name: data type, bits, mantissa bits, exponent of the smallest normal number, largest, infinity, NaN, negative zero
FLOATS = {
    "e4m3fn": (17, 8, 3, -6, 448.0, False, True, True),
    "e4m3fnuz": (18, 8, 3, -7, 240.0, False, True, False),
    "e5m2": (19, 8, 2, -14, 57344.0, True, True, True),
    "e5m2fnuz": (20, 8, 2, -15, 57344.0, False, True, False),
    "e2m1": (23, 4, 1, 0, 6.0, False, False, True),
}
WEIGHTS = {"int4": (22, 4, True), "uint4": (21, 4, False), "int2": (26, 2, True), "uint2": (25, 2, False)}
F32 = TensorProto.FLOAT


def magnitudes(name):
    """Return the finite magnitudes by code."""
    _, _, mantissa, least, largest, *_ = FLOATS[name]
    step, values = 2.0 ** (least - mantissa), [0.0]
    while values[-1] < largest:
        values.append(values[-1] + step)
        if len(values) > 2 << mantissa and (len(values) - 1) % (1 << mantissa) == 0:
            step *= 2
    return np.array(values)


def numbers(name):
    """Return all numbers of the type, midpoints between them, and values out of range."""
    values = magnitudes(name)
    middle = (values[1:] + values[:-1]) / 2
    near = [np.nextafter(m.astype(np.float32), np.float32(s)) for m in (middle,) for s in (0, np.inf)]
    far = [values[-1] * f for f in (1.01, 1.1, 1.5, 2, 1e6)]
    positive = np.concatenate([values, middle, *near, far, [np.inf, 1e-30]])
    return np.concatenate([positive, -positive, [np.nan]]).astype(np.float32)


def round_to(name, x, saturate):
    _, _, _, _, largest, has_infinity, has_nan, has_negative_zero = FLOATS[name]
    values = magnitudes(name)
    size = np.abs(x.astype(np.float64))
    above = np.clip(np.searchsorted(values, size), 1, len(values) - 1)
    low, high = values[above - 1], values[above]
    is_even = (above - 1) % 2 == 0
    y = np.where((size - low < high - size) | ((size - low == high - size) & is_even), low, high)
    # Values above the largest number round to it up to half a step.
    step = values[-1] - values[-2]
    odd = (len(values) - 1) % 2 == 1
    over = (size > largest + step / 2) | (odd & (size == largest + step / 2))
    beyond = largest if saturate or not has_nan else np.inf if has_infinity else np.nan
    y = np.where(over, beyond, np.minimum(y, largest))
    y = np.copysign(y, x)
    y = np.where(np.isnan(x), np.nan if has_nan else -0.0, y)
    return y if has_negative_zero else np.where(y == 0, 0.0, y)


def decode(name, codes):
    _, bits, _, _, largest, has_infinity, has_nan, has_negative_zero = FLOATS[name]
    values = magnitudes(name)
    size = codes & ((1 << (bits - 1)) - 1)
    y = np.where(size < len(values), values[np.minimum(size, len(values) - 1)], np.nan)
    if has_infinity:
        y = np.where(size == len(values), np.inf, y)
    y = np.where(codes >> (bits - 1), -y, y)
    return np.where((codes == 0x80), np.nan, y) if has_nan and not has_negative_zero else y


def integers(bits, signed):
    low = -(1 << (bits - 1)) if signed else 0
    return np.arange(low, low + (1 << bits))


def packed(bits, values):
    out = np.zeros(-(-len(values) * bits // 8), np.uint8)
    for i, value in enumerate(values):
        out[i * bits // 8] |= (int(value) & ((1 << bits) - 1)) << (i * bits % 8)
    return out


def inputs():
    given = {f"x_{name}": numbers(name) for name in FLOATS}
    given |= {f"c_{name}": np.arange(1 << spec[1]).astype(np.uint8) for name, spec in FLOATS.items()}
    given["x"] = np.array([-9.0, -2.5, -0.4, 0.6, 1.5, 7.4, 20.0], np.float32)
    return given


def expected():
    given, result = inputs(), {}
    for name in FLOATS:
        result[f"cast_{name}"] = round_to(name, given[f"x_{name}"], True)
        if FLOATS[name][6]:
            result[f"free_{name}"] = round_to(name, given[f"x_{name}"], False)
        result[f"float_{name}"] = decode(name, given[f"c_{name}"].astype(np.int64))
    for name, (_, bits, signed) in WEIGHTS.items():
        result[f"weights_{name}"] = (integers(bits, signed) * 0.5).astype(np.float32)
    return result


def graph():
    nodes, tensors, declared, outputs = [], [], [], []
    for name, array in inputs().items():
        kind = FLOATS[name[2:]][0] if name.startswith("c_") else F32
        declared.append(helper.make_tensor_value_info(name, F32, array.shape))
        declared[-1].type.tensor_type.elem_type = kind
    for name, (kind, *_, has_nan, _) in FLOATS.items():
        nodes.append(helper.make_node("Cast", [f"x_{name}"], [f"cast_{name}"], to=kind))
        outputs.append((f"cast_{name}", kind))
        if has_nan:
            nodes.append(helper.make_node("Cast", [f"x_{name}"], [f"free_{name}"], to=kind, saturate=0))
            outputs.append((f"free_{name}", kind))
        nodes.append(helper.make_node("Cast", [f"c_{name}"], [f"float_{name}"], to=F32))
        outputs.append((f"float_{name}", F32))
    for name, (kind, bits, signed) in WEIGHTS.items():
        values = integers(bits, signed)
        tensors.append(
            TensorProto(name=name, data_type=kind, dims=values.shape, raw_data=packed(bits, values).tobytes())
        )
        nodes.append(helper.make_node("DequantizeLinear", [name, "half"], [f"weights_{name}"]))
        outputs.append((f"weights_{name}", F32))
    tensors.append(helper.make_tensor("half", F32, [], [0.5]))
    results = []
    for name, kind in outputs:
        results.append(helper.make_tensor_value_info(name, F32, None))
        results[-1].type.tensor_type.elem_type = kind
    body = helper.make_graph(nodes, "g", declared, results, tensors)
    return helper.make_model(body, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)


def main():
    folder = pathlib.Path(sys.argv[2])
    if sys.argv[1] == "make":
        (folder / "m.onnx").write_bytes(graph().SerializeToString())
        safetensors_io.save(folder / "in.safetensors", inputs())
        return
    got, wanted = safetensors_io.load(folder / sys.argv[3]), expected()
    for name, want in wanted.items():
        value = got[name]
        kind = name.split("_")[1]
        if value.dtype == np.uint8:
            value = decode(kind, value.astype(np.int64))
        same = (value == want) & (np.signbit(value) == np.signbit(want)) | (np.isnan(value) & np.isnan(want))
        assert same.all(), (name, np.flatnonzero(~same)[:5], value[~same][:5], np.asarray(want)[~same][:5])
    print(len(wanted), "outputs agree")


main()
