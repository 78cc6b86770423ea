# SPDX-License-Identifier: Apache-2.0
"""Checks each layer of a model for an NPU. A variant whose results leave the chip runs beside the reference, layer by
layer on the operands of the chip, and the first wrong layer is reported with its commands."""
from __future__ import annotations

import json
import re
from collections import Counter
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Iterator, Mapping, Sequence

import numpy as np

from .. import bmodel, compare, safetensors_io, top_model, verdict
from ..compile_driver import run_compile
from ..errors import ExitCode, TesseraError, usage_error
from ..files import require_file
from ..programs import output_of
from ..progress import Report
from ..scratch import scratch_folder

if TYPE_CHECKING:
    from ..cli.common import Context
    from ..reduction import Candidate
    from ..reduction_checks import Compiled

MODEL, REFERENCE, RECORD, INPUT = "layers.bmodel", "layers.mlir", "layers.json", "layers_input.safetensors"
FILES = (MODEL, REFERENCE, "layers_weights.safetensors", RECORD, INPUT)
COMMANDS_SHOWN = 6
# Differences by summation order on equal operands, relative to the reference's range; smaller types may round them to
# the next number.
ROUNDING = {"float16": compare.Tolerance(None, None, 2.0**-9), "bfloat16": compare.Tolerance(None, None, 2.0**-6)}
FLOAT32_ROUNDING = compare.Tolerance(None, None, 1e-4)
MOST_ADDRESSES = 1 << 24  # largest number of a store's addresses that are searched

Commands = Sequence[tuple[int, int, int, str]]


@dataclass
class Layer:
    """Findings about a tensor computed by a layer. own: comparison with the reference on the same operands. whole:
    comparison with the reference's own run of the network. nodes, op, stream and layers are set for NPU layers."""

    tensor: str
    nodes: list[str]
    op: str = "host"
    stream: int = -1
    layers: list[int] = field(default_factory=list)
    region: str = ""
    offset: int = 0
    own: compare.Row | None = None
    whole: compare.Row | None = None
    equal: bool = False  # own: bit-equal
    wrong: bool = False
    elements: int = 0  # number of elements that differ
    first: tuple[int, ...] = ()  # index of the first of them
    commands: list[str] = field(default_factory=list)  # of a wrong layer

    @property
    def where(self) -> str:
        return f"{self.stream}.{'+'.join(map(str, self.layers))}" if self.layers else "host"

    @property
    def name(self) -> str:
        return "+".join(dict.fromkeys(self.nodes)) or self.tensor


@dataclass
class Looked:
    """All layers in execution order. unseen: tensors of the reference that are inside other layers."""

    layers: list[Layer]
    unseen: list[str]
    outputs: dict[str, np.ndarray]

    @property
    def wrong(self) -> list[Layer]:
        return [layer for layer in self.layers if layer.wrong]

    def as_dict(self) -> dict[str, Any]:
        def row(of: compare.Row | None) -> dict[str, object] | None:
            return compare.row_dict(of) if of else None

        info = [
            {**asdict(layer), "own": row(layer.own), "whole": row(layer.whole), "first": list(layer.first)}
            for layer in self.layers
        ]
        return {"layers": info, "unseen": self.unseen, "first_wrong": self.wrong[0].tensor if self.wrong else None}


def npu_perf(model: str | Path, *arguments: str) -> str:
    """Returns what the program npu-perf prints about a .bmodel."""

    def error(text: str, code: ExitCode) -> TesseraError:
        return usage_error(text) if text.startswith("--chip-set") else TesseraError(f"{model}: {text}")

    return output_of("npu-perf", str(model), *arguments, error=error)


def _numbered_commands(model: Path) -> Commands:
    """Returns the commands with numbers: of the program in the stage, of the layer in the program, of the command in
    the program."""
    split = (line.split("\t", 1) for line in npu_perf(model, "--commands", "--numbered").splitlines())
    return [(*map(int, numbers.split()), text) for numbers, text in split]  # type: ignore[misc]


