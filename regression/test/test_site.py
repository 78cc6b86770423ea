# SPDX-License-Identifier: Apache-2.0
"""The web site: built without a warning, every link followed; the questions are those of real messages."""
from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from case_file import REGRESSION
from conftest import check

ROOT = REGRESSION.parent
SITE_PYTHON = ROOT / ".venv-site" / "bin" / "python"
SOURCES = ("bmruntime/src", "bmodel_format/src", "python_tools/tessera", "bmruntime/python", "top_dialect/Import")


def test_site(tmp_path: Path) -> None:
    if not SITE_PYTHON.exists():
        pytest.skip("mkdocs-material is not installed: ./dev docs --site does it")
    make = ROOT / "python_tools" / "dev" / "make_site.py"
    printed = check(subprocess.run([SITE_PYTHON, make, tmp_path / "site"], capture_output=True, text=True))
    if "skipped" in printed:
        pytest.skip(printed.strip())
    assert "every link was followed" in printed
    for page in ("index", "docs/faq", "docs/generated/commands", "examples/rust/index"):
        assert (tmp_path / "site" / "html" / f"{page}.html").is_file()


def questions() -> list[str]:
    return re.findall(r"^### `(.*)`$", (ROOT / "docs" / "faq.md").read_text(encoding="utf-8"), re.M)


def test_questions_are_messages() -> None:
    text = "".join(
        path.read_text(encoding="utf-8")
        for folder in SOURCES
        for path in (ROOT / folder).rglob("*")
        if path.suffix in (".py", ".cpp", ".h")
    )
    # Literals that stand one behind the other are one text.
    text = re.sub(r'"\s*\n\s*f?"', "", text)
    assert len(questions()) > 10
    assert not [question for question in questions() if question not in text]


def test_the_changelog_has_this_version() -> None:
    version = re.search(r"project\(tessera VERSION (\S+)", (ROOT / "CMakeLists.txt").read_text())
    assert version and f"## {version[1]}" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
