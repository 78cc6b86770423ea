# SPDX-License-Identifier: Apache-2.0
"""A model's input tensors from the user's data: .npz, .npy, pictures, NAME=FILE pairs, or random values."""
from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Mapping, Sequence

import numpy as np

from .errors import TesseraError
from .files import load_npy, load_npz, require_file
from .preprocess import Preprocess, is_picture
from .safetensors_io import from_bfloat16, round_bfloat16

RANDOM_SEED = 0


@dataclass(frozen=True)
class Uses:
    """How a network uses an input, which limits its values.

    index_below: the input is an index into this many elements. divides: it divides integers. is_fixed: sizes, indices
    or divisors are computed from it, so valid values are not known. reaches: the ops that depend on it.
    """

    index_below: int | None = None
    divides: bool = False
    is_fixed: bool = False
    reaches: frozenset[str] = frozenset()

    @staticmethod
    def from_json(entry: Mapping[str, Any]) -> "Uses":
        below = entry.get("index_below")
        return Uses(below, "divisor" in entry, "fixed" in entry, frozenset(entry.get("reaches", ())))


@dataclass(frozen=True)
class InputSpec:
    """One input of a compiled model. preprocess is set for picture inputs, uses if they are known.

    shape: the largest size of every dim; the dims listed in open_dims may be smaller. ranges: the sizes that each dim
    may have; empty if they are not known.
    """

    name: str
    shape: tuple[int, ...]
    dtype: str
    preprocess: Preprocess | None = None
    uses: Uses | None = field(default=None, compare=False)
    open_dims: tuple[int, ...] = ()
    ranges: tuple[range, ...] = ()

    def __str__(self) -> str:
        return f"'{self.name}' {self.dtype}{self.dims}"

    @property
    def dims(self) -> str:
        """Text like "[1, 3]", or "[up to 8, 3]" for an open dim."""
        return f"[{', '.join(f'up to {n}' if d in self.open_dims else str(n) for d, n in enumerate(self.shape))}]"

    def accepts(self, shape: tuple[int, ...]) -> bool:
        """Returns true if arrays of this shape may be passed; the runtime checks open dims exactly."""
        return len(shape) == len(self.shape) and all(
            size == most or (d in self.open_dims and size <= most)
            for d, (size, most) in enumerate(zip(shape, self.shape))
        )

    def at(self, shape: tuple[int, ...]) -> "InputSpec":
        """Returns the input with this shape, which it must accept."""
        return replace(self, shape=tuple(shape), open_dims=(), ranges=())

    def for_picture(self, picture: "str | Path") -> tuple[int, ...]:
        """Returns the shape in which a picture is passed: its own size where height and width are open, reduced to the
        largest size and rounded to a possible one."""
        preprocess = self.preprocess or Preprocess()
        if len(self.shape) != 4 or not self.ranges:
            return self.shape
        shape = [min(self.ranges[0]), *self.shape[1:]]
        axes = (2, 3) if preprocess.channel_format == "nchw" else (1, 2)
        height, width = preprocess.size_of(picture)
        reduction = min(1.0, self.shape[axes[0]] / height, self.shape[axes[1]] / width)
        for axis, size in zip(axes, (height, width)):
            shape[axis] = min(self.ranges[axis], key=lambda possible: abs(possible - size * reduction))
        return tuple(shape)

    def cast(self, array: np.ndarray) -> np.ndarray:
        """Returns the array in the input's type. numpy lacks bfloat16; such values are float32, rounded."""
        if self.dtype == "bfloat16":
            return round_bfloat16(np.asarray(array))
        return np.asarray(array, dtype=self.dtype, order="C")

    @property
    def array_dtype(self) -> str:
        """The numpy type of the input's arrays."""
        return "float32" if self.dtype == "bfloat16" else self.dtype

    @property
    def is_float(self) -> bool:
        return self.dtype.endswith(("float16", "float32", "float64"))


def load_inputs(
    given: str, specs: Sequence[InputSpec], flag: str = "--input", states: Sequence[InputSpec] = ()
) -> dict[str, np.ndarray]:
    """Returns arrays for all inputs, and for the states that are given, from the value of a flag.

    given: FILE or NAME=FILE[,NAME=FILE…]; FILE is .npz (arrays by input name), .npy or a picture (one input). Raises
    TesseraError if names, shapes or types do not match the model's.
    """
    parts = given.split(",")
    if all("=" in part for part in parts) and not Path(given).exists():
        arrays: dict[str, np.ndarray] = {}
        for part in parts:
            name, _, file = part.partition("=")
            spec = next((s for s in (*specs, *states) if s.name == name), None)
            if spec is None:
                raise TesseraError(f"{flag}: the model has no input '{name}'", details=_expected(specs))
            arrays[name] = _one_array(file, spec, flag)
    elif Path(given).suffix == ".npz":
        arrays = load_npz(given, flag)
    else:
        require_file(given, flag)
        if len(specs) != 1:
            raise TesseraError(
                f"{flag} {given}: one file given for {len(specs)} inputs",
                hint=f"pass an .npz, or {flag} NAME=FILE,NAME=FILE",
                details=_expected(specs),
            )
        arrays = {specs[0].name: _one_array(given, specs[0], flag)}
    return check_inputs(arrays, specs, f"{flag} {given}", states)


