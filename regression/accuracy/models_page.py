# SPDX-License-Identifier: Apache-2.0
"""The page docs/generated/models.md: written from rows, and parsed again, by ./dev models and the page's test."""
from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Mapping, Sequence

NOT_RUN = "<!-- not run: takes minutes and wants the data; ./dev models runs them -->"
HEADER = "| model | figure | F32 | INT8 | x86 F32 ms | x ort | x86 INT8 ms | x ort | F32 MB | MB | of | {npus} | cuda |"
ABOUT = """# Public models

What the real models of [regression/cases](../../regression/cases/README.md) score, how long they take, and where they
run. Written by `./dev models --write`, which runs the commands below each table row's name; nothing here is typed by
hand. Where the models, pictures and recordings come from, and under which licences, says the README of the data
(`$TESSERA_DATA`).

- **figure, F32, INT8**: top-1, mAP, mIoU, PSNR, perplexity and the like on real data, none of which calibrated; for
  models without labelled data the agreement of INT8 with the float model. `-`: there is nothing to score it on.
- **x86 ms**: the fastest run of one thread on the machine that wrote the row; **x ort**: that time over onnxruntime's
  for the float model, turn by turn in one run. Compare ratios, not times: machines differ. `busy`: other work made
  rounds differ by more than 15 %.
- **MB**: the file in F32, and in the precision that NPUs run (**of**: INT8, or F16 where nothing calibrates).
- **NPUs**: milliseconds by the clock of the [simulator](../isa.md), in that precision; `h2`: the host runs 2 parts
  ([partition](../partition.md)). INT8 scores there what it scores on x86, to the bit.
- **cuda**: whether it compiles for GPUs; no card was timed ([GPUs](../cuda.md)).
"""


@dataclass(frozen=True)
class Row:
    """A line of the table, as text, and the commands that made it."""

    cells: tuple[str, ...]
    commands: tuple[str, ...]

    @property
    def name(self) -> str:
        return self.cells[0]


def render(rows: Mapping[str, Row], npus: Sequence[str]) -> str:
    header = HEADER.format(npus=" | ".join(npus))
    lines = [ABOUT, header, "|---" * (header.count("|") - 1) + "|"]
    ordered = [rows[name] for name in sorted(rows)]
    lines += ["| " + " | ".join((f"[{row.name}](#{anchor(row.name)})", *row.cells[1:])) + " |" for row in ordered]
    for row in ordered:
        lines += ["", f"## {row.name}", "", NOT_RUN, "```sh", *row.commands, "```"]
    return "\n".join(lines) + "\n"


def anchor(name: str) -> str:
    """Returns the anchor that GitHub and mkdocs give to a title."""
    return re.sub(r"[^\w-]", "", name.lower())


def parse(text: str) -> dict[str, Row]:
    """Returns the rows of a page."""
    found: dict[str, Row] = {}
    for line in re.findall(r"^\| \[.*\|$", text, re.M):
        cells = [cell.strip() for cell in line[1:-1].split("|")]
        name = re.sub(r"^\[(.*)\]\(.*\)$", r"\1", cells[0])
        block = re.search(rf"^## {re.escape(name)}\n\n[^\n]*\n```sh\n(.*?)^```$", text, re.S | re.M)
        found[name] = Row((name, *cells[1:]), tuple(block[1].splitlines()) if block else ())
    return found
