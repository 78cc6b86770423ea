#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs models on a real GPU and reports whether outputs are right, how long a run takes, and how it compares with the
estimate.

Needs Python, numpy, libbmrt.so with libbmrt_cuda.so next to it, and NVIDIA's driver, but nothing else of Tessera. A
case is a folder (created by make_cases.py):

    *.bmodel        the models to run; each is a row of the result
    inputs.npz      the inputs by name
    expected.npz    the expected outputs; outputs must be equal to the bit (except NaN's), unless
    case.json       {"tolerance": 1e-3} allows this share of an output's largest value as an error; {"gemm": {"sizes":
                    [m, n, k], "type": "f16"}}: the case is a single matmul, and cuBLAS is timed as well
    model.pt2       a file of torch.export, or
    model.pt        TorchScript; optional: if torch with CUDA is installed, PyTorch is timed as well, eagerly, as a CUDA
                    graph, and for a .pt2 also with torch.compile

The result also lists the launches of each model, with the time between events around each and the compiler's estimate.

    on_device.py --library build/lib/libbmrt.so --json result.json cases/*

With --jobs, several processes run cases at the same time, which is only useful to check outputs: `--jobs 12 --runs 1`.
A process whose kernel faults loses the GPU, so its failed cases are run again, each in a process of its own.

BMRT_LIBCUDA names another driver, as for the runtime. Exit code 1 if a case failed, 2 if there is no GPU or library.
"""
from __future__ import annotations

import argparse
import ctypes
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Callable, Iterator, Mapping, Sequence

import numpy as np

RANK = 16
ALIGNMENT = 64
LEGACY_STREAM = 1  # the null stream, by a handle
FIRST_RUNNABLE_STAGE = 0xFFFFFFFF
DTYPES = ("f4", "f2", "u2", "f8", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "?")  # bmrt_dtype_t; bf16 as its bits
BF16 = 2
WARM_UP_SECONDS = 0.5
TORCH_FILES = ("model.pt2", "model.pt")
PRODUCTS = 10  # matmuls of cuBLAS in one measurement
BATCH = 8  # cases of a process with --jobs


class Status(ctypes.Structure):
    _fields_ = [
        ("code", ctypes.c_int),
        ("line", ctypes.c_int32),
        ("file", ctypes.c_char_p),
        ("message", ctypes.c_char * 496),
    ]


class TensorInfo(ctypes.Structure):
    _fields_ = [
        ("name", ctypes.c_char_p),
        ("dtype", ctypes.c_int),
        ("layout", ctypes.c_int),
        ("block", ctypes.c_uint32),
        ("block_axis", ctypes.c_uint32),
        ("rank", ctypes.c_uint32),
        ("shape", ctypes.c_int64 * RANK),
        ("max_shape", ctypes.c_int64 * RANK),
        ("bytes", ctypes.c_uint64),
        ("onnx_name_count", ctypes.c_uint32),
        ("scale_count", ctypes.c_uint32),
        ("quant_axis", ctypes.c_int32),
        ("scales", ctypes.c_void_p),
        ("zero_points", ctypes.c_void_p),
        ("preprocess", ctypes.c_char_p),
        ("definition", ctypes.c_void_p),
    ]


class ContextOptions(ctypes.Structure):
    _fields_ = [
        ("struct_size", ctypes.c_size_t),
        ("net", ctypes.c_char_p),
        ("stage", ctypes.c_uint32),
        ("threads", ctypes.c_uint32),
        ("workspace", ctypes.c_void_p),
        ("workspace_bytes", ctypes.c_uint64),
        ("chip", ctypes.c_char_p),
    ]


class StepTime(ctypes.Structure):
    _fields_ = [(name, ctypes.c_uint64) for name in ("runs", "last_ns", "min_ns", "total_ns")]


class CaseError(Exception):
    """Raised if a case cannot be run; the message says why."""


class Library:
    """libbmrt.so; calls raise CaseError with the runtime's message."""

    def __init__(self, path: str) -> None:
        self._library = ctypes.CDLL(path)
        self._library.bmrt_version.restype = ctypes.c_char_p
        self._library.bmrt_context_input_count.restype = ctypes.c_uint32
        self._library.bmrt_context_output_count.restype = ctypes.c_uint32
        self.version = self._library.bmrt_version().decode()

    def call(self, name: str, *arguments: Any) -> None:
        status = Status()
        if getattr(self._library, name)(*arguments, ctypes.byref(status)) != 0:
            raise CaseError(status.message.decode(errors="replace"))

    def plain(self, name: str, *arguments: Any) -> int:
        """Calls a function that cannot fail."""
        return int(getattr(self._library, name)(*arguments) or 0)


def aligned(shape: Sequence[int], dtype: np.dtype) -> np.ndarray:
    """Returns an uninitialised array that is aligned so that the runtime uses it in place."""
    count = int(np.prod(shape, dtype=np.int64))
    raw = np.empty(count * dtype.itemsize + ALIGNMENT, np.uint8)
    begin = -raw.ctypes.data % ALIGNMENT
    return raw[begin : begin + count * dtype.itemsize].view(dtype).reshape(shape)


class Net:
    """A .bmodel on the GPU, with its inputs and outputs bound to arrays."""

    def __init__(self, library: Library, path: Path, inputs: Mapping[str, np.ndarray]) -> None:
        self._library = library
        self._model, self._context = ctypes.c_void_p(), ctypes.c_void_p()
        self.inputs: dict[str, np.ndarray] = {}
        self.outputs: dict[str, np.ndarray] = {}
        self.types: dict[str, int] = {}
        library.call("bmrt_model_open", os.fsencode(path), None, ctypes.byref(self._model))
        options = ContextOptions(ctypes.sizeof(ContextOptions), None, FIRST_RUNNABLE_STAGE, 1, None, 0, b"cuda")
        library.call("bmrt_context_create", self._model, ctypes.byref(options), ctypes.byref(self._context))
        for index in range(library.plain("bmrt_context_input_count", self._context)):
            self._bind("input", index, self.inputs)
        for name, array in self.inputs.items():
            if name not in inputs:
                raise CaseError(f"inputs.npz lacks '{name}'; it has {', '.join(inputs)}")
            if inputs[name].shape != array.shape:
                raise CaseError(f"input '{name}' is of shape {inputs[name].shape}, the model's of {array.shape}")
            array[...] = inputs[name]
        for index in range(library.plain("bmrt_context_output_count", self._context)):
            self._bind("output", index, self.outputs)

    def _bind(self, what: str, index: int, arrays: dict[str, np.ndarray]) -> None:
        info = TensorInfo()
        self._library.call(f"bmrt_context_{what}_info", self._context, index, ctypes.byref(info))
        shape = list(info.max_shape[: info.rank])
        if any(size < 0 for size in shape):
            raise CaseError(f"{what} '{info.name.decode()}' has a shape that is not fixed")
        array = aligned(shape, np.dtype(DTYPES[info.dtype]))
        address = ctypes.c_void_p(array.ctypes.data)
        self._library.call(f"bmrt_context_bind_{what}", self._context, index, address, ctypes.c_uint64(info.bytes))
        arrays[info.name.decode()] = array
        self.types[info.name.decode()] = info.dtype

    def run(self) -> None:
        self._library.call("bmrt_context_run", self._context)

    def launches(self, runs: int = 20) -> list[dict[str, Any]]:
        """Runs launches one by one; returns for each its ONNX nodes and its shortest time in microseconds, in order."""
        library, found = self._library, []
        library.call("bmrt_context_set_profiling", self._context, ctypes.c_bool(True))
        for _ in range(runs):
            self.run()
        for step in range(library.plain("bmrt_context_step_count", self._context)):
            for part in range(library.plain("bmrt_context_step_part_count", self._context, step)):
                node, info = ctypes.c_char_p(), StepTime()
                which = (self._context, step, part, ctypes.byref(node), ctypes.byref(info))
                library.call("bmrt_context_step_part_time", *which)
                found.append({"node": (node.value or b"").decode(), "us": info.min_ns / 1e3})
        library.call("bmrt_context_set_profiling", self._context, ctypes.c_bool(False))
        return found

    def place_on_gpu(self, driver: Driver) -> None:
        """Binds inputs and outputs to memory of the GPU, and makes runs use the null stream. The driver's context must
        be current. Raises CaseError if the host processes one of them."""
        for kind, arrays in (("input", self.inputs), ("output", self.outputs)):
            for index, array in enumerate(arrays.values()):
                memory = driver.copy_of(array)
                size = ctypes.c_uint64(array.nbytes)
                self._library.call(f"bmrt_context_bind_chip_{kind}", self._context, index, memory, size)
        self._library.call("bmrt_context_set_stream", self._context, ctypes.c_void_p(LEGACY_STREAM))

    def launch(self) -> None:
        self._library.call("bmrt_context_launch", self._context)

    def wait(self) -> None:
        self._library.call("bmrt_context_wait", self._context)

    def close(self) -> None:
        self._library.plain("bmrt_context_destroy", self._context)
        self._library.plain("bmrt_model_release", self._model)


class Driver:
    """NVIDIA's driver, for functions that the runtime does not offer: device properties and events."""

    def __init__(self) -> None:
        self._library = ctypes.CDLL(os.environ.get("BMRT_LIBCUDA") or "libcuda.so.1")
        self.call("cuInit", 0)
        self._device = ctypes.c_int()
        self.call("cuDeviceGet", ctypes.byref(self._device), int(os.environ.get("BMRT_CUDA_DEVICE") or 0))

    def call(self, name: str, *arguments: Any) -> None:
        code = getattr(self._library, name)(*arguments)
        if code != 0:
            raise CaseError(f"{name} returns {code}")

    def describe(self) -> dict[str, Any]:
        name, version, size = ctypes.create_string_buffer(256), ctypes.c_int(), ctypes.c_size_t()
        self.call("cuDeviceGetName", name, 256, self._device)
        self.call("cuDriverGetVersion", ctypes.byref(version))
        self.call("cuDeviceTotalMem_v2", ctypes.byref(size), self._device)
        info: dict[str, Any] = {"name": name.value.decode(), "driver": version.value, "bytes": size.value}
        attributes = {"sms": 16, "clock_khz": 13, "memory_clock_khz": 36, "memory_bus_bits": 37, "l2_bytes": 38}
        for key, attribute in {**attributes, "major": 75, "minor": 76}.items():
            value = ctypes.c_int()
            if self._library.cuDeviceGetAttribute(ctypes.byref(value), attribute, self._device) == 0:
                info[key] = value.value
        return info

    def copy_of(self, array: np.ndarray) -> ctypes.c_void_p:
        """Returns memory of the GPU with the contents of the array. It is freed with the process."""
        memory, size = ctypes.c_void_p(), ctypes.c_size_t(array.nbytes)
        self.call("cuMemAlloc_v2", ctypes.byref(memory), ctypes.c_size_t(max(1, array.nbytes)))
        self.call("cuMemcpyHtoD_v2", memory, ctypes.c_void_p(array.ctypes.data), size)
        return memory

    @contextmanager
    def events(self) -> Iterator[Callable[[Callable[[], None]], float]]:
        """Yields a function that returns the microseconds of a call between two events of the null stream. The
        driver's context is current until the end."""
        context, begin, end = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
        self.call("cuDevicePrimaryCtxRetain", ctypes.byref(context), self._device)
        self.call("cuCtxPushCurrent_v2", context)
        for event in (begin, end):
            self.call("cuEventCreate", ctypes.byref(event), 0)

        def measured(run: Callable[[], None]) -> float:
            elapsed = ctypes.c_float()
            self.call("cuEventRecord", begin, None)
            run()
            self.call("cuEventRecord", end, None)
            self.call("cuEventSynchronize", end)
            self.call("cuEventElapsedTime", ctypes.byref(elapsed), begin, end)
            return elapsed.value * 1e3

        try:
            yield measured
        finally:
            for event in (begin, end):
                self.call("cuEventDestroy_v2", event)
            self.call("cuCtxPopCurrent_v2", ctypes.byref(ctypes.c_void_p()))
            self.call("cuDevicePrimaryCtxRelease_v2", self._device)


def widened(array: np.ndarray, dtype: int) -> np.ndarray:
    """Returns floats as f64 (bf16 from its bits) and integers unchanged."""
    if dtype == BF16:
        return (array.astype(np.uint32) << 16).view(np.float32).astype(np.float64)
    return array.astype(np.float64) if array.dtype.kind == "f" else array


def compared(got: np.ndarray, want: np.ndarray, dtype: int, tolerance: float | None) -> dict[str, Any]:
    """Compares one output: how many elements differ, and the worst difference relative to the largest value."""
    if got.shape != want.shape:
        return {"passed": False, "reason": f"shape {got.shape}, expected {want.shape}"}
    if want.dtype != got.dtype and dtype == BF16 and want.dtype.kind == "f":
        want = (want.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)
    ours, theirs = widened(got, dtype), widened(want.astype(got.dtype), dtype)
    with np.errstate(invalid="ignore"):
        difference = np.abs(ours.astype(np.float64) - theirs.astype(np.float64))
    is_float = ours.dtype.kind == "f"
    both_nan = np.isnan(ours) & np.isnan(theirs) if is_float else np.zeros(ours.shape, bool)
    unequal = (ours != theirs) & ~both_nan
    differs = unequal | (np.signbit(ours) != np.signbit(theirs)) & ~both_nan if is_float else unequal
    differing = int(differs.sum())
    difference = np.where((ours == theirs) | both_nan, 0.0, difference)
    largest = float(np.abs(np.where(both_nan, 0, theirs).astype(np.float64)).max(initial=0)) or 1.0
    worst = float(difference.max(initial=0)) / largest
    passed = (
        got.dtype == want.dtype and not differing if tolerance is None else worst <= tolerance
    )  # NaN on one side only never passes
    return {
        "passed": bool(passed),
        "elements": int(want.size),
        "differing": differing,
        "worst": worst if np.isfinite(worst) else None,
    }


def percentiles(times: Sequence[float]) -> dict[str, float]:
    """Summarises times in microseconds."""
    p50, p90, p99 = np.percentile(times, (50, 90, 99))
    info = {"min": min(times), "p50": p50, "p90": p90, "p99": p99, "mean": float(np.mean(times))}
    return {"runs": len(times), **{key: round(float(value), 3) for key, value in info.items()}}


def timed(run: Callable[[], object], runs: int, seconds: float) -> list[float]:
    """Returns the microseconds of up to `runs` runs, at least one, after warm-up runs."""
    end = time.perf_counter() + min(WARM_UP_SECONDS, seconds)
    for _ in range(runs):
        run()
        if time.perf_counter() > end:
            break
    times: list[float] = []
    end = time.perf_counter() + seconds
    while len(times) < runs and (not times or time.perf_counter() < end):
        begin = time.perf_counter_ns()
        run()
        times.append((time.perf_counter_ns() - begin) / 1e3)
    return times


def estimate_of(path: Path) -> dict[str, Any] | None:
    """Returns the estimate that the compiler wrote into the file (the blob 'cuda estimate'), or None."""
    data = path.read_bytes()
    at = data.find(b'"dram_least_bytes":')
    begin = data.rfind(b'{"chip":', 0, at) if at >= 0 else -1
    if begin < 0:
        return None
    try:
        info, _ = json.JSONDecoder().raw_decode(data[begin : begin + (1 << 26)].decode("utf-8", "replace"))
    except ValueError:
        return None
    return dict(info) if "microseconds" in info else None


def with_estimates(launches: list[dict[str, Any]], estimate: Mapping[str, Any] | None) -> list[dict[str, Any]]:
    """Adds the estimate of its layer to each launch; both lists are in launch order."""
    layers = estimate.get("layers", []) if estimate else []
    if len(layers) == len(launches):
        for launch, layer in zip(launches, layers):
            launch.update({"estimate_us": layer["microseconds"], "bound": layer["bound"], "op": layer["op"]})
    return launches


def torch_of_gpu() -> Any:
    """Returns the torch module if it can use a GPU, else None."""
    try:
        import torch
    except ImportError:
        return None
    return torch if torch.cuda.is_available() else None


def load_torch(torch: Any, folder: Path) -> tuple[Any, bool]:
    """Returns the case's module on the GPU and whether torch.compile supports it."""
    exported, script = (folder / name for name in TORCH_FILES)
    if exported.exists():
        return torch.export.load(str(exported)).module().cuda(), True
    return torch.jit.load(str(script)).cuda().eval(), False


def beside_torch(folder: Path, inputs: Sequence[np.ndarray], runs: int, seconds: float) -> dict[str, Any] | None:
    """Times the case's module with PyTorch on the same GPU: eagerly, compiled, and as a CUDA graph."""
    has_module = any((folder / name).exists() for name in TORCH_FILES)  # without one, torch is not even imported
    torch = torch_of_gpu() if has_module else None
    module, compiles = load_torch(torch, folder) if torch else (None, False)
    if module is None:
        return None
    arrays = [torch.from_numpy(np.ascontiguousarray(array)).cuda() for array in inputs]

    def times_of(call: Callable[[], Any]) -> dict[str, float]:
        def wait() -> None:
            call()
            torch.cuda.synchronize()

        return percentiles(timed(wait, runs, seconds))

    def graph() -> dict[str, float]:
        captured = torch.cuda.CUDAGraph()
        with torch.cuda.graph(captured):
            module(*arrays)
        return times_of(captured.replay)

    def compiled() -> dict[str, float]:
        result = torch.compile(module)
        return times_of(lambda: result(*arrays))

    info: dict[str, Any] = {"version": torch.__version__}
    with torch.no_grad():
        info["eager_us"] = times_of(lambda: module(*arrays))
        for name, measure in {"graph": graph, **({"compile": compiled} if compiles else {})}.items():
            try:
                info[f"{name}_us"] = measure()
            except Exception as error:  # torch raises many types; the case continues without this figure
                info[f"{name}_error"] = (str(error) or type(error).__name__).splitlines()[0]
    return info


def beside_cublas(gemm: Mapping[str, Any], launches: Sequence[Mapping[str, Any]], runs: int) -> dict[str, Any] | None:
    """Times the same matmul by cuBLAS through torch, and relates it to our slowest launch."""
    torch = torch_of_gpu()
    if torch is None or not launches:
        return None
    m, n, k = gemm["sizes"]
    if gemm["type"] == "i8":
        a, b = (torch.randint(-128, 127, size, dtype=torch.int8, device="cuda") for size in ((m, k), (n, k)))

        def product() -> None:
            torch._int_mm(a, b.t())

    else:
        types = {"f16": torch.float16, "bf16": torch.bfloat16, "f32": torch.float32}
        a, b = (torch.randn(size, device="cuda").to(types[gemm["type"]]) for size in ((m, k), (k, n)))

        def product() -> None:
            torch.matmul(a, b)

    for _ in range(3):
        product()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()  # otherwise the time of a small matmul is that of the call in Python
    with torch.cuda.graph(graph):
        for _ in range(PRODUCTS):
            product()
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    times = []
    for _ in range(runs):
        begin.record()
        graph.replay()
        end.record()
        end.synchronize()
        times.append(begin.elapsed_time(end) * 1e3 / PRODUCTS)
    ours = max(launch["us"] for launch in launches)
    return {"us": round(min(times), 3), "of_cublas": round(min(times) / ours, 3) if ours else None}


def run_model(library: Library, driver: Driver, path: Path, case: Mapping[str, Any], args: Any) -> dict[str, Any]:
    """Runs one .bmodel of a case and returns its row of the result."""
    net = Net(library, path, case["inputs"])
    try:
        net.run()
        outputs = {
            name: (
                compared(net.outputs[name], want, net.types[name], case["tolerance"])
                if name in net.outputs
                else {"passed": False, "reason": "the model has no such output"}
            )
            for name, want in case["expected"].items()
        }
        info = {"passed": all(each["passed"] for each in outputs.values()), "outputs": outputs}
        info["wall_us"] = percentiles(timed(net.run, args.runs, args.seconds))
        with driver.events() as measured:
            info["event_us"] = percentiles([measured(net.run) for _ in range(min(args.runs, 100))])
        launches = net.launches(min(args.runs, 20))
        info["gpu_us"] = times_on_gpu(net, driver, args)
    finally:
        net.close()
    estimate = estimate_of(path)
    info["launches"] = with_estimates(launches, estimate)
    if estimate and estimate["microseconds"]:
        info["estimate_us"] = estimate["microseconds"]
        ours = info["gpu_us"] or info["event_us"]
        info["measured_over_estimate"] = round(ours["p50"] / info["estimate_us"], 3)
    if case["gemm"]:
        info["cublas"] = beside_cublas(case["gemm"], launches, min(args.runs, 50))
    return info


def times_on_gpu(net: Net, driver: Driver, args: Any) -> dict[str, float] | None:
    """Times runs whose inputs and outputs stay on the GPU, between events; None if the host processes one of them."""
    with driver.events() as measured:
        try:
            net.place_on_gpu(driver)
        except CaseError:
            return None

        def once() -> float:
            elapsed = measured(net.launch)
            net.wait()
            return elapsed

        timed(once, min(args.runs, 20), args.seconds)  # the graph is captured anew for other memory
        return percentiles([once() for _ in range(min(args.runs, 200))])


def load_case(folder: Path) -> dict[str, Any]:
    settings = json.loads((folder / "case.json").read_text()) if (folder / "case.json").exists() else {}
    case: dict[str, Any] = {"tolerance": settings.get("tolerance"), "gemm": settings.get("gemm")}
    for key in ("inputs", "expected"):
        try:
            with np.load(folder / f"{key}.npz") as arrays:
                case[key] = dict(arrays)
        except OSError as error:
            raise CaseError(f"{folder / key}.npz: {error}") from error
    if not case["expected"]:
        raise CaseError(f"{folder / 'expected.npz'} holds no output")
    return case


def run_case(library: Library, driver: Driver, folder: Path, args: Any) -> Iterator[dict[str, Any]]:
    models = sorted(folder.glob("*.bmodel"))
    if not models:
        yield {"case": folder.name, "passed": False, "error": f"{folder} holds no .bmodel"}
    for path in models:
        row: dict[str, Any] = {"case": folder.name, "model": path.name}
        try:
            case = load_case(folder)
            row.update(run_model(library, driver, path, case, args))
            row["torch"] = beside_torch(folder, list(case["inputs"].values()), args.runs, args.seconds)
        except (CaseError, ValueError) as error:
            row.update({"passed": False, "error": str(error)})
        yield row


def not_begun(folder: Path, args: Any) -> dict[str, Any]:
    return {"case": folder.name, "passed": False, "error": f"not begun within {args.minutes:g} minutes"}


def run_cases(library: Library, driver: Driver, args: Any) -> Iterator[dict[str, Any]]:
    end = time.monotonic() + 60 * args.minutes
    for folder in args.cases:
        if time.monotonic() > end:
            yield not_begun(folder, args)
        else:
            yield from run_case(library, driver, folder, args)


def run_in_process(folders: Sequence[Path], args: Any) -> list[dict[str, Any]]:
    """Runs cases in a process of their own, and those without a result again, each in its own process."""
    with tempfile.TemporaryDirectory(prefix="on-device-") as name:
        result = Path(name) / "result.json"
        options = ("--library", args.library, "--runs", str(args.runs), "--seconds", str(args.seconds))
        command = [sys.executable, __file__, *options, "--minutes", str(args.minutes), "--json", str(result)]
        done = subprocess.run([*command, *map(str, folders)], capture_output=True, text=True, check=False)
        rows: list[dict[str, Any]] = json.loads(result.read_text())["cases"] if result.exists() else []
    if len(folders) == 1:
        lost = (done.stderr.strip() or "no message").splitlines()[-1]
        return rows or [{"case": folders[0].name, "passed": False, "error": f"exit code {done.returncode}: {lost}"}]
    failed = {row["case"] for row in rows if "error" in row}
    again = [folder for folder in folders if folder.name in failed or folder.name not in {row["case"] for row in rows}]
    right = [row for row in rows if row["case"] not in failed]
    return right + [row for folder in again for row in run_in_process([folder], args)]


def run_in_processes(args: Any) -> Iterator[dict[str, Any]]:
    """Yields the rows of all cases. Case folders must have different names."""
    end = time.monotonic() + 60 * args.minutes
    batches = [args.cases[i : i + BATCH] for i in range(0, len(args.cases), BATCH)]

    def run_batch(folders: Sequence[Path]) -> list[dict[str, Any]]:
        if time.monotonic() > end:
            return [not_begun(folder, args) for folder in folders]
        return run_in_process(folders, args)

    with ThreadPoolExecutor(args.jobs) as pool:
        for rows in pool.map(run_batch, batches):
            yield from rows


def print_report(row: Mapping[str, Any]) -> None:
    name = f"{row['case']}/{row.get('model', '')}"
    if "error" in row:
        print(f"FAIL  {name}: {row['error']}", flush=True)
        return
    wall, event = row["wall_us"], row["event_us"]
    on_gpu = f"{row['gpu_us']['p50']:.1f} us with data on the GPU, " if row["gpu_us"] else ""
    more = f", {row['measured_over_estimate']} times the estimate" if "estimate_us" in row else ""
    torch = row.get("torch") or {}
    for key in ("eager_us", "compile_us", "graph_us"):
        more += f", torch {key[:-3]} {torch[key]['p50']:.1f} us" if key in torch else ""
    if row.get("cublas"):
        more += f", {row['cublas']['of_cublas']} of cuBLAS"
    print(
        f"{'ok  ' if row['passed'] else 'FAIL'}  {name}: {on_gpu}{event['p50']:.1f} us between events, "
        f"{wall['p50']:.1f} us a call (p90 {wall['p90']:.1f}, p99 {wall['p99']:.1f}){more}",
        flush=True,
    )
    for output, info in row["outputs"].items():
        if not info["passed"]:
            reason = info.get("reason") or f"{info['differing']} of {info['elements']} differ, worst {info['worst']}"
            print(f"      output '{output}': {reason}", flush=True)


def parse(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description="Runs cases on a GPU, checks their outputs and measures their times.", allow_abbrev=False
    )
    parser.add_argument(
        "cases", nargs="+", type=Path, metavar="FOLDER", help="case folders, see the docstring of this file"
    )
    parser.add_argument("--library", default="libbmrt.so", metavar="FILE", help="the runtime (default: %(default)s)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the results to this file")
    parser.add_argument(
        "--runs", type=int, default=1000, metavar="N", help="maximum number of timed runs (default: %(default)s)"
    )
    parser.add_argument(
        "--seconds", type=float, default=2, metavar="S", help="maximum seconds of timed runs (default: %(default)s)"
    )
    parser.add_argument("--minutes", type=float, default=10, metavar="M", help="start no case after this many minutes")
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="run cases in N processes; times are useless")
    args = parser.parse_args(argv)
    if args.runs < 1 or args.seconds < 0:
        parser.error("--runs: at least 1; --seconds: at least 0")
    return args


def main(argv: Sequence[str] | None = None) -> int:
    args = parse(argv)
    try:
        library, driver = Library(args.library), Driver()
        device = driver.describe()
    except (OSError, CaseError, AttributeError) as error:
        print(f"on_device: {error}", file=sys.stderr)
        return 2
    print(f"{device['name']}, driver {device['driver']}; libbmrt {library.version}", flush=True)
    rows: list[dict[str, Any]] = []
    for row in run_in_processes(args) if args.jobs > 1 else run_cases(library, driver, args):
        rows.append(row)
        print_report(row)
    passed = sum(row["passed"] for row in rows)
    if args.json:
        info = {"device": device, "libbmrt": library.version, "host": platform.machine(), "cases": rows}
        args.json.write_text(json.dumps({"passed": passed == len(rows), **info}, indent=1) + "\n")
    print(f"{passed} of {len(rows)} passed", flush=True)
    return 0 if passed == len(rows) else 1


if __name__ == "__main__":
    sys.exit(main())