def check(
    context: "Context",
    model: top_model.TopModel,
    net: bmodel.Net,
    given: Mapping[str, np.ndarray],
    flags: Sequence[str],
    tolerance: compare.Tolerance | None,
) -> None:
    """Checks each layer as Family.check_layers does."""
    args, report, result = context.args, context.report, context.result["model"]
    if "plan" not in result:
        report.say(f"no layer runs on {args.chip}: the tensors above are complete")
        return
    with scratch_folder() as scratch:
        folder = context.outputs.folder(args.layers) if args.layers else scratch
        stored = net.stored(given)
        with report.extra_step("compile with visible layers") as step:
            write(folder, model, report, result, args.chip, args.quantize, flags)
            safetensors_io.save(folder / INPUT, stored)
            step.note = args.layers or ""
        with report.extra_step("check each layer") as step:
            looked = look(folder, report, tolerance)
            step.note = f"{len(looked.layers)} tensors, {len(looked.wrong)} wrong"
        context.result["layers"] = looked.as_dict()
        print_report(report, looked, args.compare_all)
        require_right(looked, args.model)
        require_same(looked, net.run_stored(stored, lambda name, array: None), args.model)


def against_reference(candidate: "Candidate", folder: Path, how: "Compiled", report: Report) -> str:
    """Compares each layer of a candidate of `tessera reduce` with the reference on the chip's operands."""
    model, info, flags = how.deploy(candidate, folder, report)
    if "plan" not in info:  # no layer runs on the chip
        return ""
    net, shown = bmodel.open_net(folder / "m.bmodel"), folder / "layers"
    stored = net.stored(candidate.inputs)
    shown.mkdir()
    write(shown, model, report, info, how.chip, how.quantize, flags)
    safetensors_io.save(shown / INPUT, stored)
    looked = look(shown, report)
    outputs = net.run_stored(stored, lambda name, array: None)
    if not looked.layers:
        return ""
    try:
        require_right(looked, "the model")
        require_same(looked, outputs, "the model")
    except TesseraError as error:
        return error.message.split("(")[0]
    return ""


def write(
    folder: Path,
    model: top_model.TopModel,
    report: Report,
    result: Mapping[str, Any],
    chip: str,
    quantize: str,
    flags: Sequence[str],
) -> None:
    """Writes the FILES of the observing variant except INPUT to `folder`. made: the compiler's result for the model
    itself, whose plan the variant follows, so that its commands are the model's plus stores."""
    with scratch_folder() as scratch:
        plan = scratch / "plan.json"
        plan.write_text(json.dumps(result["plan"]))
        extra = [*flags, "--plan", str(plan), "--keep-layers", str(folder / REFERENCE)]
        info = top_model.deploy(model, folder / MODEL, report, chip=chip, quantize=quantize, extra=extra)
    record = {"chip": chip, "quantize": quantize, "bit_equal_except": info.get("bit_equal_except")}
    (folder / RECORD).write_text(json.dumps({**record, "kept": info.get("kept", [])}, indent=1) + "\n")


def look(folder: Path, report: Report, tolerance: compare.Tolerance | None = None) -> Looked:
    """Runs the variant in `folder`, whose FILES model_deploy wrote, and judges its layers. A layer with guaranteed bits
    must equal the reference's result on the same operands. Any other layer must be within `tolerance` of it (default:
    ROUNDING), or differ in few elements by one quantisation step."""
    for name in FILES:
        if name != FILES[2]:
            require_file(folder / name, "file of --layers")
    record = json.loads((folder / RECORD).read_text())
    inputs = safetensors_io.load(folder / INPUT)
    with scratch_folder() as scratch:
        result, outputs = _run_variant(folder, inputs)
        whole = _evaluate(folder, scratch / "whole.safetensors", report)
        narrow = _bfloat16(scratch / "whole.safetensors")
        operands = _Operands(result, whole)
        safetensors_io.save(scratch / "operands.safetensors", operands, bfloat16=narrow & operands.names)
        own = _evaluate(folder, scratch / "own.safetensors", report, scratch / "operands.safetensors")
        looked = Looked([], [name for name in whole if name not in operands.names], outputs)
        known = {entry["tensor"]: entry for entry in record["kept"]}
        for name in operands:
            layer = Layer(**known.get(name, {"tensor": name, "nodes": []}))
            promised = _is_promised(layer, record["bit_equal_except"], own[name].dtype)
            dtype = "bfloat16" if name in narrow else own[name].dtype.name
            limit = tolerance if tolerance is not None else ROUNDING.get(dtype, FLOAT32_ROUNDING)
            _judge(layer, operands[name], own[name], limit, promised)
            layer.whole = compare.compare_tensor(name, operands[name], whole[name], limit)
            looked.layers.append(layer)
        if looked.wrong:
            numbered = _numbered_commands(folder / MODEL)
            for layer in looked.wrong:
                layer.commands = _commands(layer, operands[layer.tensor], own[layer.tensor], numbered)
    return looked


