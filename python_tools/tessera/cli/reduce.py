# SPDX-License-Identifier: Apache-2.0
"""tessera reduce: finds the smallest ONNX model and inputs that still show a failure."""
from __future__ import annotations

import argparse
import sys
from pathlib import Path

from .. import inputs, onnx_runner, reduction_checks
from ..errors import TesseraError, usage_error
from ..families import EXAMPLE, HOST, of_chip, simulated
from ..files import atomic_write, require_file, save_npz, scratch_folder
from ..inputs import InputSpec
from ..onnx_runner import OnnxModel
from ..progress import Report
from ..reduction import Candidate, Network, Reducer
from ..targets import targets
from .common import Context, Parser

EPILOG = f"""examples:
  tessera reduce model.onnx --mode {HOST}-vs-ort
  tessera reduce model.onnx --mode {simulated().name}-vs-reference --chip {EXAMPLE} --quantize INT8 --input cat.npz
  tessera reduce model.onnx --check "python3 mine.py {{model}} {{inputs}}" -o small.onnx"""
SECONDS = 600.0


def add_verb(verbs: "argparse._SubParsersAction[Parser]") -> Parser:
    """Adds 'reduce' to the verbs of `tessera`."""
    sub = verbs.add_parser(
        "reduce",
        help="reduce a model to the smallest part that still shows a failure",
        allow_abbrev=False,
        description="Reduces an ONNX model by bisection and delta debugging to the fewest nodes and simplest inputs "
        "that still show a failure. Names stay; inputs of the remaining nodes are recorded from a run in onnxruntime.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    sub.add_argument("model", help="the .onnx file")
    shown = sub.add_mutually_exclusive_group(required=True)
    shown.add_argument(
        "--check",
        metavar="CMD",
        help="a command that fails (exit code not 0) if the failure shows; {model} and {inputs} stand for the .onnx "
        "and .npz files (default: its last two arguments)",
    )
    shown.add_argument(
        "--mode",
        choices=reduction_checks.modes(),
        help="; ".join(f"{mode}: {each.help}" for mode, each in reduction_checks.modes().items()),
    )
    sub.add_argument("--chip", metavar="CHIP", help=f"chip for --mode (default: {_defaults('chip')})")
    sub.add_argument(
        "--quantize",
        type=str.upper,
        metavar="PRECISION",
        help=f"precision for --mode (default: {_defaults('quantize')}); ranges come from the one input",
    )
    sub.add_argument("--input", metavar="FILE", help=".npz, .npy, or NAME=FILE,… (default: seeded random)")
    sub.add_argument("--input_shapes", metavar="SHAPES", help="fixes dynamic dims: x=1x3x224x224,y=1x8")
    sub.add_argument(
        "--seconds",
        type=float,
        default=SECONDS,
        help="time limit, after which the smallest part found so far is written (default: %(default)g)",
    )
    sub.add_argument(
        "-o",
        "--output",
        metavar="FILE",
        help="output, the .onnx; the inputs are written to FILE_inputs.npz (default: NAME_reduced.onnx)",
    )
    return sub


def _defaults(field: str) -> str:
    """Describes the default of a flag by mode."""
    values = {mode: getattr(each, field) for mode, each in reduction_checks.modes().items()}
    usual = values[reduction_checks.DEPLOY_FAILS]
    others = [f"{value} for {mode}" for mode, value in values.items() if value != usual]
    return ", ".join([*others, f"else {usual}"])


def work(context: Context) -> None:
    args, report = context.args, context.report
    path = require_file(args.model, "model")
    output = Path(args.output or f"{path.stem}_reduced.onnx")
    if output.suffix != ".onnx":
        raise usage_error(f"--output {output}: the name must end in .onnx")
    if not args.seconds > 0:
        raise usage_error(f"--seconds {args.seconds:g}: must be more than 0")
    report.total = 2
    context.outputs.path(output)  # fails at once on an unwritable path
    with scratch_folder() as folder:
        with report.step("run it in onnxruntime") as step:
            network = _open(context, path, folder)
            count = len(network.model.graph.node)
            step.note = f"{count} nodes, {len(network.values)} tensors"
        check = _check(context, network)
        with report.step("reduce") as step:
            reducer = Reducer(network, check, args.seconds)
            found = reducer.run()
            step.note = f"{reducer.checks} candidates"
    if found is None:
        raise _not_shown(path, check, args.check is not None)
    if reducer.out_of_time:
        report.warn(f"not finished within {args.seconds:g} seconds: raise --seconds to reduce further")
    if not reducer.is_stable:
        report.warn("the check did not fail when repeated: it is not deterministic, and neither is the result")
    _write(context, found, output, count, check.seen, reducer.checks)


def _not_shown(path: Path, check: reduction_checks.Check, is_command: bool) -> TesseraError:
    """Returns the error that explains why nothing was reduced."""
    if check.not_judged:
        hint = "raise --seconds" if is_command else "use --mode deploy-fails for models that fail to compile"
        return TesseraError(f"{path} cannot be judged: {check.not_judged}", hint=hint)
    return TesseraError(
        f"{path} does not show the failure on this input",
        hint="pass an input that shows it with --input; the modes of --mode check different failures",
    )


def _open(context: Context, path: Path, folder: Path) -> Network:
    """Opens the network with its values; open dims are fixed by --input_shapes."""
    args = context.args
    if not onnx_runner.available():
        raise TesseraError("reducing a model requires onnxruntime", hint="pip install onnx onnxruntime")
    specs, given = [], OnnxModel(path, optimise=False).inputs
    wanted = _shapes(args.input_shapes, [spec.name for spec in given])
    for spec in given:
        shape = wanted.get(spec.name, spec.shape)
        if any(dim is None for dim in shape):
            raise TesseraError(f"the model does not fix the size of input {spec}", hint="pass --input_shapes")
        specs.append(InputSpec(spec.name, tuple(int(dim or 0) for dim in shape), spec.dtype))
    values = inputs.load_inputs(args.input, specs) if args.input else inputs.random_inputs(specs)
    return Network.open(path, values)


def _shapes(text: str | None, names: list[str]) -> dict[str, tuple[int, ...]]:
    """Parses --input_shapes; inputs that it does not name keep their shape in the file."""
    shapes: dict[str, tuple[int, ...]] = {}
    for part in filter(None, (text or "").split(",")):
        name, equals, dims = part.rpartition("=")
        name = name.strip() if equals or len(names) != 1 else names[0]
        try:
            shapes[name] = tuple(map(int, dims.split("x")))
        except ValueError as error:
            raise usage_error(f"--input_shapes {text}: expected NAME=1x3x224x224,…, not '{part}'") from error
        if name not in names:
            raise usage_error(f"--input_shapes {text}: the inputs are {', '.join(names)}, not '{name}'")
    return shapes


def _check(context: Context, network: Network) -> reduction_checks.Check:
    args = context.args
    if args.check is not None:
        if args.chip or args.quantize:
            raise usage_error("--chip and --quantize require --mode; the command of --check compiles by itself")
        return reduction_checks.of_command(args.check, args.seconds)
    mode = reduction_checks.modes()[args.mode]
    chip = args.chip or mode.chip
    targets().require_chip(chip)
    if chip.endswith(".json"):
        require_file(chip, "chip description")
    family = of_chip(mode.chip)
    if family.is_simulated and of_chip(chip) is not family:
        raise usage_error(f"--mode {args.mode}: --chip '{chip}' is not an {family.chip}")
    how = reduction_checks.Compiled(chip, args.quantize or mode.quantize, network.values)
    targets().precision(how.quantize)
    return reduction_checks.of_mode(mode, how, Report(1, sys.stderr, quiet=True))


def _write(context: Context, found: Candidate, output: Path, before: int, seen: str, checks: int) -> None:
    report, beside = context.report, output.with_name(f"{output.stem}_inputs.npz")
    with atomic_write(context.outputs.path(output)) as file:
        file.write(found.model.SerializeToString())
    save_npz(context.outputs.path(beside), found.inputs)
    nodes = [{"name": node.name, "op": node.op_type, "outputs": list(node.output)} for node in found.model.graph.node]
    context.result["reduced"] = {
        "nodes": nodes,
        "nodes_before": before,
        "checks": checks,
        "failure": seen,
        "inputs": {name: list(value.shape) for name, value in found.inputs.items()},
        "model": str(output),
        "input_file": str(beside),
    }
    report.say(f"{seen}\n{len(nodes)} of {before} nodes show it:")
    for node in nodes:
        report.say(f"  {node['op']:<20} {node['name'] or node['outputs'][0]}")
    report.finish([f"the model is {output}, its inputs are {beside}"])
