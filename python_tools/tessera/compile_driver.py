# SPDX-License-Identifier: Apache-2.0
"""Runs tessera-compile as a child process, follows its progress, and maps its end to an exit code.

The child prints one JSON object per line on stdout ('phase', 'progress', 'warning', 'error', 'result') and diagnostics
on stderr. Its outputs are written into a staging folder and renamed into place after it has succeeded, so an interrupt
or a crash leaves no partial file. A crash becomes exit code 70 with a folder that holds everything needed to repeat it.
"""
from __future__ import annotations

import contextlib
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any, Callable, Iterator, Mapping, Sequence, TypeVar

from . import __version__, interrupts
from .background import Background, each, running
from .compile_session import Request, start
from .errors import ExitCode, TesseraError
from .scratch import lasting_folder
from .programs import external_cause, failed_start, find_program, how_it_ended
from .progress import At, Report

_KNOWN = {
    int(code)
    for code in (ExitCode.ERROR, ExitCode.USAGE, ExitCode.ACCURACY, ExitCode.UNSUPPORTED, ExitCode.OUT_OF_MEMORY)
}
_UNITS = {
    "quantize": "ops quantised",
    "emit": "ops emitted",
    "kernels": "kernels compiled",
    "reference": "tensors evaluated",
}  # by the compiler's name of a phase
_KEEP_STDERR = 200  # lines
_MAX_REPRODUCER_FILE = 256 << 20
_OUTPUT_FLAGS = ("--output", "--device-mlir", "--dump-ir", "--factors")
_running: "set[_Child]" = set()
_saves_reproducers = True

T = TypeVar("T")


class CompileResult(dict):
    """The child's 'result' object; empty if it printed none."""


def run_compile(
    arguments: Sequence[str], report: Report, inputs: Sequence[str | Path] = (), reproducer_beside: str | Path = "."
) -> CompileResult:
    """Runs `tessera-compile ARGUMENTS`; returns its result.

    inputs: files that it reads and ARGUMENTS do not name; after a crash these and the named ones are copied into the
    reproducer. Raises TesseraError with the child's message and code; KeyboardInterrupt after the child has ended.
    """
    command = [find_program("tessera-compile"), *arguments]
    child = _Child(command, report)
    code = child.run()
    if child.stopped:
        raise KeyboardInterrupt
    if code == 0:
        return child.result
    if code in _KNOWN and (child.errors or child.stderr):
        raise child.error(code)
    if error := external_cause(f"tessera-compile {arguments[0]}", code, "\n".join(child.stderr)):
        raise error
    said = [str(event.get("message", "")) for event in child.errors]
    if not _saves_reproducers:
        raise TesseraError(f"tessera-compile {arguments[0]} {how_it_ended(code)}", ExitCode.INTERNAL, details=said)
    folder = save_reproducer(command, code, child.log, [*child.stderr, *said], inputs, reproducer_beside)
    raise TesseraError(
        f"tessera-compile {arguments[0]} {how_it_ended(code)}: this is a fault in Tessera",
        ExitCode.INTERNAL,
        hint=f"please report it with the reproducer saved in {folder}",
        details=said,
    )


@contextlib.contextmanager
def without_reproducers() -> Iterator[None]:
    """Turns off reproducers of crashes during the block, for callers that expect crashes."""
    global _saves_reproducers
    before, _saves_reproducers = _saves_reproducers, False
    try:
        yield
    finally:
        _saves_reproducers = before


@contextlib.contextmanager
def beside(job: Callable[[], T]) -> Iterator[Background[T]]:
    """Runs the job, which runs the compiler, during the block. An exception in the block ends its children."""
    with running([job], _stop_all_children) as (background,):
        yield background


def side_by_side(jobs: Sequence[Callable[[], T]]) -> list[T]:
    """Runs jobs that run the compiler, as many at once as there are cores, and returns their results. After an
    interrupt or a failure, their children have ended before this returns."""
    return each(lambda job: job(), jobs, _stop_all_children)


def _stop_all_children() -> None:
    for child in list(_running):
        child.stop()


