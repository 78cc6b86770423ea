# SPDX-License-Identifier: Apache-2.0
"""Ctrl-C and SIGTERM in a command: where they end the work and where they are delayed.

In `caught()` a signal becomes a KeyboardInterrupt, which Python raises in the main thread between any two of its steps,
and so also between creating a temporary folder and the line that would remove it, or between two renames that belong
together. Such lines are enclosed in `held()`, which raises a pending interrupt at its end; `raised()` permits
interrupts again for a nested block. None of the three affects other threads, in which Python raises no interrupts, or
signals with foreign handlers.
"""
from __future__ import annotations

import signal
import sys
import threading
from types import FrameType

_holds = 0  # number of `held()` blocks around the main thread's position
_pending = 0  # the pending signal; 0 is none
_seen = False
_AGAIN = 0.01  # seconds


def seen() -> bool:
    """Returns true if a signal came since the last `caught()` began, even if that has ended."""
    return _seen


def _on_main_thread() -> bool:
    return threading.current_thread() is threading.main_thread()


def _in_hook(frame: FrameType | None) -> bool:
    """Returns true if the main thread is in `_unraisable`, up to its very last step; a counter would be reset before
    that."""
    while frame and frame.f_code is not _unraisable.__code__:
        frame = frame.f_back
    return frame is not None


def _receive(number: int, frame: FrameType | None) -> None:
    global _pending, _seen
    _seen = True
    if _in_hook(frame):  # an exception raised there would be lost too
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
    """Delays interrupts until the block ends, and raises a pending one there."""

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
    """Reverts one `held()`: interrupts end this block, unless a further `held()` is around it."""

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
    """Turns SIGINT and SIGTERM into interrupts, held except in `raised()` blocks. SIGINT is left to a caller that
    handles it. At the end the previous handlers are restored and a pending interrupt is dropped, because the work is
    done.

    ends_process: only the end of the process follows the block, so signals are ignored from then on: a command that is
    killed after its outputs appeared would look like an interrupted one without outputs. Does not apply if SIGINT
    belongs to a caller, whose process continues.
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
        ):  # _unraisable sends a signal again with the last one
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
    """Sends an interrupt again a moment later if it hit a finaliser or a weak reference's callback, where it would be
    lost."""
    if fault.exc_type is KeyboardInterrupt:
        signal.setitimer(signal.ITIMER_REAL, _AGAIN)
    else:
        sys.__unraisablehook__(fault)
