# SPDX-License-Identifier: Apache-2.0
"""run_calibration: runs sample data through the compiled f32 model and writes the table of ranges for int8."""
from __future__ import annotations

import argparse
import contextlib
import difflib
import tempfile
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Sequence

from .. import top_model
from ..calibration import learn as learning
from ..calibration import table as tables
from ..calibration import tpu_mlir_table
from ..calibration.choose import Choice, candidates_for, measure
from ..calibration.collect import Checkpoint, State, collect
from ..calibration.dataset import Dataset, open_dataset
from ..calibration.distribution import Distribution
from ..calibration.engine import DaskEngine, Engine, Pool, PoolEngine, usable_cores
from ..calibration.rounding import AUTO as AUTO_METHODS
from ..calibration.rounding import METHODS as WEIGHT_METHODS
from ..calibration.rounding import Rounded
from ..calibration.thresholds import DEFAULT_PERCENTILE, METHODS
from ..calibration.worker import Job
from ..errors import TesseraError, usage_error
from ..files import require_writable_folder
from ..top_model import TopModel
from .common import Context, Parser, run_command

NAME = "run_calibration"
FEW_SAMPLES = 32
TUNED = 8
MANY_CLIPPED = 0.01
NAMED = 5
WORTH_ROUNDING = 0.1
"""Least share of the weights for which auto looks for better roundings."""
EPILOG = """--dataset is one of
  DIR        pictures (pre-processed as model_transform was told), or .npz files with one array per input
  LIST.txt   one sample a line: FILE, or NAME=FILE,NAME=FILE; paths relative to the list
  FILE.npz   one array per input, samples along the first axis
  FILE.py    defines samples(), a generator of dicts of arrays

examples:
  run_calibration m_top.mlir --dataset pictures/ --input_num 100 -o m_cali.json
  run_calibration m_top.mlir --dataset list.txt --cali_method kl --symmetric --workers 4 -o m_cali.json
  run_calibration m_top.mlir --check_table m_cali.json
  run_calibration m_top.mlir --import_table tpu_mlir_cali_table -o m_cali.json
  run_calibration m_top.mlir --export_table m_cali.json -o tpu_mlir_cali_table"""


