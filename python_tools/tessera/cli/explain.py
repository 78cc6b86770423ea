# SPDX-License-Identifier: Apache-2.0
"""tessera explain: shows how one layer of a model was compiled, and what it costs."""
from __future__ import annotations

import argparse
import difflib
from pathlib import Path
from typing import Any, Mapping, Sequence

from .. import families
from ..compare import percent
from ..errors import TesseraError, usage_error
from ..files import require_file
from ..report.gather import gather
from .common import Context, Parser
from ..programs import read_model
from .model_tool import size

COMMANDS_SHOWN, NODES_SHOWN = 8, 12


def add_verb(verbs: "argparse._SubParsersAction[Parser]") -> Parser:
    """Adds 'explain' to the verbs of `tessera`."""
    sub = verbs.add_parser(
        "explain",
        help="show how a layer was compiled: where it runs, how long it takes, what bounds it, its commands",
        allow_abbrev=False,
        description="Shows for a layer of a compiled model its ONNX nodes, where it runs and why, its "
        "time and what bounds it, its traffic and the minimum, and its commands. Times are estimates.",
    )
    sub.add_argument("model", help="the .bmodel file")
    sub.add_argument("layer", metavar="LAYER", help="the name of an ONNX node or a layer, or a part of it")
    return sub


def work(context: Context) -> None:
    path, wanted = require_file(context.args.model, "model"), context.args.layer.strip()
    if not wanted:
        raise usage_error("LAYER is empty: pass the name of an ONNX node or a layer, or a part of it")
    info = gather(path, read_model(path), {}, None)
    found = find(info, wanted)
    context.result["layers"] = []
    for number, index in found:
        stage = info["stages"][number]
        layer = dict(stage["layers"][index])
        layer["reasons"] = [each["reason"] for each in stage["subnets"] if each["reason"] and layer["on"] == "host"]
        layer["advice"] = [each for each in info["advice"] if (each["layer"], each["stage"]) == (layer["name"], number)]
        layer["commands"] = _commands(path, stage, number, index)
        context.result["layers"].append(layer)
        _print_report(context, stage, layer)


def find(info: Mapping[str, Any], wanted: str) -> list[tuple[int, int]]:
    """Returns (stage, layer) of the layers that match: by exact name, else by a node of that name, else by a part of
    the name. Raises TesseraError with similar names."""
    every = [(n, i, layer) for n, stage in enumerate(info["stages"]) for i, layer in enumerate(stage["layers"])]
    for is_meant in (
        lambda layer: layer["name"] == wanted,
        lambda layer: wanted in layer["nodes"],
        lambda layer: wanted in layer["name"],
    ):
        found = [(number, index) for number, index, layer in every if is_meant(layer)]
        if found:
            return found
    names = [node for *_, layer in every for node in (layer["nodes"] or [layer["name"]])]
    near = difflib.get_close_matches(wanted, dict.fromkeys(names), 5, 0.3)
    raise TesseraError(
        f"{info['file']} has no layer '{wanted}'",
        hint=f"similar names: {', '.join(near)}" if near else "model_tool info --steps lists them",
    )


def _commands(path: Path, stage: Mapping[str, Any], number: int, index: int) -> list[str]:
    """Returns the commands of a layer of a chip that has some."""
    if not stage["perf"] or index >= len(stage["perf"]["layers"]):
        return []
    name = stage["perf"]["layers"][index]["name"]
    return [
        line for line in families.of(stage["family"]).commands(path, number) if line.partition("#")[2].strip() == name
    ]


def _print_report(context: Context, stage: Mapping[str, Any], layer: Mapping[str, Any]) -> None:
    say = context.report.say
    say(f"{_short(layer['name'].split('+'), '+')}: on {layer['on']} ({stage['name'] or 'all shapes'}), {layer['op']}")
    say(f"  ONNX nodes: {_short(layer['nodes'], ', ') or 'none'}")
    for reason in layer["reasons"]:
        say(f"  on the host because: {reason}")
    if layer["us"] is not None:
        share = percent(layer["us"], stage["perf"]["microseconds"])
        say(
            f"  {layer['us']:.2f} us, {share} % of a run, bound by {layer['bound']}; {layer['products']} "
            f"multiplications, {100 * layer['mac_utilisation']:.1f} % of the peak"
        )
    least = f", {layer['moved'] / layer['least']:.2f} times the least" if layer["least"] else ""
    say(f"  {size(layer['moved'])} {'to and from DDR' if layer['us'] is not None else 'read and written'}{least}")
    for each in layer["advice"]:
        say(f"  {each['code']}: {each['text']}; try {each['command']} ({each['page']})")
    for line in layer["commands"][:COMMANDS_SHOWN]:
        say(f"    {line}")
    if len(layer["commands"]) > COMMANDS_SHOWN:
        say(f"    … and {len(layer['commands']) - COMMANDS_SHOWN} more (--json names all)")


def _short(names: Sequence[str], separator: str) -> str:
    """Joins the first names; a subnet on a host has hundreds."""
    text = separator.join(names[:NODES_SHOWN])
    return text if len(names) <= NODES_SHOWN else f"{text} … and {len(names) - NODES_SHOWN} more (--json lists all)"
