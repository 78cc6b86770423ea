# SPDX-License-Identifier: Apache-2.0
"""Tests models on a GPU whose driver fails, that runs out of memory, or that is shared with threads, hosts and other
GPUs.
The PTX machine (bmruntime/ptx_machine) is the driver; its variables select what fails. Tests without a model are in
bmruntime/src/cuda/CudaBackend_test.cpp.
"""
from __future__ import annotations

import ctypes
import os
import threading
from pathlib import Path
from typing import Any, Iterator

import numpy as np
import pytest
from conftest import check, run_tool
from onnx import TensorProto, helper, numpy_helper
from small_models import save, tensor
from test_cuda import MACHINE, has_machine

import tessera.runtime as runtime

SHAPE = (1, 8, 6, 6)


@pytest.fixture(autouse=True, scope="module")
def driver() -> Iterator[None]:
    if os.environ.get("BMRT_LIBCUDA", str(MACHINE)) != str(MACHINE):
        pytest.skip("a real driver does not fail on demand")
    if not has_machine():
        pytest.skip("the PTX machine is not built, or this processor lacks AVX2, FMA or F16C")
    os.environ["BMRT_LIBCUDA"] = str(MACHINE)
    yield
    del os.environ["BMRT_LIBCUDA"]


class Machine:
    """Sets the driver's variables and reads its device's free memory."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._patch = monkeypatch
        self.library = ctypes.CDLL(str(MACHINE))
        assert self.library.cuInit(0) == 0

    def set(self, **variables: int) -> None:
        """Sets variables; the calls that they count are counted from now on."""
        for name, value in variables.items():
            self._patch.setenv(f"PTX_MACHINE_{name}", str(value))
        self.library.ptxMachineReadOptions()

    def free_bytes(self) -> int:
        context, free, total = ctypes.c_void_p(), ctypes.c_size_t(), ctypes.c_size_t()
        self.check(self.library.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0))
        self.check(self.library.cuCtxPushCurrent_v2(context))
        self.check(self.library.cuMemGetInfo_v2(ctypes.byref(free), ctypes.byref(total)))
        self.check(self.library.cuCtxPopCurrent_v2(ctypes.byref(context)))
        self.check(self.library.cuDevicePrimaryCtxRelease_v2(0))
        return free.value

    @staticmethod
    def check(result: int) -> None:
        assert result == 0, f"the driver's error {result}"


@pytest.fixture
def machine(driver: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[Machine]:
    result = Machine(monkeypatch)
    result.set()
    yield result
    result.set(FAIL_ALLOC=0, FAIL_LAUNCH=0, FAULT_LAUNCH=0, DEVICES=1)


@pytest.fixture(scope="module")
def model(driver: None, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Compiles y = softmax(relu(conv(x))) + x for x86 and for a GPU."""
    folder = tmp_path_factory.mktemp("model")
    rng = np.random.default_rng(3)
    weights = numpy_helper.from_array(rng.standard_normal((8, 8, 3, 3)).astype(np.float32), "w")
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["c"], pads=[1, 1, 1, 1], name="conv"),
        helper.make_node("Relu", ["c"], ["r"], name="relu"),
        helper.make_node("Softmax", ["r"], ["s"], axis=3, name="softmax"),
        helper.make_node("Add", ["s", "x"], ["y"], name="add"),
    ]
    save(
        folder / "m.onnx",
        nodes,
        [tensor("x", SHAPE, TensorProto.FLOAT)],
        [tensor("y", SHAPE, TensorProto.FLOAT)],
        [weights],
    )
    flags = ("--model_name", "m", "--model_def", "m.onnx", "--mlir", "m_top.mlir", "--not_inference")
    check(run_tool("model_transform", *flags, cwd=folder))
    for chip in ("x86", "cuda"):
        top, output = folder / "m_top.mlir", folder / f"{chip}.bmodel"
        check(run_tool("tessera-compile", "deploy", "--mlir", top, "--chip", chip, "--output", output))
    return folder


@pytest.fixture
def x() -> np.ndarray:
    return np.random.default_rng(4).standard_normal(SHAPE).astype(np.float32)


@pytest.fixture(scope="module")
def want(model: Path) -> np.ndarray:
    rng = np.random.default_rng(4)
    inputs = {"x": rng.standard_normal(SHAPE).astype(np.float32)}
    return runtime.load(str(model / "x86.bmodel")).net()(inputs)["y"]


