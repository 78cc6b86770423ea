# SPDX-License-Identifier: Apache-2.0
"""Tests that a model declared bit-equal gives equal bits on every chip, and that any other model lists the nodes that
may differ."""
from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Callable

import bit_equal_models as models
import numpy as np
import pytest
from conftest import check, run_tool

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "conformance"))
from engines import supported_isas  # noqa: E402

from tessera import safetensors_io  # noqa: E402
from tessera.files import save_npz  # noqa: E402

CHIPS = (*supported_isas(), "npu-edge", "npu-base", "npu-pro")
EQUAL = "bit-equal on all chips and instruction sets"
SHAPES = {
    models.mask_decoder: (1, 3, 20, 22),
    models.decoder_block: (2, 13, 24),
    models.contractions: (2, 5, 7, 9),
    models.recurrent: (1, 6, 9),
    models.quantised_words: (1, 8, 9, 11),
}


def sample(make: Callable, seed: int) -> dict[str, np.ndarray]:
    return {"x": np.random.default_rng(seed).standard_normal(SHAPES[make]).astype(np.float32)}


def quantised(make: Callable[[Path], Path], folder: Path) -> tuple[Path, Path]:
    """Returns the Top module and a calibration table of noise."""
    top = folder / "m_top.mlir"
    check(run_tool("tessera-compile", "import", "--onnx", make(folder / "m.onnx"), "--output", top))
    (folder / "data").mkdir()
    for seed in range(2):
        save_npz(folder / "data" / f"{seed}.npz", sample(make, seed))
    check(
        run_tool(
            "run_calibration",
            top,
            "--dataset",
            folder / "data",
            "--cali_method",
            "max",
            "--methods",
            "none",
            "-o",
            folder / "table.json",
        )
    )
    return top, folder / "table.json"


def reference(top: Path, inputs: dict[str, np.ndarray], *flags: object) -> dict[str, np.ndarray]:
    given, results = top.with_name("in.safetensors"), top.with_name("out.safetensors")
    safetensors_io.save(given, inputs)
    check(
        run_tool(
            "tessera-compile", "reference", "--device", "--mlir", top, *flags, "--input", given, "--output", results
        )
    )
    return safetensors_io.load(results)


def deploy(top: Path, chip: str, *flags: object) -> tuple[Path, list[str] | None]:
    """Returns the model, and its statement about bit equality."""
    model = top.with_name(f"{chip}.bmodel")
    info = check(run_tool("tessera-compile", "deploy", "--mlir", top, "--chip", chip, "--output", model, *flags))
    return model, json.loads(info.splitlines()[-1])["bit_equal_except"]


def assert_equal_everywhere(top: Path, make: Callable, *flags: object) -> None:
    inputs = sample(make, 7)
    want = reference(top, inputs, *flags)
    for chip in CHIPS:
        model, exceptions = deploy(top, chip, *flags)
        assert exceptions == []
        got = run(model, inputs)
        for name, expected in want.items():
            assert (got[name] != expected).sum() == 0, f"{chip}: '{name}' differs"


def run(model: Path, inputs: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    import tessera.runtime as runtime

    return runtime.load(str(model)).net()(inputs)


@pytest.mark.parametrize(
    "make", [models.mask_decoder, models.decoder_block, models.contractions], ids=lambda make: make.__name__
)
def test_products_of_activations(make: Callable[[Path], Path], tmp_path: Path) -> None:
    top, table = quantised(make, tmp_path)
    assert_equal_everywhere(top, make, "--quantize", "INT8", "--calibration-table", table)


def test_unsigned_words_of_an_imported_model(tmp_path: Path) -> None:
    top = tmp_path / "m_top.mlir"
    check(run_tool("tessera-compile", "import", "--onnx", models.quantised_words(tmp_path / "m.onnx"), "--output", top))
    assert_equal_everywhere(top, models.quantised_words)


def test_words_whose_sums_leave_32_bits_are_named(tmp_path: Path) -> None:
    top = tmp_path / "m_top.mlir"
    check(
        run_tool(
            "tessera-compile",
            "import",
            "--onnx",
            models.quantised_words(tmp_path / "m.onnx", channels=300),
            "--output",
            top,
        )
    )
    assert deploy(top, "x86")[1] == deploy(top, "npu-base")[1] == ["Conv_3+Relu_4"]


def test_nodes_that_differ_are_named(tmp_path: Path) -> None:
    top, table = quantised(models.recurrent, tmp_path)
    choices = tmp_path / "q.json"
    choices.write_text(
        json.dumps({"format": "tessera-quantize-table", "version": 1, "ops": [{"name": "Conv_0", "type": "F32"}]})
    )
    files = {}
    for chip in ("x86", "npu-base"):
        files[chip] = tmp_path / f"{chip}.bmodel"
        info = check(
            run_tool(
                "model_deploy",
                "--mlir",
                top,
                "--chip",
                chip,
                "--quantize",
                "INT8",
                "--calibration_table",
                table,
                "--quantize_table",
                choices,
                "--model",
                files[chip],
            )
        )
        warnings = info[info.index("== Warnings ==") :]
        expected = f"{EQUAL} except 2 ops whose sums stay in float ('Conv_0', 'LSTM_4') and their readers"
        assert expected in " ".join(warnings.split()), warnings
        assert expected in check(run_tool("model_tool", "info", files[chip]))
    check(
        run_tool(
            "model_deploy",
            "--mlir",
            top,
            "--chip",
            "x86",
            "--quantize",
            "F32",
            "--model",
            tmp_path / "f32.bmodel",
            "--skip_validation",
        )
    )
    assert "bit-equal" not in check(run_tool("model_tool", "info", tmp_path / "f32.bmodel"))
    # For a file of several chips: what all of its parts guarantee.
    for other, promised in (("x86", True), ("f32", False)):
        both = tmp_path / f"both_{other}.bmodel"
        check(run_tool("model_tool", "combine", files["npu-base"], tmp_path / f"{other}.bmodel", "-o", both))
        assert (EQUAL in check(run_tool("model_tool", "info", both))) == promised


def test_a_model_without_such_nodes_says_so(tmp_path: Path) -> None:
    top, table = quantised(models.contractions, tmp_path)
    info = check(
        run_tool(
            "model_deploy",
            "--mlir",
            top,
            "--chip",
            "x86",
            "--quantize",
            "INT8",
            "--calibration_table",
            table,
            "--model",
            tmp_path / "m.bmodel",
        )
    )
    assert f"{EQUAL}\n" in info and f"{EQUAL} except" not in info
    assert f"  {EQUAL}\n" in check(run_tool("model_tool", "info", tmp_path / "m.bmodel"))
