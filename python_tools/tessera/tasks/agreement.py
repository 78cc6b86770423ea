# SPDX-License-Identifier: Apache-2.0
"""Agreement of a model's outputs with another model's, on samples without labels."""
from __future__ import annotations

from typing import Collection, Iterable, Mapping, Sequence

import numpy as np

from ..errors import TesseraError
from ..inputs import InputSpec
from ..output_error import Meter
from . import Model
from .answers import count_same

MOST_SQNR = 200.0
"""Reported for outputs that are equal."""


def score(
    model: Model,
    golden: Model,
    samples: Iterable[tuple[int, Mapping[str, np.ndarray]]],
    meter: Meter,
    measured: Collection[int],
) -> dict[str, float]:
    """Returns 'n', 'cos', 'error', 'sqnr', 'same_top', 'agree', 'cos_others' over all float outputs of both.

    samples: inputs with the numbers of the samples. meter: measures those numbered in `measured`; error: its result.
    cos: of all outputs of a sample together, averaged over the samples. sqnr: in dB over all samples, of the
    worst output. same_top: share of positions with the same largest entry along the last axis, over outputs whose last
    axis has more than one entry. agree: percentage of equal answers (answers.py) of the worst output; absent if no
    output gives answers. cos_others: mean cosine between golden's outputs for consecutive samples, which shows how
    meaningful a cosine is; absent with one sample.
    """
    cosines, same, positions = [], 0, 0
    others: list[float] = []
    noise: dict[str, np.ndarray] = {}
    answers: dict[str, np.ndarray] = {}
    size, before = picture_size(golden.inputs), None
    for number, arrays in samples:
        wanted, got = golden.run(arrays), model.run(arrays)
        if number in measured:
            meter.add(wanted, got)
        names = [name for name, value in wanted.items() if name in got and value.dtype.kind == "f"]
        if not names:
            raise TesseraError("the models do not have a float output of the same name, so nothing can be compared")
        a = np.concatenate([np.ravel(wanted[name]).astype(np.float64) for name in names])
        b = np.concatenate([np.ravel(got[name]).astype(np.float64) for name in names])
        cosines.append(_cosine(a, b))
        if before is not None and before.shape == a.shape:
            others.append(_cosine(before, a))
        before = a
        for name in names:
            x, y = wanted[name].astype(np.float64), got[name].astype(np.float64)
            noise[name] = noise.get(name, np.zeros(2)) + (np.square(x - y).sum(), np.square(x).sum())
            if wanted[name].ndim and wanted[name].shape[-1] > 1:
                equal = np.argmax(wanted[name], axis=-1) == np.argmax(got[name], axis=-1)
                same, positions = same + int(equal.sum()), positions + equal.size
        for name, counted in count_same(wanted, got, size).items():
            answers[name] = answers.get(name, np.zeros(2)) + counted
    if not cosines:
        raise TesseraError("the data does not contain samples, so nothing was compared")
    agreed = [100 * float(a / b) for a, b in answers.values() if b]
    return {
        "n": len(cosines),
        "cos": float(np.mean(cosines)),
        "error": meter.result().error,
        "sqnr": min(_decibels(*sums) for sums in noise.values()),
        **({"same_top": same / positions} if positions else {}),
        **({"agree": min(agreed)} if agreed else {}),
        **({"cos_others": float(np.mean(others))} if others else {}),
    }


def picture_size(inputs: Sequence[InputSpec]) -> tuple[int, int] | None:
    """Returns height and width of the picture that a model with one picture input sees."""
    if len(inputs) != 1 or len(inputs[0].shape) != 4:
        return None
    shape = inputs[0].shape
    return (shape[1], shape[2]) if shape[3] in (1, 3) else (shape[2], shape[3])


def _cosine(a: np.ndarray, b: np.ndarray) -> float:
    norms = float(np.linalg.norm(a) * np.linalg.norm(b))
    return float(a @ b) / norms if norms > 0 else float(np.array_equal(a, b))


def _decibels(noise: float, power: float) -> float:
    if not noise > 0:
        return MOST_SQNR if noise == 0 else -MOST_SQNR
    return float(np.clip(10 * np.log10(max(power, 1e-300) / noise), -MOST_SQNR, MOST_SQNR))
