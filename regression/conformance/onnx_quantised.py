# SPDX-License-Identifier: Apache-2.0
"""Models that onnxruntime's quantiser made, op by op beside onnxruntime.

A quantised model is cut at every 8-bit tensor: what one op writes is an output, what the next one reads is an input
that holds onnxruntime's integers. So every op is compared on equal operands, and no difference is inherited.
    build/bin/tessera-python regression/conformance/onnx_quantised.py MODEL.onnx [--keep FOLDER]
prints, for each form onnxruntime's quantiser writes, how many integers of which ops differ. Needs onnxruntime and an
onnx that its quantiser accepts (1.16 or newer).
"""
from __future__ import annotations

import argparse
import collections
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Iterator

import numpy as np
import onnx
from engines import Compiler, deploy, run_bmodel
from onnx import TensorProto, helper
from random_quantized import reference

ONNX_TYPES = {
    np.dtype(np.int8): TensorProto.INT8,
    np.dtype(np.uint8): TensorProto.UINT8,
    np.dtype(np.float32): TensorProto.FLOAT,
    np.dtype(np.int32): TensorProto.INT32,
}
ENGINES = ("top", "device", "x86-v2", "x86-avx2", "x86-avx512", "x86")


@dataclass
class CutModel:
    """A model whose every op reads onnxruntime's integers."""

    model: onnx.ModelProto
    inputs: dict[str, np.ndarray]

    def operator(self, output: str) -> str:
        """Returns the type of the op that computes an output: the float op in front of a QuantizeLinear, or the node
        itself."""
        makers = {name: node for node in self.model.graph.node for name in node.output}
        node = makers[output]
        before = makers.get(node.input[0]) if node.op_type == "QuantizeLinear" else None
        return before.op_type if before else node.op_type


def feeds_of(model: onnx.ModelProto, seed: int) -> dict[str, np.ndarray]:
    constants = {tensor.name for tensor in model.graph.initializer}
    generator = np.random.default_rng(seed)
    return {
        value.name: generator.standard_normal([d.dim_value or 1 for d in value.type.tensor_type.shape.dim]).astype(
            np.float32
        )
        for value in model.graph.input
        if value.name not in constants
    }


def session(model: onnx.ModelProto, optimised: bool):
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    level = onnxruntime.GraphOptimizationLevel
    options.graph_optimization_level = level.ORT_ENABLE_ALL if optimised else level.ORT_DISABLE_ALL
    return onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])


def run_onnxruntime(model: onnx.ModelProto, inputs: dict[str, np.ndarray], optimised: bool) -> dict[str, np.ndarray]:
    running = session(model, optimised)
    return dict(zip([output.name for output in running.get_outputs()], running.run(None, inputs)))


def forms(path: Path, folder: Path) -> Iterator[tuple[str, onnx.ModelProto]]:
    """Yields the model as onnxruntime quantises it: with quantised operators or QDQ pairs, with signed or unsigned
    activations and weights, per tensor or per channel."""
    from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_static
    from onnxruntime.quantization.shape_inference import quant_pre_process

    class Reader(CalibrationDataReader):
        def __init__(self) -> None:
            self.feeds = iter([feeds_of(onnx.load(str(path)), seed) for seed in range(3)])

        def get_next(self) -> dict | None:
            return next(self.feeds, None)

    prepared = folder / "prepared.onnx"
    quant_pre_process(str(path), str(prepared), skip_symbolic_shape=True)
    names = {QuantType.QUInt8: "u8", QuantType.QInt8: "s8"}
    for style in (QuantFormat.QOperator, QuantFormat.QDQ):
        for activation, weight in (
            (QuantType.QUInt8, QuantType.QUInt8),
            (QuantType.QUInt8, QuantType.QInt8),
            (QuantType.QInt8, QuantType.QInt8),
        ):
            for per_channel in (False, True):
                name = (
                    f"{style.name} {names[activation]}{names[weight]} {'per channel' if per_channel else 'per tensor'}"
                )
                output = folder / "quantised.onnx"
                try:
                    quantize_static(
                        str(prepared),
                        str(output),
                        Reader(),
                        quant_format=style,
                        activation_type=activation,
                        weight_type=weight,
                        per_channel=per_channel,
                    )
                    model = onnx.load(str(output))
                    session(model, False)
                except Exception as error:  # models that onnxruntime itself cannot create or read are not cases
                    print(f"{path.name}, {name}: left out, onnxruntime says: {str(error)[:120]}", file=sys.stderr)
                    continue
                yield name, model


