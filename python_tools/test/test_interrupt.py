# SPDX-License-Identifier: Apache-2.0
"""Tests that an interrupt ends a tool at any moment."""
from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from conftest import BUILD

INSIDE_CALLBACK = """
import signal, sys, time, weakref
from tessera.cli.common import Parser, run_command

class Thing: pass

def work(context):
    thing = Thing()
    reference = weakref.ref(thing, lambda _: (signal.raise_signal(signal.SIGINT), time.sleep(0)))
    del thing
    time.sleep(600)

sys.exit(run_command("tool", lambda argv: Parser("tool", "").add_common().parse_args(argv), work, 1, []))
"""


def test_interrupt_inside_a_callback_is_not_lost() -> None:
    end = subprocess.run([sys.executable, "-c", INSIDE_CALLBACK], capture_output=True, text=True, timeout=300)
    assert end.returncode == 130 and "Traceback" not in end.stderr, end.stderr
    assert "interrupted" in end.stderr


COMES_DURING_THE_HOOK = """
import signal, time, weakref
from tessera import interrupts

class Thing: pass

def slow(*arguments):
    # As on a busy machine: the alarm comes before the hook that set it has ended.
    set_timer(*arguments)
    if is_first:
        is_first.clear()
        time.sleep(0.05)

is_first = []
set_timer, signal.setitimer = signal.setitimer, slow
signal.signal(signal.SIGINT, signal.SIG_DFL)
for _ in range(5):
    is_first.append(True)
    try:
        with interrupts.caught(), interrupts.raised():
            thing = Thing()
            reference = weakref.ref(thing, lambda _: (signal.raise_signal(signal.SIGINT), time.sleep(0)))
            del thing
            time.sleep(5)  # what comes just before the call of the system waits until its end
    except KeyboardInterrupt:
        print("arrived", bool(is_first))
"""


def test_interrupt_that_comes_again_too_early_is_not_lost() -> None:
    end = subprocess.run([sys.executable, "-c", COMES_DURING_THE_HOOK], capture_output=True, text=True, timeout=300)
    assert end.stdout == 5 * "arrived False\n" and end.stderr == "", end.stderr


COMES_AT_THE_HOOKS_END = """
import signal, sys, time, weakref
from tessera import interrupts

class Thing: pass

def trace(frame, event, argument):
    # The alarm comes between the hook's last line and the end of its call.
    if event == 'return' and frame.f_code is interrupts._unraisable.__code__:
        sys.settrace(None)
        signal.raise_signal(signal.SIGALRM)
    return trace

signal.signal(signal.SIGINT, signal.SIG_DFL)
try:
    with interrupts.caught(), interrupts.raised():
        thing = Thing()
        reference = weakref.ref(thing, lambda _: (signal.raise_signal(signal.SIGINT), time.sleep(0)))
        sys.settrace(trace)
        del thing
        time.sleep(5)
        print('lost')
except KeyboardInterrupt:
    print('arrived')
"""


def test_interrupt_at_the_end_of_the_hook_is_not_lost() -> None:
    end = subprocess.run([sys.executable, "-c", COMES_AT_THE_HOOKS_END], capture_output=True, text=True, timeout=300)
    assert (end.stdout, end.stderr) == ("arrived\n", "")


@pytest.mark.parametrize("which", [signal.SIGINT, signal.SIGTERM])
def test_a_model_that_runs_for_ever_is_ended_by_a_signal(which: signal.Signals, tmp_path: Path) -> None:
    subprocess.run([BUILD / "bin" / "bmrt_make_test_models", tmp_path], check=True)
    np.savez(tmp_path / "x.npz", x=np.full((1, 1024), np.float32(1.5e-45)))  # first byte 1: the loop continues
    command = subprocess.Popen(
        [BUILD / "bin" / "model_runner", "--input", "x.npz", "--model", "endless.bmodel", "--output", "y.npz"],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    ticks = os.sysconf("SC_CLK_TCK")
    while (
        sum(map(int, Path(f"/proc/{command.pid}/stat").read_text().split()[13:15])) < 2 * ticks
    ):  # nothing else takes this long
        assert command.poll() is None
        time.sleep(0.02)
    sent = time.monotonic()
    command.send_signal(which)
    printed = command.communicate(timeout=60)[0]
    assert command.returncode == 130 and "Traceback" not in printed, printed
    assert time.monotonic() - sent < 5  # 0.2 s on an idle machine
    assert not (tmp_path / "y.npz").exists()
