# SPDX-License-Identifier: Apache-2.0
"""Runs a command as part of another command or program: its work without its exit code and final lines."""
from __future__ import annotations

import argparse
from typing import Callable, Sequence

from ..progress import Report
from .common import Context


class _PartReport(Report):
    """A report without the final block of warnings and next steps, which the enclosing command prints."""

    def finish(self, next_steps: list[str]) -> None:
        pass


def run_part(
    name: str,
    parse: Callable[[Sequence[str] | None], argparse.Namespace],
    work: Callable[[Context], object],
    words: Sequence[str],
    report: Report,
) -> Context:
    """Runs the command with the flags `words`, publishes its outputs, and returns its context. Its warnings are added
    to `report`. Raises TesseraError with the command's message and exit code, and SystemExit for wrong flags."""
    part = Context(name, parse(words), _PartReport(1, report.stream, quiet=report.quiet))
    with part.outputs:
        work(part)
        part.outputs.publish()
    report.warnings += [text for text in part.report.warnings if text not in report.warnings]
    return part
