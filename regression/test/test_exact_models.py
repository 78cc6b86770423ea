# SPDX-License-Identifier: Apache-2.0
"""Every quantised model, whole: the device reference's bits on every instruction set, on 1 and 2 threads.

Softmax, norms, attention, means and functions that stay float inside of it included; outputs too. A network whose convolutions,
products or recurrent ops stay in a float type may differ in the last digits: none of these has such.
"""
from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest
from case_file import Case, all_cases
from conftest import Builder, check, run_tool
from test_cases import skip_if_missing

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "conformance"))
from engines import supported_isas  # noqa: E402

from tessera import safetensors_io  # noqa: E402
from tessera.files import save_npz  # noqa: E402

VARIANTS = (*supported_isas("x86-avx512vnni"), "x86")


def samples(specs: list[dict], seed: int) -> dict[str, np.ndarray]:
    generator = np.random.default_rng(seed)
    return {spec["name"]: (generator.standard_normal(spec["shape"]) * 0.7).astype(np.float32) if spec["dtype"].startswith("float")
            else generator.integers(0, 2, spec["shape"]).astype(spec["dtype"]) for spec in specs}


@pytest.mark.parametrize("case", all_cases(), ids=lambda case: case.name)
def test_same_bits_on_every_engine(case: Case, builder: Builder, tmp_path: Path) -> None:
    import tessera.runtime as runtime

    skip_if_missing(case)
    top = builder.top(case)
    specs = json.loads(check(run_tool("tessera-compile", "info", "--mlir", top)).splitlines()[-1])["inputs"]
    (tmp_path / "data").mkdir()
    for seed in range(2):
        save_npz(tmp_path / "data" / f"{seed}.npz", samples(specs, seed))
    table = tmp_path / "table.json"
    check(run_tool("run_calibration", top, "--dataset", tmp_path / "data", "--cali_method", "max", "-o", table))
    inputs = samples(specs, 7)
    safetensors_io.save(tmp_path / "in.safetensors", inputs)
    check(run_tool("tessera-compile", "reference", "--device", "--mlir", top, "--calibration-table", table,
                   "--input", tmp_path / "in.safetensors", "--output", tmp_path / "out.safetensors"))
    want = safetensors_io.load(tmp_path / "out.safetensors")
    assert want and all(np.isfinite(array).all() for array in want.values())
    for variant in VARIANTS:
        model = tmp_path / f"{variant}.bmodel"
        check(run_tool("tessera-compile", "deploy", "--mlir", top, "--chip", variant, "--quantize", "INT8", "--calibration-table", table,
                       "--output", model))
        for threads in (1, 2):
            got = runtime.load(str(model), threads=threads).net()(inputs)
            for name, expected in want.items():
                wrong = int((got[name] != expected).sum())
                assert wrong == 0, f"{variant}, {threads} threads, '{name}': {wrong} of {expected.size} elements differ"
