# SPDX-License-Identifier: Apache-2.0
"""Tests inputs and outputs in a GPU's memory, in the caller's stream, as torch.cuda would pass them.
The PTX machine (bmruntime/ptx_machine) is the driver. It reports CUDA's device type for its memory, so libraries
cannot read this memory here; the driver's own copies can.
"""
from __future__ import annotations

import ctypes
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from test_cuda_faults import SHAPE, Machine, close, driver, machine, model, want, x  # noqa: F401  # fixtures

import tessera.runtime as runtime

# pylint: disable=redefined-outer-name


class DlTensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("rank", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("offset", ctypes.c_uint64),
    ]


Deleter = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class DlManaged(ctypes.Structure):
    _fields_ = [("tensor", DlTensor), ("owner", ctypes.c_void_p), ("deleter", Deleter)]


class Current:
    """The primary context of GPU 0, made current."""

    def __init__(self, machine: Machine) -> None:
        self.machine, self.context = machine, ctypes.c_void_p()

    def __enter__(self) -> Any:
        library = self.machine.library
        self.machine.check(library.cuDevicePrimaryCtxRetain(ctypes.byref(self.context), 0))
        self.machine.check(library.cuCtxPushCurrent_v2(self.context))
        return library

    def __exit__(self, *_: Any) -> None:
        popped = ctypes.c_void_p()
        self.machine.check(self.machine.library.cuCtxPopCurrent_v2(ctypes.byref(popped)))
        self.machine.check(self.machine.library.cuDevicePrimaryCtxRelease_v2(0))


class GpuArray:
    """An array in its own GPU memory, shared through __dlpack__ like a torch tensor."""

    def __init__(self, machine: Machine, values: np.ndarray, offset: int = 0, device: int = 0) -> None:
        self.machine, self.shape, self.offset, self.device = machine, values.shape, offset, device
        self.kept = Current(machine)
        self.kept.__enter__()
        self.address, self.streams, self.deleted = ctypes.c_uint64(), [], 0
        library = machine.library
        machine.check(library.cuMemAlloc_v2(ctypes.byref(self.address), ctypes.c_size_t(values.nbytes + offset)))
        self.data = ctypes.c_uint64(self.address.value + offset)
        machine.check(library.cuMemcpyHtoD_v2(self.data, values.ctypes.data_as(ctypes.c_void_p), values.nbytes))
        self.dtype = values.dtype
        self.strides: list[int] | None = None

    def close(self) -> None:
        self.machine.check(self.machine.library.cuMemFree_v2(self.address))
        self.kept.__exit__()

    def __dlpack_device__(self) -> tuple[int, int]:
        return 2, self.device

    def __dlpack__(self, stream: int | None = None) -> object:
        self.streams.append(stream)
        rank = len(self.shape)
        shape = (ctypes.c_int64 * rank)(*self.shape)
        strides = (ctypes.c_int64 * rank)(*self.strides) if self.strides else None
        code = {"f": 2, "i": 0, "u": 1}[self.dtype.kind]
        bits = 8 * self.dtype.itemsize
        tensor = DlTensor(self.address.value, 2, self.device, rank, code, bits, 1, shape, strides, self.offset)
        self.managed = DlManaged(tensor, None, Deleter(self._delete))
        self.shapes = shape, strides
        make = ctypes.pythonapi.PyCapsule_New
        make.restype, make.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
        return make(ctypes.addressof(self.managed), b"dltensor", None)

    def _delete(self, _: int) -> None:
        self.deleted += 1


def fetched(machine: Machine, address: int, shape: tuple[int, ...]) -> np.ndarray:
    values = np.empty(shape, np.float32)
    with Current(machine) as library:
        target = values.ctypes.data_as(ctypes.c_void_p)
        machine.check(library.cuMemcpyDtoH_v2(target, ctypes.c_uint64(address), ctypes.c_size_t(values.nbytes)))
    return values


@pytest.fixture
def net(machine: Machine, model: Path) -> runtime.Net:
    return runtime.load(str(model / "cuda.bmodel")).net()


@pytest.mark.parametrize("offset", [0, 4])
def test_an_input_on_the_gpu(machine: Machine, net: runtime.Net, x: np.ndarray, want: np.ndarray, offset: int) -> None:
    """Addresses that are not aligned for kernels are included."""
    lent = GpuArray(machine, x, offset)
    for _ in range(3):
        close(net({"x": lent})["y"], want)
    assert lent.streams == [1, 1, 1] and lent.deleted == 3
    close(net({"x": x})["y"], want)  # the same input from the host's memory
    np.testing.assert_array_equal(fetched(machine, lent.data.value, SHAPE), x)
    lent.close()


def test_an_input_is_read_in_place(machine: Machine, net: runtime.Net, x: np.ndarray) -> None:
    """The kernel reads the caller's allocation in place, so the machine reports that this memory was never written."""
    lent = GpuArray(machine, x)
    with Current(machine) as library:
        machine.check(library.cuMemFree_v2(lent.address))
        machine.check(library.cuMemAlloc_v2(ctypes.byref(lent.address), ctypes.c_size_t(x.nbytes)))
    with pytest.raises(runtime.Error, match="context is lost"):
        net({"x": lent})
    finding = machine.library.ptxMachineLastFinding
    finding.restype = ctypes.c_char_p
    text = finding().decode()
    assert "kernel" in text and hex(lent.address.value) in text, text
    lent.kept.__exit__()  # the failed context is destroyed when its last user is gone


