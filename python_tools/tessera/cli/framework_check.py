# SPDX-License-Identifier: Apache-2.0
"""Compares the tensors of a Top model with those of a framework that runs the ONNX file."""
from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Callable, ContextManager, Iterator, Mapping, NamedTuple, Sequence, Union

import numpy as np

from .. import compare, onnx_runner, tolerances, top_model, verdict
from ..inputs import InputSpec
from ..onnx_facts import Freedom, freedom_of
from ..onnx_reference import ReferenceModel
from ..progress import Report, Step
from ..safetensors_io import MappedTensors
from ..tflite_runner import TfliteModel
from ..top_model import TopModel
from .common import Context
from .single_check import check_each_op
from .wide_input import check_wide_input


class Compared(NamedTuple):
    """Result of a comparison. shapes: of the framework's tensors. reason: explanation of a difference, found by
    checking single ops."""

    comparison: compare.Comparison
    shapes: dict[str, tuple[int, ...]]
    reason: str


Framework = Union[onnx_runner.OnnxModel, ReferenceModel, TfliteModel]


def compare_with_framework(
    context: Context,
    model: TopModel,
    got: MappedTensors,
    arrays: Mapping[str, np.ndarray],
    frameworks: Sequence[Callable[[], Framework]],
    tolerance: compare.Tolerance,
    wide_file: Path,
) -> None:
    """Compares with the first of `frameworks` that can run the model. A framework's limit need not be a fault of the
    model, so it is a warning. got: all tensors of the Top reference. arrays: the inputs, including those that became
    constants. wide_file: where wide inputs that reveal a fault are kept."""
    report = context.report
    context.result["comparison"] = None
    limits: list[str] = []
    if context.args.tolerance is None:
        tolerance = tolerances.of_float_model(model.narrow_floats)
    for load in frameworks:
        step = report.extra_step if limits else report.step
        try:
            framework = load()
            rounds = isinstance(framework, TfliteModel) and framework.rounds_activations
            if rounds and context.args.tolerance is None:
                tolerance = tolerances.DEFAULT["DYNAMIC_INT8"]
            compared = _compare(context, model, got, arrays, framework, tolerance, step)
            if compared.comparison.failed and isinstance(framework, onnx_runner.OnnxModel):
                if corrected := framework.corrected(compared.shapes):
                    warn_of_deviations(report, corrected)
                    step, framework = report.extra_step, corrected
                    compared = _compare(context, model, got, arrays, corrected, tolerance, step)
        except onnx_runner.Unreadable as error:
            limits.append(error.message)
            continue
        for text in limits:
            report.warn(f"{text}; compared with {framework.name} instead")
        comparison = compared.comparison
        context.result["comparison"] = comparison.as_dict()
        if comparison.failed or comparison.excused:
            report.say(compare.format_table(comparison))
        title = f"Top model against {framework.name}"
        comparison.require_passed(title, [spec.name for spec in model.outputs], compared.reason)
        if not rounds:
            _check_wide_input(context, model, got, arrays, framework, title, wide_file)
        return
    reasons = "; ".join(limits)
    report.warn(f"not compared with the framework: {reasons}; the results of this model are unchecked")


def warn_of_deviations(report: Report, model: onnx_runner.OnnxModel) -> None:
    """Reports the nodes that onnxruntime is known to compute differently."""
    for text in model.deviations:
        report.say(text)
        report.warn(text)


