# SPDX-License-Identifier: Apache-2.0
"""Calibration samples of the language model: texts it tells itself, token by token by the odds it gives them."""
import os
from pathlib import Path

import numpy as np
from tessera.onnx_runner import OnnxModel

LENGTH, BOS = 512, 1


def samples():
    model = OnnxModel(Path(os.environ["TESSERA_DATA"]) / "models/llm/stories260k.onnx")
    generator = np.random.default_rng(0)
    while True:
        ids = np.array([[BOS]], np.int64)
        while ids.shape[1] < LENGTH:
            logits = model.run({"input_ids": ids})["logits"][0, -1].astype(np.float64)
            odds = np.exp(logits - logits.max())
            ids = np.append(ids, [[generator.choice(len(odds), p=odds / odds.sum())]], axis=1)
        yield {"input_ids": ids}
