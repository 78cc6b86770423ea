# SPDX-License-Identifier: Apache-2.0
"""learned.py TABLE FOLDER: writes copies of TABLE with weight files as run_calibration could have chosen them, and
faulty copies."""
import hashlib
import json
import sys
from pathlib import Path

import numpy as np

from tessera import safetensors_io

table, folder = json.loads(Path(sys.argv[1]).read_text()), Path(sys.argv[2])
folder.mkdir(parents=True, exist_ok=True)


def save(name, tensors):
    """Writes a safetensors file and returns its SHA-256."""
    file = folder / f"{name}.safetensors"
    safetensors_io.save(file, tensors)
    return hashlib.sha256(file.read_bytes()).hexdigest()


def write(name, weights, **changes):
    digest = save(name, weights)
    document = {**table, "weights_hash": digest, **changes}
    (folder / f"{name}.json").write_text(json.dumps(document))


WEIGHT = np.int8([1, -2, 3, -127]).reshape(2, 2, 1, 1)
SCALE, BIAS = np.float32([0.5, 0.25]), np.float32([1.0, -2.0])
good = {"y:weight": WEIGHT, "y:scale": SCALE, "y:bias": BIAS}
write("good", good)
write("shape", {**good, "y:weight": WEIGHT.reshape(1, 4, 1, 1)})
write("no_scale", {"y:weight": WEIGHT})
write("range", {**good, "y:weight": np.int8([1, -2, 3, -128]).reshape(2, 2, 1, 1)})
write("zero_scale", {**good, "y:scale": np.float32([0.5, 0.0])})
# Weights with two terms only use the input bias, not the integers.
two_terms = [{**line, "weight_terms": 2} if line["name"] == "y" else line for line in table["tensors"]]
write("two_terms", {**good, "y:input_bias": np.float32([3.0, -4.0])}, tensors=two_terms)
write("two_terms_bias", {**good, "y:input_bias": np.float32([3.0])}, tensors=two_terms)
write("other", good, weights_hash="0" * 64)
write("absent", good)
(folder / "absent.safetensors").unlink()

# The weights of a matmul [20, 2] in W4 with groups of 16.
alone = {
    "y:weight4": np.int8([7, -8] * 20).reshape(20, 2),
    "y:scale4": np.float32([0.5, 0.25, -0.125, 2.0]).reshape(2, 2),
}
write("alone", alone)
write("alone_groups", {**alone, "y:scale4": np.float32([0.5, 0.25]).reshape(2, 1)})
write("alone_shape", {**alone, "y:weight4": np.int8([0] * 40).reshape(2, 20)})
write("alone_range", {**alone, "y:weight4": np.int8([8, -8] * 20).reshape(20, 2)})
write("alone_zero_scale", {**alone, "y:scale4": np.float32([0.5, 0.25, 0.0, 2.0]).reshape(2, 2)})
# A matmul of the same shape that keeps 8 bits.
wide = {
    "y:weight4wide": np.int8([127, -128] * 20).reshape(20, 2),
    "y:scale4wide": np.float32([0.5, 0.25]).reshape(2, 1),
}
write("alone_wide", wide)
write("alone_wide_scales", {**wide, "y:scale4wide": np.float32([0.5, 0.25, 0.125, 2.0]).reshape(2, 2)})

# Channel factors. The table does not have ranges, so all ops stay float.
factors = {"a:factors": np.float32([0.5, 0.25]), "s:factors": np.float32([0.125]), "n:factors": np.float32([2.0, 4.0])}
write("factors", factors, tensors=[])
write("factors_count", {**factors, "a:factors": np.float32([0.5, 0.25, 1.0])}, tensors=[])
write("factors_zero", {**factors, "a:factors": np.float32([0.5, 0.0])}, tensors=[])
write("factors_apart", {**factors, "e:factors": np.float32([0.5, 0.5])}, tensors=[])
write("factors_rank", {**factors, "a:factors": np.float32([0.5, 0.25]).reshape(1, 2)}, tensors=[])