class _Operands(Mapping[str, np.ndarray]):
    """The run's versions of the reference's tensors, in the reference's shapes; a reshaped tensor has the same
    elements. Each is in memory only while it is used."""

    def __init__(self, result: Mapping[str, np.ndarray], whole: Mapping[str, np.ndarray]) -> None:
        self._made, self._whole = result, whole
        self.names = {
            name
            for name, array in result.items()
            if name in whole and array.dtype == whole[name].dtype and array.size == whole[name].size
        }

    def __getitem__(self, name: str) -> np.ndarray:
        return self._made[name].reshape(self._whole[name].shape)

    def __iter__(self) -> Iterator[str]:
        return (name for name in self._whole if name in self.names)

    def __len__(self) -> int:
        return len(self.names)


def _run_variant(folder: Path, inputs: Mapping[str, np.ndarray]) -> tuple[safetensors_io.Spool, dict[str, np.ndarray]]:
    """Returns the variant's tensors in the order of computation, and its outputs."""
    result, names = safetensors_io.Spool(), set()

    def take(name: str, array: np.ndarray) -> None:
        if name not in names:
            names.add(name)
            result.put(name, array)

    return result, bmodel.open_net(folder / MODEL).run_stored(inputs, take)


def _evaluate(folder: Path, output: Path, report: Report, operands: Path | None = None) -> Mapping[str, np.ndarray]:
    """Evaluates the device ops in the reference; returns the results by tensor name."""
    arguments = ["reference", "--mlir", str(folder / REFERENCE), "--input", str(folder / INPUT)]
    arguments += ["--output", str(output), "--all", *(["--operands", str(operands)] if operands else [])]
    run_compile(arguments, report, inputs=[folder / REFERENCE, folder / INPUT], reproducer_beside=".")
    return safetensors_io.load(output)


def _bfloat16(path: Path) -> set[str]:
    """Returns the names of the bfloat16 tensors in a file."""
    with open(path, "rb") as file:
        header = json.loads(file.read(int.from_bytes(file.read(8), "little")))
    return {name for name, entry in header.items() if entry.get("dtype") == "BF16"}


def _is_promised(layer: Layer, exceptions: Sequence[str] | None, dtype: np.dtype) -> bool:
    """Returns true if the compiler guarantees the layer's bits on all engines; for layers on the host this is known
    only for integers."""
    if exceptions is None or not (layer.layers or dtype.kind in "biu"):
        return False
    inexact = {node for name in exceptions for node in name.split("+")}
    return not inexact.intersection("+".join(layer.nodes).split("+"))


def _judge(layer: Layer, got: np.ndarray, right: np.ndarray, limit: compare.Tolerance, promised: bool) -> None:
    layer.own = compare.compare_tensor(layer.tensor, got, right, limit)
    if got.shape != right.shape:
        layer.wrong = True
        return
    differs = (got != right) & ~((got != got) & (right != right))
    layer.elements = int(np.count_nonzero(differs))
    layer.equal = not layer.elements
    if layer.elements:
        layer.first = tuple(int(index) for index in np.unravel_index(int(np.argmax(differs)), differs.shape))
    layer.wrong = not layer.equal and (promised or not (layer.own.passed or verdict.one_step(got, right)))


def _commands(layer: Layer, got: np.ndarray, right: np.ndarray, numbered: Commands) -> list[str]:
    """Returns the commands that compute the differing elements if addresses identify them, else all commands of the
    layer. Numbers are positions in the program."""
    mine = [each for each in numbered if each[0] == layer.stream and each[1] in layer.layers]
    if got.shape != right.shape or not mine:
        return [f"{number}: {text}" for _, _, number, text in mine]
    wanted = layer.offset + np.flatnonzero(got != right) * _item_bytes(got, mine, layer.region)
    found: dict[int, str] = {}
    for index, (_, _, number, text) in enumerate(mine):
        if _stores(text, layer.region, wanted):
            source = re.search(r" x=(local:0x[0-9a-f]+/l\d+)/", text)
            makers = [(n, t) for _, _, n, t in mine[:index] if source and f" y={source[1]}/" in t]
            found.update(makers[-1:] if makers else [])
            found[number] = text
    if not any(not text.startswith("copy") for text in found.values()):  # the tile begins before the stored part
        found.update((n, t) for _, _, n, t in mine if not t.startswith(("copy", "fill")))
    return [f"{number}: {text}" for number, text in sorted(found.items())]


