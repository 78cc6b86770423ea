# SPDX-License-Identifier: Apache-2.0
"""model_tool: looks into a .bmodel file: info, check, disasm."""
from __future__ import annotations

import argparse
import json
import re
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any, Iterator, Sequence

from .. import compare
from ..compile_driver import find_program
from ..errors import ExitCode, TesseraError
from ..files import require_file
from ..preprocess import Preprocess
from .common import Context, Parser, run_command

NAME = "model_tool"
EPILOG = """examples:
  model_tool info m.bmodel            what is in it: inputs, outputs, memory, steps
  model_tool check m.bmodel           every byte against its hash; exit code 1 where one differs
  model_tool disasm m.bmodel conv     machine code of the kernels whose name contains 'conv'"""


def parse(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = Parser(NAME, __doc__.split(": ", 1)[1], EPILOG)
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="VERB", parser_class=argparse.ArgumentParser)
    for name, text in (("info", "inputs, outputs, memory and steps"), ("check", "every hash and digest of the file"),
                       ("disasm", "the machine code of the kernels")):
        sub = verbs.add_parser(name, help=text, description=text, allow_abbrev=False)
        sub.add_argument("model", help="the .bmodel file")
        Parser.add_common(sub)  # type: ignore[arg-type]
        if name == "info":
            sub.add_argument("--steps", action="store_true", help="list every step")
            sub.add_argument("--tensors", action="store_true", help="list every tensor")
        if name == "disasm":
            sub.add_argument("kernel", nargs="?", default="", help="only kernels whose name contains this")
    return parser.parse_args(argv)


def dump(*arguments: str) -> str:
    """Output of bmodel-dump. Raises TesseraError with its message."""
    result = subprocess.run([find_program("bmodel-dump"), *arguments], capture_output=True, text=True, errors="replace")
    if result.returncode == 1:
        raise TesseraError(f"{arguments[-1] if arguments[0] != '--segment' else arguments[2]}: {result.stderr.strip()}",
                           hint="get a fresh copy of the file, or compile it again")
    if result.returncode != 0:
        raise TesseraError(f"bmodel-dump ended with exit code {result.returncode}", ExitCode.INTERNAL,
                           details=result.stderr.splitlines()[-5:])
    return result.stdout


def read_model(path: Path) -> dict[str, Any]:
    return json.loads(dump(str(path)))


def stages(model: dict[str, Any]) -> Iterator[tuple[dict, dict]]:
    for net in model.get("nets", []):
        for stage in net.get("stages", []):
            yield net, stage


def shape(tensor: dict[str, Any]) -> str:
    dims = (str(d["value"]) if d["slot"] < 0 else f"<={d['value']}" for d in tensor.get("shape", []))
    return "x".join(dims) or "scalar"


def size(count: int) -> str:
    """Bytes for people."""
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
    for prop in model.get("properties", []):
        say(f"  {prop['key']}: {prop.get('value', '')}")
    for net, stage in stages(model):
        chip = model["chips"][stage["chip"]]
        say(f"\nnet '{net['name']}' stage '{stage.get('name', '')}' for {chip['name']}")
        say_tensors(context, stage)
        for index, space in enumerate(stage.get("workspaces", [])):
            say(f"  workspace {index} {space['memory']}: {size(space['bytes'])} (lower bound {size(space['lower_bound'])})")
        if stage["state_bytes"]:
            say(f"  state: {size(stage['state_bytes'])}")
        for subnet in stage.get("subnets", []):
            say_subnet(context, stage, subnet)


