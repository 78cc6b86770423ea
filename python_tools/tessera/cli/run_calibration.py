# SPDX-License-Identifier: Apache-2.0
"""run_calibration: runs sample data through the compiled f32 model and writes the table of ranges for int8."""
from __future__ import annotations

import contextlib
import hashlib
import math
from dataclasses import dataclass, field, replace
from functools import cache, partial
from pathlib import Path
from typing import Sequence

from .. import bmodel, top_model
from ..background import usable_cores
from ..calibration import table as tables
from ..calibration import checks, equalization, gates, histograms, repair, sample, tpu_mlir_table, weights
from ..calibration.choose import Choice, candidates_for, cautious, measure
from ..calibration.collect import Checkpoint, State, collect
from ..calibration.dataset import Dataset, open_dataset, readable
from ..calibration.distribution import Distribution
from ..calibration.engine import DaskEngine, Engine, PoolEngine
from ..calibration.learn import check_beside, read_contractions, save as save_table
from ..calibration.observed import Observed
from ..calibration.pool import Pool
from ..calibration.rounding import Rounded
from ..calibration.speed import Speed
from ..calibration.states import open_sequence
from ..calibration.thresholds import METHODS
from ..calibration.trial import Golden, Trial, Tried, Way
from ..calibration.worker import opened
from ..errors import ExitCode, TesseraError
from ..families import HOST
from ..files import require_writable_folder, scratch_folder, write_text
from ..output_error import name_for, pick_samples
from ..progress import Report, command
from ..targets import targets
from ..tasks.answers import mostly_alike
from .calibration_arguments import NAME, TUNED, Options, check_usage, chosen_methods, parse
from .common import Context, run_command

FEW_SAMPLES = 32
MANY_CLIPPED = 0.01
NAMED = 5


def work(context: Context[Options]) -> None:
    args = context.args
    check_usage(args)
    if args.check_table or args.import_table or args.export_table:
        _convert(context)
    else:
        _calibrate(context)


def _convert(context: Context[Options]) -> None:
    """Checks, imports or exports a table."""
    args, report = context.args, context.report
    report.total = 2
    with report.step("open Top model"):
        info = top_model.describe(args.mlir, report)
    names = [str(name) for name in info["tensors"]]
    with report.step("table") as step:
        if args.import_table:
            table, notes = tpu_mlir_table.import_text(
                args.import_table, str(info["model_name"]), str(info["model_hash"]), names
            )
            for note in notes:
                report.warn(note)
            table.save(context.outputs.path(args.output))
            _warn_of_edited(context)
        else:
            path = args.check_table or args.export_table or ""
            table = tables.load(path)
            tables.check_model(table, path, info)
            if args.export_table:
                tpu_mlir_table.export_text(table, context.outputs.path(args.output))
        step.note = f"{len(table.tensors)} tensors"
        if missing := len(names) - len(table.tensors):
            report.warn(f"{missing} of the model's {len(names)} tensors are not in the table and stay in float")
    context.result["table"] = {"tensors": len(table.tensors), "model_hash": table.model_hash}
    report.finish([])


