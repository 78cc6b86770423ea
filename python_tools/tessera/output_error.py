# SPDX-License-Identifier: Apache-2.0
"""Defines the error of a model's outputs against those of the f32 model. Calibration, deployment, `tessera accuracy`,
searches and reports all use this definition.

| output | error, over all samples together |
| real numbers | relative error: norm of the difference / norm of the f32 output |
| probabilities | log-odds error: relative error of log(p / (1 - p)) |
| integers | share of integers that differ |

The error of a model is the root mean square over its float outputs, or over its integers if it has no float outputs.

Norms are summed over all samples before they are divided. If the answer is empty in most samples (no text, no face:
values near zero), the other samples decide, instead of relative errors of nothing. The sum is of norms, not of their
squares, so that one outlier does not outweigh all other samples.

Log-odds are the inputs of the sigmoid or softmax. They show how exact the network is even for a sample whose answer is
certain. A softmax ignores their mean, and the mean of many sigmoids (a map, boxes) only shows how rare an answer is, so
the divisor is their variation within the sample. Up to FEW sigmoids (labels) are measured from log-odds of 0, where an
answer changes. Softmax probabilities below 1e-9 carry no information. Sigmoid probabilities do down to the smallest
f32, because a picture without text has no others. f32 cannot distinguish probabilities above 1 - 1e-7. Engines that
output 0 for small probabilities, such as onnxruntime's sigmoid and integers, cannot distinguish those below 1e-7.
"""
from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Iterable, Mapping

import numpy as np

from tessera import _calibration

from .calibration.dataset import spread
from .inputs import InputSpec

SAMPLES = 16
"""Maximum number of samples on which errors are measured."""
MOST_BYTES = 128 << 20
"""Maximum size of the inputs and outputs of these samples, which calibration keeps."""
SHOWN = 3
"""Number of outputs that messages name, worst first."""
RELATIVE, LOG_ODDS, DIFFERENT = "relative error", "log-odds error", "share of different integers"
FEW = 16
"""Maximum number of sigmoids in an output that are independent labels."""
SMALLEST = {"softmax": 1e-9, "sigmoid": 1e-37}
COARSE = 1e-7
"""Resolution of f32 near 1, and smallest probability that counts if an engine outputs 0."""

Arrays = Mapping[str, np.ndarray]
Origins = Mapping[str, str]
"""The op that computes an output: "sigmoid", "softmax", or NONE for constants and inputs. Other outputs are missing.
These are the values of TensorDef.computed_by in a .bmodel."""
NONE = "none"


