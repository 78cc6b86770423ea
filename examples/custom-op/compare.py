# SPDX-License-Identifier: Apache-2.0
"""Runs the compiled models: without the library, then with it."""
import numpy as np

import tessera.runtime as rt

try:
    rt.load("x86.bmodel")
except rt.Error as error:
    print("without the library:", "is not registered" in str(error))
x = np.load("samples.npz")["x"][:1]
first, second = (rt.load(f"{chip}.bmodel", custom_ops=["./libbilateral.so"]).net() for chip in ("x86", "npu-base"))
print("x86 and npu-base give the same bits:", np.array_equal(first({"x": x})["y"], second({"x": x})["y"]))
for step in second.profile({"x": x}, runs=1):
    if "::" in step.symbol:
        print(step.onnx_nodes[0], "is", step.symbol)
