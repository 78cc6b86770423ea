# SPDX-License-Identifier: Apache-2.0
"""The command model_tool."""
from __future__ import annotations

import argparse
import math
from pathlib import Path
from typing import Any, Iterable, Sequence

from .. import advice, compare, exactness, families
from ..errors import usage_error
from ..families import stages_of
from ..files import require_file
from ..preprocess import Preprocess
from ..programs import dump, read_model
from ..sizes import describe, evaluate, free_sizes, shape_at, shape_text
from ..stages import combine as combine_files
from .common import Context, Parser, add_chip_set, run_command

NAME = "model_tool"
PURPOSE = "Inspects a .bmodel file (info, check, disasm, perf) and combines several into one (combine)."
EPILOG = """examples:
  model_tool info m.bmodel            shows inputs, outputs, memory, steps
  model_tool check m.bmodel           checks every byte against its hash; exit code 1 if one differs
  model_tool disasm m.bmodel conv     shows the kernels whose name contains 'conv'
  model_tool perf m.bmodel --report reports/    reports time and traffic
  model_tool combine m_224.bmodel m_320.bmodel -o m.bmodel    one file for both sizes, with weights stored once"""


def parse(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = Parser(NAME, PURPOSE, EPILOG)
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="VERB")
    for name, text in (
        ("info", "show inputs, outputs, memory and steps"),
        ("check", "check every hash and digest of the file"),
        ("disasm", "show the machine code of kernels, or the commands of a chip"),
        ("perf", "report estimated time, what bounds it, traffic and memories, without a run"),
        ("layers", "compare each layer from model_deploy --layers with the reference; report the first wrong one"),
        ("combine", "combine files of one network for several shapes or chips; equal constants are stored once"),
    ):
        sub = verbs.add_parser(name, help=text, description=text, allow_abbrev=False)
        if name == "combine":
            sub.add_argument(
                "models",
                nargs="+",
                metavar="model",
                help="the .bmodel files; of stages for the same shapes, the runtime uses the first that can run",
            )
            sub.add_argument("-o", "--output", required=True, metavar="FILE", help="output, the .bmodel")
        elif name == "layers":
            sub.add_argument("folder", metavar="DIR", help="the folder, whose layers.bmodel is run on the input there")
        else:
            sub.add_argument("model", help="the .bmodel file")
        sub.add_common()
        if name == "info":
            sub.add_argument("--steps", action="store_true", help="list every step")
            sub.add_argument("--tensors", action="store_true", help="list every tensor")
        if name == "perf":
            sub.add_argument("--report", metavar="DIR", help=f"write {', '.join(families.simulated().files)} to DIR")
            add_chip_set(sub, "report for a changed chip")
            sub.add_argument(
                "--counts", metavar="FILE", help="for GPUs: counts from the PTX machine (PTX_MACHINE_COUNTS=FILE)"
            )
        if name == "disasm":
            sub.add_argument(
                "kernel",
                nargs="?",
                default="",
                help="show only kernels whose name, or commands whose line, contains this",
            )
    return parser.parse_args(argv)


def size(count: int) -> str:
    """Formats a number of bytes for people."""
    value, unit = float(count), "B"
    for unit in ("B", "KiB", "MiB", "GiB"):
        if value < 1024 or unit == "GiB":
            break
        value /= 1024
    return f"{count} B" if unit == "B" else f"{value:.2f} {unit}"


def info(context: Context) -> None:
    args, say = context.args, context.report.say
    path = require_file(args.model, "model")
    model = read_model(path)
    context.result["model"] = model
    say(f"{path}: '{model.get('name', '')}', {size(path.stat().st_size)}, made by {model.get('producer', 'unknown')}")
    for segment in model.get("segments", []):
        say(f"  segment {segment['kind']:<9} {size(segment['bytes']):>12} at {segment['offset']}")
    if (exceptions := exactness.of_file(model)) is not None:
        say(f"  {exactness.describe(exceptions)}")
    for prop in model.get("properties", []):
        if prop["key"] in ("bit_equal", "bit_equal_except"):
            continue
        say(f"  {prop['key']}: {prop.get('value', '')}")
    known: set[tuple[int, int]] = set()
    staged = [(net, stage) for net in model.get("nets", []) for stage in net.get("stages", [])]
    for number, (net, stage) in enumerate(staged):
        chip = model["chips"][stage["chip"]]
        say(f"\nnet '{net['name']}' stage {number} '{stage.get('name', '')}' for {chip['name']}")
        say_tensors(context, stage)
        say_sizes(context, stage)
        constants = {
            (t["place_index"], t["offset"]): t["bytes"]
            for t in stage.get("tensors", [])
            if t["place"] == "Segment" and t["view_of"] < 0
        }
        shared = sum(count for place, count in constants.items() if place in known)
        known |= constants.keys()
        types = _by_type(
            {
                (t["place_index"], t["offset"]): (t["dtype"], t["bytes"])
                for t in stage.get("tensors", [])
                if t["place"] == "Segment" and t["view_of"] < 0
            }.values()
        )
        say(
            f"  constants: {size(sum(constants.values()))}"
            + (f" ({', '.join(f'{dtype} {size(count)}' for dtype, count in types)})" if types else "")
            + (f", {size(shared)} of them shared with stages above" if shared else "")
        )
        for index, space in enumerate(stage.get("workspaces", [])):
            say(
                f"  workspace {index} {space['memory']}: {size(space['bytes'])} (lower bound "
                f"{size(space['lower_bound'])})"
            )
        if stage["state_bytes"]:
            say(f"  state: {size(stage['state_bytes'])}")
        for subnet in stage.get("subnets", []):
            say_subnet(context, stage, subnet)


