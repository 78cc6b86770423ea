# SPDX-License-Identifier: Apache-2.0
"""Prepares engines for one model: Tessera's runtime and the peers it is measured against."""
from __future__ import annotations

import importlib.metadata
import importlib.util
from dataclasses import dataclass
from typing import Any, Callable, Mapping

import numpy as np

Arrays = Mapping[str, np.ndarray]
OURS = "tessera"
PEERS = ("onnxruntime", "openvino")


@dataclass(frozen=True)
class Engine:
    """An engine that is ready to run. lanes: each runs the model once and serves one caller at a time; different lanes
    may run side by side. answer: runs once and returns the outputs by ONNX name as real numbers."""

    lanes: list[Callable[[], object]]
    answer: Callable[[], dict[str, np.ndarray]]


@dataclass(frozen=True)
class Wanted:
    """Settings of a measurement. threads: shared by all streams. precision: the type in which a peer multiplies; a
    .bmodel has its own."""

    threads: int = 1
    precision: str = "f32"
    streams: int = 1

    @property
    def threads_of_a_stream(self) -> int:
        return max(1, self.threads // self.streams)


def open_tessera(model: str, inputs: Arrays, wanted: Wanted) -> Engine:
    from tessera import bmodel

    nets = [bmodel.open_net(model, wanted.threads_of_a_stream) for _ in range(wanted.streams)]
    for net in nets:
        net.use({name: array.shape for name, array in inputs.items()})
    return Engine([net.timed(inputs) for net in nets], lambda: nets[0].run(inputs))


def open_onnxruntime(model: str, inputs: Arrays, wanted: Wanted) -> Engine:
    import onnxruntime as ort

    options = ort.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = wanted.threads_of_a_stream, 1
    options.log_severity_level = 4
    session = ort.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    names = [o.name for o in session.get_outputs()]
    feed = {each.name: inputs[each.name] for each in session.get_inputs()}

    def run() -> list[np.ndarray]:
        return session.run(None, feed)

    return Engine([run] * wanted.streams, lambda: dict(zip(names, run())))  # runs of one session may overlap


def open_openvino(model: str, inputs: Arrays, wanted: Wanted) -> Engine:
    import openvino as ov

    core = ov.Core()
    network = core.read_model(model)
    network.reshape({name: ov.PartialShape(list(array.shape)) for name, array in inputs.items()})
    # Set explicitly: OpenVINO would choose bf16 by itself on a machine that supports it.
    compiled = core.compile_model(
        network,
        "CPU",
        {
            "INFERENCE_NUM_THREADS": wanted.threads,
            "INFERENCE_PRECISION_HINT": wanted.precision,
            "PERFORMANCE_HINT": "LATENCY" if wanted.streams == 1 else "THROUGHPUT",
            "NUM_STREAMS": wanted.streams,
        },
    )

    def lane(request: Any) -> Callable[[], object]:
        return lambda: request.infer(inputs, share_inputs=True, share_outputs=True)

    requests = [compiled.create_infer_request() for _ in range(wanted.streams)]

    def answer() -> dict[str, np.ndarray]:
        values = requests[0].infer(inputs)
        return {name: value for output, value in values.items() for name in output.get_names()}

    return Engine([lane(request) for request in requests], answer)


OPEN: dict[str, Callable[[str, Arrays, Wanted], Engine]] = {
    OURS: open_tessera,
    "onnxruntime": open_onnxruntime,
    "openvino": open_openvino,
}


def installed(engine: str) -> bool:
    return engine == OURS or importlib.util.find_spec(engine) is not None


def version(engine: str) -> str:
    """Returns the installed version; "" if it is unknown."""
    from tessera import __version__

    if engine == OURS:
        return __version__
    try:
        return importlib.metadata.version(engine)
    except importlib.metadata.PackageNotFoundError:
        return ""
