# SPDX-License-Identifier: Apache-2.0
"""tessera bench: measures latency and throughput of compiled models and other engines, and compares two
measurements."""
from __future__ import annotations

import argparse
import contextlib
import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Iterator, Mapping, Sequence

import numpy as np

from .. import bmodel, compare, families, inputs, tolerances
from ..bench import engines, results, statistics, steps
from ..bench.measure import ROUND_SECONDS, WARM_SECONDS, Result, machine, measure
from ..errors import TesseraError, usage_error
from ..files import require_file, save_npz, scratch_folder, write_text
from ..programs import read_model
from ..sizes import add_at, inputs_at, named_at, stage_at
from . import from_onnx
from .common import Context, Parser

SECONDS = 5.0
MOST_STREAMS = 1024
EPILOG = """examples:
  tessera bench m.bmodel --threads 2 --streams 2
  tessera bench model.onnx --against onnxruntime,openvino -o new.json
  tessera bench m_int8.bmodel m_f32.bmodel --model_def model.onnx --against openvino
  tessera bench --compare old.json new.json"""


def add_verb(verbs: "argparse._SubParsersAction[Parser]") -> Parser:
    """Adds 'bench' to the verbs of `tessera`."""
    sub = verbs.add_parser(
        "bench",
        help="measure latency and throughput, also of other engines; compare two measurements",
        allow_abbrev=False,
        description="Measures compiled models, and other engines, on this machine: each in its own "
        "process, taking turns in short rounds, after warming up until times are steady. For models of other "
        "chips the estimated time is reported, because at most a simulator runs them here.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    sub.add_argument(
        "models", nargs="*", metavar="model", help=".bmodel files, or .onnx files, which are compiled first"
    )
    sub.add_argument(
        "--against", default="", metavar="A,B", help=f"other engines to measure: {', '.join(engines.PEERS)}"
    )
    sub.add_argument(
        "--model_def", metavar="FILE", help="the .onnx that the other engines run (default: the given model)"
    )
    sub.add_argument("--input", metavar="FILE", help=".npz, .npy, or NAME=FILE,… (default: seeded random)")
    add_at(sub, "sizes of random input")
    sub.add_argument("--chip", default=families.HOST, help="chip to compile an .onnx for (default: %(default)s)")
    sub.add_argument("--precision", default="f32", choices=("f32", "bf16"), help="type in which OpenVINO multiplies")
    sub.add_argument("--threads", type=int, default=1, metavar="N", help="threads per engine (default: %(default)s)")
    sub.add_argument(
        "--streams", type=int, default=0, metavar="N", help="also measure the throughput of N concurrent runs"
    )
    sub.add_argument("--pin", metavar="A,B-C", help="processors to run on")
    sub.add_argument("--seconds", type=float, default=SECONDS, help="measuring time per engine (default: %(default)s)")
    sub.add_argument(
        "--warm", type=float, default=WARM_SECONDS, help="maximum seconds of warming up (default: %(default)s)"
    )
    sub.add_argument("--ops", action="store_true", help="also report each op, with its share of the machine's limit")
    sub.add_argument("-o", "--output", metavar="FILE", help="write all results to FILE, for --compare")
    sub.add_argument(
        "--compare",
        nargs=2,
        metavar=("OLD", "NEW"),
        help="compare two result files: what changed, with confidence intervals",
    )
    sub.add_argument(
        "--relative_to", default="", metavar="NAME", help="with --compare: divide times by those of this engine"
    )
    from_onnx.add_flags(sub)
    return sub


def work(context: Context) -> None:
    if context.args.compare:
        return work_compare(context)
    args = context.args
    check_arguments(args)
    if args.output:
        context.outputs.path(args.output)  # fails on an unwritable path now, not after minutes of measuring
    sizes = args.at or [""]
    context.report.total = sum(each.endswith(".onnx") for each in args.models) + (1 + args.ops) * len(sizes)
    with scratch_folder() as folder:
        paths = prepare(context, folder)
        info = merged(
            [(at, bench(context, [look(path, name, args.input, at) for name, path in paths], folder)) for at in sizes]
        )
    context.result["bench"] = info
    print_report(context, info)
    if args.output:
        write_text(context.outputs.path(args.output), json.dumps(info) + "\n")
    failed = [each for each in info["results"] if each["error"]]
    if failed:
        raise TesseraError(f"{failed[0]['name']}: {failed[0]['error']}")


def work_compare(context: Context) -> None:
    args = context.args
    if args.models:
        raise usage_error("--compare takes two result files and no models")
    old, new = map(results.read, args.compare)
    rows = results.compare(old, new, args.relative_to)
    context.result["comparison"] = rows
    hardware = [info["machine"]["processor"] for info in (old, new)]
    if hardware[0] != hardware[1]:
        context.report.warn(f"the files were measured on different machines: {hardware[0]} and {hardware[1]}")
    for row in rows:
        text = statistics.Difference(*(row[key] for key in ("ratio", "low", "high", "verdict"))).text()
        context.report.say(f"{row['name']}, {row['what']}: {text}")


