# SPDX-License-Identifier: Apache-2.0
"""Runs one engine in its own process: prepares it, then follows orders from stdin, one JSON line each.

The argument is a JSON object with engine, model, inputs .npz, outputs .npz, threads, precision, streams and pin. Prints
one JSON line after preparation (the outputs of the first run are saved), one per order, and one with the peak memory at
the end.
"""
from __future__ import annotations

import json
import os
import statistics
import sys
import threading
import time
from pathlib import Path
from typing import Any, Callable, Sequence

import numpy as np

FEWEST_RUNS = 3  # in a round, even if it takes longer than its time
WINDOW_SECONDS = 0.1  # of warming up; its median is compared
WINDOWS, STEADY = 3, 1.03  # steady: the medians of 3 windows in a row differ by at most 3 %

Run = Callable[[], object]


def timed(run: Run, seconds: float) -> list[float]:
    """Runs repeatedly for about `seconds`; returns the seconds of each run."""
    times: list[float] = []
    end = time.perf_counter() + seconds
    while len(times) < FEWEST_RUNS or time.perf_counter() < end:
        begin = time.perf_counter()
        run()
        times.append(time.perf_counter() - begin)
    return times


def warm(run: Run, limit: float) -> dict[str, Any]:
    """Runs until the time per run is steady, for at most about `limit` seconds. Caches, clocks and pages settle at
    their own pace, so no fixed number of runs suits all models."""
    medians: list[float] = []
    runs, begin, is_steady = 0, time.perf_counter(), False
    while not is_steady and time.perf_counter() - begin < limit:
        window = timed(run, min(WINDOW_SECONDS, limit))
        runs += len(window)
        medians.append(statistics.median(window))
        last = medians[-WINDOWS:]
        is_steady = len(last) == WINDOWS and max(last) <= STEADY * min(last)
    return {"warm_runs": runs, "warm_seconds": time.perf_counter() - begin, "steady": is_steady}


def flow(lanes: Sequence[Run], seconds: float) -> dict[str, Any]:
    """Counts the runs that ended while all lanes were busy, and returns how long that was."""
    ends: list[list[float]] = [[] for _ in lanes]
    begin = time.perf_counter()
    stop = begin + seconds

    def work(run: Run, mine: list[float]) -> None:
        while len(mine) < FEWEST_RUNS or time.perf_counter() < stop:
            run()
            mine.append(time.perf_counter())

    threads = [threading.Thread(target=work, args=each) for each in zip(lanes, ends)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    last = min(each[-1] for each in ends)
    return {"runs": sum(end <= last for each in ends for end in each), "seconds": last - begin}


def say(**fields: object) -> None:
    print(json.dumps(fields), flush=True)


def peak_mib() -> float:
    """Returns the peak resident memory of this process."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM"):
            return int(line.split()[1]) / 1024
    return float("nan")


def main() -> None:
    info = json.loads(sys.argv[1])
    if info["pin"]:
        os.sched_setaffinity(0, info["pin"])  # before an engine counts the processors
    from tessera.bench import engines
    from tessera.files import load_npz, save_npz
    from tessera.programs import end_with_parent

    end_with_parent(info["parent"])

    inputs = load_npz(info["inputs"])
    wanted = engines.Wanted(info["threads"], info["precision"], info["streams"])
    try:
        begin = time.perf_counter()
        engine = engines.OPEN[info["engine"]](info["model"], inputs, wanted)
        engine.lanes[0]()
        prepare = time.perf_counter() - begin
        save_npz(info["outputs"], {name: np.array(value) for name, value in engine.answer().items()})
    except Exception as error:  # any failure of the engine is its result
        say(error=f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}")
        return
    say(prepare=prepare)
    for line in sys.stdin:
        order, seconds = json.loads(line)
        if order == "warm":
            say(**warm(engine.lanes[0], seconds))
        elif order == "flow":
            say(**flow(engine.lanes, seconds))
        else:
            say(times=timed(engine.lanes[0], seconds))
    say(peak_mib=peak_mib())


if __name__ == "__main__":
    main()
