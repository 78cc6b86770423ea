# SPDX-License-Identifier: Apache-2.0
"""Finds circles of includes and of Python imports in this repository's own files.

A header and the source of the same name are one unit, because a reader must understand them together: units of a circle
can only be understood, tested and moved as a whole. KNOWN lists the circles that are still closed.
"""
from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import Iterable, Mapping

INCLUDE = re.compile(r'^\s*(?:#\s*include|include)\s*[<"]([^>"]+)[>"]', re.M)
CPP = {".h", ".hpp", ".inc", ".c", ".cpp", ".cc", ".cu"}
# Besides the root of the repository and the folder of the file itself.
INCLUDE_FOLDERS = ("bmodel_format/include", "bmruntime/include")
# Folders in which the build composes the package `tessera`.
PACKAGES = ("python_tools", "bmruntime/python")
KNOWN = "python_tools/dev/known_circles.txt"

Graph = Mapping[str, Iterable[str]]


def unit_of(name: str) -> str:
    """Returns the unit of a file: its path without the suffix, so that a.h and a.cpp are one unit."""
    path = Path(name)
    return path.with_suffix("").as_posix() if path.suffix in CPP else name


def _included(name: str, text: str, files: Mapping[str, Path]) -> Iterable[str]:
    """Yields the files of this repository that a C++ or TableGen file includes."""
    for header in INCLUDE.findall(text):
        for folder in (Path(name).parent, Path("."), *map(Path, INCLUDE_FOLDERS)):
            parts: list[str] = []
            for part in (folder / header).parts:
                parts = parts[:-1] if part == ".." else [*parts, part]
            if (candidate := "/".join(parts)) in files:
                yield candidate
                break


def _imported(name: str, text: str, files: Mapping[str, Path]) -> Iterable[str]:
    """Yields the files of this repository that a Python file imports, also inside functions."""
    try:
        tree = ast.parse(text)
    except SyntaxError:
        return
    for node in ast.walk(tree):  # only the type checker follows the imports under TYPE_CHECKING
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            node.body = []
    nodes = list(ast.walk(tree))
    package = next((folder for folder in PACKAGES if name.startswith(f"{folder}/")), "")
    # A script finds the modules beside it; a module of a package does not.
    search = PACKAGES if package else (Path(name).parent.as_posix(), *PACKAGES)
    for node in nodes:
        modules: list[str] = []
        if isinstance(node, ast.Import):
            modules = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                inner = Path(name).relative_to(package).parts[: -node.level]
                base = ".".join([*inner, *([base] if base else [])])
            modules = [base, *(f"{base}.{alias.name}" for alias in node.names)]
        for module in modules:
            path = module.replace(".", "/") + ".py"
            for folder in search:
                if f"{folder}/{path}" in files:
                    yield f"{folder}/{path}"


def dependencies(files: Mapping[str, Path]) -> dict[str, set[str]]:
    """Returns the units that each unit of |files| (path in the repository to path on disk) includes or imports."""
    graph: dict[str, set[str]] = {}
    for name, path in files.items():
        targets = _imported if path.suffix == ".py" else _included
        text = path.read_text(encoding="utf-8", errors="replace")
        graph.setdefault(unit_of(name), set()).update(unit_of(target) for target in targets(name, text, files))
    return graph


def circles(graph: Graph) -> list[list[str]]:
    """Returns the strongly connected components with more than one unit, sorted (Tarjan's algorithm, iterative)."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    open_units: list[str] = []
    found: list[list[str]] = []
    for root in sorted(graph):
        if root in index:
            continue
        index[root] = low[root] = len(index)
        open_units.append(root)
        work = [(root, iter(sorted(graph[root])))]
        while work:
            unit, targets = work[-1]
            for target in targets:
                if target not in index:
                    index[target] = low[target] = len(index)
                    open_units.append(target)
                    work.append((target, iter(sorted(graph.get(target, ())))))
                    break
                if target in open_units:
                    low[unit] = min(low[unit], index[target])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[unit])
                if low[unit] == index[unit]:
                    start = open_units.index(unit)
                    component = open_units[start:]
                    del open_units[start:]
                    if len(component) > 1:
                        found.append(sorted(component))
    return sorted(found)


def read_known(root: Path) -> list[list[str]]:
    """Returns the listed circles: one per line, units separated by spaces; lines that begin with # are comments."""
    path = root / KNOWN
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    return [sorted(line.split()) for line in lines if line.strip() and not line.startswith("#")]


def check_circles(files: Mapping[str, Path], known: list[list[str]]) -> list[str]:
    """Returns a violation for each circle that |known| does not list, and for each listed circle that has shrunk."""
    graph = dependencies(files)
    present = circles(graph)
    violations = []
    for circle in present:
        if circle in known:
            continue
        edges = ", ".join(f"{a} -> {b}" for a in circle for b in sorted(graph[a]) if b in circle and a != b)
        violations.append(f"{circle[0]}: closes a circle of {len(circle)} units; remove one of: {edges}")
    for circle in known:
        if circle not in present:
            violations.append(f"{KNOWN}: the circle of {circle[0]} is open or has changed: update its line")
    return violations
