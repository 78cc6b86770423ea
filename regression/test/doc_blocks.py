# SPDX-License-Identifier: Apache-2.0
"""Fenced blocks of the documentation, and how they are run.

A comment before a fence contains what a reader need not see:

    <!-- not run: WHY -->            with a reason
    <!-- prepare: SHELL COMMANDS --> run before, in the same folder; $REPO is the checkout
    <!-- with: PYTHON -->            lines before those of a python block
    <!-- prints: COMMAND -->         what the block shows is found in the output of that command
    <!-- quote: FILE -->             the block's lines stand in that file of the checkout, one after another
    <!-- figures within 2 -->        and its numbers are within that factor (without it numbers may be any)

`sh` blocks must end with exit code 0, blocks that begin with `$` show commands and what is found in their output, in
that order; `…` stands for anything. json and toml are parsed. A block without a language and without `$` is a
drawing.
"""
from __future__ import annotations

import json
import re
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Iterator, Mapping, Sequence

NUMBER = r"[-+]?\d+(?:\.\d+)*(?:e[-+]?\d+)?"
DIRECTIVES = ("not run", "prepare", "with", "prints", "quote", "figures within")


@dataclass
class Block:
    """line: of the fence, from 1."""

    path: Path
    line: int
    language: str
    text: str
    info: dict[str, str] = field(default_factory=dict)

    @property
    def kind(self) -> str:
        """Returns how the block is tested: not run, quote, drawing, data, or run."""
        for kind in ("not run", "quote"):
            if kind in self.info:
                return kind
        if self.language in ("json", "toml"):
            return "data"
        if not self.language and "prints" not in self.info and not self.text.lstrip().startswith("$ "):
            return "drawing"
        return "run"


def blocks_of(path: Path) -> Iterator[Block]:
    """Yields every fenced block with the comments directly before it. Raises ValueError for a directive without text or
    without a block."""
    text = path.read_text(encoding="utf-8")
    pattern = re.compile(
        r"<!--(?P<comment>.*?)-->|^ *```(?P<language>[\w+]*)\n(?P<body>.*?)^ *```$|(?P<other>\S[^\n]*)", re.S | re.M
    )
    info: dict[str, str] = {}
    for found in pattern.finditer(text):
        if found["comment"] is not None:
            words = found["comment"].strip()
            name = next((name for name in DIRECTIVES if words.startswith(name)), "")
            if name:
                info[name] = words[len(name) :].lstrip(":").strip()
                if not info[name]:
                    raise ValueError(f"{path}: '{name}' says nothing")
        elif found["body"] is not None:
            yield Block(path, text.count("\n", 0, found.start()) + 1, found["language"], found["body"], info)
            info = {}
        else:
            if info:
                raise ValueError(f"{path}: {', '.join(info)} stands before no block")


class Failed(Exception):
    """Says where and what."""


def run(block: Block, folder: Path, environment: Mapping[str, str]) -> None:
    """Raises Failed where the block does not do what it shows."""
    where = f"{block.path.name}:{block.line}"
    if block.kind == "data":
        _parse(block, where)
        return
    if block.kind == "quote":
        _check_quote(block, Path(environment["REPO"]) / block.info["quote"], where)
    if block.kind != "run":
        return
    if "prepare" in block.info:
        _shell(block.info["prepare"], folder, environment, f"{where} (prepare)")
    within = float(block.info["figures within"]) if "figures within" in block.info else None
    if "prints" in block.info:
        must_show(_shell(block.info["prints"], folder, environment, where), block.text.splitlines(), where, within)
    elif block.language == "sh":
        _shell(block.text, folder, environment, where)
    elif block.language == "python":
        script = folder / "block.py"
        script.write_text(block.info.get("with", "") + "\n" + block.text)
        _shell("tessera-python block.py", folder, environment, where)
    elif not block.language:
        for command, shown in _sessions(block.text):
            must_show(_shell(command, folder, environment, where), shown, where, within)
    else:
        raise Failed(f"{where}: no way to run {block.language}: say '<!-- not run: WHY -->'")


def _check_quote(block: Block, source: Path, where: str) -> None:
    if not source.is_file() or block.text not in source.read_text(encoding="utf-8"):
        raise Failed(f"{where}: {block.info['quote']} does not have these lines")


def _parse(block: Block, where: str) -> None:
    try:
        if block.language == "json":
            json.loads(block.text)
        else:
            import tomllib

            tomllib.loads(block.text)
    except ValueError as error:
        raise Failed(f"{where}: is not valid {block.language}: {error}") from error


def _sessions(text: str) -> Iterator[tuple[str, list[str]]]:
    """Yields each command with the lines shown after it. A command continues on the next line after a backslash."""
    command, shown = "", []
    for line in text.splitlines():
        if line.startswith("$ "):
            if command:
                yield command, shown
            command, shown = line[2:], []
        elif command.endswith("\\"):
            command += "\n" + line
        else:
            shown.append(line)
    yield command, shown


def _shell(script: str, folder: Path, environment: Mapping[str, str], where: str) -> str:
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", script],
        cwd=folder,
        env=dict(environment),
        capture_output=True,
        text=True,
        timeout=300,
    )
    if done.returncode:
        raise Failed(f"{where}: exit code {done.returncode} of\n{script}\n{done.stdout[-1500:]}\n{done.stderr[-1500:]}")
    return done.stdout + done.stderr


def must_show(output: str, shown: Sequence[str], where: str, within: float | None) -> None:
    """Raises Failed for the first line that does not come, in this order, in `output`."""
    lines, at = [" ".join(line.split()) for line in output.splitlines()], 0
    for wanted in filter(str.strip, shown):
        pattern = re.compile(_pattern(" ".join(wanted.split())))
        index = next((i for i in range(at, len(lines)) if pattern.fullmatch(lines[i])), None)
        if index is None:
            raise Failed(f"{where}: this line does not come (any more):\n{wanted}\nThe output:\n{output[-3000:]}")
        _compare(wanted, pattern.fullmatch(lines[index]), lines[index], where, within)  # type: ignore[arg-type]
        at = index + 1


def _pattern(line: str) -> str:
    """Numbers are groups, … anything, and runs of dots, dashes and bars of any length."""
    parts = re.split(rf"(…|{NUMBER}|[.─█-]{{2,}})", line)

    def one(part: str) -> str:
        if part == "…":
            return ".*"
        if re.fullmatch(NUMBER, part):
            return f"({NUMBER})"
        return r"[.─█▏▎▍▌▋▊▉ -]*" if re.fullmatch(r"[.─█-]{2,}", part) else re.escape(part)

    return "".join(map(one, parts))


def _compare(wanted: str, found: re.Match[str], line: str, where: str, within: float | None) -> None:
    numbers = [
        part for part in re.findall(rf"…|{NUMBER}|[.─█-]{{2,}}", " ".join(wanted.split())) if re.fullmatch(NUMBER, part)
    ]
    for said, is_now in zip(numbers, found.groups()):
        try:
            a, b = float(said), float(is_now)
        except ValueError:
            continue
        if within is not None and not (a == b or (a * b > 0 and 1 / within <= a / b <= within)):
            raise Failed(
                f"{where}: the page says {said}, it is {is_now} now (allowed: a factor of "
                f"{within:g}):\n{wanted}\n{line}"
            )


if __name__ == "__main__":
    for name in sys.argv[1:]:
        for each in blocks_of(Path(name)):
            print(f"{name}:{each.line}: {each.language or '-'} {each.kind} {each.info}")
