# SPDX-License-Identifier: Apache-2.0
"""Builds one case of regression/cases in several precisions with the commands a user has."""
from __future__ import annotations

import json
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

from case_file import REGRESSION, Case, data_path
from judges import JUDGES

from tessera import top_model
from tessera.inputs import InputSpec
from tessera.progress import Report
from tessera.tasks import TASKS

BUILD = Path(os.environ.get("TESSERA_BUILD_DIR", REGRESSION.parent / "build"))
TARGET = "INT8+target"
# Column -> flags of model_deploy; {table} is the calibration table.
COLUMNS = {
    "F32": ["--quantize", "F32"],
    "INT8": ["--quantize", "INT8", "--calibration_table", "{table}"],
    TARGET: ["--quantize", "INT8", "--calibration_table", "{table}"],
    "INT16": ["--quantize", "INT16", "--calibration_table", "{table}"],
    "BF16": ["--quantize", "BF16"],
    "F16": ["--quantize", "F16"],
    "W8": ["--quantize", "W8", "--calibration_table", "{table}"],
    "W4": ["--quantize", "W4", "--calibration_table", "{table}"],
    "DYNAMIC_INT8": ["--quantize", "DYNAMIC_INT8"],
}
ALONE = ("W8", "W4")
"""Weight-only precisions, whose weights the samples choose separately."""
DEFAULT_SAMPLES = 32
SCORER = """import sys
from pathlib import Path
sys.path.insert(0, {folder!r})
from judges import JUDGES
from tessera import any_model
from tessera.progress import Report
LIKE = any_model.open_model({like!r}, Report(1, quiet=True), 2)
SCALE = 1.0

def score(model, data):
    return next(iter(JUDGES[{judge!r}](model, LIKE, Path(data)).values()))
"""
DROP_TARGET, COSINE_TARGET = "drop<=0.5", "cos>=0.9995"


@dataclass(frozen=True)
class Built:
    """A compiled model, with a summary of its quantisation and the whole JSON output of the command."""

    bmodel: Path
    note: str
    info: dict


class Build:
    """Transforms once, calibrates once, and deploys once per column, in `folder`. commands: the commands that ran."""

    def __init__(self, case: Case, folder: Path) -> None:
        self.case, self._folder = case, folder
        info = case.quantised or {}
        self.samples = data_path(info["calibration"]) if info else None
        self.count = int(info.get("samples", DEFAULT_SAMPLES))
        self.commands: list[list[str]] = []
        self._built: dict[tuple[str, str], Built] = {}
        self._mlir = folder / f"{case.name}_top.mlir"
        sizes = info.get("input_shapes", case.input_shapes)
        shapes = ["--input_shapes", sizes] if sizes else []
        self._run(
            "model_transform",
            "--model_name",
            case.name,
            "--model_def",
            data_path(case.model),
            "--mlir",
            self._mlir,
            "--not_inference",
            *case.transform,
            *shapes,
        )

    def deploy(self, column: str, chip: str = "x86") -> Built:
        """Deploys the case in a precision, at most once. Raises RuntimeError with the message of the command."""
        if (column, chip) not in self._built:
            flags = COLUMNS[column] + (self._search() if column == TARGET else [])
            table = self._calibrated(column if column in ALONE else "INT8") if "{table}" in flags else None
            bmodel = self._folder / f"{self.case.name}_{column}{'' if chip == 'x86' else '_' + chip}.bmodel"
            info = self._run(
                "model_deploy",
                "--mlir",
                self._mlir,
                "--chip",
                chip,
                "--model",
                bmodel,
                "--skip_validation",
                *(str(table) if flag == "{table}" else flag for flag in flags),
            )
            self._built[column, chip] = Built(bmodel, _note(info), info)
        return self._built[column, chip]

    @property
    def inputs(self) -> tuple[InputSpec, ...]:
        """Returns the inputs of the model, with the sizes of the case."""
        return top_model.open_top(self._mlir, Report(1, quiet=True)).inputs

    def _calibrated(self, precision: str) -> Path:
        """Returns the calibration table for a precision, created once."""
        table = self._folder / f"{self.case.name}_{precision}_cali.json"
        if not table.exists():
            self._run(
                "run_calibration",
                self._mlir,
                "--dataset",
                self.samples,
                "--input_num",
                self.count,
                "--quantize",
                precision,
                "-o",
                table,
            )
        return table

    def _search(self) -> list[str]:
        """Returns the flags that set the target of the search: the score of a task or of a judge, or the cosine of the
        outputs if there is no labelled data."""
        info, threads = self.case.quantised, ["--threads", "2"]
        data = data_path(info["data"]) if not isinstance(info["data"], list) else self.samples
        if info["judge"] in TASKS and not isinstance(info["data"], list):
            return ["--target", DROP_TARGET, "--task", info["judge"], "--data", str(data), *threads]
        if info["judge"] in JUDGES and data.is_dir():
            return ["--target", DROP_TARGET, "--scorer", str(self._scorer()), "--data", str(data), *threads]
        return ["--target", COSINE_TARGET, "--data", str(data if data.is_dir() else self.samples), *threads]

    def _scorer(self) -> Path:
        """Writes a judge as a user-defined scorer: points of agreement with the f32 model."""
        path = self._folder / "scorer.py"
        path.write_text(
            SCORER.format(
                folder=str(Path(__file__).parent),
                judge=self.case.quantised["judge"],
                like=str(self.deploy("F32").bmodel),
            )
        )
        return path

    def _run(self, tool: str, *arguments: object) -> dict:
        words = [tool, *map(str, arguments)]
        self.commands.append(words)
        done = subprocess.run([str(BUILD / "bin" / tool), *words[1:], "--json"], capture_output=True, text=True)
        document = json.loads(done.stdout) if done.stdout.strip().startswith("{") else {}
        if done.returncode:
            raise RuntimeError(document.get("error", {}).get("message") or done.stderr.strip() or f"{tool} failed")
        return document


def _note(document: dict) -> str:
    """Returns the share of the multiplications that are integer, or the result and the cost of a search."""
    if found := document.get("search"):
        return (
            f"{100 * found['not_int8_products']:.1f} % of the MACs above int8, {len(found['ops'])} ops; "
            f"{found['output_errors'] + found['scores']} evaluations, {found['seconds']:.0f} s"
        )
    info = document.get("model", {}).get("quantization")
    if not info or not info["products"]:
        return ""
    note = f"{100 * info['integer_products'] / info['products']:.1f} % of the MACs in integers"
    return note + (
        f", {100 * info['wide_products'] / info['products']:.1f} % in int16" if info["wide_products"] else ""
    )
