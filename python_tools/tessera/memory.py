# SPDX-License-Identifier: Apache-2.0
"""Errors of commands that run out of memory, and how they are recognised.

The C++ programs have the equivalent in bmodel_format/tools/Program.h.
"""
from __future__ import annotations

import errno
import os
import resource

from .errors import ExitCode, TesseraError

HINT = (
    "raise the limit, make the model's inputs smaller, use fewer jobs, threads or workers, "
    "or a machine with more memory"
)
# From libraries without an exception for it, and from the system for mappings and threads.
_WORDS = (
    "bad_alloc",
    "cannot allocate memory",
    "failed to allocate memory",
    "failed to map segment",
    "can't start new thread",
    "cannot start new thread",
    "out of memory",
    "not enough memory",
    "defaultcpuallocator",
)


def mentions_lack(text: str) -> bool:
    """Returns true if a message of another library reports a lack of memory."""
    lower = text.lower()
    return any(word in lower for word in _WORDS)


def lacks(fault: BaseException | None) -> bool:
    """Returns true if an exception reports a lack of memory, or is the consequence of one that does."""
    for _ in range(10):
        if fault is None:
            return False
        if isinstance(fault, MemoryError) or (isinstance(fault, OSError) and fault.errno == errno.ENOMEM):
            return True
        if isinstance(fault, (ImportError, RuntimeError, OSError)) and mentions_lack(str(fault)):
            return True
        fault = fault.__cause__ or fault.__context__
    return False


def error(doing: str = "", what: str = "") -> TesseraError:
    """Returns the error for a lack of memory. doing: the current step. what: the report about the missing memory."""
    where = f" in '{doing}'" if doing else ""
    return TesseraError(
        f"out of memory{where}{': ' + what if what else ''}: the process has {describe()}",
        ExitCode.OUT_OF_MEMORY,
        hint=HINT,
    )


def of_killed_child(program: str) -> TesseraError:
    """Returns the error for a child killed by SIGKILL, which only a person or a kernel without memory sends."""
    return TesseraError(
        f"{program} was killed by SIGKILL: most likely the system was out of memory ({describe_limit()})",
        ExitCode.OUT_OF_MEMORY,
        hint=HINT,
    )


def describe() -> str:
    """Returns e.g. "512 MiB of address space, 300 MiB of them in memory; the limit is 600 MiB (ulimit -v)"."""
    space, resident = _status("VmSize") >> 10, _status("VmRSS") >> 10
    return f"{space} MiB of address space, {resident} MiB of them in memory; {describe_limit()}"


def describe_limit() -> str:
    """Describes the smallest limit on the process's memory."""
    for kind, text in (
        (resource.RLIMIT_AS, "the limit is {} MiB (ulimit -v)"),
        (resource.RLIMIT_DATA, "the limit is {} MiB of data (ulimit -d)"),
    ):
        limit = resource.getrlimit(kind)[0]
        if limit != resource.RLIM_INFINITY:
            return text.format(limit >> 20)
    machine = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    group = _group_limit()
    return (
        f"the control group allows {group >> 20} MiB"
        if group is not None and group < machine
        else f"the machine has {machine >> 20} MiB"
    )


def _group_limit() -> int | None:
    for path in ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"):
        try:
            with open(path, encoding="ascii") as file:
                return int(file.read())
        except (OSError, ValueError):
            continue
    return None


def _status(key: str) -> int:
    """Returns a value of this process in KiB; 0 if unknown."""
    try:
        with open("/proc/self/status", encoding="ascii", errors="replace") as file:
            for line in file:
                if line.startswith(key + ":"):
                    return int(line.split()[1])
    except (OSError, ValueError, MemoryError):
        pass
    return 0
