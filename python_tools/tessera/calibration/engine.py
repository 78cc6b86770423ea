# SPDX-License-Identifier: Apache-2.0
"""Where chunks of samples are worked on: in this process, in worker processes, or on Dask workers."""
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
from .worker import Job, Question, Result, Stretch, run_chunk

R = TypeVar("R")
Task = tuple[Sequence[Sample], Optional[Question]]
"""A chunk of samples, and what is asked on each of them; None: they are observed."""


class Engine:
    """Here and now, one chunk after the other."""

    workers = 1

    def __init__(self, job: Job) -> None:
        self._job = job

    def measure_at(self, stretches: Sequence[Stretch]) -> None:
        """Questions are answered with the gates of `stretches` from now on."""
        self._job = replace(self._job, stretches=tuple(stretches))

    @property
    def gated(self) -> set[str]:
        """Sources whose errors are measured at gates."""
        return {source for stretch in self._job.stretches for source, _ in stretch.members}

    def to_the_outputs(self, sources: Collection[str]) -> None:
        """The errors of these are measured there from now on."""
        self._job = replace(self._job, loud=self._job.loud | frozenset(sources))

    def run(self, tasks: Iterable[Task]) -> Iterator[Result]:
        """One result for each task, in whatever order they are done. Raises the first failure a worker reports."""
        for chunk, question in tasks:
            yield _checked(run_chunk(self._job, chunk, question))

    def map(self, function: Callable[..., R], *items: Iterable[Any]) -> Iterator[R]:
        """Of every item (several: of the first of each, and so on), in their order. What goes to and fro must be
        picklable."""
        return map(function, *items)


class PoolEngine(Engine):
    """On worker processes of this machine. Few chunks are under way at once, so memory does not grow with their
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
    """Workers of a Dask scheduler. The model travels to them; files of the data set must have the same path there."""

    def __init__(self, job: Job, address: str) -> None:
        try:
            from distributed import Client
        except ImportError as error:
            raise TesseraError(
                "--distributed needs Dask, which is not installed",
                hint="apt install python3-distributed, or pip install distributed",
            ) from error
        super().__init__(replace(job, model=Path(cast(str, job.model)).read_bytes()))
        try:
            _knock(address)
            self._client = Client(address, timeout=60, set_as_default=False)
        except (OSError, ValueError, TimeoutError) as error:
            raise TesseraError(
                f"--distributed {address}: no Dask scheduler answers there: {error}",
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
                f"--distributed {address}: the scheduler has no worker", hint=f"start some: dask worker {address}"
            )

    def run(self, tasks: Iterable[Task]) -> Iterator[Result]:
        job = self._client.scatter(self._job, broadcast=True, hash=False)
        pending: deque = deque()
        for chunk, question in tasks:
            # Not pure: equal chunks of another run are other work.
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
    """Raises OSError where a TCP address refuses for so long: Dask would go on asking for as long as it waits for a
    slow network."""
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
    """Newer versions of Dask list 5 workers only unless told otherwise."""
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
