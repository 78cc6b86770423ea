# SPDX-License-Identifier: Apache-2.0
"""Runs all samples through the model into histograms, with a checkpoint file to resume from after an interruption."""
from __future__ import annotations

import hashlib
import json
import time
from itertools import islice
from pathlib import Path
from typing import Callable, Iterator, Sequence

import numpy as np

from tessera import _calibration

from ..errors import TesseraError
from ..files import load_npz, save_npz
from .dataset import Dataset, Sample
from .engine import Engine
from .worker import Observations, Result, add_peaks

LARGEST_CHUNK = 16


class State(Observations):
    """The observations of the samples so far. Merging does not depend on the order: integers are added, and dicts are
    indexed by sample number."""

    @staticmethod
    def empty(sources: Sequence[str]) -> "State":
        return State({source: _calibration.Histogram() for source in sources})

    def add(self, result: Result) -> None:
        for source, histogram in result.histograms.items():
            self.histograms[source].merge(histogram)
        self.digests.update(result.digests)
        self.names.update(result.names)
        self.skipped.update(result.skipped)
        self.answers.update(result.answers)
        add_peaks(self.peaks, result.peaks)

    def unseen(self) -> set[str]:
        """Returns the sources of which no sample computed a value, such as those of a branch that none took."""
        return {source for source, histogram in self.histograms.items() if not histogram.summary()["finite"]}

    def sample_hash(self) -> str:
        """Returns a hash of the samples used, in their order."""
        text = "\n".join(self.digests[number] for number in sorted(self.digests))
        return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()

    @property
    def done(self) -> set[int]:
        return set(self.digests) | set(self.skipped)


class Checkpoint:
    """The state in a file beside the table during a run; removed at its end. identity: describes model and samples."""

    def __init__(self, path: Path, identity: str, every: float) -> None:
        self.path, self._identity, self._every = (
            path,
            hashlib.sha256(identity.encode(errors="surrogateescape")).hexdigest(),
            every,
        )
        self._last = time.monotonic()

    def load(self, sources: Sequence[str]) -> State | None:
        """Returns the saved state, None if there is none. Raises TesseraError if it belongs to another run."""
        if not self.path.exists():
            return None
        arrays = load_npz(self.path, "checkpoint")
        try:
            meta = json.loads(arrays["meta"].tobytes())
            if meta["identity"] != self._identity:
                raise TesseraError(
                    f"{self.path} belongs to an interrupted run with another model or other samples",
                    hint="run without --resume to start again",
                )
            state = State.empty(sources)
            for i, source in enumerate(sources):
                histogram = _calibration.Histogram.__new__(_calibration.Histogram)
                histogram.__setstate__((*meta["numbers"][i], (arrays[f"i{i}"].tobytes(), arrays[f"c{i}"].tobytes())))
                state.histograms[source] = histogram
            for name in ("digests", "names", "skipped", "answers"):
                setattr(state, name, {int(number): text for number, text in meta[name].items()})
            state.peaks = {str(source): (float(most), int(number)) for source, (most, number) in meta["peaks"].items()}
            return state
        except (KeyError, ValueError, TypeError, IndexError, AttributeError, OverflowError, RecursionError) as error:
            raise TesseraError(
                f"{self.path} is not a checkpoint of run_calibration: {error}",
                hint="run without --resume to start again",
            ) from error

    def save_sometimes(self, state: State) -> None:
        if time.monotonic() - self._last < self._every:
            return
        arrays, numbers = {}, []
        for i, histogram in enumerate(state.histograms.values()):
            *small, (indices, counts) = histogram.__getstate__()
            numbers.append(small)
            arrays[f"i{i}"], arrays[f"c{i}"] = np.frombuffer(indices, np.uint32), np.frombuffer(counts, np.uint64)
        meta = {
            "identity": self._identity,
            "numbers": numbers,
            "digests": state.digests,
            "names": state.names,
            "skipped": state.skipped,
            "answers": state.answers,
            "peaks": state.peaks,
        }
        arrays["meta"] = np.frombuffer(json.dumps(meta).encode(), np.uint8)
        save_npz(self.path, arrays)
        self._last = time.monotonic()


def chunk_size(samples: int, workers: int) -> int:
    """Returns a chunk size small enough that workers end together and a checkpoint is never far away, and large enough
    that merging costs little."""
    return max(1, min(LARGEST_CHUNK, -(-samples // (4 * workers))))


def chunks(samples: Iterator[Sample], size: int) -> Iterator[list[Sample]]:
    while chunk := list(islice(samples, size)):
        yield chunk


def collect(
    engine: Engine, dataset: Dataset, state: State, checkpoint: Checkpoint, progress: Callable[[int], None]
) -> State:
    """Adds all samples of the data set that are not yet in the state. progress: called with the number of samples
    done."""
    done = state.done
    todo = (sample for sample in dataset.samples() if sample.number not in done)
    size = chunk_size(dataset.count - len(done), engine.workers)
    for result in engine.run((chunk, None) for chunk in chunks(todo, size)):
        state.add(result)
        checkpoint.save_sometimes(state)
        progress(len(state.done))
    return state
