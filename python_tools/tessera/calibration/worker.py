# SPDX-License-Identifier: Apache-2.0
"""The work of one process on samples: runs the model, adds its tensors to histograms, and tries ranges.

Results depend only on the samples, not on which worker processes which: histograms are merged by adding integers, and
errors are kept per sample.
"""
from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass, field
from typing import Callable, Collection, Mapping, Sequence

import numpy as np

from tessera import _calibration

from ..bmodel import as_tessera_error
from ..errors import TesseraError
from ..files import scratch_folder
from ..inputs import InputSpec
from ..output_error import NONE, judged, limited, squares_between
from ..tasks.answers import only_answer
from .dataset import Sample, Unreadable


@dataclass(frozen=True)
class Job:
    """Everything a worker needs. model: path of the .bmodel, or its bytes for a worker without access to the path.
    origins: what computes some of the outputs (output_error.py). logits: for some of these, the sources of their
    sigmoids' inputs. segments: where errors are measured. measured_at_outputs: sources whose
    errors are always measured there. varying: sources whose size differs from sample to sample. repeated: sources that
    branches and loops compute; a run does so any number of times."""

    key: str
    model: "str | bytes"
    specs: tuple[InputSpec, ...]
    sources: tuple[str, ...]
    origins: tuple[tuple[str, str], ...] = ()
    logits: tuple[tuple[str, str], ...] = ()
    segments: "tuple[Segment, ...]" = ()
    measured_at_outputs: frozenset[str] = frozenset()
    varying: frozenset[str] = frozenset()
    repeated: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Candidate:
    """A quantisation of one source."""

    scale: float
    zero_point: int
    lowest: int
    highest: int = 127


@dataclass(frozen=True)
class Segment:
    """The sources before a gate. gate: the gate's source (gates.py). members: the sources whose errors are measured
    there, each with its default quantisation. beyond: the gate of a later stretch at which this gate's effect is
    measured; empty: at the outputs."""

    gate: str
    members: tuple[tuple[str, Candidate], ...]
    beyond: str = ""


Peak = tuple[float, int]


@dataclass
class Observations:
    """Observations of samples. answers: by sample and output, see Worker.answers. peaks: of each source the largest
    magnitude and the sample that contains it."""

    histograms: dict[str, "_calibration.Histogram"] = field(default_factory=dict)
    digests: dict[int, str] = field(default_factory=dict)
    names: dict[int, str] = field(default_factory=dict)
    skipped: dict[int, str] = field(default_factory=dict)
    answers: dict[int, dict[str, "int | None"]] = field(default_factory=dict)
    peaks: dict[str, Peak] = field(default_factory=dict)


@dataclass
class Result(Observations):
    """Result for one chunk of samples. errors[sample][source]: squares (output_error.py) per candidate."""

    errors: dict[int, dict[str, list[np.ndarray]]] = field(default_factory=dict)
    failure: "dict | None" = None


Question = Sequence[tuple[str, Sequence[Candidate]]]
"""Candidates of sources whose output errors are to be measured."""

MOST_OPEN = 2
_open_workers: dict[tuple, "Worker"] = {}


def opened(job: Job) -> "Worker":
    """Returns a worker with the model open, reusing one of this process's most recent workers and its memory."""
    key = job.key, job.origins, job.logits
    worker = _open_workers.pop(key, None)
    while not worker and len(_open_workers) >= MOST_OPEN:
        del _open_workers[next(iter(_open_workers))]
    _open_workers[key] = worker = worker or Worker(job)
    return worker


def run_chunk(job: Job, samples: Sequence[Sample], question: "Question | None" = None) -> Result:
    """Observes the samples, or answers the question on them.

    A TesseraError is returned in the result, because exceptions with extra fields do not survive every transport.
    """
    result = Result()
    try:
        worker = opened(job)
        for sample in samples:
            result.names[sample.number] = sample.name
            try:
                arrays = sample.load(job.specs)
            except Unreadable as error:
                result.skipped[sample.number] = str(error)
                continue
            if question is None:
                look(worker, job, sample.number, arrays, result)
            else:
                result.errors[sample.number] = worker.measure(
                    arrays, question, job.segments, sample.number, job.measured_at_outputs
                )
    except TesseraError as error:
        result.failure = {
            "message": error.message,
            "code": int(error.code),
            "hint": error.hint,
            "details": error.details,
        }
    return result


