# SPDX-License-Identifier: Apache-2.0
"""The commands as functions: compile, calibrate, estimate and accuracy.

    import tessera
    model = tessera.compile("model.onnx", quantize="INT8", calibration="pictures/")
    outputs = model.run({"input": array})

Each function runs its command in this process and prints nothing. Keyword arguments are the command's flags:
`max_error=0.01` is `--max_error 0.01`, `keep_aspect_ratio=True` is `--keep_aspect_ratio`, and a list stands for several
values. Every failure raises TesseraError with the command's message, hint and exit code.
"""
from __future__ import annotations

import contextlib
import io
import tempfile
from pathlib import Path
from typing import Any, Callable, Iterable, Mapping, Sequence, Union

import numpy as np

from .cli import calibration_arguments, deploy_arguments, model_deploy, model_transform, run_calibration
from .cli import tessera as verbs
from .cli.common import Context
from .cli.part import run_part
from .errors import ExitCode, TesseraError
from .families import HOST
from .files import save_npz
from .progress import Report

Samples = Union[str, Path, Iterable[Mapping[str, np.ndarray]]]
"""A folder, list or file as accepted by --dataset; or samples, each a dict of arrays by input name."""


class Model:
    """A compiled model.

    path: the .bmodel file. warnings: of all commands that ran. transform, calibration and deployment: what the commands
    print with --json, {} for a command that was not needed. A model compiled without `output` keeps its file in a
    temporary folder, which is deleted with the last reference to the model.
    """

    def __init__(self, path: Path, warnings: Sequence[str], results: Sequence[Mapping[str, Any]]) -> None:
        self.path, self.warnings = path, list(warnings)
        self.transform, self.calibration, self.deployment = results
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._net: Any = None

    def run(self, inputs: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Runs once on one thread; inputs and outputs by ONNX name. `tessera.runtime` offers more."""
        if self._net is None:
            from . import runtime

            self._net = runtime.load(self.path).net()
        return dict(self._net(inputs))


def compile(  # named as users look for it
    model: str | Path,
    output: str | Path | None = None,
    *,
    chip: str = HOST,
    quantize: str = "F32",
    calibration: Samples | None = None,
    transform: Mapping[str, object] | None = None,
    deploy: Mapping[str, object] | None = None,
    **calibrate_flags: object,
) -> Model:
    """Compiles an ONNX file, as model_transform, run_calibration and model_deploy do, with their checks.

    output: the .bmodel file. quantize: a precision of model_deploy. calibration: samples, or a table (.json) that
    `calibrate` made of the same network; needed by INT8 and INT16. transform, deploy: further flags of these commands;
    other keyword arguments are flags of run_calibration.
    """
    report = _silent()
    folder = tempfile.TemporaryDirectory(prefix="tessera-compile-")
    mlir = Path(folder.name) / f"{Path(model).stem}_top.mlir"
    words = ["--model_def", str(model), "--mlir", str(mlir), *_words(transform or {})]
    imported = _run(model_transform, model_transform.parse, words, report)
    table, calibrated = None, {}
    if isinstance(calibration, (str, Path)) and Path(calibration).suffix == ".json":
        table = Path(calibration)
    elif calibration is not None:
        table = mlir.with_name("calibration.json")
        calibrated = _calibrate(mlir, calibration, table, calibrate_flags, report)
    path = Path(output) if output else Path(folder.name) / f"{Path(model).stem}.bmodel"
    words = ["--mlir", str(mlir), "--chip", chip, "--quantize", quantize, "--model", str(path), *_words(deploy or {})]
    words += ["--calibration_table", str(table)] if table else []
    deployed = _run(model_deploy, deploy_arguments.parse, words, report)
    result = Model(path, report.warnings, (imported, calibrated, deployed))
    if output is None:
        result._folder = folder
    else:
        folder.cleanup()
    return result


def calibrate(mlir: str | Path, samples: Samples, output: str | Path, **flags: object) -> dict[str, Any]:
    """Writes the calibration table of a NAME_top.mlir to `output`; returns what run_calibration prints with --json."""
    return _calibrate(Path(mlir), samples, Path(output), flags, _silent())


def estimate(model: str | Path, chip: str = "all", **flags: object) -> dict[str, Any]:
    """Estimates an ONNX file's time on other chips; returns what `tessera estimate` prints with --json."""
    return _verb("estimate", [str(model), "--chip", chip], flags)


def accuracy(models: Sequence[str | Path], data: str | Path, **flags: object) -> dict[str, Any]:
    """Scores models on labelled data (`task="classification"`, or `scorer="mine.py"`); returns what `tessera accuracy`
    prints with --json."""
    return _verb("accuracy", [*map(str, models), "--data", str(data)], flags)


def _silent() -> Report:
    return Report(1, io.StringIO(), quiet=True)


def _words(flags: Mapping[str, object]) -> list[str]:
    """Returns the command line that sets the flags."""
    words: list[str] = []
    for name, value in flags.items():
        if value is None or value is False:
            continue
        values = [] if value is True else value if isinstance(value, (list, tuple)) else [value]
        words += [f"--{name}", *map(str, values)]
    return words


def _calibrate(
    mlir: Path, samples: Samples, output: Path, flags: Mapping[str, object], report: Report
) -> dict[str, Any]:
    if isinstance(samples, (str, Path)):
        words = [str(mlir), "--dataset", str(samples), "-o", str(output), *_words(flags)]
        return _run(run_calibration, calibration_arguments.parse, words, report)
    with tempfile.TemporaryDirectory(prefix="tessera-samples-") as folder:
        for number, sample in enumerate(samples):
            save_npz(Path(folder) / f"{number:06}.npz", {name: np.asarray(array) for name, array in sample.items()})
        return _calibrate(mlir, folder, output, flags, report)


def _verb(name: str, words: Sequence[str], flags: Mapping[str, object]) -> dict[str, Any]:
    return _run(verbs, verbs.parse, [name, *words, *_words(flags)], _silent())


def _run(module: Any, parse: Callable[..., Any], words: Sequence[str], report: Report) -> dict[str, Any]:
    """Runs the command of a module of tessera.cli; returns its result with its warnings."""
    said = io.StringIO()
    try:
        part: Context = run_part(module.NAME, _parsed(parse, said), module.work, words, report)
    except SystemExit as end:  # of argparse, which prints why
        lines = said.getvalue().strip().splitlines()
        raise TesseraError(lines[-1] if lines else f"{module.NAME}: wrong arguments", ExitCode.USAGE) from end
    return {**part.result, "warnings": part.report.warnings}


def _parsed(parse: Callable[..., Any], stream: io.StringIO) -> Callable[..., Any]:
    """`parse` with what argparse prints in `stream`."""

    def parsed(words: Sequence[str] | None) -> Any:
        with contextlib.redirect_stderr(stream):
            return parse(words)

    return parsed
