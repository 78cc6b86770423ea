# SPDX-License-Identifier: Apache-2.0
"""The command tessera."""
from __future__ import annotations

import argparse
import contextlib
import time
from pathlib import Path
from typing import Any, Callable, Mapping, Sequence

import numpy as np

from . import accuracy, bench, encoder_decoder, estimate, explain, from_onnx, llm, reduce
from . import report as reports
from .. import bmodel, compare, custom_ops, families, inputs, onnx_runner, preprocess, tolerances, top_model
from ..calibration import sample
from ..errors import TesseraError, usage_error
from ..files import require_file, scratch_folder
from ..onnx_reference import ReferenceModel
from ..programs import read_model
from ..progress import command
from ..sizes import add_at, inputs_at, named_at
from ..targets import targets
from .common import Context, Parser, run_command
from .framework_check import Framework, feed_of, top_names, warn_of_deviations

NAME = "tessera"
PURPOSE = "Compiles and checks an ONNX file, scores models on tasks, estimates times on other chips, reduces failures."
EPILOG = f"""examples:
  tessera run model.onnx
  tessera run model.onnx --input_shapes x=1x3x224x224 --input cat.jpg --pixel_format rgb --threads 2
  tessera run model.onnx --quantize INT8 --dataset pictures/
  tessera bench model.onnx --against onnxruntime,openvino
  tessera estimate model.onnx --chip all
  tessera explain model.bmodel conv1
  tessera reduce model.onnx --mode {families.HOST}-vs-ort
  tessera report model.bmodel -o report.html
  tessera accuracy model.onnx model.bmodel --task classification --data pictures/
  tessera llm model.gguf -o model.bmodel
  tessera chat model.bmodel"""
MEASURE_SECONDS = 1.0
STEPS_PER_INPUT = 3


def parse(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = Parser(NAME, PURPOSE, EPILOG)
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="VERB")
    run = verbs.add_parser(
        "run",
        help="compile, run, compare and measure a model",
        allow_abbrev=False,
        description="Compiles an ONNX model for this machine, runs it, compares it with onnxruntime "
        "(or the Top reference), measures it, and prints a verdict.",
    )
    run.add_argument("model", help="the .onnx file")
    run.add_argument("--input", metavar="FILE", help=".npz, .npy, a picture, or NAME=FILE,… (default: seeded random)")
    add_at(run, "sizes of random input")
    run.add_argument("--chip", default=families.HOST, help="chip (default: %(default)s)")
    run.add_argument("--threads", type=int, default=1, metavar="N", help="number of threads (default: %(default)s)")
    run.add_argument(
        "--tolerance",
        metavar=tolerances.METAVAR,
        help=f"least similarity of each output: {tolerances.ALL} (default: that of --quantize)",
    )
    run.add_argument("--output_dir", metavar="DIR", help="keep the files in DIR (default: keep none)")
    from_onnx.add_flags(run)
    preprocess.add_arguments(run)
    for verb in (*llm.add_verbs(verbs), *encoder_decoder.add_verbs(verbs)):
        verb.add_common()
    for verb in (run, *(each.add_verb(verbs) for each in (accuracy, bench, estimate, reduce, reports, explain))):
        custom_ops.add_argument(verb)
        verb.add_common()
    return parser.parse_args(argv)


def work(context: Context) -> None:
    verbs = {
        "accuracy": accuracy.work,
        "bench": bench.work,
        "estimate": estimate.work,
        "chat": llm.work_chat,
        "explain": explain.work,
        "generate": llm.work_generate,
        "llm": llm.work_llm,
        "transcribe": encoder_decoder.work_transcribe,
        "translate": encoder_decoder.work_translate,
        "reduce": reduce.work,
        "report": reports.work,
    }
    verbs.get(context.args.verb, work_run)(context)


def work_run(context: Context) -> None:
    args = context.args
    require_file(args.model, "model")
    if args.threads < 1:
        raise usage_error(f"--threads {args.threads}: must be at least 1")
    if args.at and args.input:
        raise usage_error("--at is for random input; the arrays of --input have their own sizes")
    targets().require_chip(args.chip)
    from_onnx.check_flags(args)
    if args.output_dir:
        return run(context, context.outputs.folder(args.output_dir))
    with scratch_folder() as temporary:
        run(context, temporary)


