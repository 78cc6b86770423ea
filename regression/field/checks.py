# SPDX-License-Identifier: Apache-2.0
"""Runs a field case through the compiler and the runtime without the commands: F32 on x86 and an NPU, the precisions in
its note, INT8 on every instruction set and an NPU."""
from __future__ import annotations

import sys
from pathlib import Path
from typing import Callable, Mapping

import numpy as np
from field_case import FieldCase
from judging import different_bits, unlike, wrong

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "conformance"))
from engines import Compiler, StageError, deploy, in_child, run_bmodel, run_reference, supported_isas  # noqa: E402

from tessera.inputs import InputSpec, random_inputs  # noqa: E402
from tessera.onnx_runner import OnnxModel  # noqa: E402
from tessera.top_model import pad  # noqa: E402

NPU = "npu-base"
CHIPS = ("x86", *(isa for isa in supported_isas() if isa in ("x86-v2", "x86-avx2")), NPU)
ADVICE = "--input_shapes"
Calibrate = Callable[[Path, Path, bool], str]
"""Writes table.json beside a Top module from a folder of samples, with all methods or none; returns an error or ""."""


class Checker:
    """Checks one case. `results` maps each check to its fault, or to ""."""

    def __init__(self, case: FieldCase, compiler: Compiler, folder: Path, calibrate: Calibrate) -> None:
        self._case, self._compiler, self._folder, self._calibrate = case, compiler, folder, calibrate
        self._top = folder / "m_top.mlir"
        self._padded: dict[str, tuple[int, int]] = {}  # name -> (axis, size)
        self._bfloat16: list[str] = []  # the inputs of that type; float32 here
        self.results: dict[str, str] = {}

    def run(self) -> dict[str, str]:
        if not self._import() or self._case.must_be_rejected:
            return self.results
        inputs = self._inputs
        wanted = self._wanted(inputs)
        self.results["x86"] = self._wrong("x86", "F32", inputs, wanted)
        self.results["npu"] = self._wrong(NPU, "F32", inputs, wanted)
        for precision in self._case.narrow_precisions:
            self.results[precision.lower()] = self._unlike(precision, inputs, wanted)
        if self._case.is_quantised:
            self.results["int8"] = self._quantised(inputs, wanted)
        return self.results

    def _import(self) -> bool:
        """Fills in the check `import`. Returns true if there is a module to test further."""
        case, shapes = self._case, self._case.open_shapes()
        flags = ["--input-shapes", shapes] if shapes else []
        try:
            info = self._compiler("import", "import", "--onnx", case.model, "--output", self._top, *flags)
        except StageError as error:
            right = case.must_be_rejected and (error.rejected or str(error).startswith("exit code 1: "))
            right = right or (case.may_be_unsupported and error.rejected and ADVICE not in str(error))
            self.results["import"] = "" if right else str(error)[:300]
            return False
        self.results["import"] = "accepted; it must be rejected" if case.must_be_rejected else ""
        for output in info["outputs"]:
            if "padded_axis" in output:
                self._padded[output["name"]] = (output["padded_axis"], output["shape"][output["padded_axis"]])
        self._bfloat16 = [one["name"] for one in info["inputs"] if one["dtype"] == "bfloat16"]
        specs = [
            InputSpec(one["name"], tuple(one["shape"]), one["dtype"].replace("bfloat16", "float32"))
            for one in info["inputs"]
        ]
        given = case.arrays("input")
        self._inputs = random_inputs(specs) if given is None else {spec.name: given[spec.name] for spec in specs}
        return True

    def _wanted(self, inputs: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Returns expected.npz, else onnxruntime's outputs, else the Top reference's."""
        wanted = self._case.arrays("expected")
        if wanted is None:
            try:
                model = str(self._case.model)
                wanted = in_child("onnxruntime", lambda: OnnxModel(model, optimise=False).run(inputs))  # type: ignore
            except StageError:
                wanted = run_reference(self._compiler, self._top, inputs, self._bfloat16)
        for name, (axis, size) in self._padded.items():
            wanted[name] = pad(wanted[name], axis, size)
        return wanted

    def _outputs(self, chip: str, precision: str, inputs: Mapping[str, np.ndarray], *flags: str):
        threads = (1, 2) if precision == "F32" and chip == "x86" else (1,)
        bmodel = deploy(self._compiler, self._top, chip, "--quantize", precision, *flags)
        return run_bmodel(bmodel, inputs, self._bfloat16, threads)

    def _wrong(self, chip: str, precision: str, inputs: Mapping, wanted: Mapping) -> str:
        try:
            return wrong(self._case, self._outputs(chip, precision, inputs), wanted)
        except StageError as error:
            return f"{error.stage}: {error}"[:300]

    def _unlike(self, precision: str, inputs: Mapping, wanted: Mapping) -> str:
        try:
            return unlike(self._outputs("x86", precision, inputs), wanted)
        except StageError as error:
            return f"{error.stage}: {error}"[:300]

    def _quantised(self, inputs: Mapping, wanted: Mapping) -> str:
        """Checks that every chip of CHIPS gives the bits of the first one, if the compiler promises that, and that they
        are close to F32. Without other samples, the input is the sample."""
        samples = self._case.samples or self._folder / "samples"
        if not samples.exists():
            samples.mkdir()
            np.savez(samples / "0.npz", **inputs)
        fault = self._calibrate(self._top, samples, self._case.samples is not None)
        if fault:
            return f"run_calibration: {fault}"[:300]
        table = ("--calibration-table", str(self._top.with_name("table.json")))
        try:
            first = self._outputs(CHIPS[0], "INT8", inputs, *table)
            promised = self._compiler.info["bit_equal_except"] == []
            if self._case.needs_equal_bits and not promised:
                return f"not promised to be bit-equal: {self._compiler.info['bit_equal_except']}"
            for chip in CHIPS[1:] if promised else ():
                fault = different_bits(self._outputs(chip, "INT8", inputs, *table), first)
                if fault:
                    return f"{chip}: {fault}"
        except StageError as error:
            return f"{error.stage}: {error}"[:300]
        return unlike(first, wanted)
