# SPDX-License-Identifier: Apache-2.0
"""Tests that every quantised model gives the device reference's bits on every instruction set, on 1 and 2 threads.

Compiling is what takes the time, so by default a model in INT8 has two instruction sets in turn, one of them with
AVX-512 where the machine has it; TESSERA_EXACT=all takes each to all of them, and the large topologies too.

Softmax, norms, attention, means and functions that stay float inside of it included; outputs too. A network whose
convolutions, products or recurrent ops stay in a float type may differ in the last digits: none of these has such.
"""
from __future__ import annotations

import os
import sys
from pathlib import Path

import numpy as np
import pytest
from case_file import Case, all_cases
from conftest import Builder, check, inputs_of, run_tool, samples
from test_cases import skip_if_missing

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "conformance"))
from engines import supported_isas  # noqa: E402

from tessera import safetensors_io  # noqa: E402

VARIANTS = supported_isas("x86-avx512vnni", "x86-amx")
NARROW, WIDE = VARIANTS[:2], VARIANTS[2:]
IS_WHOLE = os.environ.get("TESSERA_EXACT") == "all"
# INT8 is tested for every model, these precisions only for models whose convolutions and products all become integers.
MORE = {
    "INT16": ("resnet8_cifar10", "mobilenetv1_0.25_128"),
    "DYNAMIC_INT8": ("stories260k", "stories260k_kv", "toycar_autoencoder"),
}
# Topologies with constant weights that take minutes to compile: only tested with TESSERA_EXACT=all.
LARGE = ("light_vgg19", "light_densenet121", "light_inception_v2")
# Recurrent cells stay in float: the reference sums in double, x86 in f32.
FLOAT_PARTS = ("dtln_model_1",)
TESTED = [
    (case, precision)
    for case in all_cases()
    for precision in ("INT8", *MORE)
    if case.name in MORE.get(precision, (case.name,)) and case.name not in FLOAT_PARTS
]
INT8 = [case for case, precision in TESTED if precision == "INT8"]


def variants(case: Case, precision: str) -> list[str]:
    """Returns the x86 variants that the model is compiled for. The few models of other precisions than INT8 get all
    variants."""
    if IS_WHOLE or precision in MORE:
        return VARIANTS
    turn = INT8.index(case)
    return [some[turn // (i + 1) % len(some)] for i, some in enumerate((NARROW, WIDE)) if some]


@pytest.mark.skipif(IS_WHOLE, reason="every model goes to every instruction set")
def test_other_instruction_sets() -> None:
    assert {variant for case in INT8 for variant in variants(case, "INT8")} == set(VARIANTS)
    pytest.skip(f"each model in INT8 on two of {', '.join(VARIANTS)} only; set TESSERA_EXACT=all")


@pytest.mark.parametrize("case, precision", TESTED, ids=[f"{case.name}-{precision}" for case, precision in TESTED])
def test_same_bits_on_every_engine(case: Case, precision: str, builder: Builder, tmp_path: Path) -> None:
    import tessera.runtime as runtime

    skip_if_missing(case)
    if case.name in LARGE and not IS_WHOLE:
        pytest.skip(f"{case.name} takes minutes; set TESSERA_EXACT=all")
    top = builder.top(case)
    specs = inputs_of(top)
    flags = [
        "--quantize",
        precision,
        *([] if precision == "DYNAMIC_INT8" else ["--calibration-table", builder.table(case, tmp_path)[0]]),
    ]
    inputs = samples(specs, 7)
    safetensors_io.save(tmp_path / "in.safetensors", inputs)
    check(
        run_tool(
            "tessera-compile",
            "reference",
            "--device",
            "--mlir",
            top,
            *flags,
            "--input",
            tmp_path / "in.safetensors",
            "--output",
            tmp_path / "out.safetensors",
        )
    )
    want = safetensors_io.load(tmp_path / "out.safetensors")
    assert want and all(np.isfinite(array).all() for array in want.values())
    for variant in variants(case, precision):
        model = tmp_path / f"{variant}.bmodel"
        check(run_tool("tessera-compile", "deploy", "--mlir", top, "--chip", variant, *flags, "--output", model))
        for threads in (1, 2):
            got = runtime.load(str(model), threads=threads).net()(inputs)
            for name, expected in want.items():
                wrong = int((got[name] != expected).sum())
                assert wrong == 0, f"{variant}, {threads} threads, '{name}': {wrong} of {expected.size} elements differ"
