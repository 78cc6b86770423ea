# SPDX-License-Identifier: Apache-2.0
"""learned.py TABLE FOLDER: copies the table with weights beside it that run_calibration might have chosen, and faulty
copies."""
import hashlib
import json
import struct
import sys
from pathlib import Path

table, folder = json.loads(Path(sys.argv[1]).read_text()), Path(sys.argv[2])
folder.mkdir(parents=True, exist_ok=True)
CODES = {"I8": "b", "F32": "f"}


def save(name, tensors):
    """A safetensors file; returns its SHA-256."""
    header, data = {}, b""
    for key, (dtype, shape, values) in tensors.items():
        part = struct.pack(f"<{len(values)}{CODES[dtype]}", *values)
        header[key] = {"dtype": dtype, "shape": shape, "data_offsets": [len(data), len(data) + len(part)]}
        data += part
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    content = struct.pack("<Q", len(text)) + text + data
    (folder / f"{name}.safetensors").write_bytes(content)
    return hashlib.sha256(content).hexdigest()


def write(name, weights, **changes):
    digest = save(name, weights)
    document = {**table, "weights_hash": digest, **changes}
    (folder / f"{name}.json").write_text(json.dumps(document))


WEIGHT, SCALE, BIAS = ("I8", [2, 2, 1, 1], [1, -2, 3, -127]), ("F32", [2], [0.5, 0.25]), ("F32", [2], [1.0, -2.0])
good = {"y:weight": WEIGHT, "y:scale": SCALE, "y:bias": BIAS}
write("good", good)
write("shape", {**good, "y:weight": ("I8", [1, 4, 1, 1], [1, -2, 3, -127])})
write("no_scale", {"y:weight": WEIGHT})
write("range", {**good, "y:weight": ("I8", [2, 2, 1, 1], [1, -2, 3, -128])})
write("zero_scale", {**good, "y:scale": ("F32", [2], [0.5, 0.0])})
write("other", good, weights_hash="0" * 64)
write("absent", good)
(folder / "absent.safetensors").unlink()

# Of a matmul [20, 2] in W4 with groups of 16.
alone = {"y:weight4": ("I8", [20, 2], [7, -8] * 20), "y:scale4": ("F32", [2, 2], [0.5, 0.25, -0.125, 2.0])}
write("alone", alone)
write("alone_groups", {**alone, "y:scale4": ("F32", [2, 1], [0.5, 0.25])})
write("alone_shape", {**alone, "y:weight4": ("I8", [2, 20], [0] * 40)})
write("alone_range", {**alone, "y:weight4": ("I8", [20, 2], [8, -8] * 20)})
write("alone_zero_scale", {**alone, "y:scale4": ("F32", [2, 2], [0.5, 0.25, 0.0, 2.0])})
# The same kept in 8 bits.
wide = {"y:weight4wide": ("I8", [20, 2], [127, -128] * 20), "y:scale4wide": ("F32", [2, 1], [0.5, 0.25])}
write("alone_wide", wide)
write("alone_wide_scales", {**wide, "y:scale4wide": ("F32", [2, 2], [0.5, 0.25, 0.125, 2.0])})

# Factors of channels; the table has no ranges, so that everything stays float.
factors = {
    "a:factors": ("F32", [2], [0.5, 0.25]),
    "s:factors": ("F32", [1], [0.125]),
    "n:factors": ("F32", [2], [2.0, 4.0]),
}
write("factors", factors, tensors=[])
write("factors_count", {**factors, "a:factors": ("F32", [3], [0.5, 0.25, 1.0])}, tensors=[])
write("factors_zero", {**factors, "a:factors": ("F32", [2], [0.5, 0.0])}, tensors=[])
write("factors_apart", {**factors, "e:factors": ("F32", [2], [0.5, 0.5])}, tensors=[])
write("factors_rank", {**factors, "a:factors": ("F32", [1, 2], [0.5, 0.25])}, tensors=[])
