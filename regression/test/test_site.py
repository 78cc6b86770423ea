# SPDX-License-Identifier: Apache-2.0
"""Tests the web site: it is built without a warning, every link exists, and the questions quote real messages."""
from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import doc_blocks
import pytest
import test_docs
from case_file import REGRESSION
from conftest import check

from tessera.errors import ExitCode

ROOT = REGRESSION.parent
sys.path.insert(0, str(ROOT / "python_tools" / "dev"))

import make_site  # noqa: E402

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


def test_every_block_of_the_site_is_tested_or_marked(tmp_path: Path) -> None:
    """Pages with commands are tested by test_docs.py, are examples that test_examples.py runs, or say 'not run'."""
    site = make_site.Site(tmp_path)
    site.write()
    tested = {page.relative_to(ROOT) for page in test_docs.WITH_BLOCKS}
    pages = [page.relative_to(site.source) for page in site.source.rglob("*.md")]
    others = [page for page in pages if page not in tested and not (ROOT / page).with_name("run.sh").exists()]
    assert len(pages) > 40 and len(others) > 5
    for page in others:
        for block in doc_blocks.blocks_of(site.source / page):
            where = f"{page}:{block.line}"
            assert "not run" in block.info or block.language not in ("sh", "bash", "python", "cpp", "c"), where
            assert not block.text.lstrip().startswith("$ "), where


def questions() -> list[str]:
    return re.findall(r"^### `(.*)`$", (ROOT / "docs" / "faq.md").read_text(encoding="utf-8"), re.M)


def test_questions_are_messages() -> None:
    text = "".join(
        path.read_text(encoding="utf-8")
        for folder in SOURCES
        for path in (ROOT / folder).rglob("*")
        if path.suffix in (".py", ".cpp", ".h")
    )
    # Adjacent literals are one text.
    text = re.sub(r'"\s*\n\s*f?"', "", text)
    assert len(questions()) >= 30
    assert not [question for question in questions() if question not in text]


@pytest.mark.parametrize("page", ["faq.md", "exit-codes.md"])
def test_every_exit_code_is_told(page: str) -> None:
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    assert set(re.findall(r"^\| (\d+) \|", text, re.M)) == {str(int(code)) for code in ExitCode}


def test_the_changelog_has_this_version() -> None:
    version = re.search(r"project\(tessera VERSION (\S+)", (ROOT / "CMakeLists.txt").read_text())
    assert version and f"## {version[1]}" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