def parse(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = Parser(NAME, __doc__.split(": ", 1)[1], EPILOG)
    parser.add_argument("mlir", metavar="NAME_top.mlir", help="from model_transform")
    parser.add_argument("--dataset", "--data_list", metavar="DATA", help="the samples, see below")
    parser.add_argument("--input_num", type=int, default=100, metavar="N",
                        help="most samples to use, spread over all there are (default: %(default)s)")
    parser.add_argument("--cali_method", choices=("auto", *METHODS, "percentile"), default="auto",
                        help="auto: per tensor the method with the least measured output error (default: %(default)s)")
    parser.add_argument("--percentile", type=float, default=DEFAULT_PERCENTILE, metavar="P",
                        help="share of values kept by --cali_method percentile, in %% (default: %(default)s)")
    parser.add_argument("--methods", default="auto", metavar="A,B",
                        help=f"how weights are chosen by the samples: of {', '.join(WEIGHT_METHODS)}; none: rounded by themselves; "
                        f"auto: {', '.join(AUTO_METHODS)} where that lowers the measured output error (default: %(default)s)")
    parser.add_argument("--quantize", choices=("INT8", "W8", "W4"), default="INT8", type=str.upper,
                        help="precision that weights are chosen for, as for model_deploy (default: %(default)s)")
    parser.add_argument("--group_size", type=int, metavar="N", help="W4: as for model_deploy (default: 32)")
    scheme = parser.add_mutually_exclusive_group()
    scheme.add_argument("--symmetric", action="store_true", help="zero point 0 for all tensors")
    scheme.add_argument("--asymmetric", action="store_true", help="a zero point for all tensors (default for both: where it pays)")
    parser.add_argument("--tune_num", type=int, metavar="N",
                        help=f"samples on which auto measures (default: {TUNED}, or a quarter of all where that is less)")
    parser.add_argument("--workers", type=int, metavar="N", help="processes (default: one per core)")
    parser.add_argument("--distributed", metavar="ADDRESS", help="use the workers of a Dask scheduler instead")
    parser.add_argument("--resume", action="store_true", help="go on where an interrupted run with the same arguments was")
    parser.add_argument("--checkpoint_every", type=float, default=5.0, metavar="SECONDS", help="(default: %(default)s)")
    parser.add_argument("--cache_dir", metavar="DIR|none", help="kernel cache (default: the user's cache folder)")
    other = parser.add_argument_group("instead of calibrating").add_mutually_exclusive_group()
    other.add_argument("--check_table", metavar="FILE", help="tell whether a table, e.g. an edited one, is good for the model")
    other.add_argument("--import_table", metavar="FILE", help="make the table from a tpu-mlir text table")
    other.add_argument("--export_table", metavar="FILE", help="write a table as tpu-mlir's text")
    parser.add_argument("-o", "--calibration_table", "--output", dest="output", metavar="FILE", help="output, NAME_cali.json")
    return parser.add_common().parse_args(argv)


def check_usage(args: argparse.Namespace) -> None:
    if args.check_table:
        return
    if not args.output:
        raise usage_error("-o FILE is missing: where to write the table")
    if args.import_table or args.export_table:
        return
    if not args.dataset:
        raise usage_error("--dataset is missing: the samples to calibrate with")
    for flag, value in (("--input_num", args.input_num), ("--tune_num", args.tune_num), ("--workers", args.workers)):
        if value is not None and value < 1:
            raise usage_error(f"{flag} {value}: at least 1")
    if not 50 < args.percentile <= 100:
        raise usage_error(f"--percentile {args.percentile:g}: above 50 and at most 100")
    if args.group_size is not None and (args.quantize != "W4" or args.group_size < 16 or args.group_size % 16):
        raise usage_error(f"--group_size {args.group_size}: is for --quantize W4, a multiple of 16")
    if args.quantize != "INT8" and args.methods not in ("auto", "none", "gptq"):
        raise usage_error(f"--methods {args.methods}: for --quantize {args.quantize} auto, none or gptq")
    if args.distributed and args.workers:
        raise usage_error("--workers contradicts --distributed, whose workers are the scheduler's")


def work(context: Context) -> None:
    args = context.args
    check_usage(args)
    if args.check_table or args.import_table or args.export_table:
        _convert(context)
    else:
        _calibrate(context)


def _convert(context: Context) -> None:
    """Checks, imports or exports a table."""
    args, report = context.args, context.report
    report.total = 2
    with report.step("open Top model"):
        info = top_model.describe(args.mlir, report)
    names = [str(name) for name in info["tensors"]]
    with report.step("table") as step:
        if args.import_table:
            table, notes = tpu_mlir_table.import_text(args.import_table, str(info["model_name"]), str(info["model_hash"]), names)
            for note in notes:
                report.warn(note)
            table.save(require_writable_folder(args.output) / Path(args.output).name)
        else:
            path = args.check_table or args.export_table
            table = tables.load(path)
            tables.check_model(table, path, str(info["model_hash"]), names)
            if args.export_table:
                tpu_mlir_table.export_text(table, args.output)
        step.note = f"{len(table.tensors)} tensors"
        if missing := len(names) - len(table.tensors):
            report.warn(f"{missing} of the model's {len(names)} tensors are not in the table: they stay float")
    context.result["table"] = {"tensors": len(table.tensors), "model_hash": table.model_hash}
    report.finish([])


@dataclass(frozen=True)
class Observed:
    """The model compiled so that all its tensors can be seen."""

    model: TopModel
    bmodel: Path
    info: dict

    @property
    def sources(self) -> list[str]:
        return list(dict.fromkeys(str(t["source"]) for t in self.info["tensors"] if t["source"]))


def _calibrate(context: Context) -> None:
    args, report = context.args, context.report
    if args.quantize != "INT8" and args.cali_method == "auto":
        args.cali_method = "mse"  # ranges are not used: not worth a measurement
    auto = args.cali_method == "auto"
    methods = _weight_methods(args.methods)
    report.total = (5 if auto else 4) + bool(methods)
    output = require_writable_folder(args.output) / Path(args.output).name
    with tempfile.TemporaryDirectory(prefix="tessera-calibration-") as folder, contextlib.ExitStack() as at_end:
        with report.step("compile, every tensor visible") as step:
            model = top_model.open_top(args.mlir, report)
            dataset = open_dataset(args.dataset, model.inputs, args.input_num)
            pool = _pool(args, dataset, at_end)
            weights = Path(folder) / "weights.safetensors"
            extra = ["--observe", "--weights", str(weights), *_compiler_flags(args)]
            bmodel = Path(folder) / "observed.bmodel"
            info = top_model.deploy(model, bmodel, report, chip="x86", quantize="F32", extra=extra)
            observed = Observed(model, bmodel, info)
            step.note = f"{len(info['tensors'])} tensors"
        job = Job(f"{info['model_hash']} {bmodel}", str(bmodel), model.inputs, tuple(observed.sources), model.probabilities)
        engine = PoolEngine(job, pool) if pool else _engine(args, job, at_end)
        state = _collect(context, engine, dataset, observed, output)
        choices = _choose(context, engine, dataset, state)
        table = _table(args, observed, state, choices)
        learned = _learn(context, job, dataset, observed, state, choices, table, Path(folder)) if methods else {}
    with report.step("write table") as step:
        beside = output.with_suffix(".safetensors")
        if learned:
            table = replace(table, weights_hash=learning.save(beside, learned))
        table.save(output)
        if not learned:
            beside.unlink(missing_ok=True)
        Checkpoint(_partial(output), "", 0).remove()
        step.note = str(output)
    _warn(context, dataset, observed, state, choices)
    _results(context, dataset, table, state, choices)
    report.finish([f"model_deploy --mlir {args.mlir} --chip x86 --quantize {args.quantize} --calibration_table {output} "
                   f"--model {Path(args.mlir).stem.removesuffix('_top')}_x86_{args.quantize.lower()}.bmodel"])


def _compiler_flags(args: argparse.Namespace) -> list[str]:
    flags = {"--cache-dir": args.cache_dir, "--group-size": args.group_size}
    return [word for flag, value in flags.items() if value is not None for word in (flag, str(value))]


def _pool(args: argparse.Namespace, dataset: Dataset, at_end: contextlib.ExitStack) -> Pool | None:
    """Where several processes of this machine are to work: they start while the model is compiled."""
    workers = min(args.workers or usable_cores(), dataset.count)
    if args.distributed or workers == 1:
        return None
    pool = Pool(workers)
    at_end.callback(pool.close)
    return pool


def _engine(args: argparse.Namespace, job: Job, at_end: contextlib.ExitStack) -> Engine:
    if not args.distributed:
        return Engine(job)
    engine = DaskEngine(job, args.distributed)
    at_end.callback(engine.close)
    return engine


def _partial(output: Path) -> Path:
    return output.with_name(output.name + ".partial")


def _collect(context: Context, engine: Engine, dataset: Dataset, observed: Observed, output: Path) -> State:
    args, report = context.args, context.report
    identity = f"{observed.info['model_hash']}\n{args.input_num}\n{dataset.identity}"
    checkpoint = Checkpoint(_partial(output), identity, args.checkpoint_every)
    state = checkpoint.load(observed.sources) if args.resume else None
    resumed = len(state.done) if state else 0
    with report.step(f"observe on {engine.workers} worker(s)") as step:
        step.progress(resumed, dataset.count)
        state = collect(engine, dataset, state or State.empty(observed.sources), checkpoint,
                        lambda done: step.progress(done, dataset.count))
        step.note = f"{len(state.digests)} samples"
        step.note += f" of {dataset.available}" if dataset.available > dataset.count else ""
        step.note += f", {resumed} of them before the interruption" if resumed else ""
    if not state.digests:
        raise TesseraError(f"--dataset {args.dataset}: no sample could be read",
                           details=[text for _, text in sorted(state.skipped.items())][:NAMED])
    return state


def _choose(context: Context, engine: Engine, dataset: Dataset, state: State) -> dict[str, Choice]:
    args, report = context.args, context.report
    scheme = "symmetric" if args.symmetric else "asymmetric" if args.asymmetric else "best"
    with report.step("thresholds") as step:
        options: dict[str, list[Choice]] = {}
        find = partial(candidates_for, method=args.cali_method, scheme=scheme, percentile=args.percentile)
        for source, choices in zip(state.histograms, engine.map(find, state.histograms.values())):
            options[source] = choices
            step.progress(len(options), len(state.histograms))
        if args.cali_method != "auto":
            return {source: choices[0] for source, choices in options.items()}
        several = sum(len(choices) > 1 for choices in options.values())
        step.note = f"{several} of {len(options)} tensors have a choice, of {sum(map(len, options.values()))} in all"
    with report.step("measure output errors") as step:
        count = args.tune_num or max(1, min(TUNED, len(state.digests) // 4))
        chosen = measure(engine, dataset, list(state.digests), count, options, step.progress)
        counts = {method: sum(c.method == method for c in chosen.values()) for method in METHODS}
        step.note = ", ".join(f"{method} {count}" for method, count in counts.items() if count)
    return chosen


def _table(args: argparse.Namespace, observed: Observed, state: State, choices: dict[str, Choice]) -> tables.Table:
    entries = []
    for tensor in observed.info["tensors"]:
        choice = choices.get(tensor["source"])
        if choice is not None:
            r, seen = choice.asymmetric_range, state.histograms[tensor["source"]].summary()
            entries.append(tables.Entry.make(tensor["name"], choice.symmetric_range.threshold, r.low, r.high,
                                             choice.symmetric, choice.method, choice.error,
                                             largest=max(-seen["min"], seen["max"], 0.0)))
    method = f"percentile {args.percentile:g}" if args.cali_method == "percentile" else args.cali_method
    name = Path(args.mlir).stem.removesuffix("_top")
    return tables.Table(name, observed.info["model_hash"], method, len(state.digests), state.sample_hash(), tuple(entries),
                        sample_digests=tuple(state.digests[number][:tables.DIGEST_LENGTH] for number in sorted(state.digests)))


def _weight_methods(text: str) -> tuple[str, ...]:
    """What --methods names; auto as all of them. Raises TesseraError for what there is not."""
    if text in ("auto", "none"):
        return AUTO_METHODS if text == "auto" else ()
    names = tuple(text.split(","))
    for name in names:
        if name not in WEIGHT_METHODS:
            near = difflib.get_close_matches(name, WEIGHT_METHODS, 1)
            raise usage_error(f"--methods: there is no '{name}'" + (f"; is it '{near[0]}'?" if near else ""),
                              hint=f"allowed: auto, none, or a list of {', '.join(WEIGHT_METHODS)}")
    return names


def _learn(context: Context, job: Job, dataset: Dataset, observed: Observed, state: State, choices: dict[str, Choice],
           table: tables.Table, folder: Path) -> dict[str, Rounded]:
    """Weights chosen by the samples; empty where auto finds them worse than weights rounded by themselves."""
    args, report = context.args, context.report
    tried = learning.tried(list(state.digests))
    with report.step("weights by the samples") as step:
        samples, count = learning.pick(dataset, list(state.digests), tried)
        products = learning.read_products(observed.info["products"], folder / "weights.safetensors")
        source_of = {t["name"]: t["source"] for t in observed.info["tensors"]}
        shape_of = {t["name"]: tuple(t["shape"]) for t in observed.info["tensors"]}
        methods = _weight_methods(args.methods)
        to_round = learning.to_round(products, shape_of, count, args.quantize)
        if args.methods == "auto" and learning.share_of(to_round, products) < WORTH_ROUNDING:
            step.note = "left out: int8 holds them as they are, or there are too few samples for them"
            return {}
        ways = [methods]
        if args.methods == "auto" and args.quantize == "INT8":  # means of samples unlike what will come do harm
            ways.append(tuple(method for method in methods if method != "bias_correction"))
        found = learning.learn(job, samples, count, products, to_round, choices, source_of, shape_of, ways, args.quantize,
                               step.progress)
        if not any(found):
            step.note = "none is to be chosen"
            return {}
        trial = learning.Trial(observed.model, folder, table, _compiler_flags(args), args.quantize)
        try:
            without, *errors = trial.compare(job, dataset, tried, found)
        except TesseraError as error:
            if args.methods != "auto":
                raise
            step.note = "left out: the quantised model cannot be tried"
            report.warn(f"weights were not chosen by the samples: {error.message}")
            return {}
        best = errors.index(min(errors))
        learned, with_them = found[best], errors[best]
        step.note = f"{len(learned)} ops by {'+'.join(ways[best])}, {count} samples; "
        step.note += f"output error {without:.4f} without, {with_them:.4f} with"
        context.result["methods"] = {"methods": list(ways[best]), "ops": len(learned), "error_without": without, "error_with": with_them}
        if args.methods == "auto" and not with_them < without:
            step.note += ": left out"
            return {}
    if with_them > without:
        report.warn(f"--methods {args.methods} raises the measured output error from {without:.4f} to {with_them:.4f}")
    return learned


def _names(names: list[str]) -> str:
    return ", ".join(f"'{name}'" for name in names[:NAMED]) + (f" and {len(names) - NAMED} more" if len(names) > NAMED else "")


def _warn(context: Context, dataset: Dataset, observed: Observed, state: State, choices: dict[str, Choice]) -> None:
    """What may make the table worse than it looks."""
    warn = context.report.warn
    if state.skipped:
        skipped = [state.names[number] for number in sorted(state.skipped)]
        first = state.skipped[min(state.skipped)]
        warn(f"{len(skipped)} of {dataset.count} samples could not be read and were left out: {_names(skipped)} ({first})")
    if len(state.digests) < FEW_SAMPLES:
        warn(f"only {len(state.digests)} sample(s): ranges are less certain with fewer than {FEW_SAMPLES}, 100 are usual")
    if any(s.preprocess is None and len(s.shape) == 4 for s in observed.model.inputs) and dataset.kind in ("folder", "picture"):
        if any(Path(name).suffix != ".npz" for name in state.names.values()):
            warn("the model has no pre-processing: pictures were fed as BGR 0..255; see model_transform --mean, --scale, --pixel_format")
    summaries = {source: histogram.summary() for source, histogram in state.histograms.items()}
    for source, summary in summaries.items():
        if summary["nan"] or summary["infinite"]:
            sample = state.names[summary["first_bad_sample"]]
            warn(f"tensor '{source}' has {summary['nan']} NaN and {summary['infinite']} infinite values, "
                 f"first in sample {sample}; its range is that of the {summary['finite']} others")
    constant = [source for source, s in summaries.items() if s["finite"] and s["min"] == s["max"]]
    if constant:
        warn(f"{len(constant)} tensor(s) have the same value everywhere: {_names(constant)}; do the samples suit the model?")
    clipped = [source for source, choice in choices.items() if _clipped(state, source, choice) > MANY_CLIPPED]
    if clipped:
        warn(f"{len(clipped)} tensor(s) have more than {MANY_CLIPPED:.0%} of their values clipped: {_names(clipped)}")
    lost = [t["name"] for t in observed.info["tensors"] if not t["source"] and not t["constant"]]
    if lost:
        warn(f"{len(lost)} tensor(s) could not be observed and stay float: {_names(lost)}")


def _clipped(state: State, source: str, choice: Choice) -> float:
    """Share of values outside the range."""
    values = Distribution.from_histogram(state.histograms[source])
    if values.total == 0:
        return 0.0
    if choice.symmetric:
        return values.above(choice.symmetric_range.threshold)
    r = choice.asymmetric_range
    return float(values.counts[(values.centres < r.low) | (values.centres > r.high)].sum() / values.total)


def _results(context: Context, dataset: Dataset, table: tables.Table, state: State, choices: dict[str, Choice]) -> None:
    measured = {source: choice.error for source, choice in choices.items() if choice.error is not None}
    worst = sorted(measured.items(), key=lambda item: -item[1])[:NAMED]
    context.result["table"] = {
        "file": str(context.args.output), "tensors": len(table.tensors), "samples": table.samples,
        "skipped": {state.names[n]: text for n, text in sorted(state.skipped.items())},
        "model_hash": table.model_hash, "sample_hash": table.sample_hash,
        "methods": {c.name: c.method for c in table.tensors}, "measured_error": measured}
    if worst:
        context.report.say("most sensitive, relative error of the outputs with only this tensor in int8: "
                           + ", ".join(f"'{name}' {error:.2%}" for name, error in worst))


def main(argv: Sequence[str] | None = None) -> int:
    return run_command(NAME, parse, work, steps=5, argv=argv)


if __name__ == "__main__":
    raise SystemExit(main())
