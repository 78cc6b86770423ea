# SPDX-License-Identifier: Apache-2.0
"""Runs .bmodel files.

    import tessera.runtime as rt
    net = rt.load("m.bmodel", threads=2).net()
    out = net({"input": array})

Arrays are passed and returned as dicts by ONNX name. If the file has stages for several shapes or chips, a net
runs the first stage that can run here and accepts the arrays. Inputs may be numpy arrays or any objects with
`__dlpack__` (e.g. torch tensors; a model for a GPU reads tensors on that GPU in place). Contiguous inputs that are
aligned to 64 bytes are read in place, and the interpreter lock is released during runs. bfloat16 values are passed
as uint16 bits. Ctrl-C ends a run of the main thread with KeyboardInterrupt; `Net.cancel` ends a run of any thread.
"""
from __future__ import annotations

import json
import math
import os
from dataclasses import dataclass
from typing import Any, Callable, Mapping, Sequence

import numpy as np

from tessera import _runtime

_ALIGNMENT = _runtime.ALIGNMENT
_CUDA = 2  # kDLCUDA of DLPack
_DEFAULT_STREAM = 1  # the legacy default stream, of CUDA and of DLPack

Error = _runtime.Error
"""The exception for every failure here: a ValueError that states what, where, actual and allowed value."""


@dataclass(frozen=True)
class TensorInfo:
    """An input or output. A variable dimension is None in shape; its limit is in max_shape."""

    name: str
    shape: tuple[int | None, ...]
    max_shape: tuple[int, ...]
    dtype: np.dtype
    type: str
    """The model's name of the type: "f32", "bf16", "i8", ..."""
    scale: float | np.ndarray | None
    """real = scale * (stored - zero_point); None if not quantised, an array if per channel."""
    zero_point: int | np.ndarray | None
    axis: int | None
    preprocess: dict[str, Any] | None
    """The record of the model's pre-processing."""
    computed_by: str | None = None
    """Outputs: "sigmoid" or "softmax" if that op computes all elements, "none" if no op does."""


@dataclass(frozen=True)
class StageInfo:
    """The program of a net for one chip and one set of input shapes."""

    name: str
    chip: str
    runnable: bool
    inputs: list[TensorInfo]
    outputs: list[TensorInfo]


@dataclass(frozen=True)
class PartProfile:
    """A part of a step that the chip times separately."""

    onnx_nodes: str
    runs: int
    min_ns: int
    total_ns: int
    last_ns: int


@dataclass(frozen=True)
class StepProfile:
    """One step of the plan: its origin, the compiler's estimates and the measured times."""

    index: int
    kind: str
    symbol: str
    onnx_nodes: list[str]
    top_op: str
    device_op: str
    bound: str
    tiles: int
    flops: int
    bytes: int
    estimated_ns: float
    runs: int
    min_ns: int
    total_ns: int
    last_ns: int
    parts: tuple[PartProfile, ...] = ()
    """The parts of the step that the chip timed separately, e.g. the kernel launches on a GPU."""


def load_custom_ops(path: str | os.PathLike[str]) -> None:
    """Loads a shared library of custom operators (tessera_custom_op.h) for models that are loaded afterwards. Its code
    runs in this process: load only libraries that you trust."""
    _runtime.load_custom_ops(os.path.abspath(os.fsencode(path)))


def load(
    path: str | os.PathLike[str],
    threads: int = 1,
    trust: bool = False,
    device: str | None = None,
    custom_ops: Sequence[str | os.PathLike[str]] = (),
) -> Model:
    """Opens and verifies a file. `trust` skips the hashes of the constants (structure and code are always checked).
    `threads` is the default of `Model.net`, limited to the processors that the process may use. `device` selects one
    of several chips of a family: "cuda:1". `custom_ops`: libraries for load_custom_ops; those that the environment
    variable TESSERA_CUSTOM_OPS lists, separated by colons, are loaded as well."""
    for library in [*custom_ops, *filter(None, os.environ.get("TESSERA_CUSTOM_OPS", "").split(os.pathsep))]:
        load_custom_ops(library)
    return Model(path, threads, trust, device)


