# SPDX-License-Identifier: Apache-2.0
"""What a command shows while it works: numbered timed steps, then Warnings and Next steps.

Plain lines where the output is no terminal; on a terminal the running step is shown, with a bar if
`rich` is installed and the step reports how far it is.
"""
from __future__ import annotations

import contextlib
import sys
import time
from typing import IO, Iterator

_NAME_WIDTH = 34


class Step:
    """The running step; `note` becomes the end of its line."""

    def __init__(self, report: "Report", index: int, name: str) -> None:
        self._report, self.index, self.name = report, index, name
        self.note = ""
        self.begin = time.perf_counter()
        self._bar = None

    def progress(self, done: int, total: int, what: str = "") -> None:
        """Tells how far the step is; shown on a terminal only."""
        if not self._report.terminal or total <= 0:
            return
        if self._bar is None:
            self._bar = _make_bar(self._report.stream, self._report.head(self))
        if self._bar is not None:
            self._bar.update(self._bar.task_ids[0], total=total, completed=done, description=what)

    def close(self) -> None:
        if self._bar is not None:
            self._bar.stop()
            self._bar = None


def _make_bar(stream: IO[str], head: str):
    try:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
    except ImportError:
        return None
    bar = Progress(TextColumn("{task.fields[head]}", markup=False), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn(),
                   TextColumn("{task.description}"), console=Console(file=stream), transient=True)
    bar.add_task("", head=head)
    bar.start()
    return bar


class Report:
    """Collects a command's steps, warnings and results, and prints them as they come.

    total: number of steps announced in '[1/5]'; stream: where the text goes (None: nowhere).
    """

    def __init__(self, total: int, stream: IO[str] | None = None, quiet: bool = False) -> None:
        self.total = total
        self.stream = stream if stream is not None else sys.stdout
        self.quiet = quiet
        self.terminal = not quiet and self.stream.isatty()
        self.warnings: list[str] = []
        self.steps: list[dict[str, object]] = []
        self._began = time.perf_counter()

    def head(self, step: Step) -> str:
        name = f"{step.name} ".ljust(_NAME_WIDTH, ".")
        return f"[{step.index}/{self.total}] {name}"

    def say(self, text: str = "") -> None:
        """One or more lines of human text."""
        if not self.quiet:
            print(text, file=self.stream, flush=True)

    def warn(self, text: str) -> None:
        """Kept for the Warnings block at the end."""
        if text not in self.warnings:
            self.warnings.append(text)

    @contextlib.contextmanager
    def step(self, name: str) -> Iterator[Step]:
        """Times the block; prints its line when it ends, also when it fails."""
        step = Step(self, len(self.steps) + 1, name)
        if self.terminal:
            print(self.head(step), end="", file=self.stream, flush=True)
        failed = True
        try:
            yield step
            failed = False
        finally:
            step.close()
            seconds = time.perf_counter() - step.begin
            self.steps.append({"name": name, "seconds": round(seconds, 4), "note": step.note})
            if self.terminal:
                print("\r\033[K", end="", file=self.stream)
            tail = "FAILED" if failed else step.note
            self.say(f"{self.head(step)} {seconds:7.2f} s   {tail}".rstrip())

    def finish(self, next_steps: list[str]) -> None:
        """The last block of a command."""
        self.say(f"total {time.perf_counter() - self._began:.2f} s")
        self.say("== Warnings ==")
        for text in self.warnings or ["none"]:
            self.say(f"  {text}")
        if next_steps:
            self.say("== Next steps ==")
            for text in next_steps:
                self.say(f"  {text}")
