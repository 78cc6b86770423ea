# SPDX-License-Identifier: Apache-2.0
"""The error of a model's outputs against the f32 model, over several samples together.

Norms are summed over all samples before they are divided, so an answer that is empty in most samples (no text, no face:
values near zero) is judged by the samples that have one, not by relative errors of near-zero values. Summing norms
rather than their squares keeps one outlier from outweighing all other samples.

Probabilities p count as log(p / (1 - p)), the input of the sigmoid or softmax: there every sample shows how exact the
network is, even one with a certain answer. Softmax results below 1e-9 carry no information. Results of a sigmoid do as
long as f32 can represent them, as in a picture without text, which has no larger ones. Above 1 - 1e-7 f32 cannot
distinguish them.
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
    """Returns the sums of one sample, float64 [float outputs, 4]: sum of |got - golden|^2, sum of |golden|^2, and sum
    and number of the values of golden from which the mean to subtract follows (0 and 1 if no mean is subtracted).

    Values that are not finite in either are left out. probabilities: names of outputs that are probabilities; sigmoids:
    those of them that are results of a sigmoid.
    """
    return squares_between(judged(golden, probabilities, sigmoids), judged(got, probabilities, sigmoids), probabilities)


def judged(
    outputs: Mapping[str, np.ndarray], probabilities: Collection[str], sigmoids: Collection[str] = ()
) -> dict[str, np.ndarray]:
    """Returns the float outputs as compared: probabilities as logits."""
    return {
        name: _logit(array.astype(np.float64), name in sigmoids) if name in probabilities else array
        for name, array in outputs.items()
        if array.dtype.kind == "f"
    }


def squares_between(
    golden: Mapping[str, np.ndarray], got: Mapping[str, np.ndarray], probabilities: Collection[str]
) -> np.ndarray:
    """Returns squares() of outputs that judged() has converted."""
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
    """Returns the sum and number of the values of `want`; None if any value of either is not finite."""
    total = want.sum(dtype=np.float64)
    return (total, want.size) if np.isfinite(total + have.sum(dtype=np.float64)) else None


def _logit(p: np.ndarray, of_sigmoid: bool) -> np.ndarray:
    p = np.clip(p, _SMALLEST_OF_SIGMOID if of_sigmoid else _SMALLEST, _LARGEST)
    return np.log(p / (1 - p))


def relative(samples: Iterable[np.ndarray]) -> float:
    """Returns the square of |got - golden| / |golden|, with both norms summed over the samples in order; the mean over
    the outputs. For probabilities the divisor is their standard deviation times the square root of their number."""
    noise, power, total, count = np.stack(list(samples)).transpose(2, 0, 1)
    power = np.maximum(power - np.square(total) / np.maximum(count, 1), 0)
    noise, power = np.sqrt(noise).sum(0), np.sqrt(power).sum(0)
    return float(np.mean(np.square(noise / np.where(power > 0, power, 1.0)))) if noise.size else 0.0
