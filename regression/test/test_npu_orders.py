# SPDX-License-Identifier: Apache-2.0
"""Tests that only the waits of commands restrict the order of an NPU's queues: 20 legal orders of real models give the
same result, and the check of the stream notices every wait that is lowered."""
from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from case_file import Case, all_cases
from conftest import Builder, check, run_tool, samples
from test_cases import skip_if_missing
from test_npu import deploy

ORDERS = 20
MODELS = (
    "resnet8_cifar10",
    "mobilenetv1_0.25_128",
    "squeezenet1.0_227",
    "ultraface_rfb_320",
    "yolox_nano_416",
    "mobilenetv2_1.0_224",
    "vittrack",
)


@pytest.mark.parametrize("case", [case for case in all_cases() if case.name in MODELS], ids=lambda case: case.name)
def test_legal_orders_give_the_same(case: Case, builder: Builder, tmp_path: Path) -> None:
    skip_if_missing(case)
    top = builder.top(case)
    table, _ = builder.table(case, tmp_path)
    for chip in ("npu-edge", "npu-base"):
        deploy(top, table, chip, tmp_path / "m.bmodel")
        text = check(run_tool("bmrt_npu_orders", tmp_path / "m.bmodel", ORDERS))
        assert f"{ORDERS} orders alike" in text and "waits lowered, each refused" in text, text


@pytest.mark.parametrize("quantize", ["INT16", "BF16", "W8"])
def test_orders_in_other_precisions(quantize: str, builder: Builder, tmp_path: Path) -> None:
    case = next(case for case in all_cases() if case.name == "resnet8_cifar10")
    top, (table, _) = builder.top(case), builder.table(case, tmp_path)
    flags = ["--calibration-table", table] if quantize == "INT16" else []
    check(
        run_tool(
            "tessera-compile",
            "deploy",
            "--mlir",
            top,
            "--chip",
            "npu-base",
            "--quantize",
            quantize,
            "--output",
            tmp_path / "m.bmodel",
            *flags,
        )
    )
    text = check(run_tool("bmrt_npu_orders", tmp_path / "m.bmodel", ORDERS))
    assert f"{ORDERS} orders alike" in text and "waits lowered, each refused" in text, text


def test_chips_side_by_side(builder: Builder, tmp_path: Path) -> None:
    """Runs two chips, and two runs on one of them, at the same time in threads: each gives the result that it gives
    alone."""
    import tessera.runtime as runtime

    case = next(case for case in all_cases() if case.name == "resnet8_cifar10")
    top, (table, specs) = builder.top(case), builder.table(case, tmp_path)
    models = []
    for chip in ("npu-edge", "npu-pro"):
        deploy(top, table, chip, tmp_path / f"{chip}.bmodel")
        models.append(runtime.load(str(tmp_path / f"{chip}.bmodel")))
    given = [samples(specs, seed) for seed in range(4)]
    alone = models[0].net()
    wanted = [{name: array.copy() for name, array in alone(each).items()} for each in given]

    def run(model) -> None:
        net = model.net()
        for turn in range(40):
            for name, array in net(given[turn % 4]).items():
                assert np.array_equal(array, wanted[turn % 4][name]), f"turn {turn}: '{name}'"

    with ThreadPoolExecutor(4) as pool:
        for done in [pool.submit(run, model) for model in (*models, models[0], models[1])]:
            done.result()


def test_all_models_are_there() -> None:
    assert len([case for case in all_cases() if case.name in MODELS]) == len(MODELS)
