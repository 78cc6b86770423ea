# SPDX-License-Identifier: Apache-2.0
"""model_deploy: compiles NAME_top.mlir to a .bmodel for a chip, and checks it layer by layer against the Top
reference."""
from __future__ import annotations

import argparse
import contextlib
import json
import math
import time
from functools import partial
from pathlib import Path
from typing import Any, Callable, Iterator, Mapping, Sequence

import numpy as np

from .. import advice, bmodel, compare, exactness, families, inputs, partition, safetensors_io, sizes, stages
from .. import tolerances, top_model, verdict
from ..background import Background
from ..calibration import sample
from ..calibration import table as tables
from ..compile_driver import beside
from ..errors import ExitCode, TesseraError, usage_error
from ..files import load_npz, require_file, staging_folder, write_text
from ..precision.cost import share_of_f32
from ..programs import read_model
from ..progress import command, Report
from ..scratch import scratch_folder
from ..top_model import TopModel
from . import precision
from .common import Context, run_command
from .output_check import Tested, judge, measure_outputs, warn_by_table
from .deploy_arguments import NAME, parse, reject_unsupported
from .deploy_variants import Variant, variants
from .single_check import check_each_op
from .wide_input import check_wide_input

OPS_SHOWN = 8
LONGEST_SECOND_RUN = 10.0  # seconds; no second run if the first one with its comparison took longer


def work(context: Context) -> None:
    args, report = context.args, context.report
    reject_unsupported(args)
    # TF32 has the fraction of F16.
    tolerance = tolerances.parse(args.tolerance, "F16" if args.tf32 and args.quantize == "F32" else args.quantize)
    output = Path(args.model)
    if output.suffix != ".bmodel":
        raise usage_error(f"--model {output}: the name must end in .bmodel")
    staged = context.outputs.path(output)
    for flag in ("device_mlir", "plan_out"):
        if getattr(args, flag):
            setattr(args, flag, str(context.outputs.path(getattr(args, flag))))
    stages_wanted = variants(args)
    several = len(stages_wanted) > 1
    report.total = (
        (2 if args.skip_validation else 5 if args.quantize == "F32" else 6) * len(stages_wanted)
        + (2 if args.target else 0)
        + several
        + bool(args.tune)
    )
    with stages_wanted[0].applied(args):
        missed = None if several else _deploy(context, staged, tolerance)
    if several:
        missed = _deploy_stages(context, stages_wanted, staged, tolerance)
    report.finish(
        [
            command(
                "model_runner", "--model", output, "--input", args.test_input or "INPUT.npz", "--output", "out.npz"
            ),
            command("model_tool", "perf", output, "--report", "DIR")
            if families.of_chip(args.chip).is_simulated
            else command("bmrt_bench", output),
            command("model_tool", "info", output),
        ]
    )
    if missed:
        raise missed


def _deploy_stages(
    context: Context, wanted: Sequence[Variant], output: Path, tolerance: compare.Tolerance
) -> TesseraError | None:
    """Deploys and checks each stage, then combines all in one file. Returns the error of the first stage outside its
    tolerance; the file is written all the same, as for a single model."""
    args, report = context.args, context.report
    info: list[dict[str, object]] = []
    missed: TesseraError | None = None
    folder, looked_at = args.report, args.layers
    with staging_folder(output) as staging:
        files = [staging / f"{output.stem}-{index}.bmodel" for index in range(len(wanted))]
        for index, (stage, file) in enumerate(zip(wanted, files)):
            before = set(context.result)
            report.say(f"{stage.name}:")
            args.report = folder and str(Path(folder) / f"stage-{index}")
            args.layers = looked_at and str(Path(looked_at) / f"stage-{index}")
            try:
                with stage.applied(args):
                    _deploy(context, file, tolerance)
            except TesseraError as outside:
                if outside.code != ExitCode.ACCURACY:
                    raise
                report.warn(f"{stage.name}: {outside}")
                missed = missed or outside
            result = {key: context.result.pop(key) for key in list(context.result) if key not in before}
            info.append(
                {"stage": stage.name, "mlir": stage.changes.get("mlir", args.mlir), **result.pop("model"), **result}
            )
        with report.step("combine") as step:
            shared = stages.combine(files, output, report, [stage.name for stage in wanted])
            taken, stored = (sum(entry[key] for entry in shared) for key in ("constant_bytes", "new_bytes"))
            step.note = (
                f"{output.stat().st_size / 1e6:.2f} MB of {sum(file.stat().st_size for file in files) / 1e6:.2f} MB"
            )
    for each in info:
        del each["bmodel"]
    context.result["model"] = {
        "bmodel": args.model,
        "bytes": output.stat().st_size,
        "constant_bytes": taken,
        "stored_bytes": stored,
        "stages": info,
    }
    return missed


