# SPDX-License-Identifier: Apache-2.0
"""Random networks whose leading dims are known at run time: one compile, runs at several sizes against onnxruntime.

    build/bin/tessera-python regression/conformance/random_sizes.py --seeds 0:500 [--isa x86-v2] [--keep FOLDER]

A network of random_graphs.py is opened: inputs with equal leading dims share a symbol. Networks that hold for one size
only, e.g. because they reshape to numbers, are rejected by the importer and counted.
"""
from __future__ import annotations

import random
import sys
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import random_graphs
from engines import Compiler, StageError, deploy, run_bmodel, supported_isas

MOST = 13  # largest size of an open dim, unless the network's own is larger
REJECTED = "rejected"


def open_leading_dims(model: onnx.ModelProto) -> dict[str, int]:
    """Names the leading dims of inputs that no convolution or matmul takes as weights; returns the names with the
    network's own sizes."""
    weights = {name for node in model.graph.node for name in node.input[1:] if node.op_type in ("Conv", "MatMul")}
    names = {}
    for value in model.graph.input:
        dims = value.type.tensor_type.shape.dim
        if dims and value.name not in weights:
            names[f"d{dims[0].dim_value}"] = dims[0].dim_value
            dims[0].dim_param = f"d{dims[0].dim_value}"
    for value in model.graph.output:
        del value.type.tensor_type.shape.dim[:]
        value.type.tensor_type.ClearField("shape")
    del model.graph.value_info[:]
    return names


def inputs_at(model: onnx.ModelProto, inputs: dict[str, np.ndarray], sizes: dict[str, int]) -> dict[str, np.ndarray]:
    """Returns the inputs with their open dims cut or repeated to `sizes`."""
    result = dict(inputs)
    for value in model.graph.input:
        dims = value.type.tensor_type.shape.dim
        if dims and dims[0].dim_param in sizes:
            result[value.name] = np.resize(
                inputs[value.name], (sizes[dims[0].dim_param], *inputs[value.name].shape[1:])
            )
    return result


def check(compiler: Compiler, seed: int, isa: str, folder: Path) -> None:
    model, inputs = random_graphs.make_network(seed)
    names = open_leading_dims(model)
    path, mlir = folder / "model.onnx", folder / "model_top.mlir"
    path.write_bytes(model.SerializeToString())
    if not names:
        raise StageError(REJECTED, "no open dim")
    ranges = ",".join(f"{name}=1..{max(MOST, size)}" for name, size in names.items())
    try:
        compiler("import", "import", "--onnx", path, "--output", mlir, "--dims", ranges)
        bmodel = deploy(compiler, mlir, isa)
    except StageError as fault:
        if fault.rejected:
            raise StageError(REJECTED, str(fault)) from fault
        raise
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    rng = random.Random(seed)
    for sizes in (names, dict.fromkeys(names, 1), {name: rng.choice((2, 5, 7, MOST)) for name in names}):
        given = inputs_at(model, inputs, sizes)
        try:
            wanted = dict(zip((v.name for v in model.graph.output), session.run(None, given)))
        except Exception:  # the network does not hold at this size
            continue
        got = run_bmodel(bmodel, given)
        for name, value in wanted.items():
            error = np.abs(got[name] - value).max(initial=0) if got[name].shape == value.shape else np.inf
            if not error <= random_graphs.TOLERANCE * max(np.abs(value).max(initial=0), 1e-2):
                raise StageError("compare", f"{name} at {sizes}: error {error}")


def run_seed(seed: int, isa: str, keep: Path | None = None) -> str:
    """Returns the fault of the network of a seed, or ""."""
    return random_graphs.run_in_folder(check, "sizes", seed, isa, keep)


def main() -> int:
    arguments = random_graphs.parse_arguments(__doc__, supported_isas())
    faults = rejected = 0
    for text in random_graphs.map_seeds(
        run_seed, supported_isas(), arguments.seeds, arguments.jobs, arguments.isa, arguments.keep
    ):
        if f", {REJECTED}:" in text:
            rejected += 1
        elif text:
            faults += 1
            print(text, flush=True)
    print(f"{faults} of {len(arguments.seeds)} networks fail, {rejected} cannot be opened")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
