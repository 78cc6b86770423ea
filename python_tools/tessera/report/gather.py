# SPDX-License-Identifier: Apache-2.0
"""Collects the data of a report, as one JSON-ready object per model: from the file, the estimate of its time, and what
other commands wrote with --json."""
from __future__ import annotations

import hashlib
from collections import Counter
from pathlib import Path
from typing import Any, Mapping, Sequence

import numpy as np

from .. import advice, families
from ..errors import TesseraError
from ..families import Estimate
from ..files import load_json
from ..sizes import evaluate, parse_at, shape_at
from . import edges


TELLERS = ("model_deploy", "model_tool")  # commands whose --json describes a model


def gather(
    path: Path, dump: Mapping[str, Any], info: Mapping[str, Any], samples: int | None, runs: int = 0, at: str = ""
) -> dict[str, Any]:
    """Collects a model's data from the file (dump: from bmodel-dump) and from the output of model_deploy or model_tool
    layers with --json, or {}. runs: number of runs that time each layer of a model that runs entirely on this machine's
    processor; 0: none. at: the sizes at which it is measured and described, as for --at (default: the largest)."""
    stages = [_stage(path, dump, stage, number, runs, at) for number, stage in enumerate(families.stages_of(dump))]
    model, top_ops = _model(info), _top_ops(info)
    for layer in (layer for stage in stages for layer in stage["layers"]):
        named = (top_ops[node] for node in layer["nodes"] if node in top_ops)
        layer["top"] = layer.get("top") or ", ".join(dict.fromkeys(named))
    return {
        "file": path.name,
        "bytes": path.stat().st_size,
        "sha256": hashlib.sha256(path.read_bytes()).hexdigest(),
        "name": dump.get("name", ""),
        "producer": dump.get("producer", ""),
        "schema_hash": dump.get("schema_hash", ""),
        "properties": dump.get("properties", []),
        "chips": [{key: chip.get(key, "") for key in ("name", "family", "fingerprint")} for chip in dump["chips"]],
        "stages": stages,
        "accuracy": accuracy(info),
        "verdict": verdict(info),
        "output_error": output_error(info),
        "partition": model.get("partition", {}),
        "advice": _advice(stages, model.get("quantization", {}), samples),
    }


def _model(info: Mapping[str, Any]) -> Mapping[str, Any]:
    """Returns model_deploy's description of a model; {} for other commands, whose "model" means something else."""
    return info["model"] if isinstance(info.get("model"), dict) else {}


def _top_ops(info: Mapping[str, Any]) -> dict[str, str]:
    """Returns the Top op by ONNX node, as far as listed."""
    return {op["name"]: op["op"] for op in _model(info).get("quantization", {}).get("ops", [])}


def _advice(
    stages: Sequence[Mapping[str, Any]], precisions: Mapping[str, Any], samples: int | None
) -> list[dict[str, Any]]:
    """Returns the advice. stage: the number of the stage concerned, or None."""
    found = [
        {**each.as_dict(), "stage": number}
        for number, stage in enumerate(stages)
        for each in advice.of_perf(stage["perf"] or {})
    ]
    whole = advice.of_quantization(precisions, stages[0]["perf"] if len(stages) == 1 else {})
    whole += [] if samples is None else advice.of_table(samples)
    return found + [{**each.as_dict(), "stage": None} for each in whole]


def verdict(info: Mapping[str, Any]) -> str:
    rows = accuracy(info)
    if not rows:
        return "not checked"
    if info.get("exit_code") != 0:
        return f"wrong: exit code {info.get('exit_code')}"
    wrong = sum(row["wrong"] for row in rows)
    return f"{wrong} of {len(rows)} tensors outside" if wrong else "right"


def output_error(info: Mapping[str, Any]) -> str:
    """The error of a quantised model's outputs, with its name and the number of samples; "" if it is not known."""
    return str((info.get("output_error") or {}).get("text", ""))


