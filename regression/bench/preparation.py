# SPDX-License-Identifier: Apache-2.0
"""Prepares the models of all engines: the original, or quantised by the engine's own tools with the same samples."""
from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Iterable

from networks import Measured

from tessera import top_model
from tessera.errors import TesseraError
from tessera.files import save_npz
from tessera.progress import Report
from tessera.top_model import TopModel

# Engines that multiply in each precision; onnxruntime does not have bf16 kernels for CPUs.
ENGINES = {
    "f32": ("tessera", "onnxruntime", "openvino"),
    "bf16": ("tessera", "openvino"),
    "int8": ("tessera", "onnxruntime", "openvino"),
}
QUANTISER = Path(__file__).with_name("quantise_peers.py")
PACKAGE = Path(top_model.__file__).parent


def peers_python() -> str:
    """Returns the Python interpreter in which the peers are installed."""
    return os.environ.get("TESSERA_PEERS_PYTHON", sys.executable)


@lru_cache(maxsize=None)
def installed(module: str) -> bool:
    code = f"import importlib.util, sys; sys.exit(importlib.util.find_spec({module!r}) is None)"
    return subprocess.run([peers_python(), "-c", code], capture_output=True).returncode == 0


@dataclass(frozen=True)
class Prepared:
    """The prepared input, the models by engine, and the reasons of engines without a model."""

    inputs: Path
    files: dict[str, Path]
    info: dict[str, str]


class Preparation:
    """Prepares one model for all engines, in `folder`. Quantised files are kept in `cache` from run to run; their key
    is the files and the tool that they were made from."""

    def __init__(self, model: Measured, folder: Path, cache: Path, chip: str, samples: int) -> None:
        self._model, self._folder, self._cache, self._chip, self._samples = model, folder, cache, chip, samples
        self._top: TopModel | None = None

    def _imported(self) -> TopModel:
        if self._top is None:
            model, quiet = self._model, Report(1, sys.stderr, quiet=True)
            path = self._folder / f"{model.name}_top.mlir"
            self._top, _ = top_model.import_onnx(
                model.onnx, path, quiet, model_name=model.name, input_shapes=model.shapes
            )
        return self._top

    def prepare(self, precision: str) -> Prepared:
        """Prepares a precision. Raises TesseraError if Tessera cannot deploy the model."""
        top = self._imported()
        inputs = self._folder / "in.npz"
        save_npz(inputs, self._model.sample(top.inputs, 0))
        peers = [engine for engine in ENGINES[precision][1:] if installed(engine)]
        files, info = {engine: self._model.onnx for engine in peers}, {}
        flags = []
        if precision == "int8":
            flags = ["--calibration_table", str(self._calibrated())]
            files, info = self._quantised(peers)
        return Prepared(inputs, {"tessera": self._deployed(precision, flags), **files}, info)

    def _deployed(self, precision: str, flags: list[str]) -> Path:
        output = self._folder / f"{self._model.name}_{precision}.bmodel"
        command(
            "model_deploy", "--mlir", self._imported().path, "--chip", self._chip, "--quantize", precision.upper(),
            "--model", output, "--skip_validation", *flags,
        )  # fmt: skip
        return output

    def _data(self) -> Path:
        """Returns the samples, one file each."""
        folder = self._folder / "samples"
        if not folder.is_dir():
            folder.mkdir()
            for i in range(self._samples):
                save_npz(folder / f"{i:03}.npz", self._model.sample(self._imported().inputs, i))
        return folder

    def _calibrated(self) -> Path:
        makers = [PACKAGE / "calibration", PACKAGE.parents[1] / "bin/tessera-compile"]
        kept = self._kept("tessera", makers, "table.json")
        if not kept.is_file():
            result = self._folder / "table"
            result.mkdir()
            command(
                "run_calibration", self._imported().path, "--dataset", self._data(), "--input_num", self._samples,
                "--quantize", "INT8", "-o", result / kept.name,
            )  # fmt: skip
            _keep(result, kept)  # with the weights beside it
        return kept

    def _quantised(self, peers: list[str]) -> tuple[dict[str, Path], dict[str, str]]:
        files, info = {}, {}
        for engine in peers:
            kept = self._kept(engine, [QUANTISER], "model.xml" if engine == "openvino" else "model.onnx")
            if not kept.is_file():
                result = self._folder / engine
                result.mkdir(exist_ok=True)
                done = subprocess.run(
                    [peers_python(), QUANTISER, engine, self._model.onnx, self._data(), result / kept.name],
                    capture_output=True,
                    text=True,
                )
                if done.returncode:
                    info[engine] = (done.stderr.strip().splitlines() or ["no message"])[-1]
                    continue
                for file in result.glob("ort_*"):
                    file.unlink()
                _keep(result, kept)
            files[engine] = kept
        return files, info

    def _kept(self, engine: str, makers: Iterable[Path], name: str) -> Path:
        key = _digest([self._model.onnx, *makers], f"{engine} {self._samples} {self._model.shapes}")
        return self._cache / f"{self._model.name}-{engine}-{key}" / name


def _keep(result: Path, kept: Path) -> None:
    """Moves the folder `made` to its place `kept` in the cache."""
    kept.parent.parent.mkdir(parents=True, exist_ok=True)
    shutil.rmtree(kept.parent, ignore_errors=True)  # left by an interrupted run
    shutil.move(result, kept.parent)


def _digest(paths: Iterable[Path], text: str) -> str:
    found = hashlib.sha256(text.encode())
    for path in paths:
        for file in sorted(path.rglob("*.py")) if path.is_dir() else [path]:
            found.update(hashlib.sha256(file.read_bytes()).digest())
    return found.hexdigest()[:16]


def command(name: str, *arguments: object) -> None:
    done = subprocess.run(
        [PACKAGE.parents[1] / "bin" / name, *map(str, arguments), "--quiet"], capture_output=True, text=True
    )
    if done.returncode:
        raise TesseraError((done.stderr.strip().splitlines() or [f"{name} failed"])[0])
