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
