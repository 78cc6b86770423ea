# SPDX-License-Identifier: Apache-2.0
"""One engine in its own process for bench.py: prepares, then runs in rounds as told on stdin.

Arguments: engine, model, inputs .npz, outputs .npz, threads, precision. Prints one JSON line after preparing
(with the outputs of the first run saved), one per round, and one with the peak memory at the end.
"""
from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Callable

import numpy as np

Run = Callable[[], dict[str, np.ndarray]]


def open_tessera(model: str, inputs: dict[str, np.ndarray], threads: int, precision: str) -> Run:
    import tessera.runtime as rt

    net = rt.load(model, threads=threads).net()
    return lambda: net(inputs)


def open_onnxruntime(model: str, inputs: dict[str, np.ndarray], threads: int, precision: str) -> Run:
    import onnxruntime as ort

    options = ort.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
    options.log_severity_level = 4
    session = ort.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    names = [o.name for o in session.get_outputs()]
    return lambda: dict(zip(names, session.run(None, inputs)))


def open_openvino(model: str, inputs: dict[str, np.ndarray], threads: int, precision: str) -> Run:
    import openvino as ov

    core = ov.Core()
    network = core.read_model(model)
    network.reshape({name: ov.PartialShape(list(array.shape)) for name, array in inputs.items()})
    # Told, because OpenVINO would choose bf16 by itself where the machine has it.
    compiled = core.compile_model(
        network,
        "CPU",
        {
            "INFERENCE_NUM_THREADS": threads,
            "INFERENCE_PRECISION_HINT": precision,
            "PERFORMANCE_HINT": "LATENCY",
            "NUM_STREAMS": 1,
        },
    )
    request = compiled.create_infer_request()

    def run() -> dict[str, np.ndarray]:
        values = request.infer(inputs, share_inputs=True, share_outputs=True)
        return {name: value for output, value in values.items() for name in output.get_names()}

    return run


ENGINES = {"tessera": open_tessera, "onnxruntime": open_onnxruntime, "openvino": open_openvino}


def say(**fields: object) -> None:
    print(json.dumps(fields), flush=True)


def peak_mib() -> float:
    """Peak resident memory of this process."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM"):
            return int(line.split()[1]) / 1024
    return float("nan")


def main() -> None:
    from tessera.files import load_npz, save_npz

    engine, model, inputs_file, outputs_file, threads, precision = sys.argv[1:]
    inputs = load_npz(inputs_file)
    try:
        begin = time.perf_counter()
        run = ENGINES[engine](model, inputs, int(threads), precision)
        outputs = run()
        prepare = time.perf_counter() - begin
        save_npz(outputs_file, {name: np.array(value) for name, value in outputs.items()})
    except Exception as error:  # whatever the engine raises is this engine's result
        say(error=f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}")
        return
    say(prepare=prepare)
    for line in sys.stdin:
        times: list[float] = []
        end = time.perf_counter() + float(line)
        while len(times) < 3 or time.perf_counter() < end:
            begin = time.perf_counter()
            run()
            times.append(time.perf_counter() - begin)
        say(times=times)
    say(peak_mib=peak_mib())


if __name__ == "__main__":
    main()
