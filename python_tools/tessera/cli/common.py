# SPDX-License-Identifier: Apache-2.0
"""What every command does the same way: flags, errors, exit codes, outputs, --json, interrupts, closed pipes."""
from __future__ import annotations

import argparse
import contextlib
import json
import math
import os
import re
import sys
import tempfile
import traceback
from dataclasses import dataclass, field
from typing import Any, Callable, Sequence

from .. import __version__, interrupts, memory
from ..compile_session import session
from ..errors import ExitCode, TesseraError
from ..files import NO_NAME, NO_ROOM, room_hint
from ..outputs import Outputs
from ..programs import lacked_descriptor
from ..progress import Report
from ..scratch import without_scratch


MOST = 2**31 - 1  # of what a flag counts


class Parser(argparse.ArgumentParser):
    """argparse with our exit code for wrong flags, no guessing of abbreviated ones, '-' as good as '_' in their
    names, and --version. Parsers of verbs are of the same class."""

    def __init__(self, prog: str, description: str = "", epilog: str = "", **more: Any) -> None:
        more = {"formatter_class": argparse.RawDescriptionHelpFormatter, **more, "allow_abbrev": False}
        super().__init__(prog=prog, description=description, epilog=epilog, **more)
        self.add_argument("-V", "--version", action="version", version=f"{prog.split()[0]} {__version__}")

    def add_common(self) -> "Parser":
        """Adds --json and --quiet."""
        self.add_argument("--json", action="store_true", help="print one JSON object on stdout, all text on stderr")
        self.add_argument("-q", "--quiet", action="store_true", help="print errors only")
        return self

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Of flags that this parser has under the other spelling the name is changed; --a-b and --a_b are the same
        flag."""
        names = {name.replace("-", "_"): name for name in self._option_string_actions if name.startswith("--")}
        words, is_flag = [], True
        for word in sys.argv[1:] if args is None else args:
            is_flag = is_flag and word != "--"
            name, equals, value = word.partition("=")
            words.append(
                names.get(name.replace("-", "_"), name) + equals + value if is_flag and word.startswith("--") else word
            )
        return super().parse_known_args(words, namespace)

    def _get_values(self, action: argparse.Action, arg_strings: list[str]) -> Any:
        """No number of a flag is infinite or no number at all: comparisons with one, and so what a flag may be, would
        hold or not without a sense. None counts more than the programs behind the commands can."""
        value = super()._get_values(action, arg_strings)  # type: ignore[misc]
        if action.type is float and isinstance(value, float) and not math.isfinite(value):
            raise argparse.ArgumentError(action, f"{arg_strings[0]} is not a finite number")
        if action.type is int and isinstance(value, int) and abs(value) > MOST:
            raise argparse.ArgumentError(action, f"{arg_strings[0]} is too large, {MOST} is the most there can be")
        return value


class _Changes(argparse.Action):
    """FIELD=VALUE[,FIELD=VALUE…], any number of times, as a list. A value may hold commas itself: a list of words."""

    def __call__(self, parser, namespace, values, option_string=None):  # type: ignore[no-untyped-def]
        changes = re.split(r",(?=[A-Za-z_][\w.]*=)", values)
        setattr(namespace, self.dest, [*getattr(namespace, self.dest), *changes])


def add_chip_set(parser: argparse.ArgumentParser, text: str) -> None:
    """The flag --chip_set; text: what the changes are for."""
    parser.add_argument(
        "--chip_set",
        "--chip-set",
        action=_Changes,
        default=[],
        metavar="FIELD=VALUE[,…]",
        help=f"{text}: lanes=16,memories.ddr.gbps=8, say; may be given several times; docs/generated/npu-chips.md "
        "lists the fields",
    )


@dataclass
class Context:
    """What a command works with: its arguments, its report on the screen and its JSON result."""

    name: str
    args: argparse.Namespace
    report: Report
    result: dict[str, Any] = field(default_factory=dict)
    outputs: Outputs = field(default_factory=Outputs)

    @staticmethod
    def make(name: str, args: argparse.Namespace, steps: int = 1) -> "Context":
        stream = sys.stderr if args.json else sys.stdout
        return Context(name, args, Report(steps, stream, quiet=args.quiet))


def run_command(
    name: str,
    parse: Callable[[Sequence[str] | None], argparse.Namespace],
    work: Callable[[Context], int | None],
    steps: int = 1,
    argv: Sequence[str] | None = None,
) -> int:
    """Parses, works, turns every outcome into an exit code and, with --json, into one JSON object.

    `work` returns an exit code (None: 0) or raises TesseraError. Anything else it raises is a fault
    of ours: exit code 70 with the stack trace saved in a file, not on the screen. The outputs appear where the code
    is 0 or 3.
    """
    try:
        _open_streams()
        args = parse(argv)
    except SystemExit as end:  # argparse: 0 after --help, 2 after a wrong flag
        return _flushed(int(end.code or 0))
    except OSError as fault:  # of --help
        print_error(name, lacked_descriptor(fault) or _no_stdout(fault))
        return _flushed(ExitCode.ERROR)
    context = Context.make(name, args, steps)
    with interrupts.caught(ends_process=True), session(), context.outputs:
        code, error = _outcome(context, work)
        code, error = _published(context, code, error)
    try:
        if error is not None:
            print_error(name, error)
        if args.json and code != ExitCode.NO_READER:
            _print_json(context, code, error)
            sys.stdout.flush()
    except BrokenPipeError:
        pass
    except OSError as fault:  # the disk is full, say; the outputs are there all the same
        code = ExitCode.ERROR
        print_error(name, _no_stdout(fault))
    return _flushed(code)


def _check_folder() -> None:
    """Raises TesseraError if the current folder was removed or its name is not UTF-8: the compiler and onnxruntime
    read it as UTF-8 text, so relative paths would not be found."""
    try:
        os.getcwd().encode()
    except FileNotFoundError:
        raise TesseraError("the current folder no longer exists", hint="cd to a folder that exists") from None
    except UnicodeEncodeError as fault:
        raise TesseraError(
            f"the name of the current folder is not UTF-8: {_bytes_of(fault)}", hint="rename it, or use another one"
        ) from None


def _no_stdout(fault: OSError) -> TesseraError:
    return TesseraError(f"failed to write to stdout: {fault.strerror}")


def _takes_no_more(fault: OSError) -> bool:
    """Whether `fault`, which names no file, is that of stdout: a further line ends likewise then."""
    try:
        print(flush=True)
    except OSError as again:
        return again.errno == fault.errno
    return False


def _open_streams() -> None:
    """Closed streams lead nowhere: the next file that is opened would take a stream's place, and messages go there."""
    while (descriptor := os.open(os.devnull, os.O_RDWR)) <= 2:
        os.set_inheritable(descriptor, True)
    os.close(descriptor)
    sys.stdin = sys.stdin or open(0, closefd=False)
    sys.stdout = sys.stdout or open(1, "w", closefd=False)
    sys.stderr = sys.stderr or open(2, "w", closefd=False)
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(errors="backslashreplace")  # type: ignore # names of files and tensors may be no UTF-8


