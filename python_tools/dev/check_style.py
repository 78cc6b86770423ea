#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks the language of comments, docstrings, messages and commit subjects against CONTRIBUTING.md's style.

The check finds habits that make a sentence hard to read; it cannot find every hard sentence. Exit code 0: clean;
1: violations, one per line.
"""
from __future__ import annotations

import ast
import io
import re
import subprocess
import sys
import tokenize
from pathlib import Path
from typing import Iterator

from check_sources import EXEMPT, tracked_files

OPENING = re.compile(r"(?:Of|What|Whether|The same|As of|So that)\b(?!\?)")
COMMENT_WORD = re.compile(r"\b(?:told|tells)\b")
MESSAGE = re.compile(
    r"\b(?:is no |are no |has not\b(?! been)|(?:which|that) (?:has|have) (?:no |not (?!been)))|\btells\b|\btold\b"
)
# "there is no FILE", "is no longer" and "it has not ended" are ordinary English.
ORDINARY = re.compile(
    r"\b[Tt]here (?:is|are) no |\b(?:is|are) no (?:longer|more|larger|smaller)\b"
    r"|\bhas not (?:changed|run|ended|finished|started)\b"
)
CPP_TOKEN = re.compile(
    r'//(?P<line>[^\n]*)|/\*(?P<block>.*?)\*/|"(?P<string>(?:\\.|[^"\\\n])*)"|\'(?:\\.|[^\'\\\n])\'', re.S
)
CPP = {".h", ".hpp", ".c", ".cpp", ".cc", ".cu", ".td", ".inc"}
MAX_LINES_OF_RATIONALE = 150
MAX_SUBJECT = 72
SUBJECTS_SINCE = "2026-11-28T00:00:00Z"  # earlier commits keep their subjects
SUBJECT = re.compile(r"\[([\w./-]+(?:, [\w./-]+)*)\] [A-Z]")

# Line, kind and text. The kind "opening" is the first line of a comment or docstring, "comment" another line of a
# comment, and "message" a string.
Text = tuple[int, str, str]


def cpp_texts(text: str) -> Iterator[Text]:
    """Comment blocks and string literals of C++ or TableGen."""
    previous = (-1, -1)  # line and column of the last comment that stands alone on its line
    for match in CPP_TOKEN.finditer(text):
        line = text.count("\n", 0, match.start()) + 1
        if match["string"] is not None:
            yield line, "message", match["string"]
            continue
        if match["line"] is None and match["block"] is None:
            continue
        start = text.rfind("\n", 0, match.start()) + 1
        alone = not text[start : match.start()].strip()
        place = (line, match.start() - start)
        kind = "comment" if alone and previous == (line - 1, place[1]) else "opening"
        yield line, kind, (match["line"] or match["block"] or "").lstrip("/!<*- \n")
        previous = place if alone else (-1, -1)


def python_texts(text: str) -> Iterator[Text]:
    """Comment blocks, docstrings and string literals of Python; nothing of a file that does not parse."""
    try:
        tree = ast.parse(text)
    except SyntaxError:
        return
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    docstrings = set()
    for node in ast.walk(tree):
        if isinstance(node, documented) and ast.get_docstring(node) is not None:
            constant = node.body[0].value  # type: ignore[attr-defined]
            docstrings.add(constant)
            yield constant.lineno, "opening", constant.value.strip()
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node not in docstrings:
            yield node.lineno, "message", node.value
    previous = (-1, -1)
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type != tokenize.COMMENT:
            continue
        line, column = token.start
        alone = not token.line[:column].strip()
        yield line, "comment" if alone and previous == (line - 1, column) else "opening", token.string.lstrip("#: ")
        previous = (line, column) if alone else (-1, -1)


def check_file(name: str, text: str) -> list[str]:
    """Returns the violations in one file."""
    path = Path(name)
    if path.name == "RATIONALE.md" and (count := len(text.splitlines())) > MAX_LINES_OF_RATIONALE:
        return [
            f"{name}: {count} lines, at most {MAX_LINES_OF_RATIONALE} allowed: move experiments to docs/experiments"
        ]
    texts = cpp_texts if path.suffix in CPP else python_texts if path.suffix == ".py" else None
    found = []
    for line, kind, content in texts(text) if texts else ():
        if kind == "opening" and (match := OPENING.match(content)):
            found.append(f"{name}:{line}: comment opens with '{match.group(0)}': begin with a verb or a noun")
        if kind != "message" and (match := COMMENT_WORD.search(content)):
            found.append(f"{name}:{line}: comment says '{match.group(0)}': write 'report', 'list' or 'describe'")
        if kind == "message" and " " in content and (match := MESSAGE.search(ORDINARY.sub("", content))):
            found.append(
                f"{name}:{line}: message says '{match.group(0).strip()}': say what happened, where, and what is allowed"
            )
    return found


def check_subjects(root: Path) -> list[str]:
    """Returns the violations in subjects of commits; none outside a git checkout."""
    log = subprocess.run(
        ["git", "log", "--no-merges", f"--since={SUBJECTS_SINCE}", "--format=%h %s"],
        cwd=root,
        text=True,
        capture_output=True,
    )
    found = []
    for entry in log.stdout.splitlines():
        commit, _, subject = entry.partition(" ")
        match = SUBJECT.match(subject)
        if len(subject) > MAX_SUBJECT:
            found.append(f"{commit}: subject of {len(subject)} characters, at most {MAX_SUBJECT} allowed: {subject}")
        if not match:
            found.append(f"{commit}: subject does not have the form '[folder] Imperative subject': {subject}")
        else:
            missing = [folder for folder in match.group(1).split(", ") if not (root / folder).exists()]
            found += [f"{commit}: folder '{folder}' does not exist: {subject}" for folder in missing]
    return found


def main(argv: list[str]) -> int:
    root = Path(argv[1] if len(argv) > 1 else Path(__file__).resolve().parents[2]).resolve()
    names = [name for name in tracked_files(root) if not EXEMPT.match(name) and (root / name).is_file()]
    found = check_subjects(root)
    for name in names:
        if Path(name).suffix in CPP | {".py", ".md"} and Path(name).name not in (Path(__file__).name, "test_style.py"):
            found += check_file(name, (root / name).read_text(encoding="utf-8", errors="replace"))
    print("\n".join(found))
    if not names:
        print(f"check_style: no source file found under {root}")
        return 1
    print(f"check_style: {len(names)} files, {len(found)} violations")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
