#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures the cost of quantising: CPU seconds of run_calibration and of NNCF, on the same models and samples.

User and system time of the command with all its processes, imports included. NNCF runs where TESSERA_PEERS_PYTHON has
it. Models as for ./dev bench; kernels that earlier runs compiled are not used.
"""
from __future__ import annotations

import argparse
import ctypes
import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Sequence

import networks
from networks import Measured
from preparation import PACKAGE, QUANTISER, installed, peers_python

from tessera import top_model
from tessera.files import save_npz
from tessera.progress import Report

BECOME_REAPER = 36
"""PR_SET_CHILD_SUBREAPER, so that processes orphaned by a command count too."""


def cpu_seconds(command: Sequence[str | Path], log: Path) -> float | None:
    """Returns the CPU seconds of a command and all processes that it started; None if it failed."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    with log.open("wb") as file:
        failed = subprocess.run(command, stdout=file, stderr=file).returncode
    try:
        while True:
            os.wait()
    except ChildProcessError:
        pass
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return None if failed else after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def measure(model: Measured, samples: int, folder: Path, with_nncf: bool) -> tuple[float | None, float | None]:
    top = folder / f"{model.name}_top.mlir"
    quiet = Report(1, sys.stderr, quiet=True)
    imported, _ = top_model.import_onnx(model.onnx, top, quiet, model_name=model.name, input_shapes=model.shapes)
    data = folder / "samples"
    data.mkdir()
    for i in range(samples):
        save_npz(data / f"{i:03}.npz", model.sample(imported.inputs, i))
    ours = cpu_seconds(
        [
            PACKAGE.parents[1] / "bin/run_calibration", top, "--dataset", data, "--input_num", str(samples),
            "-o", folder / "cali.json", "--cache_dir", folder / "cache",
        ],
        folder / "ours.txt",
    )  # fmt: skip
    nncf = None
    if with_nncf:
        command = [peers_python(), QUANTISER, "openvino", model.onnx, data, folder / "nncf.xml"]
        nncf = cpu_seconds(command, folder / "nncf.txt")
    return ours, nncf


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", 1)[0], allow_abbrev=False)
    parser.add_argument("onnx", nargs="*", metavar="FILE[:SHAPES]", help="models; shapes as of model_transform")
    parser.add_argument("--models", help="'zoo', or a folder with NAME/*.onnx")
    parser.add_argument("--samples", type=int, default=8, help="of random values (default: %(default)s)")
    args = parser.parse_args()
    ctypes.CDLL(None).prctl(BECOME_REAPER, 1, 0, 0, 0)
    with_nncf = installed("nncf") and installed("openvino")
    print(f"CPU seconds, {args.samples} samples" + ("" if with_nncf else "; NNCF is not installed"))
    print(f"{'model':24} {'tessera':>8} {'NNCF':>8} {'ratio':>6}", flush=True)
    with tempfile.TemporaryDirectory() as scratch:
        for model in networks.choose(args.onnx, args.models, Path(scratch) / "zoo"):
            folder = Path(scratch) / model.name
            folder.mkdir()
            ours, nncf = measure(model, args.samples, folder, with_nncf)
            info = [f"{'failed' if s is None else format(s, '.1f'):>8}" for s in (ours, nncf)]
            ratio = f"{ours / nncf:6.2f}" if ours and nncf else ""
            print(f"{model.name:24} {' '.join(info)} {ratio}", flush=True)
            if ours is None:
                print((folder / "ours.txt").read_text()[-500:], file=sys.stderr)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