def _one_array(file: str, spec: InputSpec, flag: str) -> np.ndarray:
    if is_picture(file):
        require_file(file, flag)
        return (spec.preprocess or Preprocess()).apply(file, spec.for_picture(file), spec.array_dtype)
    if Path(file).suffix == ".npy":
        return load_npy(file, flag)
    raise TesseraError(f"{flag} {file}: unknown kind of file", hint="use .npz, .npy or a picture")


def check_inputs(
    arrays: Mapping[str, np.ndarray], specs: Sequence[InputSpec], what: str, states: Sequence[InputSpec] = ()
) -> dict[str, np.ndarray]:
    """Returns the arrays in the model's order and exact types; raises TesseraError that lists every mismatch. Arrays of
    states may be missing.

    A float64 array is accepted for a float32 input and an int32 one for int64, because numpy creates them by default
    and no value visible to the model is lost; any float is accepted for bfloat16, which numpy lacks. Any other type is
    rejected.
    """
    problems = []
    for name in arrays:
        if all(spec.name != name for spec in (*specs, *states)):
            problems.append(f"'{name}' is not an input of the model")
    checked: dict[str, np.ndarray] = {}
    for spec in (*specs, *(state for state in states if state.name in arrays)):
        if spec.name not in arrays:
            problems.append(f"input {spec} is missing")
            continue
        array = np.asarray(arrays[spec.name])
        if spec.dtype == "bfloat16" and array.dtype == np.dtype("V2"):  # as numpy saves ml_dtypes.bfloat16
            array = from_bfloat16(array.view(np.uint16))
        if not spec.accepts(array.shape):
            problems.append(f"input '{spec.name}' has shape {list(array.shape)}, the model expects {spec.dims}")
        elif str(array.dtype) != spec.dtype and (str(array.dtype), spec.dtype) not in _SAFE:
            problems.append(f"input '{spec.name}' has type {array.dtype}, the model expects {spec.dtype}")
        else:
            checked[spec.name] = spec.cast(array)
    if problems:
        raise TesseraError(f"{what} does not fit the model: {problems[0]}", details=problems[1:] + _expected(specs))
    return checked


_SAFE = {("float64", "float32"), ("int32", "int64"), ("uint8", "int64"), ("float16", "float32")}
_SAFE |= {("float32", "bfloat16"), ("float64", "bfloat16"), ("float16", "bfloat16")}


def _expected(specs: Sequence[InputSpec]) -> list[str]:
    return ["the model's inputs are: " + ", ".join(map(str, specs))]


def random_inputs(
    specs: Sequence[InputSpec], seed: int = RANDOM_SEED, ranges: Mapping[str, tuple[float, float]] | None = None
) -> dict[str, np.ndarray]:
    """Returns seeded random arrays, which are equal for equal seed and inputs.

    Floats are uniform in the `ranges` of their input, else in [-1, 1), or pixels 0..255 after the model's
    pre-processing. Integers are 0 or 1, which is nearly always a valid index, token or mask. Divisors of integers are 1
    or 2, and indices into one element are 0. Masks whose sums must be sizes are 1.
    """
    generator = np.random.default_rng(seed)
    arrays = {}
    for spec in specs:
        low, high = (ranges or {}).get(spec.name, (-1, 1))
        if spec.preprocess is not None:
            arrays[spec.name] = _random_pixels(generator, spec)
            if ranges and spec.name in ranges and spec.is_float:
                arrays[spec.name] = spec.cast(np.clip(arrays[spec.name], low, high))
        elif spec.is_float:
            arrays[spec.name] = spec.cast(generator.uniform(low, high, spec.shape))
        else:
            arrays[spec.name] = _random_integers(generator, spec)
    return arrays


def random_codes(specs: Sequence[InputSpec], seed: int = RANDOM_SEED) -> dict[str, np.ndarray]:
    """Returns seeded integers over the whole range for inputs of 8 or 16 bits that are not indices or divisors: in a
    quantised model they stand for real numbers."""
    generator = np.random.default_rng(seed)
    arrays = {}
    for spec in specs:
        is_index = spec.uses is not None and (spec.uses.index_below is not None or spec.uses.divides)
        if spec.dtype in ("int8", "uint8", "int16") and not is_index:
            info = np.iinfo(spec.dtype)
            arrays[spec.name] = generator.integers(info.min, info.max + 1, spec.shape).astype(spec.dtype)
    return arrays


def _random_integers(generator: np.random.Generator, spec: InputSpec) -> np.ndarray:
    drawn = generator.integers(0, 2, spec.shape)
    if spec.uses and spec.uses.divides:
        drawn = drawn + 1
    elif spec.uses and spec.uses.index_below == 1:
        drawn = np.zeros_like(drawn)
    elif spec.uses and {"reduce", "bind"} <= spec.uses.reaches:
        drawn = np.ones_like(drawn)
    return drawn.astype(spec.dtype)


def _random_pixels(generator: np.random.Generator, spec: InputSpec) -> np.ndarray:
    preprocess = spec.preprocess
    assert preprocess is not None
    pixels = generator.integers(0, 256, spec.shape).astype(np.float32)
    axis_shape = (1, -1, 1, 1) if preprocess.channel_format == "nchw" else (1, 1, 1, -1)
    mean = np.asarray(preprocess.mean, np.float32).reshape(axis_shape)
    scale = np.asarray(preprocess.scale, np.float32).reshape(axis_shape)
    return spec.cast((pixels - mean) * scale)