def _deploy(context: Context, output: Path, tolerance: compare.Tolerance) -> TesseraError | None:
    """Deploys and checks one model; returns the error if --target was not reached."""
    args, report = context.args, context.report
    with report.step("open Top model"):
        model = _open(args, report)
    missed: TesseraError | None = None
    if args.target:
        args.quantize_table, missed = precision.run(
            context, model, _compiler_flags(args, ("cache_dir", "jobs", "calibration_table"))
        )
    if args.calibration_table and not args.target:
        warn_by_table(context, model)
    with scratch_folder() as folder, _reference_meanwhile(context, model) as reference:
        _compile(context, model, output, _tune(context, model, folder) if args.tune else None)
        if args.skip_validation:
            report.warn("not checked: --skip_validation was given")
        elif not bmodel.can_run(args.chip):
            report.warn(f"not checked: this machine cannot execute {args.chip} code")
        else:
            _check(context, model, output, tolerance, reference)
    return missed


def _open(args: argparse.Namespace, report: Report) -> TopModel:
    """Opens the model; with a calibration table, describes it once and checks the table."""
    if not args.calibration_table:
        return top_model.open_top(args.mlir, report)
    model, info = top_model.open_described(args.mlir, report)
    tables.check_model(tables.load(args.calibration_table), args.calibration_table, info)
    return model


def _tune(context: Context, model: TopModel, folder: Path) -> dict[str, Any]:
    """Measures tiles on this machine's chip and returns the fastest plan, which becomes --plan of the following
    compilation."""
    args = context.args

    def deploy(output: Path, flags: Sequence[str]) -> dict[str, Any]:
        extra = [*_deploy_flags(args), *flags]
        return top_model.deploy(model, output, context.report, chip=args.chip, quantize=args.quantize, extra=extra)

    def inputs_of(net: bmodel.Net) -> dict[str, np.ndarray]:
        return _test_input(args, net.inputs, net.states)[0]

    family = families.of_chip(args.chip)
    plan = family.tune(deploy, inputs_of, args.tune, args.chip, context.report, folder)
    args.plan = str(folder / "tuned.json")
    write_text(args.plan, _plan_text(plan))
    return plan


def _plan_text(plan: Mapping[str, Any]) -> str:
    """Returns the plan in the form that --plan reads."""
    return json.dumps(plan, indent=1) + "\n"


def _compile(context: Context, model: TopModel, output: Path, plan: Mapping[str, Any] | None = None) -> None:
    """Compiles the .bmodel and reports on it. `plan`: a tuned plan, which args.plan names."""
    args, report = context.args, context.report
    with report.step(f"compile for {args.chip}, {args.quantize}") as step:
        extra = _deploy_flags(args) + _compiler_flags(args, ("device_mlir", "plan", "dump_ir"))
        extra += ["--measured"] * bool(args.tune)
        result = top_model.deploy(model, output, report, chip=args.chip, quantize=args.quantize, extra=extra)
        step.note = f"{output.stat().st_size / 1e6:.2f} MB"
        if "kernels" in result:
            step.note += f", {result['kernels']} kernels ({result.get('cache_hits', 0)} from the cache)"
        if "commands" in result:
            step.note += (
                f", {result['commands']} commands, estimated {result['partition']['total_microseconds']:.0f} us"
            )
    context.result["model"] = {
        "bmodel": args.model,
        "bytes": output.stat().st_size,
        **{k: v for k, v in result.items() if k not in ("event", "bmodel", "inputs", "outputs")},
    }
    if "partition" in result:
        partition.print_report(report, result["partition"], result["chip"])
    info: dict[str, Any] = {}
    if plan:
        context.result["model"]["plan"] = plan
    if args.plan_out:
        write_text(args.plan_out, _plan_text(plan or result["plan"]))
    family = families.of_chip(args.chip)
    if family.is_simulated:
        info = family.measure(output, args.report and context.outputs.folder(args.report))
        context.result["perf"] = info
        family.print_report(report, info, args.report)
    _report_advice(context, info, result.get("quantization", {}))
    _report_exactness(context, result.get("bit_equal_except"))
    if "quantization" in result:
        _report_quantization(context, result["quantization"])
        _tell_speed(context, share_of_f32(result["quantization"]))
        for text in result["quantization"].get("float_inputs_outputs", []):
            report.warn(text)


