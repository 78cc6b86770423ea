#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks every tracked source file: licence line, size, whitespace, left-over markers.

Exit code 0: clean; 1: violations, one per line with the remedy.
"""
from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

MAX_LINES = 1000
MAX_COLUMNS = 120  # for Python, because black does not wrap comments and strings
MAX_LINES_OF_FUNCTION = 60
SMALL = {"codegen/Npu/": 400}  # folders with a lower limit
SPDX = "SPDX-License-Identifier: Apache-2.0"
CODE = {".h", ".hpp", ".c", ".cpp", ".cc", ".cu", ".td", ".py", ".fbs", ".js", ".css"}
TEXT = CODE | {".md", ".txt", ".cmake", ".json", ".toml", ".mlir", ".test", ".sh", ".inc", ".in"}
# Third-party files keep their own form, and generated pages may have any length.
EXEMPT = re.compile(r"^(?:regression/models/|third_party/|docs/generated/|bmodel_format/goldens/)")
# The beginning of a statement whose block is not a function.
BLOCK = re.compile(r"\s*(?:\}|(?:if|for|while|do|switch|case|default|else|namespace|class|struct|enum|union|extern)\b)")
MARKER = re.compile(r"DO[ -]NOT[ -]SUBMIT|^(?:<{7}|>{7}) ")


def tracked_files(root: Path) -> list[str]:
    """Returns the files that git tracks or would track; without git, every file outside .git and build."""
    try:
        listing = subprocess.run(
            ["git", "ls-files", "-co", "--exclude-standard", "-z"], cwd=root, check=True, capture_output=True
        ).stdout.decode()
        names = [n for n in listing.split("\0") if n]
        if names:
            return names
    except (OSError, subprocess.CalledProcessError):
        pass
    return [
        p.relative_to(root).as_posix()
        for p in root.rglob("*")
        if p.is_file() and p.relative_to(root).parts[0] not in (".git", "build", ".venv")
    ]


def cpp_functions(lines: list[str]) -> list[tuple[int, int]]:
    """Returns (line, length) of the functions in clang-formatted C++."""
    found = []
    starts: dict[int, int] = {}  # indentation -> line where the last statement with it began
    for number, line in enumerate(lines, 1):
        indent = len(line) - len(line.lstrip())
        text = line.strip()
        if not text or text.startswith("//") or line.startswith("#"):
            continue
        start = starts.get(indent)
        if text == "}" and start and not BLOCK.match(lines[start - 1]):
            found.append((start, number - start + 1))
        starts[indent] = number
    return found


def python_functions(lines: list[str]) -> list[tuple[int, int]]:
    """Returns (line, length) of the functions in Python; nothing for invalid Python, which black reports."""
    try:
        nodes = ast.walk(ast.parse("\n".join(lines)))
    except SyntaxError:
        return []
    return [
        (node.lineno, (node.end_lineno or node.lineno) - node.lineno + 1)
        for node in nodes
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
    ]


FUNCTIONS = {".h": cpp_functions, ".cpp": cpp_functions, ".py": python_functions}


def check_size(name: str, lines: list[str]) -> list[str]:
    """Returns the violations of the size limits of files and functions."""
    most = next((lines_of_file for folder, lines_of_file in SMALL.items() if name.startswith(folder)), MAX_LINES)
    found = []
    if len(lines) > most:
        found.append(f"{name}: {len(lines)} lines, at most {most} allowed: split it by topic")
    functions = FUNCTIONS.get(Path(name).suffix)
    found += [
        f"{name}:{start}: a function of {length} lines, at most {MAX_LINES_OF_FUNCTION} allowed: split it"
        for start, length in (functions(lines) if functions else ())
        if length > MAX_LINES_OF_FUNCTION
    ]
    return found


def header_guard(name: str) -> str:
    """Returns the guard of a header: its path, from the include folder on for installed headers."""
    path = re.sub(r"^(?:bmodel_format|bmruntime)/include/", "", name)
    return ("TESSERA_" if path == name else "") + re.sub(r"[^A-Z0-9]", "_", path.upper())


def check_guard(name: str, text: str) -> list[str]:
    """Returns a violation if a header does not have the guard that header_guard names."""
    guard = header_guard(name)
    if re.search(rf"^#ifndef {guard}\n#define {guard}$", text, re.MULTILINE):
        return []
    return [f"{name}:1: header guard is missing or has another name: use '#ifndef {guard}'"]


def check_text(name: str, text: str) -> list[str]:
    """Returns the violations in one file's text."""
    found = []
    suffix = Path(name).suffix
    lines = text.splitlines()
    if suffix in CODE:
        if text.strip() and SPDX not in "\n".join(lines[:12]):
            found.append(f"{name}:1: no licence line: add '{SPDX}' to the header comment")
        found += check_size(name, lines)
    if suffix in (".h", ".hpp"):
        found += check_guard(name, text)
    for number, line in enumerate(lines, 1):
        if line != line.rstrip() and suffix != ".md":
            found.append(f"{name}:{number}: trailing whitespace")
        if suffix == ".py" and len(line) > MAX_COLUMNS:
            found.append(f"{name}:{number}: {len(line)} columns, at most {MAX_COLUMNS} allowed")
        if MARKER.search(line) and not name.endswith("check_sources.py"):
            found.append(f"{name}:{number}: left-over marker: {line.strip()[:60]}")
    if text and not text.endswith("\n"):
        found.append(f"{name}: no newline at the end of the file")
    return found


def main(argv: list[str]) -> int:
    root = Path(argv[1] if len(argv) > 1 else Path(__file__).resolve().parents[2]).resolve()
    found: list[str] = []
    count = 0
    for name in tracked_files(root):
        path = root / name
        if Path(name).suffix not in TEXT or EXEMPT.search(name) or not path.is_file():
            continue
        count += 1
        found += check_text(name, path.read_text(encoding="utf-8", errors="replace"))
    for line in found:
        print(line)
    if count == 0:
        print(f"check_sources: no source file found under {root}")
        return 1
    print(f"check_sources: {count} files, {len(found)} violations")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
