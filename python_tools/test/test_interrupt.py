# SPDX-License-Identifier: Apache-2.0
"""An interrupt ends a tool wherever it arrives."""
from __future__ import annotations

import subprocess
import sys

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
            time.sleep(600)
    except KeyboardInterrupt:
        print("arrived", bool(is_first))
"""


def test_interrupt_that_comes_again_too_early_is_not_lost() -> None:
    end = subprocess.run([sys.executable, "-c", COMES_DURING_THE_HOOK], capture_output=True, text=True, timeout=300)
    assert end.stdout == 5 * "arrived False\n" and end.stderr == "", end.stderr
