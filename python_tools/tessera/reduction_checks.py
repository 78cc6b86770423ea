# SPDX-License-Identifier: Apache-2.0
"""Decides whether a candidate of a reduction shows the failure: of the compiler, of its results, or of a user's
command."""
from __future__ import annotations

import re
import shlex
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Callable, Mapping

import numpy as np

from . import top_model
from .calibration import table as tables
from .compile_driver import without_reproducers
from .errors import ExitCode, TesseraError, usage_error
from .families import HOST, Reduction, every
from .files import save_npz, scratch_folder
from .progress import Report
from .reduction import Candidate
from .targets import targets

DEPLOY_FAILS = "deploy-fails"
RANGE = (-1.0, 4.0)  # of tensors without recorded values
LONGEST = (10.0, 10.0)  # seconds, and multiple of the previous run's time, that a command may take
NOT_RUN = (126, 127)  # exit codes of a shell if it cannot run the command


@dataclass
class Compiled:
    """How candidates are compiled. values: of the whole network's tensors, for the ranges of quantised models."""

    chip: str
    quantize: str
    values: Mapping[str, np.ndarray]

    def top(self, candidate: Candidate, folder: Path, report: Report) -> top_model.TopModel:
        path = folder / "m.onnx"
        path.write_bytes(candidate.model.SerializeToString())
        return top_model.import_onnx(path, folder / "m_top.mlir", report, model_name="m")[0]

    def flags(self, model: top_model.TopModel, folder: Path, report: Report) -> list[str]:
        """Returns the flag for the calibration table, if the precision needs one."""
        if not targets().precision(self.quantize).needs_table:
            return []
        info, entries = top_model.describe(model.path, report), []
        for name in map(str, info["tensors"]):
            value = self.values.get(name)
            low, high = RANGE if value is None or not value.size else (float(value.min()), float(value.max()))
            most = max(abs(low), abs(high)) or 1.0
            entries.append(tables.Entry.make(name, most, min(low, 0.0), max(high, 1e-6), False, "one input"))
        path = folder / "table.json"
        tables.Table(str(info["model_name"]), str(info["model_hash"]), "max", 1, "", tuple(entries)).save(path)
        return ["--calibration-table", str(path)]

    def deploy(self, candidate: Candidate, folder: Path, report: Report) -> tuple[top_model.TopModel, dict, list[str]]:
        """Compiles to folder/m.bmodel; returns the Top model, the compiler's result, and its flags."""
        model = self.top(candidate, folder, report)
        flags = self.flags(model, folder, report)
        info = top_model.deploy(model, folder / "m.bmodel", report, chip=self.chip, quantize=self.quantize, extra=flags)
        return model, info, flags


class Inconclusive(Exception):
    """A candidate that cannot be judged, with the reason; it counts as not showing the failure."""


class Check:
    """Returns true if a candidate shows the failure. seen: the last failure shown. not_judged: the reason why the last
    such candidate could not be judged."""

    def __init__(self, failure: Callable[[Candidate, Path], str]) -> None:
        self._failure = failure
        self.seen, self.not_judged = "", ""
        self._kind = ""

    def __call__(self, candidate: Candidate) -> bool:
        try:
            with scratch_folder() as folder, without_reproducers():
                said = self._failure(candidate, folder)
        except Inconclusive as reason:
            self.not_judged = str(reason)
            return False
        if not said or (self._kind and _kind(said) != self._kind):
            return False
        self.seen, self._kind = said, _kind(said)
        return True


def _kind(said: str) -> str:
    """Returns a message without names and numbers, which differ between candidates."""
    return re.sub(r"'[^']*'|\d+", "_", said.splitlines()[0])


def of_mode(mode: Reduction, how: Compiled, report: Report) -> Check:
    def failure(candidate: Candidate, folder: Path) -> str:
        try:
            return mode.failure(candidate, folder, how, report)
        except TesseraError as error:
            if mode.mode == DEPLOY_FAILS:
                raise
            raise Inconclusive(error.message) from error

    return Check(failure)


def of_command(command: str, seconds: float) -> Check:
    """Returns the check by a user's command, which shows the failure by failing (exit code not 0). It gets the model
    and the inputs as {model} and {inputs}, or after its arguments. A run much longer than the first one is ended and
    shows nothing; the first one is limited to `seconds`. Raises TesseraError if `command` is not a command."""
    try:
        given_words = shlex.split(command)
    except ValueError as error:
        raise usage_error(f"--check {command}: {error}") from error
    if not given_words:
        raise usage_error("--check: the command is empty")
    limit = [seconds]

    def failure(candidate: Candidate, folder: Path) -> str:
        model, inputs = folder / "model.onnx", folder / "inputs.npz"
        model.write_bytes(candidate.model.SerializeToString())
        save_npz(inputs, candidate.inputs)
        names = {"{model}": str(model), "{inputs}": str(inputs)}
        given = [] if "{model}" in command else [str(model), str(inputs)]
        words = [_replaced(word, names) for word in given_words] + given
        begin = time.monotonic()
        try:
            code = subprocess.run(
                words, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=limit[0]
            ).returncode
        except subprocess.TimeoutExpired as error:
            raise Inconclusive(f"the command did not end within {limit[0]:.0f} seconds: {command}") from error
        except OSError as error:
            raise TesseraError(f"--check {words[0]}: {error.strerror}", ExitCode.USAGE) from error
        if code in NOT_RUN:
            raise TesseraError(f"--check {command}: the command could not be run (exit code {code})", ExitCode.USAGE)
        limit[0] = min(limit[0], LONGEST[0] + LONGEST[1] * (time.monotonic() - begin))
        return f"the command fails: {command}" if code else ""

    return Check(failure)


def _replaced(word: str, names: Mapping[str, str]) -> str:
    for name, path in names.items():
        word = word.replace(name, path)
    return word


def _of_deploy(candidate: Candidate, folder: Path, how: Compiled, report: Report) -> str:
    try:
        how.deploy(candidate, folder, report)
    except TesseraError as error:
        if error.code == ExitCode.OUT_OF_MEMORY:
            raise
        return error.message
    return ""


def modes() -> dict[str, Reduction]:
    """Returns the failures of --mode by name."""
    deploy_fails = Reduction(DEPLOY_FAILS, "the compiler fails with the same message", HOST, "F32", _of_deploy)
    own = [family.reduction for family in every() if family.reduction]
    return {each.mode: each for each in [*own, deploy_fails]}