class Model:
    """An opened file. Any number of nets can be created from it, on any thread."""

    def __init__(
        self, path: str | os.PathLike[str], threads: int = 1, trust: bool = False, device: str | None = None
    ) -> None:
        self._threads = _check_threads(threads)
        self._model = _runtime.Model(os.fsencode(path), trust, device or "")  # file names need not be UTF-8
        self._gpu = _gpu_number(device)
        self.nets: list[str] = self._model.net_names

    def net(self, name: str | None = None, threads: int | None = None, chip: str | None = None) -> Net:
        """Returns an execution context of the net `name` (default: the first). `chip` restricts it to stages for that
        chip, given by name or family ("npu-base", "x86"); default: any."""
        if name is not None and name not in self.nets:
            raise Error(f"the model has no net '{name}'; it has {_quoted(self.nets)}")
        index = 0 if name is None else self.nets.index(name)
        return Net(self._model, index, self._threads if threads is None else _check_threads(threads), chip, self._gpu)


@dataclass(frozen=True)
class _Lent:
    """An input in a GPU's memory."""

    capsule: Any
    shape: tuple[int, ...]


class _Sink:
    """Receives the tensors that a run computes and converts them to real numbers."""

    def __init__(self, keep: Callable[[str, np.ndarray], None], stored: bool) -> None:
        self._keep, self._stored = keep, stored

    def __setitem__(self, name: str, entry: Any) -> None:
        array, info = entry if isinstance(entry, tuple) else (entry, None)
        if self._stored and info and info["type"] == "bf16":
            array = _widen(array)
        elif not self._stored and info:
            array = _real(array, info)
        self._keep(name, array)