def _by_type(entries: Iterable[tuple[str, int]]) -> list[tuple[str, int]]:
    """Returns sums by type, the largest first."""
    total: dict[str, int] = {}
    for dtype, count in entries:
        total[dtype] = total.get(dtype, 0) + count
    return sorted(total.items(), key=lambda entry: -entry[1])


def say_tensors(context: Context, stage: dict[str, Any]) -> None:
    rows: list[tuple[str, ...]] = [("", "name", "type", "shape", "notes")]
    tensors = stage.get("tensors", [])
    states = [slot for slot, t in enumerate(tensors) if t["role"] == "State" and t["view_of"] < 0]
    for role, slots in (("input", stage.get("inputs", [])), ("output", stage.get("outputs", [])), ("state", states)):
        for slot in slots:
            tensor = tensors[slot]
            note = f"'{tensor['onnx_names'][0]}' of the run before" if slot in states and tensor["onnx_names"] else ""
            if tensor.get("length", -1) >= 0:
                length = stage["dims"][tensor["length"]]
                note += f"; '{length['name']}' indices of dim {tensor['length_axis']} are in use"
            if tensor.get("preprocess"):
                note = Preprocess.from_json(tensor["preprocess"]).describe()
            if quant := tensor.get("quant"):
                zero_points = _some(quant.get("zero_points") or [0])
                note += f"{'; ' if note else ''}scale {_some(quant['scales'])}, zero point {zero_points}"
            rows.append((role, tensor["name"], tensor["dtype"], shape_text(tensor, stage), note))
    context.report.say(_indent(compare.align(rows)))
    if context.args.tensors:
        rows = [("slot", "name", "type", "shape", "layout", "role", "offset", "bytes")]
        for slot, t in enumerate(tensors):
            layout = t["layout"] if t["layout"] != "ChannelBlocked" else f"c{t['block']} axis {t['block_axis']}"
            rows.append(
                (
                    str(slot),
                    t["name"],
                    t["dtype"],
                    shape_text(t, stage),
                    layout,
                    t["role"],
                    str(t["offset"]),
                    str(t["bytes"]),
                )
            )
        context.report.say(_indent(compare.align(rows, right=(6, 7))))


def say_sizes(context: Context, stage: dict[str, Any]) -> None:
    """Reports the sizes known at run time, and how they change the memory of inputs and outputs."""
    free = free_sizes(stage)
    for dim in free:
        context.report.say(f"  size {describe(dim)}")
    if not free:
        return
    ports = [stage["tensors"][slot] for slot in (*stage.get("inputs", []), *stage.get("outputs", []))]
    largest = evaluate(stage, {})
    counts = []
    for default in ("min", "likely", "max"):
        values = evaluate(stage, {}, default)
        counts.append(
            sum(
                port["bytes"] * math.prod(shape_at(port, values)) // max(math.prod(shape_at(port, largest)), 1)
                for port in ports
            )
        )
    least, usual, most = map(size, counts)
    context.report.say(f"  inputs and outputs: {least} for the smallest sizes, {usual} usually, {most} at most")


def _some(values: list) -> str:
    return f"{values[0]:g}" + (f" and {len(values) - 1} more" if len(values) > 1 else "")


def say_subnet(context: Context, stage: dict[str, Any], subnet: dict[str, Any]) -> None:
    plan, kernels, tensors = subnet.get("plan", []), subnet.get("kernels", []), stage.get("tensors", [])
    reason = f": {subnet['reason']}" if subnet.get("reason") else ""
    needs = dump("--cpu-features", str(subnet["cpu_features"])).strip() if subnet["cpu_features"] else ""
    context.report.say(
        f"  subnet '{subnet['name']}' {subnet['kind']} {subnet.get('isa', '')}: "
        f"{len(plan)} steps, {len(kernels)} kernels{reason}"
    )
    results = _by_type((tensors[slot]["dtype"], 1) for step in plan for slot in step.get("writes", [])[:1])
    if kernels and results:
        context.report.say("    results of the steps: " + ", ".join(f"{count} {dtype}" for dtype, count in results))
    if needs:
        context.report.say(f"    required CPU features: {needs}")
    if not context.args.steps:
        return
    rows = [("step", "kernel", "tiles", "device op", "ONNX nodes")]
    for index, step in enumerate(plan):
        op, debug = step["op"], step.get("debug", {})
        launch = step.get("op_type") == "LaunchDef"
        name = kernels[op["kernel"]]["symbol"] if launch else step.get("op_type", "").removesuffix("Def")
        rows.append(
            (
                str(index),
                name,
                str(op["tile_count"]) if launch else "",
                debug.get("device_op", ""),
                ", ".join(debug.get("onnx_nodes", [])),
            )
        )
    context.report.say(_indent(compare.align(rows, right=(2,))))


