# SPDX-License-Identifier: Apache-2.0
"""Finds the models for ./dev bench: files, folders of files, or the networks of the zoo at full size, exported when
needed."""
from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Mapping, Sequence

import numpy as np

from tessera.errors import TesseraError
from tessera.inputs import InputSpec, random_inputs

REGRESSION = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(REGRESSION / "zoo"))

import registry  # noqa: E402

ZOO = "zoo"
DEFAULT_MODELS = (
    "topology/light_resnet50.onnx",
    "cls/mobilenetv2_1.0_224.onnx",
    "det/yolox_nano_416.onnx",
    "transformer/vittrack.onnx",
)


@dataclass(frozen=True)
class Measured:
    """A model. shapes: NAME=1x3x224x224,.. for dynamic dims. kinds: of inputs whose values have a meaning (ids, masks);
    all others are drawn from a normal distribution."""

    name: str
    onnx: Path
    shapes: str | None = None
    kinds: Mapping[str, registry.Input] | None = None

    def sample(self, specs: Sequence[InputSpec], seed: int) -> dict[str, np.ndarray]:
        """Returns values of all inputs, the same for the same seed."""
        drawn = random_inputs(specs, seed)
        generator = np.random.default_rng(seed)
        for spec in specs:
            if self.kinds and spec.name in self.kinds:
                drawn[spec.name] = self.kinds[spec.name].sample(generator).astype(spec.dtype)
        return drawn


def choose(given: Sequence[str], models: str | None, folder: Path) -> list[Measured]:
    """Returns the models to measure. given: FILE or FILE:SHAPES. models: "zoo", or a folder that has a subfolder for
    each model. folder: the folder for the networks of the zoo."""
    found = [_file(text) for text in given]
    if models == ZOO:
        found += _zoo(folder)
    elif models:
        found += _folder(Path(models))
    return found or _defaults()


def _file(text: str) -> Measured:
    name, _, shapes = text.partition(":")
    return Measured(Path(name).stem, Path(name), shapes or None)


def _defaults() -> list[Measured]:
    root = os.environ.get("TESSERA_DATA", "")
    files = [path for name in DEFAULT_MODELS if root and (path := Path(root) / "models" / name).is_file()]
    return [
        _file(str(file)) for file in files or [REGRESSION / "models/mobilenetv1_0.25_128/mobilenetv1_0.25_128.onnx"]
    ]


def _folder(root: Path) -> list[Measured]:
    """Returns models in folders named after them, each with an inputs.json if the zoo's exporter wrote one."""
    files = sorted(root.glob("*/*.onnx"))
    if not files:
        raise TesseraError(f"--models {root}: no file NAME/*.onnx there")
    return [Measured(file.parent.name, file, None, _kinds(file.with_name("inputs.json"))) for file in files]


def _kinds(path: Path) -> dict[str, registry.Input] | None:
    if not path.is_file():
        return None
    info = json.loads(path.read_text())
    return {name: registry.Input(**{**fields, "shape": tuple(fields["shape"])}) for name, fields in info.items()}


def _zoo(root: Path) -> list[Measured]:
    """Returns the networks of regression/zoo/networks/full_size.py, after exporting those that are not in `root`."""
    networks = registry.full_size_networks()
    files = {network.name: root / f"{network.name}.{network.exporters[0]}" / "model.onnx" for network in networks}
    missing = [f"{n.name}:{n.exporters[0]}" for n in networks if not files[n.name].is_file()]
    if missing:
        python = os.environ.get("TESSERA_ZOO_PYTHON", sys.executable)
        print(f"exporting {len(missing)} networks into {root}", file=sys.stderr)
        subprocess.run([python, REGRESSION / "zoo/export.py", root, *missing], stdout=sys.stderr, check=True)
    for name, file in files.items():
        if not file.is_file():
            info = (file.with_name("error.txt").read_text().strip().splitlines() or ["no message"])[-1]
            print(f"not measured: {name} could not be exported: {info}")
    return [
        Measured(name.removeprefix("full-"), file, None, _kinds(file.with_name("inputs.json")))
        for name, file in files.items()
        if file.is_file()
    ]
