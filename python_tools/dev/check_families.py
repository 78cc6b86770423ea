#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that no source outside a family's own folders names the family, so that adding a family of chips takes one
folder per side and one line of registration.

The families are those of `tessera_family(NAME FOLDER Folder ..)` in codegen/CMakeLists.txt. Their own folders are
codegen/<Folder>, folders with the family's name elsewhere, tessera/families in Python, and tests. All other sources,
including comments, are searched for the names. The compilers' names for the machine on which the program itself runs
(x86-64, x86intrin) do not count. Prints the exempt files, each with its number of such lines and the reason; an exempt
file without one is a violation, too. Exit code 0: clean; 1: violations, one per line.
"""
from __future__ import annotations

import re
import sys
from pathlib import Path

FOLDERS = (
    "top_dialect",
    "quant",
    "device_dialect",
    "codegen",
    "bmruntime/src",
    "bmruntime/include",
    "bmodel_format/src",
    "bmodel_format/include",
    "python_tools/tessera",
)
SOURCES = {".h", ".hpp", ".c", ".cpp", ".td", ".inc", ".txt", ".def", ".py", ".js"}
REGISTRATION = re.compile(r"^tessera_family\((\w+) FOLDER (\w+)", re.MULTILINE)
HOST_MACHINE = re.compile(r"x86-64|x86intrin")
TEST = re.compile(r"(?:^|/)(?:test|goldens)/|_test\.(?:cpp|c)$|^python_tools/tessera/families/")

# Files that may name families, each with the reason.
EXEMPT = {
    "codegen/CMakeLists.txt": "the registrations",
    "bmruntime/src/Backends.cpp": "the registrations",
    "bmodel_format/src/CodeRelocations.cpp": "the registrations",
    "codegen/tools/CMakeLists.txt": "builds the programs that the Python tools run beside the compiler",
    "bmodel_format/src/Memories.cpp": "subnet kinds of files from before families had names",
    "bmodel_format/src/ValidateSteps.cpp": "subnet kinds of files from before families had names",
    "bmodel_format/src/ValidateStreams.cpp": "subnet kinds of files from before families had names",
    "bmodel_format/include/bmodel/kernel_abi.h": "the contract of native code",
    "bmodel_format/include/bmodel/numerics.h": "mentions that a GPU's compiler accepts it, too",
    "bmodel_format/include/bmodel/numerics_float.h": "mentions that a GPU's compiler accepts it, too",
}


def families(root: Path) -> dict[str, str]:
    """Returns the folder in codegen by the name of the family."""
    return dict(REGISTRATION.findall((root / "codegen/CMakeLists.txt").read_text(encoding="utf-8")))


def is_room(path: Path, known: dict[str, str]) -> bool:
    """Returns true if a file, given relative to the root, lies in a family's own folder or is a test."""
    rooms = set(known) | set(known.values())
    return bool(rooms & set(path.parts[:-1])) or bool(TEST.search(path.as_posix()))


def check_file(path: Path, text: str, names: re.Pattern[str]) -> list[str]:
    return [
        f"{path.as_posix()}:{number}: names the family '{match.group(0)}': {line.strip()[:100]}"
        for number, line in enumerate(text.splitlines(), 1)
        for match in [names.search(HOST_MACHINE.sub("", line))]
        if match
    ]


def check(root: Path) -> tuple[int, list[str], list[str]]:
    """Checks the tree under `root`; returns (number of files checked, violations, lines about exempt files)."""
    known = families(root)
    names = re.compile(rf"\b(?:{'|'.join(map(re.escape, known))})s?(?:\b|-)", re.IGNORECASE)
    count = 0
    found: list[str] = []
    exempt: list[str] = []
    for folder in FOLDERS:
        for path in sorted((root / folder).rglob("*")):
            relative = path.relative_to(root)
            if path.suffix not in SOURCES or not path.is_file() or is_room(relative, known):
                continue
            count += 1
            lines = check_file(relative, path.read_text(encoding="utf-8", errors="replace"), names)
            if reason := EXEMPT.get(relative.as_posix()):
                exempt.append(f"{relative.as_posix()}: exempt, {len(lines)} lines: {reason}")
                lines = [] if lines else [f"{relative.as_posix()}: names no family any more: remove it from EXEMPT"]
            found += lines
    return count, found, exempt


def main(argv: list[str]) -> int:
    root = Path(argv[1] if len(argv) > 1 else Path(__file__).resolve().parents[2]).resolve()
    count, found, exempt = check(root)
    print("\n".join([*exempt, *found]))
    print(f"check_families: {count} files, {len(found)} violations, {len(exempt)} exempt files")
    return 1 if found or count == 0 else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
