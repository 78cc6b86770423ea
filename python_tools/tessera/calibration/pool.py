# SPDX-License-Identifier: Apache-2.0
"""Worker processes on this machine, each at the other end of a pipe.

The parent has one thread and no locks: it sends a worker its next task once the answer to the last one is there, so
no pipe is ever written to from both ends, and waits for pipes alone. A worker that ends, whatever ended it, is the
end of its pipe. (Of concurrent.futures' pool the thread that distributes the work can wait for ever: for the rest of
an answer whose worker was killed, for a queue that nobody reads any more, for a lock that an interrupt left behind.)
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
    """What starts in this block never gets SIGINT: a terminal sends it to all processes, and the parent ends its
    workers, which would print a stack trace each, most of them while they still load. To the parent itself it comes
    after the block.
    """
    resource_tracker.ensure_running()  # multiprocessing starts it with the first process and unblocks SIGINT behind it
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _serve(tasks: Connection, parent: int) -> None:
    """In the worker: answers until the parent closes the pipe; ends with it where it is killed."""
    end_with_parent(parent)
    import tessera.runtime  # noqa: F401: what takes longest to load

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
def _told_of_its_end() -> Iterator[None]:
    """Of a worker: within an answer the end of a pipe is a plain OSError."""
    try:
        yield
    except (EOFError, OSError) as error:
        raise TesseraError(
            "a worker process was ended from outside, most likely for lack of memory",
            ExitCode.OUT_OF_MEMORY,
            hint="use fewer --workers, then --resume",
        ) from error


class Pool:
    """They load what they need while the caller does something else. After a failed run it can only be closed."""

    def __init__(self, workers: int) -> None:
        self.workers = workers
        # Fork would copy the threads' locks of whatever library is loaded here.
        context = multiprocessing.get_context("spawn")
        self._processes: dict[Connection, multiprocessing.process.BaseProcess] = {}
        with interrupts.held(), _without_sigint():
            for _ in range(workers):
                ours, theirs = context.Pipe()
                process = context.Process(target=_serve, args=(theirs, os.getpid()), daemon=True)
                process.start()
                theirs.close()  # the worker alone has it now: its end is the pipe's
                self._processes[ours] = process

    def run(self, function: Callable[..., R], tasks: Iterable[tuple]) -> Iterator[tuple[int, R]]:
        """The function of each task's arguments, in whatever order they are done; with the task's number. What goes
        to and fro must be picklable. Raises what the function raised; TesseraError where a worker has ended. The next
        task is taken beforehand, so workers need not wait while it is made."""
        left = enumerate(tasks)
        under_way: dict[Connection, int] = {}
        free, upcoming = list(self._processes), next(left, None)
        while upcoming or under_way:
            while free and upcoming:
                number, arguments = upcoming
                pipe = free.pop()
                with _told_of_its_end():
                    pipe.send((function, arguments))
                under_way[pipe] = number
                upcoming = next(left, None)
            for pipe in cast("list[Connection]", wait(list(under_way))):
                with _told_of_its_end():
                    succeeded, answer = pipe.recv()
                number = under_way.pop(pipe)
                free.append(pipe)
                if not succeeded:
                    raise answer
                yield number, answer

    def map(self, function: Callable[..., R], tasks: Iterable[tuple]) -> Iterator[R]:
        """The same in the tasks' order."""
        early: dict[int, R] = {}
        wanted = 0
        for number, answer in self.run(function, tasks):
            early[number] = answer
            while wanted in early:
                yield early.pop(wanted)
                wanted += 1

    def close(self) -> None:
        """Workers have nothing to put away: they are ended wherever they are."""
        with interrupts.held():
            for pipe, process in self._processes.items():
                pipe.close()
                process.kill()
            for process in self._processes.values():
                process.join()
