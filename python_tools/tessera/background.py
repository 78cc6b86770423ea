# SPDX-License-Identifier: Apache-2.0
"""Work in other threads that an interrupt of the main thread cannot deadlock.

An interrupt (interrupts.py) is raised between any two steps of the main thread, and so also inside Python's Condition
and concurrent.futures, between taking a lock and entering the block that releases it. The next thread that wants this
lock then waits forever, and so does every thread that joins it. Here interrupts are delayed while threads start and are
joined, and the only other lock that the main thread takes is one that no thread takes after it.
"""
from __future__ import annotations

import contextlib
import os
import threading
from typing import Callable, Generic, Iterable, Iterator, Sequence, TypeVar

from . import interrupts

T = TypeVar("T")
R = TypeVar("R")


def usable_cores() -> int:
    return len(os.sched_getaffinity(0))


def _nothing() -> None:
    pass


class Background(Generic[R]):
    """The future result of a job that runs in another thread."""

    def __init__(self, job: Callable[[], R]) -> None:
        self._job = job
        self._failure: BaseException | None = None
        self._ended = False
        self._running = threading.Lock()
        self._running.acquire()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        try:
            self._result = self._job()
        except BaseException as failure:  # raised again by result()
            self._failure = failure
        self._ended = True
        self._running.release()

    def result(self) -> R:
        """Waits for the job and returns its result; raises what the job raised. An interrupt ends the wait, not the
        job."""
        if not self._ended:
            self._running.acquire()
        if self._failure is not None:
            raise self._failure
        return self._result

    def join(self) -> None:
        self._thread.join()


@contextlib.contextmanager
def running(jobs: Sequence[Callable[[], R]], stop: Callable[[], None] = _nothing) -> Iterator[list[Background[R]]]:
    """Runs each job in a thread of its own during the block, and joins all threads at its end. If the block fails,
    calls `stop`, which should make the jobs end soon."""
    with interrupts.held():
        started: list[Background[R]] = []
        try:
            started += [Background(job) for job in jobs]
            with interrupts.raised():
                yield started
        except BaseException:
            stop()
            raise
        finally:
            for background in started:
                background.join()


def each(function: Callable[[T], R], items: Iterable[T], stop: Callable[[], None] = _nothing) -> list[R]:
    """Returns the function's result for every item, in order, computed on as many threads as there are cores. After a
    failure or an interrupt no further item is started, and `stop` is called to make the running ones end soon."""
    listed = list(items)
    results: dict[int, R] = {}
    left = iter(range(len(listed)))  # next() is one step of Python: no two threads get the same index
    stopped = False

    def work() -> None:
        nonlocal stopped
        for index in left:
            if stopped:
                return
            try:
                results[index] = function(listed[index])
            except BaseException:
                stopped = True
                raise

    def end() -> None:
        nonlocal stopped
        stopped = True
        stop()

    with running([work] * min(usable_cores(), len(listed)), end) as workers:
        for worker in workers:
            worker.result()
    return [results[index] for index in range(len(listed))]