def look(worker: "Worker", job: Job, number: int, arrays: Mapping[str, np.ndarray], seen: Observations) -> None:
    """Runs the model on sample `number` and adds the observations to `seen`."""
    seen.digests[number] = digest(arrays, job.specs)
    worker.observe(arrays, number, seen.histograms)
    add_peaks(seen.peaks, peaks_of(seen.histograms, number))
    seen.answers[number] = worker.answers()


def peaks_of(histograms: Mapping[str, "_calibration.Histogram"], number: int) -> dict[str, Peak]:
    """Returns the peaks of histograms after sample `number`. If an earlier sample had the same peak, add_peaks() keeps
    that one."""
    summaries = {source: histogram.summary() for source, histogram in histograms.items()}
    return {source: (max(-s["min"], s["max"]), number) for source, s in summaries.items() if s["finite"]}


def add_peaks(peaks: dict[str, Peak], more: Mapping[str, Peak]) -> None:
    """Merges peaks: larger magnitudes win, and the first of several samples with the same magnitude."""
    for source, (magnitude, number) in more.items():
        largest, first = peaks.get(source, (-1.0, number))
        if (magnitude, -number) > (largest, -first):
            peaks[source] = (magnitude, number)


def digest(arrays: Mapping[str, np.ndarray], specs: Sequence[InputSpec]) -> str:
    """Returns a hash of the model's inputs: the same picture from a file or an array is the same sample."""
    state = hashlib.blake2b(digest_size=16)
    for spec in specs:
        state.update(arrays[spec.name].tobytes())
    return state.hexdigest()


def _needed(segments: Sequence[Segment], sources: Collection[str]) -> list[Segment]:
    """Returns the stretches with any of `sources` as members, and the later stretches at which their effect is
    measured."""
    by_gate = {segment.gate: segment for segment in segments}
    found: dict[str, Segment] = {}
    for segment in segments:
        behind = segment if any(source in sources for source, _ in segment.members) else None
        while behind and behind.gate not in found:
            found[behind.gate] = behind
            behind = by_gate.get(behind.beyond)
    return list(found.values())


@dataclass(frozen=True)
class _Gate:
    """A gate in one sample. wanted: its values in the float run. share: the outputs' squares for an error of 1."""

    source: str
    wanted: np.ndarray
    share: np.ndarray

    def squares(self, got: np.ndarray) -> np.ndarray:
        """Returns the outputs' squares with these values at the gate."""
        found = self.share.copy()
        found[:, 0] *= _calibration.distance(self.wanted, got)[0]
        return found