def _calibrate(context: Context[Options]) -> None:
    args, report = context.args, context.report
    if args.quantize != "INT8" and args.cali_method == "auto":
        args.cali_method = "mse"  # ranges are not used, so a measurement does not pay
    methods, kinds = chosen_methods(args)
    report.total = (5 if args.cali_method == "auto" else 4) + bool(methods) + bool(kinds)
    staged = context.outputs.path(args.output)
    output = require_writable_folder(args.output) / Path(args.output).name
    check_beside(output)
    with scratch_folder() as folder, contextlib.ExitStack() as at_end:
        with report.step("compile, every tensor visible") as step:
            model = top_model.open_top(args.mlir, report)
            dataset = _dataset(args, model, folder)
            pool = _pool(args, dataset, at_end)
            observed = Observed.compile(model.as_ports(), folder, report, args.compiler_flags)
            step.note = f"{len(observed.info['tensors'])} tensors"
        run = Calibration(context, args, report, output, folder, dataset, observed, Golden(observed.job()))
        run.check_control_flow()
        seen = run.equalize(kinds) if kinds and run.tries else None
        engine = _engine(args, run.observed, pool, at_end)
        run.state = run.collect(engine, seen)
        run.reject_no_numbers()
        run.choices = run.choose(engine)
        if args.histograms:
            text = histograms.as_json(run.observed, run.state.histograms, run.choices)
            write_text(context.outputs.path(args.histograms), text)
        table, learned = run.table(), dict[str, Rounded]()
        known: Tried | None = None
        if methods and run.observed.info["control_flow"]:
            report.warn("weights were not learned from the samples: that needs networks without branches and loops")
        elif methods:
            learned, known = run.learn(methods, table)
        table = replace(table, max_error=args.max_error, same_answers=tuple(mostly_alike(run.state.answers)))
        left = known.error if known else None
        limit = repair.allowed(table, args.max_error, args.at_any_price)
        if known and args.quantize == "INT8" and args.cali_method == "auto" and known.error > limit:
            table, left = run.repair(Way(table, learned, run.observed.factors), known)
        table = replace(table, output_error=None if left is None else float(f"{left:.4g}"))
        run.keep_sample()
    with report.step("write table") as step:
        context.outputs.path(output.with_suffix(".safetensors"))
        table = save_table(staged, table, learned, run.observed.factors)
        if not table.weights_hash:
            context.outputs.remove(output.with_suffix(".safetensors"))  # of the previous table
        for partial_state in (_partial(output, False), _partial(output, True)):
            context.outputs.remove(partial_state)
        _warn_of_edited(context)
        step.note = str(output)
    run.warn()
    run.report_error(table)
    run.report_table(table)
    report.finish([_deploy(args, output)])


def _dataset(args: Options, model: top_model.TopModel, folder: Path) -> Dataset:
    """Opens the samples, which contain the states of the model as inputs."""
    if not model.states:
        return open_dataset(args.dataset, model.inputs, args.input_num)

    @cache
    def net() -> bmodel.Net:
        path = folder / "f32.bmodel"
        top_model.deploy(model, path, Report(1, quiet=True), chip=HOST, quantize="F32")
        return bmodel.open_net(path)

    return open_sequence(args.dataset, model, args.input_num, lambda arrays: net().run_step(arrays))


def _deploy(args: Options, table: Path) -> str:
    """Returns the command that deploys the model with `table`."""
    model = f"{Path(args.mlir).stem.removesuffix('_top')}_{HOST}_{args.quantize.lower()}.bmodel"
    flags = ["--chip", HOST, "--quantize", args.quantize, "--calibration_table", table, "--model", model]
    return command("model_deploy", "--mlir", args.mlir, *flags)


def _warn_of_edited(context: Context[Options]) -> None:
    """Warns about a manually edited table, which is kept under another name instead of overwritten."""
    output = Path(context.args.output)
    if tables.may_be_edited(output) and (text := context.outputs.keep_other(output)):
        context.report.warn(f"{text}; it was edited")


def _pool(args: Options, dataset: Dataset, at_end: contextlib.ExitStack) -> Pool | None:
    """Starts worker processes on this machine, if several are wanted, while the model is compiled."""
    workers = min(args.workers or usable_cores(), dataset.count)
    if args.distributed or workers == 1:
        return None
    pool = Pool(workers)
    at_end.callback(pool.close)
    return pool


def _engine(args: Options, observed: Observed, pool: Pool | None, at_end: contextlib.ExitStack) -> Engine:
    if pool:
        return PoolEngine(observed.job(), pool)
    if not args.distributed:
        return Engine(observed.job())
    engine = DaskEngine(observed.job(), args.distributed)
    at_end.callback(engine.close)
    return engine


def _partial(output: Path, equalized: bool) -> Path:
    return output.with_name(output.name + (".equalized" if equalized else "") + ".partial")


