# SPDX-License-Identifier: Apache-2.0
"""Sessions of onnxruntime and their errors."""
from __future__ import annotations

import os
import re
from pathlib import Path

from . import memory
from .errors import TesseraError

# Newer packages of onnxruntime for Linux (e.g. 1.32; see its Privacy.md) report sessions and models to their vendor
# over the network, and write an identifier into the folder for temporary files, unless this is set before the import.
# Users who want that set it to 0.
os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")


class Unreadable(TesseraError):
    """A model that an implementation of ONNX cannot load or run, which need not be a fault of the model."""


def make_session(
    model: str | bytes, path: str | Path, threads: int, optimise: bool
) -> "onnxruntime.InferenceSession":  # type: ignore  # noqa: F821
    """Returns onnxruntime's session for a file, or for the bytes of a model derived from the file at `path`, which
    locates its external data."""
    import onnxruntime as ort

    options = ort.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.log_severity_level = 4
    if not optimise:
        options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    if isinstance(model, bytes):
        options.add_session_config_entry(
            "session.model_external_initializers_file_folder_path", str(Path(path).resolve().parent)
        )
    return ort.InferenceSession(model, options, providers=["CPUExecutionProvider"])


def failure_of(error: Exception, what: str) -> TesseraError:
    """Returns the error for a model that onnxruntime cannot load or run: Unreadable, or out of memory."""
    text = f"{what}: {reason_of(error)}"
    return memory.error(what=text) if memory.lacks(error) or memory.mentions_lack(str(error)) else Unreadable(text)


_NOISE = (
    r"\[ONNXRuntimeError\] : \d+ : \w+ : ",
    r"Exception during initialization: ",
    r"Non-zero status code returned while running ",
    r"/onnxruntime_src/\S+:\d+ .*?\) (?=\S)",  # file, line and signature of a function
)
_LONGEST = 400


def reason_of(error: Exception) -> str:
    """Returns the first line of an error of onnxruntime or onnx, without codes and source positions."""
    line = (str(error).strip().splitlines() or [type(error).__name__])[0]
    for noise in _NOISE:
        line = re.sub(noise, "", line)
    return line if len(line) <= _LONGEST else line[:_LONGEST].rpartition(" ")[0] + " ..."
