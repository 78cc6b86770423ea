# SPDX-License-Identifier: Apache-2.0
"""Three networks in one process: each has its own memory and threads, and all may run at the same time."""
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

import tessera.runtime as rt

folder = Path(sys.argv[1])
inputs = {
    "mnist-8": folder / "mnist" / "in_Input3.npy",
    "resnet8_cifar10": folder / "resnet8_cifar10" / "in_input.npy",
    "mobilenetv1_0.25_128": folder / "mobilenetv1_0.25_128" / "in_input.npy",
}
nets = {name: rt.load(f"{name}.bmodel", threads=2).net() for name in inputs}


def classify(name: str) -> str:
    net, array = nets[name], np.load(inputs[name])
    for _ in range(20):  # the interpreter lock is released during runs
        (scores,) = net({net.inputs[0].name: array[:1]}).values()
    return f"{name}: class {scores.argmax()} of {scores.size}"


with ThreadPoolExecutor() as pool:
    for line in pool.map(classify, nets):
        print(line)
workspaces = sum(net.memory["workspace_bytes"] for net in nets.values())
print("workspaces of all three together:", "under 1 MiB" if workspaces < 1 << 20 else f"{workspaces} bytes")
