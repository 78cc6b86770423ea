# SPDX-License-Identifier: Apache-2.0
"""Text generation with compiled language models.

    import tessera.llm
    model = tessera.llm.load("m.bmodel")
    for piece in model.generate("Once upon a time", max_tokens=50):
        print(piece, end="", flush=True)
"""
from .batch import Batch
from .constraint import Constraint
from .model import LanguageModel, load
from .sampling import Sampling
from .speculation import Drafter

__all__ = ["Batch", "Constraint", "Drafter", "LanguageModel", "Sampling", "load"]
