# SPDX-License-Identifier: Apache-2.0
"""A .bmodel as the tools use it: opened through tessera.runtime, with errors as TesseraError."""
from __future__ import annotations

from pathlib import Path
from typing import Any, Callable, Mapping, Sequence

import numpy as np

from . import memory
from .errors import ExitCode, TesseraError
from .files import require_file
from .inputs import InputSpec, check_inputs
from .preprocess import Preprocess
from .programs import read_model
from .safetensors_io import from_bfloat16, to_bfloat16
from .targets import targets


def _runtime():
    try:
        import tessera.runtime as runtime
    except ImportError as error:
        raise TesseraError(
            f"the runtime's Python module cannot be loaded: {error}",
            ExitCode.INTERNAL,
            hint="build it with ./dev build, or pip install the wheel",
        ) from error
    return runtime


def can_run(chip: str) -> bool:
    """Returns true if this machine executes code for `chip`."""
    return targets().runs_here.get(chip, True)


class Net:
    """A .bmodel opened on a number of threads. Raises TesseraError if the file cannot be opened."""

    def __init__(self, path: str | Path, threads: int = 1, chip: str | None = None) -> None:
        runtime = _runtime()
        self._error = runtime.Error
        require_file(path, "model")
        try:
            self._net = runtime.load(str(path), threads=threads).net(chip=chip)
        except self._error as error:
            raise as_tessera_error(error, f"failed to open {path}") from error
        self._path = path
        self._look()

    def use(self, shapes: Mapping[str, Sequence[int]]) -> None:
        """Selects the stage for inputs of these shapes. Raises TesseraError that lists the available shapes if none
        fits."""
        if len(self._net.stages) > 1:
            try:
                self._net.use(shapes)
            except self._error as error:
                raise as_tessera_error(error, str(self._path)) from error
            self._look()

    @property
    def stage(self) -> str:
        """Description of the selected stage; "" if there is only one."""
        stages = self._net.stages
        return f"stage {self._net.stage} of {len(stages)}, {self._net.chip}" if len(stages) > 1 else ""

    @property
    def number(self) -> int:
        """Index of the selected stage in the net."""
        return int(self._net.stage)

    def described(self) -> dict[str, Any]:
        """Returns the selected stage as read_model() describes it."""
        stage: dict[str, Any] = read_model(self._path)["nets"][0]["stages"][self.number]
        return stage

    def _look(self) -> None:
        """Records the stage's inputs and outputs."""
        known = (*self._net.inputs, *self._net.outputs, *self._net.states)
        self._tensors = {tensor.name: tensor for tensor in known if tensor.scale is not None}
        self._bfloat16 = {t.name for t in known if t.type == "bf16"} - set(self._tensors)
        self.states = [_spec(tensor) for tensor in self._net.states]
        self.inputs = [_spec(tensor) for tensor in self._net.inputs]
        self.outputs = [_spec(tensor) for tensor in self._net.outputs]
        self.origins = {t.name: t.computed_by for t in self._net.outputs if t.computed_by}

    def run(self, arrays: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Runs the model; returns the outputs by ONNX name, in new arrays. Quantised inputs and outputs are given as
        the real numbers that they represent. States that are not among the arrays have their initial values."""
        checked = self._prepare(arrays)
        try:
            return self._reals(self._net(checked))
        except self._error as error:
            raise as_tessera_error(error, "failed to run the model") from error

    def run_step(self, arrays: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Returns the outputs of run(), and the new values of the states by the names of the outputs that they were."""
        outputs = self.run(arrays)
        now = self._reals(self._net.get_states())
        return {**outputs, **{output: now[name] for name, output in self._net.state_outputs.items()}}

    def timed(self, arrays: Mapping[str, np.ndarray]) -> Callable[[], object]:
        """Returns a function that only runs on these inputs; they are checked and converted to stored types once,
        here."""
        stored, net = self.stored(arrays), self._net
        return lambda: net(stored)

    def profile(self, arrays: Mapping[str, np.ndarray], runs: int) -> Any:
        """Returns the time of every step over `runs` runs, as tessera.runtime's StepProfile."""
        try:
            return self._net.profile(self.stored(arrays), runs)
        except self._error as error:
            raise as_tessera_error(error, "failed to run the model") from error

    def run_every_tensor(
        self, arrays: Mapping[str, np.ndarray], keep: Callable[[str, np.ndarray], None] | None = None
    ) -> dict[str, np.ndarray]:
        """Returns the outputs and every intermediate tensor that equals an ONNX tensor, by name. With `keep`,
        intermediate tensors are passed to it one by one instead."""
        checked = self._prepare(arrays)
        try:
            outputs, tensors = self._net.run_with_dump(checked, keep)
        except self._error as error:
            raise as_tessera_error(error, "failed to run the model") from error
        return {**tensors, **self._reals(outputs)}

    def run_stored(
        self, arrays: Mapping[str, np.ndarray], keep: Callable[[str, np.ndarray], None]
    ) -> dict[str, np.ndarray]:
        """Runs on inputs from stored(); returns the outputs and passes all tensors to `keep`, each in its stored
        type."""
        try:
            return self._net.run_with_dump(arrays, keep, stored=True)[0]
        except self._error as error:
            raise as_tessera_error(error, "failed to run the model") from error

    def stored(self, arrays: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Returns the inputs in their stored types: quantised ones as integers, bfloat16 as bit patterns. Sets the
        states that are among the arrays."""
        return self._prepare(arrays)

    def _prepare(self, arrays: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Resets the states, sets those that are given, and returns the inputs in their stored types."""
        checked = self._integers(check_inputs(arrays, self.inputs, "the input", self.states))
        if self.states:
            self._net.reset_state()
            self._net.set_states({spec.name: checked.pop(spec.name) for spec in self.states if spec.name in checked})
        return checked

    def _integers(self, arrays: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Converts quantised inputs to integers and bfloat16 to bit patterns."""
        result = {name: to_bfloat16(a) if name in self._bfloat16 else a for name, a in arrays.items()}
        for name in self._tensors.keys() & result.keys():
            tensor = self._tensors[name]
            limits = np.iinfo(tensor.dtype)
            q = np.rint(result[name] / np.float32(tensor.scale)) + np.float32(tensor.zero_point)
            result[name] = np.clip(np.nan_to_num(q), limits.min, limits.max).astype(tensor.dtype)
        return result

    def _reals(self, arrays: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Converts quantised outputs and bfloat16 to float32."""
        result = {name: from_bfloat16(a) if name in self._bfloat16 else a for name, a in arrays.items()}
        for name in self._tensors.keys() & result.keys():
            tensor = self._tensors[name]
            result[name] = (result[name].astype(np.int32) - np.int32(tensor.zero_point)).astype(
                np.float32
            ) * np.float32(tensor.scale)
        return result


def as_tessera_error(error: Exception, what: str) -> TesseraError:
    """Returns the TesseraError for an error of the runtime."""
    if getattr(error, "code", "") == "no memory":
        return memory.error(what=f"{what}: {error}")
    return TesseraError(f"{what}: {error}")


def open_net(path: str | Path, threads: int = 1, chip: str | None = None) -> Net:
    return Net(path, threads, chip)


def _spec(tensor) -> InputSpec:
    return InputSpec(
        tensor.name,
        tuple(tensor.max_shape),
        "float32" if tensor.scale is not None else "bfloat16" if tensor.type == "bf16" else str(tensor.dtype),
        Preprocess.from_fields(tensor.preprocess) if tensor.preprocess else None,
        open_dims=tuple(d for d, (size, most) in enumerate(zip(tensor.shape, tensor.max_shape)) if size != most),
    )
