# SPDX-License-Identifier: Apache-2.0
"""Common parts of all commands: flags, errors, exit codes, outputs, --json, interrupts, closed pipes."""
from __future__ import annotations

import argparse
import json
import math
import os
import re
import sys
import tempfile
import traceback
from dataclasses import dataclass, field
from typing import Any, Callable, Generic, Sequence, TypeVar

from .. import __version__, custom_ops, interrupts, memory
from ..compile_session import session
from ..errors import ExitCode, TesseraError
from ..files import NO_NAME, NO_ROOM, room_hint
from ..outputs import Outputs
from ..programs import lacked_descriptor
from ..progress import Report
from ..scratch import without_scratch


MOST = 2**31 - 1  # limit of integer flags


class Parser(argparse.ArgumentParser):
    """An argument parser with Tessera's exit code for wrong flags, without abbreviations, with '-' and '_' equivalent
    in flag names, and with --version. Parsers of verbs use the same class."""

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
        """Changes each flag to the spelling that this parser knows; --a-b and --a_b are the same flag."""
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
        """Rejects infinite and NaN numbers, which would make comparisons meaningless, and integers that the programs
        behind the commands cannot hold."""
        value = super()._get_values(action, arg_strings)  # type: ignore[misc]
        if action.type is float and isinstance(value, float) and not math.isfinite(value):
            raise argparse.ArgumentError(action, f"{arg_strings[0]} is not a finite number")
        if action.type is int and isinstance(value, int) and abs(value) > MOST:
            raise argparse.ArgumentError(action, f"{arg_strings[0]} is too large; the maximum is {MOST}")
        return value


class _Changes(argparse.Action):
    """Collects FIELD=VALUE[,FIELD=VALUE…], given any number of times, into a list. A value may hold commas (a
    list of words)."""

    def __call__(self, parser, namespace, values, option_string=None):  # type: ignore[no-untyped-def]
        changes = re.split(r",(?=[A-Za-z_][\w.]*=)", values)
        setattr(namespace, self.dest, [*getattr(namespace, self.dest), *changes])


def add_chip_set(parser: argparse.ArgumentParser, text: str) -> argparse.Action:
    """Adds the flag --chip_set. text: the purpose of the changes."""
    return parser.add_argument(
        "--chip_set",
        "--chip-set",
        action=_Changes,
        default=[],
        metavar="FIELD=VALUE[,…]",
        help=f"{text}, e.g. lanes=16,memories.ddr.gbps=8; may be given several times; docs/generated lists the "
        "fields",
    )


O = TypeVar("O", bound=argparse.Namespace)


@dataclass
class Context(Generic[O]):
    """The state of a running command: its arguments, its report on the screen and its JSON result. O: the class that
    declares the command's flags with their types."""

    name: str
    args: O
    report: Report
    result: dict[str, Any] = field(default_factory=dict)
    outputs: Outputs = field(default_factory=Outputs)

    @staticmethod
    def make(name: str, args: O, steps: int = 1) -> "Context[O]":
        stream = sys.stderr if args.json else sys.stdout
        return Context(name, args, Report(steps, stream, quiet=args.quiet))


def run_command(
    name: str,
    parse: Callable[[Sequence[str] | None], O],
    work: Callable[[Context[O]], int | None],
    steps: int = 1,
    argv: Sequence[str] | None = None,
) -> int:
    """Parses the flags, does the work, and turns every outcome into an exit code and, with --json, one JSON object.

    `work` returns an exit code (None: 0) or raises TesseraError. Any other exception is a fault in Tessera: exit code
    70, with the stack trace saved in a file instead of printed. The outputs appear if the code is 0 or 3.
    """
    try:
        _open_streams()
        args = parse(argv)
    except SystemExit as end:  # argparse: 0 after --help, 2 after a wrong flag
        return _flushed(int(end.code or 0))
    except OSError as fault:  # from --help
        print_error(name, lacked_descriptor(fault) or _no_stdout(fault))
        return _flushed(ExitCode.ERROR)
    context = Context.make(name, args, steps)
    libraries = custom_ops.named(getattr(args, "custom_ops", []))
    with interrupts.caught(ends_process=True), libraries, session(), context.outputs:
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
    except OSError as fault:  # e.g. the disk is full; the outputs exist all the same
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
    """Returns true if `fault`, which names no file, came from stdout: printing again then fails in the same way."""
    try:
        print(flush=True)
    except OSError as again:
        return again.errno == fault.errno
    return False


def _open_streams() -> None:
    """Opens closed standard streams on /dev/null; the next opened file would otherwise take a stream's descriptor and
    receive messages."""
    while (descriptor := os.open(os.devnull, os.O_RDWR)) <= 2:
        os.set_inheritable(descriptor, True)
    os.close(descriptor)
    sys.stdin = sys.stdin or open(0, closefd=False)
    sys.stdout = sys.stdout or open(1, "w", closefd=False)
    sys.stderr = sys.stderr or open(2, "w", closefd=False)
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(errors="backslashreplace")  # type: ignore # names of files and tensors may not be UTF-8


def _flushed(code: int) -> int:
    """Flushes the streams as far as possible and returns the code, so that the interpreter does not report errors at
    exit."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
    return int(code)


def _outcome(context: Context, work: Callable[[Context], int | None]) -> tuple[ExitCode, TesseraError | None]:
    """Does the work and returns its exit code and error."""
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
    """Publishes the outputs if the code allows it; returns the code and error afterwards."""
    if code not in (ExitCode.OK, ExitCode.ACCURACY):
        return code, error
    try:
        context.outputs.publish()
    except Exception as fault:
        error = _explain(context, fault)
        return error.code, error
    return code, error


def _explain(context: Context, fault: BaseException) -> TesseraError:
    # A failure after an interrupt is caused by it; Python's own locks, for example, raise RuntimeError.
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
    if isinstance(fault, FileNotFoundError) and "temporary directory" in str(fault):  # from tempfile
        return TesseraError("no writable folder for temporary files was found", hint="set TMPDIR to a writable folder")
    if isinstance(fault, OSError) and fault.errno in NO_NAME:
        return TesseraError(f"{fault.filename}: {fault.strerror}")
    if isinstance(fault, UnicodeError):
        return TesseraError(f"a name or text is not UTF-8: {_bytes_of(fault)}", hint="rename it")
    return _internal(context.name, fault)  # the last line of defence: never print a stack trace


def _bytes_of(fault: UnicodeError) -> str:
    """Returns the offending text, shortened and in printable characters."""
    return ascii(getattr(fault, "object", str(fault)))[:100]


def _for_people(error: TesseraError) -> TesseraError:
    """Rewrites the error to name the user's files instead of their temporary stand-ins, and adds a hint if the disk is
    full."""
    named = re.search(r"(?:failed to|cannot) write '?([^':]+)", error.message)
    hint = error.hint or room_hint(named.group(1) if named else ".", error.message)
    return TesseraError(
        without_scratch(error.message), error.code, without_scratch(hint), list(map(without_scratch, error.details))
    )


def print_error(name: str, error: TesseraError) -> None:
    """Prints the message, its details and the hint on stderr."""
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
    except OSError as error:  # e.g. the disk is full
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