class Net:
    """An execution context of a net. Threads may share it, but their runs take turns."""

    def __init__(self, model: _runtime.Model, net: int, threads: int, chip: str | None = None, gpu: int = 0) -> None:
        self._stages = [model.stage(net, i) for i in range(model.stage_count(net))]
        self._context = _runtime.Context(model, net, chip or "", threads)
        self._stage: int = self._context.stage()
        self._gpu = gpu
        self._wanted_stream: int | None = None
        self._stream = 0  # the stream that the context currently uses

    @property
    def stages(self) -> list[StageInfo]:
        """All stages in the file, in file order. Runs with different shapes may use different stages."""
        return [
            StageInfo(
                stage["name"],
                stage["chip"],
                stage["runnable"],
                [_tensor_info(info) for info in stage["inputs"]],
                [_tensor_info(info) for info in stage["outputs"]],
            )
            for stage in self._stages
        ]

    @property
    def stage(self) -> int:
        """The number of the stage that ran last, or, before the first run, of the stage that would run."""
        return self._stage

    def use(self, shapes: Mapping[str, Sequence[int]]) -> None:
        """Switches to the stage for inputs of these shapes; inputs, outputs, chip and memory then describe it."""
        self._stage = self._context.choose(
            [list(shapes[info["name"]]) for info in self._check_given(shapes, self._stage)]
        )

    @property
    def inputs(self) -> list[TensorInfo]:
        """The inputs of the current stage, in the order of the ONNX file."""
        return [_tensor_info(info) for info in self._stages[self._stage]["inputs"]]

    @property
    def outputs(self) -> list[TensorInfo]:
        """The outputs of the current stage, in the order of the ONNX file."""
        return [_tensor_info(info) for info in self._stages[self._stage]["outputs"]]

    @property
    def states(self) -> list[TensorInfo]:
        """The states of the current stage. The name is that of the ONNX input that the state replaces."""
        return [_tensor_info(info) for info in self._context.states()]

    @property
    def state_outputs(self) -> dict[str, str]:
        """By state, the name of the ONNX output whose value the state has after a run."""
        return {str(info["name"]): str(info["output"]) for info in self._context.states()}

    @property
    def state_lengths(self) -> dict[str, tuple[int, int]]:
        """By growing state, its length and its capacity."""
        states = self._context.states()
        return {str(info["name"]): (info["length"], info["capacity"]) for info in states if info["growth_axis"] >= 0}

    def set_state_length(self, length: int, name: str | None = None) -> None:
        """Shortens the growing states to `length`, e.g. to forget rejected tokens; a larger length, up to the capacity,
        appends zeros. `name`: only this state and those that grow with it."""
        numbers = [i for i, info in enumerate(self._context.states()) if info["growth_axis"] >= 0]
        if name is not None:
            numbers = [i for i in numbers if self._context.states()[i]["name"] == name]
        if not numbers:
            raise Error(f"the model has no growing state{'' if name is None else f' {name!r}'}")
        for number in numbers:
            self._context.set_state_length(number, length)

    def reset_state(self) -> None:
        """Resets the states to their initial values, as in a new net; growing states become empty."""
        self._context.reset_state()

    def save_state(self) -> bytes:
        """Returns the states of the current stage, for `load_state` of any net of the same file."""
        return bytes(self._context.save_state())

    def load_state(self, saved: bytes) -> None:
        """Sets the states to saved ones; raises an Error, without a change, if they are of another model or stage."""
        self._context.load_state(saved)

    def get_states(self) -> dict[str, np.ndarray]:
        """Returns copies of the states by name, with the numbers that the model stores."""
        infos = self._context.states()
        saved = self._context.save_state()
        states, at = {}, len(saved) - sum(info["bytes"] for info in infos)
        for info in infos:
            array = np.frombuffer(saved, info["dtype"], math.prod(info["shape"]), at).reshape(info["shape"])
            states[str(info["name"])] = array.copy()
            at += info["bytes"]
        return states

    def set_states(self, states: Mapping[str, np.ndarray]) -> None:
        """Sets some or all states, given by name with the numbers that the model stores. A growing state gets the
        length of its array."""
        infos = {info["name"]: info for info in self._context.states()}
        if unknown := [name for name in states if name not in infos]:
            raise Error(f"the model has no state {_quoted(unknown)}; it has {_quoted(list(infos))}")
        for number, (name, info) in enumerate(infos.items()):
            axis = info["growth_axis"]
            if name in states and 0 <= axis < np.ndim(states[name]):
                self._context.set_state_length(number, np.shape(states[name])[axis])
        infos = {info["name"]: info for info in self._context.states()}
        new = {**self.get_states(), **{name: _check_array(infos[name], array) for name, array in states.items()}}
        values = b"".join(new[name].tobytes() for name in infos)
        saved = self._context.save_state()
        self._context.load_state(saved[: len(saved) - len(values)] + values)

    @property
    def chip(self) -> str:
        return str(self._stages[self._stage]["chip"])

    @property
    def memory(self) -> dict[str, int]:
        """Bytes of constants (mapped), workspace, the lower bound of any plan's workspace, and state."""
        stage = self._stages[self._stage]
        return {
            key: stage[key] for key in ("constant_bytes", "workspace_bytes", "workspace_lower_bound", "state_bytes")
        }

    def __call__(self, inputs: Mapping[str, Any]) -> dict[str, np.ndarray]:
        """Runs once and returns newly allocated arrays."""
        if self._wanted_stream is None and self._stream == 0:
            outputs: dict[str, np.ndarray] | None = self._context.run_arrays(inputs)
            if outputs is not None:
                return outputs
        return self._run(inputs)

    def run_on_gpu(self, inputs: Mapping[str, Any]) -> dict[str, _runtime.GpuTensor]:
        """Runs once. The outputs stay in the GPU's memory, for any library that supports `__dlpack__`:
        `torch.from_dlpack(outputs["y"])`. Inputs may be on the GPU as well, or arrays as usual."""
        return self._run(inputs, on_gpu=True)

    def launch(self, inputs: Mapping[str, Any], on_gpu: bool = False) -> Launched:
        """Starts a run and returns. `Launched.wait` returns what a call of the net (or, with `on_gpu`, `run_on_gpu`)
        would return. Until then the net cannot be used otherwise, and the input arrays must not be changed. If the
        whole model runs on a GPU, all work has been submitted to the GPU when this returns, in the stream of
        `use_stream` if it is set."""
        number, ordered = self._prepare(inputs, on_gpu)
        self._context.launch(number, ordered, _aligned_empty, self._gpu, on_gpu)
        self._stage = number
        return Launched(self, self._stages[number], on_gpu)

    def use_stream(self, stream: int | None) -> None:
        """Makes runs execute the GPU's work in that stream (`torch.cuda.current_stream().cuda_stream`), after the work
        that it already contains. Runs still return only when they are done. None: the net's own streams, or the
        default stream if an input is on the GPU."""
        self._wanted_stream = stream

    def cancel(self) -> None:
        """Ends the run in flight, which raises an Error with the code "cancelled" on its thread. May be called from any
        thread. The net may run again; without a run in flight, nothing happens."""
        self._context.cancel()

    def run_with_dump(
        self, inputs: Mapping[str, Any], keep: Callable[[str, np.ndarray], None] | None = None, stored: bool = False
    ) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
        """Runs once. Returns the outputs and all tensors of the ONNX graph that the run computed (fusion eliminates
        some), in row-major order. Quantised and bfloat16 tensors are converted to the real numbers that they
        represent. If `keep` is given, it receives each tensor right after its computation instead, and tensors that
        it does not keep take no memory; an exception in `keep` is raised when the run has ended. With `stored`, the
        tensors keep the numbers that the model computes with: integers stay integers."""
        tensors: dict[str, np.ndarray] = {}
        return self._run(inputs, _Sink(keep or tensors.__setitem__, stored)), tensors

    def profile(self, inputs: Mapping[str, Any] | None = None, runs: int = 10) -> list[StepProfile]:
        """Times every step over `runs` runs, after a warm-up run; without `inputs`, all inputs are zero."""
        if inputs is None:
            inputs = {info.name: np.zeros(info.max_shape, info.dtype) for info in self.inputs}
        self._run(inputs)
        context = self._context
        context.set_profiling(True)
        for _ in range(runs):
            self._run(inputs)
        report = context.steps(True)
        context.set_profiling(False)
        return [
            StepProfile(**{**step, "parts": tuple(PartProfile(**part) for part in step["parts"])}) for step in report
        ]

    def write_trace(self, path: str | os.PathLike[str]) -> None:
        """Writes the last profiled run for chrome://tracing or Perfetto."""
        self._context.write_trace(os.fspath(path))

    def probe(self) -> Probe:
        """Returns a probe that reads and changes tensors between steps. The net must not run while it is in use."""
        return Probe(self._stages[self._stage], self._context)

    def _run(self, inputs: Mapping[str, Any], dump: _Sink | None = None, on_gpu: bool = False) -> dict[str, Any]:
        number, ordered = self._prepare(inputs, on_gpu)
        outputs = self._context.run(number, ordered, _aligned_empty, dump, self._gpu, on_gpu)
        self._stage = number
        return _named(self._stages[number], outputs, on_gpu)

    def _prepare(self, inputs: Mapping[str, Any], on_gpu: bool) -> tuple[int, list[Any]]:
        """Returns the stage that accepts the inputs, and the inputs in its order."""
        number = self._stage  # another thread may change it
        wanted = self._check_given(inputs, number)
        stream = self._enter_stream(inputs, on_gpu)
        arrays = {name: _as_array(name, value, stream) for name, value in inputs.items()}
        # An earlier stage may be the better one for these shapes if the current one takes a range.
        if len(self._stages) > 1 and not all(tuple(info["shape"]) == arrays[info["name"]].shape for info in wanted):
            number = self._context.choose([list(arrays[info["name"]].shape) for info in wanted])
        return number, [_check_array(info, arrays[info["name"]]) for info in self._stages[number]["inputs"]]

    def _enter_stream(self, inputs: Mapping[str, Any], on_gpu: bool) -> int:
        """Sets and returns the stream of the run's GPU work. Inputs on the GPU must be written before it runs."""
        there = [name for name, value in inputs.items() if _is_on_gpu(value)]
        if (there or on_gpu) and not self.chip.startswith("cuda"):
            raise Error(
                f"the net runs on {self.chip}: " + (f"input {_quoted(there)} must be on the CPU" if there else "no GPU")
            )
        stream = self._wanted_stream or (_DEFAULT_STREAM if there else 0)
        if stream != self._stream:
            self._context.set_stream(stream)
            self._stream = stream
        return stream

    def _check_given(self, inputs: Mapping[str, Any], stage: int) -> list[dict[str, Any]]:
        """Returns the inputs of the stage; raises an error if one is missing or an unknown one is given."""
        wanted: list[dict[str, Any]] = self._stages[stage]["inputs"]
        names = [info["name"] for info in wanted]
        if not isinstance(inputs, Mapping):
            raise Error(f"inputs must be a dict of arrays by name ({_quoted(names)}), not {type(inputs).__name__}")
        unknown = [str(name) for name in inputs if name not in names]
        if unknown:
            raise Error(f"the model has no input {_quoted(unknown)}; it has {_quoted(names)}")
        missing = [_describe(info) for info in wanted if info["name"] not in inputs]
        if missing:
            raise Error(f"input {', '.join(missing)} is missing")
        return wanted


