# SPDX-License-Identifier: Apache-2.0
"""Compares the INT8 models with the float result of onnxruntime."""
import sys

import numpy as np

import tessera.runtime as rt

array, golden = np.load(f"{sys.argv[1]}/in_input.npy"), np.load(f"{sys.argv[1]}/out_output.npy")
x86, npu = (rt.load(f"{chip}.bmodel").net()({"input": array})["output"] for chip in ("x86", "npu-edge"))
cosine = float((x86 * golden).sum() / np.linalg.norm(x86) / np.linalg.norm(golden))
print("same class as in float:", bool(x86.argmax() == golden.argmax()))
print("cosine at least 0.9:", cosine >= 0.9)
print("x86 and npu-edge have the same bits:", np.array_equal(x86, npu))
