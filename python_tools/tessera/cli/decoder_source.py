# SPDX-License-Identifier: Apache-2.0
"""A checkpoint of a decoder, and how it is compiled: for `tessera llm`, and on the way for `tessera accuracy`."""
from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Sequence

from .. import top_model
from ..errors import usage_error
from ..families import HOST
from ..llm.tokenizer_files import has_tokenizer, read_tokenizer
from ..progress import Report
from ..targets import targets
from ..top_model import TopModel

AS_IN_THE_FILE = "FILE"
KEEPS_BITS = ("W4A8", "W8A8")
"""Precisions that multiply the integers of the file."""


@dataclass(frozen=True)
class Precision:
    """How the weights of a checkpoint are treated. compiled: the precision for tessera-compile. dequantises: groups of
    integers in the file become f32 first."""

    compiled: str
    dequantises: bool

    @staticmethod
    def parse(name: str) -> "Precision":
        """Returns the precision that --quantize names."""
        if name == AS_IN_THE_FILE:
            return Precision("F32", False)
        known = targets().precision(name)
        if known.needs_table:
            raise usage_error(f"--quantize {name} needs calibration, which tessera llm does not support")
        return Precision(known.name, known.name not in KEEPS_BITS)


@dataclass(frozen=True)
class DecoderSource:
    """A .gguf file, a Hugging Face folder or an .onnx decoder, and the shape of the compiled model. tokenizer: of an
    .onnx file or a folder, None for the one beside the model."""

    path: Path
    tokenizer: str | None = None
    context: int | None = None
    chunk: int = 512
    all_logits: bool = False
    sequences: int | None = None
    kv: str | None = None

    def import_top(self, folder: Path, report: Report, dequantises: bool) -> tuple[TopModel, dict]:
        """Imports the checkpoint into `folder`. Returns the model and the importer's result."""
        return top_model.import_decoder(
            self.path,
            folder / f"{self.path.stem}_top.mlir",
            report,
            context=self.context,
            chunk=self.chunk,
            dequantises=dequantises,
            all_logits=self.all_logits,
            language=self._language_file(folder),
            sequences=self.sequences,
            kv=self.kv,
        )

    def compile(
        self,
        folder: Path,
        output: Path,
        report: Report,
        precision: Precision,
        chip: str = HOST,
        extra: Sequence[str] = (),
    ) -> None:
        """Compiles the checkpoint to `output`. folder: for temporary files."""
        model, _ = self.import_top(folder, report, precision.dequantises)
        top_model.deploy(model, output, report, chip=chip, quantize=precision.compiled, extra=extra)

    def _language_file(self, folder: Path) -> Path | None:
        """Writes the tokenizer of an .onnx file or a folder to `folder`; returns the file, or None without a
        tokenizer."""
        if self.path.suffix != ".onnx" and not self.path.is_dir():
            if self.tokenizer is not None:
                raise usage_error("--tokenizer is for .onnx files and folders: a .gguf file contains its tokenizer")
            return None
        beside = self.path if self.path.is_dir() else self.path.parent
        if self.tokenizer is None and not has_tokenizer(beside):
            return None
        path = beside if self.tokenizer is None else Path(self.tokenizer)
        file = folder / "language.json"
        file.write_text(json.dumps(read_tokenizer(path)))
        return file
