# SPDX-License-Identifier: Apache-2.0
"""The C++ programs as children of a command: finding them, tying their life to this process, and interpreting how they
ended."""
from __future__ import annotations

import ctypes
import errno
import json
import os
import resource
import shutil
import signal
import subprocess
from pathlib import Path
from typing import Any, Callable, Mapping

from . import memory
from .errors import ExitCode, TesseraError

_PR_SET_PDEATHSIG = 1  # linux/prctl.h


def find_program(name: str) -> str:
    """Returns the path of a program of this build or installation. Raises TesseraError if it is missing."""
    package = Path(__file__).absolute().parent
    for folder in (package / "bin", package.parent.parent / "bin"):
        if (folder / name).is_file():
            return str(folder / name)
    found = shutil.which(name)
    if found is None:
        raise TesseraError(
            f"failed to find the program {name}", hint="build it with ./dev build, or pip install the wheel"
        )
    return found


def environment() -> Mapping[str, str]:
    """Returns the environment for a C++ program that makes it end when this process ends, even if that is killed
    (bmodel_format/tools/Program.h). The program also ends with the thread that starts it, which therefore has to wait
    for it."""
    return {**os.environ, "TESSERA_PARENT": str(os.getpid())}


def end_with_parent(parent: int) -> None:
    """Ties a Python process to `parent`, which has just started it; call this first."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # the parent ended before
        os._exit(128 + signal.SIGKILL)


def run_program(name: str, *arguments: str) -> "subprocess.CompletedProcess[str]":
    """Runs a program that prints its answer, to its end. Exit codes 0, 1, 2 and 4 are returned to the caller; raises
    TesseraError for all others."""
    try:
        result = subprocess.run(
            [find_program(name), *arguments], capture_output=True, text=True, errors="replace", env=environment()
        )
    except OSError as error:
        raise failed_start(name, error) from error
    if cause := external_cause(name, result.returncode, result.stderr):
        raise cause
    if result.returncode not in (ExitCode.OK, ExitCode.ERROR, ExitCode.USAGE, ExitCode.UNSUPPORTED):
        raise TesseraError(
            f"{name} {how_it_ended(result.returncode)}", ExitCode.INTERNAL, details=result.stderr.splitlines()[-5:]
        )
    return result


def output_of(name: str, *arguments: str, error: Callable[[str, ExitCode], TesseraError]) -> str:
    """Returns what a program prints. error: converts the message of a program that rejects its input."""
    result = run_program(name, *arguments)
    if result.returncode in (ExitCode.ERROR, ExitCode.UNSUPPORTED):
        raise error(result.stderr.strip(), ExitCode(result.returncode))
    if result.returncode != 0:
        raise TesseraError(
            f"{name} {how_it_ended(result.returncode)}", ExitCode.INTERNAL, details=result.stderr.splitlines()[-5:]
        )
    return result.stdout


def dump(*arguments: str) -> str:
    """Returns the output of bmodel-dump. Raises TesseraError with its message."""

    def error(text: str, code: ExitCode) -> TesseraError:
        file = arguments[-1] if arguments[0] != "--segment" else arguments[2]
        hint = "get a fresh copy of the file, or compile it again"
        if file.endswith((".onnx", ".mlir")):
            hint = "model_tool reads compiled models: compile the file with model_transform and model_deploy"
        return TesseraError(f"{file}: {text}", hint=hint)

    return output_of("bmodel-dump", *arguments, error=error)


def read_model(path: str | Path) -> dict[str, Any]:
    """Returns a .bmodel as described by bmodel-dump."""
    model: dict[str, Any] = json.loads(dump(str(path)))
    return model


def failed_start(name: str, error: OSError) -> TesseraError:
    if memory.lacks(error):
        return memory.error(what=f"failed to start {name}: {error.strerror}")
    if lack := lacked_descriptor(error):
        return TesseraError(f"failed to start {name}: {lack.message}", hint=lack.hint)
    return TesseraError(f"failed to start {name}: {error.strerror}", ExitCode.INTERNAL)


def lacked_descriptor(fault: BaseException) -> TesseraError | None:
    """Returns the error to report if `fault` means that the system gave no more file descriptors or processes; None
    for any other fault."""
    if not isinstance(fault, OSError):
        return None
    if fault.errno in (errno.EMFILE, errno.ENFILE):
        limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        return TesseraError(f"too many open files: the limit is {limit}", hint="raise the limit: ulimit -n 1024")
    if fault.errno == errno.EAGAIN:
        limit = resource.getrlimit(resource.RLIMIT_NPROC)[0]
        return TesseraError(
            f"no more processes: the limit is {'none' if limit < 0 else limit}",
            hint="raise the limit (ulimit -u), or end other processes",
        )
    return None


def external_cause(name: str, code: int, stderr: str) -> TesseraError | None:
    """Returns the error to report if a program ended for lack of memory or by another process's signal; None if its
    own fault ended it."""
    if -code in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        return TesseraError(
            f"{name} {how_it_ended(code)}, which another process sent; no output file was written", ExitCode.INTERRUPTED
        )
    last = (stderr.strip().splitlines() or [""])[-1]
    if code == ExitCode.OUT_OF_MEMORY:
        return TesseraError(last or f"{name}: out of memory", ExitCode.OUT_OF_MEMORY, hint=memory.HINT)
    if code == -signal.SIGKILL:
        return memory.of_killed_child(name)
    if code == 127 and memory.mentions_lack(stderr):  # the dynamic loader
        return memory.error(what=last)
    return None


def how_it_ended(code: int) -> str:
    if code < 0:
        try:
            return f"was ended by {signal.Signals(-code).name}"
        except ValueError:
            return f"was ended by signal {-code}"
    return f"ended with exit code {code}"