def close(got: np.ndarray, want: np.ndarray) -> None:
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)


def test_every_allocation_may_fail(machine: Machine, model: Path, x: np.ndarray, want: np.ndarray) -> None:
    before = machine.free_bytes()
    info = 0
    for number in range(1, 50):
        machine.set(FAIL_ALLOC=number)
        try:
            close(runtime.load(str(model / "cuda.bmodel")).net()({"x": x})["y"], want)
            break
        except runtime.Error as error:
            assert "has no memory for" in str(error) and "bytes" in str(error), error
            info += 1
        assert machine.free_bytes() == before
    assert info >= 2, "constants and the workspace are allocated"


def test_a_context_runs_after_each_launch_that_failed(
    machine: Machine, model: Path, x: np.ndarray, want: np.ndarray
) -> None:
    net = runtime.load(str(model / "cuda.bmodel")).net()
    for number in range(1, 20):
        machine.set(FAIL_LAUNCH=number)
        try:
            close(net({"x": x})["y"], want)
            break
        except runtime.Error as error:
            assert "lost" not in str(error), error
            machine.set(FAIL_LAUNCH=0)
            close(net({"x": x})["y"], want)
            net = runtime.load(str(model / "cuda.bmodel")).net()  # has no graph yet, so it launches kernels
    assert number > 1


def test_a_fault_names_its_nodes(machine: Machine, model: Path, x: np.ndarray, want: np.ndarray) -> None:
    """The context is unusable until all of its users are gone. x86 still works."""
    loaded = runtime.load(str(model / "cuda.bmodel"))
    net = loaded.net()
    machine.set(FAULT_LAUNCH=1)
    with pytest.raises(runtime.Error, match="conv.*ILLEGAL_ADDRESS.*context is lost"):
        net({"x": x})
    with pytest.raises(runtime.Error, match="context is lost"):
        net({"x": x})
    close(runtime.load(str(model / "x86.bmodel")).net()({"x": x})["y"], want)
    del net, loaded


def test_a_thousand_contexts_leave_nothing(machine: Machine, model: Path, x: np.ndarray, want: np.ndarray) -> None:
    loaded = runtime.load(str(model / "cuda.bmodel"))
    close(loaded.net()({"x": x})["y"], want)  # the constants are on the GPU now
    before = machine.free_bytes()
    for _ in range(1000):
        close(loaded.net()({"x": x})["y"], want)
    assert machine.free_bytes() == before
    del loaded
    assert machine.free_bytes() > before


def in_threads(*bodies: Any) -> None:
    faults: list[BaseException] = []

    def guarded(body: Any) -> None:
        try:
            body()
        except BaseException as fault:  # pylint: disable=broad-exception-caught
            faults.append(fault)

    threads = [threading.Thread(target=guarded, args=(body,)) for body in bodies]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not faults, faults


def test_contexts_of_two_threads_and_x86_beside_them(
    machine: Machine, model: Path, x: np.ndarray, want: np.ndarray
) -> None:
    loaded, host = runtime.load(str(model / "cuda.bmodel")), runtime.load(str(model / "x86.bmodel"))

    def repeat(file: runtime.Model) -> None:
        for _ in range(50):
            close(file.net()({"x": x})["y"], want)

    in_threads(lambda: repeat(loaded), lambda: repeat(loaded), lambda: repeat(host))


def test_a_device_is_named(machine: Machine, model: Path, x: np.ndarray, want: np.ndarray) -> None:
    machine.set(DEVICES=2)
    free = machine.free_bytes()
    second = runtime.load(str(model / "cuda.bmodel"), device="cuda:1")
    net = second.net()
    close(net({"x": x})["y"], want)
    assert machine.free_bytes() == free, "nothing is allocated on the first device"
    first = runtime.load(str(model / "cuda.bmodel"), device="cuda:0").net()
    assert machine.free_bytes() < free
    in_threads(*[lambda n=n: [close(n({"x": x})["y"], want) for _ in range(20)] for n in (net, first)])
    for device, message in {
        "cuda:2": "needs GPU 2, counted from 0; this machine has 2",
        "npu:0": "the model has no chip for the device 'npu:0'",
        "cuda:x": "must be a family, a colon and a number",
    }.items():
        with pytest.raises(runtime.Error, match=message):
            runtime.load(str(model / "cuda.bmodel"), device=device)
