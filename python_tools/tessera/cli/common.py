# SPDX-License-Identifier: Apache-2.0
"""What every command does the same way: flags, errors, exit codes, --json, interrupts."""
from __future__ import annotations

import argparse
import json
import os
import re
import sys
import tempfile
import traceback
from dataclasses import dataclass, field
from pathlib import Path
from typing import Callable, Sequence

from .. import __version__, interrupts
from ..errors import ExitCode, TesseraError
from ..progress import Report


class Parser(argparse.ArgumentParser):
    """argparse with our exit code for wrong flags and no guessing of abbreviated ones."""

    def __init__(self, prog: str, description: str, epilog: str = "") -> None:
        super().__init__(prog=prog, description=description, epilog=epilog, allow_abbrev=False,
                         formatter_class=argparse.RawDescriptionHelpFormatter)

    def add_common(self) -> "Parser":
        """Adds --json, --quiet and --version."""
        self.add_argument("--json", action="store_true", help="print one JSON object on stdout, all text on stderr")
        self.add_argument("-q", "--quiet", action="store_true", help="print errors only")
        self.add_argument("-V", "--version", action="version", version=f"%(prog)s {__version__}")
        return self


class _Changes(argparse.Action):
    """FIELD=VALUE[,FIELD=VALUE…], any number of times, as a list. A value may hold commas itself: a list of words."""

    def __call__(self, parser, namespace, values, option_string=None):  # type: ignore[no-untyped-def]
        changes = re.split(r",(?=[A-Za-z_][\w.]*=)", values)
        setattr(namespace, self.dest, [*getattr(namespace, self.dest), *changes])


def add_chip_set(parser: argparse.ArgumentParser, text: str) -> None:
    """The flag --chip_set; text: what the changes are for."""
    parser.add_argument("--chip_set", "--chip-set", action=_Changes, default=[], metavar="FIELD=VALUE[,…]",
                        help=f"{text}: lanes=16,memories.ddr.gbps=8, say; may be given several times; docs/generated/npu-chips.md lists the fields")


@dataclass
class Context:
    """What a command works with: its arguments, its report on the screen and its JSON result."""

    name: str
    args: argparse.Namespace
    report: Report
    result: dict[str, object] = field(default_factory=dict)

    @staticmethod
    def make(name: str, args: argparse.Namespace, steps: int = 1) -> "Context":
        stream = sys.stderr if args.json else sys.stdout
        return Context(name, args, Report(steps, stream, quiet=args.quiet))


def run_command(name: str, parse: Callable[[Sequence[str] | None], argparse.Namespace],
                work: Callable[[Context], int | None], steps: int = 1, argv: Sequence[str] | None = None) -> int:
    """Parses, works, turns every outcome into an exit code and, with --json, into one JSON object.

    `work` returns an exit code (None: 0) or raises TesseraError. Anything else it raises is a fault
    of ours: exit code 70 with the stack trace saved in a file, not on the screen.
    """
    try:
        args = parse(argv)
    except SystemExit as end:  # argparse: 0 after --help, 2 after a wrong flag
        return int(end.code or 0)
    context = Context.make(name, args, steps)
    with interrupts.caught():
        code, error = _outcome(context, work)
    if error is not None:
        print_error(name, error)
    if args.json and code is not None:
        _print_json(context, code, error)
    return int(code or 0)


def _outcome(context: Context, work: Callable[[Context], int | None]) -> tuple[ExitCode | None, TesseraError | None]:
    """How the work ended; no exit code where nobody reads the output any more."""
    try:
        with interrupts.raised():
            code = ExitCode(work(context) or 0)
            sys.stdout.flush()
            return code, None
    except BrokenPipeError:
        # The reader of our output went away (| head): nothing to tell it, and no flush at exit either.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return None, None
    except (Exception, KeyboardInterrupt) as fault:
        error = _explain(context.name, fault)
        return error.code, error


def _explain(name: str, fault: BaseException) -> TesseraError:
    # What fails after an interrupt fails because of it: Python's own locks, for one, end in a RuntimeError.
    if isinstance(fault, KeyboardInterrupt) or interrupts.seen():
        return TesseraError("interrupted; no output file was left half-written", ExitCode.INTERRUPTED)
    if isinstance(fault, TesseraError):
        return fault
    if isinstance(fault, MemoryError):
        return TesseraError("out of memory", hint="use a smaller input shape, or a machine with more memory")
    return _internal(name, fault)  # the last line of defence: never a stack trace on the screen


def print_error(name: str, error: TesseraError) -> None:
    """The message, its details and what to do, on stderr."""
    print(f"{name}: error: {error.message}", file=sys.stderr)
    for line in error.details:
        print(f"    {line}", file=sys.stderr)
    if error.hint:
        print(f"  -> {error.hint}", file=sys.stderr)


def _internal(name: str, fault: BaseException) -> TesseraError:
    text = f"{name} {__version__}\narguments: {sys.argv[1:]}\n\n" + "".join(traceback.format_exception(fault))
    try:
        handle, path = tempfile.mkstemp(prefix=f"tessera-{name}-", suffix=".txt", dir=Path.cwd())
    except OSError:
        handle, path = tempfile.mkstemp(prefix=f"tessera-{name}-", suffix=".txt")
    try:
        with os.fdopen(handle, "w") as file:
            file.write(text)
    except OSError as error:  # the disk is full, say
        os.unlink(path)
        path = f"the command and its input (its trace could not be saved: {error.strerror})"
    return TesseraError(f"a fault in Tessera itself: {type(fault).__name__}: {fault}", ExitCode.INTERNAL,
                        hint=f"please report it with {path}")


def _print_json(context: Context, code: int, error: TesseraError | None) -> None:
    document = {
        "schema_version": 1, "tool": context.name, "tool_version": __version__, "exit_code": int(code),
        "status": "ok" if code == 0 else "error", "error": error.as_dict() if error else None,
        "warnings": context.report.warnings, "steps": context.report.steps, **context.result,
    }
    print(json.dumps(document, indent=1, allow_nan=False, default=str))
