#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Times models with open sizes at many sizes, beside onnxruntime and OpenVINO with dynamic shapes, on one thread.

    build/bin/tessera-python regression/bench/size_sweep.py [--only TEXT] [--precision f32,int8] [--rounds 20]

Every engine opens one model for all sizes. At each size the engines take turns, and the least CPU times of all rounds
are compared, so that other work on the machine does not count. In INT8 each engine runs the model as its own tools
quantised it with the same samples (run_calibration, quantize_static to QDQ, NNCF).
"""
from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Callable, Iterator, Mapping, Sequence

import numpy as np
import stored
from preparation import command

from tessera import bmodel, compare
from tessera.bench import engines
from tessera.files import save_npz

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "accuracy"))

import peers  # noqa: E402

ROUND_SECONDS = 0.05
SAMPLES = 8
Arrays = Mapping[str, np.ndarray]
Sizes = Mapping[str, int]


@dataclass(frozen=True)
class Model:
    """A model with open sizes. dims: their ranges. shapes: of the inputs, with names for open sizes. sizes: those that
    are measured. likely: those of the samples. vocabulary: number of tokens, for inputs of token numbers."""

    file: str
    dims: str
    shapes: Mapping[str, Sequence[int | str]]
    sizes: Sequence[Sizes]
    likely: Sizes
    vocabulary: int = 0
    values: Mapping[str, np.ndarray] | None = None

    @property
    def name(self) -> str:
        return Path(self.file).stem

    @property
    def path(self) -> Path:
        return Path(os.environ["TESSERA_DATA"]) / "models" / self.file

    def inputs(self, sizes: Sizes, seed: int) -> dict[str, np.ndarray]:
        rng, found = np.random.default_rng(seed), {}
        for name, shape in self.shapes.items():
            numbers = [sizes[size] if isinstance(size, str) else size for size in shape]
            drawn = rng.integers(0, self.vocabulary, numbers) if self.vocabulary else rng.standard_normal(numbers)
            found[name] = drawn if self.vocabulary else drawn.astype(np.float32)
        return {**found, **(self.values or {})}

    def open_shapes(self) -> dict[str, list[int]]:
        shapes = {n: [-1 if isinstance(size, str) else size for size in shape] for n, shape in self.shapes.items()}
        return {**shapes, **{name: list(array.shape) for name, array in (self.values or {}).items()}}


def batches(file: str, symbol: str, name: str, *shape: int) -> Model:
    sizes = [{"n": n} for n in (1, 2, 3, 5, 8)]
    return Model(file, f"{symbol}=1..8", {name: ["n", *shape]}, sizes, {"n": 1})


PICTURES = [{"h": h, "w": w} for h, w in ((96, 320), (320, 320), (480, 640), (640, 480), (736, 1280))]
MODELS = (
    batches("cls/resnet20_cifar10.onnx", "N", "input", 3, 32, 32),
    batches("cls/squeezenet1.0_227.onnx", "N", "data", 3, 227, 227),
    batches("sr/super_resolution_x3.onnx", "batch_size", "input", 1, 224, 224),
    Model("seg/ppocrv3_det.onnx", "x.2=32..1280:32,x.3=32..1280:32", {"x": [1, 3, "h", "w"]}, PICTURES, PICTURES[1]),
    Model(
        "llm/stories260k.onnx",
        "batch=1,seq=1..128",
        {"input_ids": [1, "seq"]},
        [{"seq": seq} for seq in (1, 7, 16, 33, 64, 128)],
        {"seq": 64},
        vocabulary=512,
    ),
    Model("rnn/dtln_model_1.onnx", "", {"input_2": [1, 1, 257], "input_3": [1, 2, 128, 2]}, [{}], {}),
    Model("rnn/dtln_model_2.onnx", "", {"input_4": [1, 1, 512], "input_5": [1, 2, 128, 2]}, [{}], {}),
    Model(
        "rnn/silero_vad.onnx",
        "input.0=1..8,input.1=288..576,state.1=1..8",
        {"input": ["n", 576], "state": [2, "n", 128]},
        [{"n": n} for n in (1, 2, 3, 5, 8)],
        {"n": 1},
        values={"sr": np.array(16000, np.int64)},
    ),
)

Run = Callable[[], object]
Open = Callable[[Arrays], Run]  # opens nothing new: returns the run for inputs of one size


def open_ours(model: Model, precision: str, samples: Path, folder: Path) -> Open:
    mlir, file, table = (folder / name for name in ("m_top.mlir", "m.bmodel", "cali.json"))
    dims = ["--dims", model.dims] if model.dims else []
    command("model_transform", "--model_name", model.name, "--model_def", model.path, "--mlir", mlir, *dims,
            "--not_inference", "--state", "none")  # fmt: skip
    flags: list[object] = []
    if precision == "int8":
        command("run_calibration", mlir, "--dataset", samples, "--input_num", SAMPLES, "-o", table)
        flags = ["--calibration_table", table]
    command("model_deploy", "--mlir", mlir, "--quantize", precision.upper(), "--model", file, "--skip_validation",
            *flags)  # fmt: skip
    net = bmodel.open_net(file, 1)
    return lambda inputs: net.timed(inputs)


def open_onnxruntime(model: Model, precision: str, arrays: Sequence[Arrays], folder: Path) -> Open:
    path = peers.onnxruntime_file(model.path, {}, arrays, "MinMax", folder) if precision == "int8" else model.path

    def opened(inputs: Arrays) -> Run:
        return engines.open_onnxruntime(str(path), inputs, engines.Wanted()).lanes[0]

    return opened


def open_openvino(model: Model, precision: str, arrays: Sequence[Arrays]) -> Open:
    import openvino as ov

    if precision == "int8":
        network = peers.nncf_network(model.path, model.open_shapes(), arrays)
    else:
        network = ov.Core().read_model(str(model.path))
        network.reshape({name: ov.PartialShape(shape) for name, shape in model.open_shapes().items()})
    hints = {"INFERENCE_NUM_THREADS": 1, "INFERENCE_PRECISION_HINT": "f32", "NUM_STREAMS": 1}
    request = ov.Core().compile_model(network, "CPU", hints).create_infer_request()
    return lambda inputs: lambda: request.infer(dict(inputs), share_inputs=True, share_outputs=True)


def opened(model: Model, precision: str, folder: Path) -> Iterator[tuple[str, Open]]:
    """Yields the engines; prints why one is left out."""
    arrays = [model.inputs(model.likely, seed) for seed in range(SAMPLES)]
    samples = folder / "samples"
    samples.mkdir()
    for number, each in enumerate(arrays):
        save_npz(samples / f"{number}.npz", each)
    yield "tessera", open_ours(model, precision, samples, folder)
    for name, make in (
        ("onnxruntime", lambda: open_onnxruntime(model, precision, arrays, folder)),
        ("openvino", lambda: open_openvino(model, precision, arrays)),
    ):
        try:
            yield name, make()
        except Exception as error:  # the tools of a peer fail in many ways
            print(f"{model.name} {precision}: {name} is left out: {str(error).splitlines()[:1]}", file=sys.stderr)


def cpu_times(runs: Mapping[str, Run], rounds: int) -> dict[str, float]:
    """Returns the least CPU seconds of a run of each engine; they take turns."""
    best, counts = dict.fromkeys(runs, float("inf")), {}
    for name, run in runs.items():
        for _ in range(3):
            begin = time.process_time()
            run()
            took = time.process_time() - begin
        counts[name] = max(1, int(ROUND_SECONDS / max(took, 1e-6)))
    for _ in range(rounds):
        for name, run in runs.items():
            begin = time.process_time()
            for _ in range(counts[name]):
                run()
            best[name] = min(best[name], (time.process_time() - begin) / counts[name])
    return best


def sweep(model: Model, precision: str, rounds: int) -> Iterator[tuple[Sizes, dict[str, float]]]:
    """Yields the CPU seconds of all engines at each size."""
    with tempfile.TemporaryDirectory(prefix="tessera-sweep-") as folder:
        makers = dict(opened(model, precision, Path(folder)))
        for sizes in model.sizes:
            inputs, runs = model.inputs(sizes, 0), {}
            for name, make in makers.items():
                try:
                    runs[name] = make(inputs)
                    runs[name]()
                except Exception as error:
                    print(f"{model.name} {precision} {sizes}: {name}: {str(error).splitlines()[:1]}", file=sys.stderr)
                    runs.pop(name, None)
            yield sizes, cpu_times(runs, rounds)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", help="models whose name contains this")
    parser.add_argument("--precision", default="f32,int8", help="default: %(default)s")
    parser.add_argument("--rounds", type=int, default=20, help="turns of each engine (default: %(default)s)")
    parser.add_argument("--json", type=Path, help="write all figures here")
    args = parser.parse_args()
    rows, figures = [("model", "precision", "size", "tessera ms", "onnxruntime", "openvino", "ratio")], []
    for model in (model for model in MODELS if args.only in model.name):
        for precision in args.precision.split(","):
            for sizes, times in sweep(model, precision, args.rounds):
                others = [time for name, time in times.items() if name != "tessera"]
                ratio = times["tessera"] / min(others) if others and "tessera" in times else float("nan")
                shown = (f"{times[name] * 1e3:.3f}" if name in times else "-" for name in engines.OPEN)
                size = " x ".join(map(str, sizes.values())) or "fixed"
                rows.append((model.name, precision, size, *shown, f"{ratio:.2f}"))
                figures.append({"model": model.name, "precision": precision, "sizes": sizes, **times, "ratio": ratio})
                print(*rows[-1], flush=True)
    print(compare.align(rows, right=(2, 3, 4, 5, 6)))
    ratios = [each["ratio"] for each in figures if each["ratio"] == each["ratio"]]
    print(f"geometric mean of the ratios to the better peer: {stored.geometric_mean(ratios):.2f}")
    if args.json:
        args.json.write_text(json.dumps(figures, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
