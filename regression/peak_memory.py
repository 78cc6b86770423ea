# SPDX-License-Identifier: Apache-2.0
"""The peak memory of a command with all processes that it starts."""
from __future__ import annotations

import os
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Sequence

_EVERY = 0.02  # seconds


@dataclass(frozen=True)
class Peak:
    """Peak memory of all processes together. bytes: with mapped pages of files; shared pages count once. anonymous:
    without pages of files, which the system can take back."""

    code: int
    output: str
    bytes: int
    anonymous: int
    seconds: float


def peak_memory(command: Sequence[object], cwd: Path | None = None) -> Peak:
    """Runs the command to its end and samples its memory repeatedly; short peaks may be missed."""
    began, peak, anonymous = time.perf_counter(), 0, 0
    with subprocess.Popen(
        [str(word) for word in command], cwd=cwd, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    ) as process:
        while process.poll() is None:
            found = [_memory(each) for each in _tree(process.pid)]
            peak = max(peak, sum(pss for pss, _ in found))
            anonymous = max(anonymous, sum(own for _, own in found))
            time.sleep(_EVERY)
        assert process.stdout is not None
        return Peak(process.returncode, process.stdout.read(), peak, anonymous, time.perf_counter() - began)


def _tree(root: int) -> list[int]:
    """Returns the process and its descendants."""
    parents: dict[int, int] = {}
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{name}/stat", encoding="ascii", errors="replace") as file:
                parents[int(name)] = int(file.read().rpartition(")")[2].split()[1])
        except OSError:
            continue
    found = [root]
    for process in found:
        found += [child for child, parent in parents.items() if parent == process]
    return found


def _memory(process: int) -> tuple[int, int]:
    """Returns the memory of a process, and the anonymous part of it, each with its share of shared pages."""
    try:
        with open(f"/proc/{process}/smaps_rollup", encoding="ascii") as file:
            sizes = dict(line.split()[:2] for line in file if line.startswith("Pss"))
    except OSError:
        return 0, 0
    return int(sizes.get("Pss:", 0)) * 1024, int(sizes.get("Pss_Anon:", 0)) * 1024
