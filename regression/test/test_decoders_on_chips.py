# SPDX-License-Identifier: Apache-2.0
"""Random small decoders with block matmuls: NPUs, in buckets, run all ops. npu_emission_test compares the bits of block
matmuls; norms and attention add their sums in another order than x86, which may move an integer behind by one step.

To run more: TESSERA_DECODERS=FIRST:END build/bin/tessera-python -m pytest regression/test/test_decoders_on_chips.py
"""
from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
import random_decoders
from conftest import check, run_tool
from random_decoders import Decoder
from test_cuda import MACHINE, has_machine

SEEDS = range(*(int(part) for part in os.environ.get("TESSERA_DECODERS", "0:3").split(":")))
CHIPS = ("npu-base", "npu-pro", "npu-edge")
PRECISIONS = ("W4A8", "W8A8")
PASTS = (1, 5, 12, 24)
STEPS = 2 / 127  # largest error of a result, relative to the largest number


@pytest.mark.parametrize("seed", SEEDS)
def test_random_decoders(tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    import tessera.runtime as runtime

    monkeypatch.setenv("BMRT_LIBCUDA", str(MACHINE))
    rng = np.random.default_rng(seed)
    decoder, precision = Decoder.draw(rng), PRECISIONS[seed % len(PRECISIONS)]
    path, mlir = tmp_path / "d.onnx", tmp_path / "d_top.mlir"
    random_decoders.write(path, decoder, rng)
    model = ("--model_name", "d", "--model_def", path, "--mlir", mlir, "--dims", f"past=1..{decoder.most}")
    check(run_tool("model_transform", *model, "--state", "none", "--not_inference"))
    nets = {}
    for chip in ("x86", CHIPS[seed % len(CHIPS)], *(["cuda"] if has_machine() and seed % 3 == 0 else [])):
        buckets = ("--buckets", f"past=6,{decoder.most}") if chip.startswith("npu") else ()
        file = tmp_path / f"{chip}.bmodel"
        flags = ("--chip", chip, "--quantize", precision, *buckets, "--skip_validation")
        printed = check(run_tool("model_deploy", "--mlir", mlir, "--model", file, *flags))
        assert not buckets or printed.count(f"{chip} runs all") == 2, printed
        nets[chip] = runtime.load(str(file)).net()
    for past in PASTS:
        inputs = decoder.inputs(past, np.random.default_rng(past))
        wanted = nets["x86"](inputs)
        for chip, net in nets.items():
            for name, array in net(inputs).items():
                most = STEPS * np.abs(wanted[name]).max()
                np.testing.assert_allclose(array, wanted[name], rtol=0, atol=most, err_msg=f"{decoder} {chip} {past}")
