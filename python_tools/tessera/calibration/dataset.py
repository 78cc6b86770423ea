# SPDX-License-Identifier: Apache-2.0
"""Calibration samples: a folder, a list file, an .npz file, or a Python file that generates them."""
from __future__ import annotations

import contextlib
import itertools
import runpy
import traceback
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Callable, Collection, Iterator, Mapping, Sequence

import numpy as np

from .. import memory
from ..errors import TesseraError
from ..files import load_npy, load_npz, require_file
from ..inputs import InputSpec, check_inputs
from ..preprocess import Preprocess, is_picture

GENERATOR_FUNCTION = "samples"
KEPT = 256 << 20
"""Samples of up to this many bytes are generated or decoded once; larger sets are read again in every pass."""


@dataclass(frozen=True)
class Sample:
    """One sample, loaded when it is used. number: its position among the run's samples.

    Either `files` (by input name; "" for an .npz that holds all inputs) or `arrays` is set.
    """

    number: int
    name: str
    files: tuple[tuple[str, str], ...] = ()
    arrays: Mapping[str, np.ndarray] | None = None

    def load(self, specs: Sequence[InputSpec], states: Sequence[InputSpec] = ()) -> dict[str, np.ndarray]:
        """Returns the input arrays, and those of the states that the sample contains, in the model's exact types.
        Raises Unreadable for a damaged file, TesseraError for arrays that do not fit the model's inputs."""
        arrays = self.arrays
        if arrays is None:
            arrays = {}
            for name, file in self.files:
                try:
                    arrays.update(_read(name, file, specs))
                except TesseraError as error:
                    raise Unreadable(error.message) from error
        return check_inputs(arrays, specs, f"calibration sample {self.name}", states)


class Unreadable(Exception):
    """A sample that can be left out because its file is damaged."""


def _read(name: str, file: str, specs: Sequence[InputSpec]) -> dict[str, np.ndarray]:
    if not name:
        return load_npz(file, "sample")
    spec = next(s for s in specs if s.name == name)
    if is_picture(file):
        return {name: (spec.preprocess or Preprocess()).apply(file, spec.for_picture(file), spec.array_dtype)}
    return {name: load_npy(file, "sample")}


@dataclass
class Dataset:
    """Samples in order. identity: shows whether an interrupted run used the same samples."""

    samples: Callable[[], Iterator[Sample]]
    count: int
    available: int
    identity: str
    kind: str
    _loaded: dict[int, dict[str, np.ndarray]] = field(default_factory=dict)

    def load(self, sample: Sample, specs: Sequence[InputSpec]) -> dict[str, np.ndarray]:
        """Returns Sample.load, reading samples only once as long as they fit into KEPT."""
        if sample.number in self._loaded:
            return self._loaded[sample.number]
        arrays = sample.load(specs)
        if (len(self._loaded) + 1) * _bytes_of(arrays) <= KEPT:
            self._loaded[sample.number] = arrays
        return arrays


def _bytes_of(arrays: Mapping[str, Any]) -> int:
    return sum(getattr(array, "nbytes", 0) for array in arrays.values())


def readable(
    dataset: Dataset, numbers: Collection[int], specs: Sequence[InputSpec]
) -> Iterator[tuple[int, dict[str, np.ndarray]]]:
    """Yields (number, arrays) of the samples `numbers` that can be read, in the data set's order."""
    for sample in dataset.samples():
        if sample.number in numbers:
            with contextlib.suppress(Unreadable):
                yield sample.number, dataset.load(sample, specs)


def open_dataset(given: str, specs: Sequence[InputSpec], input_num: int, states: Sequence[InputSpec] = ()) -> Dataset:
    """Opens the samples that `--dataset` names. If there are more than input_num, takes that many, evenly spread.
    states: tensors that samples may contain in addition to `specs`.

    Raises TesseraError if there are none, or if they do not fit the model's inputs.
    """
    path = Path(given)
    if path.is_dir():
        return _from_files(_list_folder(path, specs), input_num, specs, "folder")
    require_file(path, "data set")
    if path.suffix == ".npz":
        return _from_npz(path, specs, input_num, states)
    if path.suffix == ".py":
        return _from_generator(path, specs, input_num)
    if path.suffix in (".txt", ".lst", ".list"):
        return _from_files(_read_list(path, specs), input_num, specs, "list")
    if is_picture(path):
        return _from_files([Sample(0, path.name, _one_file(str(path), specs))], input_num, specs, "picture")
    raise TesseraError(
        f"--dataset {path}: unknown kind of file",
        hint="give a folder of pictures or .npz files, a list (.txt), one .npz, or a Python file (.py)",
    )


