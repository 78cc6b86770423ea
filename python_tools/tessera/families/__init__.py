# SPDX-License-Identifier: Apache-2.0
"""The families of chips as the tools see them.

Each family is a module of this package with a FAMILY, named as the compiler names the family. All other modules ask a
Family and name none; python_tools/dev/check_families.py enforces this.
"""
from __future__ import annotations

import importlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Callable, Mapping, Sequence

from ..errors import TesseraError
from ..targets import targets

if TYPE_CHECKING:
    import numpy as np

    from ..bmodel import Net
    from ..cli.common import Context
    from ..compare import Tolerance
    from ..progress import Report
    from ..top_model import TopModel

REGISTERED = ("x86", "npu", "cuda")
HOST = "x86"
"""The family of the machine that runs the tools, and its best chip."""
EXAMPLE = "npu-base"
"""A chip of another family, for examples in help texts."""


Deploy = Callable[[Path, Sequence[str]], "dict[str, Any]"]
"""Compiles to the file with additional flags; returns the compiler's result."""


@dataclass(frozen=True)
class Estimate:
    """The estimate of a stage as a report shows it. info: as from Family.measure. layers: rows of the report's tables.
    time: see report/gather.py. drawn: more data of the stage, to draw. shows_perf: the report has views of `info`."""

    info: dict[str, Any]
    layers: list[dict[str, Any]]
    time: dict[str, Any]
    drawn: dict[str, Any] = field(default_factory=dict)
    shows_perf: bool = False


@dataclass(frozen=True)
class Reduction:
    """A failure that `tessera reduce --mode` shows. chip, quantize: the defaults. failure: describes the failure of a
    candidate compiled as Compiled says; "" if it does not show (reduction_checks.py)."""

    mode: str
    help: str
    chip: str
    quantize: str
    failure: Callable[..., str]


