# SPDX-License-Identifier: Apache-2.0
"""How far a model's outputs are from those of the f32 model, over several samples together.

Norms are summed over all samples before they are divided: an answer that is empty in most samples (no text, no face:
values near zero) is judged by those where there is something, not by relative errors of nothing. Norms and not their
squares, so that one sample gone astray does not outweigh all others.

Probabilities p count as log(p / (1 - p)), what the sigmoid or softmax saw: there every sample tells how exact the
network is, also one whose answer is beyond doubt. Those of a softmax below 1e-9 say nothing. Those of a sigmoid do as
long as f32 has them: a picture without text has no others. Above 1 - 1e-7 f32 does not tell them apart.
"""
from __future__ import annotations

from typing import Collection, Iterable, Mapping

import numpy as np

from tessera import _calibration

_SMALLEST, _SMALLEST_OF_SIGMOID, _LARGEST = 1e-9, 1e-37, 1 - 1e-7


def squares(
    golden: Mapping[str, np.ndarray],
    got: Mapping[str, np.ndarray],
    probabilities: Collection[str] = (),
    sigmoids: Collection[str] = (),
) -> np.ndarray:
    """Of one sample, float64 [float outputs, 4]: sum of |got - golden|^2, sum of |golden|^2, what to subtract a mean
    by: sum and number of the values of golden, 0 and 1 where zero is the answer that says nothing.

    Values that are not finite in either are left out. probabilities: names of outputs; sigmoids: of these, those that
    a sigmoid made.
    """
    return squares_between(judged(golden, probabilities, sigmoids), judged(got, probabilities, sigmoids), probabilities)


def judged(
    outputs: Mapping[str, np.ndarray], probabilities: Collection[str], sigmoids: Collection[str] = ()
) -> dict[str, np.ndarray]:
    """The float outputs as errors are measured of them."""
    return {
        name: _logit(array.astype(np.float64), name in sigmoids) if name in probabilities else array
        for name, array in outputs.items()
        if array.dtype.kind == "f"
    }


def squares_between(
    golden: Mapping[str, np.ndarray], got: Mapping[str, np.ndarray], probabilities: Collection[str]
) -> np.ndarray:
    """squares() of what judged() makes of the outputs."""
    found = []
    for name, want in golden.items():
        have = got[name]
        if want.dtype == np.float32 == have.dtype and (mean := _mean(want, have) if name in probabilities else (0, 1)):
            found.append((*_calibration.distance(*map(np.ascontiguousarray, (want, have))), *mean))
            continue
        want, have = want.astype(np.float64), have.astype(np.float64)
        usable = np.isfinite(want) & np.isfinite(have)
        want, have = want[usable], have[usable]
        mean = (want.sum(), want.size) if name in probabilities else (0, 1)
        found.append((np.sum(np.square(have - want)), np.sum(np.square(want)), *mean))
    return np.array(found, np.float64).reshape(-1, 4)


def _mean(want: np.ndarray, have: np.ndarray) -> tuple[float, int] | None:
    """Sum and number of the values of `want`; None where some in either are not finite."""
    total = want.sum(dtype=np.float64)
    return (total, want.size) if np.isfinite(total + have.sum(dtype=np.float64)) else None


def _logit(p: np.ndarray, of_sigmoid: bool) -> np.ndarray:
    p = np.clip(p, _SMALLEST_OF_SIGMOID if of_sigmoid else _SMALLEST, _LARGEST)
    return np.log(p / (1 - p))


def relative(samples: Iterable[np.ndarray]) -> float:
    """The square of |got - golden| / |golden|, both added over the samples in their order; the mean over the outputs.
    Of probabilities the divisor is how much they vary."""
    noise, power, total, count = np.stack(list(samples)).transpose(2, 0, 1)
    power = np.maximum(power - np.square(total) / np.maximum(count, 1), 0)
    noise, power = np.sqrt(noise).sum(0), np.sqrt(power).sum(0)
    return float(np.mean(np.square(noise / np.where(power > 0, power, 1.0)))) if noise.size else 0.0