class Worker:
    """The model compiled for observation, open in this process on one thread."""

    def __init__(self, job: Job) -> None:
        import tessera.runtime as runtime

        self._error = runtime.Error
        try:
            if isinstance(job.model, bytes):
                # The mapping stays valid after the file is deleted, so nothing is left behind however this process
                # ends.
                with scratch_folder() as folder:
                    path = folder / "observed.bmodel"
                    path.write_bytes(job.model)
                    self._probe = runtime.load(path).net().probe()
            else:
                self._probe = runtime.load(job.model, trust=True).net().probe()
        except self._error as error:
            raise as_tessera_error(error, "a worker failed to open the compiled model") from error
        self._sources = tuple(source for source in job.sources if source not in job.repeated)
        self._origins, self._logits = dict(job.origins), dict(job.logits)
        self._inputs = {spec.name for spec in job.specs}
        self._varying, self._repeated = job.varying, job.repeated
        self._places: dict = {}
        self._shapes: dict[str, tuple[int, ...]] = {}
        self._bytes = np.empty(0, np.uint8)
        self._shares: dict[int, dict[str, np.ndarray | None]] = {}

    def run(self, arrays: Mapping[str, np.ndarray], keep: Callable[[str, np.ndarray], None] | None = None) -> None:
        """Runs one sample; its tensors remain valid until the next run. keep: receives each tensor whenever a step has
        computed it."""
        try:
            self._probe.run(arrays, keep)
        except self._error as error:
            raise as_tessera_error(error, "failed to run the model") from error
        self._shapes = {name: array.shape for name, array in arrays.items()}
        if self._varying or not self._places:
            self._places = {}
            for tensor in self._probe.tensors:
                for name in tensor.names:
                    self._places.setdefault(name, tensor)

    def reruns(self, arrays: Mapping[str, np.ndarray]) -> bool:
        """Runs a sample. Returns True if the steps behind every source can run again, as trials need. Ops between
        branches and loops may be subnets of their own, and a run cannot begin inside one."""
        self.run(arrays)
        try:
            self._probe.run_steps(max(map(self._step, self._sources), default=-1) + 1)
        except self._error:
            return False
        return True

    def observe(
        self, arrays: Mapping[str, np.ndarray], number: int, histograms: dict[str, "_calibration.Histogram"]
    ) -> None:
        """Runs one sample and adds all its tensors to the histograms. Samples of tensors whose size varies, and of
        those that a run computes several times, have equal weight."""
        repeated = {source: _calibration.Histogram() for source in self._repeated}

        def add(name: str, array: np.ndarray) -> None:
            if name in repeated:
                repeated[name].observe(np.ascontiguousarray(array, np.float32), number)

        self.run(arrays, add if repeated else None)
        for source, seen in repeated.items():
            histograms.setdefault(source, _calibration.Histogram()).merge_sample(seen)
        for source in self._sources:
            histogram = histograms.setdefault(source, _calibration.Histogram())
            seen = _calibration.Histogram() if source in self._varying else histogram
            seen.observe(np.ascontiguousarray(self.values(source), np.float32), number)
            if seen is not histogram:
                histogram.merge_sample(seen)

    def values(self, source: str) -> np.ndarray:
        """Returns a tensor's elements of the last run without padding, in any order; valid until the next run."""
        if source in self._inputs:
            return self._probe.input(source)
        tensor = self._places[source]
        if not tensor.padded:
            return tensor.data
        return self._probe.row_major(tensor, self._room(math.prod(tensor.shape), tensor.data.dtype))

    def _room(self, elements: int, dtype: np.dtype) -> np.ndarray:
        """Returns a buffer for a copy of a tensor, valid until the next call; allocating one for each copy would cost
        more than the copy."""
        size = elements * dtype.itemsize
        if self._bytes.size < size:
            self._bytes = np.empty(size, np.uint8)
        return self._bytes[:size].view(dtype)

    def array(self, source: str) -> np.ndarray:
        """Returns a tensor of the last run in its shape, in row-major order."""
        if source in self._inputs:
            return self._probe.input(source).reshape(self._shapes[source])
        return self._probe.row_major(self._places[source])

    def outputs(self) -> dict[str, np.ndarray]:
        """Returns copies of the outputs that an op computes and that have elements."""
        return {n: a for n, a in self._probe.outputs().items() if self._origins.get(n) != NONE and a.size}

    def judged(self) -> dict[str, np.ndarray]:
        """Returns the outputs of the last run in the form in which errors are measured (output_error.py). Results of a
        sigmoid are measured by its inputs, which have more digits."""
        outputs = self.outputs()
        logits = {
            name: limited(self.array(source), "sigmoid") for name, source in self._logits.items() if name in outputs
        }
        origins = {name: origin for name, origin in self._origins.items() if name not in logits}
        return judged({**outputs, **logits}, origins)

    def answers(self) -> dict[str, int | None]:
        """Returns, for outputs that hold probabilities, the single answer in the last run (answers.py)."""
        if not set(self._origins.values()) - {NONE}:
            return {}
        return {name: only_answer(array) for name, array in self.outputs().items() if name in self._origins}

    def measure(
        self,
        arrays: Mapping[str, np.ndarray],
        question: Question,
        segments: Sequence[Segment] = (),
        number: int = 0,
        measured_at_outputs: Collection[str] = (),
    ) -> dict[str, list[np.ndarray]]:
        """Measures the outputs' squares (output_error.py) with one tensor quantised and all others float, for every
        candidate of each source. Sources with a gate in `segments` are measured there, unless they are in
        `measured_at_outputs`. number: the sample's.

        Works from the last tensor to the first: every tensor has its own memory, so everything before it is still as in
        the float run, and only the steps after it run again.
        """
        self.run(arrays)
        golden = self.judged()
        asked = {source for source, _ in question if source not in measured_at_outputs}
        gates = self._gates(arrays, golden, _needed(segments, asked), number)
        found: dict[str, list[np.ndarray]] = {}
        for source, ways in sorted(question, key=lambda candidate: -self._step(candidate[0])):
            data = self._data(source)
            if data.dtype != np.float32:
                found[source] = [squares_between(golden, golden, self._origins)] * len(ways)
                continue
            found[source] = []
            saved, gate = self._room(data.size, data.dtype), None if source in measured_at_outputs else gates.get(
                source
            )
            saved[:] = data
            for way in ways:
                data[:] = saved
                _calibration.fake_quantise(data, way.scale, way.zero_point, way.lowest, way.highest)
                found[source].append(self._squares_behind(source, gate, golden))
            data[:] = saved
        return found

    def measure_steps(
        self,
        other: "Worker",
        arrays: Mapping[str, np.ndarray],
        inputs: Mapping[str, str],
        segments: Sequence[Segment] = (),
        number: int = 0,
    ) -> dict[str, np.ndarray]:
        """Measures the outputs' squares with the result of one step computed by `other`, the model with other weights,
        from the same input, and everything else unchanged. inputs: source of the step's result to source of its input.
        Works like measure()."""
        other.run(arrays)
        self.run(arrays)
        golden = self.judged()
        gates = self._gates(arrays, golden, segments, number)
        found: dict[str, np.ndarray] = {}
        for source in sorted(inputs, key=lambda source: -self._step(source)):
            data, x = self._data(source), self._data(inputs[source])
            if data.dtype != np.float32 or x.dtype != np.float32:
                continue
            saved = self._room(data.size, data.dtype)
            saved[:] = data
            data[:] = other._again(source, inputs[source], x)
            found[source] = self._squares_behind(source, gates.get(source), golden)
            data[:] = saved
        return found

    def _again(self, source: str, read: str, x: np.ndarray) -> np.ndarray:
        """Returns the result of the step of `source` with x in place of `read`."""
        self._data(read)[:] = x
        step = self._step(source)
        self._probe.run_steps(step, step + 1)
        return self._data(source)

    def _squares_behind(self, source: str, gate: "_Gate | None", golden: Mapping[str, np.ndarray]) -> np.ndarray:
        """Returns the outputs' squares after `source` has been changed."""
        if gate:
            self._probe.run_steps(self._step(source) + 1, self._step(gate.source) + 1)
            return gate.squares(self._data(gate.source))
        self._probe.run_steps(self._step(source) + 1)
        return squares_between(golden, self.judged(), self._origins)

    def _gates(
        self,
        arrays: Mapping[str, np.ndarray],
        golden: Mapping[str, np.ndarray],
        segments: Sequence[Segment],
        number: int,
    ) -> dict[str, "_Gate"]:
        """Returns, by source, the gates for this sample, on which the model ran last; restores the tensors of that
        run."""
        wanted = {segment.gate: self._data(segment.gate).copy() for segment in segments}
        shares = self._shares.setdefault(number, {})
        if any(segment.gate not in shares for segment in segments):
            self._measure_shares(arrays, golden, wanted, segments, shares)
            self.run(arrays)
        return {
            member: _Gate(segment.gate, wanted[segment.gate], share)
            for segment in segments
            if (share := shares[segment.gate]) is not None
            for member, _ in segment.members
            if self._step(member) < self._step(segment.gate)
        }

    def _measure_shares(
        self,
        arrays: Mapping[str, np.ndarray],
        golden: Mapping[str, np.ndarray],
        wanted: Mapping[str, np.ndarray],
        segments: Sequence[Segment],
        found: dict[str, np.ndarray | None],
    ) -> None:
        """Adds to `found` the outputs' squares for an error of 1 at each missing gate, measured with all tensors before
        the gate quantised; None for gates that no f32 error reaches."""
        changed = self._probe.steps  # the first step whose tensors no longer hold the values of the float run
        for segment in sorted(segments, key=lambda segment: -self._step(segment.gate)):
            members = [
                (self._data(source), self._step(source) + 1, way)
                for source, way in sorted(segment.members, key=lambda member: self._step(member[0]))
            ]
            gate, end = segment.gate, self._step(segment.gate) + 1
            members = [member for member in members if member[0].dtype == np.float32 and member[1] < end]
            if gate in found:
                continue
            found[gate] = None
            if not members or wanted[gate].dtype != np.float32:
                continue
            if members[0][1] > changed:  # stretches of parallel branches overlap
                self.run(arrays)
            done = members[0][1]
            changed = done - 1
            for data, step, way in members:
                self._probe.run_steps(done, step)
                done = step
                _calibration.fake_quantise(data, way.scale, way.zero_point, way.lowest, 127)
            self._probe.run_steps(done, end)
            noise = _calibration.distance(wanted[gate], self._data(gate))[0]
            if (behind := found.get(segment.beyond)) is not None:
                self._probe.run_steps(end, self._step(segment.beyond) + 1)
                squares = _Gate(segment.beyond, wanted[segment.beyond], behind).squares(self._data(segment.beyond))
            else:
                self._probe.run_steps(end)
                squares = squares_between(golden, self.judged(), self._origins)
            if noise > 0 and np.isfinite(squares).all():
                squares[:, 0] /= noise
                found[gate] = squares

    def simulate(self, arrays: Mapping[str, np.ndarray], forms: Mapping[str, Candidate]) -> dict[str, np.ndarray]:
        """Returns the judged outputs with the sources rounded to their forms, each as soon as it is computed. Tensors
        within branches and loops are not rounded."""
        if self._shapes != {name: array.shape for name, array in arrays.items()}:
            self.run(arrays)
        for name in self._inputs:
            data = self._probe.input(name)
            data[:] = np.asarray(arrays[name], data.dtype).ravel()
        done = 0
        for source in sorted((s for s in forms if s not in self._repeated), key=self._step):
            end = self._step(source) + 1
            if end > done:
                self._probe.run_steps(done, end)
                done = end
            data = self._data(source)
            if data.dtype == np.float32:
                form = forms[source]
                _calibration.fake_quantise(data, form.scale, form.zero_point, form.lowest, form.highest)
        self._probe.run_steps(done)
        return self.judged()

    def disturb(self, arrays: Mapping[str, np.ndarray], power: Mapping[str, float]) -> dict[str, np.ndarray]:
        """Measures the outputs' squares (output_error.py), by source, with noise of the given power added to one tensor
        and all others unchanged. Tensors that are not f32 are left out."""
        self.run(arrays)
        golden, found, random = self.judged(), {}, np.random.default_rng(0)
        for source in sorted(power, key=lambda source: -self._step(source)):
            data = self._data(source)
            if data.dtype == np.float32:
                saved = data.copy()
                noise = random.normal(scale=power[source] ** 0.5, size=data.shape).astype(np.float32)
                data += np.where(data == 0, np.float32(0), noise)  # zeros of a rectifier or padding remain
                self._probe.run_steps(self._step(source) + 1)
                found[source] = squares_between(golden, self.judged(), self._origins)
                data[:] = saved
        return found

    def _data(self, source: str) -> np.ndarray:
        """Returns a tensor's elements in memory order; they may be changed."""
        return self._probe.input(source) if source in self._inputs else self._places[source].data

    def _step(self, source: str) -> int:
        return -1 if source in self._inputs else self._places[source].step
