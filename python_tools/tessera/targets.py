# SPDX-License-Identifier: Apache-2.0
"""Chips, precisions, and what goes with what, as the compiler tells them (`tessera-compile targets`)."""
from __future__ import annotations

import functools
import io
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Mapping

from .compile_driver import run_compile
from .errors import ExitCode, TesseraError, usage_error
from .progress import Report


@dataclass(frozen=True)
class Precision:
    """activations: the type that results are held in. activation_bits, weight_bits: of an element. needs_table: of
    ranges, from run_calibration."""

    name: str
    activations: str
    activation_bits: int
    weight_bits: int
    needs_table: bool


@dataclass(frozen=True)
class Targets:
    """families: of each chip. chip_files: families of which a .json file may describe a chip. spellings: precisions by
    all names. flags: those of model_deploy that are for some families only. planned_precisions: refused as not there
    yet. rates: of each chip, multiplications a nanosecond by type."""

    families: Mapping[str, str]
    chip_files: tuple[str, ...]
    runs_here: Mapping[str, bool]
    spellings: Mapping[str, Precision]
    flags: Mapping[str, tuple[str, ...]]
    planned_precisions: tuple[str, ...]
    rates: Mapping[str, Mapping[str, float]] = field(default_factory=dict)

    @property
    def precisions(self) -> list[Precision]:
        return list(dict.fromkeys(self.spellings.values()))

    def chips_of(self, family: str) -> list[str]:
        return [chip for chip, known in self.families.items() if known == family]

    def family(self, chip: str) -> str:
        """Of a chip or of the description of one in a file; "" where it is neither."""
        if chip in self.families or Path(chip).suffix != ".json":
            return self.families.get(chip, "")
        try:
            named = json.loads(Path(chip).read_text(encoding="utf-8"))["family"]
        except (OSError, ValueError, LookupError, TypeError, RecursionError):
            named = None
        # What is wrong with a description the compiler tells.
        return str(named) if named in self.chip_files else self.chip_files[0]

    def is_npu(self, chip: str) -> bool:
        return self.family(chip) == "npu"

    def require_chip(self, chip: str) -> None:
        """Raises TesseraError (exit code 2) for one that is none."""
        if not self.family(chip):
            raise usage_error(f"--chip '{chip}': expected one of {', '.join(self.families)}")

    def precision(self, name: str) -> Precision:
        """By any of its names. Raises TesseraError for a planned one (exit code 4), and for one that is none (2)."""
        if name.upper() not in self.spellings:
            raise _refused("--quantize", name, self.planned_precisions, [known.name for known in self.precisions])
        return self.spellings[name.upper()]


def _refused(flag: str, value: str, planned: tuple[str, ...], known: list[str]) -> TesseraError:
    if value in planned:
        return TesseraError(
            f"{flag} {value} is not supported yet", ExitCode.UNSUPPORTED, hint=f"today there is: {', '.join(known)}"
        )
    return usage_error(f"{flag} '{value}': expected one of {', '.join(known)}")


@functools.lru_cache(maxsize=1)
def targets() -> Targets:
    """Asked once a process. Raises TesseraError where the compiler cannot be run."""
    told = run_compile(["targets"], Report(1, io.StringIO(), quiet=True))
    spellings = {}
    for entry in told["precisions"]:
        aliases = entry.pop("aliases")
        precision = Precision(**entry)
        spellings.update({name: precision for name in (precision.name, *aliases)})
    return Targets(
        {chip["name"]: chip["family"] for chip in told["chips"]},
        tuple(told["chip_files"]),
        {chip["name"]: chip["runs_here"] for chip in told["chips"]},
        spellings,
        {flag: tuple(families) for flag, families in told["flags"].items()},
        tuple(told["planned_precisions"]),
        {chip["name"]: chip["rates"]["products"] for chip in told["chips"]},
    )


class Names:
    """A list of names in the help of a flag: the compiler is asked where the help is shown."""

    def __init__(self, family: str = "") -> None:
        self._family = family

    def __str__(self) -> str:
        known = targets()
        return ", ".join(known.chips_of(self._family) if self._family else known.families)
