# SPDX-License-Identifier: Apache-2.0
"""Engines that run an imported ONNX model: the Top reference evaluator, and x86 code in a .bmodel."""
from __future__ import annotations

import json
import os
import pickle
import select
import signal
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Callable, Mapping, Sequence

import numpy as np
from guarded import guarded

from tessera import safetensors_io

BUILD = Path(os.environ.get("TESSERA_BUILD_DIR", Path(__file__).resolve().parents[2] / "build"))
TIMEOUT = 600  # seconds after which a step of one model counts as hanging, also on a busy machine
ISAS = ("x86-v2", "x86-avx2", "x86-avx512")
UNSUPPORTED = 4  # the exit code of docs/exit-codes.md


class StageError(Exception):
    """A test that did not pass a stage: import, data, reference, deploy, run, threads or compare."""

    def __init__(self, stage: str, message: str, rejected: bool = False) -> None:
        super().__init__(message)
        self.stage = stage
        self.rejected = rejected  # Tessera reported that it does not support this


class Compiler:
    """A `tessera-compile batch` process that runs command lines one by one."""

    def __init__(self) -> None:
        self._child: subprocess.Popen[bytes] | None = None
        self._pending = b""
        self.info: dict = {}  # of the last successful command

    def _start(self) -> subprocess.Popen[bytes]:
        if self._child is None:
            self._stderr = tempfile.TemporaryFile()
            self._child = subprocess.Popen(
                [str(BUILD / "bin" / "tessera-compile"), "batch"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._stderr,
                start_new_session=True,
            )
        return self._child

    def close(self) -> None:
        if self._child is not None:
            os.killpg(self._child.pid, signal.SIGKILL)  # the running command is in the child's session
            self._child.wait()
            self._child, self._pending = None, b""

    def _events(self, child: subprocess.Popen[bytes], stage: str) -> list[dict]:
        """Yields the events of the running command up to its exit."""
        events: list[dict] = []
        deadline = time.monotonic() + TIMEOUT
        while not events or events[-1]["event"] != "exit":
            line, separator, rest = self._pending.partition(b"\n")
            if separator:
                self._pending = rest
                events.append(json.loads(line))
                continue
            if not select.select([child.stdout], [], [], max(0.0, deadline - time.monotonic()))[0]:
                self.close()
                raise StageError(stage, f"ran for more than {TIMEOUT} s")
            chunk = os.read(child.stdout.fileno(), 1 << 16)  # type: ignore[union-attr]
            if not chunk:
                self.close()
                raise StageError(stage, "tessera-compile batch ended")
            self._pending += chunk
        return events

    def __call__(self, stage: str, *arguments: object) -> dict:
        """Runs one command; returns its result event. Raises StageError with its message."""
        child = self._start()
        child.stdin.write(json.dumps([str(argument) for argument in arguments]).encode() + b"\n")  # type: ignore
        child.stdin.flush()  # type: ignore[union-attr]
        events = self._events(child, stage)
        code = events[-1]["code"]
        if code == 0:
            self.info = next((event for event in events if event["event"] == "result"), {})
            return self.info
        message = next((event["message"] for event in events if event["event"] == "error"), "")
        if code == UNSUPPORTED and message:
            raise StageError(stage, message, rejected=True)
        raise StageError(stage, f"exit code {code}: {message or self._last_words()}")

    def _last_words(self) -> str:
        self._stderr.seek(0)
        return self._stderr.read()[-800:].decode(errors="replace")


def in_child(stage: str, work: Callable[[], object]) -> object:
    """Returns the result of `work`, which runs in a forked child so that a crash there becomes an error here. The
    caller must not have threads."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            with os.fdopen(writer, "wb") as pipe:
                try:
                    pickle.dump((work(), None), pipe)
                except Exception as error:  # the child can only report to its parent this way
                    pickle.dump((None, f"{type(error).__name__}: {error}"), pipe)
            code = 0
        finally:
            os._exit(code)
    os.close(writer)
    received, deadline = bytearray(), time.monotonic() + TIMEOUT
    with os.fdopen(reader, "rb", buffering=0) as pipe:
        while select.select([pipe], [], [], max(0.0, deadline - time.monotonic()))[0]:
            chunk = pipe.read(1 << 20)
            if not chunk:
                break
            received += chunk
        else:
            os.kill(child, signal.SIGKILL)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if status != 0:
        raise StageError(
            stage, f"ran for more than {TIMEOUT} s" if status == -signal.SIGKILL else f"crashed, status {status}"
        )
    result, error = pickle.loads(received)
    if error is not None:
        raise StageError(stage, error)
    return result


def run_reference(
    compiler: Compiler, mlir: Path, inputs: Mapping[str, np.ndarray], bfloat16: Sequence[str] = ()
) -> dict[str, np.ndarray]:
    """Returns the outputs of the Top module by name; bfloat16 values are float32."""
    given, results = mlir.with_name("in.safetensors"), mlir.with_name("out.safetensors")
    safetensors_io.save(given, inputs, bfloat16=bfloat16)
    compiler("reference", "reference", "--mlir", mlir, "--input", given, "--output", results)
    return safetensors_io.load(results)


def deploy(compiler: Compiler, mlir: Path, chip: str, *options: str) -> Path:
    bmodel = mlir.with_name(f"{chip}.bmodel")
    compiler(
        "deploy",
        "deploy",
        "--mlir",
        mlir,
        "--chip",
        chip,
        "--cache-dir",
        "none",
        "--jobs",
        "1",
        "--output",
        bmodel,
        *options,
    )
    return bmodel


def run_bmodel(
    bmodel: Path, inputs: Mapping[str, np.ndarray], bfloat16: Sequence[str] = (), threads: Sequence[int] = (1, 2)
) -> dict[str, np.ndarray]:
    """Returns outputs by name, which must be bit-equal for every number of threads. Inputs are placed directly after or
    before inaccessible pages, in turns, because nothing around an input may be read."""
    given = {
        name: safetensors_io.to_bfloat16(array)
        if name in bfloat16
        else np.ascontiguousarray(array).reshape(array.shape)
        for name, array in inputs.items()
    }

    def work() -> list[dict[str, np.ndarray]]:
        import tessera.runtime as rt

        runs = []
        for number, count in enumerate(threads):
            net = rt.load(str(bmodel), threads=count).net()
            placed = {name: guarded(array, at_end=number % 2 == 0) for name, array in given.items()}
            narrow = {info.name for info in net.outputs if info.type == "bf16"}
            outputs = {name: np.array(array) for name, array in net(placed).items()}
            runs.append(
                {
                    name: safetensors_io.from_bfloat16(array) if name in narrow else array
                    for name, array in outputs.items()
                }
            )
        return runs

    first, *others = in_child("run", work)  # type: ignore[misc]
    for other, count in zip(others, threads[1:]):
        for name, array in first.items():
            if array.tobytes() != other[name].tobytes():
                raise StageError(
                    "threads", f"output '{name}' of {count} threads is not that of {threads[0]} to the bit"
                )
    return first


GPUS = ("cuda",)  # run on NVIDIA's driver, or on the PTX machine where BMRT_LIBCUDA names it


def supported_isas(*more: str) -> list[str]:
    """Returns the instruction sets of ISAS, and of `more`, that this machine has, the widest last."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    flags = set(next((line for line in lines if line.startswith("flags")), "").split())
    needs = {
        "x86-v2": set(),
        "x86-avx2": {"avx2", "fma"},
        "x86-avx512": {"avx512f", "avx512bw", "avx512dq", "avx512vl"},
    }
    needs["x86-avx512vnni"] = needs["x86-avx512"] | {"avx512_vnni"}
    needs["x86-avx512bf16"] = needs["x86-avx512vnni"] | {"avx512_bf16"}
    needs["x86-amx"] = needs["x86-avx512bf16"] | {"amx_tile", "amx_int8", "amx_bf16"}
    return [isa for isa in (*ISAS, *more) if needs[isa] <= flags]
