# SPDX-License-Identifier: Apache-2.0
"""What a command shows while it works: numbered timed steps, then Warnings and Next steps.

Plain lines where the output is no terminal, and one every ten seconds of a step that takes long; on a terminal the
running step is shown with how far it is and what is left, with a bar where `rich` is installed.
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
_LEAST_DONE = 0.02  # share of the work; with less done the time left cannot be estimated
_AGREEMENT = 2.0  # of two estimates of the time left, as a ratio; with less agreement none is shown


@dataclass(frozen=True)
class At:
    """How far work is. what: it, for people. done of total, in round `part` of `parts`; total 0: not known. began: of
    the round, as of time.perf_counter()."""

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
        """ "kernels: 12 of 40"."""
        text = self.what
        if self.total > 0:
            text += f"{': ' if text else ''}{self.done} of {self.total}"
        if self.parts > 1:
            text += f" in round {self.part} of about {self.parts}"
        return text


class Remaining:
    """Estimates the time left of work from how far it was at earlier looks.

    Units of work differ: the last kernels may take a hundred times as long as the first. So there are two estimates,
    from the pace so far and from that of the latter half of what is done, and no answer while they disagree.
    """

    def __init__(self) -> None:
        self._began = 0.0
        self._looks: list[tuple[float, float]] = []  # time, fraction

    def look(self, at: At, now: float) -> float | None:
        """Records how far work is at `now` (as of time.perf_counter()); returns the seconds left, or None."""
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
        """Tells how far the step is."""
        began = self.at.began if self.at and self.at.what == what else time.perf_counter()
        self.at = At(what, began, done, total)


class _Ticker:
    """Calls a function again and again, in a thread of its own, until it is stopped."""

    def __init__(self, show: Callable[[], None], every: float) -> None:
        self._show, self._every, self._ended = show, every, threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        try:
            self._thread.start()
        except (RuntimeError, MemoryError):  # no memory for it: then nothing is shown
            self._ended.set()

    def _run(self) -> None:
        while not self._ended.wait(self._every):
            with contextlib.suppress(Exception):  # the command is told of a closed output by its own lines
                self._show()

    def stop(self) -> None:
        self._ended.set()
        if self._thread.ident is not None:
            self._thread.join(timeout=1)


class _Screen:
    """The line of a step that is under way."""

    def __init__(self, report: "Report", step: Step) -> None:
        self._report, self._step = report, step
        self._bar: Any = None  # rich's, where there is one
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
            # The bar repeats the step's name, which stands in this line already.
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
    """As a shell reads it, whatever characters file names have."""
    return shlex.join(map(str, words))


class Report:
    """Collects a command's steps, warnings and results, and prints them as they come.

    total: number of steps announced in '[1/5]'; stream: where the text goes (None: nowhere). running: the step that
    is under way;
    behind: how far work is that goes on beside it, for steps that wait for that.
    """

    def __init__(self, total: int, stream: IO[str] | None = None, quiet: bool = False) -> None:
        self.total = total
        self.stream = stream if stream is not None else sys.stdout
        self.quiet = quiet
        # A dumb terminal has no way to write a line anew.
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
        """One or more lines of human text."""
        if not self.quiet:
            print(text, file=self.stream, flush=True)

    def warn(self, text: str) -> None:
        """Kept for the Warnings block at the end."""
        if text not in self.warnings:
            self.warnings.append(text)

    def step(self, name: str) -> "contextlib.AbstractContextManager[Step]":
        """Times the block as the next of the announced steps; prints its line when it ends, also when it fails."""
        self._announced += 1
        return self._timed(Step(self, f"{self._announced}/{self.total}", name))

    def extra_step(self, name: str) -> "contextlib.AbstractContextManager[Step]":
        """Times a step that only the results of earlier ones ask for. It is marked + and has no number, so that the
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
        """The last block of a command. next_steps: commands (see command()), to be copied into a shell."""
        self.say(f"total {time.perf_counter() - self._began:.2f} s")
        self.say("== Warnings ==")
        for text in self.warnings or ["none"]:
            self.say(f"  {text}")
        if next_steps:
            self.say("== Next steps ==")
            for text in next_steps:
                self.say(f"  {text}")
