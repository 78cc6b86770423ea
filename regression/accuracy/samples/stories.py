# SPDX-License-Identifier: Apache-2.0
"""Produces calibration samples for the language model: texts that the model generates token by token, drawn from its
own probabilities."""
import os
from pathlib import Path

import numpy as np
from tessera.onnx_runner import OnnxModel

LENGTH, BOS, LAYERS, HEADS, WIDTH = 512, 1, 5, 4, 8


def samples():
    # The graph with cached keys and values; the other one would recompute all previous tokens for each token.
    model = OnnxModel(Path(os.environ["TESSERA_DATA"]) / "models/llm/stories260k_kv.onnx")
    generator = np.random.default_rng(0)
    while True:
        yield {"input_ids": np.array([story(model, generator)], np.int64)}


def story(model: OnnxModel, generator: np.random.Generator) -> list[int]:
    ids = [BOS]
    kept = {f"{layer}.{kind}": np.zeros((1, HEADS, 0, WIDTH), np.float32)
            for layer in range(LAYERS) for kind in ("key", "value")}  # fmt: skip
    while len(ids) < LENGTH:
        info = model.run({
            "input_ids": np.array([ids[-1:]], np.int64),
            "position_ids": np.array([[len(ids) - 1]], np.int64),
            "attention_bias": np.zeros((1, 1, 1, len(ids)), np.float32),  # all tokens precede this one
            **{f"past_key_values.{name}": value for name, value in kept.items()},
        })  # fmt: skip
        kept = {name: info[f"present.{name}"] for name in kept}
        logits = info["logits"][0, -1].astype(np.float64)
        odds = np.exp(logits - logits.max())
        ids.append(int(generator.choice(len(odds), p=odds / odds.sum())))
    return ids
