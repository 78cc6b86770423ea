# SPDX-License-Identifier: Apache-2.0
"""Models of one operator with random attributes, shapes and optional inputs, against onnxruntime: operators of
onnxruntime's optimiser (com.microsoft), of ai.onnx.ml, of attention, and conversions of stored types.

    build/bin/tessera-python regression/conformance/random_contrib.py [--seeds 0:400] [--family NAME] [--chip x86]

A case passes if the reference (and with --chip its compiled code) gives what onnxruntime gives, or if Tessera rejects
it by name. onnxruntime's own rejections are skipped. Prints a table by family.
"""
from __future__ import annotations

import argparse
import collections
import sys
import tempfile
from pathlib import Path
from typing import Callable

import contrib_attention
import contrib_fused
import contrib_ml
import numpy as np
import onnx
from contrib_case import Case, Rng
from contrib_experts import mixture, quantised_mixture
from engines import Compiler, StageError, deploy, run_bmodel, run_reference

FAMILIES: dict[str, Callable[[Rng], Case]] = {
    f.__name__: f
    for f in (
        contrib_attention.attention,
        contrib_attention.multi_head_attention,
        contrib_attention.group_query_attention,
        contrib_attention.rotary,
        contrib_attention.onnx_rotary,
        contrib_attention.onnx_attention,
        contrib_attention.tensor_scatter,
        contrib_fused.fused_matmul,
        contrib_fused.fused_gemm,
        contrib_fused.fused_conv,
        contrib_fused.embed_layer_norm,
        contrib_fused.skip_norm,
        contrib_fused.gelu,
        contrib_fused.matmul_nbits,
        contrib_fused.gather_block_quantized,
        mixture,
        quantised_mixture,
        contrib_ml.scaler,
        contrib_ml.normalizer,
        contrib_ml.binarizer,
        contrib_ml.label_encoder,
        contrib_ml.imputer,
        contrib_ml.array_feature_extractor,
        contrib_ml.one_hot_encoder,
        contrib_ml.tree_regressor,
        contrib_ml.tree_classifier,
        contrib_ml.tf_idf,
    )
}


def expected(case: Case, model: onnx.ModelProto) -> list[np.ndarray] | str:
    """Returns onnxruntime's outputs. If it rejects the case: those of the case's own reference, or else its message."""
    import onnxruntime as ort

    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    try:
        session = ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
        return session.run(None, case.fed)
    except Exception as error:  # of any of onnxruntime's kinds
        return case.reference() if case.reference else str(error)


def run_case(compiler: Compiler, case: Case, chip: str | None) -> tuple[str, str]:
    """Runs a case; returns (outcome, message)."""
    model = case.model()
    want = expected(case, model)
    if isinstance(want, str):
        return "skipped", want.strip().splitlines()[0][-200:]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "m.onnx").write_bytes(model.SerializeToString())
        try:
            compiler("import", "import", "--onnx", folder / "m.onnx", "--output", folder / "m_top.mlir")
            results = [run_reference(compiler, folder / "m_top.mlir", case.fed)]
            if chip:
                results.append(run_bmodel(deploy(compiler, folder / "m_top.mlir", chip), case.fed))
        except StageError as error:
            return ("rejected" if error.rejected else "failed"), f"{error.stage}: {error}"
    for got in results:
        for i, wanted in enumerate(want[: case.compared]):
            problem = difference(got.get(f"out{i}"), wanted, case.tolerance)
            if problem:
                return "differs", f"output {i}: {problem}"
    return "passed", ""


def difference(got: np.ndarray | None, want: np.ndarray, tolerance: float) -> str:
    if got is None or got.shape != want.shape or got.dtype != want.dtype:
        return f"{None if got is None else (got.dtype, got.shape)} in place of {(want.dtype, want.shape)}"
    if np.issubdtype(want.dtype, np.integer):
        return "" if np.array_equal(got, want) else f"{got.ravel()[:8]} in place of {want.ravel()[:8]}"
    got = np.maximum(got, np.finfo(np.float32).min)  # onnxruntime hides scores with this value
    if np.allclose(got, want, rtol=tolerance, atol=tolerance, equal_nan=True):
        return ""
    worst = int(np.nanargmax(np.abs(got - want))) if not np.all(np.isnan(got - want)) else 0
    return f"element {worst} is {got.ravel()[worst]}, expected {want.ravel()[worst]}"


def describe(case: Case) -> str:
    shapes = {
        name: (name in case.constants and "constant ", np.shape(array))
        for name, array in (case.fed | case.constants).items()
    }
    short = {k: v for k, v in case.attributes.items() if not isinstance(v, list) or len(v) < 9}
    return f"{case.op} {short} {case.names} {shapes}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", default="0:400")
    parser.add_argument("--family", choices=sorted(FAMILIES))
    parser.add_argument("--chip")
    parser.add_argument("--verbose", action="store_true", help="also list what is rejected")
    arguments = parser.parse_args()
    first, last = (int(v) for v in arguments.seeds.split(":"))
    names = [arguments.family] if arguments.family else list(FAMILIES)
    counts: dict[str, collections.Counter] = collections.defaultdict(collections.Counter)
    compiler = Compiler()
    for seed in range(first, last):
        name = names[seed % len(names)]
        case = FAMILIES[name](np.random.default_rng(seed))
        outcome, message = run_case(compiler, case, arguments.chip)
        counts[name][outcome] += 1
        if outcome in ("failed", "differs") or (arguments.verbose and outcome != "passed"):
            print(f"{name} {seed} {outcome}: {message}\n    {describe(case)}")
    for name, by_outcome in counts.items():
        print(f"{name:26}" + "  ".join(f"{kind} {count}" for kind, count in sorted(by_outcome.items())))
    return int(any(c["failed"] + c["differs"] for c in counts.values()))


if __name__ == "__main__":
    sys.exit(main())
