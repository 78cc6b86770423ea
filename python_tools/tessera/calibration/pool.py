# SPDX-License-Identifier: Apache-2.0
"""Worker processes on this machine, each at the other end of a pipe.

The parent has one thread and no locks. It sends a worker the next task only after the answer to the last one, so no
pipe is ever written from both ends, and it waits only for pipes. If a worker ends for whatever reason, its pipe reports
the end. (The distributing thread of concurrent.futures' pool can wait forever: for the rest of an answer whose worker
was killed, for a queue that nobody reads any more, or for a lock that an interrupt left locked.)
"""
from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import traceback
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection, wait
from typing import Callable, Iterable, Iterator, TypeVar, cast

from .. import interrupts
from ..errors import ExitCode, TesseraError
from ..programs import end_with_parent

R = TypeVar("R")


@contextlib.contextmanager
def _without_sigint() -> Iterator[None]:
    """Starts processes in this block with SIGINT blocked. A terminal sends SIGINT to all processes; workers would each
    print a stack trace, most of them while still loading, although the parent ends them anyway. The parent receives a
    pending SIGINT after the block."""
    resource_tracker.ensure_running()  # multiprocessing would start it with the first process and then unblock SIGINT
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _serve(tasks: Connection, parent: int) -> None:
    """Runs in the worker: answers tasks until the parent closes the pipe, and ends with a killed parent."""
    end_with_parent(parent)
    import tessera.runtime  # noqa: F401: the slowest import

    try:
        while True:
            function, arguments = tasks.recv()
            try:
                answer = True, function(*arguments)
            except Exception as failure:  # the parent raises it
                if hasattr(failure, "add_note"):  # from Python 3.11 on
                    failure.add_note("in a worker process: " + traceback.format_exc())
                answer = False, failure
            tasks.send(answer)
    except (EOFError, OSError):
        pass


@contextlib.contextmanager
def _reports_end() -> Iterator[None]:
    """Converts the end of a worker's pipe to TesseraError; within an answer this end is a plain OSError."""
    try:
        yield
    except (EOFError, OSError) as error:
        raise TesseraError(
            "a worker process was killed, most likely because memory ran out",
            ExitCode.OUT_OF_MEMORY,
            hint="use fewer --workers, and continue with --resume",
        ) from error


class Pool:
    """Worker processes, which load their modules while the caller does other work. After a failed run the pool can only
    be closed."""

    def __init__(self, workers: int) -> None:
        self.workers = workers
        # With fork a worker would inherit the locked locks of threads in loaded libraries.
        context = multiprocessing.get_context("spawn")
        self._processes: dict[Connection, multiprocessing.process.BaseProcess] = {}
        with interrupts.held(), _without_sigint():
            for _ in range(workers):
                ours, theirs = context.Pipe()
                process = context.Process(target=_serve, args=(theirs, os.getpid()), daemon=True)
                process.start()
                theirs.close()  # only the worker holds its end now, so the pipe ends with the worker
                self._processes[ours] = process

    def run(self, function: Callable[..., R], tasks: Iterable[tuple]) -> Iterator[tuple[int, R]]:
        """Yields (number, result) of the function for each task's arguments, in order of completion. Arguments and
        results must be picklable. Raises what the function raised, and TesseraError if a worker ended. The next task is
        prepared ahead, so workers do not wait for it."""
        left = enumerate(tasks)
        under_way: dict[Connection, int] = {}
        free, upcoming = list(self._processes), next(left, None)
        while upcoming or under_way:
            while free and upcoming:
                number, arguments = upcoming
                pipe = free.pop()
                with _reports_end():
                    pipe.send((function, arguments))
                under_way[pipe] = number
                upcoming = next(left, None)
            for pipe in cast("list[Connection]", wait(list(under_way))):
                with _reports_end():
                    succeeded, answer = pipe.recv()
                number = under_way.pop(pipe)
                free.append(pipe)
                if not succeeded:
                    raise answer
                yield number, answer

    def map(self, function: Callable[..., R], tasks: Iterable[tuple]) -> Iterator[R]:
        """Yields the results of run() in the tasks' order."""
        early: dict[int, R] = {}
        wanted = 0
        for number, answer in self.run(function, tasks):
            early[number] = answer
            while wanted in early:
                yield early.pop(wanted)
                wanted += 1

    def close(self) -> None:
        """Kills all workers at once; they have nothing to clean up."""
        with interrupts.held():
            for pipe, process in self._processes.items():
                pipe.close()
                process.kill()
            for process in self._processes.values():
                process.join()