def _item_bytes(array: np.ndarray, mine: Commands, region: str) -> int:
    """Returns the size of an element outside the chip; bfloat16 is returned as float32."""
    stored = next((t for *_, t in mine if re.search(rf" y={region}:\S+/bf16/", t)), None)
    return 2 if stored and array.dtype == np.float32 else array.dtype.itemsize


def _stores(text: str, region: str, wanted: np.ndarray) -> bool:
    """Returns true if a command writes one of these bytes of the region."""
    found = re.search(rf" y={region}:0x([0-9a-f]+)/l\d+/\w+/([-\d,]+) .*shape=([\d,]+)", text)
    if not found:
        return False
    sizes, strides = ([int(word) for word in part.split(",")] for part in (found[3], found[2]))
    if np.prod(sizes) > MOST_ADDRESSES:
        return True
    addresses = np.array([int(found[1], 16)])
    for size, stride in zip(sizes, strides):
        addresses = np.unique(np.add.outer(addresses, np.arange(size) * stride))
    return bool(np.isin(wanted, addresses).any())


def print_report(report: Report, looked: Looked, every: bool = True) -> None:
    """Prints the table and a summary."""
    rows = [("layer", "ONNX nodes", "op", "tensor", "cos", "max|e|", "own max|e|", "status")]
    for layer in looked.layers:
        own, whole = layer.own, layer.whole
        assert own and whole
        first = looked.wrong and layer is looked.wrong[0]
        state = "equal" if layer.equal else "wrong" if layer.wrong else "rounding"
        rows.append(
            (
                layer.where,
                _cut(layer.name),
                layer.op,
                _cut(layer.tensor),
                f"{whole.cosine:.7f}",
                f"{whole.max_abs:.2e}",
                f"{own.max_abs:.2e}",
                f"{state}  <- first" if first else state,
            )
        )
    shown = rows if every else [rows[0], *(row for row in rows[1:] if row[-1].startswith("wrong"))]
    if len(shown) > 1:
        report.say(compare.align(shown, right=(4, 5, 6)))
    states = Counter("equal" if layer.equal else "wrong" if layer.wrong else "rounding" for layer in looked.layers)
    report.say(
        f"{len(looked.layers)} layer tensors, each compared with the reference on the same operands: "
        f"{states['equal']} bit-equal, {states['rounding']} equal up to rounding, {states['wrong']} wrong;  "
        f"{len(looked.unseen)} more are inside layers"
    )


def _cut(text: str, longest: int = 36) -> str:
    return text if len(text) <= longest else "…" + text[-(longest - 1) :]


def require_right(looked: Looked, what: str) -> None:
    """Raises TesseraError with exit code 3, the first wrong layer and its commands."""
    if not looked.layers:
        raise TesseraError(f"{what}: none of its layers is visible")
    if not looked.wrong:
        return
    layer = looked.wrong[0]
    assert layer.own
    more = len(layer.commands) - COMMANDS_SHOWN
    place = f"layer {layer.where}, {layer.op}" if layer.layers else "on the host"
    raise TesseraError(
        f"{what}: the first wrong layer is '{layer.name}' ({place}, tensor '{layer.tensor}'): "
        f"{layer.elements} elements differ, the first at {list(layer.first)}; {compare.describe(layer.own)}",
        ExitCode.ACCURACY,
        details=[
            *(f"command {text}" for text in layer.commands[:COMMANDS_SHOWN]),
            *([f"… and {more} more"] if more > 0 else []),
        ],
        hint="docs/isa.md describes the commands; 'model_tool disasm' lists all of the model's" if layer.layers else "",
    )


def require_same(looked: Looked, outputs: Mapping[str, np.ndarray], what: str) -> None:
    """Raises TesseraError if the model's outputs differ from its variant's, whose layers are all correct."""
    for name, array in outputs.items():
        if not np.array_equal(array, looked.outputs[name], equal_nan=array.dtype.kind == "f"):
            raise TesseraError(
                f"{what}: every layer is correct if results leave the chip, but output '{name}' differs otherwise: "
                "a tensor kept in local memory is wrong",
                ExitCode.ACCURACY,
                hint="check whether --opt 0, which keeps nothing there, differs too",
            )