def run(context: Context, folder: Path) -> None:
    """Runs all steps; files are written to `folder`."""
    args, report = context.args, context.report
    name = Path(args.model).stem
    tolerance = tolerances.parse(args.tolerance, args.quantize)
    with report.step("import and optimise") as step:
        imported = from_onnx.import_model(
            context, Path(args.model), folder / f"{name}_top.mlir", preprocess.from_arguments(args)
        )
        model = imported.model
        if text := preprocess.default_order_warning(args, args.input):
            report.warn(text)
        step.note = ", ".join(map(str, model.inputs[:3]))
    table = from_onnx.calibrate(context, model, folder)
    with report.step(f"compile for {args.chip}, {args.quantize}") as step:
        output = folder / from_onnx.file_name(name, args.chip, args.quantize)
        from_onnx.deploy(context, model, output, args.chip, table)
        step.note = f"{output.stat().st_size / 1e6:.2f} MB"
    net = bmodel.open_net(output, args.threads)
    every = test_inputs(args, model, table, output)
    report.total += STEPS_PER_INPUT * (len(every) - 1)
    judged = {at: judge(context, imported, output, net, arrays, tolerance) for at, arrays in every.items()}
    first, comparison = next(iter(judged.values()))
    if len(judged) > 1:
        context.result["sizes"] = [{"at": at, **found} for at, (found, _) in judged.items()]
        report.say("\n" + size_table(judged))
    else:
        context.result.update(first)
    verdict = "PASS" if all(comparison.passed for _, comparison in judged.values()) else "FAIL"
    context.result["verdict"] = verdict
    source = first["source"]
    report.say(f"\nverdict: {verdict}: {len(comparison.rows)} output(s) compared with {source}, {tolerance}")
    kept = Path(args.output_dir) / output.name if args.output_dir else output.name
    run = command("model_runner", "--model", kept, "--input", "INPUT.npz", "--output", "out.npz")
    report.finish([run if args.output_dir else f"# keep the files with --output_dir; then: {run}"])
    for at, (_, comparison) in judged.items():
        comparison.require_passed(f"{named_at(name, at)} against {source}")


def judge(
    context: Context,
    imported: from_onnx.Imported,
    output: Path,
    net: bmodel.Net,
    arrays: Mapping[str, np.ndarray],
    tolerance: compare.Tolerance,
) -> tuple[dict[str, Any], compare.Comparison]:
    """Runs the compiled model `output`, compares it with a reference and measures it. Returns what --json prints about
    this input, and the comparison."""
    args, report, model = context.args, context.report, imported.model
    shapes = {name: array.shape for name, array in arrays.items()}
    with report.step(f"run on {args.threads} thread(s)") as step:
        got = net.run(arrays)
        step.note = ", ".join(f"{name} {list(shape)}" for name, shape in list(shapes.items())[:3])
    expected, source, theirs = reference(context, imported, arrays)
    comparison = compare.compare(got, expected, tolerance)
    deviates = False
    if comparison.failed and source == "onnxruntime":
        corrected = without_deviations(context, imported, arrays)
        if deviates := corrected is not None:
            expected = corrected or {}
            comparison = compare.compare(got, expected, tolerance)
    times = measure(context, output, lambda: net.run(arrays), theirs)
    report.say(compare.format_table(comparison))
    lost = [spec.name for spec in model.outputs if spec.name not in expected]
    if lost and (len(lost) == len(model.outputs) or not deviates):
        raise TesseraError(f"output '{lost[0]}' could not be compared: {source} does not compute it")
    return {"inputs": shapes, "comparison": comparison.as_dict(), "source": source, **times}, comparison


def size_table(judged: Mapping[str, tuple[Mapping[str, Any], compare.Comparison]]) -> str:
    """Returns a table of the sizes of --at: times and verdicts."""
    rows: list[tuple[str, ...]] = [("sizes", "ms", "onnxruntime ms", "verdict")]
    for at, (found, comparison) in judged.items():
        times = (found["latency_ms"].get(name) for name in ("tessera", "onnxruntime"))
        rows.append((at, *(f"{ms:.3f}" if ms else "-" for ms in times), "PASS" if comparison.passed else "FAIL"))
    return compare.align(rows, right=(1, 2))


def test_inputs(
    args: argparse.Namespace, model: top_model.TopModel, table: Path | None, compiled: Path
) -> dict[str, dict[str, np.ndarray]]:
    """Returns the inputs on which the model is judged, by their sizes in --at: the user's, else random ones of these
    sizes, else a calibration sample, else random ones."""
    if args.input:
        return {"": inputs.load_inputs(args.input, model.inputs, states=[state.input for state in model.states])}
    ports = model.as_ports()
    if args.at:
        stage = read_model(compiled)["nets"][0]["stages"][0]
        return {at: inputs.random_inputs(inputs_at(ports.inputs, stage, at)) for at in args.at}
    return {"": sample.default_input(table, ports.inputs)[0] if table else inputs.random_inputs(ports.inputs)}