def pick_samples(numbers: Iterable[int], specs: Iterable[InputSpec]) -> list[int]:
    """Returns the samples among `numbers` on which errors are measured: SAMPLES, evenly spread, or fewer if the tensors
    in `specs` would exceed MOST_BYTES."""
    ordered = sorted(numbers)
    size = sum(math.prod(spec.shape) * np.dtype(spec.array_dtype).itemsize for spec in specs)
    return [ordered[i] for i in spread(len(ordered), min(SAMPLES, max(MOST_BYTES // max(size, 1), 1)))]


@dataclass(frozen=True)
class OutputError:
    """samples: how many were measured. outputs: by output, the name of its error and the error."""

    samples: int
    outputs: Mapping[str, tuple[str, float]]

    @property
    def error(self) -> float:
        """The error of the model. NaN if no output could be measured."""
        floats = [error for name, error in self.outputs.values() if name != DIFFERENT]
        counted = floats or [error for _, error in self.outputs.values()]
        return math.sqrt(sum(error**2 for error in counted) / len(counted)) if counted else math.nan

    @property
    def name(self) -> str:
        """Name of the error, e.g. "relative error"."""
        return name_of(name for name, _ in self.outputs.values())

    def __str__(self) -> str:
        if not self.outputs:
            return "no output can be compared"
        text = f"{self.name} {self.error:.2%} on {self.samples} sample{'s' * (self.samples != 1)}"
        if len(self.outputs) == 1:
            return text
        worst = sorted(self.outputs.items(), key=lambda item: -item[1][1])
        parts = [f"{'' if kind == self.name else kind + ' of '}'{name}' {error:.2%}" for name, (kind, error) in worst]
        more = f", … and {len(parts) - SHOWN} more" if len(parts) > SHOWN else ""
        return f"{text} ({', '.join(parts[:SHOWN])}{more})"

    def as_dict(self) -> dict[str, object]:
        """Returns the error for JSON; values that are not finite become null."""

        def number(error: float) -> float | None:
            return error if math.isfinite(error) else None

        outputs = {n: {"name": kind, "error": number(error)} for n, (kind, error) in self.outputs.items()}
        return {
            "samples": self.samples,
            "name": self.name,
            "error": number(self.error),
            "outputs": outputs,
            "text": str(self),
        }


def name_of(names: Iterable[str]) -> str:
    """Returns the name of a model's error, given the names of its outputs' errors."""
    found = set(names)
    counted = found - {DIFFERENT} or found
    return counted.pop() if len(counted) == 1 else "output error"


def name_for(outputs: Iterable[InputSpec], origins: Origins) -> str:
    """Returns the name of the error of a model with these outputs."""
    computed = [spec for spec in outputs if origins.get(spec.name) != NONE]
    return name_of(_name(spec.name, np.dtype(spec.array_dtype), origins) for spec in computed)


def _name(output: str, dtype: np.dtype, origins: Origins) -> str:
    return DIFFERENT if dtype.kind != "f" else LOG_ODDS if output in origins else RELATIVE


@dataclass
class Meter:
    """Measures outputs sample by sample. Ignores outputs that no op computes, because they would dilute the error, and
    outputs that the tested model lacks or has in another shape."""

    origins: Origins
    samples: int = 0
    _rows: dict[str, list[np.ndarray]] = field(default_factory=dict)
    _names: dict[str, str] = field(default_factory=dict)

    def add(self, golden: Arrays, got: Arrays) -> None:
        """Adds the outputs of the f32 model and of the tested model for a sample."""
        self.samples += 1
        for name, want in golden.items():
            is_comparable = name in got and got[name].shape == want.shape and want.dtype.kind in "fiub"
            if is_comparable and want.size and self.origins.get(name) != NONE:
                (row,) = squares({name: want}, {name: got[name]}, self.origins)
                self._rows.setdefault(name, []).append(row)
                self._names[name] = _name(name, want.dtype, self.origins)

    def result(self) -> OutputError:
        errors = {name: math.sqrt(relative(row[None] for row in rows)) for name, rows in self._rows.items()}
        return OutputError(self.samples, {name: (self._names[name], error) for name, error in errors.items()})


def squares(golden: Arrays, got: Arrays, origins: Origins = {}) -> np.ndarray:
    """Returns, for one sample, float64 [judged outputs, 2]: the sum of |got - golden|^2 and the squared norm that the
    error is relative to, each divided by the number of elements, so that samples of different sizes count alike.
    Ignores values that are not finite on either side.
    """
    floors = {name: COARSE for name in origins if name in golden and not (np.all(golden[name]) and np.all(got[name]))}
    return squares_between(judged(golden, origins, floors), judged(got, origins, floors), origins)


def judged(outputs: Arrays, origins: Origins, floors: Mapping[str, float] = {}) -> dict[str, np.ndarray]:
    """Returns the outputs in the form in which errors are measured: the floats, probabilities as log-odds, or the
    integers if there are no floats. floors: smallest probabilities that count, if they differ from the op's."""
    floats = {
        name: log_odds(array, floors.get(name, SMALLEST[origins[name]])) if name in origins else array
        for name, array in outputs.items()
        if array.dtype.kind == "f"
    }
    return floats or {name: array for name, array in outputs.items() if array.dtype.kind in "iub"}


def log_odds(p: np.ndarray, smallest: float) -> np.ndarray:
    p = np.clip(p.astype(np.float64), smallest, 1 - COARSE)
    return np.log(p / (1 - p))


def limited(logits: np.ndarray, op: str) -> np.ndarray:
    """Limits the inputs of a sigmoid or softmax to the range that log_odds() can reproduce."""
    low, high = (math.log(p / (1 - p)) for p in (SMALLEST[op], 1 - COARSE))
    return np.clip(logits, np.float32(low), np.float32(high))


def squares_between(golden: Arrays, got: Arrays, origins: Origins) -> np.ndarray:
    """Computes squares() for outputs that judged() returned."""
    rows = [np.divide(_row(want, got[n], origins.get(n, "")), max(want.size, 1)) for n, want in golden.items()]
    return np.array(rows, float).reshape(-1, 2)


def _row(want: np.ndarray, have: np.ndarray, op: str) -> tuple[float, float]:
    if want.dtype.kind != "f":
        return float(np.count_nonzero(want != have)) ** 2, float(want.size) ** 2
    is_from_mean = op == "softmax" or (op and want.size > FEW)
    if not is_from_mean:
        return _distance(want, have)
    total = want.sum(dtype=np.float64)
    if not np.isfinite(total + have.sum(dtype=np.float64)):
        usable = np.isfinite(want) & np.isfinite(have)
        want, have = want[usable], have[usable]
        total = want.sum(dtype=np.float64)
    noise, power = _distance(want, have)
    return noise, max(power - float(total) ** 2 / max(want.size, 1), 0.0)


def _distance(want: np.ndarray, have: np.ndarray) -> tuple[float, float]:
    """Returns the sums of |have - want|^2 and of |want|^2 over the values that are finite on both sides."""
    if want.dtype == np.float32 == have.dtype:
        return _calibration.distance(*map(np.ascontiguousarray, (want, have)))
    want, have = want.astype(np.float64), have.astype(np.float64)
    usable = np.isfinite(want) & np.isfinite(have)
    return float(np.sum(np.square(have[usable] - want[usable]))), float(np.sum(np.square(want[usable])))


def relative(samples: Iterable[np.ndarray]) -> float:
    """Returns the square of a model's error, given squares() for each sample. Norms are added in sample order; the
    result is the mean over outputs. An f32 output of zeros, or of equal log-odds, is measured absolutely."""
    noise, power = np.sqrt(np.stack(list(samples))).sum(0).T
    return float(np.mean(np.square(noise / np.where(power > 0, power, 1.0)))) if noise.size else 0.0