def spread(count: int, wanted: int) -> list[int]:
    """Returns `wanted` of the numbers below `count`, evenly spread; all of them if there are not more."""
    return list(range(count)) if wanted >= count else [i * count // wanted for i in range(wanted)]


def _from_files(found: Sequence[Sample], input_num: int, specs: Sequence[InputSpec], kind: str) -> Dataset:
    if any(is_picture(file) for sample in found for _, file in sample.files):
        _check_takes_pictures(found, specs)
    chosen = [Sample(number, found[i].name, found[i].files) for number, i in enumerate(spread(len(found), input_num))]
    return Dataset(lambda: iter(chosen), len(chosen), len(found), "\n".join(s.name for s in chosen), kind)


def _check_takes_pictures(found: Sequence[Sample], specs: Sequence[InputSpec]) -> None:
    """Checks once that the model takes pictures, instead of failing with every picture."""
    from PIL import Image

    for name in {name for sample in found for name, file in sample.files if is_picture(file)}:
        spec = next(s for s in specs if s.name == name)
        (spec.preprocess or Preprocess()).apply(Image.new("RGB", (8, 8)), spec.shape)


def _list_folder(folder: Path, specs: Sequence[InputSpec]) -> list[Sample]:
    files = sorted(p for p in folder.rglob("*") if p.is_file() and not p.name.startswith("."))
    pictures, arrays = [p for p in files if is_picture(p)], [p for p in files if p.suffix == ".npz"]
    if not pictures and not arrays:
        seen = f"; found {len(files)} other file(s), e.g. {files[0].name}" if files else "; it is empty"
        raise TesseraError(
            f"--dataset {folder}: the folder holds neither pictures nor .npz files{seen}",
            hint="pictures are found by their suffix: .jpg, .png, .bmp, ...; an .npz file is one sample and holds an "
            f"array for each input: {', '.join(map(str, specs))}",
        )
    if pictures and arrays:
        raise TesseraError(
            f"--dataset {folder}: holds both {len(pictures)} picture(s) and {len(arrays)} .npz file(s)",
            hint="give a folder with one kind, or a list file",
        )
    return [Sample(0, p.relative_to(folder).as_posix(), _one_file(str(p), specs)) for p in pictures or arrays]


def _one_file(file: str, specs: Sequence[InputSpec]) -> tuple[tuple[str, str], ...]:
    if Path(file).suffix == ".npz":
        return (("", file),)
    if len(specs) != 1:
        raise TesseraError(
            f"one file ({Path(file).name}) given for a model with {len(specs)} inputs",
            hint="use .npz files with one array per input, or a list with NAME=FILE,NAME=FILE lines",
            details=["the model's inputs are: " + ", ".join(map(str, specs))],
        )
    return ((specs[0].name, file),)


def _read_list(path: Path, specs: Sequence[InputSpec]) -> list[Sample]:
    """Reads one sample per line: FILE, or NAME=FILE,NAME=FILE, or FILE,FILE in the order of the inputs. Paths are
    relative to the list."""
    samples = []
    for number, line in enumerate(path.read_text(encoding="utf-8", errors="replace").splitlines(), 1):
        text = line.strip()
        if not text or text.startswith("#"):
            continue
        parts = [text] if (path.parent / text).exists() else [part.strip() for part in text.split(",")]
        names = {spec.name for spec in specs}
        if all("=" in part and part.split("=", 1)[0] in names for part in parts):
            files = tuple((part.split("=", 1)[0], str(path.parent / part.split("=", 1)[1])) for part in parts)
        elif len(parts) == 1:
            files = _one_file(str(path.parent / parts[0]), specs)
        elif len(parts) == len(specs):
            files = tuple((spec.name, str(path.parent / part)) for spec, part in zip(specs, parts))
        else:
            raise TesseraError(
                f"{path}:{number}: the line names {len(parts)} files, the model has {len(specs)} input(s)",
                details=["the model's inputs are: " + ", ".join(map(str, specs))],
            )
        samples.append(Sample(0, text, files))
    if not samples:
        raise TesseraError(f"--dataset {path}: the list names no file")
    return samples


def _from_npz(path: Path, specs: Sequence[InputSpec], input_num: int, states: Sequence[InputSpec]) -> Dataset:
    """Reads one sample, or many along the first axis: [100,3,224,224] for an input [1,3,224,224]."""
    arrays = load_npz(path, "data set")
    specs = (*specs, *(state for state in states if state.name in arrays))
    stacks = {spec.name: _stack_of(arrays.get(spec.name), spec) for spec in specs}
    counts = {name: None if stack is None else len(stack) for name, stack in stacks.items()}
    if set(arrays) != set(counts) or len(set(counts.values())) != 1 or None in counts.values():
        check_inputs(arrays, specs, f"--dataset {path}")  # reports what is wrong with one sample
        raise TesseraError(
            f"--dataset {path}: the arrays hold different numbers of samples: "
            + ", ".join(f"'{name}' {count}" for name, count in counts.items())
        )
    available = next(iter(counts.values())) or 0
    if available == 0:
        raise TesseraError(f"--dataset {path}: the arrays hold no sample")
    rows = spread(available, input_num)

    def samples() -> Iterator[Sample]:
        for number, row in enumerate(rows):
            sample = {name: stack[row] for name, stack in stacks.items() if stack is not None}
            yield Sample(number, f"{path.name}[{row}]", arrays=sample)

    return Dataset(samples, len(rows), available, f"{path.name} {path.stat().st_size} {rows}", "npz")


def _stack_of(array: np.ndarray | None, spec: InputSpec) -> np.ndarray | None:
    """Returns the samples of an input, one per entry of the first axis; None if the array does not consist of samples.
    An array that the input accepts is one sample; a longer one holds samples along its first axis, one row each if the
    batch size is open."""
    if array is None or array.ndim < len(spec.shape):
        return None
    if spec.accepts(array.shape):
        return array[None]
    if spec.accepts(array.shape[1:]):
        return array
    batch = 1 if 0 in spec.open_dims else next(iter(spec.shape), 0)
    rest = array.shape[1:]
    if batch and array.shape[0] % batch == 0 and spec.accepts((batch, *rest)):
        return array.reshape(-1, batch, *rest)
    return None


def _from_generator(path: Path, specs: Sequence[InputSpec], input_num: int) -> Dataset:
    """Takes samples from a Python file with a function samples() that yields dicts of arrays, or plain arrays for a
    model with one input."""
    function = user_function(path, "--dataset", f"{GENERATOR_FUNCTION}()", 'def samples(): yield {"input": array}')

    def samples() -> Iterator[Sample]:
        try:
            for number, arrays in enumerate(function()):
                if number >= input_num:
                    return
                if not isinstance(arrays, Mapping):
                    if len(specs) != 1:
                        raise TesseraError(
                            f"{path}: sample {number} is not a dict, but the model has {len(specs)} inputs"
                        )
                    arrays = {specs[0].name: np.asarray(arrays)}
                yield Sample(number, f"{path.name}[{number}]", arrays=arrays)
        except TesseraError:
            raise
        except Exception as error:
            raise user_fault(path, error) from error

    identity = f"{path.name} {path.read_text(errors='replace')}"
    return Dataset(Remembered(samples).samples, input_num, input_num, identity, "generator")


class Remembered:
    """The samples yielded by `make`, which is called only once if they all fit into KEPT: a generator may be slow, and
    calibration makes a dozen passes over its samples."""

    def __init__(self, make: Callable[[], Iterator[Sample]]) -> None:
        self._make = make
        self._source: Iterator[Sample] | None = None
        self._seen: list[Sample] = []
        self._size, self._too_many = 0, False

    def samples(self) -> Iterator[Sample]:
        """Yields all samples from the first, independently of other passes."""
        place = 0
        while not self._too_many:
            if place == len(self._seen) and not self._take():
                return
            if not self._too_many:
                yield self._seen[place]
                place += 1
        yield from itertools.islice(self._make(), place, None)

    def _take(self) -> bool:
        """Takes one more sample from the generator; returns False at its end."""
        self._source = self._source or self._make()
        try:
            sample = next(self._source, None)
        except BaseException:
            self._source, self._seen, self._size = None, [], 0  # a generator that has failed has ended
            raise
        if sample is None:
            return False
        # Copies the arrays, because the generator may fill the same array again.
        arrays = {n: a.copy() if isinstance(a, np.ndarray) else a for n, a in (sample.arrays or {}).items()}
        self._size += _bytes_of(arrays)
        if self._size > KEPT:
            self._too_many, self._source, self._seen = True, None, []
        else:
            self._seen.append(replace(sample, arrays=arrays))
        return True


def user_function(path: Path, flag: str, wanted: str, example: str) -> Callable[..., Any]:
    """Returns the function `wanted`, "NAME(...)", of the user's Python file that `flag` names. Raises TesseraError if
    the file fails or does not define it."""
    return user_function_and_names(path, flag, wanted, example)[0]


def user_function_and_names(
    path: Path, flag: str, wanted: str, example: str
) -> tuple[Callable[..., Any], Mapping[str, Any]]:
    """Returns user_function() and everything else that the file defines, by name."""
    try:
        names = runpy.run_path(str(path))
    except Exception as error:
        raise user_fault(path, error) from error
    function = names.get(wanted.partition("(")[0])
    if not callable(function):
        raise TesseraError(f"{flag} {path}: the file does not define a function {wanted}", hint=example)
    return function, names


def user_fault(path: Path, error: Exception) -> TesseraError:
    """Returns the TesseraError for an exception in the user's own file, with the failing line."""
    frames = [f for f in traceback.extract_tb(error.__traceback__) if f.filename == str(path)]
    line = f":{frames[-1].lineno}" if frames else f":{error.lineno}" if isinstance(error, SyntaxError) else ""
    if memory.lacks(error):
        return memory.error(what=f"{path}{line}: {type(error).__name__}: {error}")
    return TesseraError(f"{path}{line}: {type(error).__name__}: {error}")