def read_report(path: str | Path | None) -> dict[str, Any]:
    """Reads an object that a command printed with --json; {} for None. Raises TesseraError."""
    if path is None:
        return {}
    info = load_json(path, "--accuracy file", "create it with model_deploy --json > FILE")
    try:
        if info["tool"] not in TELLERS:
            raise ValueError
        # Access everything that is used later, because here the file can be named in an error.
        verdict(info), output_error(info), _top_ops(info), _advice([], _model(info).get("quantization", {}), None)
        [op["name"] or op["op"] for op in _model(info).get("partition", {}).get("host_ops", [])]
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise TesseraError(
            f"--accuracy {path}: not the output of {' or '.join(TELLERS)} with --json",
            hint="create it with model_deploy --json > FILE",
        ) from error
    return info


def accuracy(info: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Returns a row per tensor. whole: its error including inherited errors; own: without."""
    looked = info.get("layers", {})
    rows = [
        {"name": "+".join(layer["nodes"]) or layer["tensor"], "tensor": layer["tensor"], "whole": layer["whole"],
         "own": layer["own"], "wrong": layer["wrong"]}
        for layer in (looked.get("layers", []) if isinstance(looked, dict) else [])
    ]  # fmt: skip
    comparison = info.get("comparison") or {}
    known = {row["tensor"] for row in rows}
    for row in comparison.get("tensors", comparison.get("rows", [])):
        if row["name"] not in known:
            own = row.get("own_rel_l2")
            rows.append({"name": row["name"], "tensor": row["name"], "whole": row,
                         "own": None if own is None else {"rel_l2": own},
                         "wrong": not row["passed"] and not row.get("excuse")})  # fmt: skip
    return rows


def _stage(
    path: Path, dump: Mapping[str, Any], stage: Mapping[str, Any], number: int, runs: int, at: str
) -> dict[str, Any]:
    tensors, subnets = stage.get("tensors", []), stage.get("subnets", [])
    values = evaluate(stage, parse_at(at, stage) if at else {})
    family = families.of(dump["chips"][stage["chip"]].get("family", ""))
    has_estimate = family.is_simulated or number in family.stages(dump)  # of a simulated chip even if its host runs all
    estimate = family.estimate(path, number) if has_estimate else None
    perf = estimate.info if estimate and estimate.shows_perf else None
    on_host = all(families.of_subnet(dump, subnet).name == families.HOST for subnet in subnets)
    times = _measure(path, stage, tensors, runs, values) if runs and on_host else []
    constants: Counter[str] = Counter()
    for tensor in tensors:
        if tensor["place"] == "Segment" and tensor["view_of"] < 0:
            constants[tensor["dtype"]] += tensor["bytes"]
    before = len(estimate.layers) if estimate else 0
    return {
        "name": stage.get("name", ""),
        "edges": edges.of_stage(stage, perf, _rows_of_steps(dump, subnets, before)),
        "chip": dump["chips"][stage["chip"]]["name"],
        "constants": dict(constants),
        "results": dict(
            Counter(tensors[step["writes"][0]]["dtype"] for _, step in _steps(subnets) if step.get("writes"))
        ),
        "inputs": [_tensor(tensors[slot], values) for slot in stage.get("inputs", [])],
        "outputs": [_tensor(tensors[slot], values) for slot in stage.get("outputs", [])],
        "workspaces": stage.get("workspaces", []),
        "subnets": [_subnet(subnet) for subnet in subnets],
        "layers": _layers(dump, estimate, subnets, tensors, times),
        "time": _time(estimate, times, runs),
        "family": family.name,
        "perf": perf,
        **(estimate.drawn if estimate else {}),
    }


def _tensor(tensor: Mapping[str, Any], values: list[int]) -> dict[str, Any]:
    """values: of the stage's sizes."""
    return {"name": tensor["name"], "dtype": tensor["dtype"], "shape": shape_at(tensor, values)}


def _subnet(subnet: Mapping[str, Any]) -> dict[str, Any]:
    nodes = [node for step in subnet.get("plan", []) for node in step.get("debug", {}).get("onnx_nodes", [])]
    return {"name": subnet["name"], "kind": subnet["kind"], "isa": subnet.get("isa", ""),
            "reason": subnet.get("reason", ""), "steps": len(subnet.get("plan", [])), "nodes": len(nodes)}  # fmt: skip


def _steps(subnets: Any) -> list[tuple[Mapping[str, Any], Mapping[str, Any]]]:
    return [(subnet, step) for subnet in subnets for step in subnet.get("plan", [])]


def _where(subnet: Mapping[str, Any]) -> str:
    return "host" if subnet["kind"] == "Host" else str(subnet["kind"]).lower()


def _written(tensors: Any, step: Mapping[str, Any]) -> list[str]:
    """Returns the tensors of the ONNX graph that a step computes."""
    return [name for slot in step.get("writes", []) for name in tensors[slot].get("onnx_names", [])]


def _has_row(dump: Mapping[str, Any], subnet: Mapping[str, Any], step: Mapping[str, Any]) -> bool:
    """Returns true if a step is a layer of its own, i.e. neither part of an estimate nor a call of other steps."""
    return step["op_type"] not in edges.CALLS and not any(each.covers(dump, subnet) for each in families.every())


def _rows_of_steps(dump: Mapping[str, Any], subnets: Any, first: int) -> dict[tuple[int, int], int]:
    """Returns the row that _layers gives each step, by (subnet number, step number)."""
    with_rows = [
        (number, at)
        for number, subnet in enumerate(subnets)
        for at, step in enumerate(subnet.get("plan", []))
        if _has_row(dump, subnet, step)
    ]
    return {where: first + row for row, where in enumerate(with_rows)}


def _measure(path: Path, stage: Mapping[str, Any], tensors: Any, runs: int, values: list[int]) -> list[float]:
    """Measures each step of a run on zeros with one thread; returns the median microseconds of `runs` runs, in plan
    order. values: of the stage's sizes."""
    from .. import runtime

    net = runtime.load(path).net()
    types = {info.name: info.dtype for info in net.inputs}
    given = [tensors[slot] for slot in stage.get("inputs", [])]
    zeros = {each["name"]: np.zeros(shape_at(each, values), types[each["name"]]) for each in given}
    seen = [[step.total_ns / step.runs / 1e3 if step.runs else 0.0 for step in net.profile(zeros, 1)]
            for _ in range(runs)]  # fmt: skip
    return [float(each) for each in np.median(seen, axis=0)]


def _time(estimate: Estimate | None, times: Sequence[float], runs: int) -> dict[str, Any] | None:
    """Describes the time of a whole run: how it was determined, microseconds, and the bounds as shares of the time."""
    if estimate:
        return estimate.time
    return {"how": f"measured, median of {runs} runs, 1 thread", "us": sum(times), "shares": {}} if times else None


def _layers(
    dump: Mapping[str, Any], estimate: Estimate | None, subnets: Any, tensors: Any, times: Sequence[float]
) -> list[dict[str, Any]]:
    """Returns the layers of the estimate, followed by the steps of hosts and chips without one. times: of all steps, or
    []."""
    layers = list(estimate.layers) if estimate else []
    for index, (subnet, step) in enumerate(_steps(subnets)):
        if _has_row(dump, subnet, step):
            debug = step.get("debug", {})
            nodes = debug.get("onnx_nodes", [])
            name = "+".join(nodes) or step.get("op_type", "").removesuffix("Def")
            layers.append(
                {"name": name, "nodes": nodes, "tensors": _written(tensors, step), "on": _where(subnet),
                 "top": debug.get("top_op", ""), "op": debug.get("device_op", ""),
                 "us": times[index] if times else None, "bound": "",
                 "mac_utilisation": None, "products": debug.get("flops", 0) // 2, "moved": debug.get("bytes", 0),
                 "least": None}
            )  # fmt: skip
    return layers
