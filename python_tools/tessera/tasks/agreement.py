# SPDX-License-Identifier: Apache-2.0
"""How much a model answers as another one does, on samples without labels."""
from __future__ import annotations

from typing import Iterable, Mapping

import numpy as np

from ..errors import TesseraError
from . import Model


def score(model: Model, golden: Model, samples: Iterable[Mapping[str, np.ndarray]]) -> dict[str, float]:
    """{'n', 'cos', 'rel_l2', 'same_top'} over all float outputs of both.

    cos, rel_l2: of all outputs of a sample together, mean over the samples. same_top: share of positions whose largest
    entry along the last axis is the same one, over outputs whose last axis has more than one entry.
    """
    cosines, distances, same, positions = [], [], 0, 0
    for arrays in samples:
        wanted, got = golden.run(arrays), model.run(arrays)
        names = [name for name, value in wanted.items() if name in got and value.dtype.kind == "f"]
        if not names:
            raise TesseraError("the models have no float output of the same name: nothing can be compared")
        a = np.concatenate([np.ravel(wanted[name]).astype(np.float64) for name in names])
        b = np.concatenate([np.ravel(got[name]).astype(np.float64) for name in names])
        norms = float(np.linalg.norm(a) * np.linalg.norm(b))
        cosines.append(float(a @ b) / norms if norms > 0 else float(np.array_equal(a, b)))
        distances.append(float(np.linalg.norm(a - b) / max(float(np.linalg.norm(a)), 1e-30)))
        for name in names:
            if wanted[name].ndim and wanted[name].shape[-1] > 1:
                equal = np.argmax(wanted[name], axis=-1) == np.argmax(got[name], axis=-1)
                same, positions = same + int(equal.sum()), positions + equal.size
    if not cosines:
        raise TesseraError("the data holds no sample: nothing was compared")
    return {
        "n": len(cosines),
        "cos": float(np.mean(cosines)),
        "rel_l2": float(np.mean(distances)),
        **({"same_top": same / positions} if positions else {}),
    }