def cut(model: onnx.ModelProto, feeds: dict[str, np.ndarray]) -> CutModel:
    made = [name for node in model.graph.node for name in node.output if name]
    full = onnx.ModelProto()
    full.CopyFrom(model)
    present = {output.name for output in full.graph.output}
    full.graph.output.extend(onnx.ValueInfoProto(name=name) for name in made if name not in present)
    values = run_onnxruntime(full, feeds, optimised=False)
    narrow = [name for name in made if name in values and values[name].dtype in (np.int8, np.uint8)]
    result = onnx.ModelProto()
    result.CopyFrom(model)
    graph = result.graph
    for node in graph.node:
        for i, name in enumerate(node.input):
            if name in narrow:
                node.input[i] = f"cut_{name}"
    used = {name for node in graph.node for name in node.input}
    given = {name: array for name, array in feeds.items() if name in used}
    given |= {f"cut_{name}": values[name] for name in narrow if f"cut_{name}" in used}
    outputs = narrow + [output.name for output in model.graph.output if output.name not in narrow]
    value = helper.make_tensor_value_info
    del graph.input[:], graph.output[:]
    graph.input.extend(value(name, ONNX_TYPES[array.dtype], array.shape) for name, array in given.items())
    graph.output.extend(value(name, ONNX_TYPES[values[name].dtype], values[name].shape) for name in outputs)
    return CutModel(result, given)


def run_tessera(compiler: Compiler, path: Path, inputs: dict[str, np.ndarray], engine: str) -> dict[str, np.ndarray]:
    mlir = path.with_name(f"{path.stem}{'_plain' if engine == 'top' else ''}_top.mlir")
    if not mlir.exists():
        compiler("import", "import", "--onnx", path, "--output", mlir, *(["--no-optimise"] if engine == "top" else []))
    if engine in ("top", "device"):
        return reference(compiler, mlir, inputs, *(["--device"] if engine == "device" else []))
    return run_bmodel(deploy(compiler, mlir, engine), inputs)


def differences(
    cut_model: CutModel, got: dict[str, np.ndarray], want: dict[str, np.ndarray]
) -> dict[str, tuple[int, int, int]]:
    """Returns, by operator: the number of integers compared, how many of them differ, and the largest difference in
    steps."""
    result: dict[str, tuple[int, int, int]] = {}
    for name, expected in want.items():
        if expected.dtype == np.float32:
            continue
        steps = np.abs(got[name].astype(np.int64) - expected)
        count, wrong, most = result.get(cut_model.operator(name), (0, 0, 0))
        result[cut_model.operator(name)] = (
            count + steps.size,
            wrong + int((steps > 0).sum()),
            max(most, int(steps.max(initial=0))),
        )
    return result


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path)
    parser.add_argument("--keep", type=Path)
    options = parser.parse_args()
    compiler, total = Compiler(), collections.Counter()
    with tempfile.TemporaryDirectory() as temporary:
        for number, (form, model) in enumerate(forms(options.model, Path(temporary))):
            folder = (options.keep or Path(temporary)) / str(number)
            folder.mkdir(parents=True, exist_ok=True)
            pieces = cut(model, feeds_of(onnx.load(str(options.model)), 0))
            path = folder / "cut.onnx"
            path.write_bytes(pieces.model.SerializeToString())
            want = {optimised: run_onnxruntime(pieces.model, pieces.inputs, optimised) for optimised in (True, False)}
            own = differences(pieces, want[False], want[True])
            print(f"{options.model.stem}, {form}: {sum(count for count, _, _ in own.values())} integers")
            lines = {"onnxruntime unoptimised": own}
            lines |= {
                engine: differences(pieces, run_tessera(compiler, path, pieces.inputs, engine), want[True])
                for engine in ENGINES
            }
            for engine, by_operator in lines.items():
                wrong = ", ".join(
                    f"{op} {bad} of {count} (at most {most})" for op, (count, bad, most) in by_operator.items() if bad
                )
                total[engine] += sum(bad for _, bad, _ in by_operator.values())
                print(f"  {engine}: {wrong or 'equal'}", flush=True)
    print(dict(total))
    return 0


if __name__ == "__main__":
    sys.exit(main())
