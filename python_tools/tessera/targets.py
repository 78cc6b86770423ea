# SPDX-License-Identifier: Apache-2.0
"""Chips, precisions and their valid combinations, as listed by the compiler (`tessera-compile targets`)."""
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
    """A precision. activations: the type in which results are stored. activation_bits, weight_bits: per element.
    needs_table: requires ranges from run_calibration."""

    name: str
    activations: str
    activation_bits: int
    weight_bits: int
    needs_table: bool


@dataclass(frozen=True)
class Targets:
    """The compiler's capabilities. families: by chip. chip_files: families whose chips a .json file may describe.
    spellings: precisions by all their names. flags: families for which flags of model_deploy are valid, if restricted.
    planned_precisions: rejected as not supported yet. rates: multiplications per nanosecond by chip and type."""

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
        """Returns the family of a chip or of a chip description file; "" if it is neither."""
        if chip in self.families or Path(chip).suffix != ".json":
            return self.families.get(chip, "")
        try:
            named = json.loads(Path(chip).read_text(encoding="utf-8"))["family"]
        except (OSError, ValueError, LookupError, TypeError, RecursionError):
            named = None
        # The compiler reports what is wrong with a description.
        return str(named) if named in self.chip_files else self.chip_files[0]

    def require_chip(self, chip: str) -> None:
        """Raises TesseraError (exit code 2) for an unknown chip."""
        if not self.family(chip):
            raise usage_error(f"--chip '{chip}': expected one of {', '.join(self.families)}")

    def precision(self, name: str) -> Precision:
        """Returns the precision with this name or alias. Raises TesseraError for a planned one (exit code 4) and for an
        unknown one (2)."""
        if name.upper() not in self.spellings:
            raise _rejected("--quantize", name, self.planned_precisions, [known.name for known in self.precisions])
        return self.spellings[name.upper()]


def _rejected(flag: str, value: str, planned: tuple[str, ...], known: list[str]) -> TesseraError:
    if value in planned:
        return TesseraError(
            f"{flag} {value} is not supported yet", ExitCode.UNSUPPORTED, hint=f"supported: {', '.join(known)}"
        )
    return usage_error(f"{flag} '{value}': expected one of {', '.join(known)}")


@functools.lru_cache(maxsize=1)
def targets() -> Targets:
    """Returns the compiler's capabilities, queried once per process. Raises TesseraError if the compiler cannot run."""
    info = run_compile(["targets"], Report(1, io.StringIO(), quiet=True))
    spellings = {}
    for entry in info["precisions"]:
        aliases = entry.pop("aliases")
        precision = Precision(**entry)
        spellings.update({name: precision for name in (precision.name, *aliases)})
    return Targets(
        {chip["name"]: chip["family"] for chip in info["chips"]},
        tuple(info["chip_files"]),
        {chip["name"]: chip["runs_here"] for chip in info["chips"]},
        spellings,
        {flag: tuple(families) for flag, families in info["flags"].items()},
        tuple(info["planned_precisions"]),
        {chip["name"]: chip["rates"]["products"] for chip in info["chips"]},
    )


class Names:
    """The chips in a flag's help, queried from the compiler when the help is shown."""

    def __str__(self) -> str:
        return ", ".join(targets().families)
