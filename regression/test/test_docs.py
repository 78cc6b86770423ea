# SPDX-License-Identifier: Apache-2.0
"""Runs every fenced block of README.md and docs/ as a reader would; a block that is not run must state why."""
from __future__ import annotations

import os
from collections import Counter
from pathlib import Path

import pytest
from conftest import BUILD
from doc_blocks import Block, Failed, blocks_of, must_show, run

ROOT = Path(__file__).resolve().parents[2]
PAGES = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    *sorted((ROOT / "docs").glob("*.md")),
    *sorted((ROOT / "docs" / "advice").glob("*.md")),
    *sorted((ROOT / "docs" / "concepts").glob("*.md")),
    *sorted((ROOT / "docs" / "tutorials").glob("*.md")),
    *sorted(ROOT.glob("[a-z]*/README.md")),
    *sorted(ROOT.glob("[a-z]*/[a-z]*/README.md")),
]
WITH_BLOCKS = [
    page
    for page in PAGES
    if "build" not in page.relative_to(ROOT).parts[:1] and "```" in page.read_text(encoding="utf-8")
]


@pytest.mark.parametrize("page", WITH_BLOCKS, ids=lambda page: str(page.relative_to(ROOT)))
def test_page(page: Path, tmp_path: Path) -> None:
    environment = {
        **os.environ,
        "REPO": str(ROOT),
        "TESSERA": str(ROOT),
        "PATH": f"{BUILD / 'bin'}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(BUILD / "python"),
        "XDG_CACHE_HOME": str(tmp_path / "cache"),
        "COLUMNS": "160",
    }
    folder = tmp_path / "work"
    folder.mkdir()
    for block in blocks_of(page):
        try:
            run(block, folder, environment)
        except Failed as failure:
            pytest.fail(str(failure), pytrace=False)


def test_few_blocks_are_not_run() -> None:
    """Counts them, with their reasons."""
    blocks = [block for page in WITH_BLOCKS for block in blocks_of(page)]
    kinds = Counter(block.kind for block in blocks)
    print(f"{len(blocks)} blocks: " + ", ".join(f"{count} {kind}" for kind, count in kinds.items()))
    for block in blocks:
        if block.kind == "not run":
            print(f"  {block.path.relative_to(ROOT)}:{block.line}: {block.info['not run']}")
    assert kinds["run"] >= 12 and all(len(block.info["not run"]) > 10 for block in blocks if block.kind == "not run")


def test_a_block_that_lies_fails(tmp_path: Path) -> None:
    environment = {**os.environ, "REPO": str(ROOT)}
    page = tmp_path / "page.md"
    for text in (
        "```sh\nfalse\n```\n",
        "```sh\ntrue\nmissing-command\n```\n",
        "```json\n{\n```\n",
        "```\n$ echo one 2 three\none 2 four\n```\n",
        "```\n$ echo b; echo a\na\nb\n```\n",
        "<!-- figures within 1.5 -->\n```\n$ echo 4.5 us\n1.5 us\n```\n",
        "```rust\nfn main() {}\n```\n",
        "<!-- prints: echo other -->\n```\nsomething\n```\n",
        "<!-- quote: docs/README.md -->\n```md\n# Some other title\n```\n",
        "<!-- quote: docs/none.md -->\n```md\n# Documentation\n```\n",
        "<!-- prepare: exit 3 -->\n```sh\ntrue\n```\n",
    ):
        page.write_text(text)
        with pytest.raises(Failed):
            for block in blocks_of(page):
                run(block, tmp_path, environment)
    for text in ("<!-- not run: -->\n```sh\nfalse\n```\n", "<!-- not run: because -->\nwords\n```sh\nfalse\n```\n"):
        page.write_text(text)
        with pytest.raises(ValueError):
            list(blocks_of(page))


def test_a_block_that_holds_passes(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "# Title\n\n<!-- prepare: echo 5 >five -->\n\n```sh\ntest $(cat five) = 5   # made before\n```\n\n```\n$ "
        "echo 'took  4.5 us'; echo done\n"
        "took 9.1 us\n…\n$ echo one \\\n    two\none two\n"
        "$ echo 'step ....... 3 of 7'\nstep .. 1 of 7\n```\n\n<!-- not run: it would take an hour "
        "-->\n```sh\nfalse\n```\n\n```\na drawing\n```\n"
    )
    blocks = list(blocks_of(page))
    assert [block.kind for block in blocks] == ["run", "run", "not run", "drawing"] and blocks[0].line == 5
    for block in blocks:
        run(block, tmp_path, dict(os.environ))
    must_show("a 4.4\nb", ["a 4.5"], "here", 1.1)
    assert Block(page, 1, "json", "{}").kind == "data"


def test_the_quick_start_and_tutorials_can_be_followed_by_hand() -> None:
    """Checks that their commands need no file that a hidden command makes."""
    pages = [ROOT / "docs" / "quickstart.md", *sorted((ROOT / "docs" / "tutorials").glob("*.md"))]
    assert len(pages) > 6
    hidden = [
        f"{page.name}:{block.line}"
        for page in pages
        for block in blocks_of(page)
        if {"prepare", "with", "prints"} & set(block.info)
    ]
    assert not hidden, f"blocks with hidden preparation: {hidden}"


def test_the_quick_start_fits_one_screen() -> None:
    assert len((ROOT / "docs" / "quickstart.md").read_text(encoding="utf-8").splitlines()) <= 60
