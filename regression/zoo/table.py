# SPDX-License-Identifier: Apache-2.0
"""The page docs/generated/zoo.md: written from results, and parsed again by the test of its form."""
from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from typing import Sequence

from judge import VERDICTS, Result

HEADER = (
    "network",
    "family",
    "exporter",
    "F32 cos",
    "INT8 cos",
    "x86 = npu-base",
    "host subnets",
    "s",
    "MB",
    "verdict",
)
NOT_ASKED = "-"
EQUAL = {"equal": "equal", "said": "said not to be", "differs": "DIFFERS", "": NOT_ASKED}
TITLE = "# The zoo"
OLDER = "Rows of an earlier build than the others: {}."
ABOUT = """Networks rebuilt from their description with random weights, exported from PyTorch and taken through \
`model_transform`,
`model_deploy` (F32 on x86), `run_calibration`, and `model_deploy` in INT8 on x86 and on npu-base. Written by `./dev \
zoo --write`.

- **F32 cos**: the least agreement (cosine; of integers the share that is equal) of an output of the F32 model with \
onnxruntime, over {tried} inputs.
- **INT8 cos**: the same of INT8 with F32. The weights are random and {calibrated} random inputs calibrate, so it \
describes the network, not the quantiser; "reported": `model_deploy` says
  itself that this model is too coarse to use (exit code 3).
- **x86 = npu-base**: every output of the INT8 models on {tried} inputs has the same bits on both.
- **host subnets**: parts of the INT8 model on npu-base that the host runs.
- **s, MB**: time of all commands on the machine that wrote this, and the largest of their processes.
- **verdict**: right; wrong, reported (exit code 3); refused (1, 4: the message says why); too long; exit 70 (a fault \
or a crash); silent (a wrong
  answer that no command complained of)."""


@dataclass(frozen=True)
class Row:
    """A line of the table, as text."""

    cells: tuple[str, ...]

    @property
    def verdict(self) -> str:
        return self.cells[-1].split(":")[0]


def row_of(result: Result) -> Row:
    def number(value: float | int | None, form: str) -> str:
        return NOT_ASKED if value is None else format(value, form)

    reason = f": {short(result.reason)}" if result.reason else ""
    return Row(
        (
            result.network,
            result.family,
            result.exporter,
            number(result.cosine_f32, ".5f"),
            number(result.cosine_int8, ".4f") + (" reported" if result.reported_int8 else ""),
            EQUAL[result.equal],
            number(result.host_subnets, "d"),
            number(result.seconds, ".1f"),
            number(result.peak_mb, ".0f"),
            result.verdict + reason,
        )
    )


def short(reason: str) -> str:
    """Returns the reason without paths, shortened to one line of a table."""
    text = re.sub(r"\s+", " ", re.sub(r"(/[\w.+-]+){2,}/", "", reason)).replace("|", "/").strip()
    return text if len(text) <= 140 else text[:139] + "…"


def totals(rows: Sequence[Row]) -> list[str]:
    """Returns the lines that summarise the rows."""
    verdicts, equal = Counter(row.verdict for row in rows), Counter(row.cells[5] for row in rows)
    networks, asked = len({row.cells[0] for row in rows}), len(rows) - equal[NOT_ASKED]
    lines = [
        f"{networks} networks, {len(rows)} exported files: "
        + ", ".join(f"{verdicts[name]} {name}" for name in VERDICTS)
        + f" ({100 * verdicts['right'] / max(1, len(rows)):.1f} % right)."
    ]
    lines.append(
        f"INT8 on x86 and npu-base, {asked} files: {equal[EQUAL['equal']]} equal, {equal[EQUAL['said']]} said not to "
        f"be, {equal[EQUAL['differs']]} differ."
    )
    return lines


def render(rows: Sequence[Row], not_exported: Sequence[str], older: int, tried: int, calibrated: int) -> str:
    """Returns the page. not_exported: lines 'NAME (EXPORTER): reason'; these are not failures of Tessera. older: the
    number of rows that come from earlier builds."""
    builds = OLDER.format(older) if older else "All are of one build."
    lines = [
        TITLE,
        "",
        ABOUT.format(tried=tried, calibrated=calibrated),
        "",
        *totals(rows),
        builds,
        "",
        _line(HEADER),
        "|---" * len(HEADER) + "|",
    ]
    lines += [_line(row.cells) for row in rows]
    if not_exported:
        lines += ["", f"Not exported by PyTorch, {len(not_exported)}:", "", *(f"- {text}" for text in not_exported)]
    return "\n".join(lines) + "\n"


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def parse(text: str) -> tuple[list[Row], list[str], int]:
    """Returns the rows of a page, the list of networks that were not exported, and the number of older rows."""
    rows = [
        Row(tuple(cell.strip() for cell in line[1:-1].split("|")))
        for line in text.splitlines()
        if line.startswith("| ") and not line.startswith(_line(HEADER))
    ]
    older = re.search(OLDER.format(r"(\d+)"), text)
    return (
        rows,
        [line[2:] for line in text.splitlines() if re.match(r"- [^ ]+ \([\w-]+\): ", line)],
        int(older[1]) if older else 0,
    )
