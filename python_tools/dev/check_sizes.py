#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that sizes of tensors are read through top_dialect/IR/Sizes.h.

MLIR's own accessors return the same number for all sizes that are unknown until run time, so that two unknown sizes
compare equal. direct_sizes.txt lists how often each file still uses them. A count may only fall: a file that exceeds
its count is a violation, and so is a file that stays below it until --update has lowered the count.
Exit code 0: clean; 1: violations, one per line.
"""
from __future__ import annotations

import re
import sys
from pathlib import Path

FOLDERS = ("top_dialect", "quant", "device_dialect", "codegen")
# The NPU's models and the reference are always static. Tests build their own tensors.
EXEMPT = re.compile(r"^codegen/Npu/|/Reference/|/test/|_test\.cpp$|^top_dialect/IR/Sizes\.(h|cpp)$")
DIRECT = re.compile(r"(?:\.|->)(?:getShape|getDimSize|getNumElements|hasStaticShape|isDynamicDim|getNumDynamicDims)\(")
LIST = "python_tools/dev/direct_sizes.txt"
HEADER = """\
# How often a file reads sizes through MLIR's accessors instead of top_dialect/IR/Sizes.h (check_sizes.py).
# A count may only fall: after a conversion, run `python_tools/dev/check_sizes.py --update`.
"""


def count_uses(root: Path) -> dict[str, list[int]]:
    """Returns the lines of direct uses by file; a line with two uses is listed twice."""
    uses = {}
    for folder in FOLDERS:
        for path in sorted((root / folder).rglob("*")):
            name = path.relative_to(root).as_posix()
            if path.suffix in (".h", ".cpp", ".td") and not EXEMPT.search(name):
                text = path.read_text(encoding="utf-8", errors="replace")
                if lines := [text.count("\n", 0, match.start()) + 1 for match in DIRECT.finditer(text)]:
                    uses[name] = lines
    return uses


def read_list(root: Path) -> dict[str, int]:
    """Returns the listed counts by file."""
    path = root / LIST
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    return {name: int(count) for name, count in (line.split() for line in lines if line and line[0] != "#")}


def compare(uses: dict[str, list[int]], allowed: dict[str, int]) -> list[str]:
    """Returns the violations."""
    found = []
    for name in sorted(uses.keys() | allowed.keys()):
        lines, limit = uses.get(name, []), allowed.get(name, 0)
        if len(lines) > limit:
            where = ", ".join(map(str, lines))
            found.append(
                f"{name}:{lines[0]}: {len(lines)} direct reads of sizes (lines {where}), at most {limit} allowed: "
                "use top_dialect/IR/Sizes.h"
            )
        elif len(lines) < limit:
            found.append(f"{LIST}: {name} has {len(lines)} direct reads, not {limit}: run check_sizes.py --update")
    return found


def main(argv: list[str]) -> int:
    arguments = [argument for argument in argv[1:] if argument != "--update"]
    root = Path(arguments[0] if arguments else Path(__file__).resolve().parents[2]).resolve()
    uses, allowed = count_uses(root), read_list(root)
    if "--update" in argv:
        allowed = {name: min(limit, len(uses[name])) for name, limit in allowed.items() if name in uses}
        lines = [f"{name} {count}\n" for name, count in sorted(allowed.items())]
        (root / LIST).write_text(HEADER + "".join(lines), encoding="utf-8")
    found = compare(uses, allowed)
    for line in found:
        print(line)
    print(f"check_sizes: {sum(map(len, uses.values()))} direct reads in {len(uses)} files, {len(found)} violations")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