class Launched:
    """A run in flight."""

    def __init__(self, net: Net, stage: dict[str, Any], on_gpu: bool) -> None:
        self._net, self._stage, self._on_gpu = net, stage, on_gpu
        self._outputs: dict[str, Any] | None = None

    @property
    def done(self) -> bool:
        """True if `wait` returns at once."""
        return self._outputs is not None or bool(self._net._context.is_done())

    def wait(self) -> dict[str, Any]:
        """Waits for the end of the run and returns its outputs; raises the run's error."""
        if self._outputs is None:
            self._outputs = _named(self._stage, self._net._context.wait(), self._on_gpu)
        return self._outputs


def _named(stage: dict[str, Any], outputs: list[Any], on_gpu: bool) -> dict[str, Any]:
    return {
        info["name"]: array if on_gpu else _front(array, shape)
        for info, (array, shape) in zip(stage["outputs"], outputs)
    }


def _aligned_empty(dtype: str, shape: list[int]) -> np.ndarray:
    """Returns an uninitialised array that the runtime can use in place."""
    kind = np.dtype(dtype)
    size = math.prod(shape) * kind.itemsize
    storage = np.empty(size + _ALIGNMENT, np.uint8)
    start = -storage.ctypes.data % _ALIGNMENT
    return storage[start : start + size].view(kind).reshape(shape)


