# SPDX-License-Identifier: Apache-2.0
"""The model compiled so that all its tensors can be seen."""
from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Mapping, Sequence

import numpy as np

from .. import top_model
from ..progress import Report
from ..top_model import TopModel
from .worker import Job


@dataclass(frozen=True)
class Observed:
    """info: what the compiler tells of it; weights: file of the constants that convolutions and matmuls multiply with.
    factors: by tensors, what their channels were divided by, and so those of what reads them (equalization.py)."""

    model: TopModel
    bmodel: Path
    weights: Path
    info: dict
    flags: tuple[str, ...] = ()
    factors: Mapping[str, np.ndarray] = field(default_factory=dict)

    @staticmethod
    def compile(model: TopModel, folder: Path, report: Report, flags: Sequence[str]) -> "Observed":
        """Into `folder`; flags: of tessera-compile."""
        folder.mkdir(exist_ok=True)
        bmodel, weights = folder / "observed.bmodel", folder / "weights.safetensors"
        info = top_model.deploy(
            model, bmodel, report, chip="x86", quantize="F32", extra=["--observe", "--weights", str(weights), *flags]
        )
        return Observed(model, bmodel, weights, info, tuple(flags))

    def compile_again(self, bmodel: Path, weights: Path) -> None:
        """With f32 `weights` in place of those that have such names."""
        extra = ["--observe", "--replaced-weights", str(weights), *self.flags]
        top_model.deploy(self.model, bmodel, Report(1, quiet=True), chip="x86", quantize="F32", extra=extra)

    def job(self) -> Job:
        """For workers that look at it."""
        return Job(
            f"{self.info['model_hash']} {self.bmodel}",
            str(self.bmodel),
            self.model.inputs,
            tuple(self.sources),
            self.model.probabilities,
            self.logits,
            fixed=frozenset(map(str, self.info["fixed_outputs"])),
        )

    @property
    def logits(self) -> tuple[tuple[str, str], ...]:
        """Outputs that a sigmoid made and the sources of what it read."""
        sources = self.source_of
        return tuple((output, sources[name]) for output, name in self.info["logits"].items() if sources.get(name))

    @property
    def sources(self) -> list[str]:
        """Names of the tensors that there are in memory; others share theirs."""
        return list(dict.fromkeys(str(t["source"]) for t in self.info["tensors"] if t["source"]))

    @property
    def integers(self) -> set[str]:
        """Sources whose tensors int8 may hold in integers; ranges of others are not used."""
        return {str(t["source"]) for t in self.info["tensors"] if t["source"] and t["integer"]}

    @property
    def source_of(self) -> dict[str, str]:
        """Where the values of each tensor are."""
        return {t["name"]: t["source"] for t in self.info["tensors"]}

    @property
    def shape_of(self) -> dict[str, tuple[int, ...]]:
        return {t["name"]: tuple(t["shape"]) for t in self.info["tensors"]}