def measure(
    context: Context, model: Path, ours: Callable[[], object], theirs: Callable[[], object] | None
) -> dict[str, Any]:
    """Measures the time of a run, Tessera's and onnxruntime's; returns what --json prints about it. The time on a
    simulated chip is estimated, because only its simulator could be measured."""
    args, report, family = context.args, context.report, families.of_chip(context.args.chip)
    with report.step("estimate" if family.is_simulated else "measure") as step:
        other, milliseconds = median_ms(theirs) if theirs else None, median_ms(ours)
        beside = f", onnxruntime {other:.3f} ms" if other else ""
        if family.is_simulated:
            info = family.measure(model)
            estimated = family.microseconds(info) / 1e3
            step.note = (
                f"{estimated:.3f} ms per run on {info['chip']}{beside}{' on this machine' if other else ''}; "
                f"its simulator took {milliseconds:.3f} ms, which is not a latency"
            )
        else:
            step.note = f"{milliseconds:.3f} ms{beside}"
    latency = {"onnxruntime": other, "threads": args.threads}
    if not family.is_simulated:
        return {"latency_ms": {"tessera": milliseconds, **latency}}
    return {
        "latency_ms": latency,
        "estimated_ms": {"tessera": estimated, "chip": info["chip"]},
        "simulator_ms": milliseconds,
    }


Outputs = Mapping[str, np.ndarray]


def reference(
    context: Context, imported: from_onnx.Imported, arrays: Outputs
) -> tuple[Outputs, str, Callable[[], Outputs] | None]:
    """Returns (expected outputs, their origin, a function that runs the framework once or None). A framework that
    cannot run the model has a limit, which need not be a fault of the model."""
    args, report = context.args, context.report
    if not onnx_runner.available():
        report.warn(
            "compared with Tessera's own reference only: onnxruntime is not installed (pip install onnxruntime)"
        )
    else:
        with report.step(f"onnxruntime {onnx_runner.version()}") as step:
            try:
                framework = onnx_runner.OnnxModel(args.model, args.threads, ends=imported.ends)
                feed = feed_of(framework, imported.model, {**arrays, **imported.fixed})
                return outputs_of(imported, framework, feed), "onnxruntime", lambda: framework.run(feed)
            except onnx_runner.Unreadable as error:
                step.note = "it cannot run the model"
                report.warn(f"{error.message}; compared with another implementation instead")
        with contextlib.suppress(onnx_runner.Unreadable):
            other = ReferenceModel(args.model)
            return (
                outputs_of(imported, other, feed_of(other, imported.model, {**arrays, **imported.fixed})),
                other.name,
                None,
            )
    with report.step("Top reference"):
        return top_model.evaluate(imported.model, arrays, report), "the Top reference", None


def without_deviations(context: Context, imported: from_onnx.Imported, arrays: Outputs) -> Outputs | None:
    """Returns onnxruntime's outputs with the nodes on which it is known to deviate computed as ONNX defines them; None
    without such nodes."""
    args = context.args
    seen = onnx_runner.OnnxModel(args.model, args.threads, every_tensor=True, optimise=False, ends=imported.ends)
    feed = feed_of(seen, imported.model, {**arrays, **imported.fixed})
    shapes = {name: array.shape for name, array in {**feed, **seen.run(feed)}.items()}
    try:
        corrected = seen.corrected(shapes)
    except onnx_runner.Unreadable as error:
        context.report.warn(f"{error.message}; compared with Tessera's own reference instead")
        return top_model.evaluate(imported.model, arrays, context.report)
    if corrected is None:
        return None
    warn_of_deviations(context.report, corrected)
    return outputs_of(imported, corrected, feed)


def outputs_of(imported: from_onnx.Imported, framework: Framework, feed: Outputs) -> dict[str, np.ndarray]:
    """Returns the framework's tensors that are outputs of the Top model, in the Top model's form."""
    model = imported.model
    names = top_names([] if imported.ends else model.outputs, framework)
    wanted = {name: 0 for name, ours in names.items() if any(spec.name == ours for spec in model.outputs)}
    return top_model.pad_outputs(model, {names[name]: array for name, array in framework.each(feed, wanted)})


def median_ms(once) -> float:
    """Returns the median time of a call in milliseconds, over at least 3 calls and about a second."""
    times: list[float] = []
    begin = time.perf_counter()
    while len(times) < 3 or time.perf_counter() - begin < MEASURE_SECONDS:
        start = time.perf_counter()
        once()
        times.append(time.perf_counter() - start)
    return float(np.median(times) * 1e3)


def main(argv: Sequence[str] | None = None) -> int:
    return run_command(NAME, parse, work, steps=5, argv=argv)


if __name__ == "__main__":
    raise SystemExit(main())
