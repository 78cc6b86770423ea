# SPDX-License-Identifier: Apache-2.0
"""The family x86: the machine that runs the tools."""
from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any, Mapping

from .. import bmodel, compare, onnx_runner, tolerances
from ..errors import TesseraError
from ..files import scratch_folder
from ..programs import dump
from . import Family, Reduction, of_subnet, stages_of

if TYPE_CHECKING:
    from ..cli.common import Context
    from ..progress import Report
    from ..reduction import Candidate
    from ..reduction_checks import Compiled

OBJDUMPS = ("llvm-objdump-22", "/usr/lib/llvm-22/bin/llvm-objdump", "llvm-objdump", "objdump")


def against_onnxruntime(candidate: "Candidate", folder: Path, how: "Compiled", report: "Report") -> str:
    """Compares the outputs with onnxruntime's."""
    how.deploy(candidate, folder, report)
    expected = onnx_runner.OnnxModel(folder / "m.onnx").run(candidate.inputs)
    got = bmodel.open_net(folder / "m.bmodel").run(candidate.inputs)
    compared = compare.compare(got, expected, tolerances.parse(None, how.quantize))
    wrong = [row for row in compared.rows if not row.passed]
    return f"'{wrong[0].name}' differs from onnxruntime: {compare.describe(wrong[0])}".split(":")[0] if wrong else ""


class X86(Family):
    name = "x86"
    chip = "x86 processor"
    reduction = Reduction("x86-vs-ort", "the outputs differ from onnxruntime's", "x86", "F32", against_onnxruntime)

    def disassemble(self, context: "Context", path: Path, model: Mapping[str, Any], text: str) -> int:
        objdump = next((program for program in OBJDUMPS if shutil.which(program)), None)
        if objdump is None:
            raise TesseraError("disasm requires llvm-objdump or objdump", hint="apt install llvm-22 or binutils")
        shown = 0
        for stage in stages_of(model):
            for subnet in stage.get("subnets", []):
                if of_subnet(model, subnet) is self and subnet["code_segment"] >= 0:
                    for function in _functions(objdump, path, subnet["code_segment"], text):
                        context.report.say(function + "\n")
                        shown += 1
        return shown

    def nothing_shown(self, path: Path, model: Mapping[str, Any], text: str) -> TesseraError:
        names = [
            kernel["symbol"]
            for stage in stages_of(model)
            for subnet in stage.get("subnets", [])
            for kernel in subnet.get("kernels", [])
        ]
        return TesseraError(
            f"{path} does not contain an x86 kernel whose name contains '{text}'",
            details=[f"it has: {', '.join(names[:20])}"],
        )


def _functions(objdump: str, path: Path, segment: int, text: str) -> list[str]:
    """Returns the code of the functions in a segment whose name contains `text`."""
    with scratch_folder() as folder:
        code = folder / "code.o"
        dump("--segment", str(segment), str(path), str(code))
        result = subprocess.run(
            [objdump, "-d", "--no-show-raw-insn", "-M", "intel", str(code)], capture_output=True, text=True
        )
    if result.returncode != 0:
        raise TesseraError(f"{objdump} failed: {result.stderr.strip()}")
    blocks = re.split(r"\n(?=[0-9a-f]+ <)", result.stdout)
    named = ((re.match(r"[0-9a-f]+ <([^>]+)>:", block), block.rstrip()) for block in blocks)
    return [block for name, block in named if name and text in name.group(1)]


FAMILY = X86()
