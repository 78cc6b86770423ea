# SPDX-License-Identifier: Apache-2.0
"""Runs a command as a part of another one, or of a program: its work without its exit code and its last lines."""
from __future__ import annotations

import argparse
from typing import Callable, Sequence

from ..progress import Report
from .common import Context


class _PartReport(Report):
    """Leaves the last block, warnings and next steps, to the whole."""

    def finish(self, next_steps: list[str]) -> None:
        pass


def run_part(
    name: str,
    parse: Callable[[Sequence[str] | None], argparse.Namespace],
    work: Callable[[Context], object],
    words: Sequence[str],
    report: Report,
) -> Context:
    """Runs the command with the flags `words`; returns its context, whose outputs are published. Its warnings join
    those of `report`. Raises TesseraError with the command's message and exit code; SystemExit for wrong flags."""
    part = Context(name, parse(words), _PartReport(1, report.stream, quiet=report.quiet))
    with part.outputs:
        work(part)
        part.outputs.publish()
    report.warnings += [text for text in part.report.warnings if text not in report.warnings]
    return part