def _names(names: list[str]) -> str:
    return ", ".join(f"'{name}'" for name in names[:NAMED]) + (
        f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    )


@dataclass
class Calibration:
    """One run of the command. output: the table. folder: for temporary files. observed: the model, with equalised
    channels once equalize() has chosen them. state: what all samples show. choices: the ranges by source."""

    context: Context[Options]
    args: Options
    report: Report
    output: Path
    folder: Path
    dataset: Dataset
    observed: Observed
    golden: Golden
    tries: bool = True  # trials of ranges and equalised channels are possible
    state: State = field(default_factory=State)
    choices: dict[str, Choice] = field(default_factory=dict)

    @property
    def error_name(self) -> str:
        """Name of the error of the model's outputs."""
        return name_for(self.observed.model.outputs, self.observed.model.origins)

    def check_control_flow(self) -> None:
        """Leaves out the trials if the model's branches and loops prevent them."""
        if not self.observed.info["control_flow"]:
            return
        numbers = {sample.number for sample in self.dataset.samples()}
        for _, arrays in readable(self.dataset, numbers, self.observed.job().specs):
            self.tries = opened(self.observed.job()).reruns(arrays)
            break
        if not self.tries:
            self.report.warn(
                "ranges are chosen without measuring their effect on the outputs, and channels are not equalised: a "
                "network with several ops between branches or loops cannot be run from its middle"
            )

    def equalize(self, kinds: Sequence[str]) -> State | None:
        """Equalises channels if requested or if that lowers the output error. Returns what samples have shown of the
        model so far."""
        args, report = self.args, self.report
        bench = equalization.FactorTrials(self.dataset, args.compiler_flags, self.folder, self.golden)
        with report.step("equalise channels") as step:
            found = equalization.equalize(self.observed, kinds, args.methods != "auto", bench, step.progress)
            step.note = f"{found.tensors} tensors" if found.observed else "left out"
            if found.without:
                step.note += f": {self.error_name} {found.without:.2%} without"
                step.note += f", {found.with_them:.2%} with it" if found.with_them else ""
        if found.failure:
            report.warn(f"channels were not equalised: {found.failure}")
        self.context.result["equalization"] = {
            "tensors": found.tensors if found.observed else 0,
            "error_without": found.without or None,
            "error_with": found.with_them or None,
        }
        self.observed = found.observed or self.observed
        return found.seen

    def collect(self, engine: Engine, seen: State | None) -> State:
        """Collects what all samples show. seen: observations of some of them."""
        args, dataset, observed = self.args, self.dataset, self.observed
        factors = [array.tobytes() for array in observed.factors.values()]
        of_factors = hashlib.sha256(b"".join(factors)).hexdigest()
        identity = f"{observed.info['model_hash']}\n{args.input_num}\n{dataset.identity}\n{of_factors}"
        checkpoint = Checkpoint(_partial(self.output, bool(observed.factors)), identity, args.checkpoint_every)
        state = checkpoint.load(observed.sources) if args.resume else None
        resumed = len(state.done) if state else 0
        with self.report.step(f"observe on {engine.workers} worker(s)") as step:
            state = state or seen or State.empty(observed.sources)
            step.progress(len(state.done), dataset.count)
            state = collect(engine, dataset, state, checkpoint, lambda done: step.progress(done, dataset.count))
            step.note = f"{len(state.digests)} samples"
            step.note += f" of {dataset.available}" if dataset.available > dataset.count else ""
            step.note += f", {resumed} of them from before the interruption" if resumed else ""
        if not state.digests:
            raise TesseraError(
                f"--dataset {args.dataset}: no sample could be read",
                details=[text for _, text in sorted(state.skipped.items())][:NAMED],
            )
        return state

    def reject_no_numbers(self) -> None:
        """Raises TesseraError if a tensor holds only NaN in every sample, so that no range can be found."""
        for source, histogram in self.state.histograms.items():
            summary = histogram.summary()
            if summary["nan"] and not summary["finite"]:
                names = [self.state.names[number] for number in sorted(self.state.digests)]
                raise TesseraError(
                    f"--dataset {self.args.dataset}: tensor '{source}' has no finite value in any of the "
                    f"{len(names)} samples, only NaN: {_names(names)}",
                    hint="check the samples and their pre-processing; model_deploy --compare_all shows where "
                    "NaN begins",
                )

    def choose(self, engine: Engine) -> dict[str, Choice]:
        """Chooses the range of each source; auto measures those that int8 stores as integers."""
        args, report, state, observed = self.args, self.report, self.state, self.observed
        auto = args.cali_method == "auto"
        find = partial(candidates_for, scheme=args.scheme, percentile=args.percentile)
        with report.step("thresholds") as step:
            plain: dict[str, Choice] = {}
            method = "mse" if auto else args.cali_method
            unseen = state.unseen() & observed.repeated
            seen = {source: histogram for source, histogram in state.histograms.items() if source not in unseen}
            for source, (choice,) in zip(seen, engine.map(find, list(seen.values()), [method] * len(seen))):
                plain[source] = choice
                step.progress(len(plain), len(seen))
            if not auto:
                return plain
            wide = partial(cautious, scheme=args.scheme, percentile=args.percentile)
            sources = [source for source in plain if source in observed.integers]
            defaults = dict(zip(sources, engine.map(wide, [state.histograms[source] for source in sources])))
            plain |= {source: choice for source, choice in defaults.items() if source in observed.repeated}
            sources = [source for source in sources if source not in observed.repeated]
            defaults = {source: defaults[source] for source in sources}
            if not self.tries:
                return {**plain, **defaults}
        with report.step("measure output errors") as step:
            engine.measure_at(gates.segments(observed, defaults))

            def options_for(some: Sequence[str]) -> dict[str, list[Choice]]:
                found = engine.map(find, [state.histograms[source] for source in some], ["auto"] * len(some))
                return dict(zip(some, found))

            count = args.tune_num or max(1, min(TUNED, len(state.digests) // 4))
            peaks = {source: number for source, (_, number) in state.peaks.items()}
            widest = None
            if mostly_alike(state.answers):
                found = engine.map(find, [state.histograms[source] for source in sources], ["max"] * len(sources))
                widest = {source: choice for source, (choice,) in zip(sources, found)}
            measured = measure(
                engine, self.dataset, list(state.digests), count, defaults, options_for, peaks, step.progress, widest
            )
            chosen = {**plain, **measured}
            counts = {method: sum(c.method == method for c in chosen.values()) for method in METHODS}
            step.note = ", ".join(f"{method} {count}" for method, count in counts.items() if count)
        return chosen

    def table(self) -> tables.Table:
        args, observed, state = self.args, self.observed, self.state
        method = f"percentile {args.percentile:g}" if args.cali_method == "percentile" else args.cali_method
        name = Path(args.mlir).stem.removesuffix("_top")
        return tables.Table(
            name,
            observed.info["model_hash"],
            method,
            len(state.digests),
            state.sample_hash(),
            tables.entries_of(observed, state.histograms, self.choices),
            sample_digests=tuple(state.digests[number][: tables.DIGEST_LENGTH] for number in sorted(state.digests)),
            network=str(observed.info.get("network", "")),
        )

    def learn(self, methods: tuple[str, ...], table: tables.Table) -> tuple[dict[str, Rounded], Tried | None]:
        """Returns weights learned from the samples, empty if auto finds them worse than default rounding, and the
        model's result with them, if it was tried."""
        args, report, observed = self.args, self.report, self.observed
        request = weights.Request(
            observed.job(),
            observed,
            self.dataset,
            tuple(self.state.digests),
            methods,
            args.methods == "auto",
            args.quantize,
            args.compiler_flags,
            self.folder,
            self.golden,
        )
        with report.step("learn weights from samples") as step:
            found = weights.choose(request, self.choices, table, step.progress)
            step.note = found.left_out
            if found.failure:
                report.warn(f"weights were not learned from the samples: {found.failure}")
            if not found.methods:
                return {}, found.tried
            step.note = f"{found.ops} ops by {'+'.join(found.methods)}, {found.samples} samples; "
            step.note += f"{self.error_name} {found.without:.2%} without, {found.with_them:.2%} with"
            step.note += f": {found.left_out}" if found.left_out else ""
        if found.wide:
            report.say(
                f"{len(found.wide)} ops keep 8 bits, {found.wide_share:.1%} of the weights: rounding them to 4 "
                "bits affects "
                f"the outputs most for their size: {_names(list(found.wide))}"
            )
        self.context.result["methods"] = {
            "methods": list(found.methods),
            "ops": found.ops,
            "wide": list(found.wide),
            "error_without": found.without,
            "error_with": found.with_them,
        }
        if found.with_them > found.without and not request.auto:
            report.warn(
                f"--methods {args.methods} raises the measured {self.error_name} from {found.without:.2%} to "
                f"{found.with_them:.2%}"
            )
        return found.weights, found.tried

    def repair(self, way: Way, known: Tried) -> tuple[tables.Table, float]:
        """Returns the table with 16 bits, f32 and residual weights if int8 exceeds the allowed error, and the remaining
        output error."""
        args, report, observed, choices = self.args, self.report, self.observed, self.choices
        trial = Trial(observed.model, args.quantize, args.compiler_flags, self.folder, self.golden)
        with report.extra_step("16 bits, f32 and residual weights where they pay") as step:
            products = read_contractions(observed.info["products"], observed.weights)
            found = repair.repair(
                trial,
                observed,
                self.dataset,
                pick_samples(self.state.digests, observed.model.specs),
                products,
                way,
                args.max_error,
                args.at_any_price,
                known,
                gates.segments(
                    observed, {source: choices[source] for source in choices if source in observed.integers}
                ),
                Speed.of(args.chip, targets().rates[args.chip], products, observed.shape_of),
            )
            step.note = repair.describe_repair(found, self.error_name) or "none do"
        if found.time >= 1:
            report.warn(
                f"int8 saves no time on {found.chip} once its outputs are exact enough, so every tensor stays f32: "
                "calibrate with samples that contain what the model looks for, or give --max_error "
                f"{math.ceil(found.before * 100) / 100:.2f} to keep int8 as it is"
            )
        self.context.result["repair"] = {
            "tensors": list(found.tensors),
            "floats": list(found.floats),
            "split": list(found.split),
            "error_before": found.before,
            "floor": found.floor,
            "chip": found.chip,
            "time_before": found.time_before,
            "time": found.time,
            "added": dict(found.added),
        }
        return found.table, found.after

    def keep_sample(self) -> None:
        """Writes the sample and check files beside the table; removes those of the previous table."""
        outputs, output, observed = self.context.outputs, self.output, self.observed
        staged = outputs.path(output)
        beside = (sample.sample_path(output), checks.checks_path(output))
        for path in beside:
            outputs.path(path)
        sample.save(staged, self.dataset, self.state.digests, observed.model.inputs)
        numbers = pick_samples(self.state.digests, observed.model.specs)
        checks.save(staged, self.dataset, numbers, observed.model.inputs, opened(observed.job()))
        for path in beside:
            there = outputs.path(path).exists()
            if output.exists() and not there:
                outputs.remove(path)
            elif not output.exists() and there and (text := outputs.keep_other(path)):
                self.report.warn(text)

    def warn(self) -> None:
        """Warns about problems that may make the table worse than it looks."""
        self.warn_of_samples()
        warn, state = self.report.warn, self.state
        summaries = {source: histogram.summary() for source, histogram in state.histograms.items()}
        for source, summary in summaries.items():
            if summary["nan"] or summary["infinite"]:
                sample = state.names[summary["first_bad_sample"]]
                warn(
                    f"tensor '{source}' has {summary['nan']} NaN and {summary['infinite']} infinite values, "
                    f"first in sample {sample}; its range is that of the {summary['finite']} finite values"
                )
        constant = [source for source, s in summaries.items() if s["finite"] and s["min"] == s["max"]]
        if constant:
            warn(
                f"{len(constant)} tensor(s) have the same value everywhere: {_names(constant)}; check that the samples "
                "suit the model"
            )
        clipped = [source for source in self.choices if self.clipped(source) > MANY_CLIPPED]
        if clipped:
            warn(
                f"{len(clipped)} tensor(s) have more than {MANY_CLIPPED:.0%} of their values clipped: {_names(clipped)}"
            )
        if unseen := [source for source in state.unseen() & self.observed.repeated]:
            warn(
                f"{len(unseen)} tensor(s) of branches and loops have no value in any sample and stay in float: "
                f"{_names(sorted(unseen))}; add samples that take these branches"
            )
        lost = [t["name"] for t in self.observed.info["tensors"] if not t["source"] and not t["constant"]]
        if lost:
            warn(f"{len(lost)} tensor(s) could not be observed and stay in float: {_names(lost)}")

    def warn_of_samples(self) -> None:
        warn, dataset, state = self.report.warn, self.dataset, self.state
        if state.skipped:
            skipped = [state.names[number] for number in sorted(state.skipped)]
            first = state.skipped[min(state.skipped)]
            warn(
                f"{len(skipped)} of {dataset.count} samples could not be read and were left out: {_names(skipped)} "
                f"({first})"
            )
        if len(state.digests) < FEW_SAMPLES:
            warn(
                f"only {len(state.digests)} sample(s): ranges are less certain below {FEW_SAMPLES} samples; 100 are "
                "usual"
            )
        if any(s.preprocess is None and len(s.shape) == 4 for s in self.observed.model.inputs) and dataset.kind in (
            "folder",
            "picture",
        ):
            if any(Path(name).suffix != ".npz" for name in state.names.values()):
                warn(
                    "the model has no pre-processing: pictures were fed as BGR 0..255; see model_transform --mean, "
                    "--scale, --pixel_format"
                )

    def clipped(self, source: str) -> float:
        """Returns the share of values outside the range."""
        found = self.choices[source].range
        return Distribution.from_histogram(self.state.histograms[source]).outside(found.low, found.high)

    def report_error(self, table: tables.Table) -> None:
        args, warn, state = self.args, self.report.warn, self.state
        if table.output_error is not None and args.quantize == "INT8":
            count = len(pick_samples(state.digests, self.observed.model.specs))
            measured = f"{self.error_name} {table.output_error:.2%} on {count} samples"
            self.report.say(f"the outputs of {args.quantize} have a {measured}")
            if text := checks.error_warning(table.output_error, args.max_error, args.quantize, measured, args.output):
                warn(text)
        if text := checks.answers_warning(table.same_answers, mostly_alike(state.answers), len(state.answers)):
            warn(text)

    def report_table(self, table: tables.Table) -> None:
        state = self.state
        measured = {source: choice.error for source, choice in self.choices.items() if choice.error is not None}
        worst = sorted(measured.items(), key=lambda item: -item[1])[:NAMED]
        self.context.result["table"] = {
            "file": str(self.args.output),
            "tensors": len(table.tensors),
            "samples": table.samples,
            "skipped": {state.names[n]: text for n, text in sorted(state.skipped.items())},
            "model_hash": table.model_hash,
            "sample_hash": table.sample_hash,
            "methods": {c.name: c.method for c in table.tensors},
            "measured_error": measured,
            "max_error": table.max_error,
            "output_error": table.output_error,
            "error_name": self.error_name,
            "same_answers": list(table.same_answers),
        }
        if worst:
            self.report.say(
                f"most sensitive, {self.error_name} with only this tensor in int8: "
                + ", ".join(f"'{name}' {error:.2%}" for name, error in worst)
            )


def main(argv: Sequence[str] | None = None) -> int:
    return run_command(NAME, parse, work, steps=5, argv=argv)


if __name__ == "__main__":
    raise SystemExit(main())
