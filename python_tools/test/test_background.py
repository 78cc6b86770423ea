# SPDX-License-Identifier: Apache-2.0
"""Tests threads and worker processes: the order of results, failures, and that neither interrupts nor lost workers
cause a deadlock."""
from __future__ import annotations

import os
import signal
import struct
import subprocess
import sys
import threading
import time
from multiprocessing.connection import Connection

import pytest

from tessera.background import each, running
from tessera.calibration.pool import Pool
from tessera.errors import TesseraError

# Runs USE in copies of the process and interrupts each of them at another step (a call or return of the main thread).
INTERRUPTED_EVERYWHERE = r"""
import faulthandler, os, signal, sys, time
from tessera import interrupts
from tessera.background import each, running
from tessera.calibration.pool import Pool

def use():
{use}

def run(at):
    steps = 0
    def step(frame, event, argument):
        nonlocal steps
        steps += 1
        if steps == at:
            os.kill(os.getpid(), signal.SIGINT)
    faulthandler.dump_traceback_later(300, exit=True)
    with interrupts.caught():
        try:
            with interrupts.raised():
                sys.setprofile(step)
                use()
                sys.setprofile(None)
        except KeyboardInterrupt:
            pass
        finally:
            sys.setprofile(None)
    return steps

def copy(at, answer):
    child = os.fork()
    if child == 0:
        os.write(answer, b"%d\n" % run(at))
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])

if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    ours, theirs = os.pipe()
    assert copy(0, theirs) == 0
    steps, stride = int(os.read(ours, 100)), {stride}
    for at in range(1, steps, stride):
        if copy(at, theirs) != 0:
            sys.exit(f"hangs when interrupted at step {{at}} of {{steps}}")
    print(steps // stride)
"""
THREADS = """
    assert each(lambda x: time.sleep(0.002) or x, range(3)) == [0, 1, 2]
    with running([lambda: time.sleep(0.002) or 7]) as (one,):
        assert one.result() == 7
"""
PROCESSES = """
    pool = Pool(2)
    try:
        assert list(pool.map(abs, ((-i,) for i in range(4)))) == [0, 1, 2, 3]
    finally:
        pool.close()
"""


@pytest.mark.parametrize("use, stride", [(THREADS, 1), (PROCESSES, 97)], ids=["threads", "processes"])
def test_no_interrupt_locks_up(use: str, stride: int) -> None:
    end = subprocess.run(
        [sys.executable, "-c", INTERRUPTED_EVERYWHERE.format(use=use, stride=stride)], capture_output=True, text=True
    )
    assert end.returncode == 0, end.stdout + end.stderr
    assert int(end.stdout.split()[-1]) > 10, "hardly a step was interrupted: the test tested nothing"


def test_each_keeps_the_order_and_begins_nothing_after_a_failure() -> None:
    assert each(lambda x: time.sleep(0.01 * (3 - x)) or x, range(3)) == [0, 1, 2]
    begun, stopped = [], threading.Event()

    def fail(index: int) -> None:
        begun.append(index)
        if index == 0:
            raise ValueError("bad")
        assert stopped.wait(300), "nobody stopped it"

    with pytest.raises(ValueError, match="bad"):
        each(fail, range(100), stopped.set)
    assert len(begun) <= len(os.sched_getaffinity(0)) + 1


def test_a_failing_block_stops_the_jobs_and_waits_for_them() -> None:
    stopped, ended = threading.Event(), []
    with pytest.raises(ValueError):
        with running([lambda: stopped.wait(300) and ended.append(1)], stopped.set):
            raise ValueError
    assert ended == [1]


def _answer(size: int) -> bytes:
    return bytes(size)


@pytest.fixture
def pool():
    pool = Pool(2)
    yield pool
    pool.close()


def test_answers_come_in_order_whoever_has_them_first(pool: Pool) -> None:
    assert list(pool.map(_answer, ((size,) for size in (1 << 22, 3, 1 << 20, 0, 5)))) == [
        bytes(size) for size in (1 << 22, 3, 1 << 20, 0, 5)
    ]
    assert list(pool.map(abs, ((-i,) for i in range(3)))) == [0, 1, 2], "a second run on the same workers"


def test_what_fails_in_a_worker_is_raised_here(pool: Pool) -> None:
    with pytest.raises(ZeroDivisionError):
        list(pool.run(divmod, [(1, 1), (1, 0)]))


def _die(task: bytes, when: str) -> int:
    """Kills the worker, immediately or after it has sent a part of its answer."""

    def send_a_part(pipe: Connection, answer: memoryview) -> None:
        os.write(pipe.fileno(), struct.pack("!i", 1 << 26) + bytes(1000))
        os.kill(os.getpid(), signal.SIGKILL)

    if when == "at once":
        os.kill(os.getpid(), signal.SIGKILL)
    if when == "within its answer":
        Connection._send_bytes = send_a_part  # type: ignore[attr-defined]
    return len(task)


@pytest.mark.parametrize("when", ["at once", "within its answer"])
def test_a_killed_worker_is_told_of(pool: Pool, when: str) -> None:
    """Also tested while further tasks wait that are too large for a pipe."""
    task = bytes(1 << 22)
    with pytest.raises(TesseraError, match="was killed"):
        list(pool.run(_die, [(task, when), *[(task, "never")] * 50]))


def test_what_looks_like_a_lost_worker_is_not_taken_for_one(pool: Pool) -> None:
    """A truncated file of samples raises EOFError, for instance."""
    with pytest.raises(EOFError):
        list(pool.run(_meet_the_end_of_a_file, [()]))


def _meet_the_end_of_a_file() -> None:
    raise EOFError


def test_a_terminal_interrupts_the_parent_alone(pool: Pool) -> None:
    """A terminal sends Ctrl-C to the workers, too. While they load, they would print stack traces."""
    assert set(pool.map(_blocks_sigint, [()] * 4)) == {True} and not _blocks_sigint()


def _blocks_sigint() -> bool:
    return signal.SIGINT in signal.pthread_sigmask(signal.SIG_BLOCK, [])


def test_workers_end_with_the_parent() -> None:
    """The parent is killed, so it cannot stop its workers: they must end by themselves."""
    script = (
        "from tessera.calibration.pool import Pool; import os, sys\nif __name__ == '__main__':\n"
        "    pool = Pool(2); pids = list(pool.map(eval, [('__import__(\"os\").getpid()',)] * 6))\n"
        "    print(*set(pids), flush=True); os.kill(os.getpid(), 9)"
    )
    end = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    deadline = time.monotonic() + 300
    pids = [int(word) for word in end.stdout.split()]
    assert pids, end.stderr
    while any(
        os.path.exists(f"/proc/{pid}") and "Z" not in open(f"/proc/{pid}/stat").read().split()[2] for pid in pids
    ):
        assert time.monotonic() < deadline, "a worker outlives its parent"
        time.sleep(0.05)
