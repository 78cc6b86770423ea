# SPDX-License-Identifier: Apache-2.0
"""A NAME_top.mlir with its weights: imported from ONNX, queried for its inputs, evaluated by the reference."""
from __future__ import annotations

import base64
import re
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Collection, Iterator, Mapping, Sequence

import numpy as np

from . import interrupts, safetensors_io
from .compile_driver import run_compile
from .errors import ExitCode, TesseraError
from .files import require_file, scratch_folder, staging_folder
from .inputs import InputSpec, Uses
from .preprocess import Preprocess
from .progress import Report
from .safetensors_io import from_bfloat16, round_bfloat16


@dataclass(frozen=True)
class State:
    """An input whose value is, in every run but the first, that of an output in the run before. bytes: the first value,
    None for zeros. growth: the dim along which the state grows, and its capacity; it is empty at first."""

    input: InputSpec
    output: InputSpec
    bytes: bytes | None = None
    growth: tuple[int, int] | None = None

    def describe(self) -> str:
        """Returns text like "'h_in' float32[1, 4] = 'h_out' of the run before"."""
        if self.growth is None:
            return f"{self.input} = '{self.output.name}' of the run before"
        axis, capacity = self.growth
        full = self.input.at(tuple(capacity if i == axis else dim for i, dim in enumerate(self.input.shape)))
        return f"{full} = '{self.output.name}' of the run before, grows along dim {axis}"

    def initial(self) -> np.ndarray:
        if self.bytes is None:
            grown = self.growth[0] if self.growth else None
            shape = (0 if dim == grown else size for dim, size in enumerate(self.input.shape))
            return np.zeros(tuple(shape), self.input.array_dtype)
        stored = "uint16" if self.input.dtype == "bfloat16" else self.input.dtype
        array = np.frombuffer(self.bytes, stored).reshape(self.input.shape)
        return from_bfloat16(array) if self.input.dtype == "bfloat16" else array


