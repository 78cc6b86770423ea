#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Reports how busy tensor cores are in the main loops that NVIDIA's assembler generates for contractions.

    build/bin/tessera-python regression/cuda/sass.py m.bmodel [--chip cuda-sm80] [--json]

Needs `ptxas` and `nvdisasm` on the path (CUDA toolkit, or PyPI's nvidia-cuda-nvcc and nvidia-cuda-nvdisasm). The main
loop of a kernel is the innermost loop around most of its `mma`s or, if the loop was fully unrolled, the code from the
first to the last `mma`. For one iteration, with one warp on each scheduler of an SM:
    tensor   cycles of the tensor core, by the chip's rates (device_dialect/chips)
    issue    instructions: a scheduler issues one in a cycle
    shared   passes of 128 bytes over shared memory, one in a cycle, for the warps of all schedulers
`busy` is the tensor core's share of the longest of these; latencies are not included, because other warps hide them.
"""
from __future__ import annotations

import argparse
import json
import re
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Sequence

from make_cases import Failed, tool

CHIPS = Path(__file__).resolve().parents[2] / "device_dialect" / "chips"
SHARED_PASS = 128  # bytes, of 32 banks
# HMMA.16816.F32, IMMA.16832.S8.S8 ..: m, n and k are in the name.
MMA = re.compile(r"^([HI])MMA\.(16)(8)(8|16|32)\.")
RATES = {"H": "f16", "I": "int8"}
BYTES = {"": 4, "U8": 1, "S8": 1, "U16": 2, "S16": 2, "64": 8, "128": 16}


def ptx_of(model: Path, folder: Path) -> Path:
    """Extracts the PTX from the file's code segment: from .version to the zero byte."""
    view = json.loads(tool("bmodel-dump", model))
    segment = view["nets"][0]["stages"][0]["subnets"][-1]["code_segment"]
    tool("bmodel-dump", "--segment", segment, model, folder / "code")
    code = (folder / "code").read_bytes()
    begin = code.index(b".version")
    (folder / "kernels.ptx").write_bytes(code[begin : code.index(b"\0", begin)])
    return folder / "kernels.ptx"


@dataclass(frozen=True)
class Instruction:
    """`name` includes modifiers but not the predicate. `target` is the label of a branch."""

    name: str
    target: str = ""


def parse(text: str) -> dict[str, tuple[list[Instruction], dict[str, int]]]:
    """Parses the output of nvdisasm -c: for each kernel its instructions, and for each label the index of its place."""
    kernels: dict[str, tuple[list[Instruction], dict[str, int]]] = {}
    code: list[Instruction] = []
    labels: dict[str, int] = {}
    for line in text.splitlines():
        if section := re.match(r"\.text\.(\S+):", line):
            code, labels = [], {}
            kernels[section[1]] = (code, labels)
        elif label := re.match(r"(\.L\w+):", line):
            labels[label[1]] = len(code)
        elif found := re.match(r"\s+/\*[0-9a-f]+\*/\s+(?:@!?U?P\w+\s+)?([A-Z][\w.]*)(.*)", line):
            target = re.search(r"`\((\.L\w+)\)", found[2])
            code.append(Instruction(found[1], target[1] if target and found[1].startswith("BRA") else ""))
    return kernels


def main_loop(code: Sequence[Instruction], labels: dict[str, int]) -> Sequence[Instruction]:
    """Returns the main loop (see the module docstring); empty for a kernel without `mma`."""
    places = [i for i, each in enumerate(code) if MMA.match(each.name)]
    if not places:
        return []
    loops = [(labels[each.target], i + 1) for i, each in enumerate(code) if each.target and labels[each.target] <= i]

    def count(loop: tuple[int, int]) -> int:
        return sum(loop[0] <= i < loop[1] for i in places)

    around = [loop for loop in loops if count(loop) * 2 > len(places)]
    begin, end = min(around, key=lambda loop: loop[1] - loop[0], default=(places[0], places[-1] + 1))
    return code[begin:end]


def width(name: str) -> int:
    """Returns the bytes that a thread moves."""
    return max(BYTES.get(part, 4) for part in name.split(".")[1:] or [""])


def shared_passes(name: str) -> int:
    """Returns the passes of a warp without bank conflicts, which the PTX machine counts."""
    kind, *parts = name.split(".")
    if kind == "LDSM":
        return int(parts[-1]) if parts[-1] in ("2", "4") else 1
    return max(1, 32 * width(name) // SHARED_PASS) if kind in ("LDS", "STS", "LDGSTS", "ATOMS") else 0


def judge(loop: Sequence[Instruction], chip: dict[str, Any]) -> dict[str, Any]:
    """Returns the cycles of one iteration of a main loop."""
    schedulers, tensor, products = chip["sm"]["schedulers"], 0.0, 0
    for each in loop:
        if found := MMA.match(each.name):
            products = int(found[2]) * int(found[3]) * int(found[4])
            rate = chip["tensor_cores"][RATES[found[1]]] * chip["tensor_cores"]["mma_sync"]
            tensor += products / (rate / schedulers)
    cycles = {"tensor": tensor, "issue": len(loop), "shared": schedulers * sum(shared_passes(i.name) for i in loop)}
    mmas = sum(bool(MMA.match(each.name)) for each in loop)
    return {"mma": mmas, "instructions": len(loop), **cycles, "busy": round(tensor / max(cycles.values()), 3)}


def main_loops(model: Path, chip: str) -> dict[str, dict[str, Any]]:
    """Analyses the main loop of each kernel of a .bmodel that uses tensor cores."""
    described = json.loads((CHIPS / f"{chip}.json").read_text())
    with tempfile.TemporaryDirectory(prefix="tessera-sass-") as name:
        ptx = ptx_of(model, Path(name))
        tool("ptxas", f"-arch=sm_{described['compute_capability']}", ptx, "-o", ptx.with_suffix(".cubin"))
        kernels = parse(tool("nvdisasm", "-c", ptx.with_suffix(".cubin")))
    loops = {name: main_loop(*kernel) for name, kernel in kernels.items()}
    return {name: judge(loop, described) for name, loop in loops.items() if loop}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path)
    parser.add_argument(
        "--chip", default="cuda-sm80", choices=sorted(path.stem for path in CHIPS.glob("cuda-sm*.json"))
    )
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    try:
        info = main_loops(args.model, args.chip)
    except (Failed, OSError) as error:
        print(f"sass: {error}", file=sys.stderr)
        return 1
    if args.json:
        print(json.dumps(info, indent=1))
        return 0
    print(f"{'kernel':<32}{'mma':>6}{'instr.':>8}{'tensor':>9}{'issue':>8}{'shared':>8}{'busy':>8}")
    for name, each in info.items():
        print(
            f"{name:<32}{each['mma']:>6}{each['instructions']:>8}{each['tensor']:>9.0f}{each['issue']:>8}"
            f"{each['shared']:>8}{each['busy']:>8.2f}"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