def _quantisation_flags(args: argparse.Namespace) -> list[str]:
    """Returns all flags that determine what a model computes on any chip."""
    extra = _compiler_flags(
        args, ("cache_dir", "jobs", "group_size", "calibration_table", "quantize_table", "requantize")
    )
    extra += ["--pixels", args.fuse_preprocess] if args.fuse_preprocess else []
    return extra + ["--quant-input"] * args.quant_input + ["--quant-output"] * args.quant_output


def _deploy_flags(args: argparse.Namespace) -> list[str]:
    """Returns all flags that determine the model, except a plan."""
    extra = _quantisation_flags(args) + _compiler_flags(args, ("opt",))
    for change in args.chip_set:
        extra += ["--chip-set", change]
    extra += ["--tf32"] * args.tf32 + ["--strict"] * args.strict
    extra += ["--buckets", args.buckets, "--bucket", str(args.bucket)] if args.buckets else []
    return extra + (["--host-chip", args.host_chip] if args.host_chip else [])


Reference = tuple[dict[str, np.ndarray], str, Background[safetensors_io.MappedTensors]]


@contextlib.contextmanager
def _reference_meanwhile(context: Context, model: TopModel) -> Iterator[Reference | None]:
    """Evaluates the Top reference during the block; yields its inputs, their description and the future tensors. None
    if nothing has to be evaluated, or if the inputs are known only from the finished .bmodel."""
    args = context.args
    needs_file = args.test_reference or args.fuse_preprocess or args.buckets
    if args.skip_validation or needs_file or not bmodel.can_run(args.chip):
        yield None
        return
    arrays, what = _test_input(args, model.inputs, [state.input for state in model.states])
    with beside(partial(top_model.evaluate, model, arrays, context.report, every_tensor=True)) as tensors:
        yield arrays, what, tensors


def _test_input(
    args: argparse.Namespace, specs: Sequence[inputs.InputSpec], states: Sequence[inputs.InputSpec]
) -> tuple[dict[str, np.ndarray], str]:
    """Returns the inputs and states of the check and their description."""
    if args.test_input:
        return inputs.load_inputs(args.test_input, specs, "--test_input", states), args.test_input
    if args.calibration_table:
        return sample.default_input(args.calibration_table, specs, states)
    return inputs.random_inputs((*specs, *states)), f"random input, seed {inputs.RANDOM_SEED}"


def _compiler_flags(args: argparse.Namespace, names: Sequence[str]) -> list[str]:
    """Returns the named arguments that were given, in tessera-compile's spelling."""
    flags: list[str] = []
    for name in names:
        if (value := getattr(args, name)) is not None:
            if name.endswith("_table"):
                require_file(value, name.replace("_", " ").replace("quantize", "quantise"))
            flags += ["--" + name.replace("_", "-"), str(value)]
    return flags


def _report_exactness(context: Context, exceptions: Sequence[str] | None) -> None:
    """Reports whether a quantised model gives the same integers everywhere; if not, warns with the reason."""
    if exceptions:
        context.report.warn(exactness.describe(exceptions))
    elif exceptions is not None:
        context.report.say(exactness.describe(exceptions))


def _report_quantization(context: Context, info: Mapping[str, object]) -> None:
    """Reports what runs on integers, which ops read 16-bit integers, and which stay in float."""
    kept, wide = info["float_ops"], info["wide_ops"]

    def share(products: object) -> str:
        return f"{100 * products / info['products']:.1f} %" if info["products"] else "none"  # type: ignore[operator]

    if info["narrow_ops"]:
        context.report.say(
            f"{info['narrow_ops']} ops hold weights and results in 16-bit floats, {share(info['narrow_products'])} "
            "of the multiplications"
        )
    if info["weight_ops"]:
        context.report.say(f"{info['weight_ops']} ops have integer weights and compute in float")
    text = (
        f"{info['integer_ops']} ops are quantised, {len(kept)} stay in float; "  # type: ignore[arg-type]
        f"{share(info['integer_products'])} of the multiplications have int8 weights"
    )
    if wide:
        text += f", {share(info['wide_products'])} int16 activations ({len(wide)} ops)"  # type: ignore[arg-type]
    if info["split_weights"]:
        text += f", {share(info['second_products'])} are for the residual weights of "
        text += f"{info['split_weights']} ops"
    if info["integer_ops"] or not (info["narrow_ops"] or info["weight_ops"]):
        context.report.say(text)
    _report_ops(context, "reads int16", wide)  # type: ignore[arg-type]
    _report_ops(context, "stays float", kept)  # type: ignore[arg-type]