@dataclass(frozen=True)
class TopModel:
    """A Top model. inputs, outputs: in the order of the ONNX file, with fixed dims. origins: what computes some of the
    outputs (output_error.py). narrow: types of float16 and bfloat16 tensors, which a target computes in float32.
    padded_axes: outputs whose size along this axis is known only at run time; they have the largest possible size
    (`pad`). sizes: the shapes of tensors with open dims if all sizes are the smallest, likely and largest ones, by name
    and "min", "likely" or "max"; such tensors have their largest shape in `inputs` and `outputs`. states: tensors that
    a .bmodel keeps between runs; they are not among the inputs and outputs."""

    path: Path
    inputs: tuple[InputSpec, ...]
    outputs: tuple[InputSpec, ...]
    origins: Mapping[str, str] = field(default_factory=dict)
    padded_axes: Mapping[str, int] = field(default_factory=dict)
    narrow: Mapping[str, str] = field(default_factory=dict)
    sizes: Mapping[str, Mapping[str, tuple[int, ...]]] = field(default_factory=dict)
    states: tuple[State, ...] = ()

    def as_ports(self) -> "TopModel":
        """Returns the model with its states as inputs and outputs, as the reference evaluates it."""
        inputs = tuple(state.input for state in self.states)
        outputs = tuple(state.output for state in self.states)
        return replace(self, inputs=self.inputs + inputs, outputs=self.outputs + outputs, states=())

    def initial_states(self) -> dict[str, np.ndarray]:
        """Returns the values of the states before the first run, by the name of their input."""
        return {state.input.name: state.initial() for state in self.states}

    def next_states(self, tensors: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Returns the states after a run that computed `tensors`, by the name of their input."""
        return {state.input.name: tensors[state.output.name] for state in self.states}

    def inputs_at(self, which: str) -> tuple[InputSpec, ...]:
        """Returns the inputs in their shapes at the "min", "likely" or "max" sizes."""
        return tuple(spec.at(self.sizes[spec.name][which]) if spec.open_dims else spec for spec in self.inputs)

    @property
    def specs(self) -> tuple[InputSpec, ...]:
        """Inputs and outputs."""
        return self.inputs + self.outputs

    @property
    def weights(self) -> Path:
        return weights_path(self.path)

    @property
    def quantises(self) -> bool:
        """True if an op of the network quantises to integers."""
        return "top.quantize" in self.path.read_text(encoding="utf-8", errors="replace")

    @property
    def narrow_floats(self) -> str:
        """The narrowest 16-bit float type of the network's tensors: "bf16", "f16", or "" for none."""
        found = set(re.findall(r"tensor<[\dx]*(bf16|f16)>", self.path.read_text(encoding="utf-8", errors="replace")))
        return "bf16" if "bf16" in found else "f16" if found else ""


def rounded(model: TopModel, name: str, array: np.ndarray) -> np.ndarray:
    """Returns a tensor rounded to the type that the network declares for it; bfloat16 values are returned as
    float32."""
    kind = model.narrow.get(name) if array.dtype == np.float32 else None
    with np.errstate(over="ignore"):
        return array if kind is None else round_bfloat16(array) if kind == "bfloat16" else array.astype(kind)


PADDING = -1  # after the real entries of a padded output; 0 if the type cannot hold it


def pad(array: np.ndarray, axis: int, size: int) -> np.ndarray:
    """Returns the array padded along `axis` to the size of Tessera's outputs; unchanged if it is larger."""
    widths = [(0, max(0, size - array.shape[axis]) if d == axis else 0) for d in range(array.ndim)]
    holds_it = array.dtype.kind in "if"
    return np.pad(array, widths, constant_values=PADDING if holds_it else 0)


def pad_output(model: TopModel, name: str, array: np.ndarray) -> np.ndarray:
    """Returns a framework's output padded like the model's."""
    axis = model.padded_axes.get(name)
    return (
        array
        if axis is None
        else pad(array, axis, next(spec.shape[axis] for spec in model.outputs if spec.name == name))
    )


def pad_outputs(model: TopModel, outputs: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Returns all outputs of a framework padded like the model's."""
    return {name: pad_output(model, name, array) for name, array in outputs.items()}


def weights_path(mlir: str | Path) -> Path:
    """Returns the weights file of NAME_top.mlir: NAME_weights.safetensors beside it."""
    mlir = Path(mlir)
    return mlir.with_name(mlir.stem.removesuffix("_top") + "_weights.safetensors")


def names_weights(mlir: Path) -> bool:
    """Returns true if `mlir` is a module that refers to its own weights file."""
    try:
        return f'top.weight_file = "{weights_path(mlir).name}"'.encode(errors="surrogateescape") in mlir.read_bytes()
    except OSError:
        return False


def check_weights_free(mlir: Path) -> None:
    """Raises TesseraError if the weights of `mlir` would replace those of another module: NAME.mlir and NAME_top.mlir
    share one file name."""
    name = mlir.stem.removesuffix("_top")
    for other in (mlir.with_name(f"{name}.mlir"), mlir.with_name(f"{name}_top.mlir")):
        if other != mlir and names_weights(other):
            raise TesseraError(
                f"failed to write {mlir}: its weights would replace {weights_path(mlir)}, which {other} uses",
                hint="choose another name for --mlir, or remove the other model",
            )


def import_onnx(
    model_def: Path,
    mlir: Path,
    report: Report,
    *,
    model_name: str,
    input_shapes: str | None = None,
    dims: str | None = None,
    output_names: str | None = None,
    preprocess: Preprocess | None = None,
    input_values: Sequence[str] = (),
    states: Sequence[str] = (),
    memory_limit: float | None = None,
) -> tuple[TopModel, dict]:
    """Imports ONNX to `mlir` and its weights atomically. Returns the model and the importer's result.

    dims: ranges of open dims, as tessera-compile import takes them. input_values: "NAME=VALUE", inputs that become
    constants (see fixed_inputs). states: "INPUT=OUTPUT", "auto" or "none". memory_limit: in GiB, for each tensor and
    for all computed constants together.
    """
    require_file(model_def, "model")
    with staging_folder(mlir) as staging:
        staged = staging / mlir.name
        arguments = ["import", "--onnx", str(model_def), "--output", str(staged), "--model-name", model_name]
        arguments.append("--fixed-shapes")
        if input_shapes:
            arguments += ["--input-shapes", input_shapes]
        if dims:
            arguments += ["--dims", dims]
        for values in input_values:
            arguments += ["--input-values", values]
        for state in states:
            arguments += ["--state", state]
        if memory_limit is not None:
            arguments += ["--memory-limit", str(memory_limit)]
        if output_names:
            arguments += ["--output-names", output_names]
        if preprocess is not None:
            file = staging / "preprocess.json"
            file.write_text(preprocess.to_json() + "\n")
            arguments += ["--preprocess", str(file)]
        model, result = _import(arguments, mlir, staged, report, model_def)
    if assumed := assumed_shapes(result):
        chosen = ",".join(f"{name}={'x'.join(map(str, shape))}" for name, shape in assumed.items())
        report.say(
            f"the file leaves the batch size open, so it becomes 1; choose another one with --input_shapes: {chosen}"
        )
    return model, result


def _import(
    arguments: Sequence[str], mlir: Path, staged: Path, report: Report, model_def: Path
) -> tuple[TopModel, dict]:
    """Runs the compiler, which writes `staged` and its weights, and moves these to `mlir`."""
    result = run_compile(arguments, report, inputs=[model_def], reproducer_beside=mlir)
    model = _from_result(mlir, result)
    with interrupts.held():
        # The weights come first: the .mlir that names them must never exist without them, even if the process is
        # killed.
        if weights_path(staged).exists():
            weights_path(staged).replace(weights_path(mlir))
        staged.replace(mlir)
    return model, result


def import_decoder(
    checkpoint: Path,
    mlir: Path,
    report: Report,
    *,
    context: int | None = None,
    chunk: int = 512,
    dequantises: bool = False,
    all_logits: bool = False,
    language: Path | None = None,
    sequences: int | None = None,
    kv: str | None = None,
) -> tuple[TopModel, dict]:
    """Imports a language model to `mlir` and its weights atomically. Returns the model and the importer's result.

    language: the tokenizer and the chat template of an .onnx file, as JSON."""
    with staging_folder(mlir) as staging:
        staged = staging / mlir.name
        arguments = ["import-decoder", "--model", str(checkpoint), "--output", str(staged), "--chunk", str(chunk)]
        arguments += ["--context", str(context)] if context is not None else []
        arguments += ["--dequantise"] if dequantises else []
        arguments += ["--all-logits"] if all_logits else []
        arguments += ["--language", str(language)] if language is not None else []
        arguments += ["--sequences", str(sequences)] if sequences is not None else []
        arguments += ["--kv", kv] if kv is not None else []
        return _import(arguments, mlir, staged, report, checkpoint)


def assumed_shapes(result: Mapping[str, Any]) -> dict[str, list[int]]:
    """Returns the shapes of the inputs whose open batch became 1, from the importer's result."""
    return {str(entry["name"]): list(entry["shape"]) for entry in result.get("assumed", [])}


def fixed_inputs(result: Mapping[str, Any]) -> dict[str, np.ndarray]:
    """Returns the inputs that the importer turned into constants, with their values, from its result."""
    return {
        str(entry["name"]): np.frombuffer(base64.b64decode(entry["base64"]), entry["dtype"]).reshape(entry["shape"])
        for entry in result.get("fixed", [])
    }


def open_top(mlir: str | Path, report: Report) -> TopModel:
    """Reads the inputs and outputs of a NAME_top.mlir. Raises TesseraError if the module or its weights are invalid."""
    path = require_file(mlir, "model")
    return _from_result(path, run_compile(["info", "--mlir", str(path)], report, inputs=[path]))


def open_described(mlir: str | Path, report: Report) -> tuple[TopModel, dict]:
    """Combines open_top and describe."""
    info = describe(mlir, report)
    return _from_result(Path(mlir), info), info


def describe(mlir: str | Path, report: Report) -> dict:
    """Returns tessera-compile's description of a NAME_top.mlir: inputs, outputs, model_hash, model_name, and the names
    of all float tensors."""
    path = require_file(mlir, "model")
    return run_compile(["info", "--mlir", str(path), "--tensors"], report, inputs=[path])


def _from_result(path: Path, result: Mapping[str, Any]) -> TopModel:
    """Converts tessera-compile's description of a module. Raises TesseraError if the size of an input is open."""
    inputs, outputs = result["inputs"], result["outputs"]
    by_state = {entry["state"]: _spec(entry) for entry in outputs if "state" in entry}
    model = TopModel(
        path,
        tuple(_spec(entry) for entry in inputs if "state" not in entry),
        tuple(_spec(entry) for entry in outputs if "state" not in entry),
        {str(entry["name"]): str(entry["computed_by"]) for entry in outputs if "computed_by" in entry},
        {str(entry["name"]): int(entry["padded_axis"]) for entry in outputs if "padded_axis" in entry},
        dict(result.get("narrow", {})),
        {
            str(entry["name"]): {str(which): tuple(shape) for which, shape in entry["sizes"].items()}
            for entry in (*inputs, *outputs)
            if "sizes" in entry
        },
        tuple(
            State(
                _spec(entry),
                by_state[entry["state"]],
                base64.b64decode(entry["initial"]) if "initial" in entry else None,
                (entry["growth"]["axis"], entry["growth"]["capacity"]) if "growth" in entry else None,
            )
            for entry in inputs
            if "state" in entry
        ),
    )
    open_dims = [spec for spec in model.inputs if any(dim < 0 for dim in spec.shape)]
    if open_dims:
        raise TesseraError(
            "the model does not fix the sizes of its inputs (-1 is open): " + ", ".join(map(str, open_dims)),
            hint="import it again with model_transform and --input_shapes",
        )
    return model


def _spec(entry: Mapping[str, Any]) -> InputSpec:
    text, sizes = entry.get("preprocess"), entry.get("sizes")
    return InputSpec(
        str(entry["name"]),
        tuple(sizes["max"] if sizes else entry["shape"]),
        str(entry["dtype"]),
        Preprocess.from_json(str(text)) if text else None,
        Uses.from_json(entry["uses"]) if "uses" in entry else None,
        tuple(axis for axis, dim in enumerate(entry["shape"]) if dim < 0) if sizes else (),
        tuple(map(_range, sizes["min"], sizes["max"], sizes["divisor"])) if sizes else (),
    )


def _range(least: int, most: int, divisor: int) -> range:
    """Returns the multiples of `divisor` from `least` to `most`."""
    return range(least, most + 1, max(divisor if least != most else 1, 1))


def evaluate(
    model: TopModel, inputs: Mapping[str, np.ndarray], report: Report, every_tensor: bool = False
) -> safetensors_io.MappedTensors:
    """Returns the reference evaluator's outputs by ONNX name; with every_tensor, all named tensors. Tensors are in
    memory only while they are used."""
    return _evaluate(model, inputs, report, ["--all"] if every_tensor else [])


def evaluate_isolated(
    model: TopModel,
    inputs: Mapping[str, np.ndarray],
    reference: Mapping[str, np.ndarray],
    tables: Sequence[str],
    report: Report,
) -> safetensors_io.MappedTensors:
    """Returns, by tensor name, the result of every op of the model, quantised by `tables` (flags of tessera-compile),
    for the operands in `reference`: its own error without inherited errors."""
    with scratch_folder() as folder:
        wanted = folder / "wanted.safetensors"
        safetensors_io.save(wanted, Floats(reference))
        return _evaluate(model, inputs, report, [*tables, "--isolate", str(wanted)])


class Floats(Mapping[str, np.ndarray]):
    """The float32 tensors of a mapping, accessed one by one."""

    def __init__(self, tensors: Mapping[str, np.ndarray]) -> None:
        self._tensors = tensors
        self._names = [name for name in tensors if tensors[name].dtype == np.float32]

    def __getitem__(self, name: str) -> np.ndarray:
        return self._tensors[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


UNLIMITED = (1 << 63) - 1


@dataclass(frozen=True)
class Cone:
    """The origin of a tensor: the names of the ops that compute it, and of the tensors that they read."""

    ops: Sequence[str]
    reads: Sequence[str]


def evaluate_each(
    model: TopModel,
    inputs: Mapping[str, np.ndarray],
    operands: Mapping[str, np.ndarray],
    report: Report,
    budget: int = UNLIMITED,
    only: Collection[str] = (),
) -> tuple[safetensors_io.MappedTensors, dict[str, Cone]]:
    """Evaluates every tensor named in `operands` from the given tensors only, so that differences are not inherited
    between ops. Intermediate tensors that are not given are evaluated too.

    Returns the tensors and their cones. budget: elements and multiplications to spend, on the cheapest tensors first;
    the rest is left out. only: evaluate just these tensors, if any.
    """
    cones: dict[str, Cone] = {}
    with scratch_folder() as folder:
        given = folder / "operands.safetensors"
        safetensors_io.save(given, operands)
        flags = ["--all", "--operands", str(given), "--budget", str(budget)]
        flags += [f"--only={name}" for name in only]
        tensors = _evaluate(model, inputs, report, flags, cones)
    return tensors, cones


def _evaluate(
    model: TopModel,
    inputs: Mapping[str, np.ndarray],
    report: Report,
    flags: Sequence[str],
    cones: dict[str, Cone] | None = None,
) -> safetensors_io.MappedTensors:
    """Runs tessera-compile reference and returns the tensors. States that are not among the inputs have their initial
    values. cones: filled from its result."""
    with scratch_folder() as folder:
        in_file, out_file = folder / "in.safetensors", folder / "out.safetensors"
        narrow = [spec.name for spec in model.as_ports().inputs if spec.dtype == "bfloat16"]
        safetensors_io.save(in_file, {**model.initial_states(), **inputs}, bfloat16=narrow)
        arguments = ["reference", "--mlir", str(model.path), "--input", str(in_file), "--output", str(out_file)]
        files = [model.path, model.weights, in_file]
        result = run_compile([*arguments, *flags], report, inputs=files, reproducer_beside=".")
        if cones is not None:
            cones.update({name: Cone(**entry) for name, entry in result.get("cones", {}).items()})
        if not out_file.exists():
            raise TesseraError("tessera-compile reference wrote no output", ExitCode.INTERNAL)
        # The open file outlives the folder.
        return safetensors_io.MappedTensors(out_file)


def deploy(
    model: TopModel, bmodel: Path, report: Report, *, chip: str, quantize: str, extra: Sequence[str] = ()
) -> dict:
    """Compiles to `bmodel` atomically. Returns the compiler's result; if it is `known`, no `bmodel` is written."""
    with staging_folder(bmodel) as staging:
        staged = staging / bmodel.name
        result = run_compile(
            [
                "deploy",
                "--mlir",
                str(model.path),
                "--chip",
                chip,
                "--quantize",
                quantize,
                "--output",
                str(staged),
                *extra,
            ],
            report,
            inputs=[model.path, model.weights],
            reproducer_beside=bmodel,
        )
        if result.get("known"):
            return result
        if not staged.exists():
            raise TesseraError("tessera-compile deploy wrote no model", ExitCode.INTERNAL)
        staged.replace(bmodel)
    return result
