# SPDX-License-Identifier: Apache-2.0
"""Random decoders of the package transformers, and their logits to compare with."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tessera.llm import LanguageModel


def random_decoder(prefix: str, sizes: dict[str, Any], vocabulary: int) -> tuple[Any, list[int], np.ndarray]:
    """Returns a network of the classes that begin with `prefix`, 40 tokens, and their logits. Skips the test without
    torch or transformers."""
    torch, transformers = pytest.importorskip("torch"), pytest.importorskip("transformers")
    torch.manual_seed(1)
    config = getattr(transformers, f"{prefix}TextConfig" if prefix == "Gemma3" else f"{prefix}Config")(**sizes)
    family = f"{prefix}LMHeadModel" if prefix == "GPT2" else f"{prefix}ForCausalLM"
    network = getattr(transformers, family)(config).eval()
    with torch.no_grad():
        for parameter in network.parameters():  # initial values would make norms, biases and attention trivial
            parameter.copy_(torch.randn_like(parameter) * 0.3)
        tokens = np.random.default_rng(2).integers(0, vocabulary, 40).tolist()
        return network, tokens, network(torch.tensor([tokens])).logits[0].numpy()


def check_logits(model: LanguageModel, tokens: list[int], wanted: np.ndarray) -> None:
    """Compares the logits of a prompt of two runs and of single tokens. The model returns those of all tokens."""
    got = np.concatenate([model.feed(tokens[:16]), model.feed(tokens[16:29]), *map(model.feed, zip(tokens[29:]))])
    np.testing.assert_allclose(got, wanted, rtol=1e-3, atol=2e-4 * np.abs(wanted).max())