class Family:
    """A family. chip: the word for one of its chips in messages. is_simulated: a simulator runs its models here, which
    shows neither their time nor their layers. is_estimated: measure() estimates the time of a compiled model. files:
    the files that measure() writes. reduction: the failure of its own that `tessera reduce` knows, if any."""

    name = ""
    chip = "chip"
    is_simulated = False
    is_estimated = False
    files: Sequence[str] = ()
    reduction: Reduction | None = None

    def stages(self, model: Mapping[str, Any]) -> dict[int, str]:
        """Returns the stages with an estimate by their number in the file, with a title each. model: from
        bmodel-dump."""
        return {
            number: f"stage {number}, {stage.get('name') or 'all shapes'} on {model['chips'][stage['chip']]['name']}"
            for number, stage in enumerate(stages_of(model))
            if any(self.is_estimated_by(model, each) for each in stage.get("subnets", []))
        }

    def covers(self, model: Mapping[str, Any], subnet: Mapping[str, Any]) -> bool:
        """Returns true if the estimate of the stage contains the steps of the subnet."""
        return self.is_estimated and of_subnet(model, subnet) is self

    def is_estimated_by(self, model: Mapping[str, Any], subnet: Mapping[str, Any]) -> bool:
        """Returns true if measure() estimates the stage because of this subnet."""
        return self.covers(model, subnet)

    def measure(
        self,
        model: str | Path,
        folder: str | Path | None = None,
        stage: int | None = None,
        chip_set: Sequence[str] = (),
        counts: str | None = None,
    ) -> dict[str, Any]:
        """Returns the estimate of a .bmodel; with `folder`, writes `files` there. stage: index among all in the file;
        default: the first of this family. chip_set: changes of the chip. counts: what a run counted. Raises
        TesseraError."""
        raise NotImplementedError

    def microseconds(self, info: Mapping[str, Any]) -> float:
        """Returns the estimated time of a run, given the result of measure()."""
        return float(info.get("total_microseconds", info["microseconds"]))

    def print_report(self, report: "Report", info: dict[str, Any], folder: str | None = None) -> None:
        """Reports the result of measure()."""

    def print_estimate(self, report: "Report", name: str, info: dict[str, Any]) -> None:
        """Reports what `tessera estimate` shows below its table."""
        self.print_report(report, info)

    def row(self, info: Mapping[str, Any]) -> tuple[str, ...]:
        """Returns the cells of `tessera estimate`: share of the MAC peak, times the roofline, DDR MB, times the least,
        local memory, and what bounds the time."""
        raise NotImplementedError

    def estimate(self, path: Path, stage: int) -> Estimate:
        """Returns the estimate of a stage for a report."""
        raise NotImplementedError

    def commands(self, path: Path, stage: int) -> list[str]:
        """Returns the commands of a stage's program, one per line, with the layer (ONNX nodes) after a '#'."""
        return []

    def check_layers(
        self,
        context: "Context",
        model: "TopModel",
        net: "Net",
        given: "Mapping[str, np.ndarray]",
        flags: Sequence[str],
        tolerance: "Tolerance | None",
    ) -> None:
        """Compiles a variant of the model whose layers' results leave the chip, and checks each layer against the
        reference. given: the inputs. flags: of the deployment. Raises TesseraError with the first wrong layer."""
        raise NotImplementedError

    def look_at(self, report: "Report", folder: Path) -> dict[str, Any]:
        """Checks the layers of the variant that model_deploy --layers wrote to `folder`."""
        raise NotImplementedError

    def tune(
        self,
        deploy: Deploy,
        inputs: "Callable[[Net], Mapping[str, np.ndarray]]",
        candidates: int,
        chip: str,
        report: "Report",
        folder: Path,
    ) -> dict[str, Any]:
        """Returns the plan whose tiles are the fastest of those measured on this machine. Raises TesseraError if it has
        no such chip."""
        raise NotImplementedError

    def disassemble(self, context: "Context", path: Path, model: Mapping[str, Any], text: str) -> int:
        """Prints the code that belongs to the family and whose name or line contains `text`; returns how many
        pieces."""
        return 0

    def nothing_shown(self, path: Path, model: Mapping[str, Any], text: str) -> TesseraError:
        """Returns the error if disassemble() showed nothing."""
        return TesseraError(f"{path} does not contain a command whose line contains '{text}'")


def of(name: str) -> Family:
    """Returns the family with this name; one without abilities if it is not registered."""
    if name not in REGISTERED:
        return Family()
    family: Family = importlib.import_module(f".{name}", __name__).FAMILY
    return family


def every() -> list[Family]:
    return [of(name) for name in REGISTERED]


def simulated() -> Family:
    return next(family for family in every() if family.is_simulated)


def of_chip(chip: str) -> Family:
    """Returns the family of a chip or of a chip description file."""
    return of(targets().family(chip))


def of_subnet(model: Mapping[str, Any], subnet: Mapping[str, Any]) -> Family:
    """Returns the family of a subnet in a file as described by bmodel-dump; subnets that only call others have none."""
    kind = subnet["kind"].lower()
    if kind in REGISTERED or kind == "control":
        return of(kind)
    return of(HOST if kind == "host" else model["chips"][subnet["chip"]].get("family", ""))


def stages_of(model: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return [stage for net in model.get("nets", []) for stage in net.get("stages", [])]


class Owners:
    """The families that a flag of model_deploy is for, e.g. "NPUs and GPUs"; asked of the compiler when it is shown."""

    def __init__(self, flag: str) -> None:
        self._flag = flag

    def __str__(self) -> str:
        return " and ".join(of(name).chip + "s" for name in targets().flags[self._flag])


class Estimated:
    """The chips that `tessera estimate` takes, asked of the compiler when they are shown."""

    def __str__(self) -> str:
        first, *others = [family for family in every() if family.is_estimated]
        more = ", ".join(chip for family in others for chip in targets().chips_of(family.name))
        return (
            f"{', '.join(targets().chips_of(first.name))}, the .json of another {first.chip}, all (every {first.chip})"
            f", or {more}"
        )
