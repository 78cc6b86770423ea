# SPDX-License-Identifier: Apache-2.0
"""The model compiled so that all its tensors can be observed."""
from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Mapping, Sequence

import numpy as np

from .. import top_model
from ..families import HOST
from ..progress import Report
from ..top_model import TopModel
from .worker import Job, Worker


@dataclass(frozen=True)
class Observed:
    """A compiled model with visible tensors. info: the compiler's description. weights: file of the constants that
    convolutions and matmuls multiply with. factors: by tensor, the divisors of its channels, with which the readers'
    weights are multiplied (equalization.py)."""

    model: TopModel
    bmodel: Path
    weights: Path
    info: dict
    flags: tuple[str, ...] = ()
    factors: Mapping[str, np.ndarray] = field(default_factory=dict)

    @staticmethod
    def compile(model: TopModel, folder: Path, report: Report, flags: Sequence[str]) -> "Observed":
        """Compiles the model into `folder`. flags: of tessera-compile."""
        folder.mkdir(exist_ok=True)
        bmodel, weights = folder / "observed.bmodel", folder / "weights.safetensors"
        info = top_model.deploy(
            model, bmodel, report, chip=HOST, quantize="F32", extra=["--observe", "--weights", str(weights), *flags]
        )
        return Observed(model, bmodel, weights, info, tuple(flags))

    def compile_again(self, bmodel: Path, weights: Path) -> None:
        """Compiles with f32 `weights` in place of the weights with these names."""
        extra = ["--observe", "--replaced-weights", str(weights), *self.flags]
        top_model.deploy(self.model, bmodel, Report(1, quiet=True), chip=HOST, quantize="F32", extra=extra)

    def job(self) -> Job:
        """Returns the job for workers that run this model."""
        return Job(
            f"{self.info['model_hash']} {self.bmodel}",
            str(self.bmodel),
            self.model.inputs,
            tuple(self.sources),
            tuple(self.model.origins.items()),
            self.logits,
            varying=frozenset(str(t["source"]) for t in self.info["tensors"] if t["source"] and t["sizes"]),
            repeated=frozenset(self.repeated),
        )

    @property
    def logits(self) -> tuple[tuple[str, str], ...]:
        """Outputs that are results of a sigmoid, with the sources of the sigmoid's input."""
        sources = self.source_of
        return tuple((output, sources[name]) for output, name in self.info["logits"].items() if sources.get(name))

    @property
    def sources(self) -> list[str]:
        """Names of the tensors with storage of their own; other tensors share it."""
        return list(dict.fromkeys(str(t["source"]) for t in self.info["tensors"] if t["source"]))

    @property
    def integers(self) -> set[str]:
        """Sources whose tensors int8 may store as integers; the ranges of others are not used."""
        return {str(t["source"]) for t in self.info["tensors"] if t["source"] and t["integer"]}

    @cached_property
    def repeated(self) -> set[str]:
        """Sources that branches and loops compute: a run does so any number of times."""
        return {str(t["source"]) for t in self.info["tensors"] if t["source"] and t.get("repeated")}

    @property
    def source_of(self) -> dict[str, str]:
        """Source of each tensor, i.e. the name of the tensor that holds its values."""
        return {t["name"]: t["source"] for t in self.info["tensors"]}

    @cached_property
    def shape_of(self) -> dict[str, tuple[int, ...]]:
        """Shapes of the tensors at likely sizes. Tensors whose shape in a run does not follow from that of their source
        are missing."""
        return {name: tuple(t["shape"]) for name, t in self._tensors.items() if len(self._own_sizes(name)) <= 1}

    def array(self, worker: Worker, name: str) -> np.ndarray:
        """Returns a tensor of shape_of in its shape in the worker's last run."""
        source = self._tensors[name]["source"]
        array = worker.array(source)
        if not self._tensors[name]["sizes"]:
            return array.reshape(self.shape_of[name])
        known = dict(zip(self._sizes(source), array.shape))
        return array.reshape([int(size) if size.isdecimal() else known.get(size, -1) for size in self._sizes(name)])

    @cached_property
    def _tensors(self) -> dict[str, dict]:
        return {t["name"]: t for t in self.info["tensors"]}

    def _sizes(self, name: str) -> list[str]:
        """Returns the sizes of a tensor as text; those that are not numbers differ from run to run."""
        return self._tensors[name]["sizes"] or list(map(str, self._tensors[name]["shape"])) if name else []

    def _own_sizes(self, name: str) -> list[str]:
        """Returns the sizes known only at run time that a tensor does not share with its source."""
        known = self._sizes(self._tensors[name]["source"])
        return [size for size in self._sizes(name) if not size.isdecimal() and size not in known]
