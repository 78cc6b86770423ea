#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""./dev docs --site: builds the documentation as a web site, in build/site/html.

The pages keep their folders in the repository, so that their links stay valid. A link to a folder becomes a link to its
README.md; an example becomes a page with its files; other link targets are copied. mkdocs checks every link and anchor,
and treats warnings as errors. bmrt.h is processed by Doxygen.

Requires mkdocs-material (.venv-site; PyPI) and doxygen; parts with missing tools are reported and left out.
"""
from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LINK = re.compile(r"(\]\()([^)#\s]+)((?:#[^)\s]*)?\))")
FENCE = re.compile(r"^( *```.*?^ *```$|`[^`\n]+`)", re.S | re.M)
LANGUAGES = {".py": "python", ".sh": "sh", ".c": "c", ".cpp": "cpp", ".rs": "rust", ".json": "json", ".txt": "text"}
HEADERS = ("bmrt.h", "bmrt.hpp", "backend.h")


def first_pages() -> list[str]:
    return [
        "README.md",
        "CONTRIBUTING.md",
        "CHANGELOG.md",
        "SECURITY.md",
        "examples/README.md",
        *sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / "docs").rglob("*.md")),
    ]


def example_page(folder: Path) -> str:
    """Returns a page with the files of an example, in reading order."""
    files = [path for path in sorted(folder.iterdir()) if path.is_file() and path.name != "expected.txt"]
    files.sort(key=lambda path: (path.name != "run.sh", path.suffix == ".json", path.name))
    text = f"# Example: {folder.name}\n"
    for path in [*files, folder / "expected.txt"]:
        title = "Output" if path.name == "expected.txt" else path.name
        language = "cmake" if path.name == "CMakeLists.txt" else LANGUAGES[path.suffix]
        text += f"\n## {title}\n\n```{language}\n{path.read_text(encoding='utf-8').rstrip()}\n```\n"
    return text


def folder_page(folder: Path) -> str:
    """Returns a page that lists the pages of a folder without a README."""
    titles = {
        path.name: path.read_text(encoding="utf-8").split("\n", 1)[0].lstrip("# ") for path in folder.glob("*.md")
    }
    return f"# {folder.name}\n\n" + "".join(f"- [{title}]({name})\n" for name, title in sorted(titles.items()))


class Site:
    """The folder that mkdocs reads."""

    def __init__(self, folder: Path) -> None:
        self.source = folder / "src"
        self._todo = first_pages()
        self._done: set[str] = set()

    def write(self) -> None:
        while self._todo:
            name = self._todo.pop()
            if name not in self._done:
                self._done.add(name)
                self._write_page(name)

    def _write_page(self, name: str) -> None:
        target = self.source / name
        target.parent.mkdir(parents=True, exist_ok=True)
        path = ROOT / name
        if path.suffix != ".md":
            shutil.copy2(path, target)
            return
        if not path.exists():
            result = example_page if path.with_name("run.sh").exists() else folder_page
            target.write_text(result(path.parent), encoding="utf-8")
            return
        pieces = FENCE.split(path.read_text(encoding="utf-8"))
        pieces[::2] = [LINK.sub(lambda found: self._link(path, found), text) for text in pieces[::2]]
        target.write_text("".join(pieces), encoding="utf-8")

    def _link(self, page: Path, found: re.Match[str]) -> str:
        address = found[2]
        if re.match(r"[a-z]+:", address):
            return found[0]
        path = Path(os.path.normpath(page.parent / address))
        if path.is_dir():
            path, address = path / "README.md", address.rstrip("/") + "/README.md"
        if path.exists() or path.name == "README.md" and path.parent.is_dir():
            self._todo.append(path.relative_to(ROOT).as_posix())
        return f"{found[1]}{address}{found[3]}"


def documented(text: str) -> str:
    """Converts a header's comments to Doxygen's form: before a declaration, or after a member; the first one becomes
    the file's."""
    text = re.sub(r"^/\*(?=[^=*\-]*\n? )(?! SPDX)(?!===)", "/**", text, flags=re.M)
    text = re.sub(r"^( *[^\s/*][^\n]*?)/\* ", r"\1/**< ", text, flags=re.M)
    return text.replace("/**\n", "/** @file\n", 1)


def api(folder: Path) -> bool:
    """Generates the pages of the headers in src/api; returns true if there are any."""
    if shutil.which("doxygen") is None:
        print("site: doxygen is not installed; the pages of bmrt.h are left out")
        return False
    headers = folder / "api-headers" / "bmrt"
    headers.mkdir(parents=True)
    for name in HEADERS:
        text = (ROOT / "bmruntime" / "include" / "bmrt" / name).read_text(encoding="utf-8")
        (headers / name).write_text(documented(text), encoding="utf-8")
    run(["doxygen", str(ROOT / "docs" / "site" / "Doxyfile")], folder)
    page = folder / "src" / "docs" / "c-interface.md"
    link = "[Functions and types of the headers](../api/index.html)\n"
    text = page.read_text(encoding="utf-8")
    page.write_text(text.replace("The headers' own comments", f"{link}\nThe headers' own comments"), encoding="utf-8")
    return True


def run(command: list[str], folder: Path) -> None:
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}  # suppresses an advertisement for another program
    result = subprocess.run(
        command, cwd=folder, env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    if result.returncode != 0:
        raise SystemExit(f"{result.stdout[-6000:]}\nsite: {command[0]} failed")


def main(argv: list[str]) -> int:
    folder = Path(argv[1]).absolute() if len(argv) > 1 else ROOT / "build" / "site"
    if subprocess.run([sys.executable, "-c", "import material"], capture_output=True).returncode:
        print("site: skipped: mkdocs-material is not installed (PyPI)")
        return 0
    shutil.rmtree(folder, ignore_errors=True)
    Site(folder).write()
    api(folder)
    shutil.copy2(ROOT / "docs" / "site" / "mkdocs.yml", folder / "mkdocs.yml")
    shutil.copy2(ROOT / "docs" / "site" / "wide.css", folder / "src" / "wide.css")
    run([sys.executable, "-m", "mkdocs", "build", "--strict", "-f", str(folder / "mkdocs.yml")], folder)
    pages = sum(1 for path in (folder / "html").rglob("*.html"))
    print(f"site: {pages} pages in {folder / 'html'}; every link was followed")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