def _widen(array: np.ndarray) -> np.ndarray:
    """Converts bfloat16 values, given as 16-bit integers, to float32."""
    # Shifting a 0-d array by a Python int would return a 64-bit scalar.
    return np.asarray(array.astype(np.uint32) << np.uint32(16)).view(np.float32)


def _real(array: np.ndarray, info: dict[str, Any]) -> np.ndarray:
    """Converts a tensor of integers or bfloat16, or a scaled tensor, to the float32 numbers that it represents."""
    if info["type"] == "bf16":
        array = _widen(array)
    if not info["scales"]:
        return array
    shape = [1] * array.ndim
    if len(info["scales"]) > 1:
        shape[info["axis"]] = -1
    scale = np.asarray(info["scales"], np.float32).reshape(shape)
    if array.dtype.kind == "f":
        return array.astype(np.float32) * scale
    return (array.astype(np.int64) - np.asarray(info["zero_points"]).reshape(shape)).astype(np.float32) * scale


def _front(array: np.ndarray, shape: list[int]) -> np.ndarray:
    """Returns the tensor of `shape` at the front of an array that is allocated for its largest size."""
    return array if list(array.shape) == shape else array.reshape(-1)[: math.prod(shape)].reshape(shape)


@dataclass(frozen=True)
class StepTensor:
    """A tensor that a step wrote. `data` is a writable flat view of its elements as stored, in any order, and is valid
    as long as the probe. `padded`: more elements are stored than the tensor has; the additional elements are zero and
    must stay zero."""

    names: tuple[str, ...]
    step: int
    index: int
    shape: tuple[int, ...]
    data: np.ndarray
    padded: bool


