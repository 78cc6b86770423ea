# SPDX-License-Identifier: Apache-2.0
"""Writes a text that a compiled language model of stories makes up, long enough for calibration."""
from __future__ import annotations

from pathlib import Path

from tessera.llm import LanguageModel, Sampling, load

PROMPTS = ("Once upon a time", "One day")


def write_stories(path: Path, model: Path, count: int = 80, length: int = 230) -> None:
    """Writes `count` stories of up to `length` tokens. model: compiled with --sequences."""
    net: LanguageModel = load(model)
    batch = net.batch()
    prompts = [PROMPTS[i % len(PROMPTS)] for i in range(count)]
    numbers = [
        batch.add(net.tokenizer.encode(prompt), length, Sampling(temperature=1.0, seed=i))
        for i, prompt in enumerate(prompts)
    ]
    made: dict[int, list[int]] = {number: [] for number in numbers}
    while len(batch):
        for number, token in batch.step().tokens.items():
            made[number].append(token)
    path.write_text("\n".join(p + net.tokenizer.decode(made[n]) for p, n in zip(prompts, numbers)) + "\n")
