# SPDX-License-Identifier: Apache-2.0
"""Checks that both chips compute the same integers, and compares their times."""
import json
import subprocess
import sys

import numpy as np

import tessera.runtime as rt


def microseconds(model: str) -> float:
    info = subprocess.run(["model_tool", "perf", model, "--json"], check=True, capture_output=True, text=True)
    return json.loads(info.stdout)["report"]["microseconds"]


array = np.load(sys.argv[1])[:1]
chips = ("npu-edge", "npu-mine")
edge, mine = (rt.load(f"{chip}.bmodel").net() for chip in chips)
print("chip:", mine.chip)
print("same bits as npu-edge:", np.array_equal(*(next(iter(net({"input": array}).values())) for net in (edge, mine))))
print("faster than npu-edge:", microseconds("npu-mine.bmodel") < microseconds("npu-edge.bmodel"))