def _compare(
    context: Context,
    model: TopModel,
    got: MappedTensors,
    arrays: Mapping[str, np.ndarray],
    framework: Framework,
    tolerance: compare.Tolerance,
    timed: Callable[[str], ContextManager[Step]],
) -> Compared:
    """Compares the tensors with those of one framework. Raises Unreadable if the framework cannot run the model. timed:
    begins the step."""
    names_of = _names(context, model, framework)
    expected = partial(_tensors, model, arrays, got.sizes(), framework, names_of)
    comparing, names = compare.Comparing(tolerance, context.args.excepts.split(",")), []
    shapes = {name: array.shape for name, array in arrays.items()}
    limit: onnx_runner.Unreadable | None = None
    with timed(f"compare with {framework.name}") as step:
        try:
            for name, array in expected():
                comparing.add(name, top_model.rounded(model, name, got[name]), array)
                names.append(name)
                shapes[name] = array.shape
        except onnx_runner.Unreadable as error:
            limit, step.note = error, "it cannot run the model"
        comparison = comparing.result(got, names)
        if comparison.rows and not limit:
            worst = comparison.rows[0]
            step.note = f"{len(comparison.rows)} tensors, worst cos {worst.cosine:.6f} ('{worst.name}')"
    if limit:
        raise limit
    for spec in model.outputs:
        if spec.name not in names and spec.name not in comparison.excepted:
            context.report.warn(f"output '{spec.name}' is not compared: {framework.name} does not compute it")
    reason = check_each_op(
        context,
        model,
        arrays,
        comparison,
        lambda put: [put(*pair) for pair in expected()],
        freedom=freedom_of(context.args.model_def) if comparison.failed else Freedom(),
        rerun=partial(_rerun, model, arrays, got.sizes(), framework, names_of),
    )
    return Compared(comparison, shapes, reason)


def _names(context: Context, model: TopModel, framework: Framework) -> dict[str, str]:
    """Maps the framework's tensor names to the Top model's. The file's outputs are the model's, in this order, unless
    the user named others."""
    return top_names([] if context.args.output_names else model.outputs, framework)


def _rerun(
    model: TopModel,
    arrays: Mapping[str, np.ndarray],
    sizes: Mapping[str, int],
    framework: Framework,
    names: Mapping[str, str],
) -> list[verdict.Moved]:
    """Returns the framework's outputs on the inputs, each with the output on inputs moved by a unit in the last
    place."""
    outputs = {spec.name for spec in model.outputs}
    wanted = {theirs: ours for theirs, ours in names.items() if ours in outputs}
    before = dict(_tensors(model, arrays, sizes, framework, wanted))
    return [
        {name: (before[name], after) for name, after in _tensors(model, moved, sizes, framework, wanted)}
        for moved in (verdict.Perturbed(arrays, seed) for seed in range(verdict.PERTURBATIONS))
    ]


def _check_wide_input(
    context: Context,
    model: TopModel,
    got: MappedTensors,
    arrays: Mapping[str, np.ndarray],
    framework: Framework,
    title: str,
    file: Path,
) -> None:
    names, sizes = _names(context, model, framework), got.sizes()

    def run(wide: Mapping[str, np.ndarray], put: Callable[[str, np.ndarray], None]) -> None:
        for name, array in _tensors(model, {**arrays, **wide}, sizes, framework, names):
            put(name, array)

    if error := check_wide_input(context, model, run, title, file, freedom_of(context.args.model_def)):
        raise error


def _tensors(
    model: TopModel,
    arrays: Mapping[str, np.ndarray],
    sizes: Mapping[str, int],
    framework: Framework,
    names: Mapping[str, str],
) -> Iterator[tuple[str, np.ndarray]]:
    """Yields the framework's tensors that the Top reference has too, one by one, by the Top model's names. sizes: bytes
    of the reference's tensors."""
    wanted = {name: sizes[ours] for name, ours in names.items() if ours in sizes}
    for name, array in framework.each(feed_of(framework, model, arrays), wanted):
        yield names[name], top_model.pad_output(model, names[name], array)


def feed_of(framework: Framework, model: TopModel, arrays: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Returns the framework's inputs. arrays: by the Top model's names, including those that became constants. Inputs
    that the importer renamed are matched by position."""
    feed = {name: arrays[name] for name in framework.input_names if name in arrays}
    if len(framework.input_names) == len(model.inputs):
        places = zip(framework.input_names, model.inputs)
        feed.update({name: arrays[spec.name] for name, spec in places if name not in arrays and spec.name in arrays})
    return feed


def top_names(outputs: Sequence[InputSpec], framework: Framework) -> dict[str, str]:
    """Returns the Top model's name of each tensor of the framework. The importer renames tensors whose names text
    cannot hold; `outputs` with such names are matched by position."""
    places = zip(framework.output_names, (spec.name for spec in outputs))
    return {
        **{name: name for name in framework.tensors},
        **{name: ours for name, ours in places if name in framework.tensors and ours not in framework.tensors},
    }
