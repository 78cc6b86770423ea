# SPDX-License-Identifier: Apache-2.0
"""The screen output of a running command: numbered timed steps, then Warnings and Next steps.

If the output is not a terminal, each step is a plain line, with a further line every ten seconds for long steps. On a
terminal the running step shows its progress and the time left, with a bar if `rich` is installed.
"""
from __future__ import annotations

import contextlib
import os
import shlex
import sys
import threading
import time
from dataclasses import dataclass
from typing import IO, Any, Callable, Iterator

from . import interrupts

_NAME_WIDTH = 34
LOG_EVERY = 10.0  # seconds
_SCREEN_EVERY = 0.5
_LEAST_DONE = 0.02  # share of the work; below this the time left cannot be estimated
_AGREEMENT = 2.0  # ratio of two estimates of the time left, above which none is shown


@dataclass(frozen=True)
class At:
    """Progress of a piece of work. what: its description. done of total, in round `part` of `parts`; total 0: unknown.
    began: start of the round, from time.perf_counter()."""

    what: str
    began: float
    done: int = 0
    total: int = 0
    part: int = 1
    parts: int = 1

    @property
    def fraction(self) -> float:
        return (self.part - 1 + min(self.done / self.total, 1.0)) / self.parts if self.total > 0 else 0.0

    def text(self) -> str:
        """Returns e.g. "kernels: 12 of 40"."""
        text = self.what
        if self.total > 0:
            text += f"{': ' if text else ''}{self.done} of {self.total}"
        if self.parts > 1:
            text += f" in round {self.part} of about {self.parts}"
        return text


class Remaining:
    """Estimates the remaining time from earlier progress.

    Units of work differ: the last kernels may take a hundred times as long as the first. Therefore there are two
    estimates, from the overall pace and from the pace of the latter half, and no answer while they disagree.
    """

    def __init__(self) -> None:
        self._began = 0.0
        self._looks: list[tuple[float, float]] = []  # time, fraction

    def look(self, at: At, now: float) -> float | None:
        """Records the progress at `now` (from time.perf_counter()); returns the seconds left, or None."""
        if at.began != self._began:
            self._began, self._looks = at.began, []
        self._looks.append((now, at.fraction))
        done, seconds = at.fraction, now - at.began
        if done < _LEAST_DONE or seconds <= 1:
            return None
        middle, done_then = next(look for look in self._looks if look[1] >= done / 2)
        if done_then == done:
            return None
        overall = seconds / done * (1 - done)
        recent = (now - middle) / (done - done_then) * (1 - done)
        return max(overall, recent) if max(overall, recent) <= _AGREEMENT * min(overall, recent) else None


class Step:
    """The running step; `note` becomes the end of its line."""

    def __init__(self, report: "Report", place: str, name: str) -> None:
        self._report, self.place, self.name = report, place, name
        self.note = ""
        self.begin = time.perf_counter()
        self.at: At | None = None

    def progress(self, done: int, total: int, what: str = "") -> None:
        """Records the step's progress."""
        began = self.at.began if self.at and self.at.what == what else time.perf_counter()
        self.at = At(what, began, done, total)


class _Ticker:
    """Calls a function periodically in its own thread until stopped."""

    def __init__(self, show: Callable[[], None], every: float) -> None:
        self._show, self._every, self._ended = show, every, threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        try:
            self._thread.start()
        except (RuntimeError, MemoryError):  # without memory for a thread nothing is shown
            self._ended.set()

    def _run(self) -> None:
        while not self._ended.wait(self._every):
            with contextlib.suppress(Exception):  # the command's own lines report a closed output
                self._show()

    def stop(self) -> None:
        self._ended.set()
        if self._thread.ident is not None:
            self._thread.join(timeout=1)