class _Child:
    """One run of the compiler."""

    def __init__(self, command: Sequence[str], report: Report) -> None:
        self._report = report
        self.result = CompileResult()
        self.errors: list[dict[str, object]] = []
        self.stderr: list[str] = []
        self.log: list[str] = []
        self._command = command
        self._process: subprocess.Popen[str] | Request | None = None
        # On a thread other than the main one, it runs beside the step on the screen.
        self._is_shown = threading.current_thread() is threading.main_thread()
        self.stopped = False
        self._at = At("", time.perf_counter())

    def _start(self) -> threading.Thread:
        """Starts the child; returns the thread that follows its stderr."""
        try:
            with interrupts.held():  # an interrupt inside Popen would leave an orphaned child
                self._process = start(self._command[0], self._command[1:])
                reader = threading.Thread(target=self._read_stderr, daemon=True)
                reader.start()
                return reader
        except OSError as error:
            raise failed_start("tessera-compile", error) from error

    def _read_stderr(self) -> None:
        assert self._process is not None and self._process.stderr is not None
        for line in self._process.stderr:
            self.stderr.append(line.rstrip("\n"))
            del self.stderr[:-_KEEP_STDERR]

    def run(self) -> int:
        """Starts the child and follows it until it ends; returns its code. On an interrupt, ends the child first."""
        _running.add(self)
        try:
            reader = self._start()
            assert self._process is not None and self._process.stdout is not None
            if self.stopped:  # by another thread, before there was a process
                self.stop()
            for line in self._process.stdout:
                self.log.append(line)
                self._handle(line)
            code = self._process.wait()
        except BaseException:
            self.stop()
            raise
        finally:
            _running.discard(self)
        reader.join(timeout=5)
        return code

    def stop(self) -> None:
        """Asks the child to end, then forces it."""
        with interrupts.held():
            self.stopped = True
            for number, patience in ((signal.SIGINT, 3), (signal.SIGTERM, 2), (signal.SIGKILL, 5)):
                if self._process is None or self._process.poll() is not None:
                    return
                self._process.send_signal(number)
                with contextlib.suppress(subprocess.TimeoutExpired):
                    self._process.wait(patience)

    def _handle(self, line: str) -> None:
        try:
            event = json.loads(line)
            kind = event.get("event")
        except (ValueError, AttributeError):
            return  # kept in the log; the protocol is one JSON object per line
        event.update({key: with_tools_flags(str(event[key])) for key in ("message", "hint") if key in event})
        if kind == "warning":
            self._report.warn(str(event.get("message", "")))
        elif kind == "error":
            self.errors.append(event)
        elif kind == "result":
            self.result = CompileResult(event)
        elif kind in ("phase", "progress"):
            self._show(event)

    def _show(self, event: Mapping[str, Any]) -> None:
        """Reports the child's progress. `began` is the start of the phase."""
        name = str(event.get("phase" if event["event"] == "progress" else "name", ""))
        if event["event"] == "phase":
            self._at = At(name, time.perf_counter())
        else:
            numbers = {key: int(event[key]) for key in ("done", "total", "part", "parts") if key in event}
            self._at = At(_UNITS.get(name, name), self._at.began, **numbers)
        if not self._is_shown:
            self._report.behind = self._at
        elif self._report.running:
            self._report.running.at = self._at

    def error(self, code: int) -> TesseraError:
        """Returns the child's error as an exception."""
        if self.errors:
            first = self.errors[0]
            details = [str(e.get("message", "")) for e in self.errors[1:]]
            return TesseraError(
                str(first.get("message", "")), ExitCode(code), hint=str(first.get("hint", "")), details=details
            )
        return TesseraError(self.stderr[0], ExitCode(code), details=self.stderr[1:20])


def with_tools_flags(text: str) -> str:
    """Rewrites the flags in a message of tessera-compile as the commands spell them: --chip-set becomes --chip_set."""
    text = re.sub(r"(?<![\w-])--[a-z]+(-[a-z]+)+", lambda flag: "--" + flag[0][2:].replace("-", "_"), text)
    return re.sub(r"(?<![\w-])--outputs\b", "--output_names", text)


def save_reproducer(
    command: Sequence[str],
    code: int,
    log: Sequence[str],
    stderr: Sequence[str],
    inputs: Sequence[str | Path],
    beside: str | Path,
) -> Path:
    """Saves command, output, versions and input files of a failed run; returns the folder."""
    names = _names_in_reproducer(command, inputs)
    try:
        folder = Path(tempfile.mkdtemp(prefix="tessera-reproducer-", dir=lasting_folder(Path(beside))))
    except OSError:
        folder = Path(tempfile.mkdtemp(prefix="tessera-reproducer-"))
    with contextlib.suppress(OSError):  # a full disk must not hide what went wrong
        (folder / "command.sh").write_text(
            "#!/bin/sh\n# Run in this folder.\n" + _relocated(command, names) + "\n", errors="surrogateescape"
        )
        (folder / "stdout.jsonl").write_text("".join(log), errors="surrogateescape")
        (folder / "stderr.txt").write_text("\n".join(stderr) + "\n", errors="surrogateescape")
        (folder / "about.json").write_text(
            json.dumps(
                {"tessera": __version__, "exit_code": code, "python": sys.version, "platform": " ".join(os.uname())},
                indent=1,
            )
            + "\n"
        )
        for source, name in names.items():
            if Path(source).is_file() and Path(source).stat().st_size <= _MAX_REPRODUCER_FILE:
                shutil.copy(source, folder / name)
    return folder


def _names_in_reproducer(command: Sequence[str], inputs: Sequence[str | Path]) -> dict[str, str]:
    """Returns the names in the reproducer of the files that a command reads: their own names, with a number if two are
    equal. The files are `inputs`, the files on the command line, and the weights beside a calibration table."""
    sources = [str(path) for path in inputs]
    for previous, word in zip(command, command[1:]):
        if previous not in _OUTPUT_FLAGS and not word.startswith("-") and Path(word).is_file():
            sources.append(word)
            if previous == "--calibration-table":
                sources.append(str(Path(word).with_suffix(".safetensors")))
    names: dict[str, str] = {}
    for source in dict.fromkeys(sources):
        name, number = Path(source).name, 2
        while name in names.values():
            name, number = f"{number}-{Path(source).name}", number + 1
        names[source] = name
    return names


def _relocated(command: Sequence[str], names: Mapping[str, str]) -> str:
    """Returns the command line with input files and outputs relative to the reproducer folder."""
    words = [Path(command[0]).name]
    for previous, word in zip(command, command[1:]):
        words.append(names.get(word, Path(word).name if previous in _OUTPUT_FLAGS else word))
    return shlex.join(words)
