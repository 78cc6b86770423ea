# SPDX-License-Identifier: Apache-2.0
"""Runs a command repeatedly, each time in a fork of this process, and interrupts each run at a different step.

  interrupt_everywhere.py SIGNAL POINTS FOLDER COMMAND ARGUMENTS...

A step is a call or a return of a Python or C function, where the interpreter checks for signals. POINTS evenly spaced
steps are used. In the arguments, {out} stands for a folder that is empty at the start of each run. Prints a line for
each run that
- was interrupted but left files in {out}, or was not interrupted but left other files than a complete run,
- left a temporary folder or printed a stack trace, or
- had an exit code other than 0, 130 or the signal's.
The exit code is 1 if there was such a run, or if no run was interrupted.
"""
from __future__ import annotations

import importlib
import os
import shutil
import signal
import sys
import traceback
from pathlib import Path
from types import FrameType
from typing import Callable


class Run:
    """One run in a copy of this process."""

    def __init__(self, folder: Path, main: Callable[[list[str]], int], arguments: list[str], number: int) -> None:
        self.out, self.temporary, self.log = folder / "out", folder / "tmp", folder / "log"
        self._main, self._arguments, self._number = main, [a.replace("{out}", str(self.out)) for a in arguments], number
        self._steps = folder / "steps"

    def run(self, at: int) -> int:
        """Runs the command and interrupts it at step `at`; 0: not at all. Returns its exit code."""
        for path in (self.out, self.temporary):
            shutil.rmtree(path, ignore_errors=True)
            path.mkdir()
        child = os.fork()
        if child == 0:
            os._exit(self._child(at))
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])

    def _child(self, at: int) -> int:
        log = os.open(self.log, os.O_CREAT | os.O_TRUNC | os.O_WRONLY)
        os.dup2(log, 1)
        os.dup2(log, 2)
        os.environ["TMPDIR"] = str(self.temporary)
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        steps = 0

        def step(frame: FrameType, event: str, argument: object) -> None:
            nonlocal steps
            steps += 1
            if steps == at:
                os.write(
                    log, f"interrupted in {frame.f_code.co_filename}:{frame.f_lineno}, {event} {argument}\n".encode()
                )
                os.kill(os.getpid(), self._number)

        sys.setprofile(step)
        try:
            code = self._main(self._arguments)
        except BaseException:
            traceback.print_exc()
            code = 99
        sys.setprofile(None)
        if at == 0:
            self._steps.write_text(str(steps))
        sys.stdout.flush()
        return code

    def left(self) -> dict[str, bytes]:
        return {str(path.relative_to(self.out)): path.read_bytes() for path in self.out.rglob("*") if path.is_file()}

    def steps(self) -> int:
        return int(self._steps.read_text())

    def faults(self, code: int, whole: dict[str, bytes]) -> list[str]:
        text = self.log.read_text()
        left, temporary = self.left(), sorted(os.listdir(self.temporary))
        faults = []
        if code not in (0, 130, -self._number):
            faults.append(f"exit code {code}")
        if left != (whole if code == 0 else {}):
            faults.append(
                f"left {[name if left[name] == whole.get(name) else name + ' (other bytes)' for name in left]}"
            )
        if temporary:
            faults.append(f"left in the folder for temporary files {temporary}")
        if "Traceback" in text or "Exception ignored" in text:
            faults.append("printed a stack trace")
        return faults + [text] if faults else []


def main() -> int:
    number, points, folder, command = signal.Signals[sys.argv[1]], int(sys.argv[2]), Path(sys.argv[3]), sys.argv[4]
    sys.argv[0] = command
    run = Run(folder, importlib.import_module(f"tessera.cli.{command}").main, sys.argv[5:], number)
    for _ in range(2):  # the first fills caches, and imports what is imported on demand
        if run.run(0) != 0:
            print(run.log.read_text())
            return 1
    whole, steps = run.left(), run.steps()
    faulty = interrupted = 0
    for point in range(points):
        at = 1 + point * steps // points
        code = run.run(at)
        interrupted += code != 0
        if faults := run.faults(code, whole):
            faulty += 1
            print(f"step {at} of {steps}: " + "; ".join(faults))
    print(
        f"{points} runs of {steps} steps, {interrupted} interrupted, {faulty} faulty; left by a whole run: "
        f"{sorted(whole)}"
    )
    return int(faulty > 0 or interrupted == 0 or not whole)


if __name__ == "__main__":
    raise SystemExit(main())