def _indent(text: str) -> str:
    return "\n".join(f"  {line}" for line in text.splitlines())


def check(context: Context) -> None:
    path = require_file(context.args.model, "model")
    dump("--check", str(path))
    model = read_model(path)
    digests = []
    for index, segment in enumerate(model.get("segments", [])):
        digest = bytes(segment.get("sha256", [])).hex()
        digests.append({"segment": index, "kind": segment["kind"], "bytes": segment["bytes"], "sha256": digest})
        context.report.say(f"segment {index} {segment['kind']:<9} {segment['bytes']:>12} bytes  sha256 {digest}")
    context.result["segments"] = digests
    context.report.say(f"{path}: {path.stat().st_size} bytes, structure and all hashes are correct")


def disasm(context: Context) -> None:
    path, text = require_file(context.args.model, "model"), context.args.kernel
    model = read_model(path)
    found = {families.of_subnet(model, subnet).name for stage in stages_of(model) for subnet in stage["subnets"]}
    used = [family for family in families.every() if family.name in found]
    # The code of the chip first, then that of its host.
    shown = [family.disassemble(context, path, model, text) for family in reversed(used)]
    if not sum(shown):
        raise (used or families.every())[0].nothing_shown(path, model, text)


def perf(context: Context) -> None:
    args, report = context.args, context.report
    path = require_file(args.model, "model")
    model = read_model(path)
    known = [(family, family.stages(model)) for family in families.every() if family.is_estimated]
    family, stages = next((entry for entry in known if entry[1]), known[0])
    if len(stages) < 2:
        info = family.measure(
            path, args.report and context.outputs.folder(args.report), None, args.chip_set, args.counts
        )
        context.result["report"] = info
        context.result["advice"] = [each.as_dict() for each in advice.of_perf(info)]
        family.print_report(report, info, args.report)
        return
    context.result["stages"] = []
    for number, title in stages.items():
        folder = args.report and str(Path(args.report) / f"stage-{number}")
        written = folder and context.outputs.folder(folder)
        info = family.measure(path, written, number, args.chip_set, args.counts)
        found_advice = [each.as_dict() for each in advice.of_perf(info)]
        context.result["stages"].append({"stage": number, "report": info, "advice": found_advice})
        report.say(f"{title}:")
        family.print_report(report, info, folder)


def combine(context: Context) -> None:
    args, say = context.args, context.report.say
    output = Path(args.output)
    if len(args.models) < 2:
        raise usage_error("combine takes at least two files")
    if output.suffix != ".bmodel":
        raise usage_error(f"--output {output}: the name must end in .bmodel")
    files = [require_file(path, "model") for path in args.models]
    staged = context.outputs.path(output)
    info = combine_files(files, staged, context.report)
    model = read_model(staged)
    rows = [("stage", "chip", "inputs")]
    rows += [
        (str(index), model["chips"][stage["chip"]]["name"], stage["name"])
        for net in model["nets"]
        for index, stage in enumerate(net["stages"])
    ]
    taken, stored = (sum(entry[key] for entry in info) for key in ("constant_bytes", "new_bytes"))
    before = sum(path.stat().st_size for path in files)
    context.result["model"] = {
        "bmodel": str(output),
        "bytes": staged.stat().st_size,
        "constant_bytes": taken,
        "stored_bytes": stored,
        "files": info,
    }
    say(_indent(compare.align(rows, right=(0,))))
    say(
        f"{output}: {size(staged.stat().st_size)} of {size(before)}; {size(stored)} of {size(taken)} of constants are "
        "stored, the rest is shared"
    )


def look_at_layers(context: Context) -> None:
    context.result["layers"] = families.simulated().look_at(context.report, Path(context.args.folder))


def work(context: Context) -> None:
    verbs = {"info": info, "check": check, "disasm": disasm, "perf": perf, "layers": look_at_layers, "combine": combine}
    verbs[context.args.verb](context)


def main(argv: Sequence[str] | None = None) -> int:
    return run_command(NAME, parse, work, argv=argv)


if __name__ == "__main__":
    raise SystemExit(main())