def say_tensors(context: Context, stage: dict[str, Any]) -> None:
    rows = [("", "name", "type", "shape", "notes")]
    tensors = stage.get("tensors", [])
    for role in ("inputs", "outputs"):
        for slot in stage.get(role, []):
            tensor = tensors[slot]
            note = ""
            if tensor.get("preprocess"):
                note = Preprocess.from_json(tensor["preprocess"]).describe()
            if quant := tensor.get("quant"):
                note += f"{'; ' if note else ''}scale {_some(quant['scales'])}, zero point {_some(quant.get('zero_points') or [0])}"
            rows.append((role[:-1], tensor["name"], tensor["dtype"], shape(tensor), note))
    context.report.say(_indent(compare.align(rows)))
    if context.args.tensors:
        rows = [("slot", "name", "type", "shape", "layout", "role", "offset", "bytes")]
        for slot, t in enumerate(tensors):
            layout = t["layout"] if t["layout"] != "ChannelBlocked" else f"c{t['block']} axis {t['block_axis']}"
            rows.append((str(slot), t["name"], t["dtype"], shape(t), layout, t["role"], str(t["offset"]), str(t["bytes"])))
        context.report.say(_indent(compare.align(rows, right=(6, 7))))


def _some(values: list) -> str:
    return f"{values[0]:g}" + (f" and {len(values) - 1} more" if len(values) > 1 else "")


def say_subnet(context: Context, stage: dict[str, Any], subnet: dict[str, Any]) -> None:
    plan, kernels = subnet.get("plan", []), subnet.get("kernels", [])
    reason = f": {subnet['reason']}" if subnet.get("reason") else ""
    context.report.say(f"  subnet '{subnet['name']}' {subnet['kind']} {subnet.get('isa', '')}: "
                       f"{len(plan)} steps, {len(kernels)} kernels{reason}")
    if not context.args.steps:
        return
    rows = [("step", "kernel", "tiles", "device op", "ONNX nodes")]
    for index, step in enumerate(plan):
        op, debug = step["op"], step.get("debug", {})
        launch = step.get("op_type") == "LaunchDef"
        name = kernels[op["kernel"]]["symbol"] if launch else step.get("op_type", "").removesuffix("Def")
        rows.append((str(index), name, str(op["tile_count"]) if launch else "", debug.get("device_op", ""),
                     ", ".join(debug.get("onnx_nodes", []))))
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
    context.report.say(f"{path}: {path.stat().st_size} bytes, structure and all hashes are right")


def disasm(context: Context) -> None:
    path = require_file(context.args.model, "model")
    objdump = next((p for p in ("llvm-objdump-22", "/usr/lib/llvm-22/bin/llvm-objdump", "llvm-objdump", "objdump")
                    if shutil.which(p)), None)
    if objdump is None:
        raise TesseraError("disasm needs llvm-objdump or objdump", hint="apt install llvm-22 or binutils")
    model = read_model(path)
    shown = 0
    for _, stage in stages(model):
        for subnet in stage.get("subnets", []):
            if subnet["kind"] in ("X86", "Host") and subnet["code_segment"] >= 0:
                shown += _disassemble(context, objdump, path, subnet)
    if not shown:
        names = [k["symbol"] for _, s in stages(model) for n in s.get("subnets", []) for k in n.get("kernels", [])]
        raise TesseraError(f"{path} has no x86 kernel whose name contains '{context.args.kernel}'",
                           details=[f"it has: {', '.join(names[:20])}"])


def _disassemble(context: Context, objdump: str, path: Path, subnet: dict[str, Any]) -> int:
    """Prints the functions asked for; returns how many."""
    with tempfile.TemporaryDirectory(prefix="tessera-") as folder:
        code = Path(folder) / "code.o"
        dump("--segment", str(subnet["code_segment"]), str(path), str(code))
        result = subprocess.run([objdump, "-d", "--no-show-raw-insn", "-M", "intel", str(code)], capture_output=True, text=True)
    if result.returncode != 0:
        raise TesseraError(f"{objdump} failed: {result.stderr.strip()}")
    shown = 0
    for block in re.split(r"\n(?=[0-9a-f]+ <)", result.stdout):
        match = re.match(r"[0-9a-f]+ <([^>]+)>:", block)
        if match and context.args.kernel in match.group(1):
            context.report.say(block.rstrip() + "\n")
            shown += 1
    return shown


def work(context: Context) -> None:
    {"info": info, "check": check, "disasm": disasm}[context.args.verb](context)


def main(argv: Sequence[str] | None = None) -> int:
    return run_command(NAME, parse, work, argv=argv)


if __name__ == "__main__":
    raise SystemExit(main())