class Probe:
    """Runs a net and gives access to its tensors. Intended for models compiled for inspection
    (`tessera-compile deploy --observe`), in which every tensor has its own memory. In other models, later steps
    overwrite tensors of earlier steps."""

    def __init__(self, stage: dict[str, Any], context: _runtime.Context) -> None:
        self._stage, self._context = stage, context
        self.steps: int = len(context.steps(False))
        self._tensors: list[StepTensor] | None = None

    def run(self, inputs: Mapping[str, np.ndarray], keep: Callable[[str, np.ndarray], None] | None = None) -> None:
        """Runs once, on copies of the inputs. A model with open sizes may move its tensors: list them again. `keep`
        receives each tensor whenever a step has computed it, also in every pass of a loop (Net.run_with_dump)."""
        self._tensors = None
        arrays = [_check_array(info, inputs[info["name"]]) for info in self._stage["inputs"]]
        self._context.run_keeping(arrays, _aligned_empty, _Sink(keep, stored=False) if keep else None)

    def run_steps(self, begin: int, end: int | None = None) -> None:
        """Runs steps [begin, end) again on the current contents of the tensors. Steps of branches and loop bodies do
        not count; they run with their If or Loop."""
        self._context.run_steps(begin, 0xFFFFFFFF if end is None else end)

    @property
    def tensors(self) -> list[StepTensor]:
        """The tensors of all steps in the last run, in step order; available after the first run."""
        if self._tensors is None:
            self._tensors = [
                StepTensor(
                    tuple(w["onnx_names"]),
                    step,
                    index,
                    tuple(w["shape"]),
                    np.frombuffer(w["data"], w["dtype"]),
                    w["padded"],
                )
                for step in range(self.steps)
                for index, w in enumerate(self._context.writes(step))
            ]
        return self._tensors

    def row_major(self, tensor: StepTensor, room: np.ndarray | None = None) -> np.ndarray:
        """Copies a tensor's elements in row-major order, without padding, to `room` or a new array; returns it."""
        array = np.empty(tensor.shape, tensor.data.dtype) if room is None else room.reshape(tensor.shape)
        self._context.row_major(tensor.step, tensor.index, array)
        return array

    def input(self, name: str) -> np.ndarray:
        """Returns a writable flat view of an input."""
        infos = self._stage["inputs"]
        index = next(i for i, info in enumerate(infos) if info["name"] == name)
        return np.frombuffer(self._context.input_bytes(index), infos[index]["dtype"])

    def outputs(self) -> dict[str, np.ndarray]:
        """Returns copies of the outputs of the last run or run_steps."""
        found = {}
        for i, info in enumerate(self._stage["outputs"]):
            data, shape = self._context.output_bytes(i)
            found[info["name"]] = np.frombuffer(data, info["dtype"]).reshape(shape).copy()
        return found


