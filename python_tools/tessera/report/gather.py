# SPDX-License-Identifier: Apache-2.0
"""Collects the data of a report, as one JSON-ready object per model: from the file, the estimate of its time, and what
other commands wrote with --json."""
from __future__ import annotations

import bisect
import hashlib
import json
from collections import Counter
from pathlib import Path
from typing import Any, Mapping, Sequence

import numpy as np

from .. import advice, cuda_perf, npu_perf
from ..errors import TesseraError
from ..files import load_json, scratch_folder
from . import edges


TELLERS = ("model_deploy", "model_tool")  # commands whose --json describes a model


def gather(
    path: Path, dump: Mapping[str, Any], info: Mapping[str, Any], samples: int | None, runs: int = 0
) -> dict[str, Any]:
    """Collects a model's data from the file (dump: from bmodel-dump) and from the output of model_deploy or model_tool
    layers with --json, or {}. runs: number of runs that time each layer of a model that runs entirely on this machine's
    processor; 0: none."""
    stages = [_stage(path, dump, stage, number, runs) for number, stage in enumerate(_stages(dump))]
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


def _stages(dump: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return [stage for net in dump.get("nets", []) for stage in net.get("stages", [])]


def _stage(path: Path, dump: Mapping[str, Any], stage: Mapping[str, Any], number: int, runs: int) -> dict[str, Any]:
    tensors, subnets = stage.get("tensors", []), stage.get("subnets", [])
    on_npu = dump["chips"][stage["chip"]].get("family") == "npu"  # also if the host runs all of it
    perf, drawn = _perf(path, number) if on_npu else (None, {})
    gpu = cuda_perf.measure(path, stage=number) if number in cuda_perf.stages(dump) else None
    on_host = all(subnet["kind"] in ("X86", "Host") for subnet in subnets)
    times = _measure(path, stage, tensors, runs) if runs and on_host else []
    constants: Counter[str] = Counter()
    for tensor in tensors:
        if tensor["place"] == "Segment" and tensor["view_of"] < 0:
            constants[tensor["dtype"]] += tensor["bytes"]
    before = sum(len(each["layers"]) for each in (perf, gpu) if each)
    return {
        "name": stage.get("name", ""),
        "edges": edges.of_stage(stage, perf, _rows_of_steps(dump, subnets, before)),
        "chip": dump["chips"][stage["chip"]]["name"],
        "constants": dict(constants),
        "results": dict(
            Counter(tensors[step["writes"][0]]["dtype"] for _, step in _steps(subnets) if step.get("writes"))
        ),
        "inputs": [_tensor(tensors[slot]) for slot in stage.get("inputs", [])],
        "outputs": [_tensor(tensors[slot]) for slot in stage.get("outputs", [])],
        "workspaces": stage.get("workspaces", []),
        "subnets": [_subnet(subnet) for subnet in subnets],
        "layers": _layers(perf, gpu, [subnet for subnet in subnets if not _on_gpu(dump, subnet)], tensors, times),
        "time": _time(perf, gpu, times, runs),
        "perf": perf,
        **drawn,
    }


def _tensor(tensor: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "name": tensor["name"],
        "dtype": tensor["dtype"],
        "shape": [dim["value"] for dim in tensor.get("shape", [])],
    }


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


def _has_row(subnet: Mapping[str, Any], step: Mapping[str, Any]) -> bool:
    """Returns true if a step is a layer of its own, i.e. neither a chip's program nor a call of other steps."""
    return subnet["kind"] != "Npu" and step["op_type"] not in edges.CALLS


def _rows_of_steps(dump: Mapping[str, Any], subnets: Any, first: int) -> dict[tuple[int, int], int]:
    """Returns the row that _layers gives each step, by (subnet number, step number)."""
    with_rows = [
        (number, at)
        for number, subnet in enumerate(subnets)
        for at, step in enumerate(subnet.get("plan", []))
        if not _on_gpu(dump, subnet) and _has_row(subnet, step)
    ]
    return {where: first + row for row, where in enumerate(with_rows)}


def _on_gpu(dump: Mapping[str, Any], subnet: Mapping[str, Any]) -> bool:
    return bool(dump["chips"][subnet["chip"]].get("family") == "cuda")


def _measure(path: Path, stage: Mapping[str, Any], tensors: Any, runs: int) -> list[float]:
    """Measures each step of a run on zeros with one thread; returns the median microseconds of `runs` runs, in plan
    order."""
    from .. import runtime

    net = runtime.load(path).net()
    types = {info.name: info.dtype for info in net.inputs}
    given = [tensors[slot] for slot in stage.get("inputs", [])]
    zeros = {
        each["name"]: np.zeros([dim["value"] for dim in each.get("shape", [])], types[each["name"]]) for each in given
    }
    seen = [[step.total_ns / step.runs / 1e3 if step.runs else 0.0 for step in net.profile(zeros, 1)]
            for _ in range(runs)]  # fmt: skip
    return [float(each) for each in np.median(seen, axis=0)]


def _time(
    perf: Mapping[str, Any] | None, gpu: Mapping[str, Any] | None, times: Sequence[float], runs: int
) -> dict[str, Any] | None:
    """Describes the time of a whole run: how it was determined, microseconds, and the bounds as shares of the time."""
    if perf:
        shares = {name: cycles / perf["cycles"] for name, cycles in perf["time_cycles"].items() if perf["cycles"]}
        how = "estimated" if perf["cycles"] else "estimated, by a rough model of the host"
        return {"how": how, "us": perf.get("total_microseconds", perf["microseconds"]), "shares": shares}
    if gpu:
        shares = {name: us / gpu["microseconds"] for name, us in gpu["time_microseconds"].items()}
        return {"how": "estimated", "us": gpu["microseconds"], "shares": shares}
    return {"how": f"measured, median of {runs} runs, 1 thread", "us": sum(times), "shares": {}} if times else None


def _layers(
    perf: Mapping[str, Any] | None, gpu: Mapping[str, Any] | None, subnets: Any, tensors: Any, times: Sequence[float]
) -> list[dict[str, Any]]:
    """Returns the layers of an NPU's commands or a GPU's launches from the estimate, followed by the steps of hosts and
    other chips. times: of all steps, or []."""
    layers = []
    micro = perf["microseconds"] / perf["cycles"] if perf and perf["cycles"] else 0.0
    for layer in perf["layers"] if perf else []:
        layers.append(
            {
                "name": layer["name"] or f"layer {layer['layer']}",
                "nodes": layer["name"].split("+") if layer["name"] else [],
                "on": perf["chip"] if perf else "",
                "op": f"{layer['compute']['commands']} compute, {layer['dma']['commands']} dma commands",
                "us": layer["cycles"] * micro,
                "bound": layer["bound"],
                "mac_utilisation": layer["mac_utilisation"],
                "products": layer["products"],
                "moved": sum(traffic["moved"] for traffic in layer["ddr_bytes"].values()),
                "least": layer.get("ddr_least_bytes"),
            }
        )
    for layer in gpu["layers"] if gpu else []:
        layers.append(
            {"name": layer["name"] or f"launch {layer['layer']}", "nodes": layer["name"].split("+") if layer["name"]
             else [], "on": gpu["chip"] if gpu else "", "op": f"{layer['op']}, {layer['unit']}",
             "us": layer["microseconds"], "bound": layer["bound"], "mac_utilisation": None,
             "products": layer["products"], "moved": layer["dram_bytes"], "least": None}
        )  # fmt: skip
    for index, (subnet, step) in enumerate(_steps(subnets)):
        if _has_row(subnet, step):
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


def _perf(path: Path, number: int) -> tuple[dict[str, Any], dict[str, Any]]:
    """Returns the estimate, and data to draw: every command, local memory and DDR over time."""
    with scratch_folder() as folder:
        perf = npu_perf.measure(path, folder=folder, stage=number)
        trace = json.loads((folder / "trace.json").read_text())
        events = _commands(trace["traceEvents"])
        return perf, {"trace": events, "memory": json.loads((folder / "memory.json").read_text())}


def _commands(events: Sequence[Mapping[str, Any]]) -> list[list[Any]]:
    """Returns for each slice of a queue's track: queue, command, layer, begin, duration, number, the row that it waited
    for or -1, and its bound."""
    slices = [event for event in events if event["ph"] == "X" and "id" in event["args"]]
    tracks = sorted({event["tid"] for event in slices})
    starts: dict[int, list[tuple[float, int]]] = {track: [] for track in tracks}
    for row, event in enumerate(slices):
        starts[event["tid"]].append((event["ts"], row))
    sources = {event["id"]: event for event in events if event["ph"] == "s"}
    waits = {}
    for event in events:
        if event["ph"] == "f":
            source = sources[event["id"]]
            before = bisect.bisect_right(starts[source["tid"]], (source["ts"], len(slices))) - 1
            waits[(event["tid"], event["ts"])] = starts[source["tid"]][before][1]
    return [
        [tracks.index(event["tid"]), event["name"].split(" ")[0], event["args"]["layer"], event["ts"], event["dur"],
         event["args"]["id"], waits.get((event["tid"], event["ts"]), -1), event["args"]["bound"]]
        for event in slices
    ]  # fmt: skip