def _flushed(code: int) -> int:
    """The code, once all is written that can be; so that the interpreter's end has nothing to complain of."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
    return int(code)


def _outcome(context: Context, work: Callable[[Context], int | None]) -> tuple[ExitCode, TesseraError | None]:
    """How the work ended."""
    try:
        with interrupts.raised():
            _check_folder()
            code = ExitCode(work(context) or 0)
            sys.stdout.flush()
            return code, None
    except BrokenPipeError:
        return ExitCode.NO_READER, None
    except (Exception, KeyboardInterrupt) as fault:
        error = _explain(context, fault)
        return error.code, error


def _published(context: Context, code: ExitCode, error: TesseraError | None) -> tuple[ExitCode, TesseraError | None]:
    """The same where the outputs have appeared, if they are to."""
    if code not in (ExitCode.OK, ExitCode.ACCURACY):
        return code, error
    try:
        context.outputs.publish()
    except Exception as fault:
        error = _explain(context, fault)
        return error.code, error
    return code, error


def _explain(context: Context, fault: BaseException) -> TesseraError:
    # What fails after an interrupt fails because of it: Python's own locks, for one, end in a RuntimeError.
    if isinstance(fault, KeyboardInterrupt) or interrupts.seen():
        return TesseraError("interrupted; no output file was written", ExitCode.INTERRUPTED)
    if isinstance(fault, TesseraError):
        return _for_people(fault)
    if memory.lacks(fault):
        doing = str(context.report.steps[-1]["name"]) if context.report.steps else ""
        return memory.error(doing, f"{type(fault).__name__}: {fault}" if str(fault) else "")
    if error := lacked_descriptor(fault):
        return error
    if isinstance(fault, OSError) and fault.errno in NO_ROOM and not fault.filename and _takes_no_more(fault):
        return _no_stdout(fault)
    if isinstance(fault, OSError) and fault.errno in NO_ROOM:
        where = fault.filename or tempfile.gettempdir()
        return TesseraError(f"failed to write {where}: {fault.strerror}", hint=room_hint(where, fault))
    if isinstance(fault, FileNotFoundError) and "temporary directory" in str(fault):  # of tempfile, which names none
        return TesseraError("no folder for temporary files can be written", hint="let TMPDIR name one that can")
    if isinstance(fault, OSError) and fault.errno in NO_NAME:
        return TesseraError(f"{fault.filename}: {fault.strerror}")
    if isinstance(fault, UnicodeError):
        return TesseraError(f"a name or a text is no UTF-8: {_bytes_of(fault)}", hint="give it another name")
    return _internal(context.name, fault)  # the last line of defence: never a stack trace on the screen


def _bytes_of(fault: UnicodeError) -> str:
    """The text at fault, shortened, in characters that can be shown."""
    return ascii(getattr(fault, "object", str(fault)))[:100]


def _for_people(error: TesseraError) -> TesseraError:
    """The same about the user's files, not those that stand for them until the end; with what to do where there is no
    room."""
    named = re.search(r"(?:failed to|cannot) write '?([^':]+)", error.message)
    hint = error.hint or room_hint(named.group(1) if named else ".", error.message)
    return TesseraError(
        without_scratch(error.message), error.code, without_scratch(hint), list(map(without_scratch, error.details))
    )


def print_error(name: str, error: TesseraError) -> None:
    """The message, its details and what to do, on stderr."""
    print(f"{name}: error: {error.message}", file=sys.stderr)
    for line in error.details:
        print(f"    {line}", file=sys.stderr)
    if error.hint:
        print(f"  -> {error.hint}", file=sys.stderr)


def _internal(name: str, fault: BaseException) -> TesseraError:
    text = f"{name} {__version__}\narguments: {sys.argv[1:]}\n\n" + "".join(
        traceback.format_exception(type(fault), fault, fault.__traceback__)
    )
    try:
        handle, path = tempfile.mkstemp(prefix=f"tessera-{name}-", suffix=".txt", dir=os.getcwd())
    except OSError:
        handle, path = tempfile.mkstemp(prefix=f"tessera-{name}-", suffix=".txt")
    try:
        with os.fdopen(handle, "w", errors="backslashreplace") as file:
            file.write(text)
    except OSError as error:  # the disk is full, say
        os.unlink(path)
        path = f"the command and its input (its trace could not be saved: {error.strerror})"
    return TesseraError(
        f"a fault in Tessera itself: {type(fault).__name__}: {fault}",
        ExitCode.INTERNAL,
        hint=f"please report it with {path}",
    )


def _print_json(context: Context, code: int, error: TesseraError | None) -> None:
    document = {
        "schema_version": 1,
        "tool": context.name,
        "tool_version": __version__,
        "exit_code": int(code),
        "status": "ok" if code == 0 else "error",
        "error": error.as_dict() if error else None,
        "warnings": context.report.warnings,
        "steps": context.report.steps,
        **context.result,
    }
    print(json.dumps(document, indent=1, allow_nan=False, default=str))