def _tell_speed(context: Context, share: float) -> None:
    """Reports the estimated time of the multiplications relative to F32, and warns if the precision saves none."""
    args = context.args
    if math.isnan(share):
        return
    context.result["time_of_f32"] = share
    context.report.say(f"on {args.chip} the multiplications take about {share:.0%} of F32's time")
    # At F32's rate, smaller weights or results may still save time; integers that were all returned to f32 do not.
    if share > 1 or (share == 1 and args.quantize in ("INT8", "INT16")):
        context.report.warn(
            f"in {args.quantize} the multiplications take about {share:.0%} of F32's time on {args.chip}, so it saves "
            "memory at most; deploy with --quantize F32 for speed, or compare both files with bmrt_bench"
        )


def _report_ops(context: Context, title: str, ops: Sequence[Mapping[str, object]]) -> None:
    """Lists ops and reasons, those with the most multiplications first."""
    if not ops:
        return
    first = sorted(ops, key=lambda op: -op["products"])[:OPS_SHOWN]  # type: ignore[operator]
    rows = [(str(op["name"] or op["op"]), str(op["op"]), str(op["products"] or "-"), str(op["reason"])) for op in first]
    context.report.say(compare.align([(title, "op", "products", "because"), *rows], right=(2,)))
    if len(ops) > OPS_SHOWN:
        context.report.say(f"… and {len(ops) - OPS_SHOWN} more (--json lists all)")


def _check(
    context: Context, model: TopModel, output: Path, tolerance: compare.Tolerance, meanwhile: Reference | None
) -> None:
    """Runs the reference and the .bmodel on the same input and compares all tensors that both have."""
    args = context.args
    net = bmodel.open_net(output, args.threads)
    if args.buckets:
        net.inputs = sizes.smallest(net.inputs, read_model(output)["nets"][0]["stages"][0])
    given, what = meanwhile[:2] if meanwhile else _test_input(args, net.inputs, net.states)
    arrays = _as_top_inputs(model, net, given)
    reference = _reference_tensors(context, model, arrays, meanwhile, what)
    outputs: dict[str, np.ndarray] = {}
    seconds = 0.0

    def run_net(take: Callable[[str, np.ndarray], None]) -> None:
        """Runs the .bmodel; its tensors are taken as they are computed, so that only outputs stay in memory."""
        nonlocal seconds
        begin = time.perf_counter()
        outputs.update(net.run_every_tensor(given, take))
        seconds = time.perf_counter() - begin
        for name, array in outputs.items():
            take(name, array)

    if args.quantize == "F32" and args.tolerance is None:
        tolerance = tolerances.of_float_model("f16" if args.tf32 else model.narrow_floats)
    with _own_errors_meanwhile(context, model, arrays, reference) as own:
        comparison = _compared(context, model, output, run_net, reference, tolerance, own)
    reason = ""
    if args.quantize == "F32":
        others = [reference] if args.test_reference else []
        reason = check_each_op(
            context, model, arrays, comparison, run_net, others, rerun=lambda: _rerun(model, net, given)
        )
    context.result["comparison"] = comparison.as_dict()
    strict = args.quantize == "F32" or bool(args.tolerance)
    context.report.say(
        compare.format_table(comparison, None if args.compare_all else 10, "FAIL" if strict else "below")
    )
    if families.of_chip(args.chip).is_simulated and (args.compare_all or args.layers):
        limit = tolerances.parse(args.tolerance, args.quantize) if args.tolerance else None
        families.of_chip(args.chip).check_layers(context, model, net, given, _deploy_flags(args), limit)
    wanted = {spec.name: reference[spec.name] for spec in model.outputs}

    def evaluate(given: Mapping[str, np.ndarray]) -> Mapping[str, np.ndarray]:
        return top_model.evaluate(model, _as_top_inputs(model, net, given), context.report)

    tested = Tested(model, net, given, wanted, outputs, what, evaluate, _quantisation_flags(args))
    judge(context, comparison, measure_outputs(context, tested), tolerance, strict, reason)
    shows_inner = len(comparison.rows) > len(outputs) or 2 * len(comparison.rows) >= len(reference)
    if args.quantize == "F32" and not args.tf32 and shows_inner and seconds <= LONGEST_SECOND_RUN:
        _check_wide_input(context, model, net)


