# SPDX-License-Identifier: Apache-2.0
"""Ctrl-C and SIGTERM in a command: where they end the work and where they wait.

In `caught()` a signal becomes a KeyboardInterrupt, which Python raises in the main thread between any two of its
steps: also between the making of a temporary folder and the line that would remove it, or between two renames that
belong together. Such lines stand in `held()`, at whose end the interrupt is raised; `raised()` lets it through again
for a block in between. All three change nothing in other threads, where Python raises no interrupts, nor under
handlers that are not ours.
"""
from __future__ import annotations

import signal
import sys
import threading
from types import FrameType

_holds = 0  # of `held()` blocks that the main thread is in
_pending = 0  # the signal that waits; 0 is none
_seen = False
_AGAIN = 0.01  # seconds


def seen() -> bool:
    """Whether a signal came since the beginning of `caught()`, which may have ended already."""
    return _seen


def _on_main_thread() -> bool:
    return threading.current_thread() is threading.main_thread()


def _in_hook(frame: FrameType | None) -> bool:
    """Whether the main thread is in `_unraisable`, up to its very last step: a counter would have been set back."""
    while frame and frame.f_code is not _unraisable.__code__:
        frame = frame.f_back
    return frame is not None


def _receive(number: int, frame: FrameType | None) -> None:
    global _pending, _seen
    _seen = True
    if _in_hook(frame):  # what is raised in there is lost as well
        signal.setitimer(signal.ITIMER_REAL, _AGAIN)
    elif _holds:
        _pending = number
    else:
        raise KeyboardInterrupt


def _raise_pending() -> None:
    global _pending
    if _pending:
        _pending = 0
        raise KeyboardInterrupt


class held:
    """Interrupts wait until the block ends, where one that came is raised."""

    def __enter__(self) -> None:
        global _holds
        self._before = _holds
        if _on_main_thread():
            _holds += 1

    def __exit__(self, *exception: object) -> None:
        global _holds
        if _on_main_thread():
            _holds = self._before
            if not _holds:
                _raise_pending()


class raised:
    """Takes one `held()` back: interrupts end this block unless a further one is around it."""

    def __enter__(self) -> None:
        global _holds
        self._before = _holds
        if _on_main_thread():
            _holds -= 1
            if _pending and not _holds:
                _holds = self._before
                _raise_pending()

    def __exit__(self, *exception: object) -> None:
        global _holds
        if _on_main_thread():
            _holds = self._before


class caught:
    """SIGINT and SIGTERM are interrupts; held but in `raised()` blocks. SIGINT stays with a caller that decided about
    it. At the end the signals are what they were before, and one that still waits is forgotten: the work is done.

    ends_process: nothing but the process's end comes behind the block, so signals are ignored from there on: killed
    now, a command whose outputs are there would look like one that was interrupted and left none. Not where SIGINT is
    a caller's: it goes on.
    """

    def __init__(self, ends_process: bool = False) -> None:
        self._ends_process = ends_process

    def __enter__(self) -> None:
        global _holds, _seen
        _holds += 1
        _seen = False
        self._old = {}
        for number in (
            signal.SIGINT,
            signal.SIGTERM,
            signal.SIGALRM,
        ):  # the last one is how _unraisable sends one again
            if number == signal.SIGTERM or signal.getsignal(number) is signal.SIG_DFL:
                self._old[number] = signal.signal(number, _receive)
        self._hook, sys.unraisablehook = sys.unraisablehook, _unraisable

    def __exit__(self, *exception: object) -> None:
        global _holds, _pending
        sys.unraisablehook = self._hook
        if signal.SIGALRM in self._old:
            signal.setitimer(signal.ITIMER_REAL, 0)
        ends = self._ends_process and signal.SIGINT in self._old
        for number, handler in self._old.items():
            signal.signal(number, signal.SIG_IGN if ends else handler)
        _holds -= 1
        _pending = 0


def _unraisable(fault: sys.UnraisableHookArgs) -> None:
    """An interrupt that met a finaliser or a weak reference's callback would be lost there: it comes again a moment
    later."""
    if fault.exc_type is KeyboardInterrupt:
        signal.setitimer(signal.ITIMER_REAL, _AGAIN)
    else:
        sys.__unraisablehook__(fault)
