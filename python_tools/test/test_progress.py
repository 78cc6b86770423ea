# SPDX-License-Identifier: Apache-2.0
"""Tests that long steps show their progress: lines in a log, or a line that changes on a terminal."""
from __future__ import annotations

import io
import re
import sys
import threading
import time
from pathlib import Path

import pytest

from tessera import compile_driver, progress
from tessera.compile_driver import run_compile
from tessera.progress import At, Remaining, Report


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def wait_for(stream: io.StringIO, text: str, times: int = 1) -> None:
    """Waits until the text was written this number of times: threads write it, with a delay on a busy machine."""
    end = time.monotonic() + 30
    while stream.getvalue().count(text) < times and time.monotonic() < end:
        time.sleep(0.02)


def test_how_far_work_is() -> None:
    assert At("kernels", 0, 20, 40).text() == "kernels: 20 of 40"
    assert At("ops", 0, 10, 40, part=3, parts=4).text() == "ops: 10 of 40 in round 3 of about 4"
    assert At("link", 0).text() == "link"


def test_the_time_left_is_shown_where_the_pace_is_even() -> None:
    even = Remaining()
    assert even.look(At("kernels", 100.0, 0, 40), 101.0) is None
    assert even.look(At("kernels", 100.0, 10, 40), 105.0) is None  # the speed is unknown after a single look
    assert even.look(At("kernels", 100.0, 20, 40), 110.0) == pytest.approx(10)
    assert even.look(At("kernels", 120.0, 1, 40), 122.0) is None  # another phase has begun
    uneven = Remaining()
    for done, now in ((10, 101.0), (20, 102.0), (30, 103.0)):
        uneven.look(At("kernels", 100.0, done, 40), now)
    assert uneven.look(At("kernels", 100.0, 32, 40), 120.0) is None  # not "1 s left", because the last two took 17 s


def test_an_extra_step_does_not_change_the_total() -> None:
    stream = io.StringIO()
    report = Report(2, stream)
    with report.step("one"):
        pass
    with report.extra_step("because of one"):
        pass
    with report.step("two"):
        pass
    assert [line.split("]")[0] for line in stream.getvalue().splitlines()] == ["[1/2", "[+", "[2/2"]
    assert [step["name"] for step in report.steps] == ["one", "because of one", "two"]


def test_a_log_has_a_line_now_and_then(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "LOG_EVERY", 0.1)
    stream = io.StringIO()
    report = Report(2, stream)
    with report.step("short"):
        pass
    with report.step("long") as step:
        step.progress(3, 7, "samples")
        wait_for(stream, "samples: 3 of 7", times=2)
    lines = stream.getvalue().splitlines()
    shown = [line for line in lines if "so far" in line]
    assert len(shown) in (2, 3), lines
    for line in shown:
        assert re.fullmatch(r"\[2/2\] long \.+ +\d+ s so far: samples: 3 of 7(, about \d+ s left)?", line)
    assert lines[-1].startswith("[2/2] long") and "so far" not in lines[-1]
    assert not [line for line in lines if line.startswith("[1/2]") and "so far" in line]


def test_quiet_is_silent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "LOG_EVERY", 0.02)
    stream = io.StringIO()
    with Report(1, stream, quiet=True).step("long"):
        time.sleep(0.1)
    assert stream.getvalue() == ""


@pytest.mark.parametrize("has_rich", [False, True])
def test_a_terminal_shows_the_running_step(monkeypatch: pytest.MonkeyPatch, has_rich: bool) -> None:
    if has_rich:
        pytest.importorskip("rich")
    else:
        monkeypatch.setitem(sys.modules, "rich.console", None)
    monkeypatch.setattr(progress, "_SCREEN_EVERY", 0.05)
    monkeypatch.setenv("TERM", "xterm")
    stream = Terminal()
    with Report(1, stream).step("compile") as step:
        step.progress(12, 40, "kernels compiled")
        wait_for(stream, "12 of 40")
    text = stream.getvalue()
    assert "12 of 40" in text, text
    painted = re.split(r"\r?\033\[2?K|\n", text)  # the contents of the line between two of its erasures
    assert not [line for line in painted if line.count("[1/1]") > 1], text
    assert text.rstrip().splitlines()[-1].replace("\r\033[K", "").endswith(" s")
    assert not [
        thread
        for thread in threading.enumerate()
        if thread.name.startswith("Thread") and thread.is_alive() and has_rich is False
    ]


def test_a_dumb_terminal_gets_the_lines_of_a_log(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "LOG_EVERY", 0.05)
    monkeypatch.setenv("TERM", "dumb")
    stream = Terminal()
    with Report(1, stream).step("compile") as step:
        step.progress(12, 40, "kernels compiled")
        wait_for(stream, "12 of 40")
    assert "so far: kernels compiled: 12 of 40" in stream.getvalue() and "\033" not in stream.getvalue()


def test_the_compilers_events_are_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The events of a compiler are shown beside the step that waits for it, also if another thread runs the
    compiler."""
    program = tmp_path / "tessera-compile"
    program.write_text(
        "#!/bin/sh\n"
        'echo \'{"event":"phase","name":"emit"}\'\n'
        'echo \'{"event":"progress","phase":"emit","done":120,"total":400,"part":2,"parts":5}\'\n'
        'sleep 0.4\necho \'{"event":"result"}\'\n'
    )
    program.chmod(0o755)
    monkeypatch.setattr(compile_driver, "find_program", lambda name: str(program))
    monkeypatch.setattr(progress, "LOG_EVERY", 0.1)
    wanted = "ops emitted: 120 of 400 in round 2 of about 5"
    stream = io.StringIO()
    report = Report(2, stream)
    with report.step("compile"):
        run_compile(["deploy"], report)
    assert wanted in stream.getvalue()
    other = threading.Thread(target=run_compile, args=(["reference"], report))
    with report.step("reference"):
        other.start()
        other.join()
    assert [line for line in stream.getvalue().splitlines() if line.startswith("[2/2]") and wanted in line]
