# SPDX-License-Identifier: Apache-2.0
"""Engines that process chunks of samples: in this process, in worker processes, or on Dask workers."""
from __future__ import annotations

import socket
import time
from collections import deque
from dataclasses import replace
from pathlib import Path
from typing import Any, Callable, Collection, Iterable, Iterator, Optional, Sequence, TypeVar, cast

from ..errors import ExitCode, TesseraError
from .dataset import Sample
from .pool import Pool
from .worker import Job, Question, Result, Segment, run_chunk

R = TypeVar("R")
Task = tuple[Sequence[Sample], Optional[Question]]
"""A chunk of samples and the question asked about each; with None the samples are observed."""


class Engine:
    """Processes one chunk after the other in this process."""

    workers = 1

    def __init__(self, job: Job) -> None:
        self._job = job

    def measure_at(self, segments: Sequence[Segment]) -> None:
        """Answers later questions with the accuracy thresholds (gates) of `stretches`."""
        self._job = replace(self._job, segments=tuple(segments))

    @property
    def gated(self) -> set[str]:
        """Returns the sources whose errors are measured at gates."""
        return {source for segment in self._job.segments for source, _ in segment.members}

    def to_the_outputs(self, sources: Collection[str]) -> None:
        """Measures the errors of these sources at the model's outputs from now on."""
        self._job = replace(self._job, measured_at_outputs=self._job.measured_at_outputs | frozenset(sources))

    def run(self, tasks: Iterable[Task]) -> Iterator[Result]:
        """Yields one result per task, in order of completion. Raises the first failure that a worker reports."""
        for chunk, question in tasks:
            yield _checked(run_chunk(self._job, chunk, question))

    def map(self, function: Callable[..., R], *items: Iterable[Any]) -> Iterator[R]:
        """Yields the function's result for every item, in order; several iterables are combined as by the builtin map.
        Arguments and results must be picklable."""
        return map(function, *items)


class PoolEngine(Engine):
    """Uses worker processes of this machine. Few chunks are under way at once, so memory does not grow with their
    number."""

    def __init__(self, job: Job, pool: Pool) -> None:
        super().__init__(job)
        self.workers, self._pool = pool.workers, pool

    def run(self, tasks: Iterable[Task]) -> Iterator[Result]:
        for _, result in self._pool.run(run_chunk, ((self._job, *task) for task in tasks)):
            yield _checked(result)

    def map(self, function: Callable[..., R], *items: Iterable[Any]) -> Iterator[R]:
        return self._pool.map(function, zip(*items))


class DaskEngine(Engine):
    """Uses the workers of a Dask scheduler. The model is sent to them; files of the data set must have the same path
    there."""

    def __init__(self, job: Job, address: str) -> None:
        try:
            from distributed import Client
        except ImportError as error:
            raise TesseraError(
                "--distributed requires Dask, which is not installed",
                hint="apt install python3-distributed, or pip install distributed",
            ) from error
        super().__init__(replace(job, model=Path(cast(str, job.model)).read_bytes()))
        try:
            _knock(address)
            self._client = Client(address, timeout=60, set_as_default=False)
        except (OSError, ValueError, TimeoutError) as error:
            raise TesseraError(
                f"--distributed {address}: cannot connect to a Dask scheduler: {error}",
                hint="start one: dask scheduler; and workers: dask worker ADDRESS",
            ) from error
        self.workers = (
            len(self._client.scheduler_info(n_workers=-1)["workers"])
            if _has_n_workers()
            else len(self._client.scheduler_info()["workers"])
        )
        if self.workers == 0:
            self._client.close()
            raise TesseraError(
                f"--distributed {address}: the scheduler has zero workers", hint=f"start some: dask worker {address}"
            )

    def run(self, tasks: Iterable[Task]) -> Iterator[Result]:
        job = self._client.scatter(self._job, broadcast=True, hash=False)
        pending: deque = deque()
        for chunk, question in tasks:
            # Not pure: equal chunks of another run are different work.
            pending.append(self._client.submit(run_chunk, job, list(chunk), question, pure=False))
            if len(pending) >= 2 * self.workers:
                yield self._take(pending)
        while pending:
            yield self._take(pending)

    def _take(self, pending: deque) -> Result:
        try:
            return _checked(pending.popleft().result())
        except TesseraError:
            raise
        except Exception as error:
            raise TesseraError(
                f"a Dask worker failed: {type(error).__name__}: {error}",
                hint="the workers need this version of Tessera in their Python path",
            ) from error

    def close(self) -> None:
        self._client.close()


def _knock(address: str, seconds: float = 5) -> None:
    """Raises OSError if a TCP address refuses connections for `seconds`; Dask itself would retry until its long timeout
    for slow networks."""
    scheme, _, place = address.rpartition("://")
    host, _, port = place.rpartition(":")
    if scheme not in ("", "tcp", "tls") or not port.isdigit():
        return
    end = time.monotonic() + seconds  # a scheduler may be starting at this moment
    while True:
        try:
            return socket.create_connection((host.strip("[]"), int(port)), timeout=60).close()
        except ConnectionRefusedError:
            if time.monotonic() > end:
                raise
            time.sleep(0.2)


def _has_n_workers() -> bool:
    """Returns true if scheduler_info() needs n_workers: newer versions of Dask list only 5 workers by default."""
    import inspect

    from distributed import Client

    return "n_workers" in inspect.signature(Client.scheduler_info).parameters


def _checked(result: Result) -> Result:
    if result.failure:
        raise TesseraError(
            result.failure["message"],
            ExitCode(result.failure["code"]),
            hint=result.failure["hint"],
            details=result.failure["details"],
        )
    return result