def check_arguments(args: argparse.Namespace) -> None:
    """Checks the arguments. Raises TesseraError with exit code 2."""
    if not args.models:
        raise usage_error("pass a model, or --compare OLD NEW")
    if args.relative_to:
        raise usage_error("--relative_to requires --compare")
    for flag, least in (("threads", 1), ("streams", 0), ("seconds", 0), ("warm", 0)):
        if getattr(args, flag) < least:
            raise usage_error(f"--{flag} {getattr(args, flag)}: must be at least {least}")
    if args.streams > MOST_STREAMS:
        raise usage_error(f"--streams {args.streams}: at most {MOST_STREAMS}, because each holds a network in memory")
    for name in peers(args):
        if name not in engines.PEERS:
            raise usage_error(f"--against {name}: expected {', '.join(engines.PEERS)}")
        if not engines.installed(name):
            raise usage_error(f"--against {name}: not installed (pip install {name})")
    onnx = [each for each in args.models if each.endswith(".onnx")]
    if peers(args) and not args.model_def and len(onnx) != 1:
        raise usage_error("--against requires --model_def, the .onnx that the other engines run")
    if any(each.endswith(".onnx") for each in args.models):
        from_onnx.check_flags(args)
    if peers(args) and not args.model_def and (args.output_names or args.input_values):
        raise usage_error(
            "--output_names and --input_values change the network that Tessera runs: pass the same network to the "
            "other engines with --model_def"
        )
    processors(args.pin)


def peers(args: argparse.Namespace) -> list[str]:
    return [name for name in args.against.split(",") if name]


def processors(text: str | None) -> list[int]:
    """Returns the processors of --pin. Raises TesseraError."""
    found: list[int] = []
    usable = os.sched_getaffinity(0)
    for part in [] if text is None else text.split(","):
        first, dash, last = part.partition("-")
        if not first.isdecimal() or not (last if dash else first).isdecimal():
            raise usage_error(f"--pin {text}: expected processor numbers, such as 0,2-3")
        low, high = int(first), int(last if dash else first)
        if high < low:
            raise usage_error(f"--pin {text}: {part} is not a range: its first number is larger than its last")
        missing = next((each for each in range(low, high + 1) if each not in usable), None)
        if missing is not None:
            raise usage_error(f"--pin {text}: this process may not use processor {missing}")
        found += range(low, high + 1)
    return found


@dataclass(frozen=True)
class Model:
    """A model to measure. estimated: its time in milliseconds if it is for a chip that this machine is not."""

    name: str
    path: Path
    chip: str
    estimated: float | None
    inputs: Mapping[str, np.ndarray]


def merged(parts: Sequence[tuple[str, dict[str, Any]]]) -> dict[str, Any]:
    """Returns the results at several sizes as one; with more than one, their names end in the size."""
    info: dict[str, Any] = {**parts[0][1], "results": []}
    if "ops" in info:
        info["ops"] = {}
    for at, part in parts:
        label = at if len(parts) > 1 else ""
        info["results"] += [
            {**each, "name": named_at(each["name"], label), **({"at": at} if at else {})} for each in part["results"]
        ]
        for name, ops in part.get("ops", {}).items():
            info["ops"][named_at(name, label)] = ops
    return info


def prepare(context: Context, folder: Path) -> list[tuple[str, Path]]:
    """Returns the name and the file of each model; compiles .onnx files to `folder`."""
    args, result = context.args, []
    names = [Path(each).name for each in args.models]
    if twice := [name for name in names if names.count(name) > 1]:
        raise usage_error(f"two models have the file name {twice[0]}: their results could not be distinguished")
    for given, name in zip(args.models, names):
        path = require_file(given, "model")
        if path.suffix == ".onnx":
            with context.report.step(f"compile {name}"):
                path = compile_onnx(context, path, folder)
        result.append((name if len(names) > 1 else engines.OURS, path))
    return result


def compile_onnx(context: Context, path: Path, folder: Path) -> Path:
    imported = from_onnx.import_model(context, path, folder / f"{path.stem}.mlir")
    output = folder / f"{path.stem}.bmodel"
    table = from_onnx.calibrate(context, imported.model, folder)
    from_onnx.deploy(context, imported.model, output, context.args.chip, table)
    return output


def look(path: Path, name: str, given: str | None, at: str) -> Model:
    """Opens a model; estimates its time instead of measuring it if it is for another chip."""
    net, dump = bmodel.open_net(path), read_model(path)
    if given:
        arrays = inputs.load_inputs(given, net.inputs)
    else:
        stages = dump["nets"][0]["stages"]
        number = stage_at(stages, at) if at else net.number
        arrays = inputs.random_inputs(inputs_at(net.inputs, stages[number], at))
    net.use({key: array.shape for key, array in arrays.items()})
    stage = dump["nets"][0]["stages"][net.number]
    chip = dump["chips"][stage["chip"]]["name"]
    every = families.every()
    family = next((each for each in every if any(each.covers(dump, subnet) for subnet in stage["subnets"])), None)
    time = family.microseconds(family.measure(path, stage=net.number)) / 1e3 if family else None
    return Model(name, path, chip, time, arrays)


