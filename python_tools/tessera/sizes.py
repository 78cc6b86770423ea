# SPDX-License-Identifier: Apache-2.0
"""The sizes of a .bmodel that are known at run time: their ranges, and the shapes that follow from them.

A stage is given as read_model() returns it.
"""
from __future__ import annotations

import argparse
import contextlib
from typing import Any, Callable, Mapping, Sequence

from .errors import TesseraError
from .inputs import InputSpec

_OPS: dict[str, Callable[[int, int], int]] = {
    "Add": lambda a, b: a + b,
    "Sub": lambda a, b: a - b,
    "Mul": lambda a, b: a * b,
    "FloorDiv": lambda a, b: a // b,
    "CeilDiv": lambda a, b: -(-a // b),
    "Mod": lambda a, b: a % b,
    "Min": min,
    "Max": max,
}


def free_sizes(stage: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Returns the dim slots that the shapes of inputs bind."""
    return [dim for dim in stage.get("dims", []) if not dim.get("terms") and dim.get("next", -1) < 0]


def describe(dim: Mapping[str, Any]) -> str:
    """Returns text like "batch from 1 to 8"."""
    text = f"{dim['name']} from {dim['min']} to {dim['max']}"
    if dim["divisor"] > 1:
        text += f", a multiple of {dim['divisor']}"
    return text + (f", usually {dim['likely']}" if 0 <= dim["likely"] != dim["max"] else "")


def parse_at(text: str, stage: Mapping[str, Any], flag: str = "--at") -> dict[str, int]:
    """Returns the sizes in a text like "batch=3,h=64". Raises TesseraError for unknown names and sizes out of range."""
    known = {dim["name"]: dim for dim in free_sizes(stage)}
    sizes = {}
    for part in text.split(","):
        name, _, value = part.partition("=")
        if name not in known:
            fixed = "all of its sizes are fixed; model_transform or tessera run with --dims keeps sizes open"
            hint = f"its sizes are: {', '.join(known)}" if known else fixed
            raise TesseraError(f"{flag}: the model has no size '{name}'", hint=hint)
        dim, count = known[name], int(value) if value.isdecimal() else -1
        if not dim["min"] <= count <= dim["max"] or count % dim["divisor"]:
            raise TesseraError(f"{flag}: {part} is not possible, allowed is {describe(dim)}")
        sizes[name] = count
    return sizes


def add_at(parser: argparse._ActionsContainer, what: str) -> None:
    """Adds the flag --at, a list of sizes. what: what has these sizes."""
    parser.add_argument(
        "--at",
        metavar="SIZES",
        nargs="+",
        default=[],
        help=f"{what}: batch=3,h=64 (default: the largest); several are listed in a table",
    )


def named_at(name: str, at: str) -> str:
    """Returns text like "m.bmodel at batch=3"; only the name if there is no choice of sizes."""
    return f"{name} at {at}" if at else name


def stage_at(stages: Sequence[Mapping[str, Any]], at: str) -> int:
    """Returns the index of the first stage that takes the sizes in the value of --at. Raises the TesseraError of the
    last stage if there is none."""
    for index, stage in enumerate(stages[:-1]):
        with contextlib.suppress(TesseraError):
            parse_at(at, stage)
            return index
    parse_at(at, stages[-1])
    return len(stages) - 1


def evaluate(stage: Mapping[str, Any], sizes: Mapping[str, int], default: str = "max") -> list[int]:
    """Returns the value of every dim slot. A size that is not in `sizes` has its `default`: "min", "likely", "max"."""
    values: list[int] = []
    for dim in stage.get("dims", []):
        if dim.get("terms"):
            values.append(_compute(dim["terms"], values))
        elif dim.get("next", -1) >= 0:
            # The length of states: after a run with these inputs, it is at most the capacity.
            new = _compute(stage["dims"][dim["next"]]["terms"], [*values, 0])
            longest = dim["max"] - new
            usual = {"min": 0, "likely": min(dim["likely"], longest)}.get(default, longest)
            values.append(sizes.get(dim["name"], usual))
        else:
            given = dim["max"] if default == "likely" and dim["likely"] < 0 else dim[default]
            values.append(sizes.get(dim["name"], given))
    return values


def _compute(terms: list[dict[str, Any]], values: list[int]) -> int:
    stack: list[int] = []
    for term in terms:
        if term["op"] == "Const":
            stack.append(term["value"])
        elif term["op"] == "Slot":
            stack.append(values[term["value"]])
        else:
            right, left = stack.pop(), stack.pop()
            stack.append(_OPS[term["op"]](left, right))
    return stack[0]


def shape_at(tensor: Mapping[str, Any], values: list[int]) -> list[int]:
    """Returns the shape of a tensor of the stage for the values of its dim slots, of a growing state that in use."""
    shape = [dim["value"] if dim["slot"] < 0 else values[dim["slot"]] for dim in tensor.get("shape", [])]
    if tensor.get("length", -1) >= 0:
        shape[tensor["length_axis"]] = values[tensor["length"]]
    return shape


def shape_text(tensor: Mapping[str, Any], stage: Mapping[str, Any]) -> str:
    """Returns text like "batchx3x8x8"."""
    names = [dim["name"] for dim in stage.get("dims", [])]
    dims = (str(dim["value"]) if dim["slot"] < 0 else names[dim["slot"]] for dim in tensor.get("shape", []))
    return "x".join(dims) or "scalar"


def smallest_batch(specs: Sequence[InputSpec], stage: Mapping[str, Any]) -> list[InputSpec]:
    """Returns the inputs of a stage for one sample: open first dims have their smallest size, all others their
    largest."""
    tensors = _inputs_of(stage)
    first = {tensors[spec.name]["shape"][0]["slot"] for spec in specs if spec.shape}
    least = {dim["name"]: dim["min"] for slot, dim in enumerate(stage.get("dims", [])) if slot in first}
    return _with_values(specs, stage, evaluate(stage, least))


def _with_values(specs: Sequence[InputSpec], stage: Mapping[str, Any], values: list[int]) -> list[InputSpec]:
    tensors = _inputs_of(stage)
    return [spec.at(tuple(shape_at(tensors[spec.name], values))) for spec in specs]


def smallest(specs: Sequence[InputSpec], stage: Mapping[str, Any]) -> list[InputSpec]:
    """Returns the inputs of a stage in their smallest shapes."""
    return _with_values(specs, stage, evaluate(stage, {}, default="min"))


def _inputs_of(stage: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    return {tensor["name"]: tensor for tensor in stage["tensors"] if tensor["role"] in ("Input", "State")}


def inputs_at(specs: Sequence[InputSpec], stage: Mapping[str, Any], at: str) -> list[InputSpec]:
    """Returns inputs and states of a stage in the shapes that a value of --at gives them; "": in their largest
    shapes."""
    return _with_values(specs, stage, evaluate(stage, parse_at(at, stage) if at else {}))