def test_outputs_on_the_gpu(machine: Machine, net: runtime.Net, x: np.ndarray, want: np.ndarray) -> None:
    lent = GpuArray(machine, x)
    before = machine.free_bytes()
    for given in (x, lent):
        y = net.run_on_gpu({"x": given})["y"]
        assert y.shape == SHAPE and y.__dlpack_device__() == (2, 0)
        close(fetched(machine, y.data_ptr, SHAPE), want)
        close(net({"x": y})["y"], net({"x": fetched(machine, y.data_ptr, SHAPE)})["y"])  # the output as an input
        capsule = y.__dlpack__(stream=None)
        del y
        assert machine.free_bytes() < before, "the capsule keeps it"
        del capsule
        assert machine.free_bytes() == before
    lent.close()


def test_the_callers_stream(machine: Machine, net: runtime.Net, x: np.ndarray, want: np.ndarray) -> None:
    """Runs wait for earlier work of the stream: here, for the copy that writes the input's values."""
    lent = GpuArray(machine, np.zeros_like(x))
    stream = ctypes.c_void_p()
    with Current(machine) as library:
        machine.check(library.cuStreamCreate(ctypes.byref(stream), 1))
        assert stream.value
        net.use_stream(stream.value)
        for values in (x, np.zeros_like(x), x):
            source = values.ctypes.data_as(ctypes.c_void_p)
            machine.check(library.cuMemcpyHtoDAsync_v2(lent.data, source, ctypes.c_size_t(values.nbytes), stream))
            got = net({"x": lent})["y"]
            if values is x:
                close(got, want)
        assert set(lent.streams) == {stream.value}
        net.use_stream(None)
        close(net({"x": lent})["y"], want)
        machine.check(library.cuStreamDestroy_v2(stream))
    lent.close()


def test_what_does_not_fit_is_told(machine: Machine, model: Path, net: runtime.Net, x: np.ndarray) -> None:
    lent = GpuArray(machine, x)
    lent.device = 1
    with pytest.raises(ValueError, match="'x' is on device 1, the model runs on GPU 0"):
        net({"x": lent})
    lent.device, lent.strides = 0, [1, 1, 1, 1]
    with pytest.raises(ValueError, match="not contiguous"):
        net({"x": lent})
    lent.strides, lent.dtype = None, np.dtype(np.int32)
    with pytest.raises(ValueError, match="another type than the model expects, f32"):
        net({"x": lent})
    lent.dtype = x.dtype
    host = runtime.load(str(model / "x86.bmodel")).net()
    with pytest.raises(runtime.Error, match="runs on x86.*'x' must be on the CPU"):
        host({"x": lent})
    with pytest.raises(runtime.Error, match="no GPU"):
        host.run_on_gpu({"x": x})
    lent.close()


def thread_count() -> int:
    return len(list(Path("/proc/self/task").iterdir()))


def test_a_run_is_launched(machine: Machine, model: Path, net: runtime.Net, x: np.ndarray, want: np.ndarray) -> None:
    """The caller's thread only launches a run: the machine executes it when a caller queries or waits."""
    close(net({"x": x})["y"], want)  # the first run starts all threads
    threads = thread_count()
    lent = GpuArray(machine, x)
    for given in (x, lent):
        run = net.launch({"x": given})
        assert not run.done and thread_count() == threads
        with pytest.raises(runtime.Error, match="has not been waited for"):
            net({"x": x})
        while not run.done:
            pass
        close(run.wait()["y"], want)
        assert run.done and run.wait() is run.wait()
    there = net.launch({"x": lent}, on_gpu=True).wait()["y"]
    close(fetched(machine, there.data_ptr, SHAPE), want)
    del there
    lent.close()
    host = runtime.load(str(model / "x86.bmodel")).net()
    np.testing.assert_array_equal(host.launch({"x": x}).wait()["y"], want)


def test_launched_runs_of_two_nets(machine: Machine, model: Path, x: np.ndarray, want: np.ndarray) -> None:
    """Runs of two nets of one model are in flight at the same time. Nobody waits for one of them."""
    loaded = runtime.load(str(model / "cuda.bmodel"))
    first, second, third = (loaded.net() for _ in range(3))
    runs = [net.launch({"x": x}) for net in (first, second, third)]
    close(runs[1].wait()["y"], want)
    close(runs[0].wait()["y"], want)
    del runs, third, loaded


def test_a_launched_run_fails_when_it_is_waited_for(machine: Machine, net: runtime.Net, x: np.ndarray) -> None:
    machine.set(FAULT_LAUNCH=1)
    run = net.launch({"x": x})
    with pytest.raises(runtime.Error, match="conv.*ILLEGAL_ADDRESS.*context is lost"):
        run.wait()


def test_launches_have_times_of_their_own(net: runtime.Net, x: np.ndarray, want: np.ndarray, tmp_path: Path) -> None:
    (stream,) = (step for step in net.profile({"x": x}, runs=3) if step.kind == "stream")
    assert {"conv relu", "softmax", "add"} == {part.onnx_nodes for part in stream.parts}
    assert all(part.runs == 3 and 0 < part.min_ns <= part.total_ns for part in stream.parts)
    assert sum(part.min_ns for part in stream.parts) <= stream.min_ns
    close(net({"x": x})["y"], want)
    net.write_trace(tmp_path / "trace.json")
    assert (tmp_path / "trace.json").stat().st_size