def bench(context: Context, models: Sequence[Model], folder: Path) -> dict[str, Any]:
    args = context.args
    pin = processors(args.pin)
    here = [model for model in models if model.estimated is None]
    files = {model.name: model.path for model in here}
    of = {model.name: engines.OURS for model in here}
    onnx = Path(args.model_def or next((each for each in args.models if each.endswith(".onnx")), ""))
    for name in peers(args):
        files[name], of[name] = require_file(onnx, "--model_def"), name
    settings = {"threads": args.threads, "streams": args.streams, "pin": pin, "precision": args.precision}
    found: list[dict[str, Any]] = [estimate_entry(model, settings) for model in models if model.estimated is not None]
    if files:
        if not args.input:
            context.report.warn(
                "the inputs are seeded random numbers: times hold for all data, but the difference between the "
                "engines' outputs says little about your data; pass a sample with --input"
            )
        save_npz(folder / "in.npz", dict(models[0].inputs))
        rounds = max(statistics.FEWEST_ROUNDS, round(args.seconds / ROUND_SECONDS))
        with context.report.step(f"measure {', '.join(files)}"):
            measured = measure(
                files, folder / "in.npz", folder, args.threads, args.precision, rounds, args.warm, args.streams, pin, of
            )
        found += [
            {**results.entry(each, of[each.engine], files[each.engine], settings), "answer": answer(each, measured)}
            for each in measured
        ]
    info = {"bench_version": results.VERSION, "machine": machine(), "results": found}
    if args.ops:
        with context.report.step("measure each op"):
            with pinned(pin):
                info["ops"] = {
                    model.name: steps.measure(model.path, read_model(model.path), model.inputs, args.threads)
                    for model in here
                }
    return info


@contextlib.contextmanager
def pinned(processors: Sequence[int]) -> Iterator[None]:
    """Runs the block on these processors; on all of the process's if there are none."""
    before = os.sched_getaffinity(0)
    if processors:
        os.sched_setaffinity(0, processors)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def estimate_entry(model: Model, settings: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "name": model.name,
        "engine": engines.OURS,
        "version": engines.version(engines.OURS),
        "model": model.path.name,
        **settings,
        "kind": f"estimated for {model.chip}",
        "error": "",
        "p50_ms": model.estimated,
    }


def answer(result: Result, every: Sequence[Result]) -> str:
    """Describes the distance between an engine's outputs and those of the last one; "" for the last one itself."""
    other = every[-1]
    if result is other or not result.outputs or not other.outputs:
        return ""
    compared = compare.compare(result.outputs, other.outputs, tolerances.DEFAULT["F32"])
    if not compared.rows:
        return "no output in common"
    return f"cos {min(row.cosine for row in compared.rows):.6f} with {other.engine}"


def print_report(context: Context, info: Mapping[str, Any]) -> None:
    """Prints the table of latencies, throughput, preparation and memory."""
    best: dict[str, float] = {}  # time of the fastest peer by size
    for each in info["results"]:
        if each["engine"] in engines.PEERS and "p50_ms" in each:
            at = each.get("at", "")
            best[at] = min(best.get(at, each["p50_ms"]), each["p50_ms"])
    rows: list[tuple[str, ...]] = [
        ("", "p50 ms", "p90", "p99", "min", "vs best peer", "runs/s", "prepare ms", "peak MiB", "")
    ]
    for each in info["results"]:
        if each["error"]:
            rows.append((each["name"], *["-"] * 8, each["error"][:70]))
        elif each["kind"] != "measured":
            rows.append((each["name"], f"{each['p50_ms']:.3f}", *["-"] * 7, each["kind"]))
        else:
            peer = best.get(each.get("at", "")) if each["engine"] == engines.OURS else None
            notes = [each["answer"], "" if each.get("steady", True) else "times were not steady after warming up"]
            rows.append(
                (
                    each["name"],
                    *(f"{each[key]:.3f}" for key in ("p50_ms", "p90_ms", "p99_ms", "min_ms")),
                    f"{each['p50_ms'] / peer:.2f}" if peer else "-",
                    f"{each['runs_per_second']:.1f}" if each["runs_per_second"] else "-",
                    f"{each['prepare_ms']:.0f}",
                    f"{each['peak_mib']:.0f}",
                    "; ".join(filter(None, notes)),
                )
            )
    context.report.say(compare.align(rows, right=tuple(range(1, 9))))
    for name, ops in info.get("ops", {}).items():
        context.report.say(f"\n{name}")
        context.report.say(steps.table(ops))