def _reference_tensors(
    context: Context, model: TopModel, arrays: Mapping[str, np.ndarray], meanwhile: Reference | None, what: str
) -> Mapping[str, np.ndarray]:
    """Returns all tensors of the Top reference on the arrays. what: description of the arrays."""
    args = context.args
    with context.report.step("Top reference") as step:
        if args.test_reference:
            reference: Mapping[str, np.ndarray] = load_npz(args.test_reference, "--test_reference")
            step.note = args.test_reference
        elif meanwhile:
            reference, step.note = meanwhile[2].result(), what
        else:
            reference = top_model.evaluate(model, arrays, context.report, every_tensor=True)
            step.note = what
    lost = [spec.name for spec in model.outputs if spec.name not in reference]
    if lost:
        raise TesseraError(
            f"--test_reference {args.test_reference} does not contain output '{lost[0]}' of the model",
            hint="create it again with model_transform --test_result",
        )
    return reference


def _rerun(model: TopModel, net: bmodel.Net, given: Mapping[str, np.ndarray]) -> list[verdict.Moved]:
    """Returns the .bmodel's outputs on the inputs, each with the output on inputs moved by a unit in the last place."""
    before = net.run(given)
    return [
        {name: (before[name], after) for name, after in net.run(dict(verdict.Perturbed(given, seed))).items()}
        for seed in range(verdict.PERTURBATIONS)
    ]


def _check_wide_input(context: Context, model: TopModel, net: bmodel.Net) -> None:
    """Checks the visible ops of a float model on inputs of any magnitude."""
    args = context.args
    if args.fuse_preprocess or args.buckets:
        return

    def run(arrays: Mapping[str, np.ndarray], put: Callable[[str, np.ndarray], None]) -> None:
        for name, array in net.run_every_tensor(arrays, put).items():
            put(name, array)

    kept = Path(args.mlir).with_name(Path(args.mlir).stem.removesuffix("_top") + "_wide_in.npz")
    title = f"{args.model} against the Top reference"
    if error := check_wide_input(context, model, run, title, kept):
        raise error


def _compared(
    context: Context,
    model: TopModel,
    output: Path,
    run_net: Callable[[Callable[[str, np.ndarray], None]], None],
    reference: Mapping[str, np.ndarray],
    tolerance: compare.Tolerance,
    own: Background[safetensors_io.MappedTensors] | None,
) -> compare.Comparison:
    """Compares the tensors from `run_net` with the reference, and adds each op's own error if there are any."""
    args, report = context.args, context.report
    with report.step(f"run {output.name} on {args.threads} thread(s)") as step:
        comparing = compare.Comparing(tolerance, args.excepts.split(","))
        names: dict[str, Any] = {}

        def take(name: str, array: np.ndarray) -> None:
            names[name] = None
            if name in reference:
                comparing.add(
                    name, top_model.rounded(model, name, array), top_model.rounded(model, name, reference[name])
                )

        run_net(take)
        step.note = f"{len(names)} tensors, compared as they were computed"
    with report.step("compare") as step:
        comparison = comparing.result(names, reference)
        if own:
            compare.add_own_errors(comparison, own.result(), reference)
        step.note = f"{len(comparison.rows)} tensors, {len(comparison.failed)} outside {tolerance}"
    return comparison


def _report_advice(context: Context, info: Mapping[str, Any], precisions: Mapping[str, Any]) -> None:
    """Reports advice about precision below the estimated times, and records all advice."""
    table = context.args.calibration_table
    found = advice.of_quantization(precisions, info) + (advice.of_table(tables.load(table).samples) if table else [])
    for line in advice.lines(found):
        context.report.say(line)
    context.result["advice"] = [each.as_dict() for each in [*advice.of_perf(info), *found]]


@contextlib.contextmanager
def _own_errors_meanwhile(
    context: Context, model: TopModel, arrays: Mapping[str, np.ndarray], reference: Mapping[str, np.ndarray]
) -> Iterator[Background[safetensors_io.MappedTensors] | None]:
    """Evaluates, during the block, each op of a quantised model on the reference's operands."""
    args = context.args
    if args.quantize == "F32":
        yield None
        return
    flags = ["--quantize", args.quantize, *_compiler_flags(args, ("calibration_table", "quantize_table", "group_size"))]
    with beside(partial(top_model.evaluate_isolated, model, arrays, reference, flags, context.report)) as own:
        yield own


def _as_top_inputs(model: TopModel, net: bmodel.Net, arrays: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Returns the same inputs for the Top model: pixels go through the pre-processing that the .bmodel contains."""
    result = dict(arrays)
    for wanted, given in zip(model.inputs, net.inputs):
        if given.dtype != wanted.dtype and wanted.preprocess and given.preprocess:
            result[wanted.name] = wanted.preprocess.finish(arrays[given.name], given.preprocess)
    return result


def main(argv: Sequence[str] | None = None) -> int:
    return run_command(NAME, parse, work, steps=5, argv=argv)


if __name__ == "__main__":
    raise SystemExit(main())
