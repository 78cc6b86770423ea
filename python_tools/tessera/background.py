# SPDX-License-Identifier: Apache-2.0
"""Work in other threads that an interrupt of the main thread cannot lock up.

An interrupt (interrupts.py) is raised between any two steps of the main thread, so also inside of Python's own
Condition and of concurrent.futures: between taking a lock and the block that gives it back. The thread that wants the
lock next waits for ever, and whoever joins that thread too. Here interrupts wait while threads start and are joined,
and the only lock that the main thread takes otherwise is one that nobody takes after it.
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
    """What a job in another thread will return."""

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
        except BaseException as failure:  # the one who waits gets it
            self._failure = failure
        self._ended = True
        self._running.release()

    def result(self) -> R:
        """Waits; raises what the job raised. An interrupt ends the wait, not the job."""
        if not self._ended:
            self._running.acquire()
        if self._failure is not None:
            raise self._failure
        return self._result

    def join(self) -> None:
        self._thread.join()


@contextlib.contextmanager
def running(jobs: Sequence[Callable[[], R]], stop: Callable[[], None] = _nothing) -> Iterator[list[Background[R]]]:
    """The jobs go on during the block, each in a thread of its own, and have ended behind it. Where it fails `stop`
    is called, which is to make them end soon."""
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
    """The function of every item, in their order, on as many threads as there are cores. Where one fails, or after an
    interrupt, no further item is begun; `stop` is to make those under way end soon."""
    listed = list(items)
    results: dict[int, R] = {}
    left = iter(range(len(listed)))  # its next() is one step of Python: no two threads get the same number
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
