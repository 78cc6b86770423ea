# SPDX-License-Identifier: Apache-2.0
"""What a command says where the system gives it no more memory, and how that is known.

The C++ programs have the same in bmodel_format/tools/Program.h.
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
# Of libraries that have no exception of their own for it, and of the system for mappings and threads.
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


def told_in(text: str) -> bool:
    """Whether a message of another library is about memory it did not get."""
    lower = text.lower()
    return any(word in lower for word in _WORDS)


def lacks(fault: BaseException | None) -> bool:
    """Whether an exception means that the system gave no memory, or is the consequence of one that does."""
    for _ in range(10):
        if fault is None:
            return False
        if isinstance(fault, MemoryError) or (isinstance(fault, OSError) and fault.errno == errno.ENOMEM):
            return True
        if isinstance(fault, (ImportError, RuntimeError, OSError)) and told_in(str(fault)):
            return True
        fault = fault.__cause__ or fault.__context__
    return False


def error(doing: str = "", what: str = "") -> TesseraError:
    """doing: the step under way. what: which memory could not be had, of whatever says it."""
    where = f" in '{doing}'" if doing else ""
    return TesseraError(
        f"out of memory{where}{': ' + what if what else ''}: the process has {describe()}",
        ExitCode.OUT_OF_MEMORY,
        hint=HINT,
    )


def of_killed_child(program: str) -> TesseraError:
    """A child that got SIGKILL, which nobody but the kernel sends that has no memory left, or a person."""
    return TesseraError(
        f"{program} was killed by SIGKILL: most likely the system was out of memory ({describe_limit()})",
        ExitCode.OUT_OF_MEMORY,
        hint=HINT,
    )


def describe() -> str:
    """ "512 MiB of address space, 300 MiB of them in memory; the limit is 600 MiB (ulimit -v)"."""
    space, resident = _status("VmSize") >> 10, _status("VmRSS") >> 10
    return f"{space} MiB of address space, {resident} MiB of them in memory; {describe_limit()}"


def describe_limit() -> str:
    """The least of what keeps a process from more memory."""
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
    """KiB, of this process; 0 where it is not known."""
    try:
        with open("/proc/self/status", encoding="ascii", errors="replace") as file:
            for line in file:
                if line.startswith(key + ":"):
                    return int(line.split()[1])
    except (OSError, ValueError, MemoryError):
        pass
    return 0
