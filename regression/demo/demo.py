#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""./dev demo: classifies real pictures with a real model through the three main commands.

Everything shown comes from running the commands and the .bmodel; the golden class scores beside the pictures were
computed by onnxruntime. The exit code is 0 only if every picture agrees with them.
"""
from __future__ import annotations

import argparse
import os
import shlex
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from tessera import bmodel, compare
from tessera.files import load_npz

MODEL = Path(__file__).resolve().parents[1] / "models" / "mobilenetv1_0.25_128"
NAME = "mobilenetv1_0.25_128"
TOLERANCE = compare.Tolerance(0.99999, None, 1e-3)
PREPROCESS = [
    "--resize_dims",
    "146,146",
    "--keep_aspect_ratio",
    "--keep_ratio_mode",
    "short_side_scale",
    "--pixel_format",
    "rgb",
    "--mean",
    "127.5,127.5,127.5",
    "--scale",
    "0.00784313725490196,0.00784313725490196,0.00784313725490196",
]


def tool(*arguments: object) -> None:
    """Runs one command as a user would, showing its line and its output; ends the demo if it fails."""
    words = [str(a) for a in arguments]
    print(f"\n$ {shlex.join(words)}", flush=True)
    folder = Path(os.environ.get("TESSERA_BUILD_DIR", Path(__file__).resolve().parents[2] / "build")) / "bin"
    code = subprocess.run([str(folder / words[0]), *words[1:]]).returncode
    if code != 0:
        raise SystemExit(code)


def label(text: str) -> str:
    """Returns the first of a class's names."""
    return text.split(",")[0]


def show_picture(name: str, scores: np.ndarray, golden: np.ndarray, labels: list[str]) -> bool:
    """Shows the top 5 of one picture with bars; returns whether the scores agree with the golden ones."""
    row = compare.compare_tensor(name, scores, golden, TOLERANCE)
    order = np.argsort(-scores.ravel(), kind="stable")[:5]
    same = int(order[0]) == int(golden.argmax())
    verdict = "agrees with onnxruntime" if row.passed and same else "DIFFERS from onnxruntime"
    print(f"\n  {name}   {verdict}: cos {row.cosine:.7f}, max|e| {row.max_abs:.1e}")
    for index in order:
        value = float(scores.ravel()[index])
        print(f"    {value:6.1%} {'█' * round(value * 30):<30} {label(labels[index])}")
    return row.passed and same


def latency(net: bmodel.Net, array: dict[str, np.ndarray], seconds: float = 0.5) -> float:
    """Returns the median milliseconds of a run."""
    times: list[float] = []
    end = time.perf_counter() + seconds
    while len(times) < 20 or time.perf_counter() < end:
        begin = time.perf_counter()
        net.run(array)
        times.append(time.perf_counter() - begin)
    return float(np.median(times) * 1e3)


def demo(folder: Path) -> int:
    pictures = sorted((MODEL / "pictures").glob("*.png"))
    golden = load_npz(MODEL / "pictures_golden.npz")
    labels = (MODEL / "labels.txt").read_text(encoding="utf-8").splitlines()
    onnx = MODEL / f"{NAME}.onnx"
    mlir, output = folder / f"{NAME}_top.mlir", folder / f"{NAME}_x86_f32.bmodel"
    print(
        f"MobileNetV1 0.25, 1000 ImageNet classes: {onnx.stat().st_size / 1e6:.1f} MB of ONNX to one .bmodel, "
        f"then {len(pictures)} photos."
    )
    tool(
        "model_transform",
        "--model_name",
        NAME,
        "--model_def",
        onnx,
        *PREPROCESS,
        "--test_input",
        pictures[0],
        "--test_result",
        folder / "top_outputs.npz",
        "--mlir",
        mlir,
    )
    tool(
        "model_deploy",
        "--mlir",
        mlir,
        "--chip",
        "x86",
        "--quantize",
        "F32",
        "--test_input",
        folder / f"{NAME}_in_f32.npz",
        "--test_reference",
        folder / "top_outputs.npz",
        "--model",
        output,
    )
    tool("model_runner", "--model", output, "--input", pictures[0], "--output", folder / "out.npz")

    print("\nAll photos through the .bmodel:")
    net = bmodel.open_net(output, threads=1)
    spec = net.inputs[0]
    if spec.preprocess is None:
        raise SystemExit("the .bmodel has lost its pre-processing")
    agree, arrays = 0, {}
    for picture in pictures:
        arrays = {spec.name: spec.preprocess.apply(picture, spec.shape)}
        scores = net.run(arrays)[net.outputs[0].name]
        agree += show_picture(picture.stem, scores, golden[picture.stem], labels)
    times = ", ".join(
        f"{latency(bmodel.open_net(output, t), arrays):.2f} ms on {t} thread{'s' if t > 1 else ''}" for t in (1, 2)
    )
    print(f"\n{agree} of {len(pictures)} photos agree with onnxruntime; latency {times}")
    return 0 if agree == len(pictures) else 3


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--keep", metavar="DIR", help="keep the files the commands make here")
    args = parser.parse_args()
    if args.keep:
        Path(args.keep).mkdir(parents=True, exist_ok=True)
        return demo(Path(args.keep))
    with tempfile.TemporaryDirectory(prefix="tessera-demo-") as folder:
        return demo(Path(folder))


if __name__ == "__main__":
    sys.exit(main())
