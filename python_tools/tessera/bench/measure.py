# SPDX-License-Identifier: Apache-2.0
"""Measures engines against each other on one model, in turns.

Each engine runs in its own process, so that its peak memory is its own. The engines take turns in short rounds, so that
changes of the machine's speed affect all of them alike.
"""
from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Mapping, Sequence

import numpy as np

from ..files import load_npz
from ..programs import environment

PACKAGES = str(Path(__file__).absolute().parents[2])  # the folder that contains this package
ROUND_SECONDS = 0.25
WARM_SECONDS = 2.0  # at most


@dataclass
class Result:
    """Measurements of one engine on one model and thread count; times in seconds, memory in MiB. rounds: the times of
    each round; `times` concatenates them. flows: (runs, seconds) of each round with several streams."""

    engine: str
    prepare: float = float("nan")
    rounds: list[list[float]] = field(default_factory=list)
    peak_mib: float = float("nan")
    error: str = ""
    outputs: dict[str, np.ndarray] = field(default_factory=dict)
    warm: dict[str, Any] = field(default_factory=dict)
    flows: list[tuple[int, float]] = field(default_factory=list)

    @property
    def times(self) -> list[float]:
        return [each for times in self.rounds for each in times]

    @property
    def median(self) -> float:
        return float(np.median(self.times)) if self.times else float("nan")

    @property
    def per_second(self) -> float:
        """Runs per second of all streams together."""
        seconds = sum(seconds for _, seconds in self.flows)
        return sum(runs for runs, _ in self.flows) / seconds if seconds else float("nan")


# Takes the current folder off the module search path first, as python -P does, which Python 3.9 lacks.
_START_WORKER = "import sys; del sys.path[0]; from tessera.bench.worker import main; main()"


class Worker:
    """An engine in a child process (worker.py), driven by JSON lines."""

    def __init__(
        self,
        result: Result,
        model: Path,
        inputs: Path,
        outputs: Path,
        threads: int,
        precision: str,
        streams: int = 1,
        pin: Sequence[int] = (),
        engine: str = "",
        python: str = sys.executable,
    ) -> None:
        """engine: its name if the result is named differently. python: the interpreter that has the engine installed;
        this package needs only numpy there."""
        self.result = result
        info = {
            "engine": engine or result.engine,
            "model": str(model),
            "inputs": str(inputs),
            "outputs": str(outputs),
            "threads": threads,
            "precision": precision,
            "streams": streams,
            "pin": list(pin),
            "parent": os.getpid(),
        }
        self._process = subprocess.Popen(
            [python, "-c", _START_WORKER, json.dumps(info)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env={
                "ORT_DISABLE_TELEMETRY": "1",
                **environment(),
                "OMP_NUM_THREADS": str(max(1, threads // streams)),
                "PYTHONPATH": os.pathsep.join(filter(None, (PACKAGES, os.environ.get("PYTHONPATH")))),
            },
        )
        answer = self._read()
        if "error" in answer:
            result.error = answer["error"]
        else:
            result.prepare = answer["prepare"]
            result.outputs = load_npz(outputs)

    def _read(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        return json.loads(line) if line else {"error": f"the process ended with code {self._process.wait()}"}

    def _order(self, order: str, seconds: float) -> dict[str, Any]:
        """Sends an order and returns the child's answer; {} if the child fails or has failed before."""
        if self.result.error:
            return {}
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps([order, seconds]) + "\n")
            self._process.stdin.flush()
        except BrokenPipeError:  # the child has ended; _read reports how
            pass
        answer = self._read()
        self.result.error = answer.get("error", "")
        return {} if self.result.error else answer

    def warm(self, limit: float) -> None:
        """Runs until the time per run is steady."""
        self.result.warm = self._order("warm", limit) if limit > 0 else {}

    def round(self, seconds: float) -> None:
        """Runs for about `seconds`; adds each run's time."""
        if times := self._order("round", seconds).get("times"):
            self.result.rounds.append(times)

    def flow(self, seconds: float) -> None:
        """Runs all streams for about `seconds`; adds the number of runs and the time."""
        if answer := self._order("flow", seconds):
            self.result.flows.append((answer["runs"], answer["seconds"]))

    def close(self) -> None:
        if not self.result.error:
            assert self._process.stdin is not None
            self._process.stdin.close()
            self.result.peak_mib = self._read().get("peak_mib", float("nan"))
        self._process.wait()


def measure(
    files: Mapping[str, Path],
    inputs: Path,
    folder: Path,
    threads: int,
    precision: str,
    rounds: int,
    warm: float = 0.0,
    streams: int = 0,
    pin: Sequence[int] = (),
    engines: Mapping[str, str] | None = None,
    pythons: Mapping[str, str] | None = None,
) -> list[Result]:
    """Measures the latency of all engines on one model, interleaved; with `streams`, also the throughput of this many
    concurrent runs, which share the threads. files: the model file of each result. engines, pythons: engine and
    interpreter of a result, by default its name and this Python."""
    results = [Result(name) for name in files]

    def start(streams: int, results: Sequence[Result]) -> list[Worker]:
        return [
            Worker(
                result,
                files[result.engine],
                inputs,
                folder / f"{number}_{threads}_{streams}.npz",
                threads,
                precision,
                streams,
                pin,
                (engines or {}).get(result.engine, ""),
                (pythons or {}).get(result.engine, sys.executable),
            )
            for number, result in enumerate(results)
        ]

    workers = start(1, results)
    for worker in workers:
        worker.warm(warm)
    for turn in range(rounds):
        # Each round starts with another engine, so that none always runs on a warmer machine.
        for worker in workers[turn % len(workers) :] + workers[: turn % len(workers)]:
            worker.round(ROUND_SECONDS)
    for worker in workers:
        worker.close()
    if streams:
        _measure_streams(start(streams, [Result(name) for name in files]), results, rounds, warm)
    return results


def _measure_streams(workers: Sequence[Worker], results: Sequence[Result], rounds: int, warm: float) -> None:
    for worker in workers:
        worker.flow(min(warm, ROUND_SECONDS))
        worker.result.flows.clear()
    for turn in range(rounds):
        for worker in [*workers[turn % len(workers) :], *workers[: turn % len(workers)]]:
            worker.flow(ROUND_SECONDS)
    for worker, result in zip(workers, results):
        worker.close()
        result.flows = worker.result.flows
        result.error = result.error or worker.result.error


def machine() -> dict[str, Any]:
    """Returns the properties of the machine that influence a measurement."""
    lines = Path("/proc/cpuinfo").read_text(errors="replace").splitlines()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return {
        "processor": names[0] if names else "",
        "processors": len(os.sched_getaffinity(0)),
        "kernel": os.uname().release,
        "load": os.getloadavg()[0],
    }