def _check_threads(threads: int) -> int:
    if not isinstance(threads, int) or threads < 1:
        raise Error(f"threads must be an integer of at least 1, not {threads!r}")
    return threads


def _gpu_number(device: str | None) -> int:
    """Returns the number of the GPU for which a model is opened; the library has checked the text."""
    _, _, number = (device or "").partition(":")
    return int(number or os.environ.get("BMRT_CUDA_DEVICE") or 0)


def _is_on_gpu(value: Any) -> bool:
    return hasattr(value, "__dlpack_device__") and value.__dlpack_device__()[0] == _CUDA


def _as_array(name: str, value: Any, stream: int) -> Any:
    """Returns an array, or, for a tensor on a GPU, a DLPack capsule that work in `stream` may read."""
    if _is_on_gpu(value):
        return _Lent(value.__dlpack__(stream=stream), tuple(value.shape))
    if isinstance(value, (np.ndarray, np.generic)):
        return np.asarray(value)
    if hasattr(value, "__dlpack__"):
        return np.from_dlpack(value)
    raise Error(f"input '{name}' must be a numpy array or offer __dlpack__, not {type(value).__name__}")


def _check_array(info: dict[str, Any], array: Any) -> Any:
    if not _shape_fits(info, array.shape):
        raise Error(
            f"input '{info['name']}' has shape {_shape_text(array.shape)}, "
            f"the model takes {_shape_text(info['shape'])}"
        )
    if isinstance(array, _Lent):
        return array.capsule
    if array.dtype != np.dtype(info["dtype"]):
        raise Error(
            f"input '{info['name']}' is {array.dtype}, the model takes {info['dtype']}; "
            f"convert it with .astype('{info['dtype']}')"
        )
    return np.ascontiguousarray(array).reshape(array.shape)


def _shape_fits(info: dict[str, Any], shape: tuple[int, ...]) -> bool:
    wanted, limit = info["shape"], info["max_shape"]
    return len(shape) == len(wanted) and all(
        size == want or (want < 0 and size <= most) for size, want, most in zip(shape, wanted, limit)
    )


def _shape_text(shape: tuple[int, ...] | list[int]) -> str:
    return "x".join("?" if size < 0 else str(size) for size in shape) if len(shape) else "scalar"


def _describe(info: dict[str, Any]) -> str:
    return f"'{info['name']}' ({info['dtype']} {_shape_text(info['shape'])})"


def _quoted(names: list[str]) -> str:
    return ", ".join(f"'{name}'" for name in names)


def _tensor_info(info: dict[str, Any]) -> TensorInfo:
    scale: float | np.ndarray | None = None
    zero_point: int | np.ndarray | None = None
    if len(info["scales"]) == 1:
        scale, zero_point = info["scales"][0], info["zero_points"][0]
    elif info["scales"]:
        scale, zero_point = np.array(info["scales"], np.float32), np.array(info["zero_points"], np.int64)
    return TensorInfo(
        name=info["name"],
        shape=tuple(None if size < 0 else size for size in info["shape"]),
        max_shape=tuple(info["max_shape"]),
        dtype=np.dtype(info["dtype"]),
        type=info["type"],
        scale=scale,
        zero_point=zero_point,
        axis=None if info["axis"] < 0 else info["axis"],
        preprocess=_parse_record(info["name"], info["preprocess"]) if info["preprocess"] else None,
        computed_by=info["computed_by"],
    )


def _parse_record(name: str, text: str) -> dict[str, Any]:
    """Parses the record of an input's pre-processing, a text of the file."""
    try:
        record = json.loads(text)
    except (ValueError, RecursionError) as error:
        cause = "it is nested too deep" if isinstance(error, RecursionError) else error
        raise Error(f"the pre-processing of input '{name}' in the file is not valid JSON: {cause}") from None
    if not isinstance(record, dict):
        raise Error(f"the pre-processing of input '{name}' in the file is not a JSON object")
    return record