class _Screen:
    """The screen line of the running step."""

    def __init__(self, report: "Report", step: Step) -> None:
        self._report, self._step = report, step
        self._bar: Any = None  # rich's, if installed
        self._remaining = Remaining()
        self._is_plain = False
        with interrupts.held():
            self._ticker = _Ticker(self._show, _SCREEN_EVERY if report.terminal else LOG_EVERY)

    def stop(self) -> None:
        with interrupts.held():
            self._ticker.stop()
            if self._bar is not None:
                self._bar.stop()

    def _show(self) -> None:
        at = self._step.at or self._report.behind
        now = time.perf_counter()
        seconds = now - self._step.begin
        head, text = self._report.head(self._step), at.text() if at else ""
        left = self._remaining.look(at, now) if at else None
        text += "" if left is None else f", about {left:.0f} s left"
        if not self._report.terminal:
            print(f"{head} {seconds:7.0f} s so far{': ' + text if text else ''}", file=self._report.stream, flush=True)
            return
        if self._bar is None and not self._is_plain:
            # The bar repeats the step's name, which this line already contains.
            print("\r\033[K", end="", file=self._report.stream, flush=True)
            self._bar = _make_bar(self._report.stream, head)
            self._is_plain = self._bar is None
        if self._bar is None:
            print(f"\r\033[K{head} {seconds:7.0f} s   {text}"[:200], end="", file=self._report.stream, flush=True)
        else:
            self._bar.update(
                self._bar.task_ids[0],
                total=1.0 if at and at.total else None,
                completed=at.fraction if at else 0.0,
                description=f"{seconds:.0f} s   {text}",
            )


def _make_bar(stream: IO[str], head: str):
    try:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn
    except ImportError:
        return None
    bar = Progress(
        TextColumn("{task.fields[head]}", markup=False),
        BarColumn(),
        TextColumn("{task.description}", markup=False),
        console=Console(file=stream),
        transient=True,
    )
    bar.add_task("", head=head, total=None)
    bar.start()
    return bar


def command(*words: object) -> str:
    """Returns the command quoted for a shell, whatever characters file names contain."""
    return shlex.join(map(str, words))


class Report:
    """Collects a command's steps, warnings and results, and prints them as they come.

    total: number of steps announced in '[1/5]'. stream: where the text goes (default: stdout). running: the current
    step. behind: progress of work that continues beside it, for steps that wait for that work.
    """

    def __init__(self, total: int, stream: IO[str] | None = None, quiet: bool = False) -> None:
        self.total = total
        self.stream = stream if stream is not None else sys.stdout
        self.quiet = quiet
        # A dumb terminal cannot rewrite a line.
        self.terminal = not quiet and self.stream.isatty() and os.environ.get("TERM") not in ("dumb", "unknown")
        self.warnings: list[str] = []
        self.steps: list[dict[str, object]] = []
        self.running: Step | None = None
        self.behind: At | None = None
        self._began = time.perf_counter()
        self._announced = 0

    def head(self, step: Step) -> str:
        name = f"{step.name} ".ljust(_NAME_WIDTH, ".")
        return f"[{step.place}] {name}"

    def say(self, text: str = "") -> None:
        """Prints one or more lines of text."""
        if not self.quiet:
            print(text, file=self.stream, flush=True)

    def warn(self, text: str) -> None:
        """Adds a warning to the Warnings block at the end."""
        if text not in self.warnings:
            self.warnings.append(text)

    def step(self, name: str) -> "contextlib.AbstractContextManager[Step]":
        """Times the block as the next announced step; prints its line when it ends, even if it fails."""
        self._announced += 1
        return self._timed(Step(self, f"{self._announced}/{self.total}", name))

    def extra_step(self, name: str) -> "contextlib.AbstractContextManager[Step]":
        """Times a step that is only needed because of earlier results. It is marked + and has no number, so that the
        announced total stays right."""
        return self._timed(Step(self, "+", name))

    @contextlib.contextmanager
    def _timed(self, step: Step) -> Iterator[Step]:
        if self.terminal:
            print(self.head(step), end="", file=self.stream, flush=True)
        self.running = step
        screen: _Screen | None = None
        failed = True
        try:
            screen = None if self.quiet else _Screen(self, step)
            yield step
            failed = False
        finally:
            if screen:
                screen.stop()
            self.running = None
            seconds = time.perf_counter() - step.begin
            self.steps.append({"name": step.name, "seconds": round(seconds, 4), "note": step.note})
            if self.terminal:
                print("\r\033[K", end="", file=self.stream)
            tail = "FAILED" if failed else step.note
            self.say(f"{self.head(step)} {seconds:7.2f} s   {tail}".rstrip())

    def finish(self, next_steps: list[str]) -> None:
        """Prints the last block of a command. next_steps: commands (see command()) to copy into a shell."""
        self.say(f"total {time.perf_counter() - self._began:.2f} s")
        self.say("== Warnings ==")
        for text in self.warnings or ["none"]:
            self.say(f"  {text}")
        if next_steps:
            self.say("== Next steps ==")
            for text in next_steps:
                self.say(f"  {text}")
