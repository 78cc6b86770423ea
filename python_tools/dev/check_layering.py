#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that no folder includes or links what the architecture forbids, and reports the reason for each rule.

Checks `#include` lines of C and C++ files, `include` lines of TableGen files, and lines like target_link_libraries in
CMakeLists.txt. Also checks that includes and Python imports close no circle (circles.py). Exit code 0: clean; 1:
violations, one per line.
"""
from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from pathlib import Path

from circles import CPP, check_circles, read_known

OUR_FOLDERS = (
    "top_dialect",
    "quant",
    "device_dialect",
    "codegen",
    "bmodel_format",
    "bmruntime",
    "python_tools",
    "regression",
)

TEST_FILE = re.compile(r"(?:^|/)test/|_test\.(?:cpp|c)$|/cts/|/fuzz/|/bench/|_fuzz\.cpp$|_bench\.cpp$")


@dataclass(frozen=True)
class Rule:
    """A rule: files under `folder` ("": all), except those under `home`, must not include what matches `forbidden`."""

    folder: str
    forbidden: re.Pattern[str]
    reason: str
    home: str = ""
    binds_tests: bool = False

    def applies_to(self, name: str) -> bool:
        """Returns true if the rule binds the file `name`. A test may depend on more than the code under test."""
        return (
            (not self.folder or name.startswith(f"{self.folder}/"))
            and not (self.home and name.startswith(f"{self.home}/"))
            and (self.binds_tests or not TEST_FILE.search(name))
        )


def not_folders(*names: str) -> re.Pattern[str]:
    return re.compile(r"^(?:%s)/" % "|".join(names))


COMPILER_HEADERS = re.compile(r"^(?:mlir|mlir-c|llvm|llvm-c|lld|clang)/")
RUNTIME_REASON = "bmruntime and bmodel_format run on machines without LLVM: move what needs MLIR/LLVM into codegen"
PTX_MACHINE = "bmruntime/ptx_machine"

RULES = (
    Rule("bmodel_format", COMPILER_HEADERS, RUNTIME_REASON, binds_tests=True),
    Rule("bmruntime", COMPILER_HEADERS, RUNTIME_REASON, binds_tests=True),
    Rule(
        "bmodel_format",
        not_folders("top_dialect", "quant", "device_dialect", "codegen", "bmruntime"),
        "bmodel_format is the lowest layer: it knows flatbuffers and the standard library only",
    ),
    Rule(
        "bmruntime",
        not_folders("top_dialect", "quant", "device_dialect", "codegen"),
        "the runtime knows the file format only, never the compiler",
    ),
    Rule(
        "bmruntime",
        re.compile(r"^(?:google/protobuf|onnx)/"),
        "the runtime reads .bmodel files only: ONNX and protobuf belong to top_dialect/Import",
    ),
    Rule(
        "top_dialect",
        not_folders("quant", "device_dialect", "codegen", "bmodel_format", "bmruntime"),
        "Top is framework-neutral and chip-independent: it knows no layer below it",
    ),
    Rule(
        "quant",
        not_folders("device_dialect", "codegen", "bmruntime"),
        "quant and device_dialect meet only through the types and attributes declared in top_dialect",
    ),
    Rule(
        "device_dialect",
        not_folders("quant", "codegen", "bmruntime"),
        "device_dialect knows Top and the file format's plain numbers; codegen is the layer above it",
    ),
    Rule(
        "codegen",
        not_folders("bmruntime"),
        "codegen writes .bmodel files and never runs them: executing belongs to bmruntime",
    ),
    Rule(
        "",
        re.compile(r"^(?:onnx|google/protobuf)/"),
        "the rest of the compiler is framework-neutral",
        home="top_dialect/Import",
    ),
    Rule(
        "",
        not_folders(PTX_MACHINE),
        "programs load the PTX machine as libcuda.so.1, as they load NVIDIA's driver",
        home=PTX_MACHINE,
        binds_tests=True,
    ),
    Rule(
        PTX_MACHINE,
        re.compile(rf"^(?!{PTX_MACHINE}/)(?:bmodel|bmrt|{'|'.join(OUR_FOLDERS)})/"),
        "the PTX machine runs any program that uses CUDA's driver API and knows nothing of Tessera",
        binds_tests=True,
    ),
    Rule(
        "",
        not_folders("regression"),
        "regression tests the finished programs: nothing may depend on it",
        home="regression",
        binds_tests=True,
    ),
)

CMAKE_RULES = (
    (
        "bmodel_format",
        re.compile(r"\b(?:MLIR|LLVM|lldELF|Tessera(?:Top|Device|Codegen|Quant|X86)\w*)\b"),
        RUNTIME_REASON,
    ),
    ("bmruntime", re.compile(r"\b(?:MLIR|LLVM|lldELF|Tessera(?:Top|Device|Codegen|Quant|X86)\w*)\b"), RUNTIME_REASON),
    ("top_dialect", re.compile(r"\bTessera(?:Device|Codegen|Quant|X86)\w*\b"), "Top links to nothing below it"),
    (
        "device_dialect",
        re.compile(r"\bTessera(?:Codegen|Quant|X86)\w*\b"),
        "device_dialect links to Top and the file format only",
    ),
    (
        PTX_MACHINE,
        re.compile(r"\b(?:MLIR|LLVM|Bmodel\w*|bmrt\w*|Tessera(?!Install)\w+)\b"),
        "the PTX machine knows nothing of Tessera",
    ),
    *(
        (folder, re.compile(r"\bregression/"), "regression tests the finished programs: nothing may depend on it")
        for folder in OUR_FOLDERS
        if folder != "regression"
    ),
)

INCLUDE = re.compile(r'^\s*(?:#\s*include|include)\s*[<"]([^>"]+)[>"]')
SOURCES = CPP | {".td"}


def check_file(root: Path, path: Path) -> list[str]:
    """Returns the violations in one source file as 'file:line: text' lines."""
    name = path.relative_to(root).as_posix()
    rules = [rule for rule in RULES if rule.applies_to(name)]
    found = []
    for number, line in enumerate(path.read_text(encoding="utf-8", errors="replace").splitlines(), 1):
        if match := INCLUDE.match(line):
            header = match.group(1)
            found += [
                f'{name}:{number}: {f"only {rule.home} may" if rule.home else f"{rule.folder} must not"} '
                f'include "{header}": {rule.reason}'
                for rule in rules
                if rule.forbidden.search(header)
            ]
    return found


def check_cmake(root: Path, path: Path) -> list[str]:
    """Returns the violations in one CMakeLists.txt."""
    name = path.relative_to(root).as_posix()
    found = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        code = line.split("#", 1)[0]
        for rule_folder, forbidden, reason in CMAKE_RULES:
            match = forbidden.search(code)
            if match and name.startswith(f"{rule_folder}/"):
                found.append(f"{name}:{number}: {rule_folder} must not use {match.group(0)}: {reason}")
    return found


def check(root: Path) -> tuple[int, list[str]]:
    """Checks the tree under `root`; returns (number of files checked, violations)."""
    found: list[str] = []
    files: dict[str, Path] = {}
    for folder in OUR_FOLDERS:
        for path in sorted((root / folder).rglob("*")):
            if not path.is_file():
                continue
            if path.suffix in SOURCES:
                found += check_file(root, path)
            elif path.name == "CMakeLists.txt":
                found += check_cmake(root, path)
            elif path.suffix != ".py":
                continue
            files[path.relative_to(root).as_posix()] = path
    found += check_circles(files, read_known(root))
    return len(files), found


def main(argv: list[str]) -> int:
    root = Path(argv[1] if len(argv) > 1 else Path(__file__).resolve().parents[2]).resolve()
    count, found = check(root)
    for line in found:
        print(line)
    if count == 0:
        print(f"check_layering: no source file found under {root}")
        return 1
    print(f"check_layering: {count} files, {len(found)} violations")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
